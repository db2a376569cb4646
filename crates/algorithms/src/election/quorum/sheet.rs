//! The data sheet of Majority vote with terms and leases: what it assumes, costs and promises, and its mistake switches.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::{Ballot, Quorum, Role, Settings};
use crate::election::Election;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch, Winner,
};

const NO_PERSIST: Mistake = Mistake {
    name: "no-persist",
    what: "term and vote are not saved: after a restart one votes again in the same term",
    breaks: "one leader per epoch",
    caught_by: "-n 3 --requests 0,0,0 --crash 1 --restart 1 --no-detector --synchronous --early 1 --set max-term=1 --set max-beats=1 --set jitter=1 --property unique",
};
const NO_PRE_VOTE: Mistake = Mistake {
    name: "no-pre-vote",
    what: "who misses a leader raises its term at once: when it is back, it deposes the leader",
    breaks: "stability",
    caught_by: "",
};
const LEASE_FROM_ACK: Mistake = Mistake {
    name: "lease-from-ack",
    what: "a lease counts from the answers, not from the question: it outlasts the promises by their delay",
    breaks: "one leader at a time",
    caught_by: "-n 3 --initiators 0 --synchronous --clock 1 --time-limit 6 --early 2 --set election=5 --set drift=20 --set jitter=1 --set max-beats=1 --set max-term=2 --property unique",
};
const NO_LEASE: Mistake = Mistake {
    name: "no-lease",
    what: "a leader stays in office until it hears of another term, also without a majority",
    breaks: "one leader at a time",
    caught_by: "-n 3 --initiators 0 --synchronous --clock 1 --time-limit 6 --set election=5 --set drift=20 --set jitter=1 --set max-beats=1 --set max-term=2 --property unique",
};
const VOTE_AT_ONCE: Mistake = Mistake {
    name: "vote-at-once-after-restart",
    what: "a restarted process forgets what it promised to a leader, and votes for another",
    breaks: "one leader at a time",
    caught_by: "",
};

const SHEET: DataSheet = DataSheet {
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
            when: "one starts at once, nothing goes wrong, five delays are shorter than E",
            bound: |f| undisputed(f).map(|(period, t)| messages(f, period, t)),
        },
        Cost {
            metric: Metric::Time,
            formula: "6T",
            when: "one starts at once, nothing goes wrong, five delays are shorter than E",
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
            what: "E: how long a promise holds, in T; who hears no leader for E to 2E campaigns",
        },
        Switch {
            name: "drift",
            values: &["10", "<number>"],
            what: "how much shorter than a promise a lease is, in percent: how far clock rates may differ",
        },
        Switch {
            name: "jitter",
            values: &["100", "<number>"],
            what: "how many different waits there are between E and 2E",
        },
        Switch {
            name: "max-term",
            values: &["0", "<number>"],
            what: "for checks: nobody campaigns beyond this term; 0: no limit",
        },
        Switch {
            name: "max-beats",
            values: &["0", "<number>"],
            what: "for checks: how often a leader reminds everyone of itself; 0: no limit",
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
        let number = |name| setup.chosen(&SHEET, name).number();
        let election = setup.unit * number("election");
        Self {
            ballot: Ballot::default(),
            role: Role::Follower { leader: None },
            loyal: false,
            settings: Fixed(Settings {
                election,
                lease: election * (100 - number("drift").min(99)) / 100,
                jitter: number("jitter").max(1),
                max_term: number("max-term"),
                max_beats: number("max-beats"),
                no_persist: *setup.makes(&NO_PERSIST),
                no_pre_vote: *setup.makes(&NO_PRE_VOTE),
                lease_from_ack: *setup.makes(&LEASE_FROM_ACK),
                no_lease: *setup.makes(&NO_LEASE),
                vote_at_once: *setup.makes(&VOTE_AT_ONCE),
            }),
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

/// How often a leader reminds everyone, and the longest delay, if one process alone campaigns: it
/// is in office, and everyone knows, before anyone else has missed a leader for E.
fn undisputed(f: &Facts<'_>) -> Option<(f64, f64)> {
    let number = |name| f64::from(f.setup.chosen(&SHEET, name).number());
    let calm = f.undisturbed && f.setup.down.is_empty() && f.setup.mistake.is_none();
    let unlimited = number("max-term") + number("max-beats") == 0.0;
    let alone = f.at_once && f.k() == 1.0 && unlimited;
    let t = f.delay_max.filter(|t| calm && alone && 5.0 * t < number("election"))?;
    Some((number("election") / 5.0, t))
}

/// Two rounds of questions and answers bring someone into office, after four delays at most; from
/// then on everyone is reminded again and again, and answers.
fn messages(f: &Facts<'_>, period: f64, t: f64) -> Bound {
    let others = f.n() - 1.0;
    let times = |since: f64| ((f.elapsed - since) / period + 1.0).floor().max(0.0);
    let all = |times: f64| 4.0 * others + 2.0 * others * times;
    let answered = f.elapsed >= 5.0 * t;
    Bound::Between(if answered { all(times(5.0 * t)) } else { 0.0 }, all(times(0.0)))
}
