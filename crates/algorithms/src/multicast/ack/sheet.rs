//! The data sheet of Reliable multicast by acknowledgements: what it assumes, costs and promises, and its mistake switches.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId, ProcessSet};

use super::{Ack, Sending, Settings};
use crate::multicast::Multicast;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

pub(super) const MUTE: Mistake = Mistake {
    name: "mute",
    what: "a message that arrives again is not confirmed again, although the confirmation may be lost",
    breaks: "accuracy",
    caught_by: "-n 2 --requests 1,0 --loss 1 --synchronous --property accuracy",
};
pub(super) const TWICE: Mistake = Mistake {
    name: "twice",
    what: "a message that arrives again is delivered again",
    breaks: "no duplication",
    caught_by: "-n 2 --requests 1,0 --loss 1 --synchronous",
};
pub(super) const TRIMMED: Mistake = Mistake {
    name: "trimmed",
    what: "a receiver remembers only its last message, and delivers a late copy of an older one again",
    breaks: "no duplication",
    caught_by: "-n 2 --requests 2,0 --duplicate 1 --no-fifo --synchronous",
};
pub(super) const PATIENT: Mistake = Mistake {
    name: "patient",
    what: "no receiver is ever given up: one crashed receiver blocks the window for all",
    breaks: "deadlock",
    caught_by: "-n 2 --requests 2,0 --crash 1 --synchronous --set window=1 --property deadlock",
};
pub(super) const ONE_LIFE: Mistake = Mistake {
    name: "one-life",
    what: "a restarted sender numbers from 1 in the same incarnation",
    breaks: "validity",
    caught_by: "-n 2 --requests 2,0 --crash 1 --restart 1 --synchronous",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "ack",
    title: "Reliable multicast by acknowledgements",
    idea: "Repeat each message until every receiver has confirmed it.",
    source: "lecture \"Übereinstimmung und Koordination\", slide \"Unmittelbare Rückmeldungen\"",
    assumes: &[Assumption::KnownMembership, Assumption::StableStorage],
    topologies: &[Shape::Connected],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2(n − 1) for each multicast",
            when: "nothing is lost, every message is confirmed by itself and in time",
            bound: messages,
        },
        Cost {
            metric: Metric::Delivery,
            formula: "T",
            when: "no message is lost, and the window delays no message",
            bound: delivery,
        },
    ],
    guarantees: &[Guarantee::Validity, Guarantee::Integrity, Guarantee::FifoOrder],
    fence: None,
    mistakes: &[MUTE, TWICE, TRIMMED, PATIENT, ONE_LIFE],
    switches: &[
        Switch {
            name: "window",
            values: &["64", "<number>"],
            what: "how many messages may be unconfirmed",
        },
        Switch {
            name: "every",
            values: &["1", "<number>"],
            what: "confirm every so many messages, or after `jitter` at the latest",
        },
        Switch {
            name: "jitter",
            values: &["1", "<number>"],
            what: "how long a confirmation may be put off, in T (where every > 1)",
        },
        Switch {
            name: "fanout",
            values: &["0", "<number>"],
            what: "gather confirmations along a tree of this degree; 0: each goes to the sender",
        },
        Switch {
            name: "timeout",
            values: &["3", "<number>"],
            what: "T until an unconfirmed message is repeated; twice as long each time",
        },
        Switch {
            name: "backoff",
            values: &["2", "1"],
            what: "the factor by which the timeout grows each time",
        },
        Switch {
            name: "limit",
            values: &["6", "<number>"],
            what: "after so many repetitions silent receivers are given up; 0: never",
        },
        Switch {
            name: "share",
            values: &["30", "<number>"],
            what: "repeat to all if more than this share of receivers lacks it, in %, else to each",
        },
    ],
};

impl Inspect for Ack {
    fn at_rest(&self) -> bool {
        let idle = |s: &Sending| s.outstanding.is_empty() && s.queue.is_empty();
        self.sending.as_ref().is_none_or(|sending| idle(sending))
    }
}

impl Algorithm for Ack {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let number = |name| setup.chosen(&SHEET, name).number();
        Self {
            life: 0,
            sending: None,
            streams: BTreeMap::new(),
            given_up: ProcessSet::new(),
            welcomes_missing: ProcessSet::new(),
            settings: Fixed(Settings {
                group: setup.group.clone(),
                unit: setup.unit,
                window: number("window"),
                every: number("every"),
                jitter: number("jitter"),
                fanout: number("fanout") as usize,
                timeout: number("timeout"),
                backoff: number("backoff"),
                limit: number("limit"),
                share: number("share") as usize,
                mistake: setup.mistake,
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["window", "every", "timeout"])?;
        setup.limit(&SHEET, 100, &["share"])
    }
}

pub(super) fn messages(f: &Facts<'_>) -> Option<Bound> {
    smooth(f).then(|| Bound::Exactly(2.0 * f.entries() * (f.n() - 1.0)))
}

pub(super) fn delivery(f: &Facts<'_>) -> Option<Bound> {
    f.delay_max.filter(|_| smooth(f)).map(Bound::AtMost)
}

/// Whether each message goes out once, and each is confirmed by itself and in time.
pub(super) fn smooth(f: &Facts<'_>) -> bool {
    let chosen = |name| f.setup.chosen(&SHEET, name);
    let timeout = f64::from(chosen("timeout").number());
    let window = u64::from(chosen("window").number());
    f.undisturbed
        && f.delay_max.is_some_and(|t| 2.0 * t < timeout)
        && chosen("every").is("1")
        && chosen("fanout").is("0")
        && f.served.iter().all(|(_, sent)| *sent <= window)
}

/// The rules that a mistake switch breaks. Without a mistake each of them holds.
impl Ack {
    fn makes(&self, mistake: &Mistake) -> bool {
        self.settings.mistake == Some(mistake.name)
    }

    /// Whether a receiver recognises the copy of a message: `is_older` if a later one has arrived.
    pub(super) fn recognises_copy(&self, is_older: bool) -> bool {
        let forgotten = self.makes(&TWICE) || self.makes(&TRIMMED) && is_older;
        !forgotten
    }

    /// Whether a receiver confirms a copy, too: the first confirmation may be lost.
    pub(super) fn confirms_copies(&self) -> bool {
        !self.makes(&MUTE)
    }

    /// Whether a sender gives up silent and suspected receivers.
    pub(super) fn gives_up(&self) -> bool {
        !self.makes(&PATIENT)
    }

    /// Whether a restart begins a new incarnation.
    pub(super) fn counts_restarts(&self) -> bool {
        !self.makes(&ONE_LIFE)
    }
}
