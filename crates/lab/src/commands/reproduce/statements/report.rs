//! Statements of the project report.

use super::super::{Shown, Statement};

pub(super) const STATEMENTS: &[Statement] = &[
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-directed",
        says: "it suits directed rings: all messages go one way",
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
        says: "after the election there is exactly one leader, and all know it",
        shown: &[Shown {
            case: "every schedule of four, all start",
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
            case: "each of eight starts alone: the leader",
            asks: &[("run chang-roberts -n 8 --initiators {0..7}", "/election/leader")],
            holds: |m| m.each(|x| x == 7.0),
        }],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-assumes",
        says: "each process has an id of its own; ids are totally ordered; all follow the same algorithm",
        shown: &[Shown {
            case: "",
            asks: &[("list chang-roberts", "/assumes")],
            holds: |m| m.has("unique-ids"),
        }],
        remark: "two equal ids would both return to a wrong owner: groups with two are refused",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-own-id",
        says: "whoever gets its own proposal has the highest id of all, and leads",
        shown: &[
            Shown {
                case: "every schedule of three",
                asks: &[("check chang-roberts -n 3 --property winner", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "one that was restarted meanwhile",
                asks: &[(
                    "run chang-roberts -n 3 --ids asc --initiators 2 --fault delay:2>0/Propose#1+20 --fault crash:2@1 --fault restart:2@5:nothing",
                    "/verdict",
                )],
                holds: |m| m.all("ok"),
            },
        ],
        remark: "a restarted process takes no part in any election; the report excludes faults",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-drops",
        says: "superfluous elections end early: a participant ignores lower proposals",
        shown: &[Shown {
            case: "one starts, three start: at most n − 1 messages more",
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
                case: "nothing is left over in any schedule",
                asks: &[("check chang-roberts -n 3 --requests 2,2,2", "/verdict")],
                holds: |m| m.all("exhausted"),
            },
        ],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-one",
        says: "3n − 1 messages in the worst case, with one initiator",
        shown: &[
            Shown {
                case: "the initiator follows the maximum",
                asks: &[("run chang-roberts -n 8 --ids asc --initiators 0", "/messages/sent")],
                holds: |m| m.eq(3.0 * m.n() - 1.0),
            },
            Shown {
                case: "each of the others: fewer",
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
        says: "(literature) O(n²) if all start",
        shown: &[Shown {
            case: "ids that fall in the direction of the messages: n(n + 1)/2 + n",
            asks: &[("run chang-roberts -n 8 --ids desc", "/messages/sent")],
            holds: |m| m.eq(m.n() * (m.n() + 1.0) / 2.0 + m.n()),
        }],
        remark: "",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-step-down",
        says: "the incumbent must step down when it hears of an election, or there could be two leaders",
        shown: &[
            Shown {
                case: "with it",
                asks: &[(
                    "check chang-roberts -n 2 --requests 2,0 --down 1 --restart 1 --property unique",
                    "/verdict",
                )],
                holds: |m| m.all("exhausted"),
            },
            Shown {
                case: "without it",
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
        says: "that is needed only because users start elections while there is a leader",
        shown: &[
            Shown {
                case: "without it, when users do and a higher process comes back",
                asks: &[(
                    "check chang-roberts --mistake no-step-down -n 2 --requests 2,0 --down 1 --restart 1 --property unique",
                    "/property",
                )],
                holds: |m| m.all("one leader at a time"),
            },
            Shown {
                case: "without it, when users do and no process comes back",
                asks: &[(
                    "check chang-roberts --mistake no-step-down -n 2 --requests 2,0 --property unique",
                    "/property",
                )],
                holds: |m| m.all("one leader at a time"),
            },
        ],
        remark: "that alone does no harm, for the same process wins again",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-orphan",
        says: "(literature) a message whose owner crashed goes round for ever",
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
        says: "it is not the most efficient: Franklin's algorithm for undirected rings",
        shown: &[
            Shown {
                case: "in its worst case: its messages, and Franklin's",
                asks: &[
                    ("run chang-roberts -n 64 --ids desc", "/messages/sent"),
                    ("run franklin -n 64 --ids desc", "/messages/sent"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
            Shown {
                case: "with random ids",
                asks: &[
                    ("run chang-roberts -n 512 --ids random", "/messages/sent"),
                    ("run franklin -n 512 --ids random", "/messages/sent"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
        ],
        remark: "more efficient in the worst case only",
    },
    Statement {
        chapter: "Chang–Roberts (report)",
        name: "chang-roberts-dkr",
        says: "and that of Dolev, Klawe and Rodeh for directed rings",
        shown: &[
            Shown {
                case: "in the worst case: its messages, and theirs",
                asks: &[
                    ("run chang-roberts -n 64 --ids desc", "/messages/sent"),
                    ("run dolev-klawe-rodeh -n 64 --ids desc", "/messages/sent"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
            Shown {
                case: "with random ids",
                asks: &[
                    ("run chang-roberts -n 512 --ids random", "/messages/sent"),
                    ("run dolev-klawe-rodeh -n 512 --ids random", "/messages/sent"),
                ],
                holds: |m| m.at(0) > m.at(1),
            },
        ],
        remark: "more efficient in the worst case only",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-options",
        says: "the program takes a size above 0, a number of elections, and two pauses in ms",
        shown: &[Shown {
            case: "exit codes of two elections of five, and of size 0",
            asks: &[("ring 5 -n 2 --sleep 0 --worker-sleep 0", "exit"), ("ring 0 -n 1", "exit")],
            holds: |m| m.at(0) == 0.0 && m.at(1) != 0.0,
        }],
        remark: "",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-skips",
        says: "a worker sends to the next one when its neighbour fails, so that messages are not stuck",
        shown: &[
            Shown {
                case: "in time: how a sender can wait for ever, in steps",
                asks: &[("buffer printed", "/shortest/waits_for_ever")],
                holds: |m| m.none(),
            },
            Shown {
                case: "(ours) tickets, and one deadline",
                asks: &[("buffer ticket", "/shortest/waits_for_ever")],
                holds: |m| m.none(),
            },
        ],
        remark: "the wait for the slot has no limit: behind a message that a failed worker never takes, a sender waits for ever",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-buffer-mutex",
        says: "with its mutex, send-and-wait tells no sender wrongly that its message was taken",
        shown: &[
            Shown {
                case: "steps until it does",
                asks: &[("buffer printed", "/shortest/false_taken")],
                holds: |m| m.none(),
            },
            Shown {
                case: "(ours) with tickets",
                asks: &[("buffer ticket", "/shortest/false_taken")],
                holds: |m| m.none(),
            },
        ],
        remark: "the controller's put is outside the mutex: its message is taken, and the neighbour is told that its own was",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-buffer-timeout",
        says: "when the time is up, the neighbour has failed",
        shown: &[
            Shown {
                case: "steps until a message is taken after all, and sent to the next one, too",
                asks: &[("buffer printed", "/shortest/taken_twice")],
                holds: |m| m.none(),
            },
            Shown {
                case: "(ours) what timed out is withdrawn",
                asks: &[("buffer ticket", "/shortest/taken_twice")],
                holds: |m| m.none(),
            },
        ],
        remark: "it may be slow",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-hand-over",
        says: "a worker whose neighbour does not take in time knows that it failed",
        shown: &[
            Shown {
                case: "two elections in a ring of two: workers wrongly taken for failed",
                asks: &[("buffer printed --workers 2 --initiators 2", "/wrongly_failed")],
                holds: |m| m.eq(0.0),
            },
            Shown {
                case: "(ours) a worker takes while it hands over",
                asks: &[("buffer ticket --workers 2 --initiators 2", "/wrongly_failed")],
                holds: |m| m.eq(0.0),
            },
        ],
        remark: "two that hand over to each other take nothing meanwhile, however long they wait",
    },
    Statement {
        chapter: "Ring program (report)",
        name: "ring-worker-sleep",
        says: "each worker sleeps 500 ms after a task, and is not taken for failed meanwhile",
        shown: &[
            Shown {
                case: "workers wrongly taken for failed with a timeout of 400 ms",
                asks: &[("buffer printed --workers 3 --timeout 400", "/wrongly_failed")],
                holds: |m| m.eq(0.0),
            },
            Shown {
                case: "with one of 501 ms",
                asks: &[("buffer printed --workers 3 --timeout 501", "/wrongly_failed")],
                holds: |m| m.eq(0.0),
            },
            Shown {
                case: "(ours) 400 ms, while a worker takes during its sleep",
                asks: &[("buffer ticket --workers 3 --timeout 400", "/wrongly_failed")],
                holds: |m| m.eq(0.0),
            },
            Shown {
                case: "(the report names no timeout) the shortest that takes no healthy neighbour for failed, in ms: longer than the sleep",
                asks: &[("buffer printed --workers 3", "/shortest_timeout")],
                holds: |m| m.x() > 500.0,
            },
        ],
        remark: "",
    },
];
