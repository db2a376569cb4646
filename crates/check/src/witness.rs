//! A run that shows something, step by step.

use konklave_process::{AnyProcess, Effect, Input, ProcessId, Violation};

/// A run that breaks a property.
#[derive(Clone, Debug)]
pub struct Witness {
    /// The property, and how it broke.
    pub violation: Violation,
    /// What happened, from the start.
    pub moments: Vec<Moment>,
    /// How many of the moments are the members coming up.
    pub starts: usize,
    /// For a run that never ends: where the part begins that repeats for ever.
    pub loops_from: Option<usize>,
}

impl Witness {
    /// How many steps it takes, not counting that everyone comes up.
    pub fn len(&self) -> usize {
        self.moments.len() - self.starts
    }

    /// Whether the violation is there from the start.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Moment {
    /// A process made a step.
    Step {
        /// Which.
        at: ProcessId,
        /// On what.
        input: Input<AnyProcess>,
        /// The number of the message, where it was one.
        message: u64,
        /// What it drew.
        draws: Vec<u32>,
        /// What it did, each message with its number.
        effects: Vec<(Effect<AnyProcess>, u64)>,
        /// Its state after the step.
        process: Box<AnyProcess>,
    },
    /// A message was lost, in flight or at a process that is down.
    Lost(u64),
    /// A message was doubled.
    Duplicated(u64),
    /// Something happened to the world; the number is that of the message, where it was one.
    World(WorldEvent, u64),
}

/// Something that happens to the world rather than in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorldEvent {
    /// A process stopped.
    Crash(ProcessId),
    /// A process came up again.
    Restart(ProcessId),
    /// A channel was cut, in this direction.
    Cut(ProcessId, ProcessId),
    /// A link broke, both ways.
    Break(ProcessId, ProcessId),
    /// The application sent a message past the algorithm.
    AppMessage(ProcessId, ProcessId),
    /// A step of time passed.
    Pass,
}

/// Writes a run down while it is done again.
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

    /// Returns the number of the message that it is, if it is one.
    pub(crate) fn happened(&mut self, happened: WorldEvent) -> u64 {
        let id = if let WorldEvent::AppMessage(..) = happened { self.number() } else { 0 };
        self.moments.push(Moment::World(happened, id));
        id
    }

    fn number(&mut self) -> u64 {
        self.messages += 1;
        self.messages
    }

    /// Returns the numbers of the messages among `effects`, 0 for the rest.
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
