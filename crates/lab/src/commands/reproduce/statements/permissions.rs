//! Statements of the sources about locks by permission of all.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Lamport",
        name: "lamport-correct",
        says: "the algorithm is safe and live",
        shown: &[Shown {
            case: "three nodes with FIFO channels, every schedule",
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
                case: "two nodes without FIFO, every schedule",
                asks: &[(
                    "check lamport -n 2 --requests 2,2 --no-fifo --property exclusion",
                    "/property",
                )],
                holds: |m| m.all("mutual exclusion"),
            },
            Shown {
                case: "losses without harm, of all single losses",
                asks: &[("tolerance lamport", "faults loss")],
                holds: |m| m.part() < 1.0,
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Lamport",
        name: "lamport-response",
        says: "the response time is 2T + E",
        shown: &[Shown {
            case: "one requester, E = 5: response time in T",
            asks: &[("run lamport -n 5 --requests 0,0,0,0,1 --hold 5", "/mutex/response/max")],
            holds: |m| m.eq(7.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Lamport",
        name: "lamport-cost",
        says: "an entry takes 3(N − 1) messages",
        shown: &[Shown {
            case: "one node alone, and all at once: messages per entry",
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
        says: "the coordination delay is T",
        shown: &[
            Shown {
                case: "the requests arrived before the exit: delay in T",
                asks: &[("run lamport -n 5 --entries 3 --hold 5", "/mutex/sync_delay/max")],
                holds: |m| m.eq(1.0),
            },
            Shown {
                case: "a request is on its way at the exit: delay in T",
                asks: &[("run lamport -n 5 --script 0@0,1@3 --hold 1.5", "/mutex/sync_delay/max")],
                holds: |m| m.eq(1.0),
            },
        ],
        remark: "The delay is T if the requests have arrived, and up to 3T while they are on their way.",
    },
    Statement {
        chapter: "Lamport",
        name: "lamport-crash",
        says: "no fault tolerance: after the crash of any node, no node can enter any more",
        shown: &[Shown {
            case: "crashes without harm: idle node, node that must reply, waiting node, holder",
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
        says: "there are two kinds of messages, request and reply: the reply combines Lamport's ACK and RELEASE",
        shown: &[
            Shown {
                case: "messages of a run by kind",
                asks: &[("run ricart-agrawala -n 5 --entries 2", "/messages/by_kind")],
                holds: |m| m.keys() == ["Reply", "Request"],
            },
            Shown {
                case: "the same load with Lamport's and with this algorithm: messages",
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
        says: "all nodes behave alike, so a proof may look at one of them",
        shown: &[
            Shown {
                case: "each of five nodes alone: messages",
                asks: &[("run ricart-agrawala -n 5 --script {0..4}@0", "/messages/sent")],
                holds: |m| m.same(),
            },
            Shown {
                case: "permutations of three nodes that keep the behaviour, the identity included",
                asks: &[("check ricart-agrawala -n 3 --symmetry", "/symmetry/permutations")],
                holds: |m| m.x() > 1.0,
            },
        ],
        remark: "The nodes are alike except when equal timestamps are compared by id.",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-group-1",
        says: "requests that x knows with a timestamp below Cx: they are served first, or get a larger timestamp",
        shown: &[Shown {
            case: "no process overtakes a request that it knew when it requested, every schedule",
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
        says: "requests that x knows with a timestamp above Cx: they get no timestamp below Cx",
        shown: &[
            Shown {
                case: "timestamps 8 and 12, process x has 8 and enters first: entries, and entries of the other process meanwhile",
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
                case: "equal timestamps are not ordered by id, so each process precedes the other",
                asks: &[("check ricart-agrawala --mistake no-tie-break -n 2", "/property")],
                holds: |m| m.all("mutual exclusion"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-group-3",
        says: "requests that x does not know: they get timestamps above Cx",
        shown: &[
            Shown {
                case: "every message advances the clock",
                asks: &[(
                    "check ricart-agrawala -n 3 --app-messages 1 --property order",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "only requests advance the clock, as in the paper",
                asks: &[(
                    "check ricart-agrawala --mistake request-clock -n 3 --requests 2,1,1 --property order",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "In the paper, a reply carries no timestamp.",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-correct",
        says: "all three conditions (safety, liveness, order) are fulfilled",
        shown: &[
            Shown {
                case: "safety and liveness, three nodes, every schedule",
                asks: &[("check ricart-agrawala -n 3", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "order, if every message advances the clock",
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
        says: "example: P0 requests at time 12 and P1 at time 8; P1 wins, P0 waits, and receives the reply when P1 leaves",
        shown: &[
            Shown {
                case: "while P1 is inside: entries of P1, entries of P0, replies",
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
                case: "in the end: entries, replies",
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
        says: "an entry takes 2(N − 1) messages",
        shown: &[Shown {
            case: "one node alone, and all at once: messages per entry",
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
        says: "the response time is 2T + E",
        shown: &[Shown {
            case: "one requester, E = 5: response time in T",
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
        says: "the coordination delay is T",
        shown: &[
            Shown {
                case: "the requests arrived before the exit: delay in T",
                asks: &[("run ricart-agrawala -n 5 --entries 3 --hold 5", "/mutex/sync_delay/max")],
                holds: |m| m.eq(1.0),
            },
            Shown {
                case: "a request is on its way at the exit: delay in T",
                asks: &[(
                    "run ricart-agrawala -n 5 --script 0@0,1@3 --hold 1.5",
                    "/mutex/sync_delay/max",
                )],
                holds: |m| m.eq(1.0),
            },
        ],
        remark: "The delay is T if the requests have arrived, and up to 3T while they are on their way.",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-fifo",
        says: "channels need not be FIFO",
        shown: &[Shown {
            case: "three nodes without FIFO, every schedule",
            asks: &[("check ricart-agrawala -n 3 --no-fifo", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-crash",
        says: "n points of failure: the crash of one process stops all",
        shown: &[Shown {
            case: "crashes without harm: idle node, node that must reply, waiting node, holder",
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
        says: "improvement: each request is acknowledged at once; a process that does not acknowledge counts as crashed, so a crash is tolerated",
        shown: &[
            Shown {
                case: "in a synchronous system, crashes without harm",
                asks: &[("tolerance ricart-agrawala-acknowledged", "faults crash")],
                holds: |m| m.part() == 1.0,
            },
            Shown {
                case: "three nodes and a crash in a synchronous system, every schedule",
                asks: &[(
                    "check ricart-agrawala-acknowledged -n 3 --requests 1,1,0 --crash 1 --synchronous",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "three nodes in an asynchronous system, every schedule",
                asks: &[(
                    "check ricart-agrawala-acknowledged -n 2 --requests 1,1 --property exclusion",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "A slow process counts as crashed, so two processes may be in the critical section.",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-everyone",
        says: "each process must always take part, even if it does not want to enter",
        shown: &[Shown {
            case: "one of five requests: replies",
            asks: &[("run ricart-agrawala -n 5 --requests 0,0,0,0,1", "/messages/by_kind/Reply")],
            holds: |m| m.eq(m.n() - 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-majority",
        says: "improvement: the replies of a simple majority are enough",
        shown: &[Shown {
            case: "three nodes that wait for a majority of replies, every schedule",
            asks: &[(
                "check ricart-agrawala --mistake simple-majority -n 3 --requests 1,1,0",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "A reply is no exclusive vote. The algorithm `voting` has exclusive votes.",
    },
    Statement {
        chapter: "Ricart–Agrawala",
        name: "ricart-agrawala-worse",
        says: "it is slower, more complicated, more expensive and less robust than the central solution",
        shown: &[
            Shown {
                case: "slower: coordination delay in T, central and distributed",
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
                case: "more complicated: reachable states of three nodes, central and distributed",
                asks: &[
                    ("check central -n 3", "/states"),
                    ("check ricart-agrawala -n 3", "/states"),
                ],
                holds: |m| m.at(0) < m.at(1),
            },
            Shown {
                case: "more expensive: messages per entry, central and distributed",
                asks: &[
                    ("run central -n 5 --requests 0,0,0,0,1", "/messages/sent"),
                    ("run ricart-agrawala -n 5 --requests 0,0,0,0,1", "/messages/sent"),
                ],
                holds: |m| m.at(0) < m.at(1),
            },
            Shown {
                case: "less robust: crashes without harm, central and distributed",
                asks: &[
                    ("tolerance central", "faults crash"),
                    ("tolerance ricart-agrawala", "faults crash"),
                ],
                holds: |m| m.part_at(0) > m.part_at(1),
            },
        ],
        remark: "Its coordination delay is shorter than that of the central solution.",
    },
];
