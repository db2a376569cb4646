//! Statements of the sources about locks by permission of all.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Lamport",
        name: "lamport-correct",
        says: "safety and liveness are fulfilled",
        shown: &[Shown {
            case: "every schedule of three with FIFO channels",
            asks: &[("check lamport -n 3", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Lamport",
        name: "lamport-fifo",
        says: "channels must be reliable and FIFO",
        shown: &[
            Shown {
                case: "without FIFO",
                asks: &[(
                    "check lamport -n 2 --requests 2,2 --no-fifo --property exclusion",
                    "/property",
                )],
                holds: |m| m.all("mutual exclusion"),
            },
            Shown {
                case: "harmless losses",
                asks: &[("tolerance lamport", "faults loss")],
                holds: |m| m.part() < 1.0,
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Lamport",
        name: "lamport-response",
        says: "response time: 2T + E",
        shown: &[Shown {
            case: "alone, E = 5",
            asks: &[("run lamport -n 5 --requests 0,0,0,0,1 --hold 5", "/mutex/response/max")],
            holds: |m| m.eq(7.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Lamport",
        name: "lamport-cost",
        says: "3(N − 1) messages for each entry",
        shown: &[Shown {
            case: "alone, and all at once",
            asks: &[
                ("run lamport -n 5 --requests 0,0,0,0,1", "/messages/sent"),
                ("run lamport -n 5 --entries 10", "/mutex/messages_per_entry"),
            ],
            holds: |m| m.each(|x| x == 3.0 * (m.n() - 1.0)),
        }],
        remark: "",
    },
    Statement {
        chapter: "Lamport",
        name: "lamport-delay",
        says: "coordination delay: T",
        shown: &[
            Shown {
                case: "the requests had arrived before the exit",
                asks: &[("run lamport -n 5 --entries 3 --hold 5", "/mutex/sync_delay/max")],
                holds: |m| m.eq(1.0),
            },
            Shown {
                case: "a request is on its way at the exit",
                asks: &[("run lamport -n 5 --script 0@0,1@3 --hold 1.5", "/mutex/sync_delay/max")],
                holds: |m| m.eq(1.0),
            },
        ],
        remark: "T once the requests have arrived; up to 3T while they are on their way",
    },
    Statement {
        chapter: "Lamport",
        name: "lamport-crash",
        says: "no fault tolerance: when any node fails, no node can enter any more",
        shown: &[Shown {
            case: "harmless crashes of idle nodes, of nodes that must reply, that wait, that hold",
            asks: &[
                ("tolerance lamport", "crash idle"),
                ("tolerance lamport", "crash arbiter"),
                ("tolerance lamport", "crash waiting"),
                ("tolerance lamport", "crash holder"),
            ],
            holds: |m| m.each_part(|part| part == 0.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-kinds",
        says: "two kinds of messages: request and reply; ACK and RELEASE are combined",
        shown: &[
            Shown {
                case: "",
                asks: &[("run ricart-agrawala -n 5 --entries 2", "/messages/by_kind")],
                holds: |m| m.keys() == ["Reply", "Request"],
            },
            Shown {
                case: "messages: Lamport's and these",
                asks: &[
                    ("run lamport -n 5 --entries 2", "/messages/sent"),
                    ("run ricart-agrawala -n 5 --entries 2", "/messages/sent"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-alike",
        says: "all places behave alike, so it is enough to look at one",
        shown: &[
            Shown {
                case: "messages of each of five alone",
                asks: &[("run ricart-agrawala -n 5 --script {0..4}@0", "/messages/sent")],
                holds: |m| m.same(),
            },
            Shown {
                case: "permutations that change nothing, the identity included: more than one",
                asks: &[("check ricart-agrawala -n 3 --symmetry", "/symmetry/permutations")],
                holds: |m| m.x() > 1.0,
            },
        ],
        remark: "all but the comparison of ids between equal times",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-group-1",
        says: "requests known at x with a mark below Cx: they are served first, or get a larger mark",
        shown: &[Shown {
            case: "whoever knew of a request when it asked does not overtake it",
            asks: &[(
                "check ricart-agrawala -n 3 --requests 2,1,1 --property overtaking:0",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-group-2",
        says: "requests known at x with a mark above Cx: they get no mark below Cx",
        shown: &[
            Shown {
                case: "marks of the two requests 8 and 12: x asked first, enters first, and the other waits",
                asks: &[
                    (
                        "run ricart-agrawala -n 3 --set clocks=11,7,0 --script 0@0,1@0 --hold 50 --time-limit 20",
                        "/mutex/entries_per_node/1/1",
                    ),
                    (
                        "run ricart-agrawala -n 3 --set clocks=11,7,0 --script 0@0,1@0 --hold 50 --time-limit 20",
                        "/mutex/entries_per_node/0/1",
                    ),
                ],
                holds: |m| m.at(0) == 1.0 && m.at(1) == 0.0,
            },
            Shown {
                case: "if equal marks are not told apart, each goes below the other",
                asks: &[("check ricart-agrawala --mistake no-tie-break -n 2", "/property")],
                holds: |m| m.all("mutual exclusion"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-group-3",
        says: "requests unknown at x: they get marks above Cx",
        shown: &[
            Shown {
                case: "if every message moves the clock",
                asks: &[(
                    "check ricart-agrawala -n 3 --app-messages 1 --property order",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "if only requests move it, as in the paper",
                asks: &[(
                    "check ricart-agrawala --mistake request-clock -n 3 --requests 2,1,1 --property order",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "the clock of the paper carries no time on replies",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-correct",
        says: "all three conditions (safety, liveness, order) are fulfilled",
        shown: &[
            Shown {
                case: "safety and liveness: every schedule of three",
                asks: &[("check ricart-agrawala -n 3", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "order, if every message moves the clock",
                asks: &[(
                    "check ricart-agrawala -n 3 --app-messages 1 --property order",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "order with the clock of the paper",
                asks: &[(
                    "check ricart-agrawala --mistake request-clock -n 3 --requests 2,1,1 --property order",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-stamps",
        says: "example: P0 asks with time 12 and P1 with 8; P1 wins, P0 is queued, and gets its reply when P1 leaves",
        shown: &[
            Shown {
                case: "entries of P1 and of P0 while P1 is inside, and replies",
                asks: &[
                    (
                        "run ricart-agrawala -n 3 --set clocks=11,7,0 --script 0@0,1@0 --hold 50 --time-limit 20",
                        "/mutex/entries_per_node/1/1",
                    ),
                    (
                        "run ricart-agrawala -n 3 --set clocks=11,7,0 --script 0@0,1@0 --hold 50 --time-limit 20",
                        "/mutex/entries_per_node/0/1",
                    ),
                    (
                        "run ricart-agrawala -n 3 --set clocks=11,7,0 --script 0@0,1@0 --hold 50 --time-limit 20",
                        "/messages/by_kind/Reply",
                    ),
                ],
                holds: |m| m.at(0) == 1.0 && m.at(1) == 0.0 && m.at(2) == 3.0,
            },
            Shown {
                case: "entries, and replies in the end",
                asks: &[
                    (
                        "run ricart-agrawala -n 3 --set clocks=11,7,0 --script 0@0,1@0 --hold 50",
                        "/mutex/entries",
                    ),
                    (
                        "run ricart-agrawala -n 3 --set clocks=11,7,0 --script 0@0,1@0 --hold 50",
                        "/messages/by_kind/Reply",
                    ),
                ],
                holds: |m| m.at(0) == 2.0 && m.at(1) == 4.0,
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-cost",
        says: "2(N − 1) messages for each entry",
        shown: &[Shown {
            case: "alone, and all at once",
            asks: &[
                ("run ricart-agrawala -n 5 --requests 0,0,0,0,1", "/messages/sent"),
                ("run ricart-agrawala -n 5 --entries 10", "/mutex/messages_per_entry"),
            ],
            holds: |m| m.each(|x| x == 2.0 * (m.n() - 1.0)),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-response",
        says: "response time: 2T + E",
        shown: &[Shown {
            case: "alone, E = 5",
            asks: &[(
                "run ricart-agrawala -n 5 --requests 0,0,0,0,1 --hold 5",
                "/mutex/response/max",
            )],
            holds: |m| m.eq(7.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-delay",
        says: "coordination delay: T",
        shown: &[
            Shown {
                case: "the requests had arrived before the exit",
                asks: &[("run ricart-agrawala -n 5 --entries 3 --hold 5", "/mutex/sync_delay/max")],
                holds: |m| m.eq(1.0),
            },
            Shown {
                case: "a request is on its way at the exit",
                asks: &[(
                    "run ricart-agrawala -n 5 --script 0@0,1@3 --hold 1.5",
                    "/mutex/sync_delay/max",
                )],
                holds: |m| m.eq(1.0),
            },
        ],
        remark: "T once the requests have arrived; up to 3T while they are on their way",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-fifo",
        says: "channels need not keep their order",
        shown: &[Shown {
            case: "every schedule of three without FIFO",
            asks: &[("check ricart-agrawala -n 3 --no-fifo", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-crash",
        says: "n points of failure: one process that fails stops all",
        shown: &[Shown {
            case: "harmless crashes: idle, arbiter, waiting, holder",
            asks: &[
                ("tolerance ricart-agrawala", "crash idle"),
                ("tolerance ricart-agrawala", "crash arbiter"),
                ("tolerance ricart-agrawala", "crash waiting"),
                ("tolerance ricart-agrawala", "crash holder"),
            ],
            holds: |m| m.each_part(|part| part == 0.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-acknowledged",
        says: "improvement: each message is confirmed at once; who does not confirm is not active any more, and a crash is tolerated",
        shown: &[
            Shown {
                case: "harmless crashes where a timeout is right",
                asks: &[("tolerance ricart-agrawala-acknowledged", "faults crash")],
                holds: |m| m.part() == 1.0,
            },
            Shown {
                case: "every schedule of three with a crash, where a timeout is right",
                asks: &[(
                    "check ricart-agrawala-acknowledged -n 3 --requests 1,1,0 --crash 1 --synchronous",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "where messages may be slow",
                asks: &[(
                    "check ricart-agrawala-acknowledged -n 2 --requests 1,1 --property exclusion",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "a process that is only slow is taken for dead, and two are inside",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-everyone",
        says: "each process must always take part, even if it does not want to enter",
        shown: &[Shown {
            case: "one asks, and all others reply",
            asks: &[("run ricart-agrawala -n 5 --requests 0,0,0,0,1", "/messages/by_kind/Reply")],
            holds: |m| m.eq(m.n() - 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-majority",
        says: "improvement: a simple majority is enough",
        shown: &[Shown {
            case: "a majority of replies",
            asks: &[(
                "check ricart-agrawala --mistake simple-majority -n 3 --requests 1,1,0",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "a reply is no exclusive vote; what works is `voting`",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-worse",
        says: "slower, more complicated, more expensive and less robust than the central solution",
        shown: &[
            Shown {
                case: "slower: coordination delay, central and distributed",
                asks: &[
                    ("run central -n 5 --requests 0,5,5,5,5 --hold 5", "/mutex/sync_delay/mean"),
                    (
                        "run ricart-agrawala -n 5 --requests 0,5,5,5,5 --hold 5",
                        "/mutex/sync_delay/mean",
                    ),
                ],
                holds: |m| m.at(0) < m.at(1),
            },
            Shown {
                case: "more complicated: states of three nodes",
                asks: &[
                    ("check central -n 3", "/states"),
                    ("check ricart-agrawala -n 3", "/states"),
                ],
                holds: |m| m.at(0) < m.at(1),
            },
            Shown {
                case: "more expensive: messages for an entry",
                asks: &[
                    ("run central -n 5 --requests 0,0,0,0,1", "/messages/sent"),
                    ("run ricart-agrawala -n 5 --requests 0,0,0,0,1", "/messages/sent"),
                ],
                holds: |m| m.at(0) < m.at(1),
            },
            Shown {
                case: "less robust: harmless crashes",
                asks: &[
                    ("tolerance central", "faults crash"),
                    ("tolerance ricart-agrawala", "faults crash"),
                ],
                holds: |m| m.part_at(0) > m.part_at(1),
            },
        ],
        remark: "it hands over sooner",
    },
];
