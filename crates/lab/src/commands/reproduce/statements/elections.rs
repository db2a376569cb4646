//! Statements of the sources about elections in general.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Elections",
        name: "unique-leader",
        says: "an election determines exactly one process: at every time there is at most one leader",
        shown: &[
            Shown {
                case: "where nothing times out",
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
                case: "bully, where a timeout is right",
                asks: &[("check bully -n 3 --synchronous --property unique", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "bully, where messages may be slow",
                asks: &[("check bully -n 2 --initiators 0 --property unique", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "else one leader per epoch, or a quorum and leases (quorum)",
    },
    Statement {
        chapter: "Elections",
        name: "terminates",
        says: "the leader is determined in finite time",
        shown: &[
            Shown {
                case: "every schedule of three",
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
                case: "FireWire, if the coin never decides",
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
                case: "bully and ring",
                asks: &[
                    ("run bully -n 8 --down 7 --initiators 4", "/election/leader"),
                    ("run ring-list -n 8 --initiators 2", "/election/leader"),
                ],
                holds: |m| m.at(0) == 6.0 && m.at(1) == 7.0,
            },
            Shown {
                case: "FireWire elects by place: the ids are 5, 1, 3",
                asks: &[("run firewire -n 3 --topology path --ids 5,1,3", "/election/leader")],
                holds: |m| m.eq(5.0),
            },
            Shown {
                case: "adoption elects the highest of those who start: only 2 of 0 to 4 does",
                asks: &[("run adoption -n 5 --topology ring --initiators 2", "/election/leader")],
                holds: |m| m.eq(4.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Elections",
        name: "maximum",
        says: "related problem: the highest id of all nodes",
        shown: &[
            Shown {
                case: "the wave on a tree finds it, whoever starts",
                asks: &[(
                    "run tree-wave -n 7 --topology tree:2 --initiators 0",
                    "/election/leader",
                )],
                holds: |m| m.eq(6.0),
            },
            Shown {
                case: "adoption, if not all start",
                asks: &[("run adoption -n 8 --topology ring --initiators 2,5", "/election/leader")],
                holds: |m| m.eq(7.0),
            },
        ],
        remark: "a leader need not have it",
    },
    Statement {
        chapter: "Elections",
        name: "known-numbers",
        says: "the number of each process is known to all others",
        shown: &[
            Shown {
                case: "bully and ring with lists",
                asks: &[("list bully", "/assumes"), ("list ring-list", "/assumes")],
                holds: |m| m.has("known-membership"),
            },
            Shown {
                case: "Chang and Roberts's ring, FireWire, waves and adoption",
                asks: &[
                    ("list chang-roberts", "/assumes"),
                    ("list firewire", "/assumes"),
                    ("list tree-wave", "/assumes"),
                    ("list adoption", "/assumes"),
                ],
                holds: |m| m.has("known-membership"),
            },
        ],
        remark: "those know their neighbours only",
    },
    Statement {
        chapter: "Elections",
        name: "nobody-knows",
        says: "no process knows which other one works at the moment",
        shown: &[Shown {
            case: "bully asks the dead one, too: messages lost",
            asks: &[("run bully -n 8 --down 7 --initiators 4", "/messages/lost")],
            holds: |m| m.x() > 0.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Elections",
        name: "uses",
        says: "uses: mutual exclusion, and the failure of a coordinator",
        shown: &[Shown {
            case: "the coordinator of a lock crashes, and the others elect one and go on",
            asks: &[
                ("run lock-table -n 4 --entries 2 --fault crash:0@3", "/group/entries"),
                ("run leader -n 4 --fault crash:0@3", "/group/leader"),
            ],
            holds: |m| m.at(0) >= 6.0 && m.at(1) >= 1.0,
        }],
        remark: "a view change elects the coordinator of the next view",
    },
    Statement {
        chapter: "Elections",
        name: "rejoin",
        says: "a process that failed joins the active ones again when it restarts",
        shown: &[
            Shown {
                case: "with a rule for it (mode=hardened)",
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
        remark: "the slide says nothing of how; with the printed code the restarted one has no coordinator, or there are two for a while",
    },
    Statement {
        chapter: "Elections",
        name: "deterministic",
        says: "possible criterion: the election is deterministic",
        shown: &[
            Shown {
                case: "ring with lists: the same leader with each of three seeds",
                asks: &[("run ring-list -n 8 --seed {1..3}", "/election/leader")],
                holds: |m| m.same(),
            },
            Shown {
                case: "FireWire: the same leader with each of three seeds",
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
        says: "possible criterion: all nodes learn the end and the result",
        shown: &[Shown {
            case: "nodes that know the leader, of 8",
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
        says: "rings, trees and any structure; not every node is linked with every other one",
        shown: &[Shown {
            case: "verdicts on a ring, a tree and a grid",
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
        says: "knowing the topology saves messages",
        shown: &[Shown {
            case: "adoption and wave on the same tree",
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
        says: "the number of nodes is unknown; each has an id of its own",
        shown: &[Shown {
            case: "what waves and adoption assume",
            asks: &[("list tree-wave", "/assumes"), ("list adoption", "/assumes")],
            holds: |m| m.has("unique-ids") && !m.has("known-membership"),
        }],
        remark: "",
    },
];
