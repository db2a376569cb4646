//! The data sheet of the problem: detecting crashes.

use crate::problem::{Case, Column, ProblemSheet, Property};

/// Failure detectors as commands and tables see them.
pub const SHEET: ProblemSheet = ProblemSheet {
    name: "detector",
    properties: &[
        Property::ACCURACY,
        Property::new(
            "completeness",
            &["completeness", "consistency"],
            "every crashed process is suspected in the end",
        ),
    ],
    guarantees: &[],
    asks: false,
    workloads: &[],
    // Without a crash there is nothing to detect.
    contests: &[Case { name: "one crashes", last_crashes: Some(20), ..Case::BLANK }],
    columns: &[
        Column {
            name: "messages",
            unit: "per T",
            measure: Column::MESSAGES_PER_TIME,
            ..Column::BLANK
        },
        Column {
            name: "detection",
            unit: "T",
            means: "from a crash to the suspicion of each of the others",
            measure: "detection_mean",
            is_delay: true,
            ..Column::BLANK
        },
        Column {
            name: "false alarms",
            unit: "suspicions",
            means: "suspicions of processes that were up",
            measure: "false_suspicions",
            ..Column::BLANK
        },
    ],
    ..ProblemSheet::BLANK
};
