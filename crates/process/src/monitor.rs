//! Judges of a run.

use std::fmt::Debug;
use std::hash::Hash;

use crate::{Process, ProcessId, ProcessSet};

/// Judges a run by the requests and indications between clients and algorithm.
///
/// One monitor serves every algorithm of a problem, in every world. It is part of the state that the checker
/// explores, so it remembers no more than its property needs.
pub trait Monitor<P: Process>: Clone + Eq + Hash + Debug {
    /// Travels with each message, invisible to the algorithm.
    type Tag: Clone + Eq + Ord + Hash + Debug + Default;

    /// The client at `at` makes a request.
    fn on_request(&mut self, _at: ProcessId, _request: &P::Request) -> Verdict {
        Ok(())
    }

    /// The client at `at` gets an indication.
    fn on_indication(&mut self, _at: ProcessId, _indication: &P::Indication) -> Verdict {
        Ok(())
    }

    /// A message is sent; none stands for a message of the application past the algorithm.
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

    /// A message is lost.
    fn on_lost(&mut self, _message: &P::Message) {}

    /// A message in flight is duplicated.
    fn on_duplicated(&mut self, _message: &P::Message) {}

    /// A process crashes.
    fn on_crash(&mut self, _at: ProcessId) {}

    /// A process restarts.
    fn on_restart(&mut self, _at: ProcessId) {}

    /// The link between two processes breaks, in both directions. A link may break more than once.
    fn on_break(&mut self, _one: ProcessId, _other: ProcessId) {}

    /// A broken link is mended once; if it broke more than once, it is still broken.
    fn on_mend(&mut self, _one: ProcessId, _other: ProcessId) {}

    /// A step ends; `process` is the state after it.
    fn after_step(&mut self, _at: ProcessId, _process: &P) -> Verdict {
        Ok(())
    }

    /// Whether [`after_step`](Self::after_step) must see every step. Otherwise it sees every process once
    /// before the end, which is faster in large groups.
    fn judges_every_step(&self) -> bool {
        true
    }

    /// All that `after_step` reads of a process, as a number; none stands for the whole process. The checker
    /// judges only one process of each number.
    fn view(&self, _process: &P) -> Option<u64> {
        None
    }

    /// Whether its judgement of a message, or of a process after a step, depends on earlier ones. Only if not,
    /// the checker may show it commuting steps in one order in place of all orders.
    fn remembers_messages(&self) -> bool {
        true
    }

    /// An event at `at` comes soon: a chance to prefetch the data kept for it, in large groups. `told` is true
    /// if clients have got indications recently.
    #[inline]
    fn prefetch(&self, _at: ProcessId, _told: bool) {}

    /// The run ends.
    fn at_end(&self, _end: &End) -> Verdict {
        Ok(())
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// Whether nothing more could happen; otherwise the run was cut off.
    pub quiet: bool,
    /// The processes that are up.
    pub alive: ProcessSet,
    /// Whether there was a fault: a loss, a duplication, a crash, a cut.
    pub faulty: bool,
}

impl End {
    /// The end of a run of `members`, of which those in `down` are down.
    pub fn new(members: &[ProcessId], down: &ProcessSet, faulty: bool, quiet: bool) -> Self {
        let alive = members.iter().copied().filter(|p| !down.contains(*p)).collect();
        Self { quiet, alive, faulty }
    }
}

/// The verdict of a monitor: no violation, or one.
pub type Verdict = Result<(), Violation>;

/// A property that does not hold.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Violation {
    /// The name of the property.
    pub property: &'static str,
    /// How it is violated, in words.
    pub detail: String,
}

impl Violation {
    /// A violation of `property`.
    pub fn new(property: &'static str, detail: impl Into<String>) -> Self {
        Self { property, detail: detail.into() }
    }

    /// A process sent a message to an id that is not a member.
    pub fn stranger(from: ProcessId, to: ProcessId) -> Self {
        Self::new("usage", format!("{from} sent to {to}, who is no member"))
    }

    /// A process received an input that its assumptions rule out.
    pub fn unexpected(at: ProcessId, what: &str) -> Self {
        Self::new("expected inputs", format!("{at} met {what}"))
    }

    /// Nothing more can happen, but the process `id` is not at rest.
    pub fn unquiet(id: ProcessId) -> Self {
        Self::new("quiescence", format!("nothing more can happen, but {id} is not at rest"))
    }
}
