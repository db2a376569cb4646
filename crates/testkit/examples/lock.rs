//! A lock of one's own, with all that it takes: Ricart and Agrawala's, simulated and checked.
//! `cargo run -p konklave-testkit --example lock`

use konklave_algorithms::mutex::{Indication, Mutex, Request};
use konklave_algorithms::{Algorithm, DataSheet, Guarantee, Setup};
use konklave_process::topology::Shape;
use konklave_process::{
    Context, Inspect, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessSet,
};
use konklave_testkit::Case;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
struct Lock {
    clock: LamportClock,
    state: State,
    /// The processes that get our answer when we leave.
    deferred: ProcessSet,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
enum State {
    #[default]
    Released,
    Wanted {
        since: u32,
        awaiting: ProcessSet,
    },
    Held,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Message {
    Request { timestamp: u32 },
    Reply { clock: u32 },
}

impl Lock {
    fn reply(&self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        ctx.send(to, Message::Reply { clock: self.clock.now() });
    }

    fn enter_if_all_replied(&mut self, ctx: &mut Context<'_, Self>) {
        if matches!(&self.state, State::Wanted { awaiting, .. } if awaiting.is_empty()) {
            self.state = State::Held;
            ctx.indicate(Indication::Granted { fence: None });
        }
    }
}

impl Process for Lock {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                let since = self.clock.tick();
                self.state = State::Wanted { since, awaiting: ctx.others().collect() };
                ctx.send_to_others(Message::Request { timestamp: since });
                self.enter_if_all_replied(ctx);
            }
            Request::Release => {
                self.state = State::Released;
                for p in std::mem::take(&mut self.deferred).iter() {
                    self.reply(p, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request { timestamp } => {
                self.clock.witness(timestamp);
                let ours_first = match self.state {
                    State::Released => false,
                    State::Wanted { since, .. } => (since, ctx.me()) < (timestamp, from),
                    State::Held => true,
                };
                match ours_first {
                    true => drop(self.deferred.insert(from)),
                    false => self.reply(from, ctx),
                }
            }
            Message::Reply { clock } => {
                self.clock.witness(clock);
                if let State::Wanted { awaiting, .. } = &mut self.state {
                    awaiting.remove(from);
                }
                self.enter_if_all_replied(ctx);
            }
        }
    }
}

impl Inspect for Lock {}

impl Algorithm for Lock {
    type Problem = Mutex;
    const SHEET: DataSheet = DataSheet {
        name: "lock",
        topologies: &[Shape::Complete],
        guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree],
        ..DataSheet::BLANK
    };

    fn new(_: ProcessId, _: &Setup) -> Self {
        Self::default()
    }
}

/// One run, and all runs of a small group.
pub fn main() {
    let run = Case::<Lock>::complete(10).requests(&[10; 10]).simulate();
    println!("{} entries, {} messages", run.summary.entries, run.well().sent);
    let all = Case::<Lock>::complete(3).requests(&[2, 1, 1]).ordered().check();
    println!("{} states, {}", all.states, all.verdict);
}
