//! Statements of the sources about FireWire's election on trees.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "FireWire",
        name: "firewire-hot-plug",
        says: "hot-pluggable: devices come and go at any time; each time a bus reset, and an election of the bus master",
        shown: &[
            Shown {
                case: "one goes: elections, and nodes that agree",
                asks: &[
                    ("run firewire -n 4 --topology path --fault crash:3@30", "/election/elections"),
                    ("run firewire -n 4 --topology path --fault crash:3@30", "/election/agreeing"),
                ],
                holds: |m| m.at(0) >= 2.0 && m.at(1) == 3.0,
            },
            Shown {
                case: "one comes: the same",
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
        says: "a device has one port or several (3 are recommended)",
        shown: &[Shown {
            case: "at most 3 ports used, and 6: nodes that know the master",
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
        says: "the network is connected and has no cycle, links work both ways",
        shown: &[Shown {
            case: "what it does with a cycle: nodes that know a master, nodes that report a loop",
            asks: &[
                ("run firewire -n 4 --topology ring", "/election/agreeing"),
                ("run firewire -n 4 --topology ring", "/election/loops"),
            ],
            holds: |m| m.at(0) == 0.0 && m.at(1) == m.n(),
        }],
        remark: "a loop is noticed by a timeout",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-neighbours",
        says: "each device knows only those that it is linked with",
        shown: &[Shown {
            case: "what it assumes",
            asks: &[("list firewire", "/assumes")],
            holds: |m| !m.has("known-membership") && !m.has("unique-ids"),
        }],
        remark: "",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-chance",
        says: "decentralised, and not deterministic",
        shown: &[
            Shown {
                case: "masters with three seeds",
                asks: &[(
                    "run firewire -n 2 --topology path --set reset=wire --seed {1..3}",
                    "/election/leader",
                )],
                holds: |m| !m.same(),
            },
            Shown {
                case: "if no link is contended",
                asks: &[(
                    "run firewire -n 7 --topology tree:2 --initiators all --set reset=wire --seed {1..3}",
                    "/election/leader",
                )],
                holds: |m| !m.same(),
            },
        ],
        remark: "chance decides only between two that ask each other",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-wave",
        says: "leaves ask first; an inner node asks over its last link when all others have asked it, and confirms those",
        shown: &[Shown {
            case: "questions and confirmations: one for each of the n − 1 links",
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
        says: "only a node with k > 1 links becomes the master",
        shown: &[
            Shown {
                case: "if leaves may, too",
                asks: &[(
                    "check firewire -n 2 --topology path --set reset=wire --property deadlock",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed: two leaves",
                asks: &[(
                    "check firewire --mistake inner-only -n 2 --topology path --set timeout=0",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "two leaves wait for each other for ever",
    },
    Statement {
        chapter: "FireWire",
        name: "firewire-one",
        says: "at most one link is contended",
        shown: &[Shown {
            case: "the most messages of all runs: one question more than 2(n − 1)",
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
        says: "both wait by chance for 240 to 260 ns or 570 to 600 ns, and ask again, until one has won",
        shown: &[
            Shown {
                case: "questions of two: two that cross, and then one or two more each time",
                asks: &[(
                    "run firewire -n 2 --topology path --set reset=wire --seed {1..5}",
                    "/messages/by_kind/BeMyParent",
                )],
                holds: |m| m.each(|x| x >= 3.0 && x % 2.0 == 1.0),
            },
            Shown {
                case: "from every state they can part",
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
                case: "of two, 3 and 8",
                asks: &[(
                    "run firewire -n 2 --topology path --ids 3,8 --set contention=id",
                    "/election/leader",
                )],
                holds: |m| m.eq(8.0),
            },
            Shown {
                case: "of 9, 1, 2, 3 on a path",
                asks: &[(
                    "run firewire -n 4 --topology path --ids 9,1,2,3 --set contention=id",
                    "/election/leader",
                )],
                holds: |m| m.eq(9.0),
            },
        ],
        remark: "the larger of the two contenders, not of the bus",
    },
];
