//! Statements of the project report on its program.

use super::super::{Statement, Verdict};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Ring program (report)",
        name: "ring-buffer-mutex",
        says: "the mutex of send-and-wait makes the buffer safe",
        command: "buffer printed",
        reads: "/shortest/false_taken",
        finds: "6",
        verdict: Verdict::Wrong,
        remark: "the controller's put is outside it: after six steps its message is taken, and the neighbour learns that its own was",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-buffer-slot",
        says: "a sender waits until its message was taken, or too much time has passed",
        command: "buffer printed",
        reads: "/shortest/waits_for_ever",
        finds: "3",
        verdict: Verdict::Wrong,
        remark: "the wait for the slot has no limit: behind a message that a failed worker never takes, one waits for ever",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-buffer-timeout",
        says: "when time runs out, the neighbour has failed",
        command: "buffer printed",
        reads: "/shortest/taken_twice",
        finds: "4",
        verdict: Verdict::Imprecise,
        remark: "it may be slow, and takes the message that was sent elsewhere, too",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-buffer-ours",
        says: "(ours) tickets, one deadline, and what timed out is withdrawn",
        command: "buffer ticket",
        reads: "/shortest/false_taken",
        finds: "none",
        verdict: Verdict::Holds,
        remark: "no fault in any order of the threads",
    },
];
