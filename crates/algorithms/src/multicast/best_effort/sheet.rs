//! The data sheet of Best-effort multicast: what it assumes, costs and promises, and its mistake switches.

use konklave_process::topology::Shape;
use konklave_process::{Inspect, ProcessId};

use super::BestEffort;
use crate::multicast::Multicast;
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const FORGETS_ITSELF: Mistake = Mistake {
    name: "forgets-itself",
    what: "the sender does not deliver its own message",
    breaks: "deadlock",
    caught_by: "-n 2 --requests 1,0",
};

const SHEET: DataSheet = DataSheet {
    name: "best-effort",
    title: "Best-effort multicast",
    idea: "The sender sends the message to every process; a process delivers it when it arrives.",
    source: "lecture \"Übereinstimmung und Koordination\", \"Koordination durch Gruppenkommunikation\"",
    assumes: &[Assumption::Reliable, Assumption::NoDuplicates, Assumption::KnownMembership],
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
    guarantees: &[Guarantee::Validity, Guarantee::Integrity],
    fence: None,
    mistakes: &[FORGETS_ITSELF],
    switches: &[],
};

impl Inspect for BestEffort {}

impl Algorithm for BestEffort {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self { forgets_itself: setup.makes(&FORGETS_ITSELF) }
    }
}

/// The rule that a mistake switch breaks.
impl BestEffort {
    /// Whether the sender delivers its own message.
    pub(super) fn delivers_own(&self) -> bool {
        !*self.forgets_itself
    }
}
