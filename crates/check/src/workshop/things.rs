//! What has a number: states of processes, messages, what surrounds them, what shows of a step.

use std::hash::Hash;
use std::rc::Rc;
use std::time::Duration;

use konklave_process::{Process, ProcessId};
use rustc_hash::FxHashMap;

use crate::state::{Content, Spent};

/// A process and what the host keeps for it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Local<P: Process> {
    pub(crate) place: u32,
    pub(crate) up: bool,
    pub(crate) process: P,
    /// Each with how many steps of time are left.
    pub(crate) timers: Vec<(P::Timer, u32)>,
    pub(crate) saved: Option<P::Record>,
    /// News of the detector on their way to it.
    pub(crate) news: Vec<(ProcessId, bool)>,
}

/// A message on its way.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Letter<P: Process, T> {
    pub(crate) channel: (u32, u32),
    pub(crate) content: Content<P>,
    pub(crate) tag: T,
}

/// The rest of the world.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ambient<A, M> {
    pub(crate) application: A,
    pub(crate) monitor: M,
    pub(crate) spent: Spent,
    pub(crate) cut: u64,
    pub(crate) broken: u64,
}

/// An input of the model's own.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Own<P: Process> {
    Timer(P::Timer),
    Request(P::Request),
}

/// What the ambient notices of a step or a fault.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Sign<P: Process> {
    Step { place: u32, cause: Cause<P>, shown: Vec<Shown<P>>, view: View },
    Crash(u32),
    Lost { message: u32, by_fault: bool },
    Doubled(u32),
    Tell { from: u32, to: u32, stamp: u64 },
    Cut(u32),
    Break(u32),
    Early,
    Pass { early: bool },
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Cause<P: Process> {
    Receipt(u32),
    Request(P::Request),
    Restart,
    Inner,
}

/// An effect that shows outside the process.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Shown<P: Process> {
    Send(u32, P::Message),
    Astray(ProcessId),
    Indicate(P::Indication),
    Unexpected(&'static str),
    /// A timer was set to what is no whole number of steps of time.
    Untimely(Duration),
}

/// Where something shows, what a client asked, and what a process said.
pub(super) type Show<P> = (u32, Option<<P as Process>::Request>, Vec<Shown<P>>);

/// What the judge sees of the process after the step.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum View {
    Number(u64),
    Whole(u32),
}

/// Numbers things, equal ones alike.
pub(super) struct Numbered<T> {
    numbers: FxHashMap<Rc<T>, u32>,
    pub(crate) things: Vec<Rc<T>>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { numbers: FxHashMap::default(), things: Vec::new() }
    }
}

impl<T: Eq + Hash> Numbered<T> {
    /// The number of `thing`, and whether it is new.
    pub(super) fn number(&mut self, thing: T) -> (u32, bool) {
        if let Some(&number) = self.numbers.get(&thing) {
            return (number, false);
        }
        let (number, thing) = (self.things.len() as u32, Rc::new(thing));
        self.things.push(thing.clone());
        self.numbers.insert(thing, number);
        (number, true)
    }

    pub(super) fn get(&self, number: u32) -> &Rc<T> {
        &self.things[number as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        self.things.len() * (size_of::<T>() + 48)
    }
}
