//! Statements of the sources about FireWire's election on trees.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "FireWire",
        name: "firewire-hot-plug",
        says: "hot-pluggable: devices come and go at any time, and each change causes a bus reset and an election of the bus master",
        shown: &[
            Shown {
                case: "one device leaves: elections, and nodes that agree",
                asks: &[
                    ("run firewire -n 4 --topology path --fault crash:3@30", "/election/elections"),
                    ("run firewire -n 4 --topology path --fault crash:3@30", "/election/agreeing"),
                ],
                holds: |m| m.at(0) >= 2.0 && m.at(1) == 3.0,
            },
            Shown {
                case: "one device comes: elections, and nodes that agree",
                asks: &[
                    (
                        "run firewire -n 4 --topology path --fault crash:3@0 --fault restart:3@30",
                        "/election/elections",
                    ),
                    (
                        "run firewire -n 4 --topology path --fault crash:3@0 --fault restart:3@30",
                        "/election/agreeing",
                    ),
                ],
                holds: |m| m.at(0) >= 2.0 && m.at(1) == 4.0,
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-ports",
        says: "a device has one or several ports (3 are recommended)",
        shown: &[Shown {
            case: "at most 3 ports used, and 6 ports used: nodes that know the master",
            asks: &[
                ("run firewire -n 7 --topology tree:2", "/election/agreeing"),
                ("run firewire -n 7 --topology star", "/election/agreeing"),
            ],
            holds: |m| m.each(|x| x == 7.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-tree",
        says: "the network is connected and free of cycles, and links work in both directions",
        shown: &[Shown {
            case: "a network with a cycle: nodes that know a master, nodes that report a loop",
            asks: &[
                ("run firewire -n 4 --topology ring", "/election/agreeing"),
                ("run firewire -n 4 --topology ring", "/election/loops"),
            ],
            holds: |m| m.at(0) == 0.0 && m.at(1) == m.n(),
        }],
        remark: "A timeout detects the loop.",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-neighbours",
        says: "each device knows only its direct neighbours",
        shown: &[Shown {
            case: "assumptions",
            asks: &[("list firewire", "/assumes")],
            holds: |m| !m.has("known-membership") && !m.has("unique-ids"),
        }],
        remark: "",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-chance",
        says: "the election is decentralised, and not deterministic",
        shown: &[
            Shown {
                case: "masters with three seeds when two nodes contend",
                asks: &[(
                    "run firewire -n 2 --topology path --set reset=wire --seed {1..3}",
                    "/election/leader",
                )],
                holds: |m| !m.same(),
            },
            Shown {
                case: "masters with three seeds when no link is contended",
                asks: &[(
                    "run firewire -n 7 --topology tree:2 --initiators all --set reset=wire --seed {1..3}",
                    "/election/leader",
                )],
                holds: |m| !m.same(),
            },
        ],
        remark: "Chance decides only between two nodes that ask each other.",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-wave",
        says: "leaves ask first; an inner node asks over its last link after all other neighbours asked it, and confirms their requests",
        shown: &[Shown {
            case: "requests and confirmations, one of each per link (n − 1)",
            asks: &[
                (
                    "run firewire -n 7 --topology tree:2 --initiators all --set reset=wire --set contention=id",
                    "/messages/by_kind/BeMyParent",
                ),
                (
                    "run firewire -n 7 --topology tree:2 --initiators all --set reset=wire --set contention=id",
                    "/messages/by_kind/YouAreMyChild",
                ),
            ],
            holds: |m| m.each(|x| x == 6.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-inner",
        says: "only a node with k > 1 links becomes master",
        shown: &[
            Shown {
                case: "two nodes, where a leaf may become master",
                asks: &[(
                    "check firewire -n 2 --topology path --set reset=wire --property deadlock",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "two nodes, as printed",
                asks: &[(
                    "check firewire --mistake inner-only -n 2 --topology path --set timeout=0",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "As printed, two leaves wait for each other for ever.",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-one",
        says: "at most one link is contended",
        shown: &[Shown {
            case: "the worst of all schedules: messages, at most one request more than 2(n − 1)",
            asks: &[
                (
                    "check firewire -n 5 --topology path --set reset=wire --set contention=id --count-messages",
                    "/messages/1",
                ),
                (
                    "check firewire -n 5 --topology star --set reset=wire --set contention=id --count-messages",
                    "/messages/1",
                ),
            ],
            holds: |m| m.each(|x| x <= 2.0 * (m.n() - 1.0) + 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-random",
        says: "both nodes wait at random for 240 to 260 ns or 570 to 600 ns and ask again, until one of them has won",
        shown: &[
            Shown {
                case: "requests of two nodes with five seeds: two that cross, and one or two more in each round",
                asks: &[(
                    "run firewire -n 2 --topology path --set reset=wire --seed {1..5}",
                    "/messages/by_kind/BeMyParent",
                )],
                holds: |m| m.each(|x| x >= 3.0 && x % 2.0 == 1.0),
            },
            Shown {
                case: "from every reachable state, the conflict can end",
                asks: &[(
                    "check firewire -n 2 --topology path --set reset=wire --property livelock",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-id",
        says: "alternative: the larger id wins",
        shown: &[
            Shown {
                case: "ids 3 and 8: id of the master",
                asks: &[(
                    "run firewire -n 2 --topology path --ids 3,8 --set contention=id",
                    "/election/leader",
                )],
                holds: |m| m.eq(8.0),
            },
            Shown {
                case: "ids 9, 1, 2, 3 on a path: id of the master",
                asks: &[(
                    "run firewire -n 4 --topology path --ids 9,1,2,3 --set contention=id",
                    "/election/leader",
                )],
                holds: |m| m.eq(9.0),
            },
        ],
        remark: "The larger id of the two contenders wins, not the largest of the bus.",
    },
];
