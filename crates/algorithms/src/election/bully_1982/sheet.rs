//! The data sheet of the bully algorithm of 1982: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId, ProcessSet};

use super::rules::{KEEPS_RUNNING, NO_HALTED_BY, Rules};
use super::{Bully1982, Status};
use crate::election::Election;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Setup, SetupError,
    Switch, Winner,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "bully-1982",
    title: "Bully of 1982",
    idea: "If no higher process is up, a candidate halts all lower processes, then names itself to them.",
    source: "H. Garcia-Molina, IEEE Trans. Computers 31(1), 1982, appendix I",
    assumes: &[
        Assumption::Reliable,
        Assumption::Synchronous,
        Assumption::KnownMembership,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Complete],
    winner: Some(Winner::MaxAll),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "6(n − 1) until all are normal; then 2(n − 1) for each check",
            when: "no process is down, only the highest starts, and two delays are shorter than the timeout",
            bound: |f| highest_alone(f).map(|t| messages(f, t)),
        },
        Cost {
            metric: Metric::Time,
            formula: "4(n − 1)T − T",
            when: "no process is down, only the highest starts, and two delays are shorter than the timeout",
            bound: |f| {
                highest_alone(f).map(|t| Bound::AtMost((4.0 * (f.n() - 1.0) - 1.0).max(0.0) * t))
            },
        },
    ],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::LiveLeader,
        Guarantee::Termination,
    ],
    fence: None,
    mistakes: &[KEEPS_RUNNING, NO_HALTED_BY],
    switches: &[
        Switch {
            name: "timeout",
            values: &["5", "<number>"],
            what: "time until a call must have returned, in T: at least two delays",
        },
        Switch {
            name: "check",
            values: &["20", "<number>"],
            what: "time between two checks of a coordinator, in T; 0: no checks, and no timeout for the coordinator",
        },
    ],
};

impl Inspect for Bully1982 {
    fn at_rest(&self) -> bool {
        self.status == Status::Normal
    }
}

impl Algorithm for Bully1982 {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;
    const ENDLESS: bool = true;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            status: Status::Election,
            coordinator: None,
            halted_by: None,
            up: ProcessSet::new(),
            calling: None,
            rules: Fixed(Rules::of(setup)),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["timeout"])
    }
}

/// The longest delay, if only the highest starts and there are no faults.
fn highest_alone(f: &Facts<'_>) -> Option<f64> {
    let timeout = f64::from(f.setup.chosen(&SHEET, "timeout").number());
    let calm = f.undisturbed && f.setup.down.is_empty() && f.setup.mistake.is_none();
    let alone = calm && f.initiators == [f.setup.group.highest()];
    f.delay_max.filter(|t| alone && 2.0 * t < timeout)
}

/// Each other process is halted, named the coordinator and made ready, with two messages each. A check begins `check`
/// after the last one has ended.
fn messages(f: &Facts<'_>, t: f64) -> Bound {
    let others = f.n() - 1.0;
    let period = f64::from(f.setup.chosen(&SHEET, "check").number());
    let checks = if period > 0.0 { (f.elapsed / period).floor() } else { 0.0 };
    let most = (6.0 + 2.0 * checks) * others;
    let over = f.elapsed >= 6.0 * others * t;
    if over { Bound::Between(6.0 * others, most) } else { Bound::AtMost(most) }
}
