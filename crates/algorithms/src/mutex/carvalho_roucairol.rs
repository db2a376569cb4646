//! Carvalho and Roucairol's mutual exclusion: Ricart–Agrawala with permissions that are kept.
//!
//! For each pair of processes there is one permission. Who has those of all its pairs may enter,
//! and goes on doing so without a word until someone asks. Who is asked gives the permission away,
//! unless it is inside or waits with an earlier request; if it waits itself, it asks to have it back.

use konklave_process::topology::Shape;
use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessSet, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const NO_RE_REQUEST: Mistake = Mistake {
    name: "no-re-request",
    what: "who waits and gives a permission away does not ask to have it back",
    breaks: "deadlock",
    caught_by: "-n 3",
};
const TIMESTAMP_FENCE: Mistake = Mistake {
    name: "timestamp-fence",
    what: "(timestamp, id) is the fence, as in Ricart–Agrawala: but who has all permissions enters \
           before an older request that it has not heard of",
    breaks: "growing fences",
    caught_by: "-n 2 --requests 2,1 --property fence",
};

const SHEET: DataSheet = DataSheet {
    name: "carvalho-roucairol",
    title: "Carvalho–Roucairol",
    idea: "Permissions stay where they are until someone asks: who enters again asks nobody.",
    source: "O. S. F. Carvalho, G. Roucairol, CACM 26(2), 1983",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "0 to 2(n − 1)",
            when: "always",
            bound: |f| Some(Bound::Between(0.0, 2.0 * (f.n() - 1.0))),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or up to 3T while requests are on their way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(3.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "0 or 2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("one more than the highest fence of all who gave their permission"),
    mistakes: &[NO_RE_REQUEST, TIMESTAMP_FENCE],
    switches: &[],
};

/// One process of the algorithm. At first the lower id of each pair has its permission.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct CarvalhoRoucairol {
    clock: LamportClock,
    state: State,
    /// With whom the permission is, of those pairs whose permission we do not have.
    lacking: ProcessSet,
    /// Who gets the permission when we leave.
    deferred: ProcessSet,
    /// The highest fence that we know of.
    fence: u64,
    #[serde(skip)]
    no_re_request: Fixed<bool>,
    #[serde(skip)]
    timestamp_fence: Fixed<bool>,
}

/// Where we stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum State {
    /// We are outside.
    Released,
    /// We want in.
    Wanted {
        /// The time of our request.
        since: u32,
    },
    /// We are inside.
    Held,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Give me our permission.
    Request {
        /// The time of the request.
        timestamp: u32,
        /// The time of asking: later than the request if we had the permission in between.
        clock: u32,
    },
    /// Here it is.
    Reply {
        /// The time of giving it.
        clock: u32,
        /// The highest fence so far.
        fence: u64,
    },
}

impl CarvalhoRoucairol {
    /// Whether our claim goes before that of `from`.
    fn precedes(&self, me: ProcessId, timestamp: u32, from: ProcessId) -> bool {
        match self.state {
            State::Released => false,
            State::Wanted { since } => {
                let ours = Timestamp { time: since, process: me };
                ours < Timestamp { time: timestamp, process: from }
            }
            State::Held => true,
        }
    }

    fn try_enter(&mut self, ctx: &mut Context<'_, Self>) {
        let State::Wanted { since } = self.state else { return };
        if !self.lacking.is_empty() {
            return;
        }
        self.state = State::Held;
        self.fence += 1;
        let fence = if *self.timestamp_fence {
            Fence(since.into(), ctx.me().0.into())
        } else {
            Fence(0, self.fence)
        };
        ctx.indicate(Indication::Granted { fence: Some(fence) });
    }

    fn ask(&self, whom: ProcessId, since: u32, ctx: &mut Context<'_, Self>) {
        ctx.send(whom, Message::Request { timestamp: since, clock: self.clock.now() });
    }

    fn give(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        self.lacking.insert(to);
        ctx.send(to, Message::Reply { clock: self.clock.now(), fence: self.fence });
    }
}

impl Process for CarvalhoRoucairol {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                let since = self.clock.tick();
                self.state = State::Wanted { since };
                for p in self.lacking.iter() {
                    self.ask(p, since, ctx);
                }
                self.try_enter(ctx);
            }
            Request::Release => {
                self.state = State::Released;
                for p in std::mem::take(&mut self.deferred).iter() {
                    self.give(p, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request { timestamp, clock } => {
                self.clock.witness(clock);
                if self.precedes(ctx.me(), timestamp, from) {
                    self.deferred.insert(from);
                    return;
                }
                self.give(from, ctx);
                // We need it ourselves, only later.
                if let State::Wanted { since } = self.state
                    && !*self.no_re_request
                {
                    self.ask(from, since, ctx);
                }
            }
            Message::Reply { clock, fence } => {
                self.clock.witness(clock);
                self.fence = self.fence.max(fence);
                self.lacking.remove(from);
                self.try_enter(ctx);
            }
        }
    }

    fn stamp(&self) -> u64 {
        self.clock.now().into()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.clock.witness(stamp as u32);
    }

    fn at_rest(&self) -> bool {
        self.state == State::Released && self.deferred.is_empty()
    }
}

impl Algorithm for CarvalhoRoucairol {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            clock: LamportClock::default(),
            state: State::Released,
            lacking: setup.group.members().iter().copied().filter(|p| *p < me).collect(),
            deferred: ProcessSet::new(),
            fence: 0,
            no_re_request: setup.makes(&NO_RE_REQUEST),
            timestamp_fence: setup.makes(&TIMESTAMP_FENCE),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Rng, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    fn bench(me: u32) -> Bench<CarvalhoRoucairol> {
        let setup = Setup::new(Group::of(3), Topology::complete(3));
        let process = CarvalhoRoucairol::new(ProcessId(me), &setup);
        Bench::new(process, ProcessId(me), &setup.group)
    }

    fn granted(fence: u64) -> Effect<CarvalhoRoucairol> {
        tell(Indication::Granted { fence: Some(Fence(0, fence)) })
    }

    #[test]
    fn who_has_all_permissions_enters_again_and_again_without_a_word() {
        let mut p0 = bench(0);
        for time in 1..5 {
            assert_eq!(p0.ask(Request::Acquire), [granted(time)]);
            assert_eq!(p0.ask(Request::Release), []);
        }
    }

    #[test]
    fn only_those_who_have_the_permission_are_asked() {
        let mut p1 = bench(1);
        assert_eq!(
            p1.ask(Request::Acquire),
            [send(0, Message::Request { timestamp: 1, clock: 1 })]
        );
        // The fence goes on where that of the other has stopped.
        assert_eq!(p1.hear(0, Message::Reply { clock: 4, fence: 7 }), [granted(8)]);
    }

    #[test]
    fn who_waits_gives_to_an_older_request_and_asks_to_have_it_back() {
        let mut p1 = bench(1);
        p1.hear(2, Message::Request { timestamp: 3, clock: 3 });
        p1.hear(2, Message::Reply { clock: 3, fence: 1 });
        p1.ask(Request::Acquire);
        let older = p1.hear(2, Message::Request { timestamp: 2, clock: 5 });
        let back = Message::Request { timestamp: 4, clock: 5 };
        assert_eq!(older, [send(2, Message::Reply { clock: 5, fence: 1 }), send(2, back)]);
    }

    #[test]
    fn who_is_inside_gives_when_it_leaves() {
        let mut p0 = bench(0);
        p0.ask(Request::Acquire);
        assert_eq!(p0.hear(2, Message::Request { timestamp: 1, clock: 1 }), []);
        assert_eq!(p0.ask(Request::Release), [send(2, Message::Reply { clock: 1, fence: 1 })]);
        assert!(p0.process.at_rest() && p0.process.lacking.contains(ProcessId(2)));
    }

    #[test]
    fn each_pair_has_exactly_one_permission_at_every_moment() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let mut benches = [bench(0), bench(1), bench(2)];
            let mut flight: Vec<(u32, u32, Message)> = Vec::new();
            for _ in 0..200 {
                // Mostly let something arrive, in any order.
                let (at, effects) = if !flight.is_empty() && rng.below(3) > 0 {
                    let (from, to, message) =
                        flight.swap_remove(rng.below(flight.len() as u32) as usize);
                    (to, benches[to as usize].hear(from, message))
                } else {
                    let at = rng.below(3);
                    let request = match benches[at as usize].process.state {
                        State::Released => Request::Acquire,
                        State::Held => Request::Release,
                        State::Wanted { .. } => continue,
                    };
                    (at, benches[at as usize].ask(request))
                };
                flight.extend(effects.into_iter().filter_map(|effect| match effect {
                    Effect::Send { to, message } => Some((at, to.0, message)),
                    _ => None,
                }));
                for (i, j) in [(0, 1), (0, 2), (1, 2)] {
                    let has = |a: u32, b: u32| {
                        usize::from(!benches[a as usize].process.lacking.contains(ProcessId(b)))
                    };
                    let moving = flight.iter().filter(|(from, to, message)| {
                        [(i, j), (j, i)].contains(&(*from, *to))
                            && matches!(message, Message::Reply { .. })
                    });
                    assert_eq!(has(i, j) + has(j, i) + moving.count(), 1, "seed {seed}");
                }
            }
        }
    }
}
