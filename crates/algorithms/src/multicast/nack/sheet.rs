//! The data sheet of Reliable multicast by negative acknowledgements: what it assumes, costs and promises, and its mistake switches.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId, ProcessSet};

use super::{Nack, Settings, Stream, stop};
use crate::multicast::Multicast;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

pub(super) const NO_HEARTBEAT: Mistake = Mistake {
    name: "no-heartbeat",
    what: "no heartbeats follow the last message: a loss at the end goes unnoticed",
    breaks: "validity",
    caught_by: "-n 2 --requests 1,0 --loss 1 --synchronous --set suppression=none --set beats=2 --set stops=0",
};
pub(super) const SILENT_HOLE: Mistake = Mistake {
    name: "silent-hole",
    what: "a receiver that gives up a missing message does not report it as gone",
    breaks: "validity",
    caught_by: "-n 2 --requests 1,0 --loss 3 --synchronous --set suppression=none --set beats=3 --set stops=0 --set tries=1",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "nack",
    title: "Reliable multicast by negative acknowledgements",
    idea: "A receiver asks for the messages in a gap of the numbers; heartbeats and a stop show losses at the end.",
    source: "lecture \"Übereinstimmung und Koordination\", slide \"Zuverlässiger Multicast\"; RFC 5401",
    assumes: &[Assumption::StableStorage],
    topologies: &[Shape::Connected],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "n − 1 for each multicast and each heartbeat, 2 (n − 1) for each stop",
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
    guarantees: &[Guarantee::Validity, Guarantee::Integrity, Guarantee::FifoOrder],
    fence: None,
    mistakes: &[NO_HEARTBEAT, SILENT_HOLE],
    switches: &[
        Switch {
            name: "heartbeat",
            values: &["2", "<number>"],
            what: "T from a message to the first heartbeat; twice as long to each next one",
        },
        Switch {
            name: "rarest",
            values: &["64", "<number>"],
            what: "the most T between heartbeats",
        },
        Switch {
            name: "beats",
            values: &["12", "<number>"],
            what: "how many heartbeats follow a message before the stop",
        },
        Switch {
            name: "stops",
            values: &["3", "<number>"],
            what: "how many stops a silent receiver gets before they become rarer; 0: no stops at all",
        },
        Switch {
            name: "suppression",
            values: &["exponential", "none"],
            what: "how requests are spread so that one repair spares most: RFC 5401, or 1 T for all",
        },
        Switch {
            name: "tries",
            values: &["16", "<number>"],
            what: "how often a message is asked for until it is given up",
        },
        Switch {
            name: "keep",
            values: &["1024", "<number>"],
            what: "how many of its messages a sender keeps for repairs",
        },
    ],
};

impl Inspect for Nack {
    fn at_rest(&self) -> bool {
        self.just_repaired.is_empty() && self.streams.values().all(Stream::is_complete)
    }
}

impl Algorithm for Nack {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let number = |name| setup.chosen(&SHEET, name).number();
        Self {
            life: 0,
            sent: 0,
            kept: BTreeMap::new(),
            just_repaired: Vec::new(),
            beats: 0,
            unanswered: ProcessSet::new(),
            suspected: ProcessSet::new(),
            streams: BTreeMap::new(),
            settings: Fixed(Settings {
                unit: setup.unit,
                heartbeat: number("heartbeat"),
                rarest: number("rarest"),
                beats: number("beats"),
                stops: number("stops"),
                exponential: setup.chosen(&SHEET, "suppression").is("exponential"),
                tries: number("tries"),
                keep: number("keep") as usize,
                mistake: setup.mistake,
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["heartbeat", "rarest", "tries", "keep"])
    }
}

pub(super) fn messages(f: &Facts<'_>) -> Option<Bound> {
    let number = |name| f64::from(f.setup.chosen(&SHEET, name).number());
    let (beats, stops) = (number("beats"), number("stops"));
    let others = f.n() - 1.0;
    let senders = f.served.iter().filter(|(_, sent)| *sent > 0).count() as f64;
    let least = f.entries() * others + senders * others * (beats + 2.0 * stops.min(1.0));
    // Between messages there may be heartbeats, too. No answer takes as long as all the stops.
    let answered = stops == 0.0
        || f.delay_max.is_some_and(|delay| 2.0 * delay <= stops * f64::from(stop::PATIENCE));
    let most = f.entries() * others * (1.0 + beats + 2.0 * stops);
    (f.undisturbed && answered).then_some(Bound::Between(least, most))
}

/// The rules that a mistake switch breaks. Without a mistake each of them holds.
impl Nack {
    fn makes(&self, mistake: &Mistake) -> bool {
        self.settings.mistake == Some(mistake.name)
    }

    /// Whether heartbeats and stops follow the last message.
    pub(super) fn sends_heartbeats(&self) -> bool {
        !self.makes(&NO_HEARTBEAT)
    }

    /// Whether a receiver that gives up a message reports it as gone.
    pub(super) fn reports_gone(&self) -> bool {
        !self.makes(&SILENT_HOLE)
    }
}
