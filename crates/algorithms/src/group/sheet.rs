//! The data sheet of the problem: what a group with views offers.

use crate::problem::{Bounded, Column, CostMeasures, ProblemSheet, Property};
use crate::{Switch, election, mutex};

/// The switches that all algorithms over virtual synchrony share.
pub(super) const HEARTBEAT: Switch = Switch {
    name: "heartbeat",
    values: &["0", "<number>"],
    what: "the period in T; 0: nothing is sent again, and only the host's detector reports crashes",
};
pub(super) const RETRY: Switch =
    Switch { name: "retry", values: &["on", "off"], what: "whether attempts are repeated" };
pub(super) const JOINERS: Switch =
    Switch { name: "joiners", values: &["none", "<text>"], what: "the processes that join later" };
pub(super) const LEAVERS: Switch = Switch {
    name: "leavers",
    values: &["none", "<text>"],
    what: "the processes that leave in the end",
};
pub(super) const REFORM: Switch = Switch {
    name: "reform",
    values: &["none", "<text>"],
    what: "the processes that ask for a new view",
};
pub(super) const REJOIN: Switch = Switch {
    name: "rejoin",
    values: &["off", "on"],
    what: "whether an excluded process joins again",
};

/// Groups as commands and tables see them.
pub const SHEET: ProblemSheet = ProblemSheet {
    name: "group",
    properties: &[
        Property::EXCLUSION,
        Property::FENCE,
        Property::UNIQUE,
        Property::AGREEMENT,
        Property::STABILITY,
        Property::ALIVE,
        Property::new(
            "views",
            &["view agreement", "growing views", "self-inclusion"],
            "all members agree on the views",
        ),
        Property::new(
            "synchrony",
            &["virtual synchrony", "self-delivery", "sending view"],
            "no message crosses a view change",
        ),
        Property::TOTAL,
        Property::UNIFORM,
        Property::new(
            "delivery",
            &["no gaps", "integrity"],
            "each message once, in the sender's order",
        ),
        Property::new(
            "refusal",
            &["refused though free"],
            "a request that does not wait is refused only if another process asked, too",
        ),
        Property::new("loss", &["told of loss"], "a holder that loses its lock is told so"),
        Property::new(
            "progress",
            &["view progress"],
            "in the end all live members are in one view",
        ),
        Property::new(
            "groups",
            &["one group at a time", "grants before founding"],
            "no two groups can decide at the same time",
        ),
        Property::TERMINATION,
        Property::INTEGRITY,
    ],
    guarantees: &[],
    at_end: &["agreement", "termination"],
    conditions: &[mutex::WAITING, mutex::INSIDE, election::LEADING, election::FOLLOWING],
    measures: CostMeasures { entries: "entries", ..CostMeasures::NONE },
    holds: true,
    rivals: false,
    workloads: &[],
    columns: &[
        Column {
            name: "messages",
            measure: "messages",
            bound: Bounded::By("messages"),
            ..Column::BLANK
        },
        Column {
            name: "delivery",
            unit: "T",
            means: "from sending to delivery",
            measure: "latency_mean",
            bound: Bounded::By("entry_delay"),
            ..Column::BLANK
        },
        Column {
            name: "hand-over",
            unit: "T",
            means: "from a release to the next grant, when a process waits",
            measure: "hand_over_mean",
            bound: Bounded::By("sync_delay"),
            ..Column::BLANK
        },
        Column {
            name: "view change",
            unit: "T",
            means: "from the first member that stops to the last that goes on in the next view",
            measure: "change_max",
            bound: Bounded::By("time"),
            ..Column::BLANK
        },
    ],
    ..ProblemSheet::BLANK
};
