//! Statements of the sources about the algorithms of Suzuki and Kasami, and of Raymond.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-correct",
        says: "the algorithm ensures mutual exclusion, and is free of deadlock: only the owner of the one token enters",
        shown: &[Shown {
            case: "three processes, with RN[j] instead of RN[i], every schedule",
            asks: &[("check suzuki-kasami -n 3", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-index",
        says: "on REQUEST(j, n): RN[i] := max(RN[i], n), and the token goes to j if RN[i] = LN[i] + 1",
        shown: &[Shown {
            case: "as printed",
            asks: &[("check suzuki-kasami --mistake own-number -n 2 --requests 1,1", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "The source means RN[j] and LN[j].",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-stale",
        says: "the owner of the token must recognise outdated REQUESTs",
        shown: &[
            Shown {
                case: "an owner that does not recognise them",
                asks: &[(
                    "check suzuki-kasami --mistake stale-request -n 3 --requests 2,1,1",
                    "/property",
                )],
                holds: |m| m.all("deadlock"),
            },
            Shown {
                case: "with sequence numbers, every schedule",
                asks: &[("check suzuki-kasami -n 3 --requests 2,1,1", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-response",
        says: "the response time is 2T + E",
        shown: &[
            Shown {
                case: "a process without the token, alone, E = 5: response time in T",
                asks: &[(
                    "run suzuki-kasami -n 5 --requests 0,0,0,0,1 --hold 5",
                    "/mutex/response/max",
                )],
                holds: |m| m.eq(7.0),
            },
            Shown {
                case: "the owner of the token, alone, E = 5: response time in T",
                asks: &[(
                    "run suzuki-kasami -n 5 --requests 1,0,0,0,0 --hold 5",
                    "/mutex/response/max",
                )],
                holds: |m| m.eq(7.0),
            },
        ],
        remark: "The response time of the owner is E.",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami",
        says: "an entry takes N messages",
        shown: &[
            Shown {
                case: "a process without the token, alone: messages",
                asks: &[("run suzuki-kasami -n 5 --requests 0,0,0,0,1", "/messages/sent")],
                holds: |m| m.eq(m.n()),
            },
            Shown {
                case: "the owner of the token, alone: messages",
                asks: &[("run suzuki-kasami -n 5 --requests 3,0,0,0,0", "/messages/sent")],
                holds: |m| m.eq(m.n()),
            },
        ],
        remark: "An entry of the owner takes no message (paper).",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-delay",
        says: "the coordination delay is T",
        shown: &[
            Shown {
                case: "the requests arrived before the exit: delay in T",
                asks: &[("run suzuki-kasami -n 5 --entries 2 --hold 5", "/mutex/sync_delay/max")],
                holds: |m| m.eq(1.0),
            },
            Shown {
                case: "a request is on its way at the exit: delay in T",
                asks: &[(
                    "run suzuki-kasami -n 5 --script 0@0,1@0.5 --hold 1",
                    "/mutex/sync_delay/max",
                )],
                holds: |m| m.eq(1.0),
            },
        ],
        remark: "The delay is T if the requests have arrived, and up to 2T while they are on their way.",
    },
    Statement {
        chapter: "Suzuki–Kasami",
        name: "suzuki-kasami-crash",
        says: "nodes that sent a REQUEST or have the token must not crash",
        shown: &[
            Shown {
                case: "crashes without harm: waiting node, holder, idle owner of the token",
                asks: &[
                    ("tolerance suzuki-kasami", "crash waiting"),
                    ("tolerance suzuki-kasami", "crash holder"),
                    ("tolerance suzuki-kasami", "crash keeper"),
                ],
                holds: |m| m.each_part(|part| part < 1.0),
            },
            Shown {
                case: "crashes without harm: other nodes",
                asks: &[("tolerance suzuki-kasami", "crash idle")],
                holds: |m| m.part() == 1.0,
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Raymond",
        name: "raymond-correct",
        says: "the algorithm ensures mutual exclusion, and is free of deadlock",
        shown: &[
            Shown {
                case: "three processes, every schedule",
                asks: &[("check raymond -n 3 --topology path", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed: a process sends the token to the first of its queue, even if that is the process itself",
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
        says: "an election can build the tree",
        shown: &[
            Shown {
                case: "an election turns any connected graph into a tree, every schedule",
                asks: &[
                    ("check virtual-tree -n 3 --topology ring --property tree", "/verdict"),
                    ("check virtual-tree -n 3 --topology complete --property tree", "/verdict"),
                ],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "all processes on trees of five forms request: entries",
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
        says: "example of seven processes: 6 and 7 request, the token moves along the tree, and its owner is the root",
        shown: &[
            Shown {
                case: "messages, entries",
                asks: &[
                    ("run raymond -n 7 --topology tree:2 --script 5@0,6@0.5", "/messages/sent"),
                    ("run raymond -n 7 --topology tree:2 --script 5@0,6@0.5", "/mutex/entries"),
                ],
                holds: |m| m.at(0) == 8.0 && m.at(1) == 2.0,
            },
            Shown {
                case: "the last owner is the root, so its next entry takes no message: messages with and without one",
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
        says: "an entry takes O(log N) messages on average, depending on the tree",
        shown: &[
            Shown {
                case: "binary trees of 15, 31 and 63, all request: messages per entry, fewer than 2 log₂ N",
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
                case: "binary trees of 15 and 63, the last leaf alone: messages, at most 4 log₂ N",
                asks: &[
                    ("run raymond -n 15 --topology tree:2 --script 14@0", "/messages/sent"),
                    ("run raymond -n 63 --topology tree:2 --script 62@0", "/messages/sent"),
                ],
                holds: |m| m.at(0) <= 16.0 && m.at(1) <= 24.0,
            },
            Shown {
                case: "a chain of 64, from end to end: messages, at most 4 log₂ N",
                asks: &[("run raymond -n 64 --topology path --script 63@0", "/messages/sent")],
                holds: |m| m.x() <= 24.0,
            },
        ],
        remark: "One requester alone takes up to 2D messages (D is the diameter), and 2(N − 1) on a chain.",
    },
    Statement {
        chapter: "Raymond",
        name: "raymond-delay",
        says: "the coordination delay is O(log N) on average, too",
        shown: &[Shown {
            case: "binary trees of 15, 31 and 63, all request: mean delay in T, less than log₂ N",
            asks: &[
                ("run raymond -n 15 --topology tree:2 --entries 20", "/mutex/sync_delay/mean"),
                ("run raymond -n 31 --topology tree:2 --entries 20", "/mutex/sync_delay/mean"),
                ("run raymond -n 63 --topology tree:2 --entries 20", "/mutex/sync_delay/mean"),
            ],
            holds: |m| m.each_i(|i, x| x < i as f64 + 4.0),
        }],
        remark: "From leaf to leaf, the delay is the diameter.",
    },
    Statement {
        chapter: "Raymond",
        name: "raymond-locality",
        says: "the algorithm profits from locality if the tree fits the real topology",
        shown: &[Shown {
            case: "from a leaf to its sibling, and to a leaf across the root: delay in T",
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
        says: "all processes on the path from a requester to the owner of the token must be alive",
        shown: &[Shown {
            case: "crashes without harm: on the path, elsewhere",
            asks: &[("tolerance raymond", "crash on-path"), ("tolerance raymond", "crash idle")],
            holds: |m| m.part_at(0) == 0.0 && m.part_at(1) > 0.0,
        }],
        remark: "",
    },
];
