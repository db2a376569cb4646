//! Statements of the sources about the bully algorithm.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Bully",
        name: "bully-kinds",
        says: "three kinds of messages: election, answer, coordinator",
        shown: &[Shown {
            case: "",
            asks: &[("run bully -n 5 --down 4 --initiators 0", "/messages/by_kind")],
            holds: |m| m.keys() == ["Answer", "Coordinator", "Election"],
        }],
        remark: "",
    },
    Statement {
        chapter: "Bully",
        name: "bully-concurrent",
        says: "any process may start the election, several at once",
        shown: &[
            Shown {
                case: "one of five and all at once: messages",
                asks: &[
                    ("run bully -n 5 --down 4 --initiators 0", "/messages/sent"),
                    ("run bully -n 5 --down 4 --initiators 0,1,2,3", "/messages/sent"),
                ],
                holds: |m| m.same(),
            },
            Shown {
                case: "every schedule of three",
                asks: &[("check bully -n 3 --synchronous", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "and it costs no more",
    },
    Statement {
        chapter: "Bully",
        name: "bully-example",
        says: "example: of eight, 7 is dead and 4 notices; 5 and 6 answer, and 6 is the coordinator",
        shown: &[
            Shown {
                case: "leader",
                asks: &[("run bully -n 8 --down 7 --initiators 4", "/election/leader")],
                holds: |m| m.eq(6.0),
            },
            Shown {
                case: "questions, answers, announcements",
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
        says: "the code elects the highest that is alive",
        shown: &[
            Shown {
                case: "with a guard and a second timeout, where timeouts are right",
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
                case: "\"do something else\" after an ANSWER, as printed, if the one that answered crashes",
                asks: &[(
                    "check bully --mistake no-second-timeout -n 3 --down 2 --initiators 0 --crash 1 --synchronous --property deadlock",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "one must wait for the coordinator with a second timeout",
    },
    Statement {
        chapter: "Bully",
        name: "bully-worst",
        says: "worst case: O(n²) messages",
        shown: &[
            Shown {
                case: "the lowest notices: n² − n − 1",
                asks: &[("run bully -n 8 --down 7 --initiators 0", "/messages/sent")],
                holds: |m| m.eq(m.n() * m.n() - m.n() - 1.0),
            },
            Shown {
                case: "all notice, one after the other: less than n²",
                asks: &[(
                    "run bully -n 5 --down 4 --script 0@0,1@50,2@100,3@150",
                    "/messages/sent",
                )],
                holds: |m| m.x() < m.n() * m.n(),
            },
            Shown {
                case: "every ELECTION starts an election, as printed: less than n²",
                asks: &[(
                    "run bully -n 8 --down 7 --initiators 0 --mistake no-guard",
                    "/messages/sent",
                )],
                holds: |m| m.x() < m.n() * m.n(),
            },
        ],
        remark: "whoever notices when the election is over opens it again, so all together cost O(n³); without a guard the cost is exponential",
    },
    Statement {
        chapter: "Bully",
        name: "bully-best",
        says: "best case: n − 2 messages",
        shown: &[
            Shown {
                case: "announcements",
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
        remark: "the question to the dead coordinator is sent, too",
    },
];
