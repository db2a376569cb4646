//! Statements of the sources about Sanders's universal algorithm.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Sanders",
        name: "sanders-condition",
        says: "the condition on R and I is sufficient for mutual exclusion",
        shown: &[
            Shown {
                case: "the new algorithm, every schedule",
                asks: &[("check sanders -n 4 --property exclusion", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "a process informs one that it does not request from (I ⊄ R)",
                asks: &[(
                    "check sanders --mistake inform-unasked -n 3 --set structure=0:0/0,2+1:1/1,2+2:2 --requests 1,1,0",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "I ⊆ R is necessary, too.",
    },
    Statement {
        chapter: "Sanders",
        name: "sanders-basic",
        says: "the basic form is not free of deadlocks, and Maekawa's rules solve this",
        shown: &[
            Shown {
                case: "the basic form",
                asks: &[("check sanders --mistake no-deadlock-handling -n 4", "/property")],
                holds: |m| m.all("deadlock"),
            },
            Shown {
                case: "with Maekawa's rules, every schedule",
                asks: &[("check sanders -n 4", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Sanders",
        name: "sanders-bounds",
        says: "|I − {i}| + 2|R − {i}| ≤ Z ≤ |I − {i}| + 2|R − {i}| + D",
        shown: &[
            Shown {
                case: "lower bounds Z₁ = Z₂ = 2, Z₃ = Z₄ = 6, each process alone: messages",
                asks: &[("run sanders -n 4 --script {0..3}@0", "/messages/sent")],
                holds: |m| m.at(0) == 2.0 && m.at(1) == 2.0 && m.at(2) == 6.0 && m.at(3) == 6.0,
            },
            Shown {
                case: "upper bounds 10 + 10 + 15 + 15, all request once, the worst of all schedules: messages",
                asks: &[("check sanders -n 4 --count-messages", "/messages/1")],
                holds: |m| m.x() <= 50.0,
            },
        ],
        remark: "The upper bounds are not reached.",
    },
    Statement {
        chapter: "Sanders",
        name: "sanders-new",
        says: "the new algorithm has 2 ≤ Z₁, Z₂ ≤ 10 and 6 ≤ Z₃, Z₄ ≤ 15",
        shown: &[
            Shown {
                case: "processes 1 and 2: fewest and most messages, between 2 · 2 and 2 · 10",
                asks: &[
                    ("check sanders -n 4 --requests 1,1,0,0 --count-messages", "/messages/0"),
                    ("check sanders -n 4 --requests 1,1,0,0 --count-messages", "/messages/1"),
                ],
                holds: |m| m.each(|x| (4.0..=20.0).contains(&x)),
            },
            Shown {
                case: "processes 3 and 4: fewest and most messages, between 2 · 6 and 2 · 15",
                asks: &[
                    ("check sanders -n 4 --requests 0,0,1,1 --count-messages", "/messages/0"),
                    ("check sanders -n 4 --requests 0,0,1,1 --count-messages", "/messages/1"),
                ],
                holds: |m| m.each(|x| (12.0..=30.0).contains(&x)),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Sanders",
        name: "sanders-ricart-agrawala",
        says: "Ricart–Agrawala is the case I = {i}, R = all: 2(N − 1) ≤ Z ≤ 2(N − 1) + N",
        shown: &[
            Shown {
                case: "one entry of three processes: 2(N − 1) messages",
                asks: &[(
                    "run sanders -n 3 --set structure=ricart-agrawala --script 0@0",
                    "/messages/sent",
                )],
                holds: |m| m.eq(4.0),
            },
            Shown {
                case: "three entries of three processes, the worst of all schedules: at most 3 · 7 messages",
                asks: &[(
                    "check sanders -n 3 --set structure=ricart-agrawala --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 21.0,
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Sanders",
        name: "sanders-maekawa",
        says: "Maekawa is the case I = R = quorum",
        shown: &[Shown {
            case: "node 8 of 13 alone, Sanders and Maekawa: messages",
            asks: &[
                (
                    "run sanders -n 13 --set structure=maekawa --requests 0,0,0,0,0,0,0,1,0,0,0,0,0",
                    "/messages/sent",
                ),
                (
                    "run maekawa -n 13 --set quorums=grid --requests 0,0,0,0,0,0,0,1,0,0,0,0,0",
                    "/messages/sent",
                ),
            ],
            holds: |m| m.same(),
        }],
        remark: "",
    },
    Statement {
        chapter: "Sanders",
        name: "sanders-matrix",
        says: "matrix of delays: T from processes 1 and 2, 2T from 3 and 4, 0 on the diagonal",
        shown: &[Shown {
            case: "delays in T from each process (row) to each other",
            asks: &[("costs sanders --matrix --nodes 4", "/0/delays")],
            holds: |m| {
                m.text(0)
                    == "[[null,1.0,1.0,1.0],[1.0,null,1.0,1.0],[2.0,2.0,null,2.0],[2.0,2.0,2.0,null]]"
            },
        }],
        remark: "The 0 on the diagonal is a convention: a process that enters again must request again.",
    },
];
