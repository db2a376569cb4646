//! Statements of the sources about Maekawa's algorithm.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Maekawa",
        name: "maekawa-correct",
        says: "mutual exclusion without deadlock",
        shown: &[
            Shown {
                case: "every schedule of three",
                asks: &[("check maekawa -n 3", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "three that ask two arbiters",
                asks: &[(
                    "check maekawa -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-intersect",
        says: "any two quorums share an element: necessary",
        shown: &[
            Shown {
                case: "exit code of two quorums that share none",
                asks: &[("run maekawa -n 4 --set quorums=0:0,2+1:1,3 --requests 1,1,0,0", "exit")],
                holds: |m| !m.eq(0.0),
            },
            Shown {
                case: "exit code of two that share one",
                asks: &[("run maekawa -n 4 --set quorums=0:0,2+1:1,2 --requests 1,1,0,0", "exit")],
                holds: |m| m.eq(0.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-own",
        says: "each node is in its own quorum: for efficiency",
        shown: &[Shown {
            case: "messages of node 8 of the 13: K − 1 = 3 others are asked, told, and answer",
            asks: &[(
                "run maekawa -n 13 --set quorums=13 --requests 0,0,0,0,0,0,0,1,0,0,0,0,0",
                "/messages/sent",
            )],
            holds: |m| m.eq(9.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-13",
        says: "quorums of one size and an even load: for n = 13 quorums of 4, each node in 4",
        shown: &[Shown {
            case: "smallest, largest; lightest and heaviest load",
            asks: &[
                ("list maekawa -n 13 --set quorums=13", "/quorums/least"),
                ("list maekawa -n 13 --set quorums=13", "/quorums/most"),
                ("list maekawa -n 13 --set quorums=13", "/quorums/lightest_load"),
                ("list maekawa -n 13 --set quorums=13", "/quorums/heaviest_load"),
            ],
            holds: |m| m.each(|x| x == 4.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-plane",
        says: "such quorums exist for n = p^k(p^k + 1) + 1, p prime",
        shown: &[
            Shown {
                case: "n = 7, 13, 21, 31: the largest quorum is p^k + 1",
                asks: &[
                    ("list maekawa -n 7 --set quorums=plane", "/quorums/most"),
                    ("list maekawa -n 13 --set quorums=plane", "/quorums/most"),
                    ("list maekawa -n 21 --set quorums=plane", "/quorums/most"),
                    ("list maekawa -n 31 --set quorums=plane", "/quorums/most"),
                ],
                holds: |m| m.at(0) == 3.0 && m.at(1) == 4.0 && m.at(2) == 5.0 && m.at(3) == 6.0,
            },
            Shown {
                case: "and the heaviest load is the lightest",
                asks: &[
                    ("list maekawa -n 7 --set quorums=plane", "/quorums/lightest_load"),
                    ("list maekawa -n 7 --set quorums=plane", "/quorums/heaviest_load"),
                    ("list maekawa -n 31 --set quorums=plane", "/quorums/lightest_load"),
                    ("list maekawa -n 31 --set quorums=plane", "/quorums/heaviest_load"),
                ],
                holds: |m| m.at(0) == m.at(1) && m.at(2) == m.at(3),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-grid",
        says: "quorums from a square grid, row and column: 2√N − 1 members",
        shown: &[Shown {
            case: "N = 9, 16, 25, 100",
            asks: &[
                ("list maekawa -n 9 --set quorums=grid", "/quorums/most"),
                ("list maekawa -n 16 --set quorums=grid", "/quorums/most"),
                ("list maekawa -n 25 --set quorums=grid", "/quorums/most"),
                ("list maekawa -n 100 --set quorums=grid", "/quorums/most"),
            ],
            holds: |m| m.at(0) == 5.0 && m.at(1) == 7.0 && m.at(2) == 9.0 && m.at(3) == 19.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-grid-two",
        says: "as a rule, two of these share two elements",
        shown: &[Shown {
            case: "of 3 × 3, the quorums of the first (0, 1, 2, 3, 6) and the middle (1, 3, 4, 5, 7): exit codes without 3, without 1, and without both",
            asks: &[
                ("run maekawa -n 9 --set quorums=0:0,1,2,6+4:1,3,4,5,7 --initiators 0,4", "exit"),
                ("run maekawa -n 9 --set quorums=0:0,2,3,6+4:1,3,4,5,7 --initiators 0,4", "exit"),
                ("run maekawa -n 9 --set quorums=0:0,2,6+4:1,3,4,5,7 --initiators 0,4", "exit"),
            ],
            holds: |m| m.at(0) == 0.0 && m.at(1) == 0.0 && m.at(2) != 0.0,
        }],
        remark: "with fewer, they still meet in the other one; without both, they are refused",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-grid-always",
        says: "a grid is always possible, so quorums of O(√N) can always be had",
        shown: &[Shown {
            case: "the largest quorum for N = 2 to 40: at most 2⌈√N⌉ − 1",
            asks: &[("list maekawa -n {2..40} --set quorums=grid", "/quorums/most")],
            holds: |m| m.each_i(|i, x| x <= 2.0 * (i as f64 + 2.0).sqrt().ceil() - 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-run",
        says: "example: 7, 8 and 11 of the 13 want to enter",
        shown: &[Shown {
            case: "entries",
            asks: &[(
                "run maekawa -n 13 --set quorums=13 --requests 0,0,0,0,0,0,1,1,0,0,1,0,0",
                "/mutex/entries",
            )],
            holds: |m| m.eq(3.0),
        }],
        remark: "with the corrected protocol; the pictures as far as they can be restored",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-printed",
        says: "the protocol as printed",
        shown: &[
            Shown {
                case: "corrected",
                asks: &[(
                    "check maekawa -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,2,0,0 --property exclusion",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed: an old inquiry gives away a lock of the next request",
                asks: &[(
                    "check maekawa --mistake as-printed -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,2,0,0 --property exclusion",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "RELINQUISH gives the lock back, and that is all",
                asks: &[(
                    "check maekawa --mistake yield-forgotten -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "until the lock is back, it counts as a failure",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-failed",
        says: "(paper) FAILED goes only to those that ask late",
        shown: &[Shown {
            case: "only to those",
            asks: &[(
                "check maekawa --mistake no-displaced-failed -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "found by Sanders: a request that is displaced must be told, too",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-response",
        says: "response time: 2T + E",
        shown: &[Shown {
            case: "alone, E = 5",
            asks: &[(
                "run maekawa -n 13 --set quorums=13 --requests 0,0,0,0,0,0,0,1,0,0,0,0,0 --hold 5",
                "/mutex/response/max",
            )],
            holds: |m| m.eq(7.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-cost",
        says: "without conflicts: 3(K − 1) messages",
        shown: &[Shown {
            case: "each of the 13 alone: K = 4",
            asks: &[("run maekawa -n 13 --set quorums=13 --script {0..12}@0", "/messages/sent")],
            holds: |m| m.each(|x| x == 9.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-normal",
        says: "with conflicts, normally: 4(K − 1) messages (FAILED)",
        shown: &[
            Shown {
                case: "two entries at two arbiters: the most of all runs, at most 2 · 4 · 2",
                asks: &[(
                    "check maekawa -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,0,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 16.0,
            },
            Shown {
                case: "and it is reached",
                asks: &[(
                    "check maekawa -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,0,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.eq(16.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-worst",
        says: "with conflicts, in the worst case: 5(K − 1) messages (INQUIRE, RELINQUISH)",
        shown: &[
            Shown {
                case: "three entries at two arbiters: the most of all runs, at most 3 · 5 · 2",
                asks: &[(
                    "check maekawa -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 30.0,
            },
            Shown {
                case: "four: at most 4 · 5 · 2",
                asks: &[(
                    "check maekawa -n 6 --set quorums=0:4,5+1:4,5+2:4,5+3:4,5 --requests 1,1,1,1,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 40.0,
            },
            Shown {
                case: "what a third and a fourth entry add to it: at most 5(K − 1) = 10",
                asks: &[
                    (
                        "check maekawa -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,0,0,0 --count-messages",
                        "/messages/1",
                    ),
                    (
                        "check maekawa -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0 --count-messages",
                        "/messages/1",
                    ),
                    (
                        "check maekawa -n 6 --set quorums=0:4,5+1:4,5+2:4,5+3:4,5 --requests 1,1,1,1,0,0 --count-messages",
                        "/messages/1",
                    ),
                ],
                holds: |m| m.at(1) - m.at(0) <= 10.0 && m.at(2) - m.at(1) <= 10.0,
            },
        ],
        remark: "a lock that is given back must be given once more: a further entry adds up to 6(K − 1)",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-delay",
        says: "coordination delay: 2T",
        shown: &[Shown {
            case: "",
            asks: &[("run maekawa -n 4 --script 0@0,3@0.5 --hold 10", "/mutex/sync_delay/max")],
            holds: |m| m.eq(2.0),
        }],
        remark: "",
    },
];
