//! Statements of the sources about locks in general and of the central coordinator.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Mutual exclusion",
        name: "mutex-messages",
        says: "without shared memory, a procedure for critical sections must exchange messages",
        shown: &[Shown {
            case: "exclusion in every schedule, and the fewest messages of all runs of two",
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
            case: "wherever a search finds a deadlock, a process starves",
            asks: &[("guarantees central", "all"), ("guarantees token-ring", "all")],
            holds: |m| m.deadlocks_starve(),
        }],
        remark: "(what is judged: who asked is granted in the end)",
    },
    Statement {
        chapter: "Mutual exclusion",
        name: "throughput",
        says: "throughput: 1/(coordination delay + execution time)",
        shown: &[
            Shown {
                case: "a delay of T, E = 5",
                asks: &[("run ricart-agrawala -n 5 --entries 200 --hold 5", "/mutex/throughput")],
                holds: |m| m.near(1.0 / 6.0),
            },
            Shown {
                case: "a delay of 2T, E = 5",
                asks: &[(
                    "run central -n 5 --requests 0,100,100,100,100 --hold 5",
                    "/mutex/throughput",
                )],
                holds: |m| m.near(1.0 / 7.0),
            },
        ],
        remark: "if someone always wants to enter",
    },
    Statement {
        chapter: "Mutual exclusion",
        name: "no-loss",
        says: "none of the three algorithms (central, distributed, token ring) tolerates a lost message",
        shown: &[Shown {
            case: "harmless losses",
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
        says: "example (a): process 1 asks the coordinator (3), and gets the OK",
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
        says: "example (b): process 2 asks meanwhile; there is no reply, and 2 is in the queue",
        shown: &[Shown {
            case: "requests, grants, and who waits",
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
        says: "example (c): process 1 releases, process 2 gets the OK, the queue is empty",
        shown: &[Shown {
            case: "releases, grants, and who waits",
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
        says: "three kinds of messages: REQUEST, REPLY, RELEASE",
        shown: &[Shown {
            case: "",
            asks: &[("run central -n 5 --requests 0,0,0,0,1", "/messages/by_kind")],
            holds: |m| m.keys() == ["Grant", "Release", "Request"],
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-correct",
        says: "safety and liveness are fulfilled",
        shown: &[Shown {
            case: "every schedule of three",
            asks: &[("check central -n 3", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-fair",
        says: "fair: the OKs are given in the order of the requests",
        shown: &[
            Shown {
                case: "in the order in which requests arrive: entries out of order",
                asks: &[("run central -n 5 --entries 20 --hold 5", "/mutex/order_inversions")],
                holds: |m| m.eq(0.0),
            },
            Shown {
                case: "in the order in which they are made",
                asks: &[(
                    "check central -n 3 --requests 0,1,1 --app-messages 1 --property order",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "a request may overtake an earlier one on its way",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-order",
        says: "happened-before order is not guaranteed",
        shown: &[Shown {
            case: "",
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
        says: "easy to realise",
        shown: &[Shown {
            case: "states of three nodes: fewer than Ricart–Agrawala's",
            asks: &[("check central -n 3", "/states"), ("check ricart-agrawala -n 3", "/states")],
            holds: |m| m.at(0) < m.at(1),
        }],
        remark: "(measured: the situations that one must think of)",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-cost",
        says: "at most three messages for an entry",
        shown: &[
            Shown {
                case: "a client alone: 3",
                asks: &[("run central -n 5 --requests 0,0,0,0,1", "/messages/sent")],
                holds: |m| m.eq(3.0),
            },
            Shown {
                case: "all at once, for each entry: less, for the coordinator's own are free",
                asks: &[("run central -n 5 --entries 20", "/mutex/messages_per_entry")],
                holds: |m| m.x() <= 3.0,
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-delay",
        says: "coordination delay: 2 message times",
        shown: &[Shown {
            case: "",
            asks: &[("run central -n 5 --requests 0,5,5,5,5", "/mutex/sync_delay/max")],
            holds: |m| m.eq(2.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-crash",
        says: "a client that neither holds nor asked may crash",
        shown: &[Shown {
            case: "harmless crashes of idle clients",
            asks: &[("tolerance central", "crash idle")],
            holds: |m| m.part() == 1.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-server",
        says: "the crash of the server is not tolerated: a single point of failure",
        shown: &[Shown {
            case: "harmless crashes of the coordinator",
            asks: &[("tolerance central", "crash coordinator")],
            holds: |m| m.part() == 0.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-inside",
        says: "a client that fails in the critical section can lead to a deadlock",
        shown: &[Shown {
            case: "harmless crashes of the holder",
            asks: &[("tolerance central", "crash holder")],
            holds: |m| m.part() < 1.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Central coordinator",
        name: "central-loss",
        says: "the loss of a message can lead to a deadlock",
        shown: &[Shown {
            case: "harmless losses of a request, a grant, a release",
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
            case: "the client waits, with a long queue as with a crashed server",
            asks: &[
                ("run central -n 4 --script 2@0,1@0.2 --hold 100 --time-limit 20", "/waiting"),
                ("run central -n 4 --script 1@0.2 --fault crash:0@0.5 --time-limit 20", "/waiting"),
            ],
            holds: |m| m.same(),
        }],
        remark: "",
    },
];
