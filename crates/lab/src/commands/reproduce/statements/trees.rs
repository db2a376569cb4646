//! Statements of the sources about virtual trees, waves and adoption.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Trees",
        name: "virtual-tree-registry",
        says: "nodes learn some addresses of others beforehand, for example from a registry",
        shown: &[Shown {
            case: "eight nodes with two links each: nodes in the tree",
            asks: &[("run virtual-tree -n 8 --topology ring", "/election/agreeing")],
            holds: |m| m.eq(8.0),
        }],
        remark: "The links of the topology stand for these addresses.",
    },
    Statement {
        chapter: "Trees",
        name: "virtual-tree-levels",
        says: "the root has level 0; the neighbour nearest to the root becomes the parent",
        shown: &[
            Shown {
                case: "the parents form a tree, every schedule",
                asks: &[("check virtual-tree -n 3 --property tree", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "time until all know the root, on a ring of 12 and on a star of 12, in T",
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
        says: "the code of connect() is right",
        shown: &[
            Shown {
                case: "with a comparison that excludes neighbours without a parent, every schedule",
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
        remark: "A neighbour without a parent has level −1 and looks nearest. The comparison also accepts equal levels.",
    },
    Statement {
        chapter: "Trees",
        name: "virtual-tree-reselect",
        says: "when the link to the parent breaks, a node chooses a parent again",
        shown: &[
            Shown {
                case: "the parent of a node crashes: nodes that know the root",
                asks: &[(
                    "run virtual-tree -n 6 --topology ring --fault crash:1@20",
                    "/election/agreeing",
                )],
                holds: |m| m.eq(5.0),
            },
            Shown {
                case: "no node chooses its own descendant, every schedule",
                asks: &[(
                    "check virtual-tree -n 4 --topology path --initiators 0 --crash 1 --property tree",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "a node chooses the nearest neighbour that is left, as on the slide",
                asks: &[(
                    "check virtual-tree --mistake naive-reselect -n 4 --topology path --initiators 0 --crash 1 --property tree",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "The nearest neighbour may be its own child.",
    },
    Statement {
        chapter: "Trees",
        name: "tree-waves",
        says: "there are three waves: explorers go to the leaves, echoes return with the highest id, the result goes to all",
        shown: &[
            Shown {
                case: "messages of a run by kind",
                asks: &[(
                    "run tree-wave -n 7 --topology tree:2 --initiators 0",
                    "/messages/by_kind",
                )],
                holds: |m| m.keys() == ["Echo", "Explore", "Info"],
            },
            Shown {
                case: "(ours) 3n + k − 4 messages with k = 1 and k = 2 initiators",
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
                case: "with an echo of leaves that start, every schedule",
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
        remark: "As printed, a leaf that starts the election sends no echo.",
    },
    Statement {
        chapter: "Trees",
        name: "tree-highest",
        says: "after k − 1 echoes, an inner node sends the maximum over its last link; if an echo comes over that link, too, the larger of both is the highest id",
        shown: &[Shown {
            case: "initiator 0, 3 and 6 of seven nodes: id of the leader",
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
        says: "explorers and echoes work as on trees, with the id of their initiator; the highest initiator wins",
        shown: &[
            Shown {
                case: "a ring of four, every schedule",
                asks: &[("check adoption -n 4 --topology ring --initiators all", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "initiators 2 and 5 of eight: id of the leader",
                asks: &[("run adoption -n 8 --topology ring --initiators 2,5", "/election/leader")],
                holds: |m| m.eq(5.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Trees",
        name: "adoption-equal",
        says: "if an explorer has the id of the mark, its link does not belong to the tree",
        shown: &[Shown {
            case: "a ring of eight: echoes, only over the n − 1 links of the tree",
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
            case: "initiator 5, and initiators 2 and 5: messages, less than twice as many",
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
        says: "an explorer with an id between the mark and the node's own id is returned unchanged",
        shown: &[
            Shown {
                case: "returned with the id of the node that returns it, every schedule",
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
        remark: "The wave of the returned explorer takes the link for finished.",
    },
    Statement {
        chapter: "Trees",
        name: "adoption-first",
        says: "an explorer with a higher id adopts the node, and goes on over the link to its former parent",
        shown: &[
            Shown {
                case: "with a rule for the first explorer, which goes on over all other links, every schedule",
                asks: &[("check adoption -n 3 --topology path --initiators 0", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed, where a new node has no former parent",
                asks: &[(
                    "check adoption --mistake no-flood -n 3 --topology path --initiators 0",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "The source's four cases do not cover the first explorer.",
    },
    Statement {
        chapter: "Trees",
        name: "adoption-any",
        says: "the algorithm works on any topology",
        shown: &[Shown {
            case: "ring, grid, random graph and complete graph of 12: nodes that agree",
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
