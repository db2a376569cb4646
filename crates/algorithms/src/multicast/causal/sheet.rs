//! The data sheet of Causal multicast: what it assumes, costs and promises, and its mistake switches.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::{Causal, Clock};
use crate::multicast::Multicast;
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

pub(super) const FIFO_ONLY: Mistake = Mistake {
    name: "fifo-only",
    what: "only the sender's own entry of the clock is compared, not those of other senders",
    breaks: "causal order",
    caught_by: "-n 3 --requests 1,1,0",
};
pub(super) const ONE_LOOK: Mistake = Mistake {
    name: "one-look",
    what: "a delivery does not release the messages that waited for it",
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

/// The rules that a mistake switch breaks. Without a mistake each of them holds.
impl Causal {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// Whether a message waits for its causes of other senders.
    pub(super) fn waits_for_others(&self) -> bool {
        !self.makes(&FIFO_ONLY)
    }

    /// Whether a delivery releases the messages that waited for it.
    pub(super) fn looks_again(&self) -> bool {
        !self.makes(&ONE_LOOK)
    }
}
