//! The values behind the numbers: locals, messages, environments, observations.

use std::hash::Hash;
use std::rc::Rc;
use std::time::Duration;

use konklave_process::{AnyData, AnyProcess, AnyTag, AnyTimer, ProcessId};
use rustc_hash::FxHashMap;

use crate::state::{AnyLedger, Content, Spent};

/// A process, with what the host keeps for it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Local {
    pub(crate) place: u32,
    pub(crate) up: bool,
    pub(crate) process: AnyProcess,
    /// The running timers, each with its remaining steps of time.
    pub(crate) timers: Vec<(AnyTimer, u32)>,
    pub(crate) saved: Option<AnyData>,
    /// News on their way to the process: about which peer, and whether it is up.
    pub(crate) news: Vec<(ProcessId, bool)>,
}

impl Local {
    /// Adds news of `peer`. In the synchronous model, older news of the same peer cancel out with them.
    pub(super) fn enqueue_news(&mut self, peer: ProcessId, up: bool, is_synchronous: bool) {
        let older = self.news.iter().position(|(p, _)| *p == peer);
        match older.filter(|_| is_synchronous) {
            Some(older) => _ = self.news.remove(older),
            None => {
                let end = self.news.partition_point(|(p, _)| *p <= peer);
                self.news.insert(end, (peer, up));
            }
        }
    }
}

/// A message in flight.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    pub(crate) channel: (u32, u32),
    pub(crate) content: Content,
    pub(crate) tag: AnyTag,
}

/// All of a state but its locals and its messages.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Environment {
    pub(crate) ledger: AnyLedger,
    pub(crate) spent: Spent,
    /// The channels that are cut, and those of them whose link broke.
    pub(crate) cut: u64,
    pub(crate) broken: u64,
}

/// An input whose number depends on the model.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum ModelInput {
    Timer(AnyTimer),
    Request(AnyData),
}

/// The part of a step or fault that the environment sees.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Observation {
    Step { place: u32, cause: Cause, effects: Vec<VisibleEffect>, view: View },
    Crash(u32),
    Lost { message: u32, by_fault: bool },
    Duplicated(u32),
    AppMessage { from: u32, to: u32, stamp: u64 },
    Cut(u32),
    Break(u32),
    Early,
    Pass { early: bool },
}

/// The input of a step, as far as clients and judges see it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    Receipt(u32),
    Request(AnyData),
    Restart,
    /// A timer or news of the detector: clients and judges see nothing of it.
    Inner,
}

/// An effect that is visible outside the process.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum VisibleEffect {
    Send(u32, AnyData),
    SendOutsideGroup(ProcessId),
    Indicate(AnyData),
    Unexpected(&'static str),
    /// A timer was set to a duration that is not a whole number of steps of time.
    OffClock(Duration),
}

/// The place of a step, the request of its client, and its visible effects.
pub(super) type VisibleStep = (u32, Option<AnyData>, Vec<VisibleEffect>);

/// The part of the process's state that the judge sees after the step.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum View {
    /// The number that `Monitor::view` returns.
    Number(u64),
    /// The whole process, by the number of its local.
    Whole(u32),
}

/// Gives equal values the same number.
pub(super) struct Interner<T> {
    numbers: FxHashMap<Rc<T>, u32>,
    pub(crate) values: Vec<Rc<T>>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { numbers: FxHashMap::default(), values: Vec::new() }
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// The number of `value`, and whether it is new.
    pub(super) fn intern(&mut self, value: T) -> (u32, bool) {
        if let Some(&number) = self.numbers.get(&value) {
            return (number, false);
        }
        let (number, value) = (self.values.len() as u32, Rc::new(value));
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        (number, true)
    }

    pub(super) fn get(&self, number: u32) -> &Rc<T> {
        &self.values[number as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        self.values.len() * (size_of::<T>() + 48)
    }
}
