//! An election of one's own, with all that it takes: Chang and Roberts's on a ring, simulated and checked.
//! `cargo run -p konklave-testkit --example election`

use konklave_algorithms::election::{Election, Indication, Request};
use konklave_algorithms::{Algorithm, DataSheet, Guarantee, Setup, Winner};
use konklave_process::topology::Shape;
use konklave_process::{Context, Inspect, NoRecord, NoTimer, Process, ProcessId};
use konklave_testkit::Case;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Ring {
    successor: ProcessId,
    /// Whether we sent a number round: our own or a higher one.
    participant: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Message {
    Propose(ProcessId),
    Elected(ProcessId),
}

impl Ring {
    fn propose(&mut self, id: ProcessId, ctx: &mut Context<'_, Self>) {
        self.participant = true;
        ctx.send(self.successor, Message::Propose(id));
    }
}

impl Process for Ring {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if !self.participant {
            self.propose(ctx.me(), ctx);
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        match message {
            Message::Propose(id) if id > me => self.propose(id, ctx),
            Message::Propose(id) if id < me && !self.participant => self.propose(me, ctx),
            Message::Propose(id) if id < me => {}
            // Our own number came home: nobody on the ring has a higher one.
            Message::Propose(_) => {
                self.participant = false;
                ctx.indicate(Indication::Leading { epoch: 0 });
                ctx.send(self.successor, Message::Elected(me));
            }
            Message::Elected(id) if id == me => {}
            Message::Elected(id) => {
                self.participant = false;
                ctx.indicate(Indication::Following { leader: Some(id), epoch: 0 });
                ctx.send(self.successor, message);
            }
        }
    }
}

impl Inspect for Ring {}

impl Algorithm for Ring {
    type Problem = Election;
    const SHEET: DataSheet = DataSheet {
        name: "ring",
        topologies: &[Shape::DirectedRing],
        winner: Some(Winner::MaxAll),
        guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
        ..DataSheet::BLANK
    };

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self { successor: setup.successor(me), participant: false }
    }
}

/// One run, and all runs of a small group.
pub fn main() {
    let run = Case::<Ring>::directed_ring(1000).simulate();
    println!("{} messages, leader {:?}", run.well().sent, run.summary.leader);
    let all = Case::<Ring>::directed_ring(4).check();
    println!("{} states, {}", all.states, all.verdict);
}
