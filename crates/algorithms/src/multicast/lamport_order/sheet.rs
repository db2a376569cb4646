//! The data sheet of Total order by timestamps: what it assumes, costs and promises, and its mistake switches.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, LamportClock, ProcessId, ProcessMap};

use super::LamportOrder;
use crate::multicast::Multicast;
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

pub(super) const SILENT: Mistake = Mistake {
    name: "silent",
    what: "a member acknowledges nothing: an idle member holds up all others",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 1,0,0",
};
pub(super) const DEAF_CLOCK: Mistake = Mistake {
    name: "deaf-clock",
    what: "received timestamps do not advance the clock that messages are stamped with",
    breaks: "total order",
    caught_by: "-n 3 --requests 2,1,0",
};
pub(super) const HASTY: Mistake = Mistake {
    name: "hasty",
    what: "a message is delivered without later timestamps from the other members",
    breaks: "total order",
    caught_by: "-n 2 --requests 1,1",
};

const SHEET: DataSheet = DataSheet {
    name: "lamport-order",
    title: "Total order by timestamps",
    idea: "Deliver by timestamp, once a later one has arrived from every member.",
    source: "L. Lamport, CACM 21(7), 1978",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "n(n − 1) for each multicast",
            when: "always",
            bound: |f| Some(Bound::Exactly(f.entries() * f.n() * (f.n() - 1.0))),
        },
        Cost {
            metric: Metric::Delivery,
            formula: "2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
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
    mistakes: &[SILENT, DEAF_CLOCK, HASTY],
    switches: &[],
};

impl Inspect for LamportOrder {
    fn at_rest(&self) -> bool {
        self.queue.is_empty()
    }
}

impl Algorithm for LamportOrder {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            clock: LamportClock::default(),
            queue: BTreeMap::new(),
            latest: ProcessMap::new(&setup.group, 0),
            mistake: Fixed(setup.mistake),
        }
    }
}

/// The rules that a mistake switch breaks. Without a mistake each of them holds.
impl LamportOrder {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// Whether a member acknowledges each message.
    pub(super) fn acknowledges(&self) -> bool {
        !self.makes(&SILENT)
    }

    /// Whether messages are stamped with the Lamport clock.
    pub(super) fn stamps_by_clock(&self) -> bool {
        !self.makes(&DEAF_CLOCK)
    }

    /// Whether a message waits for a later timestamp from every member.
    pub(super) fn waits_for_all(&self) -> bool {
        !self.makes(&HASTY)
    }
}
