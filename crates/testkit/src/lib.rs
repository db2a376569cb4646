//! Helpers for tests of algorithms: a single process whose steps return their effects ([`Bench`]),
//! or a small group, explored by the checker or run in the simulator ([`Case`]).

mod case;
mod failing;

pub use case::{Case, Found, Seen};
pub use konklave_check::Victim;
pub use konklave_process::Topology;

use std::time::Duration;

use konklave_process::{Context, Effect, Group, Host, Input, Inspect, Process, ProcessId};

/// A process under test, with its group and the next answers of `choose`.
#[derive(Clone, Debug)]
pub struct Bench<P: Process> {
    /// The process.
    pub process: P,
    me: ProcessId,
    group: Group,
    draws: Vec<u32>,
}

impl<P: Inspect> Bench<P> {
    /// `process` as member `me` of `group`.
    pub fn new(process: P, me: ProcessId, group: &Group) -> Self {
        Self { process, me, group: group.clone(), draws: Vec::new() }
    }

    /// Lets the next calls of `choose` give these answers; after them, 0.
    pub fn draw(&mut self, draws: &[u32]) -> &mut Self {
        self.draws = draws.iter().rev().copied().collect();
        self
    }

    /// Makes one step on `input`; returns its effects.
    pub fn step(&mut self, input: Input<P>) -> Vec<Effect<P>> {
        let mut notes = Notes { effects: Vec::new(), draws: &mut self.draws };
        self.process.handle(input, &mut Context::new(self.me, &self.group, &mut notes));
        notes.effects
    }

    /// The process starts.
    pub fn start(&mut self) -> Vec<Effect<P>> {
        self.step(Input::Start)
    }

    /// The client makes a request.
    pub fn ask(&mut self, request: P::Request) -> Vec<Effect<P>> {
        self.step(Input::Request(request))
    }

    /// A message arrives.
    pub fn hear(&mut self, from: u32, message: P::Message) -> Vec<Effect<P>> {
        self.step(Input::Message { from: ProcessId(from), message })
    }

    /// A timer runs out.
    pub fn fire(&mut self, timer: P::Timer) -> Vec<Effect<P>> {
        self.step(Input::Timer(timer))
    }

    /// The detector suspects a peer.
    pub fn suspect(&mut self, peer: u32) -> Vec<Effect<P>> {
        self.step(Input::Suspect(ProcessId(peer)))
    }
}

struct Notes<'a, P: Process> {
    effects: Vec<Effect<P>>,
    draws: &'a mut Vec<u32>,
}

impl<P: Process> Host<P> for Notes<'_, P> {
    fn perform(&mut self, effect: Effect<P>) {
        self.effects.push(effect);
    }
    fn choose(&mut self, bound: u32) -> u32 {
        let drawn = self.draws.pop().unwrap_or(0);
        assert!(drawn < bound, "the test draws {drawn}, but only numbers below {bound} exist");
        drawn
    }
}

/// The effect of sending.
pub fn send<P: Process>(to: u32, message: P::Message) -> Effect<P> {
    Effect::Send { to: ProcessId(to), message }
}

/// The effect of giving an indication to the client.
pub fn tell<P: Process>(indication: P::Indication) -> Effect<P> {
    Effect::Indicate(indication)
}

/// The effect of starting a timer.
pub fn set<P: Process>(timer: P::Timer, after: Duration) -> Effect<P> {
    Effect::SetTimer { timer, after }
}
