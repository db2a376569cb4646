//! Statements of the sources about Singhal's algorithm.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Singhal",
        name: "singhal-delay",
        says: "the coordination delay is T, as with Suzuki–Kasami",
        shown: &[Shown {
            case: "Suzuki–Kasami and Singhal: delay in T",
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
        says: "there are fewer messages, thanks to a good guess of the processes that may have the token",
        shown: &[Shown {
            case: "13 entries one after the other, Suzuki–Kasami and Singhal: messages",
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
        says: "at first, Pᵢ sends requests to P₁ to Pᵢ₋₁, and P₁ has the token",
        shown: &[Shown {
            case: "each of 13 processes alone: REQUESTs",
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
        says: "example of one request: 6 of 13 sends it to 5, 4, 3, 2 and 1, and receives the token from 1",
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
        says: "example of several requests, step 1: 5 sends requests to 4, 3, 2 and 1",
        shown: &[Shown {
            case: "REQUESTs, waiting process",
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
        remark: "The source's pictures are partly illegible: the run lets 5 and 8 request.",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-several-2",
        says: "step 2: 8 sends requests to 1 to 7; 5, which waits itself, sends its request to 8 in turn",
        shown: &[Shown {
            case: "REQUESTs: 4 of process 5, 7 of process 8, and 1 from 5 to 8",
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
        says: "step 3: 5 is in the critical section, and 8 waits",
        shown: &[Shown {
            case: "entries of 5, waiting process",
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
        says: "step 4: 5 sends the token to 8, and 8 is in the critical section",
        shown: &[Shown {
            case: "tokens, entries of 8, waiting processes",
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
        says: "step 5: 8 holds the token unused (state H)",
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
        says: "after all requests and entries, the states form the triangle again",
        shown: &[Shown {
            case: "after entries of 5, 8 and 3, each of 13 processes alone: REQUESTs, which differ by one when sorted",
            asks: &[(
                "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script 5@0,8@0.5,3@20,{1..13}@100 --hold 5",
                "/messages/by_kind/Request",
            )],
            holds: |m| m.is_staircase(),
        }],
        remark: "The triangle has another order of processes. The figures include the REQUESTs of the three entries.",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-arbitrations",
        says: "arbitration by round robin, by the smallest number of entries, or by the shortest distance",
        shown: &[
            Shown {
                case: "three processes with each of the three rules, every schedule",
                asks: &[
                    ("check singhal -n 3 --set arbitration=round-robin", "/verdict"),
                    ("check singhal -n 3 --set arbitration=smallest", "/verdict"),
                    ("check singhal -n 3 --set arbitration=nearest", "/verdict"),
                ],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "eight processes with five requests each, with each of the three rules: entries",
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
        remark: "With the shortest distance, a distant process may starve.",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-exclusion",
        says: "mutual exclusion is trivial, since a process enters only with the token",
        shown: &[Shown {
            case: "three processes, every schedule",
            asks: &[("check singhal -n 3 --requests 1,1,2 --property exclusion", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-proof",
        says: "no deadlock: each REQUEST reaches the owner of the token, which serves all processes marked R",
        shown: &[
            Shown {
                case: "a process sends an outdated REQUEST back",
                asks: &[("check singhal -n 3 --requests 1,1,2", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "as printed",
                asks: &[("check singhal --mistake as-printed -n 3 --requests 1,1,2", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "As printed, a request gets lost even with reliable FIFO channels.",
    },
    Statement {
        chapter: "Singhal",
        name: "singhal-average",
        says: "(paper) an entry takes (N + 1)/2 messages on average",
        shown: &[
            Shown {
                case: "each of 13 processes alone at the start: messages, about 7 on average",
                asks: &[(
                    "run singhal --ids 1,2,3,4,5,6,7,8,9,10,11,12,13 --script {1..13}@0",
                    "/messages/sent",
                )],
                holds: |m| (m.mean() - (m.n() + 1.0) / 2.0).abs() < 0.5,
            },
            Shown {
                case: "13 entries one after the other: messages per entry",
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
