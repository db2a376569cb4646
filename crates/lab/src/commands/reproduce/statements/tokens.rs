//! Statements of the sources about the algorithms of Suzuki and Kasami, and of Raymond.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-correct",
        says: "mutual exclusion without deadlock: only the owner of the one token enters",
        shown: &[Shown {
            case: "with RN[j]: every schedule of three",
            asks: &[("check suzuki-kasami -n 3", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-index",
        says: "on REQUEST(j, n): RN[i] := max(RN[i], n), and the token goes if RN[i] = LN[i] + 1",
        shown: &[Shown {
            case: "as printed",
            asks: &[("check suzuki-kasami --mistake own-number -n 2 --requests 1,1", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "RN[j] and LN[j] are meant",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-stale",
        says: "problem: outdated REQUESTs must be recognised",
        shown: &[
            Shown {
                case: "an owner that does not",
                asks: &[(
                    "check suzuki-kasami --mistake stale-request -n 3 --requests 2,1,1",
                    "/property",
                )],
                holds: |m| m.all("deadlock"),
            },
            Shown {
                case: "with sequence numbers",
                asks: &[("check suzuki-kasami -n 3 --requests 2,1,1", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-response",
        says: "response time: 2T + E",
        shown: &[
            Shown {
                case: "alone, E = 5",
                asks: &[(
                    "run suzuki-kasami -n 5 --requests 0,0,0,0,1 --hold 5",
                    "/mutex/response/max",
                )],
                holds: |m| m.eq(7.0),
            },
            Shown {
                case: "the owner of the token, alone",
                asks: &[(
                    "run suzuki-kasami -n 5 --requests 1,0,0,0,0 --hold 5",
                    "/mutex/response/max",
                )],
                holds: |m| m.eq(7.0),
            },
        ],
        remark: "E for the owner of the token",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami",
        says: "N messages for each entry",
        shown: &[
            Shown {
                case: "alone",
                asks: &[("run suzuki-kasami -n 5 --requests 0,0,0,0,1", "/messages/sent")],
                holds: |m| m.eq(m.n()),
            },
            Shown {
                case: "the owner of the token, alone",
                asks: &[("run suzuki-kasami -n 5 --requests 3,0,0,0,0", "/messages/sent")],
                holds: |m| m.eq(m.n()),
            },
        ],
        remark: "0 for the owner of the token (paper)",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-delay",
        says: "coordination delay: T",
        shown: &[
            Shown {
                case: "the requests had arrived before the exit",
                asks: &[("run suzuki-kasami -n 5 --entries 2 --hold 5", "/mutex/sync_delay/max")],
                holds: |m| m.eq(1.0),
            },
            Shown {
                case: "a request is on its way at the exit",
                asks: &[(
                    "run suzuki-kasami -n 5 --script 0@0,1@0.5 --hold 1",
                    "/mutex/sync_delay/max",
                )],
                holds: |m| m.eq(1.0),
            },
        ],
        remark: "T once the requests have arrived; up to 2T while they are on their way",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-crash",
        says: "nodes that sent REQUESTs, or have the token, must not fail",
        shown: &[
            Shown {
                case: "harmless crashes of those that wait, hold, or are idle with the token",
                asks: &[
                    ("tolerance suzuki-kasami", "crash waiting"),
                    ("tolerance suzuki-kasami", "crash holder"),
                    ("tolerance suzuki-kasami", "crash keeper"),
                ],
                holds: |m| m.each_part(|part| part < 1.0),
            },
            Shown {
                case: "of the others",
                asks: &[("tolerance suzuki-kasami", "crash idle")],
                holds: |m| m.part() == 1.0,
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Raymond",
        name: "raymond-correct",
        says: "mutual exclusion without deadlock",
        shown: &[
            Shown {
                case: "every schedule of three",
                asks: &[("check raymond -n 3 --topology path", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed: the token goes on to the first of the queue, even if that is the process itself",
                asks: &[(
                    "check raymond --mistake forgets-self -n 2 --topology path --requests 0,1",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Raymond",
        name: "raymond-elected",
        says: "the tree can be obtained by an election",
        shown: &[
            Shown {
                case: "an election makes any connected graph a tree",
                asks: &[
                    ("check virtual-tree -n 3 --topology ring --property tree", "/verdict"),
                    ("check virtual-tree -n 3 --topology complete --property tree", "/verdict"),
                ],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "on trees of any form all are served: entries",
                asks: &[(
                    "run raymond -n 8 --topology tree --seed {1..5} --entries 2",
                    "/mutex/entries",
                )],
                holds: |m| m.each(|x| x == 16.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Raymond",
        name: "raymond-example",
        says: "example of seven: 6 and 7 ask, and the token moves along the tree; its owner is the root",
        shown: &[
            Shown {
                case: "messages, and entries",
                asks: &[
                    ("run raymond -n 7 --topology tree:2 --script 5@0,6@0.5", "/messages/sent"),
                    ("run raymond -n 7 --topology tree:2 --script 5@0,6@0.5", "/mutex/entries"),
                ],
                holds: |m| m.at(0) == 8.0 && m.at(1) == 2.0,
            },
            Shown {
                case: "the last one is the root: its next entry takes no message",
                asks: &[
                    ("run raymond -n 7 --topology tree:2 --script 5@0,6@0.5", "/messages/sent"),
                    (
                        "run raymond -n 7 --topology tree:2 --script 5@0,6@0.5,6@50",
                        "/messages/sent",
                    ),
                ],
                holds: |m| m.same(),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Raymond",
        name: "raymond-average",
        says: "O(log N) messages on average, depending on the tree",
        shown: &[
            Shown {
                case: "binary trees of 15, 31 and 63, all want: for an entry, less than 2 log₂ N",
                asks: &[
                    (
                        "run raymond -n 15 --topology tree:2 --entries 10",
                        "/mutex/messages_per_entry",
                    ),
                    (
                        "run raymond -n 31 --topology tree:2 --entries 10",
                        "/mutex/messages_per_entry",
                    ),
                    (
                        "run raymond -n 63 --topology tree:2 --entries 10",
                        "/mutex/messages_per_entry",
                    ),
                ],
                holds: |m| m.each_i(|i, x| x < 2.0 * (i as f64 + 4.0)),
            },
            Shown {
                case: "the last leaf of 15 and of 63, alone: at most 4 log₂ N",
                asks: &[
                    ("run raymond -n 15 --topology tree:2 --script 14@0", "/messages/sent"),
                    ("run raymond -n 63 --topology tree:2 --script 62@0", "/messages/sent"),
                ],
                holds: |m| m.at(0) <= 16.0 && m.at(1) <= 24.0,
            },
            Shown {
                case: "a chain of 64 from end to end: at most 4 log₂ N",
                asks: &[("run raymond -n 64 --topology path --script 63@0", "/messages/sent")],
                holds: |m| m.x() <= 24.0,
            },
        ],
        remark: "2D for one alone; a chain takes 2(N − 1)",
    },
    Statement {
        chapter: "Raymond",
        name: "raymond-delay",
        says: "but the coordination delay is O(log N) on average as well",
        shown: &[Shown {
            case: "binary trees of 15, 31 and 63, all want: less than log₂ N",
            asks: &[
                ("run raymond -n 15 --topology tree:2 --entries 20", "/mutex/sync_delay/mean"),
                ("run raymond -n 31 --topology tree:2 --entries 20", "/mutex/sync_delay/mean"),
                ("run raymond -n 63 --topology tree:2 --entries 20", "/mutex/sync_delay/mean"),
            ],
            holds: |m| m.each_i(|i, x| x < i as f64 + 4.0),
        }],
        remark: "from leaf to leaf it is the diameter",
    },
    Statement {
        chapter: "Raymond",
        name: "raymond-locality",
        says: "locality is used if the tree fits the real topology",
        shown: &[Shown {
            case: "to a neighbour leaf, and across the root: delays",
            asks: &[
                (
                    "run raymond -n 15 --topology tree:2 --script 7@0,8@1 --hold 20",
                    "/mutex/sync_delay/mean",
                ),
                (
                    "run raymond -n 15 --topology tree:2 --script 7@0,14@1 --hold 20",
                    "/mutex/sync_delay/mean",
                ),
            ],
            holds: |m| m.at(0) < m.at(1),
        }],
        remark: "",
    },
    Statement {
        chapter: "Raymond",
        name: "raymond-crash",
        says: "the whole path from a requester to the owner of the token must be up",
        shown: &[Shown {
            case: "harmless crashes on the path, and of others",
            asks: &[("tolerance raymond", "crash on-path"), ("tolerance raymond", "crash idle")],
            holds: |m| m.part_at(0) == 0.0 && m.part_at(1) > 0.0,
        }],
        remark: "",
    },
];
