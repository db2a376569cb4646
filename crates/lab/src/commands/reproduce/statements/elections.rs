//! Statements of the sources about elections in general.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Elections",
        name: "unique-leader",
        says: "an election determines exactly one process: at every time there is at most one leader",
        shown: &[
            Shown {
                case: "algorithms without timeouts, every schedule",
                asks: &[
                    ("check ring-list -n 3", "/verdict"),
                    ("check chang-roberts -n 3", "/verdict"),
                    ("check tree-wave -n 3", "/verdict"),
                    ("check adoption -n 3", "/verdict"),
                    ("check firewire -n 3 --topology path --property unique", "/verdict"),
                ],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "bully in a synchronous system, every schedule",
                asks: &[("check bully -n 3 --synchronous --property unique", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "bully in an asynchronous system, every schedule",
                asks: &[("check bully -n 2 --initiators 0 --property unique", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "With arbitrary delays, an election needs one leader per epoch, or a quorum with leases (`quorum`).",
    },
    Statement {
        chapter: "Elections",
        name: "terminates",
        says: "the leader is determined in finite time",
        shown: &[
            Shown {
                case: "six algorithms with three processes, every schedule",
                asks: &[
                    ("check ring-list -n 3 --property termination", "/verdict"),
                    ("check chang-roberts -n 3 --property termination", "/verdict"),
                    ("check franklin -n 3 --property termination", "/verdict"),
                    ("check dolev-klawe-rodeh -n 3 --property termination", "/verdict"),
                    ("check tree-wave -n 3 --property termination", "/verdict"),
                    ("check adoption -n 3 --property termination", "/verdict"),
                ],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "FireWire, if the coin never decides between two nodes",
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
        chapter: "Elections",
        name: "highest",
        says: "all algorithms elect the process with the highest number",
        shown: &[
            Shown {
                case: "ids of the leaders with bully (7 has crashed) and with the ring of lists",
                asks: &[
                    ("run bully -n 8 --down 7 --initiators 4", "/election/leader"),
                    ("run ring-list -n 8 --initiators 2", "/election/leader"),
                ],
                holds: |m| m.at(0) == 6.0 && m.at(1) == 7.0,
            },
            Shown {
                case: "id of FireWire's leader among 5, 1, 3, which its place decides",
                asks: &[("run firewire -n 3 --topology path --ids 5,1,3", "/election/leader")],
                holds: |m| m.eq(5.0),
            },
            Shown {
                case: "id of adoption's leader, the highest initiator, when only 2 of 0 to 4 starts",
                asks: &[("run adoption -n 5 --topology ring --initiators 2", "/election/leader")],
                holds: |m| m.eq(4.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Elections",
        name: "maximum",
        says: "related problem: find the highest id of all nodes",
        shown: &[
            Shown {
                case: "result of the wave on a tree, for any initiator",
                asks: &[(
                    "run tree-wave -n 7 --topology tree:2 --initiators 0",
                    "/election/leader",
                )],
                holds: |m| m.eq(6.0),
            },
            Shown {
                case: "result of adoption, if only 2 and 5 of 0 to 7 start",
                asks: &[("run adoption -n 8 --topology ring --initiators 2,5", "/election/leader")],
                holds: |m| m.eq(7.0),
            },
        ],
        remark: "A leader need not have the highest id.",
    },
    Statement {
        chapter: "Elections",
        name: "known-numbers",
        says: "each process knows the numbers of all others",
        shown: &[
            Shown {
                case: "assumptions of bully and of the ring of lists",
                asks: &[("list bully", "/assumes"), ("list ring-list", "/assumes")],
                holds: |m| m.has("known-membership"),
            },
            Shown {
                case: "assumptions of Chang–Roberts, FireWire, wave and adoption",
                asks: &[
                    ("list chang-roberts", "/assumes"),
                    ("list firewire", "/assumes"),
                    ("list tree-wave", "/assumes"),
                    ("list adoption", "/assumes"),
                ],
                holds: |m| m.has("known-membership"),
            },
        ],
        remark: "The algorithms of the second case know their neighbours only.",
    },
    Statement {
        chapter: "Elections",
        name: "nobody-knows",
        says: "no process knows which other processes are alive",
        shown: &[Shown {
            case: "bully also sends to the crashed process: messages lost",
            asks: &[("run bully -n 8 --down 7 --initiators 4", "/messages/lost")],
            holds: |m| m.x() > 0.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Elections",
        name: "uses",
        says: "elections serve mutual exclusion, and replace a coordinator that crashed",
        shown: &[Shown {
            case: "the coordinator crashes: entries in a run of the lock table, and id of the new leader",
            asks: &[
                ("run lock-table -n 4 --entries 2 --fault crash:0@3", "/group/entries"),
                ("run leader -n 4 --fault crash:0@3", "/group/leader"),
            ],
            holds: |m| m.at(0) >= 6.0 && m.at(1) >= 1.0,
        }],
        remark: "A view change elects the coordinator of the next view.",
    },
    Statement {
        chapter: "Elections",
        name: "rejoin",
        says: "a process that crashed takes part again after its restart",
        shown: &[
            Shown {
                case: "with a rule for restarts (mode=hardened)",
                asks: &[(
                    "run bully -n 4 --initiators 0 --fault crash:3@0.5 --fault restart:3@20 --set mode=hardened",
                    "/verdict",
                )],
                holds: |m| m.all("ok"),
            },
            Shown {
                case: "with the printed code",
                asks: &[(
                    "run bully -n 4 --initiators 0 --fault crash:3@0.5 --fault restart:3@20",
                    "/verdict",
                )],
                holds: |m| m.all("ok"),
            },
        ],
        remark: "The slide does not say how. With the printed code, the restarted process has no coordinator, or two coordinators exist for a while.",
    },
    Statement {
        chapter: "Elections",
        name: "deterministic",
        says: "possible criterion: the election is deterministic",
        shown: &[
            Shown {
                case: "leaders of the ring of lists with three seeds",
                asks: &[("run ring-list -n 8 --seed {1..3}", "/election/leader")],
                holds: |m| m.same(),
            },
            Shown {
                case: "leaders of FireWire with three seeds",
                asks: &[(
                    "run firewire -n 2 --topology path --set reset=wire --seed {1..3}",
                    "/election/leader",
                )],
                holds: |m| m.same(),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Elections",
        name: "notified",
        says: "possible criterion: all nodes learn the end and the result of the election",
        shown: &[Shown {
            case: "five algorithms, 8 nodes: nodes that know the leader",
            asks: &[
                ("run ring-list -n 8", "/election/agreeing"),
                ("run chang-roberts -n 8", "/election/agreeing"),
                ("run firewire -n 8 --topology tree", "/election/agreeing"),
                ("run tree-wave -n 8", "/election/agreeing"),
                ("run adoption -n 8 --topology ring", "/election/agreeing"),
            ],
            holds: |m| m.each(|x| x == 8.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Elections",
        name: "topologies",
        says: "elections run on rings, trees and any graph; not every node has links to all others",
        shown: &[Shown {
            case: "Franklin on a ring, a wave on a tree, adoption on a grid",
            asks: &[
                ("run franklin -n 12", "/verdict"),
                ("run tree-wave -n 12 --topology tree", "/verdict"),
                ("run adoption -n 12 --topology grid:3x4", "/verdict"),
            ],
            holds: |m| m.all("ok"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Elections",
        name: "knowledge",
        says: "an algorithm that knows the topology saves messages",
        shown: &[Shown {
            case: "the same tree, adoption and wave: messages",
            asks: &[
                ("run adoption -n 15 --topology tree:2 --initiators all", "/messages/sent"),
                ("run tree-wave -n 15 --topology tree:2 --initiators all", "/messages/sent"),
            ],
            holds: |m| m.at(0) > m.at(1),
        }],
        remark: "",
    },
    Statement {
        chapter: "Elections",
        name: "unknown-size",
        says: "the number of nodes is unknown, and each node has a unique id",
        shown: &[Shown {
            case: "assumptions of the wave and of adoption, without the number of nodes",
            asks: &[("list tree-wave", "/assumes"), ("list adoption", "/assumes")],
            holds: |m| m.has("unique-ids") && !m.has("known-membership"),
        }],
        remark: "",
    },
];
