//! Mutual exclusion by majority vote.
//!
//! To enter, a process needs more than half of all votes. A vote is exclusive and can be taken
//! back: that is what a reply of Ricart and Agrawala's is not, and why "a simple majority of the
//! replies is enough" is wrong. Voters that are down are not missed while the others have more than
//! half. Votes may be weighted. What happens is told in `locking.rs`.

mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use konklave_process::{Context, NoRecord, NoTimer, Process, ProcessId, ProcessMap};
use serde::Serialize;

use self::sheet::SHEET;
use super::coterie::{Figures, numbers};
pub use super::locking::Message;
use super::locking::Node;
use super::{Indication, Request};
use crate::{Setup, SetupError};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct Voting(Node);

/// Who votes.
#[derive(Clone, Debug)]
struct Electorate {
    votes: Arc<ProcessMap<u32>>,
    total: u64,
    /// Who has a vote, in the order of ids.
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

impl Process for Voting {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        self.0.on_request(request, ctx);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        self.0.on_message(from, message, ctx);
    }

    /// A vote that will not come is one that we lack. A suspicion that is wrong does no harm.
    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.0.on_suspect(peer, ctx);
    }

    fn on_trust(&mut self, peer: ProcessId, _ctx: &mut Context<'_, Self>) {
        self.0.on_trust(peer);
    }
}
