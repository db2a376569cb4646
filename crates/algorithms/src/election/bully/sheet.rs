//! The data sheet of the bully algorithm: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::rules::{NO_GUARD, NO_SECOND_TIMEOUT, OpenElections, Rules};
use super::{Bully, Phase};
use crate::election::Election;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Setup, SetupError,
    Switch, UsualRun, Winner, Workload,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "bully",
    title: "Bully",
    idea: "A process asks all higher processes to take over; if none answers in time, it leads.",
    source: "H. Garcia-Molina, IEEE Trans. Computers 31(1), 1982; \
             lecture \"Übereinstimmung und Koordination\", slides \"Bully-Algorithmus\"",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoRestart,
        Assumption::Synchronous,
        Assumption::KnownMembership,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Complete],
    winner: Some(Winner::MaxAll),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "(n − i)² + n − 2 (hardened: + 1), i = rank of the lowest detector",
            when: "the highest is down from the start, its detectors start at once, and two delays are shorter than the \
                   timeout",
            bound: |f| detector(f).map(|rank| Bound::Exactly(of_one_detector(f, rank))),
        },
        Cost {
            metric: Metric::Messages,
            formula: "n² − n − 1 (hardened: + 1)",
            when: "the highest is down from the start, its detectors start at once, and two delays are shorter than the \
                   timeout",
            bound: |f| detector(f).map(|_| Bound::AtMost(of_one_detector(f, 1.0))),
        },
        Cost {
            metric: Metric::Messages,
            formula: "n − 1",
            when: "no process is down, and only the highest starts",
            bound: |f| highest_alone(f).then(|| Bound::Exactly(f.n() - 1.0)),
        },
        Cost {
            metric: Metric::Time,
            formula: "timeout + 2T",
            when: "the highest is down from the start, its detectors start at once, and two delays are shorter than the \
                   timeout",
            bound: |f| detector(f).and(f.delay_max).map(|t| Bound::AtMost(timeout(f) + 2.0 * t)),
        },
        Cost {
            metric: Metric::Time,
            formula: "T",
            when: "no process is down, only the highest starts, and delays have a limit",
            bound: |f| f.delay_max.filter(|_| highest_alone(f)).map(Bound::AtMost),
        },
    ],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::LiveLeader,
        Guarantee::Termination,
    ],
    fence: None,
    mistakes: &[NO_GUARD, NO_SECOND_TIMEOUT],
    switches: &[
        Switch {
            name: "mode",
            values: &["textbook", "hardened"],
            what: "textbook: as on the slides; if all start at once and an announcement overtakes their questions, the \
                   messages grow exponentially with n; hardened: numbered reigns, one leader per epoch",
        },
        Switch {
            name: "timeout",
            values: &["5", "<number>"],
            what: "time to wait for an ANSWER, in T: at least two delays; for a COORDINATOR three times that",
        },
        Switch {
            name: "ping",
            values: &["0", "<number>"],
            what: "hardened: time between two reminders of a leader, in T; 0: no reminders",
        },
    ],
};

/// Among so few processes, all may start at once without many messages.
const FEW: usize = 4;

impl Inspect for Bully {
    fn at_rest(&self) -> bool {
        self.phase == Phase::Idle
    }
}

impl Algorithm for Bully {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;
    const USUAL_RUN: UsualRun = UsualRun::HighestDown;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            phase: Phase::Idle,
            coordinator: None,
            open: OpenElections::default(),
            rules: Fixed(Rules::of(setup)),
        }
    }

    fn longest_delay(setup: &Setup) -> Option<f64> {
        Some(longest_delay(setup))
    }

    fn remark(setup: &Setup, workload: &Workload) -> Option<&'static str> {
        let up = setup.group.len() - setup.down.len();
        (workload.initiators.len() == up && up > FEW).then_some(
            "all start at once: where an announcement overtakes questions, the messages of the textbook form grow \
             exponentially with n; those of --set mode=hardened do not",
        )
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        if setup.chosen(&SHEET, "mode").is("hardened") {
            return Err(SetupError("the hardened form is a process of its own".into()));
        }
        if setup.chosen(&SHEET, "ping").number() > 0 {
            return Err(SetupError("only the hardened mode has a ping".into()));
        }
        setup.need(&SHEET, 1, &["timeout"])
    }
}

/// The longest delay at which a timeout proves a crash.
pub(super) fn longest_delay(setup: &Setup) -> f64 {
    f64::from(setup.chosen(&SHEET, "timeout").number()) / 2.0
}

fn timeout(f: &Facts<'_>) -> f64 {
    f64::from(f.setup.chosen(&SHEET, "timeout").number())
}

/// The rank of the lowest detector, counted from 1, if only the highest process is down. Each live process from the
/// detector up then holds exactly one election: the guard prevents a second, and answers arrive before a timeout.
fn detector(f: &Facts<'_>) -> Option<f64> {
    let (lowest, [down]) = (f.initiators.iter().min()?, f.setup.down.as_slice()) else {
        return None;
    };
    let together = f.at_once || f.k() == 1.0;
    let in_time = f.delay_max.is_some_and(|t| 2.0 * t < timeout(f));
    let group = &f.setup.group;
    let below = group.members().iter().filter(|p| *p < lowest).count();
    (*down == group.highest() && together && in_time).then_some(below as f64 + 1.0)
}

fn highest_alone(f: &Facts<'_>) -> bool {
    f.setup.down.is_empty() && f.undisturbed && f.initiators == [f.setup.group.highest()]
}

fn of_one_detector(f: &Facts<'_>, rank: f64) -> f64 {
    let hardened = f.setup.chosen(&SHEET, "mode").is("hardened");
    (f.n() - rank).powi(2) + f.n() - 2.0 + f64::from(u8::from(hardened))
}
