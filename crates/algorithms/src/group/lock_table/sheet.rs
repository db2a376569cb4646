//! The data sheet of the replicated lock table: assumptions, costs, guarantees, mistake switches.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::table::Flaw;
use super::{LockTable, Settings, Table};
use crate::group::locks::Locks;
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
    caught_by: "",
};
pub(super) const NO_MEMORY: Mistake = Mistake {
    name: "no-memory",
    what: "a repeated request is taken for a new one",
    breaks: "mutual exclusion",
    caught_by: "",
};
pub(super) const BARE_TOKEN: Mistake = Mistake {
    name: "bare-token",
    what: "the token is the place in the view alone: it starts anew with every view",
    breaks: "growing fences",
    caught_by: "-n 2 --requests 1,1 --set reform=0 --set retry=off",
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
    fence: Some("generation and epoch of the view, place of the operation that grants"),
    mistakes: &[ANY_TOKEN, ANY_EXPIRY, NO_MEMORY, BARE_TOKEN],
    switches: &[
        Switch {
            name: "departed",
            values: &["free", "frozen"],
            what: "the locks of an excluded member: free at once, or after the lease, by when the member has \
                   given them up",
        },
        Switch { name: "lease", values: &["20", "<number>"], what: "how long that is, in T" },
        HEARTBEAT,
        RETRY,
        Switch { name: "names", values: &["1", "<number>"], what: "how many locks are used" },
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
        let flaw = match setup.mistake {
            Some(name) if name == ANY_TOKEN.name => Flaw::AnyToken,
            Some(name) if name == ANY_EXPIRY.name => Flaw::AnyExpiry,
            Some(name) if name == NO_MEMORY.name => Flaw::NoMemory,
            Some(_) | None => Flaw::None,
        };
        let lease = setup.unit * setup.chosen(&SHEET, "lease").number();
        Self {
            has_table: group.view().has_member(me),
            group,
            table: Table::with(flaw),
            requests: BTreeMap::new(),
            last_request: 0,
            was_member: false,
            watching: false,
            outbox: VecDeque::new(),
            settings: Fixed(Settings {
                unit: setup.unit,
                lease: setup.chosen(&SHEET, "departed").is("frozen").then_some(lease),
                bare_token: setup.mistake == Some(BARE_TOKEN.name),
            }),
        }
    }

    /// With heartbeats, a run has no end.
    fn goes_on(setup: &Setup) -> bool {
        setup.chosen(&SHEET, "heartbeat").number() > 0
    }

    fn sheet(setup: &Setup) -> DataSheet {
        let leases = setup.chosen(&SHEET, "departed").is("frozen");
        DataSheet { assumes: assumed(Self::goes_on(setup), leases), ..SHEET }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["lease", "names"])?;
        Plan::check(setup)
    }
}

/// The longest delay of a message; none in runs with faults, view changes or more than one lock.
pub(super) fn in_peace(facts: &Facts<'_>) -> Option<f64> {
    let is = |name, value| facts.setup.chosen(&SHEET, name).is(value);
    let one_view = ["joiners", "leavers", "reform"].into_iter().all(|name| is(name, "none"));
    let quiet = one_view && is("heartbeat", "0") && is("names", "1");
    facts.delay_max.filter(|_| facts.undisturbed && quiet)
}
