//! The data sheet of lifted mutual exclusion, and the rules that a mistake changes.

use std::collections::{BTreeMap, BTreeSet};

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId, ProcessSet};

use super::any::NAMES;
use super::lease::Lease;
use super::{Inner, Lifted, Settings, Summary};
use crate::group::channel::Channels;
use crate::group::locks::Locks;
use crate::group::sheet::{HEARTBEAT, JOINERS, LEAVERS, REFORM, REJOIN, RETRY};
use crate::group::virtual_synchrony::VirtualSynchrony;
use crate::group::{Plan, assumed};
use crate::{Algorithm, Assumption, DataSheet, Guarantee, Mistake, Setup, SetupError, Switch};

pub(super) const THAW: Mistake = Mistake {
    name: "thaw",
    what: "a process takes in messages of the algorithm within after its promise",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,1,1 --set reform=0 --set retry=off",
};
pub(super) const OLD_VIEW: Mistake = Mistake {
    name: "old-view",
    what: "a process takes in messages of an earlier view in the next one",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,1,1 --set reform=0 --set retry=off --property exclusion",
};
pub(super) const OWN_SUMMARY: Mistake = Mistake {
    name: "own-summary",
    what: "each process starts the next view from its own summary, not from the decided ones",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,1,0 --set reform=0 --set retry=off",
};
pub(super) const SAME_BASE: Mistake = Mistake {
    name: "same-base",
    what: "tokens of a view do not start above those of the last view",
    breaks: "growing fences",
    caught_by: "-n 3 --requests 2,1,0 --set reform=0 --set retry=off",
};
pub(super) const NO_WAIT: Mistake = Mistake {
    name: "no-wait",
    what: "with leases, a lock that an excluded member may hold is granted at once",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 0,1,1 --break 1 --synchronous --clock 1 --time-limit 1 --set safety=lease --set lease=20 --set retry=off --set mutex=naimi-trehel --property exclusion",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "lifted",
    title: "Lifted mutual exclusion",
    idea: "Inside a view no member fails, so any classic algorithm will do; a view change stops it and \
           starts it anew from the reported holders and waiters.",
    source: "after virtual synchrony; the algorithms within have their own",
    assumes: &[Assumption::UniqueIds, Assumption::Reliable],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("generation and epoch of the view, count of entries in it"),
    mistakes: &[THAW, OLD_VIEW, OWN_SUMMARY, SAME_BASE, NO_WAIT],
    switches: &[
        Switch { name: "mutex", values: NAMES, what: "the algorithm within" },
        Switch {
            name: "safety",
            values: &["fast", "lease"],
            what: "lease: no member enters while an excluded member may be inside",
        },
        Switch { name: "lease", values: &["20", "<number>"], what: "how long a lease lasts, in T" },
        HEARTBEAT,
        RETRY,
        Switch { name: "names", values: &["1", "<number>"], what: "how many locks are used" },
        JOINERS,
        LEAVERS,
        REFORM,
        REJOIN,
    ],
};

impl<A: Inner> Inspect for Lifted<A> {
    fn at_rest(&self) -> bool {
        self.group.at_rest()
            && self.requests.is_empty()
            && !self.wedged
            && self.channels.is_in_order()
    }
}

impl<A: Inner> Algorithm for Lifted<A> {
    type Problem = Locks;
    const SHEET: DataSheet = SHEET;
    const NEEDS_MAJORITY: bool = true;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let lasts = setup.unit * setup.chosen(&SHEET, "lease").number();
        let group = VirtualSynchrony::build(me, setup).summarised();
        Self {
            group,
            wedged: false,
            locks: BTreeMap::new(),
            requests: BTreeMap::new(),
            own_summary: Summary::new(),
            channels: Channels::new(),
            later: Vec::new(),
            excluded_may_hold: false,
            accounted_for: BTreeSet::new(),
            lease: Lease::default(),
            last_view: ProcessSet::new(),
            settings: Fixed(Settings {
                setup: setup.clone(),
                lease: setup.chosen(&SHEET, "safety").is("lease").then_some(lasts),
                repeats: setup.chosen(&SHEET, "heartbeat").number() > 0,
            }),
            mistake: Fixed(setup.mistake),
        }
    }

    /// With heartbeats, a run has no end.
    fn goes_on(setup: &Setup) -> bool {
        setup.chosen(&SHEET, "heartbeat").number() > 0
    }

    /// A lease is as good as the clocks that measure it.
    fn sheet(setup: &Setup) -> DataSheet {
        let leases = setup.chosen(&SHEET, "safety").is("lease");
        DataSheet { assumes: assumed(Self::goes_on(setup), leases), ..SHEET }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["lease", "names"])?;
        Plan::check(setup)
    }
}

/// The rules that a mistake changes.
impl<A: Inner> Lifted<A> {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// Whether a wedged process takes in messages of the algorithm: never.
    pub(super) fn takes_in_while_wedged(&self) -> bool {
        self.makes(&THAW)
    }

    /// Whether a process takes in messages of earlier views: never.
    pub(super) fn takes_in_old_views(&self) -> bool {
        self.makes(&OLD_VIEW)
    }

    /// Whether the algorithm starts anew from the decided summaries, the same at every member.
    pub(super) fn starts_from_decision(&self) -> bool {
        !self.makes(&OWN_SUMMARY)
    }

    /// Whether tokens of a view are higher than those of earlier views.
    pub(super) fn tokens_grow_over_views(&self) -> bool {
        !self.makes(&SAME_BASE)
    }

    /// Whether, with leases, a lock that an excluded process may hold is granted only after a lease.
    pub(super) fn waits_for_excluded_holders(&self) -> bool {
        !self.makes(&NO_WAIT)
    }
}
