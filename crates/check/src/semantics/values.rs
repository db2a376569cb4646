//! What has a number: states of processes, messages, what surrounds them, what shows of a step.

use std::hash::Hash;
use std::rc::Rc;
use std::time::Duration;

use konklave_process::{AnyData, AnyProcess, AnyTag, AnyTimer, ProcessId};
use rustc_hash::FxHashMap;

use crate::state::{AnyLedger, Content, Spent};

/// A process and what the host keeps for it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Local {
    pub(crate) place: u32,
    pub(crate) up: bool,
    pub(crate) process: AnyProcess,
    /// Each with how many steps of time are left.
    pub(crate) timers: Vec<(AnyTimer, u32)>,
    pub(crate) saved: Option<AnyData>,
    /// News of the detector on their way to it.
    pub(crate) news: Vec<(ProcessId, bool)>,
}

/// A message on its way.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    pub(crate) channel: (u32, u32),
    pub(crate) content: Content,
    pub(crate) tag: AnyTag,
}

/// The rest of the world.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Environment {
    pub(crate) ledger: AnyLedger,
    pub(crate) spent: Spent,
    pub(crate) cut: u64,
    pub(crate) broken: u64,
}

/// An input of the model's own.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum ModelInput {
    Timer(AnyTimer),
    Request(AnyData),
}

/// What the environment notices of a step or a fault.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Observation {
    Step { place: u32, cause: Cause, shown: Vec<VisibleEffect>, view: View },
    Crash(u32),
    Lost { message: u32, by_fault: bool },
    Duplicated(u32),
    AppMessage { from: u32, to: u32, stamp: u64 },
    Cut(u32),
    Break(u32),
    Early,
    Pass { early: bool },
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    Receipt(u32),
    Request(AnyData),
    Restart,
    Inner,
}

/// An effect that shows outside the process.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum VisibleEffect {
    Send(u32, AnyData),
    SendOutsideGroup(ProcessId),
    Indicate(AnyData),
    Unexpected(&'static str),
    /// A timer was set to what is no whole number of steps of time.
    OffClock(Duration),
}

/// Where something shows, what a client asked, and what a process said.
pub(super) type VisibleStep = (u32, Option<AnyData>, Vec<VisibleEffect>);

/// What the judge sees of the process after the step.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum View {
    Number(u64),
    Whole(u32),
}

/// Numbers things, equal ones alike.
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
    /// The number of `thing`, and whether it is new.
    pub(super) fn number(&mut self, thing: T) -> (u32, bool) {
        if let Some(&number) = self.numbers.get(&thing) {
            return (number, false);
        }
        let (number, thing) = (self.values.len() as u32, Rc::new(thing));
        self.values.push(thing.clone());
        self.numbers.insert(thing, number);
        (number, true)
    }

    pub(super) fn get(&self, number: u32) -> &Rc<T> {
        &self.values[number as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        self.values.len() * (size_of::<T>() + 48)
    }
}
