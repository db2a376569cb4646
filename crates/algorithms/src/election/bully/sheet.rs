//! The data sheet of Bully: what it assumes, costs and promises, and its mistake switches.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::{Bully, Phase, Reign, Settings, timeout};
use crate::election::Election;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch, UsualRun, Winner,
};

const NO_GUARD: Mistake = Mistake {
    name: "no-guard",
    what: "every ELECTION starts one more election, also during one (printed on the slides): 2^(n−1) messages",
    breaks: "bound",
    caught_by: "-n 5 --down 4 --initiators 0 --synchronous --clock 1 --property bound:20",
};
const NO_SECOND_TIMEOUT: Mistake = Mistake {
    name: "no-second-timeout",
    what: "after an ANSWER one waits for the coordinator without end (\"do something else\" on the slides)",
    breaks: "deadlock",
    caught_by: "-n 3 --down 2 --initiators 0 --crash 1 --synchronous --property deadlock",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "bully",
    title: "Bully",
    idea: "Ask all above you to take over; if nobody answers in time, you lead.",
    source: "H. Garcia-Molina, IEEE Trans. Computers 31(1), 1982; lecture \"Wahlverfahren\", Bully-Algorithmus",
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
            when: "the highest is down from the start, all who detect that do so at once, and answers come in time",
            bound: |f| detector(f).map(|rank| Bound::Exactly(of_one_detector(f, rank))),
        },
        Cost {
            metric: Metric::Messages,
            formula: "n² − n − 1 (hardened: + 1)",
            when: "the highest is down from the start, all who detect that do so at once, and answers come in time",
            bound: |f| detector(f).map(|_| Bound::AtMost(of_one_detector(f, 1.0))),
        },
        Cost {
            metric: Metric::Messages,
            formula: "n − 1",
            when: "nobody is down, and only the highest starts",
            bound: |f| highest_alone(f).then(|| Bound::Exactly(f.n() - 1.0)),
        },
        Cost {
            metric: Metric::Time,
            formula: "timeout + 2T",
            when: "the highest is down from the start, all detectors at once, delays have a limit",
            bound: |f| detector(f).and(f.delay_max).map(|t| Bound::AtMost(timeout(f) + 2.0 * t)),
        },
        Cost {
            metric: Metric::Time,
            formula: "T",
            when: "nobody is down, only the highest starts, delays have a limit",
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
            what: "as taught: if all start at once and an announcement overtakes their questions, the messages \
                   grow exponentially with n; or with numbered reigns, which promises one leader per epoch only",
        },
        Switch {
            name: "timeout",
            values: &["5", "<number>"],
            what: "how long to wait for an ANSWER, in T: two delays at least; three times that for a coordinator",
        },
        Switch {
            name: "ping",
            values: &["0", "<number>"],
            what: "hardened: how often a leader reminds everyone of itself, in T; 0: never",
        },
    ],
};

impl Inspect for Bully {
    fn at_rest(&self) -> bool {
        self.phase == Phase::Idle
    }
}

impl Algorithm for Bully {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;
    const USUAL_RUN: UsualRun = UsualRun::HighestDown;

    fn sheet(setup: &Setup) -> DataSheet {
        if setup.chosen(&SHEET, "mode").is("textbook") {
            return SHEET;
        }
        let guarantees = &[
            Guarantee::UniquePerEpoch,
            Guarantee::Agreement,
            Guarantee::LiveLeader,
            Guarantee::Termination,
        ];
        // A later reign supersedes what a returning process knows and says.
        let assumes = &[
            Assumption::Reliable,
            Assumption::Synchronous,
            Assumption::KnownMembership,
            Assumption::UniqueIds,
        ];
        DataSheet { assumes, guarantees, ..SHEET }
    }

    fn longest_delay(setup: &Setup) -> Option<f64> {
        Some(f64::from(setup.chosen(&SHEET, "timeout").number()) / 2.0)
    }

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let hardened = setup.chosen(&SHEET, "mode").is("hardened");
        let ping = setup.chosen(&SHEET, "ping").number();
        Self {
            phase: Phase::Idle,
            coordinator: None,
            reign: Reign::default(),
            round: 0,
            open: 0,
            settings: Fixed(Settings {
                hardened,
                timeout: setup.unit * setup.chosen(&SHEET, "timeout").number(),
                ping: (hardened && ping > 0).then(|| setup.unit * ping),
                no_guard: *setup.makes(&NO_GUARD),
                no_second_timeout: *setup.makes(&NO_SECOND_TIMEOUT),
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["timeout"])?;
        let textbook = setup.chosen(&SHEET, "mode").is("textbook");
        if textbook && setup.chosen(&SHEET, "ping").number() > 0 {
            return Err(SetupError("only the hardened mode has a ping".into()));
        }
        Ok(())
    }
}

/// The rank of the lowest detector, counted from 1, where the highest alone is down. All above it
/// hold one election each, whether they detect anything or are asked: who is asked while it waits
/// holds no other, and an answer comes before anyone has waited long enough.
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
