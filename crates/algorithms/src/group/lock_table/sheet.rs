//! The data sheet of the replicated lock table: assumptions, costs, guarantees, mistake switches.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::{LockTable, Sessions, Settings, Table};
use crate::group::locks::{Ask, Locks};
use crate::group::sheet::{HEARTBEAT, JOINERS, LEAVERS, REFORM, REJOIN, RETRY};
use crate::group::virtual_synchrony::VirtualSynchrony;
use crate::group::{Plan, assumed};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

pub(super) const ANY_TOKEN: Mistake = Mistake {
    name: "any-token",
    what: "a release does not name its grant: a late release ends a later grant",
    breaks: "mutual exclusion",
    caught_by: "-n 2 --requests 2,1 --set clients=0 --set retry=off --synchronous --clock 1 --time-limit 1 --property exclusion",
};
pub(super) const ANY_EXPIRY: Mistake = Mistake {
    name: "any-expiry",
    what: "an expiry takes effect although a sign of life is ordered before it",
    breaks: "mutual exclusion",
    caught_by: "-n 2 --requests 1,1 --synchronous --crash 1 --restart 1 --set departed=fenced --set adopt=on --set rejoin=on --set retry=off --property exclusion",
};
pub(super) const NO_MEMORY: Mistake = Mistake {
    name: "no-memory",
    what: "a repeated request is taken for a new one",
    breaks: "mutual exclusion",
    caught_by: "",
};
pub(super) const BARE_TOKEN: Mistake = Mistake {
    name: "bare-token",
    what: "the token is the number of the grant alone: it starts anew with every view",
    breaks: "growing fences",
    caught_by: "-n 2 --requests 1,1 --set reform=0 --set retry=off",
};
pub(super) const NO_WAIT: Mistake = Mistake {
    name: "no-wait",
    what: "the lease-safe grants of an excluded member are not fenced",
    breaks: "mutual exclusion",
    caught_by: "",
};
pub(super) const ADOPT_ANY: Mistake = Mistake {
    name: "adopt-any",
    what: "a restarted member takes a grant over that is not fenced any more",
    breaks: "mutual exclusion",
    caught_by: "-n 2 --requests 1,1 --synchronous --crash 1 --restart 1 --set departed=fenced --set adopt=on --set rejoin=on --set retry=off --property exclusion",
};
pub(super) const FREE_REVOKED: Mistake = Mistake {
    name: "free-revoked",
    what: "a revoked lock is granted before its holder has released it",
    breaks: "mutual exclusion",
    caught_by: "-n 2 --requests 1,1 --set revoke=1 --set retry=off --property exclusion",
};
pub(super) const KEPT_CANCELLED: Mistake = Mistake {
    name: "kept-cancelled",
    what: "a grant that is ordered before its cancellation is not released",
    breaks: "deadlock",
    caught_by: "-n 2 --requests 1,1 --set ask=cancel,exclusive --set retry=off",
};
pub(super) const MIXED_MODES: Mistake = Mistake {
    name: "mixed-modes",
    what: "an exclusive request is granted beside shared holders",
    breaks: "mutual exclusion",
    caught_by: "-n 2 --requests 1,1 --set ask=shared,exclusive --set retry=off",
};
pub(super) const PASSED_TOKEN: Mistake = Mistake {
    name: "passed-token",
    what: "a lock that a member passes to its own next request keeps its token",
    breaks: "growing fences",
    caught_by: "-n 2 --requests 2,1 --set ask=again,exclusive --set retry=off",
};
pub(super) const SPARE_PERMIT: Mistake = Mistake {
    name: "spare-permit",
    what: "a semaphore grants one permit too many",
    breaks: "mutual exclusion",
    caught_by: "-n 2 --requests 1,1 --set ask=permit-1 --set retry=off",
};
pub(super) const TRY_REFUSED: Mistake = Mistake {
    name: "try-refused",
    what: "a request that does not wait is refused although the lock is free",
    breaks: "refused though free",
    caught_by: "-n 2 --requests 1,0 --set ask=try --set retry=off",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "lock-table",
    title: "Replicated lock table",
    idea: "Multicast every operation in total order; each member applies it to its own table.",
    source: "F. Schneider, ACM CSUR 22(4), 1990 (state machines); M. Burrows, OSDI 2006 (sessions)",
    assumes: &[Assumption::UniqueIds, Assumption::Reliable],
    topologies: &[Shape::Complete],
    winner: None,
    // The algorithm assumes no fault away; so each formula has to exclude faults itself.
    costs: &[
        Cost {
            metric: Metric::SyncDelay,
            formula: "3T",
            when: "no process fails, joins or leaves, there is one lock, and delays have a limit",
            bound: |f| in_peace(f).map(|t| Bound::AtMost(3.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "3T, or 2T for the leader and in groups of up to three",
            when: "no process fails, joins or leaves, there is one lock, and delays have a limit",
            bound: |f| {
                let hops = if f.n() > 3.0 { 3.0 } else { 2.0 };
                in_peace(f).map(|t| Bound::AtMost(hops * t))
            },
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("generation and epoch of the view, count of grants in it"),
    mistakes: &[
        ANY_TOKEN,
        ANY_EXPIRY,
        NO_MEMORY,
        BARE_TOKEN,
        NO_WAIT,
        ADOPT_ANY,
        FREE_REVOKED,
        KEPT_CANCELLED,
        MIXED_MODES,
        PASSED_TOKEN,
        SPARE_PERMIT,
        TRY_REFUSED,
    ],
    switches: &[
        Switch {
            name: "departed",
            values: &["free", "fenced"],
            what: "the locks of an excluded member: free at once, or fenced for the lease, by when the member \
                   has given them up",
        },
        Switch { name: "lease", values: &["20", "<number>"], what: "how long that is, in T" },
        HEARTBEAT,
        RETRY,
        Switch { name: "names", values: &["1", "<number>"], what: "how many locks are used" },
        Switch {
            name: "ask",
            values: &["exclusive", "<text>"],
            what: "how the clients ask, in node order, the last word for the rest: exclusive, shared, permit-3 \
                   (one of 3), urgent (before others), try (without waiting), cancel (may give up), again (for \
                   the next time while holding it)",
        },
        Switch {
            name: "revoke",
            values: &["none", "<text>"],
            what: "the processes whose operator revokes the lock once",
        },
        Switch {
            name: "adopt",
            values: &["off", "on"],
            what: "whether a client outlives a crash of its process, and takes its grant over after the restart",
        },
        JOINERS,
        LEAVERS,
        REFORM,
        REJOIN,
        Switch {
            name: "clients",
            values: &["none", "<text>"],
            what: "for checks: the members with a client that has a session and makes each request twice, \
                   the second time through the next member",
        },
    ],
};

impl Inspect for LockTable {
    fn at_rest(&self) -> bool {
        self.group.at_rest() && self.requests.is_empty()
    }
}

impl Algorithm for LockTable {
    type Problem = Locks;
    const SHEET: DataSheet = SHEET;
    const NEEDS_MAJORITY: bool = true;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let group = VirtualSynchrony::build(me, setup);
        let lease = setup.unit * setup.chosen(&SHEET, "lease").number();
        Self {
            has_table: group.view().has_member(me),
            group,
            table: Table::default(),
            sessions: Sessions::default(),
            requests: BTreeMap::new(),
            next: BTreeMap::new(),
            last_request: 0,
            was_member: false,
            watching: false,
            expiries: BTreeSet::new(),
            outbox: VecDeque::new(),
            settings: Fixed(Settings {
                unit: setup.unit,
                lease: setup.chosen(&SHEET, "departed").is("fenced").then_some(lease),
                mistake: setup.mistake,
            }),
        }
    }

    /// With heartbeats, a run has no end.
    fn goes_on(setup: &Setup) -> bool {
        setup.chosen(&SHEET, "heartbeat").number() > 0
    }

    fn sheet(setup: &Setup) -> DataSheet {
        let leases = setup.chosen(&SHEET, "departed").is("fenced");
        DataSheet { assumes: assumed(Self::goes_on(setup), leases), ..SHEET }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["lease", "names"])?;
        Ask::of_clients(setup)?;
        Plan::check(setup)
    }
}

/// The longest delay of a message; none in runs with faults, view changes or more than one lock.
pub(super) fn in_peace(facts: &Facts<'_>) -> Option<f64> {
    let is = |name, value| facts.setup.chosen(&SHEET, name).is(value);
    let one_view =
        ["joiners", "leavers", "reform", "revoke"].into_iter().all(|name| is(name, "none"));
    let quiet = one_view && is("heartbeat", "0") && is("names", "1") && is("ask", "exclusive");
    facts.delay_max.filter(|_| facts.undisturbed && quiet)
}
