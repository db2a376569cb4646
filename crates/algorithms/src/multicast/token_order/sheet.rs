//! The data sheet of the token ring order, and the rules that its mistake switches break.

use std::collections::VecDeque;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::{Settings, Token, TokenOrder, Visit};
use crate::multicast::Multicast;
use crate::multicast::number_map::NumberMap;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

pub(super) const TWICE: Mistake = Mistake {
    name: "token-twice",
    what: "a repeated token is taken for a new one: two members give the same numbers",
    breaks: "total order",
    caught_by: "-n 2 --requests 1,2 --duplicate 1 --synchronous",
};
pub(super) const NO_COPY: Mistake = Mistake {
    name: "no-copy",
    what: "a member that passes the token on keeps no copy: a lost token is lost for good",
    breaks: "quiescence",
    caught_by: "-n 2 --requests 1,0 --loss 1 --synchronous",
};
pub(super) const ONE_VISIT: Mistake = Mistake {
    name: "one-visit",
    what: "a message that the token reports as received is taken for safe before a second round",
    breaks: "uniform delivery",
    caught_by: "-n 2 --requests 1,0 --set delivery=safe --synchronous",
};
pub(super) const SILENT_LAG: Mistake = Mistake {
    name: "silent-lag",
    what: "a member that lacks a message does not lower the mark up to which all have received",
    breaks: "uniform delivery",
    caught_by: "-n 2 --requests 1,0 --loss 1 --set delivery=safe --synchronous",
};

pub(super) const AGREED: &[Guarantee] = &[
    Guarantee::Validity,
    Guarantee::Integrity,
    Guarantee::FifoOrder,
    Guarantee::CausalOrder,
    Guarantee::TotalOrder,
];
pub(super) const SAFE: &[Guarantee] = &[
    Guarantee::Validity,
    Guarantee::Integrity,
    Guarantee::FifoOrder,
    Guarantee::CausalOrder,
    Guarantee::TotalOrder,
    Guarantee::SafeDelivery,
];

pub(super) const SHEET: DataSheet = DataSheet {
    name: "token-order",
    title: "Token ring order (Totem)",
    idea: "The token's holder numbers its messages; the token also asks for repairs and shows what all have received.",
    source: "Y. Amir, L. Moser, P. Melliar-Smith, D. Agarwal, P. Ciarfella, TOCS 13(4), 1995",
    assumes: &[Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "0",
            when: "no process multicasts: the token rests",
            bound: |f| (f.entries() == 0.0).then_some(Bound::Exactly(0.0)),
        },
        Cost {
            metric: Metric::Delivery,
            formula: "(n + 3)T; safe (5n + 4)T",
            when: "delays have a limit, no message is lost, and no process has more than a burst to send",
            bound: delivery,
        },
    ],
    guarantees: AGREED,
    fence: None,
    mistakes: &[TWICE, NO_COPY, ONE_VISIT, SILENT_LAG],
    switches: &[
        Switch {
            name: "delivery",
            values: &["agreed", "safe"],
            what: "when it is delivered: in its turn, or once every member has it",
        },
        Switch {
            name: "burst",
            values: &["17", "<number>"],
            what: "how many messages a member sends in one visit of the token",
        },
        Switch {
            name: "window",
            values: &["50", "<number>"],
            what: "how many messages all send in one round of the token",
        },
        Switch {
            name: "asking",
            values: &["patient", "at-once"],
            what: "whether a number is asked for on the second visit that lacks it, or on the first",
        },
    ],
};

fn delivery(f: &Facts<'_>) -> Option<Bound> {
    let number = |name| u64::from(f.setup.chosen(&SHEET, name).number());
    let alone = f.served.iter().all(|(_, sent)| *sent <= number("burst"))
        && f.entries() <= number("window") as f64;
    let safe = f.setup.chosen(&SHEET, "delivery").is("safe");
    let times = if safe { 5.0 * f.n() + 4.0 } else { f.n() + 3.0 };
    f.delay_max.filter(|_| alone && f.undisturbed).map(|t| Bound::AtMost(times * t))
}

impl Inspect for TokenOrder {
    fn at_rest(&self) -> bool {
        self.backlog.is_empty() && self.bodies.is_empty() && self.sent_token.is_none()
    }
}

impl Algorithm for TokenOrder {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let first = setup.group.id(0);
        let n = setup.group.len();
        let successor = setup.group.id((setup.place(me) + 1) % n);
        let number = |name| setup.chosen(&SHEET, name).number();
        Self {
            backlog: VecDeque::new(),
            bodies: NumberMap::default(),
            aru: 0,
            delivered: 0,
            safe: 0,
            last_visit: Visit::default(),
            held_token: (me == first).then(Token::default),
            sent_token: None,
            resting: true,
            stalled: 0,
            ring_broken: false,
            settings: Fixed(Settings {
                first,
                successor,
                safe: setup.chosen(&SHEET, "delivery").is("safe"),
                burst: number("burst"),
                window: number("window"),
                patient: setup.chosen(&SHEET, "asking").is("patient"),
                round: setup.unit * (n as u32 + 3),
                mistake: setup.mistake,
            }),
        }
    }

    fn sheet(setup: &Setup) -> DataSheet {
        let safe = setup.chosen(&SHEET, "delivery").is("safe");
        DataSheet { guarantees: if safe { SAFE } else { AGREED }, ..SHEET }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["burst", "window"])
    }
}

/// The rules that a mistake switch breaks. Without a mistake each of them holds.
impl TokenOrder {
    fn makes(&self, mistake: &Mistake) -> bool {
        self.settings.mistake == Some(mistake.name)
    }

    /// Whether a member recognises a repeated token by its serial number.
    pub(super) fn recognises_copy(&self) -> bool {
        !self.makes(&TWICE)
    }

    /// Whether a member keeps a copy of the token that it passes on.
    pub(super) fn keeps_copy(&self) -> bool {
        !self.makes(&NO_COPY)
    }

    /// Whether a message is safe only after two visits of the token.
    pub(super) fn waits_two_visits(&self) -> bool {
        !self.makes(&ONE_VISIT)
    }

    /// Whether a member that lacks a message lowers the token's mark.
    pub(super) fn reports_lag(&self) -> bool {
        !self.makes(&SILENT_LAG)
    }
}
