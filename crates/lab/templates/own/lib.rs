//! A counter on the first process of the group, which all increment by message. `problem` says what has
//! to hold; this file makes it hold.

pub mod problem;

use konklave_lab::algorithms::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Metric, Mistake, Setup,
};
use konklave_lab::process::topology::Shape;
use konklave_lab::process::{Context, Fixed, Inspect, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use problem::{Counting, Indication, Request};

/// One process. The value is the whole state: the checker compares, hashes and copies it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct MyAlgorithm {
    /// At the server: the counter.
    value: u32,
    // `Fixed`: set once by `new`, and no part of the state.
    #[serde(skip)]
    server: Fixed<ProcessId>,
    #[serde(skip)]
    read_then_write: Fixed<bool>,
}

/// The messages of the algorithm. The names of the variants appear in tables and diagrams.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Add one.
    Add,
    /// One was added: this is the value after it.
    Added(u32),
    /// Asks for the value (only with the mistake).
    Read,
    /// It is this (only with the mistake).
    Value(u32),
    /// Let it be this (only with the mistake).
    Write(u32),
}

impl Process for MyAlgorithm {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    /// A client of this process increments.
    fn on_request(&mut self, Request::Increment: Request, ctx: &mut Context<'_, Self>) {
        if ctx.me() == *self.server {
            self.value += 1;
            ctx.indicate(Indication::Counted(self.value));
        } else if *self.read_then_write {
            ctx.send(*self.server, Message::Read);
        } else {
            ctx.send(*self.server, Message::Add);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Add => {
                self.value += 1;
                ctx.send(from, Message::Added(self.value));
            }
            Message::Added(value) => ctx.indicate(Indication::Counted(value)),
            Message::Read => ctx.send(from, Message::Value(self.value)),
            // Another process may have read the same value: the later write undoes the earlier one.
            Message::Value(value) => {
                ctx.send(from, Message::Write(value + 1));
                ctx.indicate(Indication::Counted(value + 1));
            }
            Message::Write(value) => self.value = value,
        }
    }
}

const READ_THEN_WRITE: Mistake = Mistake {
    name: "read-then-write",
    what: "a process reads the value, adds one and writes it back: two may read the same value",
    breaks: "no lost increment",
    caught_by: "-n 2",
};

impl Inspect for MyAlgorithm {}

impl Algorithm for MyAlgorithm {
    type Problem = Counting;

    const SHEET: DataSheet = DataSheet {
        name: "my-algorithm",
        title: "MyAlgorithm",
        idea: "One process keeps the counter and adds for the others.",
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
                formula: "2 per increment, 0 for the server's own",
                when: "always",
                bound: two_per_increment,
            },
            Cost {
                metric: Metric::EntryDelay,
                formula: "2T",
                when: "delays have a limit",
                bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
            },
        ],
        mistakes: &[READ_THEN_WRITE],
        ..DataSheet::BLANK
    };

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            value: 0,
            server: Fixed(setup.group.id(0)),
            read_then_write: setup.makes(&READ_THEN_WRITE),
        }
    }
}

/// A question and an answer. `run` measures and compares.
fn two_per_increment(facts: &Facts<'_>) -> Option<Bound> {
    Some(Bound::Exactly(
        2.0 * facts.entries_but(facts.setup.group.id(0)),
    ))
}
