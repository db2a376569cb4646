//! An election on a one-way ring: every process sends its id round, and only the highest id comes home.

use konklave_lab::algorithms::election::{Election, Indication, Request};
use konklave_lab::algorithms::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup, Winner,
};
use konklave_lab::process::topology::Shape;
use konklave_lab::process::{Context, Fixed, Inspect, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

/// One process. The value is the whole state: the checker compares, hashes and copies it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct MyAlgorithm {
    /// Whether this process has passed on an id: its own or a higher one.
    participant: bool,
    // `Fixed`: set once by `new`, and no part of the state.
    #[serde(skip)]
    successor: Fixed<ProcessId>,
    #[serde(skip)]
    passes_all: Fixed<bool>,
}

/// The messages of the algorithm. The names of the variants appear in tables and diagrams.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// This process should lead.
    Propose(ProcessId),
    /// This process leads.
    Elected(ProcessId),
}

impl MyAlgorithm {
    fn propose(&mut self, id: ProcessId, ctx: &mut Context<'_, Self>) {
        self.participant = true;
        ctx.send(*self.successor, Message::Propose(id));
    }
}

impl Process for MyAlgorithm {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    /// A client of this process starts an election.
    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if !self.participant {
            self.propose(ctx.me(), ctx);
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        match message {
            Message::Propose(id) if id == me => {
                // Our own id came home: no process on the ring has a higher one.
                self.participant = false;
                ctx.indicate(Indication::Leading { epoch: 0 });
                ctx.send(*self.successor, Message::Elected(me));
            }
            Message::Propose(id) if id > me || *self.passes_all => self.propose(id, ctx),
            Message::Propose(_) if !self.participant => self.propose(me, ctx),
            Message::Propose(_) => {}
            Message::Elected(id) if id == me => {}
            Message::Elected(id) => {
                self.participant = false;
                ctx.indicate(Indication::Following {
                    leader: Some(id),
                    epoch: 0,
                });
                ctx.send(*self.successor, message);
            }
        }
    }
}

impl Inspect for MyAlgorithm {
    /// Whether no work is left over; the checker asks at the end of every run.
    fn at_rest(&self) -> bool {
        !self.participant
    }
}

const PASSES_ALL: Mistake = Mistake {
    name: "passes-all",
    what: "a process passes lower ids on, too: the first id that comes home wins",
    breaks: "right winner",
    caught_by: "-n 2",
};

impl Algorithm for MyAlgorithm {
    type Problem = Election;

    const SHEET: DataSheet = DataSheet {
        name: "my-algorithm",
        title: "MyAlgorithm",
        idea: "Ids go round a ring; only the highest comes home.",
        source: "after E. Chang, R. Roberts, CACM 22(5), 1979",
        assumes: &[
            Assumption::Reliable,
            Assumption::NoDuplicates,
            Assumption::Fifo,
            Assumption::NoCrash,
            Assumption::UniqueIds,
        ],
        topologies: &[Shape::DirectedRing],
        winner: Some(Winner::MaxAll),
        costs: &[
            Cost {
                metric: Metric::Messages,
                formula: "d + 2n, d = hops from the initiator to the highest id",
                when: "one process starts",
                bound: one_starts,
            },
            Cost {
                metric: Metric::Messages,
                formula: "n(n + 1)/2 + n",
                when: "always",
                bound: |f| Some(Bound::AtMost(f.n() * (f.n() + 1.0) / 2.0 + f.n())),
            },
        ],
        guarantees: &[
            Guarantee::UniqueLeader,
            Guarantee::Agreement,
            Guarantee::Termination,
        ],
        mistakes: &[PASSES_ALL],
        ..DataSheet::BLANK
    };

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            participant: false,
            successor: Fixed(setup.successor(me)),
            passes_all: setup.makes(&PASSES_ALL),
        }
    }
}

/// The initiator's id goes to the process with the highest id, d hops. That process sends its own id
/// round the ring, and then the result: 2n hops. `run` measures and compares.
fn one_starts(facts: &Facts<'_>) -> Option<Bound> {
    let &[initiator] = facts.initiators else {
        return None;
    };
    let (setup, n) = (facts.setup, facts.setup.group.len());
    let hops = n + setup.place(setup.group.highest()) - setup.place(initiator);
    Some(Bound::Exactly((hops % n) as f64 + 2.0 * n as f64))
}
