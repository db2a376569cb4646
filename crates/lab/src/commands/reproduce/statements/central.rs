//! Statements of the sources about locks in general and of the central coordinator.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Mutual exclusion",
        name: "mutex-messages",
        says: "without shared memory, mutual exclusion takes an exchange of messages",
        shown: &[Shown {
            case: "two nodes: result of all schedules, and the fewest messages of a schedule",
            asks: &[
                ("check ricart-agrawala -n 2 --property exclusion", "/verdict"),
                ("check ricart-agrawala -n 2 --count-messages", "/messages/0"),
            ],
            holds: |m| m.is(0, "exhausted") && m.at(1) > 0.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Mutual exclusion",
        name: "liveness",
        says: "liveness implies freedom from deadlock and from starvation",
        shown: &[Shown {
            case: "guarantees of two locks: every condition with a deadlock also has a starving process",
            asks: &[("guarantees central", "all"), ("guarantees token-ring", "all")],
            holds: |m| m.deadlocks_starve(),
        }],
        remark: "Liveness is judged as: every process that requests is granted in the end.",
    },
    Statement {
        chapter: "Mutual exclusion",
        name: "throughput",
        says: "the throughput is 1/(coordination delay + execution time)",
        shown: &[
            Shown {
                case: "a delay of T, E = 5: entries per T",
                asks: &[("run ricart-agrawala -n 5 --entries 200 --hold 5", "/mutex/throughput")],
                holds: |m| m.near(1.0 / 6.0),
            },
            Shown {
                case: "a delay of 2T, E = 5: entries per T",
                asks: &[(
                    "run central -n 5 --requests 0,100,100,100,100 --hold 5",
                    "/mutex/throughput",
                )],
                holds: |m| m.near(1.0 / 7.0),
            },
        ],
        remark: "This holds while some process always waits to enter.",
    },
    Statement {
        chapter: "Mutual exclusion",
        name: "no-loss",
        says: "none of the three algorithms (central, distributed, token ring) tolerates a lost message",
        shown: &[Shown {
            case: "losses without harm, of all single losses",
            asks: &[
                ("tolerance central", "faults loss"),
                ("tolerance ricart-agrawala", "faults loss"),
                ("tolerance token-ring", "faults loss"),
            ],
            holds: |m| m.each_part(|part| part < 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-example-a",
        says: "example (a): process 1 sends a request to the coordinator (3), and receives the OK",
        shown: &[Shown {
            case: "requests, grants, entries",
            asks: &[
                (
                    "run central --ids 3,0,1,2 --script 1@0 --hold 10 --time-limit 5",
                    "/messages/by_kind/Request",
                ),
                (
                    "run central --ids 3,0,1,2 --script 1@0 --hold 10 --time-limit 5",
                    "/messages/by_kind/Grant",
                ),
                (
                    "run central --ids 3,0,1,2 --script 1@0 --hold 10 --time-limit 5",
                    "/mutex/entries",
                ),
            ],
            holds: |m| m.at(0) == 1.0 && m.at(1) == 1.0 && m.at(2) == 1.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-example-b",
        says: "example (b): process 2 requests meanwhile; the coordinator queues the request and does not reply",
        shown: &[Shown {
            case: "requests, grants, waiting process",
            asks: &[
                (
                    "run central --ids 3,0,1,2 --script 1@0,2@3 --hold 10 --time-limit 8",
                    "/messages/by_kind/Request",
                ),
                (
                    "run central --ids 3,0,1,2 --script 1@0,2@3 --hold 10 --time-limit 8",
                    "/messages/by_kind/Grant",
                ),
                ("run central --ids 3,0,1,2 --script 1@0,2@3 --hold 10 --time-limit 8", "/waiting"),
            ],
            holds: |m| m.at(0) == 2.0 && m.at(1) == 1.0 && m.text(2) == "[2]",
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-example-c",
        says: "example (c): process 1 releases, process 2 receives the OK, and the queue is empty",
        shown: &[Shown {
            case: "releases, grants, waiting processes",
            asks: &[
                (
                    "run central --ids 3,0,1,2 --script 1@0,2@3 --hold 10 --time-limit 14",
                    "/messages/by_kind/Release",
                ),
                (
                    "run central --ids 3,0,1,2 --script 1@0,2@3 --hold 10 --time-limit 14",
                    "/messages/by_kind/Grant",
                ),
                (
                    "run central --ids 3,0,1,2 --script 1@0,2@3 --hold 10 --time-limit 14",
                    "/waiting",
                ),
            ],
            holds: |m| m.at(0) == 1.0 && m.at(1) == 2.0 && m.text(2) == "[]",
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-kinds",
        says: "there are three kinds of messages: REQUEST, REPLY, RELEASE",
        shown: &[Shown {
            case: "messages of a run by kind",
            asks: &[("run central -n 5 --requests 0,0,0,0,1", "/messages/by_kind")],
            holds: |m| m.keys() == ["Grant", "Release", "Request"],
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-correct",
        says: "the algorithm is safe and live",
        shown: &[Shown {
            case: "three nodes, every schedule",
            asks: &[("check central -n 3", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-fair",
        says: "it is fair: the coordinator grants requests in their order",
        shown: &[
            Shown {
                case: "in the order of arrival at the coordinator: entries out of order",
                asks: &[("run central -n 5 --entries 20 --hold 5", "/mutex/order_inversions")],
                holds: |m| m.eq(0.0),
            },
            Shown {
                case: "in the order of sending",
                asks: &[(
                    "check central -n 3 --requests 0,1,1 --app-messages 1 --property order",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "A request may overtake an earlier one on its way.",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-order",
        says: "entries need not follow the happened-before order",
        shown: &[Shown {
            case: "three nodes with application messages, every schedule",
            asks: &[(
                "check central -n 3 --requests 0,1,1 --app-messages 1 --property order",
                "/property",
            )],
            holds: |m| m.all("happened-before order"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-simple",
        says: "it is easy to implement",
        shown: &[Shown {
            case: "reachable states of three nodes: central, Ricart–Agrawala",
            asks: &[("check central -n 3", "/states"), ("check ricart-agrawala -n 3", "/states")],
            holds: |m| m.at(0) < m.at(1),
        }],
        remark: "The number of states stands for the situations that an implementation must handle.",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-cost",
        says: "an entry takes at most three messages",
        shown: &[
            Shown {
                case: "one client alone: messages",
                asks: &[("run central -n 5 --requests 0,0,0,0,1", "/messages/sent")],
                holds: |m| m.eq(3.0),
            },
            Shown {
                case: "all clients at once: messages per entry",
                asks: &[("run central -n 5 --entries 20", "/mutex/messages_per_entry")],
                holds: |m| m.x() <= 3.0,
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-delay",
        says: "the coordination delay is the time of two messages",
        shown: &[Shown {
            case: "delay in T",
            asks: &[("run central -n 5 --requests 0,5,5,5,5", "/mutex/sync_delay/max")],
            holds: |m| m.eq(2.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-crash",
        says: "a client may crash while it neither holds nor waits",
        shown: &[Shown {
            case: "crashes of idle clients without harm",
            asks: &[("tolerance central", "crash idle")],
            holds: |m| m.part() == 1.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-server",
        says: "it does not tolerate a crash of the server: a single point of failure",
        shown: &[Shown {
            case: "crashes of the coordinator without harm",
            asks: &[("tolerance central", "crash coordinator")],
            holds: |m| m.part() == 0.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-inside",
        says: "a client that crashes in the critical section can cause a deadlock",
        shown: &[Shown {
            case: "crashes of the holder without harm",
            asks: &[("tolerance central", "crash holder")],
            holds: |m| m.part() < 1.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-loss",
        says: "a lost message can cause a deadlock",
        shown: &[Shown {
            case: "losses of a request, of a grant, of a release without harm",
            asks: &[
                ("tolerance central", "loss Request"),
                ("tolerance central", "loss Grant"),
                ("tolerance central", "loss Release"),
            ],
            holds: |m| m.each_part(|part| part < 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-silent",
        says: "a client cannot tell a long queue from a crashed server",
        shown: &[Shown {
            case: "waiting client: with a long queue, with a crashed server",
            asks: &[
                ("run central -n 4 --script 2@0,1@0.2 --hold 100 --time-limit 20", "/waiting"),
                ("run central -n 4 --script 1@0.2 --fault crash:0@0.5 --time-limit 20", "/waiting"),
            ],
            holds: |m| m.same(),
        }],
        remark: "",
    },
];
