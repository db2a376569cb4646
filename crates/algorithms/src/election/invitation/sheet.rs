//! The data sheet of the invitation algorithm: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::rules::{EQUAL_WAITS, NO_PERSIST, Rules};
use super::{GroupNumber, Invitation, Status};
use crate::election::Election;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Setup, SetupError,
    Switch, Winner,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "invitation",
    title: "Invitation",
    idea: "Each process leads a group of its own; leaders invite each other until one group is left.",
    source: "H. Garcia-Molina, IEEE Trans. Computers 31(1), 1982",
    assumes: &[Assumption::KnownMembership, Assumption::UniqueIds, Assumption::StableStorage],
    topologies: &[Shape::Complete],
    winner: Some(Winner::Any),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "(2n + 5)(n − 1) until there is one group; then 2(n − 1) every 5 timeouts for \
                      the check, and as many every 2 timeouts for the questions of the members",
            when: "there are no faults, and two delays are shorter than the timeout",
            bound: |f| peace(f).map(|(timeout, t)| messages(f, timeout, t)),
        },
        Cost {
            metric: Metric::Time,
            formula: "7 timeouts + 2T",
            when: "there are no faults, and two delays are shorter than the timeout",
            bound: |f| peace(f).map(|(timeout, t)| Bound::AtMost(7.0 * timeout + 2.0 * t + MOMENT)),
        },
    ],
    guarantees: &[
        Guarantee::UniquePerEpoch,
        Guarantee::GrowingEpochs,
        Guarantee::Agreement,
        Guarantee::LiveLeader,
        Guarantee::Termination,
    ],
    fence: Some("the group number: count and id in one"),
    mistakes: &[EQUAL_WAITS, NO_PERSIST],
    switches: &[
        Switch {
            name: "timeout",
            values: &["5", "<number>"],
            what: "time to wait for an answer, in T: at least two delays; all other times are multiples of it",
        },
        Switch {
            name: "max-count",
            values: &["0", "<number>"],
            what: "for checks: a process that has founded so many groups invites no other; 0: no limit",
        },
    ],
};

/// The least time of a timer, in T, also if it is set to 0.
const MOMENT: f64 = 0.01;

impl Inspect for Invitation {
    fn at_rest(&self) -> bool {
        self.leader().is_some()
    }
}

impl Algorithm for Invitation {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;
    const ENDLESS: bool = true;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            status: Status::Member,
            group: GroupNumber::default(),
            count: 0,
            rules: Fixed(Rules::of(me, setup)),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        if setup.chosen(&SHEET, "timeout").number() == 0 {
            return Err(SetupError("timeout must be at least 1".into()));
        }
        Ok(())
    }
}

/// The timeout and the longest delay, if there are no faults. All processes then check at once, and the highest invites
/// all others before the wait of another coordinator is over.
fn peace(f: &Facts<'_>) -> Option<(f64, f64)> {
    let number = |name| f64::from(f.setup.chosen(&SHEET, name).number());
    let calm = f.undisturbed && f.setup.down.is_empty() && f.setup.mistake.is_none();
    let unlimited = f.at_once && number("max-count") == 0.0;
    let t = f.delay_max.filter(|t| calm && unlimited && 2.0 * t < number("timeout"))?;
    Some((number("timeout"), t))
}

/// After four timeouts each process asks all others whether they are coordinators. Then each process but the highest is
/// invited, accepts, learns that this was in time, learns that the group is ready, and confirms. The group is ready
/// after seven timeouts. From then on the coordinator checks four timeouts after its last check, which takes one, and a
/// member asks for the coordinator two timeouts after the last answer.
fn messages(f: &Facts<'_>, timeout: f64, t: f64) -> Bound {
    let others = f.n() - 1.0;
    let union = (2.0 * f.n() + 5.0) * others;
    let times = |begin: f64, period: f64| {
        ((f.elapsed - begin * timeout) / (period * timeout) + 1.0).floor().max(0.0)
    };
    let most = union + 2.0 * others * (times(11.0, 5.0) + times(9.0, 2.0));
    let united = f.elapsed > 7.0 * timeout + 2.0 * t + MOMENT;
    if united { Bound::Between(union, most) } else { Bound::AtMost(most) }
}
