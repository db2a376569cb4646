//! A witness: a run that shows a violation, step by step.

use konklave_process::{AnyProcess, Effect, Input, ProcessId, Violation};

/// A run that violates a property, or a run with the most or the fewest messages.
#[derive(Clone, Debug)]
pub struct Witness {
    /// The property, and how the run violates it.
    pub violation: Violation,
    /// All steps and events, from the start.
    pub moments: Vec<Moment>,
    /// How many of the first moments are the members starting.
    pub starts: usize,
    /// For a run that never ends: the index of the moment from which it repeats forever.
    pub loops_from: Option<usize>,
}

impl Witness {
    /// How many moments there are after all members have started.
    pub fn len(&self) -> usize {
        self.moments.len() - self.starts
    }

    /// Whether the violation is there from the start.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One step or event of a run.
#[derive(Clone, Debug)]
pub enum Moment {
    /// A process made a step.
    Step {
        /// The process.
        at: ProcessId,
        /// The input that it handled.
        input: Input<AnyProcess>,
        /// The number of the message, if the input was one.
        message: u64,
        /// The answers of `choose`.
        draws: Vec<u32>,
        /// The effects, each message with its number.
        effects: Vec<(Effect<AnyProcess>, u64)>,
        /// Its state after the step.
        process: Box<AnyProcess>,
    },
    /// A message was lost, in flight or at a process that is down.
    Lost(u64),
    /// A message was duplicated.
    Duplicated(u64),
    /// An event outside all handlers, with the number of the message if it sent one.
    World(WorldEvent, u64),
}

/// An event outside all handlers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorldEvent {
    /// A process crashed.
    Crash(ProcessId),
    /// A process restarted.
    Restart(ProcessId),
    /// A channel was cut, from the first process to the second.
    Cut(ProcessId, ProcessId),
    /// A link broke, in both directions.
    Break(ProcessId, ProcessId),
    /// The application sent a message past the algorithm.
    AppMessage(ProcessId, ProcessId),
    /// A step of time passed.
    Pass,
}

/// Records a run while replay makes its steps.
#[derive(Default, Debug)]
pub(crate) struct WitnessRecorder {
    pub(crate) moments: Vec<Moment>,
    messages: u64,
}

impl WitnessRecorder {
    pub(crate) fn lost(&mut self, id: u64) {
        self.moments.push(Moment::Lost(id));
    }

    pub(crate) fn duplicated(&mut self, id: u64) {
        self.moments.push(Moment::Duplicated(id));
    }

    /// Records an event; returns the number of the message if it sent one, else 0.
    pub(crate) fn happened(&mut self, happened: WorldEvent) -> u64 {
        let id = if let WorldEvent::AppMessage(..) = happened { self.number() } else { 0 };
        self.moments.push(Moment::World(happened, id));
        id
    }

    fn number(&mut self) -> u64 {
        self.messages += 1;
        self.messages
    }

    /// Records a step; returns a number for each effect: that of the message, or 0.
    pub(crate) fn step(
        &mut self,
        at: ProcessId,
        input: Input<AnyProcess>,
        message: u64,
        draws: Vec<u32>,
        effects: &[Effect<AnyProcess>],
        process: &AnyProcess,
    ) -> Vec<u64> {
        let ids: Vec<u64> = effects
            .iter()
            .map(|e| if matches!(e, Effect::Send { .. }) { self.number() } else { 0 })
            .collect();
        let effects = effects.iter().cloned().zip(ids.iter().copied()).collect();
        let process = Box::new(process.clone());
        self.moments.push(Moment::Step { at, input, message, draws, effects, process });
        ids
    }
}
