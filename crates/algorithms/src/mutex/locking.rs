//! The common parts of Maekawa, Sanders, voting and Cao–Singhal: sets of few processes, queues of requests, clocks
//! and outgoing messages.

mod members;
mod queue;
mod search;

use konklave_process::{Context, LamportClock, Process, ProcessId};
use smallvec::SmallVec;

pub(super) use self::members::{Few, Members};
pub(super) use self::queue::Queue;
pub(super) use self::search::{first_not, prefetch_search};
use super::{Fence, Indication};
use crate::{DataSheet, Setup, Switch};

/// Which messages move the logical clocks. Answers carry causality as requests do: if they do not move
/// the clock, a later request may get an earlier timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clocks {
    /// All of them.
    Full,
    /// Requests only, as the sources have it.
    Requests,
}

impl Clocks {
    /// How the data sheets offer the choice.
    pub(super) const SWITCH: Switch = Switch {
        name: "clock",
        values: &["full", "requests"],
        what: "which messages move the logical clocks: all, or requests only, as in the sources, \
               so that answers carry causality but no time",
    };

    /// The choice of `setup`.
    pub(super) fn of(setup: &Setup, sheet: &DataSheet) -> Self {
        let requests = setup.chosen(sheet, Self::SWITCH.name).is("requests");
        if requests { Self::Requests } else { Self::Full }
    }

    /// The clock in messages other than requests; 0 if they carry none.
    pub(super) fn told(self, clock: LamportClock) -> u32 {
        match self {
            Self::Full => clock.now(),
            Self::Requests => 0,
        }
    }
}

/// The messages of a step: to other processes they leave at once, to this process they wait for the end of the step.
pub(super) struct Outbox<'a, 'c, P: Process> {
    ctx: &'a mut Context<'c, P>,
    own: SmallVec<[P::Message; 4]>,
    /// The highest known fence.
    pub(super) entries: u32,
    /// The clock in messages other than requests.
    pub(super) clock: u32,
}

impl<'a, 'c, P: Process<Indication = Indication>> Outbox<'a, 'c, P> {
    pub(super) fn new(entries: u32, clock: u32, ctx: &'a mut Context<'c, P>) -> Self {
        Self { ctx, own: SmallVec::new(), entries, clock }
    }

    pub(super) fn me(&self) -> ProcessId {
        self.ctx.me()
    }

    pub(super) fn send(&mut self, to: ProcessId, message: P::Message) {
        if to == self.me() {
            self.own.push(message);
        } else {
            self.ctx.send(to, message);
        }
    }

    /// The next message to this process.
    pub(super) fn next_own(&mut self) -> Option<P::Message> {
        (!self.own.is_empty()).then(|| self.own.remove(0))
    }

    /// Reports an answer of a process that was not asked: the assumptions rule it out.
    pub(super) fn unasked(&mut self) {
        self.ctx.unexpected("an answer of a process that was not asked");
    }

    /// Grants the entry with the next fence.
    pub(super) fn enter(&mut self) {
        self.entries = self.entries.saturating_add(1);
        let fence = Fence(0, self.entries.into());
        self.ctx.indicate(Indication::Granted { fence: Some(fence) });
    }
}
