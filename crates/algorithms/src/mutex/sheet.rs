//! The data sheet of the problem: mutual exclusion.

use crate::problem::{Better, Bounded, Case, Column, Load, ProblemSheet, Property};

/// Mutual exclusion as commands and tables see it.
pub const SHEET: ProblemSheet = ProblemSheet {
    name: "mutex",
    properties: &[
        Property::EXCLUSION,
        Property {
            word: "token",
            broken_by: &["one token"],
            meaning: "there is at most one token",
        },
        Property::FENCE,
        Property {
            word: "order",
            broken_by: &["happened-before order"],
            meaning: "a request is served after all requests that causally precede it",
        },
        Property {
            word: "bypass",
            broken_by: &["bounded bypass"],
            meaning: "no request is overtaken more than K times (bypass:K)",
        },
        Property {
            word: "overtaking",
            broken_by: &["bounded overtaking"],
            meaning: "no request is overtaken more than K times by processes that knew of it when they asked",
        },
    ],
    guarantees: &["exclusion", "deadlock", "starvation", "order", "quiescence"],
    safety: &["mutual exclusion", "growing fences"],
    holds: true,
    takes_turns: true,
    workloads: &[
        Case { name: "one enters, once", last_asks: Some(1), ..Case::BLANK },
        Case { name: "one enters, three times", last_asks: Some(3), ..Case::BLANK },
        Case { name: "all enter, once", entries: Some(1), ..Case::BLANK },
        Case { name: "all enter, ten times", entries: Some(10), ..Case::BLANK },
    ],
    // Messages past the algorithm are what makes order visible.
    contests: &[
        Case {
            name: "low load",
            load: Some(Load::Low),
            steady: true,
            app_messages: Some(1),
            ..Case::BLANK
        },
        Case {
            name: "high load",
            load: Some(Load::High),
            steady: true,
            app_messages: Some(1),
            ..Case::BLANK
        },
    ],
    columns: &[
        Column {
            name: "messages",
            unit: "per entry",
            measure: Column::MESSAGES_PER_EACH,
            bound: Bounded::PerEach("entries"),
            ..Column::BLANK
        },
        Column {
            name: "sync delay",
            unit: "T",
            means: "from an exit to the next entry, if a process waits at the exit, with the number of such \
                    hand-overs in all runs",
            of: "hand-overs",
            measure: "sync_delay.mean",
            bound: Bounded::By("sync_delay"),
            is_delay: true,
            ..Column::BLANK
        },
        Column {
            name: "response",
            unit: "T",
            means: "from request to exit; under low load of requests that met no other, as in the books",
            measure: "response.mean",
            measure_low: Some("lone_response.mean"),
            bound: Bounded::Response,
            ..Column::BLANK
        },
        Column {
            name: "throughput",
            unit: "entries/T",
            better: Better::More,
            limit: "at least",
            measure: "throughput",
            bound: Bounded::Throughput,
            ..Column::BLANK
        },
        Column {
            name: "bypass",
            unit: "entries",
            means: "fairness: the most entries between a request and its own",
            measure: "max_bypass",
            ..Column::BLANK
        },
        Column {
            name: "fairness",
            unit: "Jain",
            better: Better::More,
            means: "Jain's index of the clients' mean waits: 1 if all wait as long, 1/n if only one waits",
            measure: "fairness.waits",
            ..Column::BLANK
        },
        Column {
            name: "inversions",
            unit: "entries",
            means: "order: entries before one that was asked for earlier, causally",
            measure: "order_inversions",
            ..Column::BLANK
        },
    ],
    ..ProblemSheet::BLANK
};
