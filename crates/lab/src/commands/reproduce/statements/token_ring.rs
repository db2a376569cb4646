//! Statements of the sources about token rings and perpetuum mobile.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Token ring",
        name: "token-ring-one",
        says: "there is exactly one token",
        shown: &[Shown {
            case: "three processes, every schedule: never two tokens",
            asks: &[("check token-ring -n 3 --property token", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Token ring",
        name: "token-ring-correct",
        says: "the algorithm is safe and live",
        shown: &[Shown {
            case: "three processes, every schedule",
            asks: &[("check token-ring -n 3", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Token ring",
        name: "token-ring-once",
        says: "the owner of the token may enter once, and then passes the token on",
        shown: &[
            Shown {
                case: "two processes, one of them with three requests: it overtakes the other at most once",
                asks: &[("check token-ring -n 2 --requests 3,1 --property bypass:1", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "a process that keeps the token and enters again",
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
        says: "entries need not follow the happened-before order",
        shown: &[Shown {
            case: "three processes with application messages, every schedule",
            asks: &[("check token-ring -n 3 --app-messages 1 --property order", "/property")],
            holds: |m| m.all("happened-before order"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Token ring",
        name: "token-ring-bypass",
        says: "a process waits at most until all others have entered once",
        shown: &[
            Shown {
                case: "entries of others during a wait: at most N − 1",
                asks: &[("run token-ring -n 5 --entries 20 --hold 5", "/mutex/max_bypass")],
                holds: |m| m.eq(m.n() - 1.0),
            },
            Shown {
                case: "three processes, every schedule",
                asks: &[("check token-ring -n 3 --requests 2,1,1 --property bypass:2", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Token ring",
        name: "token-ring-lost",
        says: "a coordinator must replace a lost token",
        shown: &[
            Shown {
                case: "without a replacement",
                asks: &[("run token-ring -n 5 --entries 3 --fault lose:/Token#4", "/verdict")],
                holds: |m| m.all("stuck"),
            },
            Shown {
                case: "(ours) with patience=1, a process asks the others and then makes a new token",
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
        says: "a loss is hard to detect: it looks like a very long stay in the critical section",
        shown: &[Shown {
            case: "60 T after a long stay began, and after the token was lost: waiting process of each, entries of each",
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
                case: "without a failure detector or a replacement of the token",
                asks: &[(
                    "run token-ring -n 5 --entries 3 --fault crash:2@4 --detect-after never",
                    "/verdict",
                )],
                holds: |m| m.all("stuck"),
            },
            Shown {
                case: "with a failure detector: crashes without harm",
                asks: &[("tolerance token-ring", "faults crash")],
                holds: |m| m.part() < 1.0,
            },
        ],
        remark: "The others skip the crashed process and replace its token.",
    },
    Statement {
        chapter: "Perpetuum mobile",
        name: "perpetuum-one",
        says: "if nearly all always request, there is one message between two entries, which is nearly optimal",
        shown: &[Shown {
            case: "500 entries of five processes: messages per entry, at most 1.01",
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
        says: "if few processes request, a request waits N/2 · T for the token on average",
        shown: &[
            Shown {
                case: "the token at each of five distances: mean wait in T",
                asks: &[(
                    "run token-ring -n 5 --set mode=perpetual --script 2@10.5,2@22.5,2@34.5,2@46.5,2@58.5 --hold 0 --time-limit 100",
                    "/mutex/wait/mean",
                )],
                holds: |m| m.eq(m.n() / 2.0),
            },
            Shown {
                case: "the longest distance: wait in T",
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
        says: "the number of messages is unbounded, even if no node requests",
        shown: &[Shown {
            case: "messages in 100 T and in 200 T",
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
        remark: "A token that parks (ours) needs no message.",
    },
    Statement {
        chapter: "Perpetuum mobile",
        name: "token-ring-delay",
        says: "(literature) the coordination delay is T to (N − 1)T",
        shown: &[
            Shown {
                case: "to the process before the holder: delay in T",
                asks: &[(
                    "run token-ring -n 5 --script 0@0,4@0.5 --hold 5",
                    "/mutex/sync_delay/max",
                )],
                holds: |m| m.eq(m.n() - 1.0),
            },
            Shown {
                case: "to the process after the holder: delay in T",
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
