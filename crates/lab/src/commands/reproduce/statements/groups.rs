//! Statements of the sources about group communication.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Group communication",
        name: "group-simpler",
        says: "group communication solves many of these problems more simply and with better scalability",
        shown: &[
            Shown {
                case: "more simply: the holder crashes; a lock on totally ordered multicast, and Ricart–Agrawala, which would need further rules",
                asks: &[
                    ("run lock-table -n 4 --entries 2 --hold 5 --fault crash:1@6", "/verdict"),
                    ("run ricart-agrawala -n 4 --entries 2 --hold 5 --fault crash:1@6", "/verdict"),
                ],
                holds: |m| m.is(0, "ok") && m.is(1, "stuck"),
            },
            Shown {
                case: "better scalability: messages per entry with 8 and with 16 nodes, less than twice as many",
                asks: &[
                    ("run lock-table -n 8 --entries 5", "/group/messages_per_entry"),
                    ("run lock-table -n 16 --entries 5", "/group/messages_per_entry"),
                ],
                holds: |m| m.at(1) < 2.0 * m.at(0),
            },
        ],
        remark: "A lock on a multicast is simpler, but not cheaper: the multicast sends the messages in its place.",
    },
    Statement {
        chapter: "Group communication",
        name: "group-unknown",
        says: "multicast coordinates participants that do not know each other",
        shown: &[Shown {
            case: "assumptions of NACK and of SRM",
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
            case: "one of two copies lost: deliveries, of three",
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
        says: "a layer above makes it reliable",
        shown: &[Shown {
            case: "the same loss with ACK, NACK, SRM: deliveries, of three",
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
        says: "such a layer must handle losses, crashes, JOIN and LEAVE",
        shown: &[
            Shown {
                case: "a member crashes: views",
                asks: &[(
                    "run virtual-synchrony -n 4 --requests 1,1,1,1 --fault crash:3@2 --detect-after 1",
                    "/group/views",
                )],
                holds: |m| m.at(0) >= 2.0,
            },
            Shown {
                case: "a member joins: JOIN messages, and views",
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
                case: "a member leaves: LEAVE messages, and views",
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
        says: "problem: how participants become known, and which processes belong to the group at the moment",
        shown: &[Shown {
            case: "members agree on each view, every schedule",
            asks: &[(
                "check virtual-synchrony -n 3 --requests 1,0,0 --set reform=2 --set retry=off --property views",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "A joining process asks a member, and the next view contains it.",
    },
    Statement {
        chapter: "Group communication",
        name: "ack-known",
        says: "immediate feedback: all participants must be known",
        shown: &[Shown {
            case: "assumptions",
            asks: &[("list ack", "/assumes")],
            holds: |m| m.has("known-membership"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "ack-size",
        says: "immediate feedback limits the size of the group",
        shown: &[Shown {
            case: "one message to ten members: confirmations that reach the sender, n − 1",
            asks: &[("run ack -n 10 --requests 1,0,0,0,0,0,0,0,0,0", "/messages/by_kind/Ack")],
            holds: |m| m.eq(m.n() - 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "nack-quiet",
        says: "a receiver sends a NACK only for a missing message",
        shown: &[
            Shown {
                case: "NACKs without losses",
                asks: &[(
                    "run nack -n 10 --requests 1,0,0,0,0,0,0,0,0,0",
                    "/messages/by_kind/Nack",
                )],
                holds: |m| m.none(),
            },
            Shown {
                case: "NACKs with one loss",
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
        says: "the sender need not know the receivers",
        shown: &[Shown {
            case: "assumptions",
            asks: &[("list nack", "/assumes")],
            holds: |m| !m.has("known-membership"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Group communication",
        name: "nack-scales",
        says: "NACKs scale better than immediate feedback",
        shown: &[
            Shown {
                case: "one message to 100 members: ACKs, and NACKs after one loss, that reach the sender",
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
                case: "one message to 100 members: all messages with ACK and with NACK, heartbeats included",
                asks: &[
                    ("run ack -n 100 --initiators 0", "/messages/sent"),
                    ("run nack -n 100 --initiators 0", "/messages/sent"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
        ],
        remark: "The heartbeats that reveal a lost last message cost messages, too.",
    },
    Statement {
        chapter: "Group communication",
        name: "nack-chart",
        says: "chart of seven messages: the loss of message 3 is requested and repaired; the loss of message 7, the last one, goes unnoticed",
        shown: &[Shown {
            case: "NACKs, repairs, deliveries of 14",
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
        says: "remedy against an unnoticed last loss: the application's own logic",
        shown: &[
            Shown {
                case: "it sends an eighth message, which reveals the gap: deliveries, of 16",
                asks: &[(
                    "run nack -n 2 --script 0@0,0@1,0@2,0@3,0@4,0@5,0@6,0@30 --fault lose:0>1/Data#7 --mistake no-heartbeat",
                    "/multicast/delivered",
                )],
                holds: |m| m.eq(16.0),
            },
            Shown {
                case: "it sends no further message: deliveries, of 14",
                asks: &[(
                    "run nack -n 2 --script 0@0,0@1,0@2,0@3,0@4,0@5,0@6 --fault lose:0>1/Data#7 --mistake no-heartbeat",
                    "/multicast/delivered",
                )],
                holds: |m| m.eq(14.0),
            },
        ],
        remark: "The application must make the sender send again, or the receiver expect a certain message.",
    },
    Statement {
        chapter: "Group communication",
        name: "nack-stop",
        says: "remedy against an unnoticed last loss: a redundant stop signal",
        shown: &[
            Shown {
                case: "deliveries, of 14",
                asks: &[(
                    "run nack -n 2 --script 0@0,0@1,0@2,0@3,0@4,0@5,0@6 --fault lose:0>1/Data#3 --fault lose:0>1/Data#7 --set beats=0",
                    "/multicast/delivered",
                )],
                holds: |m| m.eq(14.0),
            },
            Shown {
                case: "the first stop signal is lost, too: deliveries, of 14",
                asks: &[(
                    "run nack -n 2 --script 0@0,0@1,0@2,0@3,0@4,0@5,0@6 --fault lose:0>1/Data#3 --fault lose:0>1/Data#7 --fault lose:/Stop#1 --set beats=0",
                    "/multicast/delivered",
                )],
                holds: |m| m.eq(14.0),
            },
        ],
        remark: "All copies may be lost, so the sender repeats the signal until receivers confirm it.",
    },
    Statement {
        chapter: "Group communication",
        name: "srm-suppression",
        says: "SRM sends NACKs to all by multicast; the receivers compete, so that few of them send one",
        shown: &[Shown {
            case: "seven receivers miss one message: NACKs to the sender with NACK, and NACKs to all with SRM",
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
        says: "SRM sends repairs to the whole group",
        shown: &[Shown {
            case: "seven receivers miss one message: repairs, and deliveries of eight",
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
        says: "SRM's problem is unwanted packets",
        shown: &[Shown {
            case: "one of twenty misses a message: unwanted packets per member with SRM and with NACK",
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
        says: "virtual synchrony is atomic: all members deliver a message, or none does",
        shown: &[
            Shown {
                case: "a message is delivered once a majority has it",
                asks: &[(
                    "check virtual-synchrony -n 3 --requests 1,0,0 --crash 1 --set retry=off --property uniform",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "a message is delivered as soon as it has its place in the order",
                asks: &[(
                    "check virtual-synchrony -n 3 --requests 1,0,0 --crash 1 --set retry=off --mistake agreed-delivery",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "Agreement of the members that are alive is not enough: a crashed member may have acted on a message that the others never deliver.",
    },
    Statement {
        chapter: "Group communication",
        name: "view-total",
        says: "total order: all members deliver messages in the same order",
        shown: &[Shown {
            case: "three members, two messages, one view change, every schedule",
            asks: &[(
                "check virtual-synchrony -n 3 --requests 1,1,0 --set reform=0 --set retry=off --property uniform",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "The literature treats the order apart from the views.",
    },
    Statement {
        chapter: "Group communication",
        name: "view-uniform",
        says: "all members that are alive have the same view of the group",
        shown: &[Shown {
            case: "three members, one message, one view change, every schedule",
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
        says: "communication takes place between view changes: they are barriers for messages",
        shown: &[
            Shown {
                case: "three members, one message, one view change, every schedule",
                asks: &[(
                    "check virtual-synchrony -n 3 --requests 1,0,0 --set reform=2 --set retry=off",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "a member that goes on delivering during the view change",
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
        says: "picture: a member crashes, and the others go on in the next view",
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
        says: "a view is a direct basis for decisions",
        shown: &[Shown {
            case: "the coordinator derived from the view, before and after its crash",
            asks: &[
                ("run leader -n 4", "/group/leader"),
                ("run leader -n 4 --fault crash:0@3", "/group/leader"),
            ],
            holds: |m| m.at(0) == 0.0 && m.at(1) == 1.0,
        }],
        remark: "",
    },
];
