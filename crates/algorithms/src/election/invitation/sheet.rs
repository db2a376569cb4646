//! The data sheet of Invitation: what it assumes, costs and promises, and its mistake switches.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::{GroupNumber, Invitation, Settings, Status};
use crate::election::Election;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch, Winner,
};

const EQUAL_WAITS: Mistake = Mistake {
    name: "equal-waits",
    what: "all wait equally long before they invite: two invite each other again and again, and neither comes",
    breaks: "agreement",
    caught_by: "-n 2 --synchronous --clock 1 --time-limit 24 --settled --set timeout=1 --property agreement",
};
const NO_PERSIST: Mistake = Mistake {
    name: "no-persist",
    what: "the count is not saved: a restarted coordinator uses a group number again, and an old READY fits",
    breaks: "growing epochs",
    caught_by: "-n 2 --crash 1 --restart 1 --synchronous --set max-count=2 --property fence",
};

const SHEET: DataSheet = DataSheet {
    name: "invitation",
    title: "Invitation",
    idea: "Everyone leads a group of its own; leaders invite each other until one group is left.",
    source: "H. Garcia-Molina, IEEE Trans. Computers 31(1), 1982",
    assumes: &[Assumption::KnownMembership, Assumption::UniqueIds, Assumption::StableStorage],
    topologies: &[Shape::Complete],
    winner: Some(Winner::Any),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "(2n + 5)(n − 1) until there is one group; then 2(n − 1) every 5 timeouts for \
                      the check, and as many every 2 for the members' questions",
            when: "nothing goes wrong, two delays are shorter than the timeout",
            bound: |f| peace(f).map(|(timeout, t)| messages(f, timeout, t)),
        },
        Cost {
            metric: Metric::Time,
            formula: "7 timeouts + 2T",
            when: "nothing goes wrong, two delays are shorter than the timeout",
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
            what: "how long to wait for an answer, in T: two delays at least; all other times are multiples",
        },
        Switch {
            name: "max-count",
            values: &["0", "<number>"],
            what: "for checks: who has counted so far invites nobody any more; 0: no limit",
        },
    ],
};

/// A timer takes a moment even if it is set to none, in T.
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
        let timeout = setup.unit * setup.chosen(&SHEET, "timeout").number();
        let above = setup.group.members().iter().filter(|p| **p > me).count() as u32;
        let equal = *setup.makes(&EQUAL_WAITS);
        Self {
            status: Status::Member,
            group: GroupNumber::default(),
            count: 0,
            settings: Fixed(Settings {
                timeout,
                patience: if equal { timeout } else { timeout * above },
                max_count: setup.chosen(&SHEET, "max-count").number(),
                no_persist: *setup.makes(&NO_PERSIST),
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        if setup.chosen(&SHEET, "timeout").number() == 0 {
            return Err(SetupError("timeout must be at least 1".into()));
        }
        Ok(())
    }
}

/// The timeout and the longest delay, if nothing goes wrong: then all look for others at once, and
/// the highest invites all before anyone else has waited long enough to.
fn peace(f: &Facts<'_>) -> Option<(f64, f64)> {
    let number = |name| f64::from(f.setup.chosen(&SHEET, name).number());
    let calm = f.undisturbed && f.setup.down.is_empty() && f.setup.mistake.is_none();
    let unlimited = f.at_once && number("max-count") == 0.0;
    let t = f.delay_max.filter(|t| calm && unlimited && 2.0 * t < number("timeout"))?;
    Some((number("timeout"), t))
}

/// After four timeouts everyone asks all others whether they are coordinators; then each but the
/// highest is invited, accepts, is accepted, hears that the group is ready and confirms. The group
/// is ready after seven timeouts: from then on it looks for others four timeouts after the last
/// look, which takes one, and a member asks after the coordinator two timeouts after the last
/// answer.
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
