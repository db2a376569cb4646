//! The hardened form: elections are numbered, and whatever gets lost is tried again.
//!
//! A process follows the latest election it has heard of and forgets the ones before, so that no
//! flag and no message of an old one does harm. An election that takes too long is opened anew
//! under the next number; the winner repeats its word until it comes home; and who learns that its
//! leader is dead opens the next election at once. The number of the election is kept in stable
//! storage: a restarted process never takes part in one election twice.
//!
//! Without faults this costs what the textbook form costs. That there is one leader at a time rests
//! on the detector: a live process that is skipped by mistake, or two that restart in one election
//! while they are still skipped, may lead besides the right one until its word reaches them.

use std::time::Duration;

use konklave_process::{Context, Fixed, ProcessId};
use serde::Serialize;

use super::{ChangRoberts, Indication, Message, Record, Timer};
use crate::election::ring;
use crate::{Assumption, DataSheet, Guarantee, Setup};

/// What the hardened form knows besides.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Hardened {
    /// The number of the latest election we heard of.
    epoch: u32,
    /// The highest number we proposed or let pass in it.
    best: ProcessId,
    /// Who has won it, once we know.
    leader: Option<ProcessId>,
    /// Whether our word is on its way round.
    telling: bool,
    #[serde(skip)]
    patience: Fixed<Duration>,
}

/// Crashes, losses, copies and any order of messages only cost time.
pub(super) fn sheet(textbook: DataSheet) -> DataSheet {
    DataSheet {
        assumes: &[
            Assumption::Synchronous,
            Assumption::StableStorage,
            Assumption::UniqueIds,
            Assumption::KnownMembership,
        ],
        guarantees: &[
            Guarantee::UniqueLeader,
            Guarantee::UniquePerEpoch,
            Guarantee::Agreement,
            Guarantee::LiveLeader,
            Guarantee::Termination,
        ],
        ..textbook
    }
}

impl Hardened {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            epoch: 0,
            best: ProcessId::default(),
            leader: None,
            telling: false,
            patience: Fixed(ring::patience(setup)),
        }
    }

    pub(super) fn recover(&mut self, saved: Option<Record>) {
        self.epoch = saved.map_or(0, |Record(epoch)| epoch);
    }

    pub(super) fn is_telling(&self) -> bool {
        self.telling
    }
}

impl ChangRoberts {
    fn numbered(&mut self) -> &mut Hardened {
        self.hardened().expect("only the hardened form has numbered elections")
    }

    fn suspects(&self, p: ProcessId) -> bool {
        self.aside.0.as_ref().is_some_and(|rare| rare.suspects.contains(p))
    }

    /// Opens the next election.
    pub(super) fn open(&mut self, ctx: &mut Context<'_, Self>) {
        let epoch = self.numbered().epoch.saturating_add(1);
        self.take_part(epoch, ctx);
        if self.successor == ctx.me() {
            return self.win(ctx);
        }
        self.propose_in(ctx.me(), 1, ctx);
    }

    /// What was decided before does not hold any more.
    fn take_part(&mut self, epoch: u32, ctx: &mut Context<'_, Self>) {
        let hardened = self.numbered();
        let (knew, told) = (hardened.leader.take(), std::mem::take(&mut hardened.telling));
        let patience = *hardened.patience;
        hardened.epoch = epoch;
        hardened.best = ctx.me();
        ctx.save(Record(epoch));
        if told {
            ctx.cancel_timer(Timer::Announcement);
        }
        ctx.set_timer(Timer::Election, patience);
        self.participant = true;
        self.leading = false;
        if knew.is_some() {
            ctx.indicate(Indication::Deposed);
        }
    }

    fn propose_in(&mut self, id: ProcessId, hops: u16, ctx: &mut Context<'_, Self>) {
        let hardened = self.numbered();
        hardened.best = hardened.best.max(id);
        let epoch = hardened.epoch;
        ctx.send(self.successor, Message::ProposeIn { epoch, id, hops });
    }

    /// The election has this winner.
    fn decide(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        self.numbered().leader = Some(leader);
        self.participant = false;
        self.leading = leader == ctx.me();
        ctx.cancel_timer(Timer::Election);
        ring::announce(leader, self.numbered().epoch, ctx);
    }

    fn win(&mut self, ctx: &mut Context<'_, Self>) {
        self.decide(ctx.me(), ctx);
        self.announce(ctx);
    }

    /// The leader sends its word round, until it comes home.
    pub(super) fn announce(&mut self, ctx: &mut Context<'_, Self>) {
        if self.successor != ctx.me() {
            let hardened = self.numbered();
            hardened.telling = true;
            ctx.set_timer(Timer::Announcement, *hardened.patience);
            self.tell(1, ctx);
        }
    }

    /// Passes on who leads.
    fn tell(&mut self, hops: u16, ctx: &mut Context<'_, Self>) {
        let hardened = self.numbered();
        let epoch = hardened.epoch;
        if let Some(id) = hardened.leader
            && self.successor != ctx.me()
        {
            ctx.send(self.successor, Message::ElectedIn { epoch, id, hops });
        }
    }

    pub(super) fn on_propose_in(
        &mut self,
        epoch: u32,
        id: ProcessId,
        hops: u16,
        ctx: &mut Context<'_, Self>,
    ) {
        let me = ctx.me();
        if epoch < self.numbered().epoch {
            // Someone is behind the times: it will hear from us, if we know the outcome.
            return self.tell(1, ctx);
        }
        let news = epoch > self.numbered().epoch;
        if news {
            self.take_part(epoch, ctx);
        }
        if !self.participant || usize::from(hops) > ctx.group_size() || self.suspects(id) {
            // The election is over, or the owner is gone: then time will tell.
        } else if id > me {
            self.propose_in(id, hops + 1, ctx);
        } else if news {
            self.propose_in(me, 1, ctx);
        } else if id == me && self.numbered().best == me {
            self.win(ctx);
        }
    }

    pub(super) fn on_elected_in(
        &mut self,
        epoch: u32,
        id: ProcessId,
        hops: u16,
        ctx: &mut Context<'_, Self>,
    ) {
        let hardened = self.numbered();
        if epoch < hardened.epoch {
            return;
        }
        if epoch > hardened.epoch {
            self.take_part(epoch, ctx);
        }
        if self.suspects(id) {
            // Nobody shall follow the dead. If it is none, it will say so again.
            return;
        }
        match self.numbered().leader {
            None if id == ctx.me() => return self.open(ctx),
            None => self.decide(id, ctx),
            Some(leader) if leader < id => self.decide(id, ctx),
            Some(leader) if leader > id => return self.tell(1, ctx),
            Some(_) => {}
        }
        if self.leading && std::mem::take(&mut self.numbered().telling) {
            ctx.cancel_timer(Timer::Announcement);
        }
        // Once round, whoever began: those who missed it hear it now.
        if usize::from(hops) < ctx.group_size() {
            self.tell(hops + 1, ctx);
        }
    }

    /// The election took too long.
    pub(super) fn on_silence(&mut self, ctx: &mut Context<'_, Self>) {
        if self.participant {
            self.open(ctx);
        }
    }

    /// Our word did not come home.
    pub(super) fn announce_again(&mut self, ctx: &mut Context<'_, Self>) {
        if self.leading && self.numbered().telling {
            self.announce(ctx);
        }
    }

    /// A leader that is dead has to be replaced; who is left alone leads, but in an election of its
    /// own: the dead may have won this one.
    pub(super) fn on_crash_of(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        let alone = self.successor == ctx.me();
        if self.numbered().leader == Some(peer) || (alone && self.participant) {
            self.open(ctx);
        } else if alone && std::mem::take(&mut self.numbered().telling) {
            ctx.cancel_timer(Timer::Announcement);
        }
    }
}
