//! The data sheet of Scalable reliable multicast: what it assumes, costs and promises, and its mistake switches.

use konklave_process::topology::{Hops, Shape};
use konklave_process::{Fixed, Inspect, ProcessId, ProcessSet};

use super::{Settings, Srm, Tuning, sessions};
use crate::multicast::Multicast;
use crate::multicast::sender_map::SenderMap;
use crate::multicast::unit_map::UnitMap;
use crate::{
    Algorithm, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup, SetupError, Switch,
};

pub(super) const ONE_ROUND: Mistake = Mistake {
    name: "one-round",
    what: "a member does not repeat its request: a lost request is lost for good",
    breaks: "validity",
    caught_by: "-n 2 --requests 1,0 --loss 2 --synchronous --set sessions=3 --set timers=fixed --set c2=0 --set d1=1 --set d2=0",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "srm",
    title: "Scalable reliable multicast",
    idea: "Requests and repairs go to all; timers by distance and chance suppress all but a few.",
    source: "S. Floyd, V. Jacobson, C.-G. Liu, S. McCanne, L. Zhang, ToN 5(6), 1997; ns-2",
    assumes: &[],
    topologies: &[Shape::Connected],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "n − 1 for each multicast, and n − 1 for each session message",
            when: "no fault strikes a message",
            bound: messages,
        },
        Cost {
            metric: Metric::Delivery,
            formula: "T",
            when: "no fault strikes a message",
            bound: |f| f.delay_max.filter(|_| f.undisturbed).map(Bound::AtMost),
        },
    ],
    guarantees: &[Guarantee::Validity, Guarantee::Integrity, Guarantee::Agreement],
    fence: None,
    mistakes: &[ONE_ROUND],
    switches: &[
        Switch {
            name: "timers",
            values: &["adaptive", "fixed"],
            what: "whether C1, C2, D1 and D2 adapt to duplicates and waits, or stay as chosen",
        },
        Switch { name: "c1", values: &["2", "<number>"], what: "C1: least wait before a request" },
        Switch { name: "c2", values: &["2", "<number>"], what: "C2: how far requests are spread" },
        Switch {
            name: "d1",
            values: &["log10", "<number>"],
            what: "D1: least wait before a repair; log10: of the size of the group",
        },
        Switch {
            name: "d2",
            values: &["log10", "<number>"],
            what: "D2: how far repairs are spread; log10: of the size of the group",
        },
        Switch {
            name: "sessions",
            values: &["agreed", "<number>"],
            what: "session messages of each member after its last news: until all agree, or so many",
        },
        Switch {
            name: "interval",
            values: &["10", "<number>"],
            what: "T between two session messages, each up to a tenth more or less",
        },
        Switch {
            name: "scope",
            values: &["0", "<number>"],
            what: "how many links around to ask first, twice as far each time; 0: always all",
        },
    ],
};

impl Inspect for Srm {
    fn at_rest(&self) -> bool {
        self.missing.is_empty() && self.pending_repairs.is_empty()
    }
}

impl Algorithm for Srm {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let hops = setup.share("hops", || Hops::new(&setup.topology, &setup.group));
        let number = |name| setup.chosen(&SHEET, name).number();
        let members = setup.group.len() as u32;
        Self {
            held: SenderMap::default(),
            high: SenderMap::default(),
            missing: UnitMap::default(),
            pending_repairs: UnitMap::default(),
            held_down: UnitMap::default(),
            tuning: Tuning::new(setup, members),
            sessions: 0,
            agreed: ProcessSet::new(),
            suspected: ProcessSet::new(),
            session_pending: false,
            settings: Fixed(Settings {
                hops,
                unit: setup.unit.as_nanos() as u64,
                adaptive: setup.chosen(&SHEET, "timers").is("adaptive"),
                agreed: setup.chosen(&SHEET, "sessions").is("agreed"),
                sessions: number("sessions"),
                interval: number("interval"),
                scope: number("scope"),
                members,
                one_round: setup.mistake == Some(ONE_ROUND.name),
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        let number = |name| setup.chosen(&SHEET, name).number();
        if number("c1") == 0 && number("c2") == 0 {
            return Err(SetupError(
                "c1 and c2 cannot both be 0: then no process would be first".into(),
            ));
        }
        setup.need(&SHEET, 1, &["interval"])
    }
}

pub(super) fn messages(f: &Facts<'_>) -> Option<Bound> {
    let chosen = f.setup.chosen(&SHEET, "sessions");
    let interval = f64::from(f.setup.chosen(&SHEET, "interval").number());
    let prompt = f.delay_max.is_some_and(|delay| delay <= interval);
    let sessions = match chosen.is("agreed") {
        true => f64::from(sessions::MOST),
        false => f64::from(chosen.number()),
    };
    let least = f.entries() * (f.n() - 1.0);
    let most = least + f.n() * (f.n() - 1.0) * sessions * (f.entries() + 1.0);
    let applies = f.undisturbed && (prompt || !chosen.is("agreed"));
    applies.then_some(Bound::Between(least, most))
}

/// The rule that a mistake switch breaks.
impl Srm {
    /// Whether a request is repeated until the message arrives.
    pub(super) fn repeats_requests(&self) -> bool {
        !self.settings.one_round
    }
}
