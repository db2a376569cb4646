//! Statements of the sources about Cao and Singhal's algorithm.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-correct",
        says: "the algorithm ensures mutual exclusion, and is free of deadlock",
        shown: &[Shown {
            case: "three requesters that share two arbiters, every schedule",
            asks: &[(
                "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-maekawa",
        says: "algorithms of Maekawa's type have a coordination delay of at least 2T",
        shown: &[
            Shown {
                case: "Maekawa's, and Sanders's from node 3 to node 1: delay in T",
                asks: &[
                    ("run maekawa -n 4 --script 0@0,3@0.5 --hold 10", "/mutex/sync_delay/max"),
                    ("run sanders -n 4 --script 2@0,0@2.1 --hold 10", "/mutex/sync_delay/max"),
                ],
                holds: |m| m.each(|x| x >= 2.0),
            },
            Shown {
                case: "Sanders's from node 1 to node 3: delay in T",
                asks: &[("run sanders -n 4 --script 0@0,2@0.1 --hold 10", "/mutex/sync_delay/max")],
                holds: |m| m.each(|x| x >= 2.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-delay",
        says: "the coordination delay is T",
        shown: &[
            Shown {
                case: "the holder has received the TRANSFER for its successor: delay in T",
                asks: &[(
                    "run cao-singhal -n 4 --requests 1,0,0,1 --hold 10",
                    "/mutex/sync_delay/max",
                )],
                holds: |m| m.eq(1.0),
            },
            Shown {
                case: "the request comes too late for a TRANSFER: delay in T",
                asks: &[(
                    "run cao-singhal -n 4 --script 0@0,3@2.5 --hold 1",
                    "/mutex/sync_delay/max",
                )],
                holds: |m| m.eq(1.0),
            },
        ],
        remark: "Without a TRANSFER in time, the delay is 2T or more.",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-throughput",
        says: "the shorter delay gives more throughput than Maekawa's",
        shown: &[Shown {
            case: "the same load with Maekawa's algorithm and with this one: entries per T",
            asks: &[
                ("run maekawa -n 13 --set quorums=13 --entries 100 --hold 5", "/mutex/throughput"),
                (
                    "run cao-singhal -n 13 --set quorums=13 --entries 100 --hold 5",
                    "/mutex/throughput",
                ),
            ],
            holds: |m| m.at(0) < m.at(1),
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-one-lock",
        says: "the holder sends one LOCKED for all TRANSFERs of an arbiter, and its RELEASE names the process that received it",
        shown: &[
            Shown {
                case: "three requesters that share two arbiters, every schedule: mutual exclusion",
                asks: &[(
                    "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0 --property exclusion",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "an arbiter sends no INQUIRE after a lock was forwarded to a later request",
                asks: &[(
                    "check cao-singhal --mistake no-inquire-after-forward -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
                    "/property",
                )],
                holds: |m| m.all("deadlock"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-inquire",
        says: "INQUIRE can arrive before LOCKED",
        shown: &[Shown {
            case: "a holder ignores an INQUIRE that comes before its LOCKED",
            asks: &[(
                "check cao-singhal --mistake drop-early-inquire -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
                "/property",
            )],
            holds: |m| m.all("deadlock"),
        }],
        remark: "The holder must keep the INQUIRE until the LOCKED arrives.",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-failed",
        says: "FAILED goes to a request when one of higher priority displaces it",
        shown: &[Shown {
            case: "without this FAILED",
            asks: &[(
                "check cao-singhal --mistake no-displaced-failed -n 6 --set quorums=0:4,5+1:4+2:4,5+3:4 --requests 1,1,1,1,0,0",
                "/property",
            )],
            holds: |m| m.all("deadlock"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-release",
        says: "(paper) an arbiter receives the RELEASE messages in order",
        shown: &[Shown {
            case: "an arbiter ignores a RELEASE that overtakes another one",
            asks: &[(
                "check cao-singhal --mistake no-release-buffer -n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "A RELEASE may overtake the RELEASE of the previous holder, so the arbiter must keep it.",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-stamps",
        says: "(paper) the timestamp of a request identifies its lock",
        shown: &[Shown {
            case: "locks identified by the timestamp alone",
            asks: &[(
                "check cao-singhal --mistake timestamps-only -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
                "/verdict",
            )],
            holds: |m| m.all("exhausted"),
        }],
        remark: "A request may get the same lock twice. The timestamp does not tell a TRANSFER for the first time from one for the second.",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-response",
        says: "the response time is 2T + E",
        shown: &[Shown {
            case: "one requester, E = 5: response time in T",
            asks: &[(
                "run cao-singhal -n 13 --set quorums=13 --requests 0,0,0,0,0,0,0,1,0,0,0,0,0 --hold 5",
                "/mutex/response/max",
            )],
            holds: |m| m.eq(7.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-cost",
        says: "without conflicts, an entry takes 3(K − 1) messages",
        shown: &[Shown {
            case: "each of the 13 nodes alone, K = 4: messages",
            asks: &[(
                "run cao-singhal -n 13 --set quorums=13 --script {0..12}@0",
                "/messages/sent",
            )],
            holds: |m| m.each(|x| x == 9.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-normal",
        says: "with conflicts, an entry normally takes 5(K − 1) messages (TRANSFER, FAILED)",
        shown: &[Shown {
            case: "two requesters, two arbiters, the worst of all schedules: messages, at most 2 · 5 · 2",
            asks: &[(
                "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,0,0,0 --count-messages",
                "/messages/1",
            )],
            holds: |m| m.x() <= 20.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Cao–Singhal",
        name: "cao-singhal-worst",
        says: "in the worst case, an entry takes 6(K − 1) messages",
        shown: &[
            Shown {
                case: "two requesters, two arbiters: messages, at most 2 · 6 · 2",
                asks: &[(
                    "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,0,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 24.0,
            },
            Shown {
                case: "two requesters, three arbiters: messages, at most 2 · 6 · 3",
                asks: &[(
                    "check cao-singhal -n 5 --set quorums=0:2,3,4+1:2,3,4 --requests 1,1,0,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 36.0,
            },
            Shown {
                case: "three requesters, two arbiters: messages, at most 3 · 6 · 2",
                asks: &[(
                    "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0 --count-messages",
                    "/messages/1",
                )],
                holds: |m| m.x() <= 36.0,
            },
            Shown {
                case: "worst cases of two and of three requesters: a difference of at most 6(K − 1) = 12 messages",
                asks: &[
                    (
                        "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,0,0,0 --count-messages",
                        "/messages/1",
                    ),
                    (
                        "check cao-singhal -n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0 --count-messages",
                        "/messages/1",
                    ),
                ],
                holds: |m| m.at(1) - m.at(0) <= 12.0,
            },
        ],
        remark: "A further requester adds up to 8(K − 1) messages.",
    },
];
