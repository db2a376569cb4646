//! Mutual exclusion by a token that goes round a ring.
//!
//! Whoever has the token may enter once, and passes it on when it leaves. In `mode=perpetual` the
//! token never rests, as in the lectures. In `mode=parking` it stops after a round in which nobody
//! wanted it, and who wants it sends a wake-up call after it.
//!
//! Crashed processes are skipped. Whenever someone crashes, the token may be lost with it, so the
//! survivor with the highest id begins a new epoch (`regeneration.rs`). With `patience` above 0 it
//! also does so when someone has waited too long: that may be wrong, and does no harm.

mod regeneration;

use std::sync::Arc;
use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup, Switch,
};
pub use regeneration::Probing;

const KEEPS_TOKEN: Mistake = Mistake {
    name: "keeps-token",
    what: "who leaves keeps the token until it is woken up, and may enter again and again",
    breaks: "bounded bypass",
    caught_by: "-n 2 --requests 3,1 --property bypass:1",
};
const NO_EPOCH: Mistake = Mistake {
    name: "no-epoch",
    what: "a new token is like the old one, which was only late and not lost: now there are two",
    breaks: "one token",
    caught_by: "-n 3 --requests 1,1,0 --crash 1",
};

const SHEET: DataSheet = DataSheet {
    name: "token-ring",
    title: "Token ring",
    idea: "A token goes round; who has it may enter once.",
    source: "G. Le Lann, 1977; lectures \"Gegenseitiger Ausschluss\": token ring, perpetuum mobile",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoRestart,
        Assumption::Synchronous,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::DirectedRing],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "1 if all want; when parking n where the token rests, else 2n to 3n − 2",
            when: "parking, and only one process asks",
            bound: |f| {
                let most = if f.n() > 1.0 { 3.0 * f.n() - 2.0 } else { 0.0 };
                (parks_in_peace(f) && f.uncontended).then_some(Bound::AtMost(most))
            },
        },
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "n² + n − 1",
            when: "parking, and nobody crashes: each of n − 1 that a call wakes may send the token \
                   round once more",
            bound: |f| {
                let most = if f.n() > 1.0 { f.n() * f.n() + f.n() - 1.0 } else { 0.0 };
                parks_in_peace(f).then_some(Bound::AtMost(most))
            },
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T to (n − 1)T",
            when: "nobody crashes, and delays have a limit",
            bound: |f| {
                f.delay_max.filter(|_| is_intact(f)).map(|t| Bound::AtMost((f.n() - 1.0) * t))
            },
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "0 to nT, n/2 T on average",
            when: "nobody crashes, and delays have a limit",
            bound: |f| f.delay_max.filter(|_| is_intact(f)).map(|t| Bound::AtMost(f.n() * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the epoch, and the token's count of entries"),
    mistakes: &[KEEPS_TOKEN, NO_EPOCH],
    switches: &[
        Switch {
            name: "mode",
            values: &["parking", "perpetual"],
            what: "whether the token rests while nobody wants it",
        },
        Switch {
            name: "patience",
            values: &["0", "<number>"],
            what: "how many rounds to wait before asking whether the token is lost, and twice as \
                   many before asking again; 0: for ever",
        },
    ],
};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct TokenRing {
    successor: ProcessId,
    phase: Phase,
    token: Option<Token>,
    /// Whether somebody's wake-up call came by since the token did.
    called: bool,
    /// The epoch we have joined. Those that the i-th of the group begins are i modulo n.
    epoch: u32,
    /// Whether our token must not be used before all have joined the epoch.
    frozen: bool,
    /// If it is us who begin the epoch: who has not joined yet.
    probing: Option<Box<Probing>>,
    /// Who has crashed, lowest id first.
    crashed: Vec<ProcessId>,
    /// How often we have asked whether the token is lost since we want it.
    alarms: u32,
    #[serde(skip)]
    parks: Fixed<bool>,
    /// How long we wait before we ask whether the token is lost.
    #[serde(skip)]
    patience: Fixed<Option<Duration>>,
    #[serde(skip)]
    keeps_token: Fixed<bool>,
    #[serde(skip)]
    no_epoch: Fixed<bool>,
}

/// Where we stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Phase {
    /// We want nothing.
    Idle,
    /// We wait for the token.
    Wanting,
    /// We are inside.
    Held,
    /// We crashed and came up again: the others go on without us.
    Out,
}

/// The right to enter, once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// How often someone has entered in this token's time.
    entries: u32,
    /// How many did not want it since someone did.
    idle: u32,
}

/// What goes round the ring; and, from [`Probe`](Message::Probe) on, what is said past it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Enter or pass it on.
    Token {
        /// The epoch it belongs to.
        epoch: u32,
        /// The token.
        token: Token,
    },
    /// Somebody wants the token.
    Wake {
        /// How many more shall hear that.
        hops: u32,
    },
    /// An epoch begins: tokens of earlier ones are void. Do you have the token?
    Probe {
        /// The epoch.
        epoch: u32,
        /// Who has crashed.
        crashed: Arc<[ProcessId]>,
    },
    /// I have joined the epoch.
    Report {
        /// The epoch.
        epoch: u32,
        /// Whether I have the token.
        token: bool,
    },
    /// All have joined: the token that you have belongs to this epoch.
    Resume {
        /// The epoch.
        epoch: u32,
    },
    /// I have joined a later one.
    Outdated {
        /// The later epoch.
        epoch: u32,
    },
    /// I have waited long: is the token lost?
    Alarm,
    /// I have crashed, though I am up again.
    Gone,
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The token should have come.
    Patience,
}

impl TokenRing {
    /// The token is here.
    fn use_token(&mut self, token: Token, ctx: &mut Context<'_, Self>) {
        let called = std::mem::take(&mut self.called);
        let idle = if called { 0 } else { token.idle + 1 };
        self.token = Some(Token { idle: if *self.parks { idle } else { 0 }, ..token });
        match self.phase {
            Phase::Wanting => self.enter(ctx),
            Phase::Idle if *self.parks && idle as usize >= ctx.group_size() => {}
            Phase::Idle => self.pass_on(ctx),
            Phase::Held | Phase::Out => ctx.unexpected("a second token"),
        }
    }

    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(token) = self.token.as_mut().filter(|_| !self.frozen) else { return };
        token.entries += 1;
        token.idle = 0;
        self.phase = Phase::Held;
        if self.patience.is_some() {
            self.alarms = 0;
            ctx.cancel_timer(Timer::Patience);
        }
        let fence = Fence(self.epoch.into(), token.entries.into());
        ctx.indicate(Indication::Granted { fence: Some(fence) });
    }

    /// Waits for the token, if we do not wait for ever. An epoch takes time to begin, and who is
    /// inside keeps the token that long: if each wait were as short, epoch would follow epoch and
    /// the token never get anywhere.
    fn be_patient(&self, ctx: &mut Context<'_, Self>) {
        const MOST_DOUBLED: u32 = 16;
        if let Some(patience) = *self.patience {
            let factor = 1 << self.alarms.min(MOST_DOUBLED);
            ctx.set_timer(Timer::Patience, patience.saturating_mul(factor));
        }
    }

    fn pass_on(&mut self, ctx: &mut Context<'_, Self>) {
        if self.frozen || self.successor == ctx.me() {
            return;
        }
        let Some(token) = self.token.take() else { return };
        let epoch = if *self.no_epoch { 0 } else { self.epoch };
        ctx.send(self.successor, Message::Token { epoch, token });
    }

    /// Wakes the token up, wherever it rests.
    fn call(&self, ctx: &mut Context<'_, Self>) {
        if *self.parks && self.successor != ctx.me() {
            ctx.send(self.successor, Message::Wake { hops: ctx.group_size() as u32 - 2 });
        }
    }

    fn on_wake(&mut self, hops: u32, ctx: &mut Context<'_, Self>) {
        match (self.phase, &mut self.token) {
            (Phase::Idle, Some(token)) => {
                token.idle = 0;
                self.pass_on(ctx);
            }
            (Phase::Idle, None) => {
                self.called = true;
                if hops > 0 && self.successor != ctx.me() {
                    ctx.send(self.successor, Message::Wake { hops: hops - 1 });
                }
            }
            // Once we have had our turn, the token makes a whole round.
            (Phase::Wanting | Phase::Held, _) => self.called = *self.keeps_token,
            (Phase::Out, _) => {}
        }
    }
}

impl Process for TokenRing {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        if !*self.parks {
            self.pass_on(ctx);
        }
    }

    fn on_recover(&mut self, _saved: Option<NoRecord>, ctx: &mut Context<'_, Self>) {
        // We know neither the epoch nor whether the token was here: nobody must count on us.
        self.phase = Phase::Out;
        self.token = None;
        ctx.send_to_others(Message::Gone);
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire if self.phase == Phase::Out => {}
            Request::Acquire => {
                self.phase = Phase::Wanting;
                self.be_patient(ctx);
                if self.token.is_some() {
                    self.enter(ctx);
                } else {
                    self.call(ctx);
                }
            }
            Request::Release => {
                self.phase = Phase::Idle;
                if !*self.keeps_token || std::mem::take(&mut self.called) {
                    self.pass_on(ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        // The last words of one who has crashed: the epoch that its crash brings about is right
        // without them.
        if self.phase == Phase::Out || self.has_crashed(from) {
            return;
        }
        match message {
            Message::Token { epoch, token } => {
                if epoch < self.epoch && !*self.no_epoch {
                    return;
                }
                self.join(epoch);
                if self.token.is_some() {
                    return ctx.unexpected("a second token");
                }
                self.use_token(token, ctx);
            }
            Message::Wake { hops } => self.on_wake(hops, ctx),
            Message::Probe { epoch, crashed } => self.on_probe(from, epoch, &crashed, ctx),
            Message::Report { epoch, token } => self.on_report(from, epoch, token, ctx),
            Message::Resume { epoch } if epoch == self.epoch => self.resume(ctx),
            Message::Resume { .. } => {}
            Message::Outdated { epoch } => self.on_outdated(epoch, ctx),
            Message::Alarm => {
                if self.is_coordinator(ctx) {
                    self.begin_epoch(ctx);
                }
            }
            Message::Gone => self.on_crash_of(from, ctx),
        }
    }

    fn on_timer(&mut self, Timer::Patience: Timer, ctx: &mut Context<'_, Self>) {
        self.alarms = self.alarms.saturating_add(1);
        self.be_patient(ctx);
        if self.is_coordinator(ctx) {
            self.begin_epoch(ctx);
        } else {
            ctx.send(self.coordinator(ctx), Message::Alarm);
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.phase != Phase::Out {
            self.on_crash_of(peer, ctx);
        }
    }

    fn at_rest(&self) -> bool {
        let waits = self.frozen || self.probing.is_some();
        matches!(self.phase, Phase::Idle | Phase::Out) && !waits
    }

    /// Only the first epoch's token is counted: a later one may meet an older one on its way, which
    /// nobody will accept.
    fn tokens(&self) -> usize {
        (self.token.is_some() && (self.epoch == 0 || *self.no_epoch)).into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token { epoch: 0, .. }).into()
    }
}

impl Algorithm for TokenRing {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let group = &setup.group;
        let rounds = setup.chosen(&SHEET, "patience").number();
        let mut crashed = setup.down.clone();
        crashed.sort_unstable();
        let first = group.members().iter().find(|p| crashed.binary_search(p).is_err());
        let mut process = Self {
            successor: setup.successor(me),
            phase: Phase::Idle,
            token: (first == Some(&me)).then_some(Token { entries: 0, idle: 0 }),
            called: false,
            epoch: 0,
            frozen: false,
            probing: None,
            crashed,
            alarms: 0,
            parks: Fixed(setup.chosen(&SHEET, "mode").is("parking")),
            patience: Fixed((rounds > 0).then(|| setup.unit * group.len() as u32 * rounds)),
            keeps_token: setup.makes(&KEEPS_TOKEN),
            no_epoch: setup.makes(&NO_EPOCH),
        };
        process.mend(me, group);
        process
    }
}

/// Whether the first token goes round all the time.
fn is_intact(f: &Facts<'_>) -> bool {
    let patient = f.setup.chosen(&SHEET, "patience").number() == 0;
    f.undisturbed && f.setup.down.is_empty() && patient
}

fn parks_in_peace(f: &Facts<'_>) -> bool {
    is_intact(f) && f.setup.chosen(&SHEET, "mode").is("parking")
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Input, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    fn bench(me: u32, mode: &str) -> Bench<TokenRing> {
        let mut setup = Setup::new(Group::of(4), Topology::directed_ring(4));
        setup.chosen.insert("mode", mode.into());
        Bench::new(TokenRing::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    fn token(epoch: u32, entries: u32, idle: u32) -> Message {
        Message::Token { epoch, token: Token { entries, idle } }
    }

    fn granted(epoch: u64, entries: u64) -> Effect<TokenRing> {
        tell(Indication::Granted { fence: Some(Fence(epoch, entries)) })
    }

    fn crashed(ids: &[u32]) -> Arc<[ProcessId]> {
        ids.iter().copied().map(ProcessId).collect()
    }

    #[test]
    fn the_token_is_used_once_and_passed_on() {
        let mut p1 = bench(1, "perpetual");
        assert_eq!(p1.ask(Request::Acquire), []);
        assert_eq!(p1.hear(0, token(0, 6, 0)), [granted(0, 7)]);
        assert_eq!(p1.ask(Request::Release), [send(2, token(0, 7, 0))]);
        assert_eq!(p1.hear(0, token(0, 7, 0)), [send(2, token(0, 7, 0))]);
    }

    #[test]
    fn after_an_idle_round_the_token_rests_until_it_is_called() {
        let mut p1 = bench(1, "parking");
        assert_eq!(p1.hear(0, token(0, 1, 2)), [send(2, token(0, 1, 3))]);
        assert_eq!(p1.hear(0, token(0, 1, 3)), []);
        assert!(p1.process.at_rest());
        assert_eq!(p1.hear(0, Message::Wake { hops: 1 }), [send(2, token(0, 1, 0))]);
    }

    #[test]
    fn a_call_goes_once_round_and_keeps_the_token_going() {
        let mut p1 = bench(1, "parking");
        assert_eq!(p1.ask(Request::Acquire), [send(2, Message::Wake { hops: 2 })]);
        let mut p2 = bench(2, "parking");
        assert_eq!(p2.hear(1, Message::Wake { hops: 2 }), [send(3, Message::Wake { hops: 1 })]);
        assert_eq!(p2.hear(1, Message::Wake { hops: 0 }), []);
        assert_eq!(p2.hear(1, token(0, 0, 3)), [send(3, token(0, 0, 0))]);
    }

    #[test]
    fn who_crashed_is_skipped_and_calls_are_repeated() {
        let mut p1 = bench(1, "parking");
        p1.hear(0, Message::Wake { hops: 2 });
        assert_eq!(p1.suspect(2), [send(3, Message::Wake { hops: 2 })]);
        assert_eq!(p1.hear(0, token(0, 0, 0)), [send(3, token(0, 0, 0))]);
        assert_eq!(p1.hear(2, token(0, 0, 0)), []);
    }

    #[test]
    fn the_coordinator_makes_a_new_token_if_nobody_has_it() {
        let mut p3 = bench(3, "parking");
        let probe = Message::Probe { epoch: 7, crashed: crashed(&[1]) };
        assert_eq!(p3.suspect(1), [send(0, probe.clone()), send(2, probe)]);
        assert_eq!(p3.hear(0, Message::Report { epoch: 7, token: false }), []);
        // A token of the first epoch comes too late.
        assert_eq!(p3.hear(2, token(0, 5, 0)), []);
        let joined = p3.hear(2, Message::Report { epoch: 7, token: false });
        assert_eq!(joined, [send(0, token(7, 0, 1))]);
    }

    #[test]
    fn who_has_the_token_takes_it_along_but_only_when_all_have_joined() {
        let mut p0 = bench(0, "parking");
        p0.ask(Request::Acquire);
        let probed = p0.hear(3, Message::Probe { epoch: 7, crashed: crashed(&[1]) });
        assert_eq!(probed, [send(3, Message::Report { epoch: 7, token: true })]);
        assert_eq!(p0.ask(Request::Release), []);
        assert_eq!(p0.ask(Request::Acquire), []);
        assert_eq!(p0.hear(3, Message::Resume { epoch: 3 }), []);
        assert_eq!(p0.hear(3, Message::Resume { epoch: 7 }), [granted(7, 2)]);
        assert_eq!(p0.ask(Request::Release), [send(2, token(7, 2, 0))]);
    }

    #[test]
    fn a_later_epoch_is_told_to_who_does_not_know_it() {
        let mut p0 = bench(0, "parking");
        p0.hear(3, Message::Probe { epoch: 11, crashed: crashed(&[1]) });
        let late = p0.hear(2, Message::Probe { epoch: 6, crashed: crashed(&[1, 3]) });
        assert_eq!(late, [send(2, Message::Outdated { epoch: 11 })]);
        let mut p2 = bench(2, "parking");
        p2.suspect(1);
        p2.suspect(3);
        let again = Message::Probe { epoch: 14, crashed: crashed(&[1, 3]) };
        assert_eq!(p2.hear(0, Message::Outdated { epoch: 11 }), [send(0, again)]);
    }

    #[test]
    fn who_comes_up_again_says_that_it_is_gone() {
        let mut p0 = bench(0, "parking");
        let gone = [1, 2, 3].map(|p| send(p, Message::Gone));
        assert_eq!(p0.step(Input::Recover(None)), gone);
        assert_eq!(p0.process.tokens(), 0);
        assert_eq!(p0.hear(3, token(0, 0, 0)), []);
    }
}
