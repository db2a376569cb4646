//! The data sheet of the problem: electing a leader.

use konklave_process::{ClientEvent, Condition, Lasting};

use crate::problem::{Bounded, Case, Column, ProblemSheet, Property};

/// A process leads.
pub const LEADING: Condition = Condition {
    what: Lasting::Leading,
    name: "leader",
    short: "",
    begins: &[ClientEvent::Indication("Leading")],
    ends: &[ClientEvent::Indication("Following"), ClientEvent::Indication("Deposed")],
};

/// A process follows a leader.
pub const FOLLOWING: Condition = Condition {
    what: Lasting::Following,
    name: "follows {leader}",
    short: "",
    begins: &[ClientEvent::Indication("Following")],
    ends: &[ClientEvent::Indication("Leading"), ClientEvent::Indication("Deposed")],
};

/// Elections as commands and tables see them.
pub const SHEET: ProblemSheet = ProblemSheet {
    name: "election",
    properties: &[
        Property::FENCE,
        Property::UNIQUE,
        Property::AGREEMENT,
        Property::STABILITY,
        Property::ALIVE,
        Property::new("winner", &["right winner"], "the right one wins"),
        Property::TERMINATION,
        Property::new(
            "tree",
            &["acyclic parents", "spanning tree"],
            "parents form no cycle, in the end a tree",
        ),
    ],
    guarantees: &["unique", "agreement", "termination", "livelock", "quiescence"],
    at_end: &["agreement", "termination", "spanning tree"],
    conditions: &[LEADING, FOLLOWING],
    one_shot: true,
    workloads: &[
        Case { name: "one starts", initiators: Some("0"), ..Case::BLANK },
        Case { name: "all start, ids ascending", ids: Some("asc"), ..Case::BLANK },
        Case { name: "all start, ids descending", ids: Some("desc"), ..Case::BLANK },
        Case { name: "all start, ids random", ids: Some("random"), ..Case::BLANK },
    ],
    contests: &[
        Case { name: "one starts", initiators: Some("1x"), ids: Some("random"), ..Case::BLANK },
        Case { name: "all start", initiators: Some("all"), ids: Some("random"), ..Case::BLANK },
    ],
    columns: &[
        Column {
            name: "messages",
            means: "all messages; a leader that keeps its office by messages sends them until the run is cut off",
            measure: "messages",
            bound: Bounded::By("messages"),
            ..Column::BLANK
        },
        Column {
            name: "one leads after",
            unit: "T",
            means: "from the first start until exactly one process leads, for good",
            measure: "time_to_leader",
            ..Column::BLANK
        },
        Column {
            name: "all know after",
            unit: "T",
            means: "from the first start until the last process knows the leader",
            measure: "time_to_all",
            bound: Bounded::By("time"),
            is_delay: true,
            ..Column::BLANK
        },
    ],
    has_loop: |measure| measure("looped").is_some_and(|looped| looped > 0.0),
    is_complete: |measure, survivors| {
        measure("agreeing").is_none_or(|agreeing| agreeing as usize == survivors)
    },
    ..ProblemSheet::BLANK
};
