//! The data sheet of Bully of 1982: what it assumes, costs and promises, and its mistake switches.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId, ProcessSet};

use super::{Bully1982, Settings, Status};
use crate::election::Election;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch, Winner,
};

const KEEPS_RUNNING: Mistake = Mistake {
    name: "keeps-running",
    what: "who is halted goes on with its own election, and comes to lead beside the one that halted it",
    breaks: "one leader at a time",
    caught_by: "-n 3 --initiators 1 --crash 1 --restart 1 --synchronous --set check=0 --property unique",
};
const NO_HALTED_BY: Mistake = Mistake {
    name: "no-halted-by",
    what: "a halted process takes any coordinator, not only the one that halted it last (as in the slides' form)",
    breaks: "agreement",
    caught_by: "-n 3 --initiators 1 --crash 1 --restart 1 --synchronous --set check=0 --property agreement",
};

const SHEET: DataSheet = DataSheet {
    name: "bully-1982",
    title: "Bully of 1982",
    idea: "If nobody above is there, halt all below, then name yourself to those you halted.",
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
            when: "nobody is down, only the highest starts, two delays are shorter than the timeout",
            bound: |f| highest_alone(f).map(|t| messages(f, t)),
        },
        Cost {
            metric: Metric::Time,
            formula: "4(n − 1)T − T",
            when: "nobody is down, only the highest starts, two delays are shorter than the timeout",
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
            what: "how long to wait for a call to return, in T: two delays at least",
        },
        Switch {
            name: "check",
            values: &["20", "<number>"],
            what: "how often a coordinator asks whether all are normal, in T; 0: never, and nobody misses it",
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
        let check = setup.chosen(&SHEET, "check").number();
        Self {
            status: Status::Election,
            coordinator: None,
            halted_by: None,
            up: ProcessSet::new(),
            calling: None,
            settings: Fixed(Settings {
                timeout: setup.unit * setup.chosen(&SHEET, "timeout").number(),
                check: (check > 0).then(|| setup.unit * check),
                keeps_running: *setup.makes(&KEEPS_RUNNING),
                no_halted_by: *setup.makes(&NO_HALTED_BY),
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["timeout"])
    }
}

/// The longest delay, if the highest alone starts and nothing goes wrong.
fn highest_alone(f: &Facts<'_>) -> Option<f64> {
    let timeout = f64::from(f.setup.chosen(&SHEET, "timeout").number());
    let calm = f.undisturbed && f.setup.down.is_empty() && f.setup.mistake.is_none();
    let alone = calm && f.initiators == [f.setup.group.highest()];
    f.delay_max.filter(|t| alone && 2.0 * t < timeout)
}

/// Each other process is halted, told and made ready, two messages each; then one check begins
/// `check` after the last has ended.
fn messages(f: &Facts<'_>, t: f64) -> Bound {
    let others = f.n() - 1.0;
    let period = f64::from(f.setup.chosen(&SHEET, "check").number());
    let checks = if period > 0.0 { (f.elapsed / period).floor() } else { 0.0 };
    let most = (6.0 + 2.0 * checks) * others;
    let over = f.elapsed >= 6.0 * others * t;
    if over { Bound::Between(6.0 * others, most) } else { Bound::AtMost(most) }
}
