//! Statements of the sources about Cao and Singhal's algorithm.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-correct",
        says: "mutual exclusion without deadlock",
        shown: &[Shown {
            case: "every schedule of three that ask two arbiters",
            asks: &[(
                "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-maekawa",
        says: "algorithms of Maekawa's type have a coordination delay of at least 2T",
        shown: &[
            Shown {
                case: "Maekawa and Sanders, from 3 to 1",
                asks: &[
                    ("run maekawa -n 4 --script 0@0,3@0.5 --hold 10", "/mutex/sync_delay/max"),
                    ("run sanders -n 4 --script 2@0,0@2.1 --hold 10", "/mutex/sync_delay/max"),
                ],
                holds: |m| m.each(|x| x >= 2.0),
            },
            Shown {
                case: "Sanders, from 1 to 3",
                asks: &[("run sanders -n 4 --script 0@0,2@0.1 --hold 10", "/mutex/sync_delay/max")],
                holds: |m| m.each(|x| x >= 2.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-delay",
        says: "coordination delay: T",
        shown: &[
            Shown {
                case: "the holder knows its successor",
                asks: &[(
                    "run cao-singhal -n 4 --requests 1,0,0,1 --hold 10",
                    "/mutex/sync_delay/max",
                )],
                holds: |m| m.eq(1.0),
            },
            Shown {
                case: "the request comes too late for a TRANSFER",
                asks: &[(
                    "run cao-singhal -n 4 --script 0@0,3@2.5 --hold 1",
                    "/mutex/sync_delay/max",
                )],
                holds: |m| m.eq(1.0),
            },
        ],
        remark: "else 2T and more",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-throughput",
        says: "a shorter delay: more throughput than Maekawa's",
        shown: &[Shown {
            case: "Maekawa's, and this, in the same run",
            asks: &[
                ("run maekawa -n 13 --set quorums=13 --entries 100 --hold 5", "/mutex/throughput"),
                (
                    "run cao-singhal -n 13 --set quorums=13 --entries 100 --hold 5",
                    "/mutex/throughput",
                ),
            ],
            holds: |m| m.at(0) < m.at(1),
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-one-lock",
        says: "the holder sends one LOCKED for all TRANSFERs of an arbiter; its release says to whom",
        shown: &[
            Shown {
                case: "every schedule of three that ask two arbiters: nothing is given twice",
                asks: &[(
                    "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0 --property exclusion",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "without an inquiry after the release of a lock that went to a later request",
                asks: &[(
                    "check cao-singhal --mistake no-inquire-after-forward -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
                    "/property",
                )],
                holds: |m| m.all("deadlock"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-inquire",
        says: "INQUIRE can arrive before LOCKED",
        shown: &[Shown {
            case: "a holder that ignores it then",
            asks: &[(
                "check cao-singhal --mistake drop-early-inquire -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
                "/property",
            )],
            holds: |m| m.all("deadlock"),
        }],
        remark: "it must be kept until its lock arrives",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-failed",
        says: "FAILED goes to a request that one of higher priority displaces",
        shown: &[Shown {
            case: "without it",
            asks: &[(
                "check cao-singhal --mistake no-displaced-failed -n 6 --set quorums=0:4,5+1:4+2:4,5+3:4 --requests 1,1,1,1,0,0",
                "/property",
            )],
            holds: |m| m.all("deadlock"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-release",
        says: "(paper) the arbiter gets the releases in order",
        shown: &[Shown {
            case: "if it ignores one that overtakes",
            asks: &[(
                "check cao-singhal --mistake no-release-buffer -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "a release may overtake that of the one before",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-stamps",
        says: "(paper) a lock is named by the time of its request",
        shown: &[Shown {
            case: "by the time alone",
            asks: &[(
                "check cao-singhal --mistake timestamps-only -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "a request may get the same lock twice: an old TRANSFER is taken for one of the second",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-response",
        says: "response time: 2T + E",
        shown: &[Shown {
            case: "alone, E = 5",
            asks: &[(
                "run cao-singhal -n 13 --set quorums=13 --requests 0,0,0,0,0,0,0,1,0,0,0,0,0 --hold 5",
                "/mutex/response/max",
            )],
            holds: |m| m.eq(7.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-cost",
        says: "without conflicts: 3(K − 1) messages",
        shown: &[Shown {
            case: "each of the 13 alone: K = 4",
            asks: &[(
                "run cao-singhal -n 13 --set quorums=13 --script {0..12}@0",
                "/messages/sent",
            )],
            holds: |m| m.each(|x| x == 9.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-normal",
        says: "with conflicts, normally: 5(K − 1) messages (TRANSFER, FAILED)",
        shown: &[Shown {
            case: "two entries at two arbiters: the most of all runs, at most 2 · 5 · 2",
            asks: &[(
                "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,0,0,0 --count-messages",
                "/messages/1",
            )],
            holds: |m| m.x() <= 20.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-worst",
        says: "in the worst case: 6(K − 1) messages",
        shown: &[
            Shown {
                case: "two entries at two arbiters: at most 2 · 6 · 2",
                asks: &[(
                    "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,0,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 24.0,
            },
            Shown {
                case: "two entries at three arbiters: at most 2 · 6 · 3",
                asks: &[(
                    "check cao-singhal -n 5 --set quorums=0:2,3,4+1:2,3,4 --requests 1,1,0,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 36.0,
            },
            Shown {
                case: "three entries at two: at most 3 · 6 · 2",
                asks: &[(
                    "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 36.0,
            },
            Shown {
                case: "what a third entry adds to the most of two: at most 6(K − 1) = 12",
                asks: &[
                    (
                        "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,0,0,0 --count-messages",
                        "/messages/1",
                    ),
                    (
                        "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0 --count-messages",
                        "/messages/1",
                    ),
                ],
                holds: |m| m.at(1) - m.at(0) <= 12.0,
            },
        ],
        remark: "a further entry adds up to 8(K − 1)",
    },
];
