//! Mutual exclusion by a central coordinator.
//!
//! Everyone asks one process, the coordinator, which lets them in one after the other in the order
//! in which their requests arrive. The coordinator may be a client itself.

use std::collections::VecDeque;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, Group, NoRecord, NoTimer, Process, ProcessId, ProcessMap};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const UNNUMBERED: Mistake = Mistake {
    name: "unnumbered-release",
    what: "a release does not say which grant it ends: a duplicate frees another's lock",
    breaks: "mutual exclusion",
    caught_by: "-n 4 --requests 0,1,1,1 --duplicate 1",
};

const SHEET: DataSheet = DataSheet {
    name: "central",
    title: "Central coordinator",
    idea: "Everyone asks the coordinator, who grants one request after the other.",
    source: "folklore; lecture \"Gegenseitiger Ausschluss\", centralised solution",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "3 per entry, 0 for the coordinator's own",
            when: "always",
            bound: |f| Some(Bound::Exactly(3.0 * f.entries_but(f.setup.group.id(0)))),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the coordinator's count of grants"),
    mistakes: &[UNNUMBERED],
    switches: &[],
};

/// One process; the first of the group is the coordinator.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Central {
    #[serde(skip)]
    coordinator: Fixed<ProcessId>,
    #[serde(skip)]
    unnumbered: Fixed<bool>,
    phase: Phase,
    /// The number of our latest request.
    request: u32,
    /// At the coordinator: who may be inside, with which request.
    holder: Option<(ProcessId, u32)>,
    /// At the coordinator: who waits.
    queue: VecDeque<(ProcessId, u32)>,
    /// At the coordinator: how many grants there were.
    grants: u32,
    /// At the coordinator: the latest request of each client, to know a duplicate.
    latest: ProcessMap<u32>,
}

/// Where a client stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Phase {
    /// It wants nothing.
    Idle,
    /// It has asked.
    Wanting,
    /// It is inside.
    Held,
}

/// What is said between a client and the coordinator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Let me in, says a client for the `number`-th time.
    Request(u32),
    /// Go in, says the coordinator.
    Grant {
        /// The number of the request.
        request: u32,
        /// The number of the grant.
        fence: u32,
    },
    /// I left, says a client.
    Release(u32),
}

impl Central {
    /// Tells the coordinator, which may be ourselves: that costs no message.
    fn tell(&mut self, message: Message, ctx: &mut Context<'_, Self>) {
        if ctx.me() == *self.coordinator {
            self.coordinate(ctx.me(), message, ctx);
        } else {
            ctx.send(*self.coordinator, message);
        }
    }

    fn coordinate(&mut self, client: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(request) => {
                if request <= self.latest[client] {
                    return;
                }
                self.latest[client] = request;
                self.queue.push_back((client, request));
                if self.holder.is_none() {
                    self.grant_next(ctx);
                }
            }
            Message::Release(request) => {
                // A duplicate of an earlier release must not free the lock of the present holder.
                if self.holder == Some((client, request)) || *self.unnumbered {
                    self.grant_next(ctx);
                }
            }
            Message::Grant { .. } => ctx.unexpected("a grant to the coordinator"),
        }
    }

    fn grant_next(&mut self, ctx: &mut Context<'_, Self>) {
        self.holder = self.queue.pop_front();
        let Some((client, request)) = self.holder else { return };
        self.grants += 1;
        if client == ctx.me() {
            self.enter(self.grants, ctx);
        } else {
            ctx.send(client, Message::Grant { request, fence: self.grants });
        }
    }

    fn enter(&mut self, fence: u32, ctx: &mut Context<'_, Self>) {
        self.phase = Phase::Held;
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, fence.into())) });
    }
}

impl Process for Central {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                self.phase = Phase::Wanting;
                self.request += 1;
                self.tell(Message::Request(self.request), ctx);
            }
            Request::Release => {
                self.phase = Phase::Idle;
                self.tell(Message::Release(self.request), ctx);
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Grant { request, fence } => {
                if self.phase == Phase::Wanting && request == self.request {
                    self.enter(fence, ctx);
                }
            }
            Message::Request(_) | Message::Release(_) if ctx.me() == *self.coordinator => {
                self.coordinate(from, message, ctx);
            }
            Message::Request(_) | Message::Release(_) => {
                ctx.unexpected("a wish for the coordinator");
            }
        }
    }

    fn at_rest(&self) -> bool {
        self.phase == Phase::Idle && self.holder.is_none() && self.queue.is_empty()
    }
}

impl Algorithm for Central {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let coordinator = setup.group.id(0);
        let clients = if me == coordinator { setup.group.clone() } else { Group::of(1) };
        Self {
            coordinator: Fixed(coordinator),
            unnumbered: setup.makes(&UNNUMBERED),
            phase: Phase::Idle,
            request: 0,
            holder: None,
            queue: VecDeque::new(),
            grants: 0,
            latest: ProcessMap::new(&clients, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::Topology;
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    fn bench(me: u32) -> Bench<Central> {
        let setup = Setup::new(Group::of(3), Topology::complete(3));
        Bench::new(Central::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    fn granted(number: u64) -> Indication {
        Indication::Granted { fence: Some(Fence(0, number)) }
    }

    #[test]
    fn the_coordinator_grants_in_the_order_of_arrival() {
        let mut p0 = bench(0);
        assert_eq!(
            p0.hear(2, Message::Request(1)),
            [send(2, Message::Grant { request: 1, fence: 1 })]
        );
        assert_eq!(p0.hear(1, Message::Request(1)), []);
        assert_eq!(p0.ask(Request::Acquire), []);
        assert_eq!(
            p0.hear(2, Message::Release(1)),
            [send(1, Message::Grant { request: 1, fence: 2 })]
        );
        assert_eq!(p0.hear(1, Message::Release(1)), [tell(granted(3))]);
    }

    #[test]
    fn the_coordinator_pays_nothing() {
        let mut p0 = bench(0);
        assert_eq!(p0.ask(Request::Acquire), [tell(granted(1))]);
        assert_eq!(p0.ask(Request::Release), []);
        assert!(p0.process.at_rest());
    }

    #[test]
    fn a_duplicate_changes_nothing() {
        let mut p0 = bench(0);
        p0.hear(1, Message::Request(1));
        p0.hear(2, Message::Request(1));
        assert_eq!(p0.hear(1, Message::Request(1)), []);
        assert_eq!(p0.hear(1, Message::Release(1)).len(), 1);
        assert_eq!(p0.hear(1, Message::Release(1)), []);
    }

    #[test]
    fn a_grant_for_an_older_request_is_ignored() {
        let mut p1 = bench(1);
        assert_eq!(p1.ask(Request::Acquire), [send(0, Message::Request(1))]);
        assert_eq!(p1.hear(0, Message::Grant { request: 0, fence: 7 }), []);
        assert_eq!(p1.hear(0, Message::Grant { request: 1, fence: 8 }), [tell(granted(8))]);
    }
}
