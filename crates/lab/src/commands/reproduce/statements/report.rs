//! Statements of the project report.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-directed",
        says: "the algorithm suits directed rings, since all messages go in one direction",
        shown: &[Shown {
            case: "topologies",
            asks: &[("list chang-roberts", "/topologies")],
            holds: |m| m.has("directed ring"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-correct",
        says: "after the election there is exactly one leader, and all processes know it",
        shown: &[Shown {
            case: "four processes that all start, every schedule",
            asks: &[("check chang-roberts -n 4 --initiators all", "/verdict")],
            holds: |m| m.all("exhausted"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-anyone",
        says: "decentralised: every process can start an election",
        shown: &[Shown {
            case: "each of eight processes starts alone: id of the leader",
            asks: &[("run chang-roberts -n 8 --initiators {0..7}", "/election/leader")],
            holds: |m| m.each(|x| x == 7.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-assumes",
        says: "each process has a unique id; ids are totally ordered; all processes run the same algorithm",
        shown: &[Shown {
            case: "assumptions",
            asks: &[("list chang-roberts", "/assumes")],
            holds: |m| m.has("unique-ids"),
        }],
        remark: "Of two equal ids, one process would take the other's proposal for its own, so groups with equal ids are refused.",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-own-id",
        says: "a process that receives its own proposal has the highest id, and becomes the leader",
        shown: &[
            Shown {
                case: "three processes, every schedule",
                asks: &[("check chang-roberts -n 3 --property winner", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "a process that restarts during the election becomes the leader",
                asks: &[(
                    "run chang-roberts -n 3 --ids asc --initiators 2 --fault delay:2>0/Propose#1+20 --fault crash:2@1 --fault restart:2@5:nothing",
                    "/verdict",
                )],
                holds: |m| m.all("ok"),
            },
        ],
        remark: "A restarted process takes no part in a running election. The report excludes faults.",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-drops",
        says: "superfluous elections end early: a participant ignores lower proposals",
        shown: &[Shown {
            case: "one initiator, and three: messages, at most n − 1 more",
            asks: &[
                ("run chang-roberts -n 8 --ids asc --initiators 0", "/messages/sent"),
                ("run chang-roberts -n 8 --ids asc --initiators 0,3,5", "/messages/sent"),
            ],
            holds: |m| m.at(1) - m.at(0) < m.n(),
        }],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-again",
        says: "after the election the system is as before, ready for the next one",
        shown: &[
            Shown {
                case: "one election, and two one after the other: messages",
                asks: &[
                    ("run chang-roberts -n 8 --ids asc --script 0@0", "/messages/sent"),
                    ("run chang-roberts -n 8 --ids asc --script 0@0,0@50", "/messages/sent"),
                ],
                holds: |m| m.at(1) == 2.0 * m.at(0),
            },
            Shown {
                case: "nothing is left over after an election, every schedule",
                asks: &[("check chang-roberts -n 3 --requests 2,2,2", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-one",
        says: "with one initiator, the worst case is 3n − 1 messages",
        shown: &[
            Shown {
                case: "the initiator is the successor of the maximum: messages",
                asks: &[("run chang-roberts -n 8 --ids asc --initiators 0", "/messages/sent")],
                holds: |m| m.eq(3.0 * m.n() - 1.0),
            },
            Shown {
                case: "each other process is the initiator: messages",
                asks: &[("run chang-roberts -n 8 --ids asc --initiators {1..7}", "/messages/sent")],
                holds: |m| m.each(|x| x < 3.0 * m.n() - 1.0),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-proposals",
        says: "of these, n − 1 until the maximum takes part, n until it is elected, n until all know it",
        shown: &[Shown {
            case: "proposals, announcements",
            asks: &[
                ("run chang-roberts -n 8 --ids asc --initiators 0", "/messages/by_kind/Propose"),
                ("run chang-roberts -n 8 --ids asc --initiators 0", "/messages/by_kind/Elected"),
            ],
            holds: |m| m.at(0) == 2.0 * m.n() - 1.0 && m.at(1) == m.n(),
        }],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-worst",
        says: "(literature) O(n²) messages if all start",
        shown: &[Shown {
            case: "ids fall in the direction of the messages: n(n + 1)/2 + n messages",
            asks: &[("run chang-roberts -n 8 --ids desc", "/messages/sent")],
            holds: |m| m.eq(m.n() * (m.n() + 1.0) / 2.0 + m.n()),
        }],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-step-down",
        says: "the leader must step down when it learns of an election, or there could be two leaders",
        shown: &[
            Shown {
                case: "a leader that steps down",
                asks: &[(
                    "check chang-roberts -n 2 --requests 2,0 --down 1 --restart 1 --property unique",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "a leader that does not step down",
                asks: &[(
                    "check chang-roberts --mistake no-step-down -n 2 --requests 2,0 --down 1 --restart 1 --property unique",
                    "/property",
                )],
                holds: |m| m.all("one leader at a time"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-early",
        says: "this is needed only because users start elections while there is a leader",
        shown: &[
            Shown {
                case: "without it, users start elections and a higher process restarts",
                asks: &[(
                    "check chang-roberts --mistake no-step-down -n 2 --requests 2,0 --down 1 --restart 1 --property unique",
                    "/property",
                )],
                holds: |m| m.all("one leader at a time"),
            },
            Shown {
                case: "without it, users start elections and no process restarts",
                asks: &[(
                    "check chang-roberts --mistake no-step-down -n 2 --requests 2,0 --property unique",
                    "/property",
                )],
                holds: |m| m.all("one leader at a time"),
            },
        ],
        remark: "An election alone does no harm, since the same process wins again.",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-orphan",
        says: "(literature) a message circulates for ever if the process with its id crashed",
        shown: &[Shown {
            case: "without a limit of hops",
            asks: &[(
                "check chang-roberts --mistake no-hop-limit -n 3 --crash 1 --property livelock",
                "/property",
            )],
            holds: |m| m.all("livelock"),
        }],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-franklin",
        says: "there are algorithms with fewer messages: Franklin's for undirected rings",
        shown: &[
            Shown {
                case: "worst case of Chang–Roberts, and Franklin's on the same ring: messages",
                asks: &[
                    ("run chang-roberts -n 64 --ids desc", "/messages/sent"),
                    ("run franklin -n 64 --ids desc", "/messages/sent"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
            Shown {
                case: "random ids, Chang–Roberts and Franklin: messages",
                asks: &[
                    ("run chang-roberts -n 512 --ids random", "/messages/sent"),
                    ("run franklin -n 512 --ids random", "/messages/sent"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
        ],
        remark: "Franklin's algorithm needs fewer messages in the worst case only.",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-dkr",
        says: "and that of Dolev, Klawe and Rodeh for directed rings",
        shown: &[
            Shown {
                case: "worst case of Chang–Roberts, and Dolev–Klawe–Rodeh on the same ring: messages",
                asks: &[
                    ("run chang-roberts -n 64 --ids desc", "/messages/sent"),
                    ("run dolev-klawe-rodeh -n 64 --ids desc", "/messages/sent"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
            Shown {
                case: "random ids, Chang–Roberts and Dolev–Klawe–Rodeh: messages",
                asks: &[
                    ("run chang-roberts -n 512 --ids random", "/messages/sent"),
                    ("run dolev-klawe-rodeh -n 512 --ids random", "/messages/sent"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
        ],
        remark: "Their algorithm needs fewer messages in the worst case only.",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-options",
        says: "the program takes a size above 0, a number of elections, and two pauses in ms",
        shown: &[Shown {
            case: "exit code with two elections of five workers, and with size 0",
            asks: &[("ring 5 -n 2 --sleep 0 --worker-sleep 0", "exit"), ("ring 0 -n 1", "exit")],
            holds: |m| m.at(0) == 0.0 && m.at(1) != 0.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-skips",
        says: "if its neighbour has failed, a worker sends to the next worker, so that messages are not stuck",
        shown: &[
            Shown {
                case: "as printed: steps until a sender waits for ever",
                asks: &[("buffer printed", "/shortest/waits_for_ever")],
                holds: |m| m.none(),
            },
            Shown {
                case: "(ours) with tickets and one deadline: steps until a sender waits for ever",
                asks: &[("buffer ticket", "/shortest/waits_for_ever")],
                holds: |m| m.none(),
            },
        ],
        remark: "The wait for the slot has no limit. Behind a message that a failed worker never takes, a sender waits for ever.",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-buffer-mutex",
        says: "with its mutex, send-and-wait never reports a message as taken that was not taken",
        shown: &[
            Shown {
                case: "as printed: steps until a false report",
                asks: &[("buffer printed", "/shortest/false_taken")],
                holds: |m| m.none(),
            },
            Shown {
                case: "(ours) with tickets: steps until a false report",
                asks: &[("buffer ticket", "/shortest/false_taken")],
                holds: |m| m.none(),
            },
        ],
        remark: "The controller puts its message outside the mutex. When that message is taken, the neighbour learns that its own was.",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-buffer-timeout",
        says: "when the timeout is over, the neighbour has failed",
        shown: &[
            Shown {
                case: "as printed: steps until a message is taken after the timeout, and also sent to the next worker",
                asks: &[("buffer printed", "/shortest/taken_twice")],
                holds: |m| m.none(),
            },
            Shown {
                case: "(ours) the sender withdraws a message at the timeout: steps until this happens",
                asks: &[("buffer ticket", "/shortest/taken_twice")],
                holds: |m| m.none(),
            },
        ],
        remark: "The neighbour may be slow.",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-hand-over",
        says: "a worker whose neighbour does not take a message in time knows that the neighbour failed",
        shown: &[
            Shown {
                case: "two elections in a ring of two: workers wrongly taken for failed",
                asks: &[("buffer printed --workers 2 --initiators 2", "/wrongly_failed")],
                holds: |m| m.eq(0.0),
            },
            Shown {
                case: "(ours) a worker also takes messages while it hands one over: workers wrongly taken for failed",
                asks: &[("buffer ticket --workers 2 --initiators 2", "/wrongly_failed")],
                holds: |m| m.eq(0.0),
            },
        ],
        remark: "Two workers that hand over to each other take no message meanwhile, however long they wait.",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-worker-sleep",
        says: "each worker sleeps 500 ms after a task, and is not taken for failed meanwhile",
        shown: &[
            Shown {
                case: "timeout of 400 ms: workers wrongly taken for failed",
                asks: &[("buffer printed --workers 3 --timeout 400", "/wrongly_failed")],
                holds: |m| m.eq(0.0),
            },
            Shown {
                case: "timeout of 501 ms: workers wrongly taken for failed",
                asks: &[("buffer printed --workers 3 --timeout 501", "/wrongly_failed")],
                holds: |m| m.eq(0.0),
            },
            Shown {
                case: "(ours) a worker takes messages during its sleep, timeout of 400 ms: workers wrongly taken for failed",
                asks: &[("buffer ticket --workers 3 --timeout 400", "/wrongly_failed")],
                holds: |m| m.eq(0.0),
            },
            Shown {
                case: "(the report names no timeout) the shortest timeout that takes no healthy neighbour for failed, in ms",
                asks: &[("buffer printed --workers 3", "/shortest_timeout")],
                holds: |m| m.x() > 500.0,
            },
        ],
        remark: "",
    },
];
