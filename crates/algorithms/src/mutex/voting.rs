//! Mutual exclusion by majority vote.
//!
//! To enter, a process needs more than half of all votes. Its handlers are those of [Maekawa](super::maekawa), whose
//! locks are the votes, and three rules differ:
//!
//! - a requester asks all voters, and enters with more than half of the votes, which may be weighted;
//! - it relinquishes votes only if the rest is not enough without the voters that sent a failure or are suspected;
//! - its release may overtake its request at a voter that was not needed, so voters remember the latest releases.
//!
//! A vote is exclusive and can be taken back. A reply of Ricart and Agrawala's is neither, which is why "a simple
//! majority of the replies is enough" is wrong.

mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use konklave_process::{ProcessId, ProcessMap};

use self::sheet::SHEET;
use super::coterie::{Figures, numbers};
pub use super::maekawa::Message;
use super::maekawa::{Node, Variant};
use crate::{Setup, SetupError};

/// One process of the algorithm.
pub type Voting = Node<Votes>;

/// Majority voting: more than half of all votes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Votes {}

impl Variant for Votes {}

/// The voters and their votes.
#[derive(Clone, Debug)]
struct Electorate {
    votes: Arc<ProcessMap<u32>>,
    total: u64,
    /// The processes that have a vote, in the order of ids.
    voters: Arc<[ProcessId]>,
}

impl Electorate {
    fn of(setup: &Setup) -> Result<Arc<Self>, SetupError> {
        let text = setup.chosen(&SHEET, "votes").0;
        let build = || Self::new(text, setup).map(Arc::new);
        (*setup.share(&format!("votes={text}"), build)).clone()
    }

    fn new(text: &str, setup: &Setup) -> Result<Self, SetupError> {
        let group = &setup.group;
        let wrong = |why: String| SetupError(format!("votes={text}: {why}"));
        let given: Vec<u32> = match text {
            "equal" => vec![1; group.len()],
            _ => numbers(text).map_err(wrong)?,
        };
        if given.len() != group.len() || given.iter().all(|v| *v == 0) {
            return Err(wrong(format!("it takes the votes of {} nodes, not all 0", group.len())));
        }
        let mut votes = ProcessMap::new(group, 0);
        votes.values_mut().zip(&given).for_each(|(votes, given)| *votes = *given);
        let mut voters: Vec<ProcessId> =
            votes.iter().filter(|(_, votes)| **votes > 0).map(|(p, _)| p).collect();
        voters.sort_unstable();
        let total = given.iter().map(|v| u64::from(*v)).sum();
        Ok(Self { votes: Arc::new(votes), total, voters: voters.into() })
    }

    /// How large majorities are; all voters are asked, so that some may be missing.
    fn figures(&self, setup: &Setup) -> [(&'static str, Figures); 2] {
        let members = setup.group.members();
        let votes: Vec<u64> = members.iter().map(|p| self.votes[*p].into()).collect();
        let down: Vec<bool> = members.iter().map(|p| setup.down.contains(p)).collect();
        let asked = vec![self.voters.clone(); members.len()];
        let asked = Figures::of(&asked, &setup.group);
        [("majorities", Figures::of_votes(&votes, &down)), ("asked", asked)]
    }
}
