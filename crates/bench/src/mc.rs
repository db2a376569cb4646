//! MC(n, k): the model of Ricart and Agrawala's algorithm on which all checkers were measured.
//!
//! A node is its clock, its phase, its timestamp, the *number* of replies, the deferred senders and
//! the requests left; messages are REQUEST(ts) and REPLY. Clients and judge store only
//! facts that the nodes store as well, so they add no states.

use konklave_check::{Model, Options, Outcome};
use konklave_process::{
    AnyApplication, AnyMonitor, AnyProcess, Application, Context, Fixed, Group, Inspect, Monitor,
    NoRecord, NoTimer, Process, ProcessId, Verdict, Violation,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(crate) struct Node {
    clock: u8,
    phase: Phase,
    timestamp: u8,
    replies: u8,
    deferred: u16,
    left: u8,
    #[serde(skip)]
    no_tie_break: Fixed<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Phase {
    Idle,
    Wanting,
    Held,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    Request(u8),
    Reply,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    Enter,
    Exit,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Entered;

impl Process for Node {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Ask;
    type Indication = Entered;
    type Record = NoRecord;

    fn on_request(&mut self, request: Ask, ctx: &mut Context<'_, Self>) {
        match request {
            Ask::Enter => {
                self.clock += 1;
                self.timestamp = self.clock;
                self.phase = Phase::Wanting;
                self.left -= 1;
                ctx.send_to_others(Message::Request(self.timestamp));
            }
            Ask::Exit => {
                self.phase = Phase::Idle;
                (self.timestamp, self.replies) = (0, 0);
                let deferred = std::mem::take(&mut self.deferred);
                for p in ctx.others().filter(|p| deferred >> p.0 & 1 == 1) {
                    ctx.send(p, Message::Reply);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(timestamp) => {
                self.clock = self.clock.max(timestamp);
                let ours = (self.timestamp, if *self.no_tie_break { from } else { ctx.me() });
                let first = match self.phase {
                    Phase::Idle => false,
                    Phase::Wanting => ours < (timestamp, from),
                    Phase::Held => true,
                };
                if first {
                    self.deferred |= 1 << from.0;
                } else {
                    ctx.send(from, Message::Reply);
                }
            }
            Message::Reply => {
                self.replies += 1;
                if usize::from(self.replies) == ctx.group_size() - 1 {
                    self.phase = Phase::Held;
                    ctx.indicate(Entered);
                }
            }
        }
    }
}

impl Inspect for Node {}

/// The clients, by node: (phase, requests left).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Clients(Vec<(Phase, u8)>);

impl Application<Node> for Clients {
    fn next(&self, at: ProcessId) -> Option<Ask> {
        match self.0[at.0 as usize] {
            (Phase::Idle, 1..) => Some(Ask::Enter),
            (Phase::Held, _) => Some(Ask::Exit),
            (Phase::Idle, 0) | (Phase::Wanting, _) => None,
        }
    }

    fn on_request(&mut self, at: ProcessId, request: &Ask) {
        let (phase, left) = &mut self.0[at.0 as usize];
        match request {
            Ask::Enter => (*phase, *left) = (Phase::Wanting, *left - 1),
            Ask::Exit => *phase = Phase::Idle,
        }
    }

    fn on_indication(&mut self, at: ProcessId, Entered: &Entered) {
        self.0[at.0 as usize].0 = Phase::Held;
    }

    fn holds(&self, at: ProcessId) -> bool {
        self.0[at.0 as usize].0 == Phase::Held
    }

    fn waiting(&self) -> Vec<ProcessId> {
        let waiting = (0u32..).zip(&self.0).filter(|(_, (phase, _))| *phase == Phase::Wanting);
        waiting.map(|(p, _)| ProcessId(p)).collect()
    }
}

/// Judges that at most one node is inside.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Exclusion(u16);

impl Monitor<Node> for Exclusion {
    type Tag = ();

    fn on_request(&mut self, at: ProcessId, request: &Ask) -> Verdict {
        if *request == Ask::Exit {
            self.0 &= !(1 << at.0);
        }
        Ok(())
    }

    fn on_indication(&mut self, at: ProcessId, Entered: &Entered) -> Verdict {
        self.0 |= 1 << at.0;
        if self.0.count_ones() > 1 {
            return Err(Violation::new("mutual exclusion", "two are inside"));
        }
        Ok(())
    }

    fn view(&self, _process: &Node) -> Option<u64> {
        Some(0)
    }

    fn remembers_messages(&self) -> bool {
        false
    }
}

/// MC(n, k), with or without the mistake that ids do not break ties.
pub(crate) fn model(n: usize, k: u8, no_tie_break: bool, options: Options) -> Model {
    let node = Node {
        clock: 0,
        phase: Phase::Idle,
        timestamp: 0,
        replies: 0,
        deferred: 0,
        left: k,
        no_tie_break: Fixed(no_tie_break),
    };
    Model {
        group: Group::of(n),
        processes: vec![AnyProcess::new(node); n],
        application: AnyApplication::new::<Node>(Clients(vec![(Phase::Idle, k); n])),
        monitor: AnyMonitor::new::<Node>(Exclusion(0)),
        options,
    }
}

/// Exhausts MC(n, k). Returns states, transitions, and the peak of memory in bytes.
pub(crate) fn exhaust(n: usize, k: u8, options: Options) -> Result<(u64, u64, u64), String> {
    let report = model(n, k, false, options).explore(|_| true);
    match report.outcome {
        Outcome::Exhausted => {}
        Outcome::Violated(witness) => return Err(format!("{:?}", witness.violation)),
        Outcome::Bounded(bound) => return Err(format!("gave up: {bound:?}")),
    }
    Ok((report.states, report.transitions, report.peak_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_nodes_have_the_states_that_all_checkers_count() {
        for (fifo, counts) in [(false, (2822, 9005)), (true, (2049, 5488))] {
            let (states, transitions, _) =
                exhaust(3, 1, Options { fifo, ..Options::default() }).expect("all is well");
            assert_eq!((states, transitions), counts);
        }
    }

    #[test]
    fn reduced_there_are_a_fifth_of_the_states_and_the_mistake_is_still_found() {
        for (fifo, most) in [(false, 600), (true, 600)] {
            let reduce = Options { fifo, reduce: true, ..Options::default() };
            let (states, ..) = exhaust(3, 1, reduce.clone()).expect("all is well");
            assert!(states < most, "{states}");
            let found = model(3, 1, true, reduce).explore(|_| true);
            assert!(matches!(found.outcome, Outcome::Violated(_)));
        }
    }

    #[test]
    fn without_the_tie_break_two_get_in() {
        let found = model(2, 1, true, Options::default()).explore(|_| true);
        assert!(matches!(found.outcome, Outcome::Violated(witness) if witness.len() == 6));
    }
}
