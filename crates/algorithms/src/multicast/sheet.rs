//! The data sheet of the problem: reliable and ordered multicast.

use crate::problem::{Bounded, Case, Column, ProblemSheet, Property};

/// Multicast as commands and tables see it.
pub const SHEET: ProblemSheet = ProblemSheet {
    name: "multicast",
    properties: &[
        Property::AGREEMENT,
        Property::TOTAL,
        Property::UNIFORM,
        Property::new(
            "validity",
            &["validity"],
            "what one that stays up multicasts reaches all that stay up",
        ),
        Property::INTEGRITY,
        Property::new("fifo", &["fifo order"], "the messages of one sender come in its order")
            .of_order(),
        Property::new("causal", &["causal order"], "no message comes before what led to it")
            .of_order(),
        Property::ACCURACY,
    ],
    guarantees: &[],
    at_end: &["agreement"],
    workloads: &[
        Case { name: "one sends, once", last_asks: Some(1), ..Case::BLANK },
        Case { name: "one sends, ten times", last_asks: Some(10), ..Case::BLANK },
        Case { name: "all send, three times", entries: Some(3), ..Case::BLANK },
    ],
    columns: &[
        Column {
            name: "messages",
            unit: "per multicast",
            means: "all that were sent, heartbeats and session messages, too, until nothing was left to say",
            measure: Column::MESSAGES_PER_EACH,
            bound: Bounded::PerEach("sent"),
            ..Column::BLANK
        },
        Column {
            name: "delivery",
            unit: "T",
            means: "from a multicast to its last delivery, where all delivered it",
            of: "multicasts",
            measure: "last_latency.mean",
            bound: Bounded::By("delivery"),
            is_delay: true,
            ..Column::BLANK
        },
        Column {
            name: "missing",
            unit: "deliveries",
            means: "deliveries that never came, at members that were up all the time",
            measure: "undelivered",
            ..Column::BLANK
        },
    ],
    is_complete: |measure, _| measure("undelivered").is_none_or(|missing| missing == 0.0),
    ..ProblemSheet::BLANK
};
