//! Statements of the sources about group communication.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Group communication",
        name: "group-simpler",
        says: "many of these problems are solved more simply and more scalably by group communication",
        shown: &[
            Shown {
                case: "more simply: on totally ordered multicast, a lock outlives the crash of its holder; Ricart–Agrawala's needs rules of its own for that",
                asks: &[
                    ("run lock-table -n 4 --entries 2 --hold 5 --fault crash:1@6", "/verdict"),
                    ("run ricart-agrawala -n 4 --entries 2 --hold 5 --fault crash:1@6", "/verdict"),
                ],
                holds: |m| m.is(0, "ok") && m.is(1, "stuck"),
            },
            Shown {
                case: "more scalably: messages for an entry of 8 and of 16 nodes: less than twice as many",
                asks: &[
                    ("run lock-table -n 8 --entries 5", "/group/messages_per_entry"),
                    ("run lock-table -n 16 --entries 5", "/group/messages_per_entry"),
                ],
                holds: |m| m.at(1) < 2.0 * m.at(0),
            },
        ],
        remark: "simpler to use, not cheaper: the multicast does the work, and takes the messages",
    },
    Statement {
        chapter: "Group communication",
        name: "group-unknown",
        says: "multicast coordinates participants that do not know each other",
        shown: &[Shown {
            case: "what NACK and SRM assume",
            asks: &[("list nack", "/assumes"), ("list srm", "/assumes")],
            holds: |m| !m.has("known-membership"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "multicast-unreliable",
        says: "multicast as such is not reliable",
        shown: &[Shown {
            case: "one of two copies lost: delivered of three",
            asks: &[(
                "run best-effort -n 3 --requests 1,0,0 --fault lose:/Data#1",
                "/multicast/delivered",
            )],
            holds: |m| m.x() < 3.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "group-layer",
        says: "solution: a layer that makes it reliable",
        shown: &[Shown {
            case: "delivered of three with ACK, NACK, SRM",
            asks: &[
                ("run ack -n 3 --requests 1,0,0 --fault lose:/Data#1", "/multicast/delivered"),
                ("run nack -n 3 --requests 1,0,0 --fault lose:/Data#1", "/multicast/delivered"),
                ("run srm -n 3 --requests 1,0,0 --fault lose:/Data#1", "/multicast/delivered"),
            ],
            holds: |m| m.each(|x| x == 3.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "group-aspects",
        says: "aspects: losses, crashes, JOIN and LEAVE",
        shown: &[
            Shown {
                case: "a crash: the survivors that go on in the next view",
                asks: &[(
                    "run virtual-synchrony -n 4 --requests 1,1,1,1 --fault crash:3@2 --detect-after 1",
                    "/group/views",
                )],
                holds: |m| m.at(0) >= 2.0,
            },
            Shown {
                case: "JOIN: messages of that kind, and views",
                asks: &[
                    (
                        "run virtual-synchrony -n 4 --requests 1,1,1,1 --set joiners=3",
                        "/messages/by_kind/Join",
                    ),
                    (
                        "run virtual-synchrony -n 4 --requests 1,1,1,1 --set joiners=3",
                        "/group/views",
                    ),
                ],
                holds: |m| m.at(0) > 0.0 && m.at(1) > 1.0,
            },
            Shown {
                case: "LEAVE: the same",
                asks: &[
                    (
                        "run virtual-synchrony -n 4 --requests 1,1,1,1 --set leavers=3",
                        "/messages/by_kind/Leave",
                    ),
                    (
                        "run virtual-synchrony -n 4 --requests 1,1,1,1 --set leavers=3",
                        "/group/views",
                    ),
                ],
                holds: |m| m.at(0) > 0.0 && m.at(1) > 1.0,
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "group-known",
        says: "problem: how participants become known, and what the group is at the moment",
        shown: &[Shown {
            case: "members agree on each view",
            asks: &[(
                "check virtual-synchrony -n 3 --requests 1,0,0 --set reform=2 --set retry=off --property views",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "a joiner asks a member, and the next view has it",
    },
    Statement {
        chapter: "Group communication",
        name: "ack-known",
        says: "immediate feedback: all participants must be known",
        shown: &[Shown {
            case: "",
            asks: &[("list ack", "/assumes")],
            holds: |m| m.has("known-membership"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "ack-size",
        says: "immediate feedback: the size of the group is limited",
        shown: &[Shown {
            case: "confirmations of one message, all at the sender: n − 1",
            asks: &[("run ack -n 10 --requests 1,0,0,0,0,0,0,0,0,0", "/messages/by_kind/Ack")],
            holds: |m| m.eq(m.n() - 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "nack-quiet",
        says: "a receiver sends a NACK only for what is missing",
        shown: &[
            Shown {
                case: "without losses",
                asks: &[(
                    "run nack -n 10 --requests 1,0,0,0,0,0,0,0,0,0",
                    "/messages/by_kind/Nack",
                )],
                holds: |m| m.none(),
            },
            Shown {
                case: "one loss",
                asks: &[(
                    "run nack -n 10 --requests 1,0,0,0,0,0,0,0,0,0 --fault lose:/Data#1",
                    "/messages/by_kind/Nack",
                )],
                holds: |m| m.eq(1.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "nack-unknown",
        says: "receivers need not be known to the sender",
        shown: &[Shown {
            case: "",
            asks: &[("list nack", "/assumes")],
            holds: |m| !m.has("known-membership"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "nack-scales",
        says: "it scales better",
        shown: &[
            Shown {
                case: "messages to the sender of one message to 100: ACKs and NACKs",
                asks: &[
                    ("run ack -n 100 --initiators 0", "/messages/by_kind/Ack"),
                    (
                        "run nack -n 100 --initiators 0 --fault lose:/Data#1",
                        "/messages/by_kind/Nack",
                    ),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
            Shown {
                case: "all messages, heartbeats included",
                asks: &[
                    ("run ack -n 100 --initiators 0", "/messages/sent"),
                    ("run nack -n 100 --initiators 0", "/messages/sent"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
        ],
        remark: "the heartbeats that show lost tails cost messages, too",
    },
    Statement {
        chapter: "Group communication",
        name: "nack-chart",
        says: "the chart: of seven units 3 is asked for and repeated; the loss of 7, at the end, goes unnoticed",
        shown: &[Shown {
            case: "NACKs, repairs, delivered of 14",
            asks: &[
                (
                    "run nack -n 2 --script 0@0,0@1,0@2,0@3,0@4,0@5,0@6 --fault lose:0>1/Data#3 --fault lose:0>1/Data#7 --mistake no-heartbeat",
                    "/messages/by_kind/Nack",
                ),
                (
                    "run nack -n 2 --script 0@0,0@1,0@2,0@3,0@4,0@5,0@6 --fault lose:0>1/Data#3 --fault lose:0>1/Data#7 --mistake no-heartbeat",
                    "/messages/by_kind/Repair",
                ),
                (
                    "run nack -n 2 --script 0@0,0@1,0@2,0@3,0@4,0@5,0@6 --fault lose:0>1/Data#3 --fault lose:0>1/Data#7 --mistake no-heartbeat",
                    "/multicast/delivered",
                ),
            ],
            holds: |m| m.at(0) == 1.0 && m.at(1) == 1.0 && m.at(2) == 13.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "nack-application",
        says: "remedy: the logic of the application",
        shown: &[
            Shown {
                case: "it goes on sending: an eighth unit shows the gap: delivered of 16",
                asks: &[(
                    "run nack -n 2 --script 0@0,0@1,0@2,0@3,0@4,0@5,0@6,0@30 --fault lose:0>1/Data#7 --mistake no-heartbeat",
                    "/multicast/delivered",
                )],
                holds: |m| m.eq(16.0),
            },
            Shown {
                case: "it does not",
                asks: &[(
                    "run nack -n 2 --script 0@0,0@1,0@2,0@3,0@4,0@5,0@6 --fault lose:0>1/Data#7 --mistake no-heartbeat",
                    "/multicast/delivered",
                )],
                holds: |m| m.eq(14.0),
            },
        ],
        remark: "the logic must make the sender go on, or the receiver expect",
    },
    Statement {
        chapter: "Group communication",
        name: "nack-stop",
        says: "remedy: a redundant stop signal",
        shown: &[
            Shown {
                case: "delivered of 14",
                asks: &[(
                    "run nack -n 2 --script 0@0,0@1,0@2,0@3,0@4,0@5,0@6 --fault lose:0>1/Data#3 --fault lose:0>1/Data#7 --set beats=0",
                    "/multicast/delivered",
                )],
                holds: |m| m.eq(14.0),
            },
            Shown {
                case: "if the first stop is lost, too",
                asks: &[(
                    "run nack -n 2 --script 0@0,0@1,0@2,0@3,0@4,0@5,0@6 --fault lose:0>1/Data#3 --fault lose:0>1/Data#7 --fault lose:/Stop#1 --set beats=0",
                    "/multicast/delivered",
                )],
                holds: |m| m.eq(14.0),
            },
        ],
        remark: "copies can all be lost: it is repeated until it is answered",
    },
    Statement {
        chapter: "Group communication",
        name: "srm-suppression",
        says: "SRM: NACKs go to all by multicast, and compete, so that few are sent",
        shown: &[Shown {
            case: "seven receivers miss one message: requests with NACK to the sender, and with SRM",
            asks: &[
                (
                    "run nack -n 8 --requests 1,0,0,0,0,0,0,0 --fault lose:/Data#1 --fault lose:/Data#2 --fault lose:/Data#3 --fault lose:/Data#4 --fault lose:/Data#5 --fault lose:/Data#6 --fault lose:/Data#7 --seed 1",
                    "/multicast/requests_per_loss",
                ),
                (
                    "run srm -n 8 --requests 1,0,0,0,0,0,0,0 --fault lose:/Data#1 --fault lose:/Data#2 --fault lose:/Data#3 --fault lose:/Data#4 --fault lose:/Data#5 --fault lose:/Data#6 --fault lose:/Data#7 --seed 1",
                    "/multicast/requests_per_loss",
                ),
            ],
            holds: |m| m.at(1) < m.at(0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "srm-repairs",
        says: "SRM: repairs go to the group",
        shown: &[Shown {
            case: "repairs for seven receivers that miss one message, and delivered of eight",
            asks: &[
                (
                    "run srm -n 8 --requests 1,0,0,0,0,0,0,0 --fault lose:/Data#1 --fault lose:/Data#2 --fault lose:/Data#3 --fault lose:/Data#4 --fault lose:/Data#5 --fault lose:/Data#6 --fault lose:/Data#7 --seed 1",
                    "/multicast/repairs_per_loss",
                ),
                (
                    "run srm -n 8 --requests 1,0,0,0,0,0,0,0 --fault lose:/Data#1 --fault lose:/Data#2 --fault lose:/Data#3 --fault lose:/Data#4 --fault lose:/Data#5 --fault lose:/Data#6 --fault lose:/Data#7 --seed 1",
                    "/multicast/delivered",
                ),
            ],
            holds: |m| m.at(0) == 1.0 && m.at(1) == 8.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "srm-unwanted",
        says: "SRM's problem: unwanted packets",
        shown: &[Shown {
            case: "a loss at one of twenty: unwanted packets at each member with SRM, and with NACK",
            asks: &[
                (
                    "run srm -n 20 --initiators 0 --fault lose:/Data#1 --set timers=fixed --set sessions=3",
                    "/multicast/unwanted_per_member",
                ),
                (
                    "run nack -n 20 --initiators 0 --fault lose:/Data#1",
                    "/multicast/unwanted_per_member",
                ),
            ],
            holds: |m| m.at(0) > m.at(1),
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "view-atomic",
        says: "virtual synchrony is atomic: a message is delivered by all or by none",
        shown: &[
            Shown {
                case: "delivery waits for a majority",
                asks: &[(
                    "check virtual-synchrony -n 3 --requests 1,0,0 --crash 1 --set retry=off --property uniform",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "delivery as soon as the message has its place",
                asks: &[(
                    "check virtual-synchrony -n 3 --requests 1,0,0 --crash 1 --set retry=off --mistake agreed-delivery",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "by all that work is not enough: a crashed process may have acted on what the others never see",
    },
    Statement {
        chapter: "Group communication",
        name: "view-total",
        says: "totally ordered: all process messages in the same order",
        shown: &[Shown {
            case: "every schedule of three members, two messages and one change",
            asks: &[(
                "check virtual-synchrony -n 3 --requests 1,1,0 --set reform=0 --set retry=off --property uniform",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "the literature keeps the order apart from the views",
    },
    Statement {
        chapter: "Group communication",
        name: "view-uniform",
        says: "all that work have the same view of the group",
        shown: &[Shown {
            case: "every schedule of three members, one message and one change",
            asks: &[(
                "check virtual-synchrony -n 3 --requests 1,0,0 --set reform=2 --set retry=off --property views",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "view-barrier",
        says: "communication takes place between changes of the view: they are barriers for messages",
        shown: &[
            Shown {
                case: "every schedule of three members, one message and one change",
                asks: &[(
                    "check virtual-synchrony -n 3 --requests 1,0,0 --set reform=2 --set retry=off",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "a member that delivers on during the change",
                asks: &[(
                    "check virtual-synchrony -n 3 --mistake keep-delivering --requests 1,0,0 --set reform=2 --set retry=off",
                    "/property",
                )],
                holds: |m| m.all("uniform agreement"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "view-picture",
        says: "the picture: a member fails, the others go on in the next view",
        shown: &[Shown {
            case: "views, and T from the first stop to the next view",
            asks: &[
                (
                    "run virtual-synchrony -n 4 --requests 1,1,1,1 --fault crash:3@2 --detect-after 1",
                    "/group/views",
                ),
                (
                    "run virtual-synchrony -n 4 --requests 1,1,1,1 --fault crash:3@2 --detect-after 1",
                    "/group/change_max",
                ),
            ],
            holds: |m| m.at(0) >= 2.0 && m.x() > 0.0 && m.at(1) <= 4.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "view-decides",
        says: "a view is the direct ground for decisions",
        shown: &[Shown {
            case: "the coordinator of each view, before and after its crash",
            asks: &[
                ("run leader -n 4", "/group/leader"),
                ("run leader -n 4 --fault crash:0@3", "/group/leader"),
            ],
            holds: |m| m.at(0) == 0.0 && m.at(1) == 1.0,
        }],
        remark: "",
    },
];
