//! Statements of the sources about virtual trees, waves and adoption.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Trees",
        name: "virtual-tree-registry",
        says: "nodes learn some addresses of others beforehand, for example from a registry",
        shown: &[Shown {
            case: "with two links each of eight: nodes in the tree",
            asks: &[("run virtual-tree -n 8 --topology ring", "/election/agreeing")],
            holds: |m| m.eq(8.0),
        }],
        remark: "the addresses are the links of the topology",
    },
    Statement {
        chapter: "Trees",
        name: "virtual-tree-levels",
        says: "the root has level 0; the parent is the neighbour nearest to the root",
        shown: &[
            Shown {
                case: "every schedule: the parents form a tree",
                asks: &[("check virtual-tree -n 3 --property tree", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "the last one learns its root after so many T: the ring of 12 and the star",
                asks: &[
                    ("run virtual-tree -n 12 --topology ring", "/election/time_to_all"),
                    ("run virtual-tree -n 12 --topology star", "/election/time_to_all"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Trees",
        name: "virtual-tree",
        says: "the code of connect()",
        shown: &[
            Shown {
                case: "with a comparison that leaves out those without a parent",
                asks: &[("check virtual-tree -n 2 --topology path --property tree", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed",
                asks: &[(
                    "check virtual-tree --mistake slide-connect -n 2 --topology path --property tree",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "level -1 looks nearest, and equal levels count",
    },
    Statement {
        chapter: "Trees",
        name: "virtual-tree-reselect",
        says: "when the link to the parent breaks, the choice is repeated",
        shown: &[
            Shown {
                case: "the parent crashes: nodes that know the root",
                asks: &[(
                    "run virtual-tree -n 6 --topology ring --fault crash:1@20",
                    "/election/agreeing",
                )],
                holds: |m| m.eq(5.0),
            },
            Shown {
                case: "if no node takes its own descendant",
                asks: &[(
                    "check virtual-tree -n 4 --topology path --initiators 0 --crash 1 --property tree",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "if it takes the nearest neighbour that is left, as the slide says",
                asks: &[(
                    "check virtual-tree --mistake naive-reselect -n 4 --topology path --initiators 0 --crash 1 --property tree",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "the nearest may be its own child",
    },
    Statement {
        chapter: "Trees",
        name: "tree-waves",
        says: "three waves: explorers go to the leaves, echoes come back with the highest id, the result goes to all",
        shown: &[
            Shown {
                case: "kinds of messages",
                asks: &[(
                    "run tree-wave -n 7 --topology tree:2 --initiators 0",
                    "/messages/by_kind",
                )],
                holds: |m| m.keys() == ["Echo", "Explore", "Info"],
            },
            Shown {
                case: "(ours) messages: 3n + k − 4, with k = 1 and 2 that start",
                asks: &[
                    ("run tree-wave -n 7 --topology tree:2 --initiators 0", "/messages/sent"),
                    ("run tree-wave -n 7 --topology tree:2 --initiators 3,4", "/messages/sent"),
                ],
                holds: |m| m.at(0) == 3.0 * m.n() - 3.0 && m.at(1) == 3.0 * m.n() - 2.0,
            },
            Shown {
                case: "every schedule",
                asks: &[("check tree-wave -n 4 --topology path --initiators 0,3", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Trees",
        name: "tree-leaf",
        says: "a leaf answers an explorer with its own id",
        shown: &[
            Shown {
                case: "if a leaf that starts echoes, too",
                asks: &[("check tree-wave -n 4 --topology path --initiators 0,3", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed",
                asks: &[(
                    "check tree-wave --mistake leaf-rule -n 4 --topology path --initiators 0,3",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "a leaf that starts itself never echoes",
    },
    Statement {
        chapter: "Trees",
        name: "tree-highest",
        says: "after k − 1 echoes an inner node sends the maximum over the last link; if one more echo arrives there, the maximum of both is the highest id",
        shown: &[Shown {
            case: "who starts: 0, 3, or 6: the leader of 0 to 6",
            asks: &[
                ("run tree-wave -n 7 --topology tree:2 --initiators 0", "/election/leader"),
                ("run tree-wave -n 7 --topology tree:2 --initiators 3", "/election/leader"),
                ("run tree-wave -n 7 --topology tree:2 --initiators 6", "/election/leader"),
            ],
            holds: |m| m.each(|x| x == 6.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Trees",
        name: "adoption-waves",
        says: "explorers and echoes as on trees, with the id of their initiator; the highest initiator wins",
        shown: &[
            Shown {
                case: "every schedule on a ring of four",
                asks: &[("check adoption -n 4 --topology ring --initiators all", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "initiators 2 and 5 of 0 to 7: the leader",
                asks: &[("run adoption -n 8 --topology ring --initiators 2,5", "/election/leader")],
                holds: |m| m.eq(5.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Trees",
        name: "adoption-equal",
        says: "an explorer with the id of the mark: the link is not part of the tree",
        shown: &[Shown {
            case: "on a ring of eight, echoes over the n − 1 links of the tree only",
            asks: &[("run adoption -n 8 --topology ring --initiators 2", "/messages/by_kind/Echo")],
            holds: |m| m.eq(m.n() - 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Trees",
        name: "adoption-lower",
        says: "an explorer with a lower id than the mark is ignored",
        shown: &[Shown {
            case: "messages with initiators 5, and with 5 and 2: less than twice as many",
            asks: &[
                ("run adoption -n 8 --topology ring --initiators 5", "/messages/sent"),
                ("run adoption -n 8 --topology ring --initiators 2,5", "/messages/sent"),
            ],
            holds: |m| m.at(1) < 2.0 * m.at(0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Trees",
        name: "adoption-case-3",
        says: "an explorer between the mark and the node's id is sent back as it is",
        shown: &[
            Shown {
                case: "with the id of the node that sends it",
                asks: &[("check adoption -n 3 --topology path --ids 2,1,3", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed",
                asks: &[(
                    "check adoption --mistake case3-literal -n 3 --topology path --ids 2,1,3 --property winner",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "its wave takes the link for done",
    },
    Statement {
        chapter: "Trees",
        name: "adoption-first",
        says: "a higher explorer adopts the node, and goes on over its former parent link",
        shown: &[
            Shown {
                case: "with a rule for the first contact: over all other links",
                asks: &[("check adoption -n 3 --topology path --initiators 0", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed: a new node has no former parent",
                asks: &[(
                    "check adoption --mistake no-flood -n 3 --topology path --initiators 0",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "the four cases say nothing of the first contact",
    },
    Statement {
        chapter: "Trees",
        name: "adoption-any",
        says: "for any topology",
        shown: &[Shown {
            case: "a ring, a grid, a random graph, a complete one: nodes that agree, of 12",
            asks: &[
                ("run adoption -n 12 --topology ring", "/election/agreeing"),
                ("run adoption -n 12 --topology grid", "/election/agreeing"),
                ("run adoption -n 12 --topology random:20", "/election/agreeing"),
                ("run adoption -n 12 --topology complete", "/election/agreeing"),
            ],
            holds: |m| m.each(|x| x == 12.0),
        }],
        remark: "",
    },
];
