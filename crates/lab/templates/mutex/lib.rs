//! Mutual exclusion by a coordinator: the first process of the group keeps a queue and grants one request
//! after the other.

use std::collections::VecDeque;

use konklave_lab::algorithms::mutex::{Fence, Indication, Mutex, Request};
use konklave_lab::algorithms::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
};
use konklave_lab::process::topology::Shape;
use konklave_lab::process::{Context, Fixed, Inspect, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

/// One process. The value is the whole state: the checker compares, hashes and copies it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct MyAlgorithm {
    /// At the coordinator: the process inside, then those that wait.
    queue: VecDeque<ProcessId>,
    /// At the coordinator: the number of grants so far.
    grants: u64,
    // `Fixed`: set once by `new`, and no part of the state.
    #[serde(skip)]
    coordinator: Fixed<ProcessId>,
    #[serde(skip)]
    grants_at_once: Fixed<bool>,
}

/// The messages of the algorithm. The names of the variants appear in tables and diagrams.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A client asks the coordinator.
    Request,
    /// The coordinator lets a client in: this is its so many-th grant.
    Grant(u64),
    /// A client has left.
    Release,
}

impl MyAlgorithm {
    /// Tells the coordinator; if that is this process, no message is needed.
    fn tell_coordinator(&mut self, message: Message, ctx: &mut Context<'_, Self>) {
        match ctx.me() == *self.coordinator {
            true => self.coordinate(ctx.me(), message, ctx),
            false => ctx.send(*self.coordinator, message),
        }
    }

    fn coordinate(&mut self, client: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request => {
                self.queue.push_back(client);
                if self.queue.len() == 1 || *self.grants_at_once {
                    self.grant(client, ctx);
                }
            }
            Message::Release => {
                self.queue.pop_front();
                if let Some(&next) = self.queue.front() {
                    self.grant(next, ctx);
                }
            }
            Message::Grant(_) => ctx.unexpected("a grant for the coordinator"),
        }
    }

    fn grant(&mut self, client: ProcessId, ctx: &mut Context<'_, Self>) {
        self.grants += 1;
        match client == ctx.me() {
            true => ctx.indicate(granted(self.grants)),
            false => ctx.send(client, Message::Grant(self.grants)),
        }
    }
}

/// Fence numbers grow from grant to grant: a resource can refuse the holder of an earlier one.
fn granted(number: u64) -> Indication {
    Indication::Granted {
        fence: Some(Fence(0, number)),
    }
}

impl Process for MyAlgorithm {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    /// A client of this process wants to enter, or leaves.
    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => self.tell_coordinator(Message::Request, ctx),
            Request::Release => self.tell_coordinator(Message::Release, ctx),
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Grant(number) => ctx.indicate(granted(number)),
            Message::Request | Message::Release => self.coordinate(from, message, ctx),
        }
    }
}

impl Inspect for MyAlgorithm {
    /// Whether no work is left over; the checker asks at the end of every run.
    fn at_rest(&self) -> bool {
        self.queue.is_empty()
    }
}

const GRANTS_AT_ONCE: Mistake = Mistake {
    name: "grants-at-once",
    what: "the coordinator grants a request although another process is inside",
    breaks: "mutual exclusion",
    caught_by: "-n 2",
};

impl Algorithm for MyAlgorithm {
    type Problem = Mutex;

    const SHEET: DataSheet = DataSheet {
        name: "my-algorithm",
        title: "MyAlgorithm",
        idea: "A coordinator keeps a queue and grants one request after the other.",
        source: "folklore",
        assumes: &[
            Assumption::Reliable,
            Assumption::NoDuplicates,
            Assumption::NoCrash,
            Assumption::KnownMembership,
        ],
        topologies: &[Shape::Complete],
        costs: &[
            Cost {
                metric: Metric::Messages,
                formula: "3 per entry, 0 for the coordinator's own",
                when: "always",
                bound: three_per_entry,
            },
            Cost {
                metric: Metric::EntryDelay,
                formula: "2T",
                when: "delays have a limit",
                bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
            },
        ],
        guarantees: &[
            Guarantee::MutualExclusion,
            Guarantee::DeadlockFree,
            Guarantee::StarvationFree,
        ],
        fence: Some("the coordinator's count of grants"),
        mistakes: &[GRANTS_AT_ONCE],
        ..DataSheet::BLANK
    };

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            queue: VecDeque::new(),
            grants: 0,
            coordinator: Fixed(setup.group.id(0)),
            grants_at_once: setup.makes(&GRANTS_AT_ONCE),
        }
    }
}

/// A request, a grant, a release. `run` measures and compares.
fn three_per_entry(facts: &Facts<'_>) -> Option<Bound> {
    Some(Bound::Exactly(
        3.0 * facts.entries_but(facts.setup.group.id(0)),
    ))
}
