//! The data sheet of Fixed sequencer: what it assumes, costs and promises, and its mistake switches.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId, ProcessMap};

use super::{Delivery, Numbering, Sequencer, Settings};
use crate::multicast::Multicast;
use crate::multicast::sender_map::SenderMap;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

pub(super) const ANY_TURN: Mistake = Mistake {
    name: "any-turn",
    what: "the sequencer numbers messages on arrival, not in the order of their sender",
    breaks: "fifo order",
    caught_by: "-n 2 --requests 0,2 --no-fifo",
};
pub(super) const OWN_TURN: Mistake = Mistake {
    name: "own-first",
    what: "a sender delivers its own message at once instead of in its turn",
    breaks: "total order",
    caught_by: "-n 3 --requests 0,1,1",
};
pub(super) const TWICE: Mistake = Mistake {
    name: "twice",
    what: "the sequencer numbers a message again when it arrives again",
    breaks: "no duplication",
    caught_by: "-n 2 --requests 0,1 --duplicate 1",
};
pub(super) const HASTY: Mistake = Mistake {
    name: "hasty",
    what: "a member delivers a message that it holds, although a majority may lack it",
    breaks: "uniform delivery",
    caught_by: "-n 3 --requests 0,1,0 --set delivery=uniform",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "sequencer",
    title: "Fixed sequencer",
    idea: "One member numbers all messages; all members deliver by number.",
    source: "M. F. Kaashoek, A. S. Tanenbaum (Amoeba), ICDCS 1991",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "UB n, BB 2(n − 1); uniform n(n − 1) more, committed 2(n − 1) more",
            when: "each number goes out alone",
            bound: messages,
        },
        Cost {
            metric: Metric::Delivery,
            formula: "2T; uniform 3T, committed 4T",
            when: "delays have a limit, each number goes out alone",
            bound: delivery,
        },
    ],
    guarantees: AGREED,
    fence: None,
    mistakes: &[ANY_TURN, OWN_TURN, TWICE, HASTY],
    switches: &[
        Switch {
            name: "wire",
            values: &["ub", "bb"],
            what: "which process sends the message to all: the sequencer (ub) or its sender (bb)",
        },
        Switch {
            name: "delivery",
            values: &["agreed", "uniform", "committed"],
            what: "when it is delivered: in its turn, or once a majority has reported it to all, or to the sequencer",
        },
        Switch {
            name: "batch",
            values: &["1", "<number>"],
            what: "how many numbers go out together (bb), half a T after the first at the latest",
        },
    ],
};

pub(super) const AGREED: &[Guarantee] =
    &[Guarantee::Validity, Guarantee::Integrity, Guarantee::FifoOrder, Guarantee::TotalOrder];

pub(super) const UNIFORM: &[Guarantee] = &[
    Guarantee::Validity,
    Guarantee::Integrity,
    Guarantee::FifoOrder,
    Guarantee::TotalOrder,
    Guarantee::UniformDelivery,
];

impl Inspect for Sequencer {
    fn at_rest(&self) -> bool {
        self.bodies.is_empty() && self.order.is_empty() && self.numbering.batch.is_empty()
    }
}

impl Algorithm for Sequencer {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let delivery = match setup.chosen(&SHEET, "delivery").0 {
            "uniform" => Delivery::Uniform,
            "committed" => Delivery::Committed,
            _ => Delivery::Agreed,
        };
        let sequencer = setup.group.id(0);
        let counts = match delivery {
            Delivery::Agreed => false,
            Delivery::Uniform => true,
            Delivery::Committed => me == sequencer,
        };
        Self {
            sent: 0,
            bodies: BTreeMap::new(),
            order: BTreeMap::new(),
            delivered: 0,
            streams: SenderMap::default(),
            held: 0,
            numbering: Numbering::default(),
            holds: counts.then(|| ProcessMap::new(&setup.group, 0)),
            committed: 0,
            settings: Fixed(Settings {
                sequencer,
                bb: setup.chosen(&SHEET, "wire").is("bb"),
                delivery,
                batch: setup.chosen(&SHEET, "batch").number() as usize,
                wait: setup.unit / 2,
                mistake: setup.mistake,
            }),
        }
    }

    fn sheet(setup: &Setup) -> DataSheet {
        let agreed = setup.chosen(&SHEET, "delivery").is("agreed");
        DataSheet { guarantees: if agreed { AGREED } else { UNIFORM }, ..SHEET }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["batch"])
    }
}

pub(super) fn messages(f: &Facts<'_>) -> Option<Bound> {
    let (n, all) = (f.n(), f.entries());
    let own = all - f.entries_but(f.setup.group.id(0));
    let bb = f.setup.chosen(&SHEET, "wire").is("bb");
    let base = if bb { 2.0 * all * (n - 1.0) } else { all * n - own };
    if n == 1.0 {
        return Some(Bound::Exactly(0.0));
    }
    alone(f).then(|| match f.setup.chosen(&SHEET, "delivery").0 {
        // Confirmations may speak for several messages at once.
        "uniform" => Bound::Between(base, base + all * n * (n - 1.0)),
        "committed" => Bound::Between(base, base + 2.0 * all * (n - 1.0)),
        _ => Bound::Exactly(base),
    })
}

/// Whether each number goes out alone.
fn alone(f: &Facts<'_>) -> bool {
    f.setup.chosen(&SHEET, "batch").is("1")
}

fn delivery(f: &Facts<'_>) -> Option<Bound> {
    let times = match f.setup.chosen(&SHEET, "delivery").0 {
        "uniform" => 3.0,
        "committed" => 4.0,
        _ => 2.0,
    };
    f.delay_max.filter(|_| alone(f)).map(|t| Bound::AtMost(times * t))
}

/// The rules that a mistake switch breaks. Without a mistake each of them holds.
impl Sequencer {
    fn makes(&self, mistake: &Mistake) -> bool {
        self.settings.mistake == Some(mistake.name)
    }

    /// Whether the sequencer numbers each message once, in the order of its sender.
    pub(super) fn numbers_in_turn(&self) -> bool {
        !self.makes(&TWICE) && !self.makes(&ANY_TURN)
    }

    /// Whether a sender delivers its own messages by their numbers, as all others do.
    pub(super) fn delivers_own_in_turn(&self) -> bool {
        !self.makes(&OWN_TURN)
    }

    /// Whether a uniform delivery waits for a majority.
    pub(super) fn waits_for_majority(&self) -> bool {
        !self.makes(&HASTY)
    }
}
