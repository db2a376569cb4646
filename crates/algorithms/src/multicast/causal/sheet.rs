//! The data sheet of Causal multicast: what it assumes, costs and promises, and its mistake switches.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::{Causal, Clock};
use crate::multicast::Multicast;
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

pub(super) const FIFO_ONLY: Mistake = Mistake {
    name: "fifo-only",
    what: "only the sender's own entry is compared, not what it had delivered of others",
    breaks: "causal order",
    caught_by: "-n 3 --requests 1,1,0",
};
pub(super) const ONE_LOOK: Mistake = Mistake {
    name: "one-look",
    what: "what is held back is not looked at again when something was delivered",
    breaks: "validity",
    caught_by: "-n 2 --requests 2,0 --no-fifo",
};

const SHEET: DataSheet = DataSheet {
    name: "causal",
    title: "Causal multicast",
    idea: "A vector clock on each message holds it back until its causes were delivered.",
    source: "K. Birman, A. Schiper, P. Stephenson, TOCS 9(3), 1991",
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
            formula: "T, as causes travel no longer than their effects",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(Bound::AtMost),
        },
    ],
    guarantees: &[
        Guarantee::Validity,
        Guarantee::Integrity,
        Guarantee::FifoOrder,
        Guarantee::CausalOrder,
    ],
    fence: None,
    mistakes: &[FIFO_ONLY, ONE_LOOK],
    switches: &[],
};

impl Inspect for Causal {
    fn at_rest(&self) -> bool {
        self.held.is_empty()
    }
}

impl Algorithm for Causal {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self { delivered: Clock::new(), held: BTreeMap::new(), mistake: Fixed(setup.mistake) }
    }
}
