//! Judges of a run.

use std::fmt::Debug;
use std::hash::Hash;

use crate::{Process, ProcessId, ProcessSet};

/// Judges a run by what crosses the line between application and algorithm.
///
/// One monitor serves every algorithm of a problem, in every world. It is part of the state that
/// the checker explores, so it remembers no more than its property needs.
pub trait Monitor<P: Process>: Clone + Eq + Hash + Debug {
    /// What it sends along with each message, unseen by the algorithm.
    type Tag: Clone + Eq + Ord + Hash + Debug + Default;

    /// The application at `at` asks.
    fn on_request(&mut self, _at: ProcessId, _request: &P::Request) -> Verdict {
        Ok(())
    }

    /// The application at `at` is told.
    fn on_indication(&mut self, _at: ProcessId, _indication: &P::Indication) -> Verdict {
        Ok(())
    }

    /// A message leaves; none stands for a message of the application.
    fn on_send(&mut self, _from: ProcessId, _message: Option<&P::Message>) -> Self::Tag {
        Self::Tag::default()
    }

    /// A message arrives and is about to be handled.
    fn on_receive(
        &mut self,
        _at: ProcessId,
        _message: Option<&P::Message>,
        _tag: &Self::Tag,
    ) -> Verdict {
        Ok(())
    }

    /// A message got lost.
    fn on_lost(&mut self, _message: &P::Message) {}

    /// A message in flight was doubled.
    fn on_duplicated(&mut self, _message: &P::Message) {}

    /// A process has stopped.
    fn on_crash(&mut self, _at: ProcessId) {}

    /// A process comes up again.
    fn on_restart(&mut self, _at: ProcessId) {}

    /// The link between two processes breaks, both ways. The same may break more than once.
    fn on_break(&mut self, _one: ProcessId, _other: ProcessId) {}

    /// A link that broke works again; if it broke more than once, it is one break less.
    fn on_mend(&mut self, _one: ProcessId, _other: ProcessId) {}

    /// A step is over; `process` is the state after it.
    fn after_step(&mut self, _at: ProcessId, _process: &P) -> Verdict {
        Ok(())
    }

    /// Whether [`after_step`](Self::after_step) must see every step. Otherwise it is enough that it
    /// sees every process once before the end: in large groups that spares a look at each step.
    fn judges_every_step(&self) -> bool {
        true
    }

    /// All that `after_step` looks at in a process, as a number; none stands for the whole process.
    /// The checker judges one process of each number.
    fn view(&self, _process: &P) -> Option<u64> {
        None
    }

    /// Whether what it makes of a message, or of a process after a step, depends on what came before.
    /// Only judges of whom that is not so may see commuting steps in one order in place of all.
    fn remembers_messages(&self) -> bool {
        true
    }

    /// Something will happen at `at` soon: a chance to prefetch what is kept for it, in large groups.
    /// `told` says whether clients are told things at this time.
    #[inline]
    fn prefetch(&self, _at: ProcessId, _told: bool) {}

    /// Nothing more can happen.
    fn at_end(&self, _end: &End) -> Verdict {
        Ok(())
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// Whether nothing more could happen; otherwise the run was cut off.
    pub quiet: bool,
    /// Who is up.
    pub alive: ProcessSet,
    /// Whether a fault the algorithm does not assume struck: loss, duplication, crash.
    pub faulty: bool,
}

/// What a monitor says: all is well, or not.
pub type Verdict = Result<(), Violation>;

/// A property that does not hold.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Violation {
    /// The name of the property.
    pub property: &'static str,
    /// What happened, in words.
    pub detail: String,
}

impl Violation {
    /// A violation of `property`.
    pub fn new(property: &'static str, detail: impl Into<String>) -> Self {
        Self { property, detail: detail.into() }
    }

    /// A process sends to an id that no member has.
    pub fn stranger(from: ProcessId, to: ProcessId) -> Self {
        Self::new("usage", format!("{from} sent to {to}, who is no member"))
    }

    /// A process receives an input that its rules exclude.
    pub fn unexpected(at: ProcessId, what: &str) -> Self {
        Self::new("expected inputs", format!("{at} met {what}"))
    }

    /// Nothing more can happen, but something is left over at `id`.
    pub fn unquiet(id: ProcessId) -> Self {
        Self::new("quiescence", format!("nothing more can happen, but {id} is not at rest"))
    }
}
