//! The data sheet of the majority election: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::rules::{LEASE_FROM_ACK, NO_LEASE, NO_PERSIST, NO_PRE_VOTE, Rules, VOTE_AT_ONCE};
use super::{Ballot, Quorum, Role};
use crate::election::Election;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Setup, SetupError,
    Switch, Winner,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "quorum",
    title: "Majority vote with terms and leases",
    idea: "A majority votes for one leader in each term and lets it act for a limited time.",
    source: "D. Ongaro, J. Ousterhout, USENIX ATC 2014 (Raft); C. Gray, D. Cheriton, SOSP 1989 (leases)",
    assumes: &[
        Assumption::KnownMembership,
        Assumption::UniqueIds,
        Assumption::StableStorage,
        Assumption::SteadyClocks,
    ],
    topologies: &[Shape::Complete],
    winner: Some(Winner::Any),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "4(n − 1) for the election, and 2(n − 1) every E/5 in office",
            when: "one process starts at once, there are no faults, and five delays are shorter than E",
            bound: |f| undisputed(f).map(|(period, t)| messages(f, period, t)),
        },
        Cost {
            metric: Metric::Time,
            formula: "6T",
            when: "one process starts at once, there are no faults, and five delays are shorter than E",
            bound: |f| undisputed(f).map(|(_, t)| Bound::AtMost(6.0 * t)),
        },
    ],
    guarantees: &[
        Guarantee::UniquePerEpoch,
        Guarantee::UniqueLeader,
        Guarantee::GrowingEpochs,
        Guarantee::Agreement,
        Guarantee::LiveLeader,
        Guarantee::TerminationWithProbabilityOne,
    ],
    fence: Some("the term"),
    mistakes: &[NO_PERSIST, NO_PRE_VOTE, LEASE_FROM_ACK, NO_LEASE, VOTE_AT_ONCE],
    switches: &[
        Switch {
            name: "election",
            values: &["10", "<number>"],
            what: "E: time of a promise, in T; a process campaigns after E to 2E without a leader",
        },
        Switch {
            name: "drift",
            values: &["10", "<number>"],
            what: "difference between a promise and a lease, in percent: clock rates may differ by so much",
        },
        Switch {
            name: "jitter",
            values: &["100", "<number>"],
            what: "number of different waits between E and 2E",
        },
        Switch {
            name: "max-term",
            values: &["0", "<number>"],
            what: "for checks: the last term in which a process campaigns; 0: no limit",
        },
        Switch {
            name: "max-beats",
            values: &["0", "<number>"],
            what: "for checks: number of beats of a leader; 0: no limit",
        },
    ],
};

impl Inspect for Quorum {
    fn at_rest(&self) -> bool {
        matches!(self.role, Role::Follower { .. } | Role::Leader { .. })
    }
}

impl Algorithm for Quorum {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;
    const ENDLESS: bool = true;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            ballot: Ballot::default(),
            role: Role::Follower { leader: None },
            loyal: false,
            rules: Fixed(Rules::of(setup)),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["election", "jitter"])?;
        if setup.chosen(&SHEET, "drift").number() >= 100 {
            return Err(SetupError("drift is a percentage below 100".into()));
        }
        Ok(())
    }
}

/// The time between two beats and the longest delay, if only one process campaigns: all processes know it as the leader
/// before another one has missed a leader for E.
fn undisputed(f: &Facts<'_>) -> Option<(f64, f64)> {
    let number = |name| f64::from(f.setup.chosen(&SHEET, name).number());
    let calm = f.undisturbed && f.setup.down.is_empty() && f.setup.mistake.is_none();
    let unlimited = number("max-term") + number("max-beats") == 0.0;
    let alone = f.at_once && f.k() == 1.0 && unlimited;
    let t = f.delay_max.filter(|t| calm && alone && 5.0 * t < number("election"))?;
    Some((number("election") / 5.0, t))
}

/// Two rounds of questions and answers elect a leader, after at most four delays. From then on it sends beats, and all
/// other processes answer them.
fn messages(f: &Facts<'_>, period: f64, t: f64) -> Bound {
    let others = f.n() - 1.0;
    let times = |since: f64| ((f.elapsed - since) / period + 1.0).floor().max(0.0);
    let all = |times: f64| 4.0 * others + 2.0 * others * times;
    let answered = f.elapsed >= 5.0 * t;
    Bound::Between(if answered { all(times(5.0 * t)) } else { 0.0 }, all(times(0.0)))
}
