//! Statements of the sources about Maekawa's algorithm.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Maekawa",
        name: "maekawa-correct",
        says: "the algorithm ensures mutual exclusion, and is free of deadlock",
        shown: &[
            Shown {
                case: "three nodes, every schedule",
                asks: &[("check maekawa -n 3", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "three requesters that share two arbiters, every schedule",
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
        says: "any two quorums must share an element",
        shown: &[
            Shown {
                case: "two quorums without a common element are refused: exit code",
                asks: &[("run maekawa -n 4 --set quorums=0:0,2+1:1,3 --requests 1,1,0,0", "exit")],
                holds: |m| !m.eq(0.0),
            },
            Shown {
                case: "two quorums with one common element: exit code",
                asks: &[("run maekawa -n 4 --set quorums=0:0,2+1:1,2 --requests 1,1,0,0", "exit")],
                holds: |m| m.eq(0.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-own",
        says: "each node belongs to its own quorum, for efficiency",
        shown: &[Shown {
            case: "node 8 of 13 alone, REQUEST, LOCKED and RELEASE for each of K − 1 = 3 others: messages",
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
        says: "quorums have one size and an even load: for n = 13, each quorum has 4 nodes and each node is in 4 quorums",
        shown: &[Shown {
            case: "smallest and largest quorum, lightest and heaviest load",
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
        says: "such quorums exist for n = p^k(p^k + 1) + 1 with a prime p",
        shown: &[
            Shown {
                case: "n = 7, 13, 21, 31: size of the largest quorum, p^k + 1",
                asks: &[
                    ("list maekawa -n 7 --set quorums=plane", "/quorums/most"),
                    ("list maekawa -n 13 --set quorums=plane", "/quorums/most"),
                    ("list maekawa -n 21 --set quorums=plane", "/quorums/most"),
                    ("list maekawa -n 31 --set quorums=plane", "/quorums/most"),
                ],
                holds: |m| m.at(0) == 3.0 && m.at(1) == 4.0 && m.at(2) == 5.0 && m.at(3) == 6.0,
            },
            Shown {
                case: "n = 7 and n = 31: lightest and heaviest load",
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
        says: "row and column of a square grid form a quorum with 2√N − 1 members",
        shown: &[Shown {
            case: "N = 9, 16, 25, 100: size of the largest quorum",
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
        says: "as a rule, two such quorums share two elements",
        shown: &[Shown {
            case: "3 × 3 grid, quorums of node 0 (0, 1, 2, 3, 6) and of node 4 (1, 3, 4, 5, 7); without 3, without 1, without both: exit code",
            asks: &[
                ("run maekawa -n 9 --set quorums=0:0,1,2,6+4:1,3,4,5,7 --initiators 0,4", "exit"),
                ("run maekawa -n 9 --set quorums=0:0,2,3,6+4:1,3,4,5,7 --initiators 0,4", "exit"),
                ("run maekawa -n 9 --set quorums=0:0,2,6+4:1,3,4,5,7 --initiators 0,4", "exit"),
            ],
            holds: |m| m.at(0) == 0.0 && m.at(1) == 0.0 && m.at(2) != 0.0,
        }],
        remark: "Without one of the two common elements, the quorums still share the other one. Without both, they are refused.",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-grid-always",
        says: "every number of nodes has a grid, so quorums of size O(√N) always exist",
        shown: &[Shown {
            case: "N = 2 to 40: size of the largest quorum, at most 2⌈√N⌉ − 1",
            asks: &[("list maekawa -n {2..40} --set quorums=grid", "/quorums/most")],
            holds: |m| m.each_i(|i, x| x <= 2.0 * (i as f64 + 2.0).sqrt().ceil() - 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-run",
        says: "example: nodes 7, 8 and 11 of 13 request",
        shown: &[Shown {
            case: "entries",
            asks: &[(
                "run maekawa -n 13 --set quorums=13 --requests 0,0,0,0,0,0,1,1,0,0,1,0,0",
                "/mutex/entries",
            )],
            holds: |m| m.eq(3.0),
        }],
        remark: "The run uses the corrected protocol; the source's pictures are partly illegible.",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-printed",
        says: "the protocol is right as printed",
        shown: &[
            Shown {
                case: "the corrected protocol",
                asks: &[(
                    "check maekawa -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,2,0,0 --property exclusion",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed: an old INQUIRE takes back a lock of the next request",
                asks: &[(
                    "check maekawa --mistake as-printed -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,2,0,0 --property exclusion",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "a process that sent RELINQUISH does not count the lock as refused",
                asks: &[(
                    "check maekawa --mistake yield-forgotten -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "Until the lock comes back, the process must treat it like a FAILED.",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-failed",
        says: "(paper) an arbiter sends FAILED only to requests that come too late",
        shown: &[Shown {
            case: "FAILED only to these requests",
            asks: &[(
                "check maekawa --mistake no-displaced-failed -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "Sanders found that a request which is displaced needs a FAILED, too.",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-response",
        says: "the response time is 2T + E",
        shown: &[Shown {
            case: "one requester, E = 5: response time in T",
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
        says: "without conflicts, an entry takes 3(K − 1) messages",
        shown: &[Shown {
            case: "each of the 13 nodes alone, K = 4: messages",
            asks: &[("run maekawa -n 13 --set quorums=13 --script {0..12}@0", "/messages/sent")],
            holds: |m| m.each(|x| x == 9.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-normal",
        says: "with conflicts, an entry normally takes 4(K − 1) messages (FAILED)",
        shown: &[
            Shown {
                case: "two requesters, two arbiters, the worst of all schedules: messages, at most 2 · 4 · 2",
                asks: &[(
                    "check maekawa -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,0,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 16.0,
            },
            Shown {
                case: "the same schedules reach this bound: messages",
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
        says: "with conflicts, an entry takes 5(K − 1) messages in the worst case (INQUIRE, RELINQUISH)",
        shown: &[
            Shown {
                case: "three requesters, two arbiters, the worst of all schedules: messages, at most 3 · 5 · 2",
                asks: &[(
                    "check maekawa -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 30.0,
            },
            Shown {
                case: "four requesters, two arbiters: messages, at most 4 · 5 · 2",
                asks: &[(
                    "check maekawa -n 6 --set quorums=0:4,5+1:4,5+2:4,5+3:4,5 --requests 1,1,1,1,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 40.0,
            },
            Shown {
                case: "worst cases of two, three and four requesters: differences of at most 5(K − 1) = 10 messages",
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
        remark: "A relinquished lock must be granted again, so a further requester adds up to 6(K − 1) messages.",
    },
    Statement {
        chapter: "Maekawa",
        name: "maekawa-delay",
        says: "the coordination delay is 2T",
        shown: &[Shown {
            case: "delay in T",
            asks: &[("run maekawa -n 4 --script 0@0,3@0.5 --hold 10", "/mutex/sync_delay/max")],
            holds: |m| m.eq(2.0),
        }],
        remark: "",
    },
];
