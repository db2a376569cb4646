//! Statements of the sources about token rings and perpetuum mobile.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Token ring",
        name: "token-ring-one",
        says: "there is exactly one token",
        shown: &[Shown {
            case: "every schedule of three: never two",
            asks: &[("check token-ring -n 3 --property token", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Token ring",
        name: "token-ring-correct",
        says: "safety and liveness are fulfilled",
        shown: &[Shown {
            case: "every schedule of three",
            asks: &[("check token-ring -n 3", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Token ring",
        name: "token-ring-once",
        says: "who has the token may enter, but only once",
        shown: &[
            Shown {
                case: "two, of which one asks three times: it overtakes the other once at most",
                asks: &[("check token-ring -n 2 --requests 3,1 --property bypass:1", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "who keeps the token and enters again",
                asks: &[(
                    "check token-ring --mistake keeps-token -n 2 --requests 3,1 --property bypass:1",
                    "/property",
                )],
                holds: |m| m.all("bounded bypass"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Token ring",
        name: "token-ring-order",
        says: "happened-before order is not fulfilled",
        shown: &[Shown {
            case: "",
            asks: &[("check token-ring -n 3 --app-messages 1 --property order", "/property")],
            holds: |m| m.all("happened-before order"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Token ring",
        name: "token-ring-bypass",
        says: "at most, a process waits until all others have been inside once",
        shown: &[
            Shown {
                case: "the most entries of others during a wait: N − 1",
                asks: &[("run token-ring -n 5 --entries 20 --hold 5", "/mutex/max_bypass")],
                holds: |m| m.eq(m.n() - 1.0),
            },
            Shown {
                case: "every schedule of three",
                asks: &[("check token-ring -n 3 --requests 2,1,1 --property bypass:2", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Token ring",
        name: "token-ring-lost",
        says: "a lost token must be made anew by a coordinator",
        shown: &[
            Shown {
                case: "without that",
                asks: &[("run token-ring -n 5 --entries 3 --fault lose:/Token#4", "/verdict")],
                holds: |m| m.all("stuck"),
            },
            Shown {
                case: "(ours) with patience=1 a process asks round, and makes one",
                asks: &[(
                    "run token-ring -n 5 --entries 3 --fault lose:/Token#4 --set patience=1",
                    "/verdict",
                )],
                holds: |m| m.all("ok"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Token ring",
        name: "token-ring-long-stay",
        says: "the loss is hard to notice: it may be a very long stay in the critical section",
        shown: &[Shown {
            case: "who waits, and entries, after 60 T: a long stay, and a lost token",
            asks: &[
                ("run token-ring -n 4 --script 1@0,2@0.5 --hold 100 --time-limit 60", "/waiting"),
                (
                    "run token-ring -n 4 --script 1@0,2@0.5 --hold 2 --fault lose:/Token#2 --time-limit 60",
                    "/waiting",
                ),
                (
                    "run token-ring -n 4 --script 1@0,2@0.5 --hold 100 --time-limit 60",
                    "/mutex/entries",
                ),
                (
                    "run token-ring -n 4 --script 1@0,2@0.5 --hold 2 --fault lose:/Token#2 --time-limit 60",
                    "/mutex/entries",
                ),
            ],
            holds: |m| m.text(0) == m.text(1) && m.text(2) == m.text(3),
        }],
        remark: "",
    },
    Statement {
        chapter: "Token ring",
        name: "token-ring-crash",
        says: "no process may crash",
        shown: &[
            Shown {
                case: "without rules for crashes: no process is told, and no token is made anew",
                asks: &[(
                    "run token-ring -n 5 --entries 3 --fault crash:2@4 --detect-after never",
                    "/verdict",
                )],
                holds: |m| m.all("stuck"),
            },
            Shown {
                case: "with a failure detector: harmless crashes",
                asks: &[("tolerance token-ring", "faults crash")],
                holds: |m| m.part() < 1.0,
            },
        ],
        remark: "a crashed process is skipped, and its token made anew: the others are served",
    },
    Statement {
        chapter: "Perpetuum mobile",
        name: "perpetuum-one",
        says: "if nearly all always want to enter: one message between two entries, nearly optimal",
        shown: &[Shown {
            case: "500 entries of five: messages for an entry, at most 1.01",
            asks: &[(
                "run token-ring -n 5 --set mode=perpetual --entries 100 --time-limit 1000",
                "/mutex/messages_per_entry",
            )],
            holds: |m| m.x() <= 1.01,
        }],
        remark: "",
    },
    Statement {
        chapter: "Perpetuum mobile",
        name: "perpetuum-wait",
        says: "else: waiting for the token N/2 on average",
        shown: &[
            Shown {
                case: "a request at each of the five places of the token",
                asks: &[(
                    "run token-ring -n 5 --set mode=perpetual --script 2@10.5,2@22.5,2@34.5,2@46.5,2@58.5 --hold 0 --time-limit 100",
                    "/mutex/wait/mean",
                )],
                holds: |m| m.eq(m.n() / 2.0),
            },
            Shown {
                case: "from 0 to N",
                asks: &[(
                    "run token-ring -n 5 --set mode=perpetual --requests 40,0,0,0,0 --time-limit 2000",
                    "/mutex/wait/max",
                )],
                holds: |m| m.x() <= m.n(),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Perpetuum mobile",
        name: "perpetuum-unbounded",
        says: "messages without bound, even if no node wants to enter",
        shown: &[Shown {
            case: "in 100 T and in 200 T: twice as many",
            asks: &[
                (
                    "run token-ring -n 5 --set mode=perpetual --requests 0,0,0,0,0 --time-limit 100",
                    "/messages/sent",
                ),
                (
                    "run token-ring -n 5 --set mode=perpetual --requests 0,0,0,0,0 --time-limit 200",
                    "/messages/sent",
                ),
            ],
            holds: |m| m.at(0) > 99.0 && m.at(1) > 199.0,
        }],
        remark: "parking the token (ours) takes none",
    },
    Statement {
        chapter: "Perpetuum mobile",
        name: "token-ring-delay",
        says: "(literature) coordination delay: T to (N − 1)T",
        shown: &[
            Shown {
                case: "to the one before",
                asks: &[(
                    "run token-ring -n 5 --script 0@0,4@0.5 --hold 5",
                    "/mutex/sync_delay/max",
                )],
                holds: |m| m.eq(m.n() - 1.0),
            },
            Shown {
                case: "to the next one",
                asks: &[(
                    "run token-ring -n 5 --script 0@0,1@0.5 --hold 5",
                    "/mutex/sync_delay/max",
                )],
                holds: |m| m.eq(1.0),
            },
        ],
        remark: "",
    },
];
