//! The data sheet of FIFO multicast: what it assumes, costs and promises, and its mistake switches.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::Fifo;
use crate::multicast::Multicast;
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

pub(super) const ARRIVAL: Mistake = Mistake {
    name: "arrival-order",
    what: "a message is delivered on arrival, as if one connection could not overtake another",
    breaks: "fifo order",
    caught_by: "-n 2 --requests 2,0 --no-fifo",
};
pub(super) const FORGETFUL: Mistake = Mistake {
    name: "drops-early",
    what: "a message that arrives before its predecessor is dropped instead of held",
    breaks: "validity",
    caught_by: "-n 2 --requests 2,0 --no-fifo",
};

const SHEET: DataSheet = DataSheet {
    name: "fifo",
    title: "FIFO multicast",
    idea: "Number the messages of each sender and deliver them in that order.",
    source: "V. Hadzilacos, S. Toueg, \"Fault-tolerant broadcasts\", 1993",
    assumes: &[Assumption::Reliable, Assumption::KnownMembership],
    topologies: &[Shape::Connected],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "n − 1 for each multicast",
            when: "always",
            bound: |f| Some(Bound::Exactly(f.entries() * (f.n() - 1.0))),
        },
        Cost {
            metric: Metric::Delivery,
            formula: "T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(Bound::AtMost),
        },
    ],
    guarantees: &[Guarantee::Validity, Guarantee::Integrity, Guarantee::FifoOrder],
    fence: None,
    mistakes: &[ARRIVAL, FORGETFUL],
    switches: &[],
};

impl Inspect for Fifo {
    fn at_rest(&self) -> bool {
        self.streams.values().all(|stream| stream.out_of_order.is_empty())
    }
}

impl Algorithm for Fifo {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self { sent: 0, streams: BTreeMap::new(), mistake: Fixed(setup.mistake) }
    }
}

/// The rules that a mistake switch breaks. Without a mistake each of them holds.
impl Fifo {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// Whether a message waits until its predecessor is delivered.
    pub(super) fn waits_for_predecessor(&self) -> bool {
        !self.makes(&ARRIVAL)
    }

    /// Whether a message that arrives before its predecessor is kept.
    pub(super) fn keeps_out_of_order(&self) -> bool {
        !self.makes(&FORGETFUL)
    }
}
