//! The groups of the application that sessions here belong to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::Core;
use super::early::Early;
use crate::error::Error;
use crate::table::{Claim, Name, Op, Payload, Place};

/// What a member of a group is told.
#[derive(Debug)]
pub(crate) enum Said {
    State(Arc<[u8]>),
    View(Vec<Place>),
    Message {
        from: Claim,
        label: Arc<str>,
        payload: Arc<[u8]>,
    },
    /// Give your state to this one.
    Ask {
        to: Claim,
        by: Claim,
    },
    /// We are not part of it any more.
    Lost,
}

/// How much may wait for a member that does not read: it is taken out then, so that it costs
/// the others nothing, and us no more memory.
const WAITING: usize = 64 << 20;

impl Said {
    /// About how many bytes of memory it takes.
    pub(crate) fn weight(&self) -> usize {
        let more = match self {
            Self::Message { payload, .. } => payload.len(),
            Self::State(state) => state.len(),
            Self::View(places) => places.len() * size_of::<Place>(),
            Self::Ask { .. } | Self::Lost => 0,
        };
        size_of::<Self>() + more
    }
}

/// Where a member of a group is told what happens, and how much of it waits there.
pub(crate) struct Ear {
    pub(crate) to: mpsc::UnboundedSender<Said>,
    pub(crate) waiting: Arc<AtomicUsize>,
}

impl Ear {
    pub(super) fn tell(&self, said: Said) {
        self.waiting.fetch_add(said.weight(), Ordering::Relaxed);
        let _ = self.to.send(said);
    }

    fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > WAITING
    }
}

/// Answers someone who joins.
pub(crate) type Entered = oneshot::Sender<Result<(u64, Claim), Error>>;

pub(super) struct Seat {
    pub(super) group: Name,
    session: u32,
    label: Arc<str>,
    claim: Option<Claim>,
    pub(super) ear: Ear,
    entered: Option<Entered>,
    /// Whether it has the state; before, what comes has to wait for that.
    pub(super) settled: bool,
    /// What has come since the state was asked for, and about how many bytes of memory it takes.
    buffer: Vec<Said>,
    buffered: usize,
    pub(super) places: Vec<Place>,
    /// How far it is ahead of the group, if it wants its messages early.
    pub(super) early: Option<Early>,
    /// Who was asked for the state, and when.
    asked: Option<(Claim, Duration)>,
}

#[derive(Default)]
pub(super) struct Circles {
    pub(super) seats: BTreeMap<u64, Seat>,
    /// Up to which place of the order we have looked for messages that someone wants early.
    pub(super) looked: u64,
}

impl Circles {
    /// A new view begins, and places of messages are counted anew.
    pub(super) fn begin_view(&mut self) {
        self.looked = 0;
        self.seats.values_mut().for_each(Seat::begin_view);
    }

    /// We are outside: no group here goes on.
    pub(super) fn end(&mut self) {
        // Who has not been let in yet asks again.
        self.seats.retain(|_, seat| {
            if seat.entered.is_none() {
                seat.ear.tell(Said::Lost);
            }
            (seat.claim, seat.asked) = (None, None);
            (seat.buffer, seat.buffered) = (Vec::new(), 0);
            seat.entered.is_some()
        });
    }

    /// We are gone for good.
    pub(super) fn close(&mut self) {
        self.end();
        for (_, seat) in std::mem::take(&mut self.seats) {
            seat.refuse(Error::Left);
        }
    }
}

impl Core {
    pub(crate) fn enter_group(
        &mut self,
        session: u32,
        group: Name,
        label: Arc<str>,
        ear: Ear,
        entered: Entered,
    ) -> u64 {
        let number = self.desk.next_number();
        if let Err(error) = self.is_usable(session) {
            let _ = entered.send(Err(error));
            return number;
        }
        let seat = Seat {
            group,
            session,
            label,
            claim: None,
            ear,
            entered: Some(entered),
            settled: false,
            buffer: Vec::new(),
            buffered: 0,
            places: Vec::new(),
            early: None,
            asked: None,
        };
        self.circles.seats.insert(number, seat);
        self.ask_entry(number);
        self.pump();
        number
    }

    fn ask_entry(&mut self, number: u64) {
        if !self.is_member() {
            return;
        }
        let member = self.myself();
        let Some(seat) = self.circles.seats.get_mut(&number) else { return };
        let claim = Claim { member, session: seat.session, number };
        seat.claim = Some(claim);
        let (group, label) = (seat.group.clone(), seat.label.clone());
        self.submit(Op::Enter { group, claim, label });
    }

    pub(super) fn enter_anew(&mut self) {
        let numbers: Vec<u64> = self.circles.seats.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.ask_entry(number));
    }

    pub(crate) fn exit_group(&mut self, number: u64) {
        let Some(seat) = self.circles.seats.remove(&number) else { return };
        if let Some(claim) = seat.claim {
            self.submit(Op::Exit { group: seat.group.clone(), claim });
            self.pump();
        }
        seat.refuse(Error::Closed);
    }

    pub(super) fn end_seats(&mut self, session: u32) {
        let of = |(n, s): (&u64, &Seat)| (s.session == session).then_some(*n);
        let numbers: Vec<u64> = self.circles.seats.iter().filter_map(of).collect();
        for number in numbers {
            if let Some(seat) = self.circles.seats.get(&number) {
                seat.ear.tell(Said::Lost);
            }
            self.exit_group(number);
        }
    }

    /// Sends a message to a group. False: not now, too much waits.
    pub(crate) fn say(&mut self, number: u64, payload: &Arc<[u8]>) -> Result<bool, Error> {
        let seat = self.circles.seats.get(&number);
        let Some((claim, group)) = seat.and_then(|s| Some((s.claim?, s.group.clone()))) else {
            return Err(Error::Lost("the group".into()));
        };
        if self.is_full() {
            return Ok(false);
        }
        self.submit(Op::Say { group, claim, payload: Payload(payload.clone()) });
        // Together with those that come in the same moment: see `pump`.
        self.pump();
        Ok(true)
    }

    pub(crate) fn give_state(&mut self, number: u64, to: Claim, by: Claim, state: Arc<[u8]>) {
        if let Some(seat) = self.circles.seats.get(&number) {
            let (group, parts) = (seat.group.clone(), Payload(state));
            self.submit(Op::Give { group, to, by, parts });
            self.pump();
        }
    }

    fn seats_of(&mut self, group: &Name) -> impl Iterator<Item = &mut Seat> {
        self.circles.seats.values_mut().filter(move |s| s.group == *group)
    }

    pub(super) fn on_circle(&mut self, group: &Name, places: &[Place]) {
        for seat in self.seats_of(group) {
            seat.places = places.to_vec();
            seat.welcome();
            seat.hear(Said::View(places.to_vec()));
        }
    }

    pub(super) fn on_said(&mut self, group: &Name, from: Claim, payload: &Payload) {
        for seat in self.seats_of(group) {
            if seat.was_told() {
                continue;
            }
            let place = seat.places.iter().find(|p| p.claim == from);
            let label = place.map_or_else(|| "".into(), |p| p.label.clone());
            seat.hear(Said::Message { from, label, payload: payload.0.clone() });
        }
        self.let_go_of_the_deaf();
    }

    /// Who does not read what it is told is a member no more.
    fn let_go_of_the_deaf(&mut self) {
        let full = |s: &Seat| s.ear.is_full() || s.buffered > WAITING;
        let deaf = |(n, s): (&u64, &Seat)| full(s).then_some(*n);
        let deaf: Vec<u64> = self.circles.seats.iter().filter_map(deaf).collect();
        for number in deaf {
            let Some(seat) = self.circles.seats.remove(&number) else { continue };
            seat.ear.tell(Said::Lost);
            if let Some(claim) = seat.claim {
                self.submit(Op::Exit { group: seat.group.clone(), claim });
            }
            seat.refuse(Error::Lost("the group".into()));
        }
    }

    /// Who was asked for a state and has not given it for so long gives it no more: someone else shall.
    pub(super) fn ask_others(&mut self) {
        let (now, patience) = (self.now, self.config.timings.silence * 2);
        let mut ops = Vec::new();
        for seat in self.circles.seats.values_mut().filter(|seat| !seat.settled) {
            if let (Some(to), Some((instead_of, at))) = (seat.claim, &mut seat.asked)
                && *at + patience <= now
            {
                *at = now;
                let (group, instead_of) = (seat.group.clone(), *instead_of);
                ops.push(Op::AskAnother { group, to, instead_of });
            }
        }
        ops.into_iter().for_each(|op| self.submit(op));
    }

    pub(super) fn on_ask(&mut self, group: &Name, donor: Claim, to: Claim) {
        let now = self.now;
        for seat in self.seats_of(group) {
            if seat.claim == Some(to) {
                seat.asked = Some((donor, now));
                // The state will include all before this.
                seat.buffer.retain(|said| matches!(said, Said::View(_)));
                seat.buffered = seat.buffer.iter().map(Said::weight).sum();
            }
            if seat.claim == Some(donor) {
                seat.hear(Said::Ask { to, by: donor });
            }
        }
    }

    pub(super) fn on_given(&mut self, group: &Name, to: Claim, state: &Payload) {
        for seat in self.seats_of(group).filter(|s| s.claim == Some(to)) {
            if std::mem::replace(&mut seat.settled, true) {
                continue;
            }
            seat.ear.tell(Said::State(state.0.clone()));
            for said in std::mem::take(&mut seat.buffer) {
                seat.ear.tell(said);
            }
            seat.buffered = 0;
        }
    }
}

impl Seat {
    fn hear(&mut self, said: Said) {
        // What was before we belong to it is part of the state.
        if self.claim.is_none() || self.entered.is_some() {
            return;
        }
        if self.settled {
            self.ear.tell(said);
        } else {
            self.buffered += said.weight();
            self.buffer.push(said);
        }
    }

    /// It belongs to the group as soon as the group says so: the state comes when someone gives it.
    fn welcome(&mut self) {
        let Some(claim) = self.claim.filter(|c| self.places.iter().any(|p| p.claim == *c)) else {
            return;
        };
        if let Some(entered) = self.entered.take() {
            let _ = entered.send(Ok((claim.number, claim)));
        }
    }

    /// Who still waits to be let in will not be.
    fn refuse(self, error: Error) {
        if let Some(entered) = self.entered {
            let _ = entered.send(Err(error));
        }
    }
}
