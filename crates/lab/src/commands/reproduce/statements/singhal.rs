//! Statements of the sources about Singhal's algorithm.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Singhal",
        name: "singhal-delay",
        says: "the coordination delay of Suzuki and Kasami is kept: T",
        shown: &[Shown {
            case: "theirs and this",
            asks: &[
                ("run suzuki-kasami -n 5 --entries 2 --hold 5", "/mutex/sync_delay/max"),
                ("run singhal -n 5 --entries 2 --hold 5", "/mutex/sync_delay/max"),
            ],
            holds: |m| m.each(|x| x == 1.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-sum",
        says: "fewer messages, by a clever guess of who may have the token",
        shown: &[Shown {
            case: "13 entries, one after the other: theirs and these",
            asks: &[
                (
                    "run suzuki-kasami -n 13 --script 0@0,1@50,2@100,3@150,4@200,5@250,6@300,7@350,8@400,9@450,10@500,11@550,12@600",
                    "/messages/sent",
                ),
                (
                    "run singhal -n 13 --script 0@0,1@50,2@100,3@150,4@200,5@250,6@300,7@350,8@400,9@450,10@500,11@550,12@600",
                    "/messages/sent",
                ),
            ],
            holds: |m| m.at(0) > m.at(1),
        }],
        remark: "",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-staircase",
        says: "at first, Pᵢ asks P₁ to Pᵢ₋₁, and P₁ has the token",
        shown: &[Shown {
            case: "REQUESTs of each of 13 alone",
            asks: &[(
                "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script {1..13}@0 --time-limit 0.5",
                "/messages/sent",
            )],
            holds: |m| m.each_i(|i, x| x == i as f64),
        }],
        remark: "",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-example",
        says: "one request: 6 of 13 asks 5, 4, 3, 2 and 1, and gets the token from 1",
        shown: &[Shown {
            case: "REQUESTs, tokens, entries",
            asks: &[
                (
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 6@0",
                    "/messages/by_kind/Request",
                ),
                (
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 6@0",
                    "/messages/by_kind/Token",
                ),
                ("run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 6@0", "/mutex/entries"),
            ],
            holds: |m| m.at(0) == 5.0 && m.at(1) == 1.0 && m.at(2) == 1.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-several-1",
        says: "several requests, first step: 5 asks 4, 3, 2 and 1",
        shown: &[Shown {
            case: "REQUESTs, and who waits",
            asks: &[
                (
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5 --hold 5 --time-limit 0.4",
                    "/messages/by_kind/Request",
                ),
                (
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5 --hold 5 --time-limit 0.4",
                    "/waiting",
                ),
            ],
            holds: |m| m.at(0) == 4.0 && m.text(1) == "[5]",
        }],
        remark: "the pictures as far as they can be restored: 5 and 8 ask",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-several-2",
        says: "then 8 asks 1 to 7; 5, which waits itself, asks 8 in turn",
        shown: &[Shown {
            case: "REQUESTs: 4, 7 and 1 that go back",
            asks: &[(
                "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5 --hold 5 --time-limit 1.9",
                "/messages/by_kind/Request",
            )],
            holds: |m| m.eq(12.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-several-3",
        says: "then 5 is inside, and 8 waits",
        shown: &[Shown {
            case: "entries of 5, and who waits",
            asks: &[
                (
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5 --hold 5 --time-limit 4",
                    "/mutex/entries_per_node/4/1",
                ),
                (
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5 --hold 5 --time-limit 4",
                    "/waiting",
                ),
            ],
            holds: |m| m.at(0) == 1.0 && m.text(1) == "[8]",
        }],
        remark: "",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-several-4",
        says: "then 5 sends the token to 8, and 8 is inside",
        shown: &[Shown {
            case: "tokens, entries of 8, and who waits",
            asks: &[
                (
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5 --hold 5 --time-limit 9",
                    "/messages/by_kind/Token",
                ),
                (
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5 --hold 5 --time-limit 9",
                    "/mutex/entries_per_node/7/1",
                ),
                (
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5 --hold 5 --time-limit 9",
                    "/waiting",
                ),
            ],
            holds: |m| m.at(0) == 2.0 && m.at(1) == 1.0 && m.text(2) == "[]",
        }],
        remark: "",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-several-5",
        says: "in the end 8 holds the token unused (H)",
        shown: &[Shown {
            case: "messages until then, and after one more entry of 8",
            asks: &[
                (
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5 --hold 5",
                    "/messages/sent",
                ),
                (
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5,8@50 --hold 5",
                    "/messages/sent",
                ),
            ],
            holds: |m| m.same(),
        }],
        remark: "",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-triangle",
        says: "after all requests and entries the triangle is there again",
        shown: &[Shown {
            case: "after entries of 5, 8 and 3: REQUESTs of each of 13, in order of size 0 to 12",
            asks: &[(
                "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5,3@20,{1..13}@100 --hold 5",
                "/messages/by_kind/Request",
            )],
            holds: |m| m.is_staircase(),
        }],
        remark: "(with the nodes in another order; counted beside those of the three entries)",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-arbitrations",
        says: "arbitration: round robin, smallest number of entries, or the nearest",
        shown: &[
            Shown {
                case: "every schedule of three: round robin, smallest, nearest",
                asks: &[
                    ("check singhal -n 3 --set arbitration=round-robin", "/verdict"),
                    ("check singhal -n 3 --set arbitration=smallest", "/verdict"),
                    ("check singhal -n 3 --set arbitration=nearest", "/verdict"),
                ],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "eight that ask five times each: entries",
                asks: &[
                    (
                        "run singhal -n 8 --entries 5 --set arbitration=round-robin",
                        "/mutex/entries",
                    ),
                    ("run singhal -n 8 --entries 5 --set arbitration=smallest", "/mutex/entries"),
                    ("run singhal -n 8 --entries 5 --set arbitration=nearest", "/mutex/entries"),
                ],
                holds: |m| m.each(|x| x == 40.0),
            },
        ],
        remark: "with nearest, those far away may starve",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-exclusion",
        says: "mutual exclusion: trivial, for one enters only with the token",
        shown: &[Shown {
            case: "every schedule of three",
            asks: &[("check singhal -n 3 --requests 1,1,2 --property exclusion", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-proof",
        says: "no deadlock: each REQUEST reaches the owner of the token, and all marked R there are served",
        shown: &[
            Shown {
                case: "if an outdated REQUEST is sent back",
                asks: &[("check singhal -n 3 --requests 1,1,2", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed",
                asks: &[("check singhal --mistake as-printed -n 3 --requests 1,1,2", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "a request gets lost, with reliable FIFO channels",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-average",
        says: "(paper) (N + 1)/2 messages on average",
        shown: &[
            Shown {
                case: "the mean of all 13, each alone at the start: about 7",
                asks: &[(
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script {1..13}@0",
                    "/messages/sent",
                )],
                holds: |m| (m.mean() - (m.n() + 1.0) / 2.0).abs() < 0.5,
            },
            Shown {
                case: "13 entries, one after the other: the mean",
                asks: &[(
                    "run singhal -n 13 --script 0@0,1@50,2@100,3@150,4@200,5@250,6@300,7@350,8@400,9@450,10@500,11@550,12@600",
                    "/mutex/messages_per_entry",
                )],
                holds: |m| (m.x() - (m.n() + 1.0) / 2.0).abs() < 0.5,
            },
        ],
        remark: "",
    },
];
