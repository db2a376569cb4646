//! Statements of the sources about the ring algorithm with lists.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Ring with lists",
        name: "ring-kinds",
        says: "two kinds of messages: election, coordinator",
        shown: &[Shown {
            case: "",
            asks: &[("run ring-list -n 8 --down 7 --initiators 5", "/messages/by_kind")],
            holds: |m| m.keys() == ["Coordinator", "Election"],
        }],
        remark: "",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-author",
        says: "the algorithm is that of Chang and Roberts, 1979",
        shown: &[Shown {
            case: "it and theirs, on ids that fall in the direction of the messages",
            asks: &[
                ("run ring-list -n 8 --ids desc", "/messages/sent"),
                ("run chang-roberts -n 8 --ids desc", "/messages/sent"),
            ],
            holds: |m| m.same(),
        }],
        remark: "it collects lists, and no message is dropped for a higher one: theirs is the one in the report",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-assumes",
        says: "each process has an id of its own, and the ring is directed",
        shown: &[Shown {
            case: "",
            asks: &[("list ring-list", "/assumes"), ("list ring-list", "/topologies")],
            holds: |m| m.has_at(0, "unique-ids") && m.has_at(1, "directed ring"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-skip",
        says: "a process knows the further nodes, so that it skips a successor that it cannot reach",
        shown: &[
            Shown {
                case: "one is down from the start: nodes that know the leader",
                asks: &[("run ring-list -n 8 --down 3 --initiators 0", "/election/agreeing")],
                holds: |m| m.eq(m.n() - 1.0),
            },
            Shown {
                case: "one fails with the message in hand",
                asks: &[("run ring-list -n 8 --initiators 0 --fault crash:3@1.5", "/verdict")],
                holds: |m| m.all("ok"),
            },
        ],
        remark: "who fails with the message in hand takes it along (mode=hardened goes on)",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-faults",
        says: "all processes are active, and there are no faults",
        shown: &[
            Shown {
                case: "it is needed: a crash stops the election",
                asks: &[("run ring-list -n 8 --initiators 0 --fault crash:3@1.5", "/verdict")],
                holds: |m| m.all("stuck"),
            },
            Shown {
                case: "the same with a rule for crashes (mode=hardened)",
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
        says: "the code as printed",
        shown: &[
            Shown {
                case: "HOLD_ELECTION and CONTINUE_ELECTION",
                asks: &[("check ring-list -n 3", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "FINISH_ELECTION does not pass the result on",
                asks: &[("check ring-list --mistake no-forward -n 3 --initiators 0", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "only one neighbour learns the result",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-lists",
        says: "example: 4 starts with [4], then [2,4], [1,2,4]; the highest on the list is the coordinator",
        shown: &[Shown {
            case: "the next after 4, 2, 1 is 5: the leader",
            asks: &[("run ring-list --ids 4,2,1,5 --initiators 4", "/election/leader")],
            holds: |m| m.eq(5.0),
        }],
        remark: "the picture as far as it can be restored",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-two",
        says: "several may start",
        shown: &[Shown {
            case: "of eight, 2 and 5: the leader, and 7 is down",
            asks: &[("run ring-list -n 8 --down 7 --initiators 2,5", "/election/leader")],
            holds: |m| m.eq(6.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-cost",
        says: "worst case: 2(n − 1) messages",
        shown: &[
            Shown {
                case: "one starts, and one is down",
                asks: &[("run ring-list -n 8 --down 7 --initiators 5", "/messages/sent")],
                holds: |m| m.eq(2.0 * (m.n() - 1.0)),
            },
            Shown {
                case: "one starts, and nobody is down: 2n",
                asks: &[("run ring-list -n 8 --initiators 5", "/messages/sent")],
                holds: |m| m.x() <= 2.0 * (m.n() - 1.0),
            },
            Shown {
                case: "two start: 2n each",
                asks: &[("run ring-list -n 8 --initiators 2,5", "/messages/sent")],
                holds: |m| m.x() <= 2.0 * (m.n() - 1.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Ring with lists",
        name: "ring-half",
        says: "n − 1 election messages and n − 1 coordinator messages",
        shown: &[Shown {
            case: "",
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
        says: "a logical ring must be built",
        shown: &[
            Shown {
                case: "topologies",
                asks: &[("list ring-list", "/topologies")],
                holds: |m| m.has("directed ring"),
            },
            Shown {
                case: "exit code on a path",
                asks: &[("run ring-list -n 4 --topology path", "exit")],
                holds: |m| !m.eq(0.0),
            },
        ],
        remark: "",
    },
];
