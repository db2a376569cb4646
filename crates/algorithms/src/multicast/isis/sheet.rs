//! The data sheet of ISIS ABCAST: assumptions, costs and guarantees.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::Isis;
use crate::multicast::Multicast;
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

pub(super) const NO_TIES: Mistake = Mistake {
    name: "no-tie-break",
    what: "of equal priorities each member delivers its own message first: the id does not break the tie",
    breaks: "total order",
    caught_by: "-n 2 --requests 1,1",
};
pub(super) const OWN_ONLY: Mistake = Mistake {
    name: "own-proposals-only",
    what: "a proposal exceeds the member's own proposals, but not the final priorities that it received",
    breaks: "total order",
    caught_by: "-n 3 --requests 1,1,1",
};
pub(super) const SKIPS: Mistake = Mistake {
    name: "skips",
    what: "a message with a final priority is delivered, although the priority of one before it is not final",
    breaks: "total order",
    caught_by: "-n 2 --requests 1,1",
};

const SHEET: DataSheet = DataSheet {
    name: "isis",
    title: "ISIS ABCAST",
    idea: "Every member proposes a priority for a message, and the highest is final; messages are delivered by priority.",
    source: "K. Birman, T. Joseph, TOCS 5(1), 1987",
    assumes: &[
        Assumption::Reliable,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "3(n − 1) for each multicast",
            when: "always",
            bound: |f| Some(Bound::Exactly(3.0 * f.entries() * (f.n() - 1.0))),
        },
        Cost {
            metric: Metric::Delivery,
            formula: "3T, and behind other messages up to 5T, or 6T if delays vary",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(if f.steady { 5.0 } else { 6.0 } * t)),
        },
    ],
    guarantees: &[
        Guarantee::Validity,
        Guarantee::Integrity,
        Guarantee::FifoOrder,
        Guarantee::CausalOrder,
        Guarantee::TotalOrder,
    ],
    fence: None,
    mistakes: &[NO_TIES, OWN_ONLY, SKIPS],
    switches: &[],
};

impl Inspect for Isis {
    fn at_rest(&self) -> bool {
        self.queue.is_empty() && self.ballots.is_empty()
    }
}

impl Algorithm for Isis {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            sent: 0,
            highest: 0,
            queue: BTreeMap::new(),
            seen: BTreeMap::new(),
            ballots: BTreeMap::new(),
            mistake: Fixed(setup.mistake),
        }
    }
}

/// The rules that a mistake changes.
impl Isis {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// Whether the proposer's id orders messages of equal priority.
    pub(super) fn breaks_ties_by_id(&self) -> bool {
        !self.makes(&NO_TIES)
    }

    /// Whether a proposal exceeds all final priorities that the member has received.
    pub(super) fn exceeds_final(&self) -> bool {
        !self.makes(&OWN_ONLY)
    }

    /// Whether a message waits until the priorities of all messages before it are final.
    pub(super) fn waits_for_final(&self) -> bool {
        !self.makes(&SKIPS)
    }
}
