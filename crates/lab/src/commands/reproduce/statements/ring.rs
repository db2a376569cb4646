//! Statements of the sources about the ring algorithm with lists.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Ring with lists",
        name: "ring-kinds",
        says: "there are two kinds of messages: ELECTION and COORDINATOR",
        shown: &[Shown {
            case: "messages of a run by kind",
            asks: &[("run ring-list -n 8 --down 7 --initiators 5", "/messages/by_kind")],
            holds: |m| m.keys() == ["Coordinator", "Election"],
        }],
        remark: "",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-author",
        says: "this is the algorithm of Chang and Roberts, 1979",
        shown: &[Shown {
            case: "ids fall in the direction of the messages: messages of this algorithm and of Chang–Roberts",
            asks: &[
                ("run ring-list -n 8 --ids desc", "/messages/sent"),
                ("run chang-roberts -n 8 --ids desc", "/messages/sent"),
            ],
            holds: |m| m.same(),
        }],
        remark: "This algorithm collects lists, and drops no message in favour of a higher id. The algorithm of 1979 is the one in the report.",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-assumes",
        says: "each process has a unique id, and the ring is directed",
        shown: &[Shown {
            case: "assumptions; topologies",
            asks: &[("list ring-list", "/assumes"), ("list ring-list", "/topologies")],
            holds: |m| m.has_at(0, "unique-ids") && m.has_at(1, "directed ring"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-skip",
        says: "a process knows further nodes of the ring, so it can skip a successor that it cannot reach",
        shown: &[
            Shown {
                case: "one of eight crashed before the start: nodes that know the leader",
                asks: &[("run ring-list -n 8 --down 3 --initiators 0", "/election/agreeing")],
                holds: |m| m.eq(m.n() - 1.0),
            },
            Shown {
                case: "a process crashes while it has the message",
                asks: &[("run ring-list -n 8 --initiators 0 --fault crash:3@1.5", "/verdict")],
                holds: |m| m.all("ok"),
            },
        ],
        remark: "The message is lost with the process that crashes (mode=hardened sends it again).",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-faults",
        says: "the assumption that all processes are active and free of faults is necessary",
        shown: &[
            Shown {
                case: "a crash stops the election",
                asks: &[("run ring-list -n 8 --initiators 0 --fault crash:3@1.5", "/verdict")],
                holds: |m| m.all("stuck"),
            },
            Shown {
                case: "a crash stops the election even with a rule for crashes (mode=hardened)",
                asks: &[(
                    "run ring-list -n 8 --initiators 0 --fault crash:3@1.5 --set mode=hardened",
                    "/verdict",
                )],
                holds: |m| m.all("stuck"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-finish",
        says: "the printed code is right",
        shown: &[
            Shown {
                case: "HOLD_ELECTION and CONTINUE_ELECTION, every schedule",
                asks: &[("check ring-list -n 3", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "FINISH_ELECTION, which does not forward the result",
                asks: &[("check ring-list --mistake no-forward -n 3 --initiators 0", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "With the printed FINISH_ELECTION, only one neighbour learns the result.",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-lists",
        says: "example: 4 starts with [4], then [2,4], [1,2,4]; the highest id on the list becomes coordinator",
        shown: &[Shown {
            case: "a ring of 4, 2, 1, 5: id of the leader",
            asks: &[("run ring-list --ids 4,2,1,5 --initiators 4", "/election/leader")],
            holds: |m| m.eq(5.0),
        }],
        remark: "The source's picture is partly illegible.",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-two",
        says: "several processes may start",
        shown: &[Shown {
            case: "2 and 5 of eight start, 7 has crashed: id of the leader",
            asks: &[("run ring-list -n 8 --down 7 --initiators 2,5", "/election/leader")],
            holds: |m| m.eq(6.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-cost",
        says: "the worst case is 2(n − 1) messages",
        shown: &[
            Shown {
                case: "one initiator, one crashed process: messages",
                asks: &[("run ring-list -n 8 --down 7 --initiators 5", "/messages/sent")],
                holds: |m| m.eq(2.0 * (m.n() - 1.0)),
            },
            Shown {
                case: "one initiator, no crashed process, so 2n messages",
                asks: &[("run ring-list -n 8 --initiators 5", "/messages/sent")],
                holds: |m| m.x() <= 2.0 * (m.n() - 1.0),
            },
            Shown {
                case: "two initiators, so 2n messages for each",
                asks: &[("run ring-list -n 8 --initiators 2,5", "/messages/sent")],
                holds: |m| m.x() <= 2.0 * (m.n() - 1.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-half",
        says: "of these, n − 1 are ELECTION messages and n − 1 are COORDINATOR messages",
        shown: &[Shown {
            case: "ELECTION and COORDINATOR messages",
            asks: &[
                ("run ring-list -n 8 --down 7 --initiators 5", "/messages/by_kind/Election"),
                ("run ring-list -n 8 --down 7 --initiators 5", "/messages/by_kind/Coordinator"),
            ],
            holds: |m| m.same() && m.eq(m.n() - 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-built",
        says: "the algorithm needs a logical ring",
        shown: &[
            Shown {
                case: "topologies",
                asks: &[("list ring-list", "/topologies")],
                holds: |m| m.has("directed ring"),
            },
            Shown {
                case: "a path is refused: exit code",
                asks: &[("run ring-list -n 4 --topology path", "exit")],
                holds: |m| !m.eq(0.0),
            },
        ],
        remark: "",
    },
];
