//! Mutual exclusion by majority vote.
//!
//! To enter, a process needs more than half of all votes. A vote is exclusive and can be taken
//! back: that is what a reply of Ricart and Agrawala's is not, and why "a simple majority of the
//! replies is enough" is wrong. Voters that are down are not missed while the others have more than
//! half. Votes may be weighted. What happens is told in `locking.rs`.

use std::sync::Arc;

use konklave_process::topology::Shape;
use konklave_process::{Context, NoRecord, NoTimer, Process, ProcessId, ProcessMap};
use serde::Serialize;

use super::coterie::{Figures, numbers};
pub use super::locking::Message;
use super::locking::{Clocks, Enough, Flaw, Node, Rules};
use super::{Indication, Mutex, Request, hand_over};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

const SHARED_VOTES: Mistake = Mistake {
    name: "shared-votes",
    what: "a voter that is not inside itself votes for everyone, as Ricart and Agrawala's replies \
           do: \"a simple majority is enough\"",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,1,0",
};
const HALF_IS_ENOUGH: Mistake = Mistake {
    name: "half-is-enough",
    what: "half of the votes is taken for a majority",
    breaks: "mutual exclusion",
    caught_by: "-n 2",
};
const NO_TOMBSTONE: Mistake = Mistake {
    name: "no-tombstone",
    what: "a voter ignores a release that arrives before its request, and then votes for one that \
           has long left",
    breaks: "quiescence",
    caught_by: "-n 3 --requests 1,1,0 --no-fifo",
};
const NO_DEADLOCK_HANDLING: Mistake = Mistake {
    name: "no-deadlock-handling",
    what: "nobody ever gives a vote back: three with one vote each wait for ever",
    breaks: "deadlock",
    caught_by: "-n 3",
};

const SHEET: DataSheet = DataSheet {
    name: "voting",
    title: "Majority voting",
    idea: "Enter with more than half of all votes: of any two majorities, someone is in both.",
    source: "R. H. Thomas, TODS 4(2), 1979; D. K. Gifford, SOSP 1979; \
             lecture \"Gegenseitiger Ausschluss\", improvements of Ricart–Agrawala",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2(n − 1) to 6(n − 1) + 3 per entry, n the number of voters",
            when: "always; 3(n − 1) if requests never meet",
            bound: |f| Some(messages(f)),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "2T",
            when: hand_over::SETTLED,
            bound: |f| hand_over::settled(f, 2.0),
        },
        hand_over::UNSETTLED,
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the count of entries, known to a voter of each majority and written back"),
    mistakes: &[SHARED_VOTES, HALF_IS_ENOUGH, NO_TOMBSTONE, NO_DEADLOCK_HANDLING],
    switches: &[
        Switch {
            name: "votes",
            values: &["equal", "<text>"],
            what: "how many votes each has, in node order, as in 2,1,1; who has none is not asked",
        },
        Switch {
            name: "failing",
            values: &["exact", "eager"],
            what: "when votes are given back: once the rest cannot be enough, or at the first refusal",
        },
        Clocks::SWITCH,
    ],
};

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

/// As with quorums, the quorum being all voters; but a vote that comes too late is not given.
fn messages(facts: &Facts<'_>) -> Bound {
    let electorate = Electorate::of(facts.setup).expect("a run was set up right");
    let (mut remote, mut local) = (0.0, 0.0);
    for &(p, times) in facts.served {
        let own = f64::from(u8::from(electorate.votes[p] > 0));
        remote += times as f64 * (electorate.voters.len() as f64 - own);
        local += times as f64 * own;
    }
    if facts.uncontended {
        return Bound::Exactly(3.0 * remote);
    }
    Bound::Between(2.0 * remote, 6.0 * remote + 3.0 * local)
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

    fn stamp(&self) -> u64 {
        self.0.stamp()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.0.on_stamp(stamp);
    }

    fn at_rest(&self) -> bool {
        self.0.at_rest()
    }
}

impl Algorithm for Voting {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let electorate = Electorate::of(setup).unwrap_or_else(|e| panic!("{e}"));
        let shared = *setup.makes(&SHARED_VOTES);
        let only_me: Arc<[ProcessId]> = [me].into();
        let flaws =
            [(&NO_TOMBSTONE, Flaw::NoTombstone), (&NO_DEADLOCK_HANDLING, Flaw::NoDeadlockHandling)];
        let rules = Rules {
            ask: electorate.voters.clone(),
            inform: if shared { only_me.clone() } else { electorate.voters.clone() },
            tree: None,
            informants: shared.then_some(only_me),
            enough: Enough::Votes {
                votes: electorate.votes.clone(),
                total: electorate.total,
                eager: setup.chosen(&SHEET, "failing").is("eager"),
                half: *setup.makes(&HALF_IS_ENOUGH),
            },
            sticky: false,
            clocks: Clocks::of(setup, &SHEET),
            flaw: Flaw::of(setup, &flaws),
        };
        Self(Node::new(rules, &setup.down))
    }

    fn quorums(setup: &Setup) -> Vec<(&'static str, Figures)> {
        Electorate::of(setup).map_or_else(|_| Vec::new(), |all| all.figures(setup).into())
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        Electorate::of(setup).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;
    use crate::mutex::Fence;

    fn bench(votes: &str) -> Bench<Voting> {
        let group = Group::of(5);
        let mut setup = Setup::new(group.clone(), Topology::complete(5));
        setup.chosen.insert("votes", votes.into());
        setup.chosen.insert("clock", "requests".into());
        Bench::new(Voting::new(ProcessId(0), &setup), ProcessId(0), &group)
    }

    fn locked() -> Message {
        Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 }
    }

    #[test]
    fn more_than_half_of_the_votes_is_enough() {
        let granted = || tell(Indication::Granted { fence: Some(Fence(0, 1)) });
        let mut p0 = bench("equal");
        assert_eq!(p0.ask(Request::Acquire).len(), 4);
        assert_eq!(p0.hear(3, locked()), []);
        assert_eq!(p0.hear(1, locked()), [granted()]);
        // A vote that comes late is not needed; its voter will hear of our release.
        assert_eq!(p0.hear(4, locked()), []);
        let mut p0 = bench("2,3,0,0,0");
        p0.ask(Request::Acquire);
        assert_eq!(p0.hear(1, locked()), [granted()]);
    }

    #[test]
    fn a_vote_is_given_back_only_when_the_others_cannot_be_enough() {
        let mut p0 = bench("equal");
        p0.ask(Request::Acquire);
        p0.hear(1, locked());
        assert_eq!(p0.hear(1, Message::Inquire { request: 1, clock: 0 }), []);
        assert_eq!(p0.hear(2, Message::Failed { request: 1, clock: 0 }), []);
        assert_eq!(p0.hear(3, Message::Failed { request: 1, clock: 0 }), []);
        let back = [send(1, Message::Relinquish { request: 1, turn: 0, clock: 0 })];
        assert_eq!(p0.clone().hear(4, Message::Failed { request: 1, clock: 0 }), back);
        // A voter that crashed will not vote either.
        assert_eq!(p0.suspect(4), back);
    }

    #[test]
    fn a_release_before_its_request_voids_it() {
        let mut p0 = bench("equal");
        assert_eq!(p0.hear(2, Message::Release { request: 3, entries: 1, clock: 0 }), []);
        assert_eq!(p0.hear(2, Message::Request { time: 3 }), []);
        assert!(p0.process.at_rest());
        let next = [send(2, Message::Locked { request: 4, turn: 0, entries: 1, clock: 0 })];
        assert_eq!(p0.hear(2, Message::Request { time: 4 }), next);
    }

    #[test]
    fn a_release_takes_a_waiting_request_away() {
        let mut p0 = bench("equal");
        p0.hear(1, Message::Request { time: 1 });
        p0.hear(2, Message::Request { time: 1 });
        assert_eq!(p0.hear(2, Message::Release { request: 1, entries: 1, clock: 0 }), []);
        assert_eq!(p0.hear(1, Message::Release { request: 1, entries: 2, clock: 0 }), []);
        assert!(p0.process.at_rest());
    }
}
