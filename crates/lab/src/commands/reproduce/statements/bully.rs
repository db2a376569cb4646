//! Statements of the sources about the bully algorithm.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Bully",
        name: "bully-kinds",
        says: "there are three kinds of messages: ELECTION, ANSWER, COORDINATOR",
        shown: &[Shown {
            case: "messages of a run by kind",
            asks: &[("run bully -n 5 --down 4 --initiators 0", "/messages/by_kind")],
            holds: |m| m.keys() == ["Answer", "Coordinator", "Election"],
        }],
        remark: "",
    },
    Statement {
        chapter: "Bully",
        name: "bully-concurrent",
        says: "any process may start an election, and several may start at once",
        shown: &[
            Shown {
                case: "five processes, one or all four live ones start: messages",
                asks: &[
                    ("run bully -n 5 --down 4 --initiators 0", "/messages/sent"),
                    ("run bully -n 5 --down 4 --initiators 0,1,2,3", "/messages/sent"),
                ],
                holds: |m| m.same(),
            },
            Shown {
                case: "three processes, every schedule",
                asks: &[("check bully -n 3 --synchronous", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "Several initiators cost no more messages than one.",
    },
    Statement {
        chapter: "Bully",
        name: "bully-example",
        says: "example: of eight processes, 7 has crashed and 4 notices it; 5 and 6 answer, and 6 becomes coordinator",
        shown: &[
            Shown {
                case: "id of the elected coordinator",
                asks: &[("run bully -n 8 --down 7 --initiators 4", "/election/leader")],
                holds: |m| m.eq(6.0),
            },
            Shown {
                case: "ELECTION, ANSWER, COORDINATOR messages",
                asks: &[
                    ("run bully -n 8 --down 7 --initiators 4", "/messages/by_kind/Election"),
                    ("run bully -n 8 --down 7 --initiators 4", "/messages/by_kind/Answer"),
                    ("run bully -n 8 --down 7 --initiators 4", "/messages/by_kind/Coordinator"),
                ],
                holds: |m| m.at(0) == 6.0 && m.at(1) == 3.0 && m.at(2) == 6.0,
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Bully",
        name: "bully-code",
        says: "the printed code elects the highest process that is alive",
        shown: &[
            Shown {
                case: "with a guard against a second election and with a second timeout, in a synchronous system",
                asks: &[
                    ("check bully -n 3 --synchronous", "/verdict"),
                    (
                        "check bully -n 3 --down 2 --initiators 0 --crash 1 --synchronous --property deadlock",
                        "/verdict",
                    ),
                ],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed (\"do something else\" after an ANSWER), when the process that answered crashes",
                asks: &[(
                    "check bully --mistake no-second-timeout -n 3 --down 2 --initiators 0 --crash 1 --synchronous --property deadlock",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "A process that received an ANSWER must wait for COORDINATOR with a second timeout.",
    },
    Statement {
        chapter: "Bully",
        name: "bully-worst",
        says: "the worst case is O(n²) messages",
        shown: &[
            Shown {
                case: "the lowest process notices the crash: n² − n − 1 messages",
                asks: &[("run bully -n 8 --down 7 --initiators 0", "/messages/sent")],
                holds: |m| m.eq(m.n() * m.n() - m.n() - 1.0),
            },
            Shown {
                case: "all notice it, one after the other: fewer than n² messages",
                asks: &[(
                    "run bully -n 5 --down 4 --script 0@0,1@50,2@100,3@150",
                    "/messages/sent",
                )],
                holds: |m| m.x() < m.n() * m.n(),
            },
            Shown {
                case: "as printed, each ELECTION starts an election: fewer than n² messages",
                asks: &[(
                    "run bully -n 8 --down 7 --initiators 0 --mistake no-guard",
                    "/messages/sent",
                )],
                holds: |m| m.x() < m.n() * m.n(),
            },
        ],
        remark: "A process that notices the crash after an election starts another one, so n of them cost O(n³) messages. Without a guard the cost is exponential.",
    },
    Statement {
        chapter: "Bully",
        name: "bully-best",
        says: "the best case is n − 2 messages",
        shown: &[
            Shown {
                case: "COORDINATOR messages alone",
                asks: &[(
                    "run bully -n 5 --down 4 --initiators 3",
                    "/messages/by_kind/Coordinator",
                )],
                holds: |m| m.eq(m.n() - 2.0),
            },
            Shown {
                case: "all messages",
                asks: &[("run bully -n 5 --down 4 --initiators 3", "/messages/sent")],
                holds: |m| m.eq(m.n() - 2.0),
            },
        ],
        remark: "The ELECTION message to the crashed coordinator counts, too.",
    },
];
