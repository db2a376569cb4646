//! Statements of the sources about Sanders's universal algorithm.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Sanders",
        name: "sanders-condition",
        says: "the condition on R and I is sufficient for mutual exclusion",
        shown: &[
            Shown {
                case: "the new algorithm",
                asks: &[("check sanders -n 4 --property exclusion", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "if a process informs one that it does not ask",
                asks: &[(
                    "check sanders --mistake inform-unasked -n 3 --set structure=0:0/0,2+1:1/1,2+2:2 --requests 1,1,0",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "I ⊆ R is needed, too",
    },
    Statement {
        chapter: "Sanders",
        name: "sanders-basic",
        says: "not free of deadlocks; solved as with Maekawa",
        shown: &[
            Shown {
                case: "the basic form",
                asks: &[("check sanders --mistake no-deadlock-handling -n 4", "/property")],
                holds: |m| m.all("deadlock"),
            },
            Shown {
                case: "solved",
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
                case: "the least: Z₁ = Z₂ = 2, Z₃ = Z₄ = 6, alone",
                asks: &[("run sanders -n 4 --script {0..3}@0", "/messages/sent")],
                holds: |m| m.at(0) == 2.0 && m.at(1) == 2.0 && m.at(2) == 6.0 && m.at(3) == 6.0,
            },
            Shown {
                case: "the most: 10 + 10 + 15 + 15 if all ask once",
                asks: &[("check sanders -n 4 --count-messages", "/messages/1")],
                holds: |m| m.x() <= 50.0,
            },
        ],
        remark: "the upper bounds are loose",
    },
    Statement {
        chapter: "Sanders",
        name: "sanders-new",
        says: "the new algorithm: 2 ≤ Z₁, Z₂ ≤ 10 and 6 ≤ Z₃, Z₄ ≤ 15",
        shown: &[
            Shown {
                case: "one and two of them: 2 to 10 for each",
                asks: &[
                    ("check sanders -n 4 --requests 1,1,0,0 --count-messages", "/messages/0"),
                    ("check sanders -n 4 --requests 1,1,0,0 --count-messages", "/messages/1"),
                ],
                holds: |m| m.each(|x| (4.0..=20.0).contains(&x)),
            },
            Shown {
                case: "3 and 4: 6 to 15 for each",
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
                case: "one entry of three: 2(N − 1)",
                asks: &[(
                    "run sanders -n 3 --set structure=ricart-agrawala --script 0@0",
                    "/messages/sent",
                )],
                holds: |m| m.eq(4.0),
            },
            Shown {
                case: "three entries of three: the most of all runs",
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
            case: "alone: the messages of both, for node 8 of 13",
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
        says: "the matrix of delays: T from 1 and 2, 2T from 3 and 4, 0 on the diagonal",
        shown: &[Shown {
            case: "the twelve pairs",
            asks: &[("costs sanders --matrix --nodes 4", "/0/delays")],
            holds: |m| {
                m.text(0)
                    == "[[null,1.0,1.0,1.0],[1.0,null,1.0,1.0],[2.0,2.0,null,2.0],[2.0,2.0,2.0,null]]"
            },
        }],
        remark: "the 0 on the diagonal is a convention: who enters again asks again",
    },
];
