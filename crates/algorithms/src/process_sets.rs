//! The sets of processes that some algorithms give to each process at the start.

use konklave_process::ProcessId;

use crate::Setup;

/// A set of processes for each process: its quorum, or the processes that it asks at first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessSets {
    /// The letter of the paper.
    pub name: &'static str,
    /// The use that a process makes of its set, as in "asks".
    pub use_of_set: &'static str,
    /// In node order; each set in order of the ids.
    pub sets: Vec<Vec<ProcessId>>,
}

impl ProcessSets {
    /// The set of each process of the group.
    pub fn of<'a, I>(
        name: &'static str,
        use_of_set: &'static str,
        setup: &Setup,
        set: impl Fn(ProcessId) -> I,
    ) -> Self
    where
        I: IntoIterator<Item = &'a ProcessId>,
    {
        let members = setup.group.members().iter();
        let sets = members.map(|p| set(*p).into_iter().copied().collect()).collect();
        Self { name, use_of_set, sets }
    }
}
