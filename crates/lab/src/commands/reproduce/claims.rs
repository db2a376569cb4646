//! The claims of the sources, place by place, and the statements that measure them.

/// A page, section or slide of the sources.
pub(super) struct Place {
    /// The source, and where in it.
    pub(super) at: &'static str,
    /// Its claims, in short, each with the statements that measure it; without any, it is a gap.
    pub(super) claims: &'static [(&'static str, &'static [&'static str])],
}

/// Every claim, number and example, in the order of the sources: the slides "Übereinstimmung und Koordination"
/// (two versions), "Wahlalgorithmen" and "Gegenseitiger Ausschluss", and the report "Wahlalgorithmus im Ring".
/// Titles, tables of contents and literature are left out.
pub(super) const PLACES: &[Place] = &[
    Place {
        at: "Koordination 3, Wahl-Algorithmen",
        claims: &[
            ("a cooperative election determines one process uniquely", &["unique-leader"]),
            ("uses: mutual exclusion, failure of a coordinator", &["uses"]),
            ("each number is known to all others", &["known-numbers"]),
            ("nobody knows which process works", &["nobody-knows"]),
            ("all algorithms elect the highest number", &["highest"]),
            ("a restarted process joins in again", &["rejoin"]),
        ],
    },
    Place {
        at: "Koordination 4, Bully",
        claims: &[
            (
                "the highest that is alive is the new coordinator, and all are told",
                &["bully-example"],
            ),
            ("any process may start, several at once", &["bully-concurrent"]),
            ("three kinds of messages", &["bully-kinds"]),
        ],
    },
    Place {
        at: "Koordination 5, Bully: Ablauf",
        claims: &[
            ("the code with its timeout", &["bully-code"]),
            ("every ELECTION starts an election", &["bully-worst"]),
        ],
    },
    Place {
        at: "Koordination 6, Bully: Beispiel",
        claims: &[
            ("the example", &["bully-example"]),
            ("worst case O(n²)", &["bully-worst"]),
            ("best case n − 2", &["bully-best"]),
            ("all ids must be known to all", &["known-numbers"]),
        ],
    },
    Place {
        at: "Koordination 7, Ring",
        claims: &[
            ("by Chang and Roberts, 1979", &["ring-author"]),
            ("ids of their own, a directed ring", &["ring-assumes"]),
            ("a successor that cannot be reached is skipped", &["ring-skip"]),
            ("all are active, no faults", &["ring-faults"]),
            ("two kinds of messages", &["ring-kinds"]),
        ],
    },
    Place {
        at: "Koordination 8, Ring: Ablauf",
        claims: &[("the code", &["ring-finish"]), ("the highest on the list", &["ring-lists"])],
    },
    Place {
        at: "Koordination 9, Ring: Beispiel",
        claims: &[
            ("the lists of the example", &["ring-lists"]),
            ("worst case 2(n − 1)", &["ring-cost"]),
            ("n − 1 of each kind", &["ring-half"]),
            ("several may start", &["ring-two"]),
            ("a logical ring must be built", &["ring-built"]),
        ],
    },
    Place {
        at: "Koordination 10, FireWire",
        claims: &[
            ("hot-pluggable, bus reset, election of the bus master", &["firewire-hot-plug"]),
            ("one port or several", &["firewire-ports"]),
            ("connected, no cycle, both ways", &["firewire-tree"]),
            ("only direct neighbours are known", &["firewire-neighbours"]),
            ("decentralised, not deterministic", &["firewire-chance"]),
        ],
    },
    Place {
        at: "Koordination 11, FireWire: Ablauf",
        claims: &[
            ("leaves ask, inner nodes go on with the last link", &["firewire-wave"]),
            ("an inner node that all have asked is the master", &["firewire-inner"]),
        ],
    },
    Place {
        at: "Koordination 12, FireWire: Konflikt",
        claims: &[
            ("at most one contended link", &["firewire-one"]),
            ("random waits, repeated until solved", &["firewire-random"]),
            ("alternative: the larger id", &["firewire-id"]),
        ],
    },
    Place {
        at: "Koordination 14, Wechselseitiger Ausschluss",
        claims: &[("without shared memory: a distributed procedure", &["mutex-messages"])],
    },
    Place {
        at: "Koordination 15, Anforderungen",
        claims: &[
            (
                "safety, liveness; liveness implies no deadlock and no starvation",
                &["liveness", "central-correct"],
            ),
            ("happened-before order", &["central-order", "ricart-agrawala-group-1"]),
            ("fault tolerance", &["central-crash", "central-server"]),
        ],
    },
    Place {
        at: "Koordination 16, Zentrale Lösung",
        claims: &[(
            "the coordinator gives the OK, or queues",
            &["central-example-a", "central-example-b"],
        )],
    },
    Place {
        at: "Koordination 17, Zentrale Lösung: Beispiel",
        claims: &[
            ("(a)", &["central-example-a"]),
            ("(b)", &["central-example-b"]),
            ("(c)", &["central-example-c"]),
        ],
    },
    Place {
        at: "Koordination 18, Zentrale Lösung: Bewertung",
        claims: &[
            ("mutual exclusion, safety and liveness", &["central-correct"]),
            ("fair: in the order of requests", &["central-fair"]),
            ("no happened-before order", &["central-order"]),
            ("no tolerance of a failing client or server", &["central-inside", "central-server"]),
            ("easy to realise", &["central-simple"]),
            ("at most three messages", &["central-cost"]),
            ("a client cannot tell a long queue from a crashed server", &["central-silent"]),
            ("a client that fails inside: deadlock", &["central-inside"]),
            ("a lost message: deadlock", &["central-loss"]),
        ],
    },
    Place {
        at: "Koordination 19, Verteilte Lösung",
        claims: &[
            ("all decide together, by multicast and Lamport's time", &["ricart-agrawala-correct"]),
            ("three states, two kinds of messages", &["ricart-agrawala-kinds"]),
        ],
    },
    Place {
        at: "Koordination 20, Korrektheitsbedingung",
        claims: &[
            ("all places behave alike", &["ricart-agrawala-alike"]),
            ("group 1, condition 1", &["ricart-agrawala-group-1"]),
            ("group 2, condition 2", &["ricart-agrawala-group-2"]),
            ("group 3, condition 3", &["ricart-agrawala-group-3"]),
        ],
    },
    Place {
        at: "Koordination 21, Verteilte Lösung: Algorithmus",
        claims: &[("the code", &["ricart-agrawala-correct"])],
    },
    Place {
        at: "Koordination 22, Verteilte Lösung: Beispiel",
        claims: &[("times 12 and 8", &["ricart-agrawala-stamps"])],
    },
    Place {
        at: "Koordination 23, Verteilte Lösung: Bewertung",
        claims: &[
            ("all three conditions", &["ricart-agrawala-correct"]),
            ("n points of failure", &["ricart-agrawala-crash"]),
            ("improvement: request and reply", &["ricart-agrawala-acknowledged"]),
            ("everyone must always take part", &["ricart-agrawala-everyone"]),
            ("improvement: a simple majority", &["ricart-agrawala-majority"]),
            ("slower, more complicated, more expensive, less robust", &["ricart-agrawala-worse"]),
        ],
    },
    Place {
        at: "Koordination 24, Token-Ring",
        claims: &[
            ("one token in a logical ring", &["token-ring-one"]),
            ("only once", &["token-ring-once"]),
            ("the owner keeps it while inside", &["token-ring-correct"]),
        ],
    },
    Place {
        at: "Koordination 25, Token-Ring: Bewertung",
        claims: &[
            ("safety, liveness", &["token-ring-correct"]),
            ("no happened-before order", &["token-ring-order"]),
            ("waits at most until all others were inside once", &["token-ring-bypass"]),
            ("lost tokens must be made anew", &["token-ring-lost"]),
            ("a loss looks like a long stay", &["token-ring-long-stay"]),
        ],
    },
    Place {
        at: "Koordination 26, Fehlertoleranz",
        claims: &[
            ("none tolerates a lost message", &["no-loss"]),
            ("central: an idle client may crash", &["central-crash"]),
            ("distributed: with request and reply", &["ricart-agrawala-acknowledged"]),
            ("token ring: no process may crash", &["token-ring-crash"]),
        ],
    },
    Place {
        at: "Koordination 28, Gruppenkommunikation",
        claims: &[
            ("simpler and more scalable", &["group-simpler"]),
            ("for participants that do not know each other", &["group-unknown"]),
            ("multicast is not reliable", &["multicast-unreliable"]),
            ("a layer makes it reliable", &["group-layer"]),
        ],
    },
    Place {
        at: "Koordination 29, Zuverlässiger Multicast",
        claims: &[
            ("losses, crashes, JOIN and LEAVE", &["group-aspects"]),
            ("how participants and the group become known", &["group-known"]),
        ],
    },
    Place {
        at: "Koordination 30, Unmittelbare Rückmeldungen",
        claims: &[("all must be known", &["ack-known"]), ("limited size", &["ack-size"])],
    },
    Place {
        at: "Koordination 31, NACK",
        claims: &[
            ("only for missing messages", &["nack-quiet"]),
            ("receivers need not be known", &["nack-unknown"]),
            ("scales better", &["nack-scales"]),
            ("the chart; a loss at the end goes unnoticed", &["nack-chart"]),
            ("remedy: logic of the application", &["nack-application"]),
            ("remedy: stop signal", &["nack-stop"]),
        ],
    },
    Place {
        at: "Koordination 32, SRM",
        claims: &[
            ("NACKs to all, by contention", &["srm-suppression"]),
            ("repairs to the group", &["srm-repairs"]),
            ("unwanted packets", &["srm-unwanted"]),
        ],
    },
    Place {
        at: "Koordination 33, Virtual Synchrony",
        claims: &[
            ("atomic", &["view-atomic"]),
            ("totally ordered", &["view-total"]),
            ("uniform view", &["view-uniform"]),
        ],
    },
    Place {
        at: "Koordination 34, Sichtveränderungen",
        claims: &[("barriers for messages", &["view-barrier"])],
    },
    Place {
        at: "Koordination 35, View Updates",
        claims: &[
            ("the picture", &["view-picture"]),
            ("the view is the ground for decisions", &["view-decides"]),
        ],
    },
    Place {
        at: "Wahlalgorithmen, Motivation",
        claims: &[
            ("uniqueness at every time", &["unique-leader"]),
            ("terminates", &["terminates"]),
            ("related: the maximal id", &["maximum"]),
            ("deterministic", &["deterministic"]),
            ("all are notified", &["notified"]),
        ],
    },
    Place {
        at: "Wahlalgorithmen, Systemmodell",
        claims: &[
            ("unknown number, unique ids", &["unknown-size"]),
            ("nodes come and go", &["rejoin", "firewire-hot-plug"]),
            ("ring, tree, any structure", &["topologies"]),
            ("knowledge of the topology is used", &["knowledge"]),
        ],
    },
    Place {
        at: "Wahlalgorithmen, Virtueller Baum",
        claims: &[
            ("addresses from a registry", &["virtual-tree-registry"]),
            ("levels, the nearest is the parent", &["virtual-tree-levels"]),
            ("the code", &["virtual-tree"]),
            ("the choice is repeated", &["virtual-tree-reselect"]),
        ],
    },
    Place { at: "Wahlalgorithmen, Wellenverfahren", claims: &[("three waves", &["tree-waves"])] },
    Place {
        at: "Wahlalgorithmen, Wellen: Algorithmus",
        claims: &[
            ("a leaf answers with its id", &["tree-leaf"]),
            ("k − 1 echoes, and one more", &["tree-highest"]),
        ],
    },
    Place {
        at: "Wahlalgorithmen, Wellen: Beispiel",
        claims: &[("the pictures", &["tree-highest"])],
    },
    Place {
        at: "Wahlalgorithmen, Adoptionsverfahren",
        claims: &[
            ("as on trees, for any topology", &["adoption-waves", "adoption-any"]),
            ("equal to the mark", &["adoption-equal"]),
            ("below the mark", &["adoption-lower"]),
            ("between mark and node", &["adoption-case-3"]),
            ("adoption, first contact", &["adoption-first"]),
        ],
    },
    Place {
        at: "Wahlalgorithmen, Adoption: Beispiel",
        claims: &[("the pictures", &["adoption-waves"])],
    },
    Place {
        at: "Ausschluss 5.1, Überblick",
        claims: &[
            (
                "exclusion, no deadlock, no livelock, no starvation",
                &["liveness", "central-correct"],
            ),
            ("fairness: in the order of requests", &["central-fair"]),
            ("coordination delay, response time, throughput", &["throughput"]),
        ],
    },
    Place {
        at: "Ausschluss 5.2, Zentraler Koordinator",
        claims: &[
            ("three kinds of messages", &["central-kinds"]),
            ("3 messages", &["central-cost"]),
            ("2 message times", &["central-delay"]),
        ],
    },
    Place {
        at: "Ausschluss 5.3.1, Lamport",
        claims: &[
            ("reliable FIFO channels", &["lamport-fifo"]),
            ("the algorithm", &["lamport-correct"]),
            ("2T + E", &["lamport-response"]),
            ("3(N − 1)", &["lamport-cost"]),
            ("T", &["lamport-delay"]),
            ("no fault tolerance", &["lamport-crash"]),
        ],
    },
    Place {
        at: "Ausschluss 5.3.2, Ricart und Agrawala",
        claims: &[
            ("FIFO is not necessary", &["ricart-agrawala-fifo"]),
            ("ACK and RELEASE combined", &["ricart-agrawala-kinds"]),
            ("2T + E", &["ricart-agrawala-response"]),
            ("2(N − 1)", &["ricart-agrawala-cost"]),
            ("T", &["ricart-agrawala-delay"]),
        ],
    },
    Place {
        at: "Ausschluss 5.4.1, Maekawa: Quoren",
        claims: &[
            ("any two share an element", &["maekawa-intersect"]),
            ("own element", &["maekawa-own"]),
            ("even sizes and loads", &["maekawa-13"]),
            ("theorem for p^k(p^k + 1) + 1, 13", &["maekawa-plane", "maekawa-13"]),
            ("grid, 2√N − 1", &["maekawa-grid"]),
            ("two in common", &["maekawa-grid-two"]),
            ("always possible", &["maekawa-grid-always"]),
        ],
    },
    Place {
        at: "Ausschluss 5.4.1, Maekawa: Algorithmus",
        claims: &[("the protocol", &["maekawa-correct", "maekawa-printed"])],
    },
    Place {
        at: "Ausschluss 5.4.1, Maekawa: Beispiel",
        claims: &[("the 13 quorums and the run", &["maekawa-13", "maekawa-run"])],
    },
    Place {
        at: "Ausschluss 5.4.1, Maekawa: Verhalten",
        claims: &[
            ("2T + E", &["maekawa-response"]),
            ("3(K − 1)", &["maekawa-cost"]),
            ("4(K − 1)", &["maekawa-normal"]),
            ("5(K − 1)", &["maekawa-worst"]),
            ("O(√N)", &["maekawa-grid-always"]),
            ("2T", &["maekawa-delay"]),
        ],
    },
    Place {
        at: "Ausschluss 5.4.2, Sanders",
        claims: &[
            ("the condition", &["sanders-condition"]),
            ("not free of deadlocks", &["sanders-basic"]),
            ("bounds of Z", &["sanders-bounds"]),
            ("Ricart–Agrawala as a case", &["sanders-ricart-agrawala"]),
            ("Maekawa as a case", &["sanders-maekawa"]),
            ("the new algorithm", &["sanders-new"]),
            ("its delays", &["sanders-matrix"]),
        ],
    },
    Place {
        at: "Ausschluss 5.4.3, Cao und Singhal",
        claims: &[
            ("at least 2T for Maekawa's type", &["cao-singhal-maekawa"]),
            ("the holder passes the lock on", &["cao-singhal-correct", "cao-singhal-throughput"]),
            (
                "a later TRANSFER of higher priority, one LOCKED, the release names its receiver",
                &["cao-singhal-one-lock"],
            ),
            ("INQUIRE, FAILED", &["cao-singhal-failed"]),
            ("INQUIRE before LOCKED", &["cao-singhal-inquire"]),
            ("2T + E", &["cao-singhal-response"]),
            ("3(K − 1)", &["cao-singhal-cost"]),
            ("5(K − 1)", &["cao-singhal-normal"]),
            ("6(K − 1)", &["cao-singhal-worst"]),
            ("T", &["cao-singhal-delay"]),
        ],
    },
    Place {
        at: "Ausschluss 5.5.1, Perpetuum Mobile",
        claims: &[
            ("exactly one token", &["token-ring-one"]),
            ("one message if all want", &["perpetuum-one"]),
            ("else N/2", &["perpetuum-wait"]),
            ("unbounded messages", &["perpetuum-unbounded"]),
        ],
    },
    Place {
        at: "Ausschluss 5.5.2, Aktive Verfahren",
        claims: &[
            ("outdated requests", &["suzuki-kasami-stale"]),
            ("one token", &["suzuki-kasami-correct"]),
            ("who gets it next", &["singhal-arbitrations"]),
        ],
    },
    Place {
        at: "Ausschluss 5.5.3, Suzuki und Kasami",
        claims: &[
            ("the algorithm", &["suzuki-kasami-correct", "suzuki-kasami-index"]),
            ("2T + E", &["suzuki-kasami-response"]),
            ("N messages", &["suzuki-kasami"]),
            ("T", &["suzuki-kasami-delay"]),
            ("requesters and owner must not fail", &["suzuki-kasami-crash"]),
        ],
    },
    Place {
        at: "Ausschluss 5.5.4, Raymond",
        claims: &[
            ("a tree by an election", &["raymond-elected"]),
            ("the algorithm", &["raymond-correct"]),
            ("the example", &["raymond-example"]),
            ("O(log N) messages", &["raymond-average"]),
            ("O(log N) delay", &["raymond-delay"]),
            ("locality", &["raymond-locality"]),
            ("the path must be up", &["raymond-crash"]),
        ],
    },
    Place {
        at: "Ausschluss 5.5.5, Singhal",
        claims: &[
            ("the delay of Suzuki and Kasami", &["singhal-delay"]),
            ("fewer messages", &["singhal-sum"]),
            ("the triangle at the start", &["singhal-staircase"]),
            ("the code", &["singhal-proof"]),
            ("three arbitrations", &["singhal-arbitrations"]),
            ("proof of exclusion", &["singhal-exclusion"]),
            ("proof without deadlock", &["singhal-proof"]),
            ("the triangle is kept", &["singhal-triangle"]),
            ("one request", &["singhal-example"]),
            (
                "several requests",
                &[
                    "singhal-several-1",
                    "singhal-several-2",
                    "singhal-several-3",
                    "singhal-several-4",
                    "singhal-several-5",
                ],
            ),
        ],
    },
    Place {
        at: "Bericht 2, Algorithmus",
        claims: &[("for directed rings", &["chang-roberts-directed"])],
    },
    Place {
        at: "Bericht 2.1, Anforderungen",
        claims: &[
            ("one leader, known to all", &["chang-roberts-correct"]),
            ("decentralised", &["chang-roberts-anyone"]),
            ("unique, ordered ids; one algorithm", &["chang-roberts-assumes"]),
        ],
    },
    Place {
        at: "Bericht 2.2, Ablauf",
        claims: &[
            ("its own proposal returns: the highest", &["chang-roberts-own-id"]),
            ("superfluous elections end", &["chang-roberts-drops"]),
            ("ready for the next election", &["chang-roberts-again"]),
            ("3n − 1", &["chang-roberts-one"]),
            ("n − 1, n and n", &["chang-roberts-proposals"]),
        ],
    },
    Place {
        at: "Bericht 2.3, Alternativen",
        claims: &[
            ("Franklin", &["chang-roberts-franklin"]),
            ("Dolev, Klawe, Rodeh", &["chang-roberts-dkr"]),
        ],
    },
    Place {
        at: "Bericht 3.1, Ring",
        claims: &[("workers with ids in a ring, elections on demand", &["ring-options"])],
    },
    Place {
        at: "Bericht 3.2, Worker",
        claims: &[
            ("a failed neighbour is skipped", &["ring-skips"]),
            ("the incumbent steps down", &["chang-roberts-step-down"]),
            ("needed only here", &["chang-roberts-early"]),
        ],
    },
    Place {
        at: "Bericht 3.3, Message Buffer",
        claims: &[
            ("the mutex of send-and-wait", &["ring-buffer-mutex"]),
            ("taken, or too much time", &["ring-buffer-timeout"]),
            ("out of time: failed", &["ring-hand-over"]),
            ("one slot, two senders at most", &["ring-buffer-mutex"]),
        ],
    },
    Place {
        at: "Bericht 4, Bedienung",
        claims: &[
            ("size, elections, pauses", &["ring-options"]),
            ("500 ms after each task", &["ring-worker-sleep"]),
        ],
    },
];
