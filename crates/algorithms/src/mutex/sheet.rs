//! The data sheet of the problem: mutual exclusion.

use konklave_process::{ClientEvent, Condition, Lasting};

use crate::problem::{
    Better, Bounded, Case, Column, CostMeasures, Load, Number, ProblemSheet, Property,
};

/// A client waits for its grant.
pub const WAITING: Condition = Condition {
    what: Lasting::Waiting,
    name: "waits",
    short: "",
    begins: &[ClientEvent::Request("Acquire")],
    ends: &[ClientEvent::Indication("Granted")],
};

/// A client is in the critical section.
pub const INSIDE: Condition = Condition {
    what: Lasting::Inside,
    name: "critical section",
    short: "CS",
    begins: &[ClientEvent::Indication("Granted")],
    ends: &[ClientEvent::Request("Release")],
};

/// Mutual exclusion as commands and tables see it.
pub const SHEET: ProblemSheet = ProblemSheet {
    name: "mutex",
    properties: &[
        Property::EXCLUSION,
        Property::new("token", &["one token"], "there is at most one token"),
        Property::FENCE,
        Property::new("order", &["happened-before order"], "a request is served after all requests that causally precede it").of_order(),
        Property::new("bypass", &["bounded bypass"], "no request is overtaken more than K times (bypass:K)").watching(Number::Required, |watch, most| watch.bypass = most),
        Property::new("overtaking", &["bounded overtaking"], "no request is overtaken more than K times by processes that knew of it when they asked").watching(Number::Required, |watch, most| watch.overtaking = most),
    ],
    guarantees: &["exclusion", "deadlock", "starvation", "order", "quiescence"],
    safety: &["mutual exclusion", "growing fences"],
    conditions: &[WAITING, INSIDE],
    measures: CostMeasures {
        entries: "entries",
        wait: "wait",
        response: "response",
        sync_delay: "sync_delay",
    },
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
