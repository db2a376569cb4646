//! The data sheet of forming, its settings, and the rules that its mistake switches break.

use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{Inspect, ProcessId};

use super::{Formation, Forming};
use crate::group::sheet::{HEARTBEAT, RETRY};
use crate::group::{Data, View};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, SetupError,
    Switch,
};

pub(super) const VOLATILE_PROMISES: &str = "volatile-promises";
const TWO_PROMISES: Mistake = Mistake {
    name: "two-promises",
    what: "a process promises itself to two proposers",
    breaks: "view agreement",
    caught_by: "",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "forming",
    title: "Forming a group",
    idea: "Founders promise themselves to one first view, and enter it once all its members have promised.",
    source: "Konklave's nodes; promises: L. Lamport, ACM TOCS 16(2), 1998 (Paxos)",
    assumes: &[Assumption::UniqueIds, Assumption::Reliable, Assumption::StableStorage],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[Cost {
        metric: Metric::Time,
        formula: "4T until all founders are in the first view",
        when: "no process fails, every process is a founder, and delays have a limit",
        bound: |f| {
            let all = f.setup.chosen(&SHEET, "founders").is("all");
            let together = all && f.setup.chosen(&SHEET, "alone").is("none");
            let t = f.delay_max.filter(|_| together && f.undisturbed);
            t.map(|t| Bound::AtMost(4.0 * t))
        },
    }],
    guarantees: &[Guarantee::ViewAgreement, Guarantee::Other("one group at a time")],
    fence: Some("generation and epoch of the view"),
    mistakes: &[TWO_PROMISES],
    switches: &[
        Switch {
            name: "founders",
            values: &["all", "<number>"],
            what: "the processes that found a group: all, or any that many",
        },
        Switch {
            name: "alone",
            values: &["none", "<number>"],
            what: "the process that founds a group of one when it starts",
        },
        Switch {
            name: "grants",
            values: &["end", "outlive"],
            what: "whether grants of a process end with it, or may be in use for a lease",
        },
        Switch {
            name: "beats",
            values: &["on", "off", "<number>"],
            what: "whether a process repeats its reports until it is in a view, or how often at most without news",
        },
        HEARTBEAT,
        RETRY,
    ],
};

/// The surroundings of a process that forms a group.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The number of founders, if it is given; otherwise there is one founder per address.
    pub founders: Option<usize>,
    /// Whether to found a group of one at the start, for others to join.
    pub alone: bool,
    /// Whether its record is on a disk.
    pub has_data_dir: bool,
    /// Whether grants of an earlier incarnation may be in use.
    pub grants_outlive: bool,
    /// The calendar time in seconds: the least generation of a group with members that have no data directory.
    pub calendar: u32,
    /// From how many numbers a process without a record draws its incarnation.
    pub draws: u32,
    /// Whether a process reports its state to processes that are not connected, and any report connects: there is no
    /// network layer that does.
    pub calls: bool,
    /// After how many reports without news to stop; 0: never.
    pub beats: u32,
    /// The times.
    pub times: Times,
}

/// The times of a process that forms a group.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The period of reports; none: the host calls [`Forming::on_beat`].
    pub beat: Option<Duration>,
    /// How long a refused proposer leaves the field to the lower id.
    pub abstain: Duration,
    /// How long half of a view waits for the other half before it dissolves.
    pub stall: Duration,
    /// How long to wait for reports of peers in a group, before founding a group of one.
    pub patience: Duration,
    /// How long grants may be in use after their holder has left its view.
    pub lease: Duration,
}

impl Settings {
    fn of(me: ProcessId, setup: &Setup) -> Self {
        let chosen = |name| setup.chosen(&SHEET, name);
        let beat = setup.unit * 5;
        Self {
            founders: chosen("founders").0.parse().ok(),
            alone: chosen("alone").0.parse() == Ok(me.0),
            has_data_dir: true,
            grants_outlive: chosen("grants").is("outlive"),
            calendar: 0,
            draws: 2,
            calls: true,
            beats: chosen("beats").number(),
            times: Times {
                beat: (!chosen("beats").is("off")).then_some(beat),
                abstain: beat * 10,
                stall: beat * 40,
                patience: beat * 4,
                lease: beat * 4,
            },
        }
    }
}

/// Without a majority, a view change waits until processes restart: that is a rest, too.
impl<C: Data> Inspect for Forming<C> {}

impl Algorithm for Forming {
    type Problem = Formation;
    const SHEET: DataSheet = SHEET;
    const NEEDS_MAJORITY: bool = true;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let members = setup.group.members();
        let mut process = Self::build(me, setup, Settings::of(me, setup), members.len());
        process.seeds = members.iter().copied().map(Some).collect();
        process
    }

    /// With heartbeats, a run has no end.
    fn goes_on(setup: &Setup) -> bool {
        setup.chosen(&SHEET, "heartbeat").number() > 0
    }

    /// Two groups of so many founders must share a process.
    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        let n = setup.group.len();
        let chosen = setup.chosen(&SHEET, "founders");
        let Ok(founders) = chosen.0.parse::<usize>() else { return Ok(()) };
        if founders > n || n >= 2 * founders {
            return Err(SetupError(format!(
                "founders={founders}: a group of {n} processes needs more than {} founders, and at most {n}",
                n / 2
            )));
        }
        Ok(())
    }
}

/// The rules that a mistake switch breaks. Without a mistake each of them holds.
impl<C: Data> Forming<C> {
    fn makes(&self, mistake: &str) -> bool {
        *self.mistake == Some(mistake)
    }

    /// Whether a promise ends when the proposer withdraws.
    pub(super) fn releases_withdrawn(&self) -> bool {
        !self.makes("keep-withdrawn")
    }

    /// Whether a promise ends when the proposer has restarted.
    pub(super) fn releases_restarted(&self) -> bool {
        !self.makes("keep-restarted")
    }

    /// Whether a process enters a view that it promised to a proposer that has restarted since.
    pub(super) fn keeps_past_promise(&self) -> bool {
        !self.makes("forget-past")
    }

    /// Whether a refused proposer leaves the field to a lower id.
    pub(super) fn yields(&self) -> bool {
        !self.makes("insist")
    }

    /// Whether a process promises itself to one proposer at a time.
    pub(super) fn promises_once(&self) -> bool {
        !self.makes(TWO_PROMISES.name)
    }

    /// Whether a process promises only once its last view is over.
    pub(super) fn heeds_last_view(&self) -> bool {
        !self.makes("promise-early")
    }

    /// Whether a first view includes this process in its present incarnation.
    pub(super) fn is_invited(&self, view: &View, me: ProcessId) -> bool {
        view.members.contains(&self.myself(me))
            || view.has_member(me) && self.makes("any-incarnation")
    }

    /// Whether a group is founded only once earlier grants are over.
    pub(super) fn waits_for_grants(&self) -> bool {
        !self.makes("early-grants")
    }

    /// Whether a first view has a generation above all that its founders know.
    pub(super) fn heeds_known_generations(&self) -> bool {
        !self.makes("own-generation")
    }

    /// Whether all founders are needed.
    pub(super) fn needs_all_founders(&self) -> bool {
        !self.makes("any-founders")
    }

    /// Whether a proposal is withdrawn when a member is gone or in a group.
    pub(super) fn withdraws(&self) -> bool {
        !self.makes("keep-proposal")
    }

    /// Whether all members promise before the first of them enters.
    pub(super) fn needs_all_promises(&self) -> bool {
        !self.makes("some-promises")
    }

    /// Whether this process enters a first view: only one that it has promised.
    pub(super) fn may_enter(&self, view: &View, me: ProcessId) -> bool {
        let any = self.makes("enter-any") && !self.is_inside();
        self.promises.covers(view) || any && view.members.contains(&self.myself(me))
    }

    /// The part of a proposal's number that tells incarnations apart.
    pub(super) fn numbering(&self) -> u32 {
        if self.makes("repeat-numbers") { 0 } else { self.group.incarnation() }
    }

    /// Whether a view that can decide nothing is left.
    pub(super) fn dissolves(&self) -> bool {
        !self.makes("never-dissolve")
    }

    /// How many members are left for a view to be over.
    pub(super) fn is_over(&self, left: usize, all: usize) -> bool {
        2 * left < all || left < all && self.makes("dissolve-early")
    }

    /// Whether a half waits for a member that may have gone on elsewhere.
    pub(super) fn trusts_half(&self, unsure: bool) -> bool {
        !unsure || self.makes("trust-half")
    }

    /// Whether a join request of a process that has been in a later generation proves nothing.
    pub(super) fn heeds_later_generations(&self) -> bool {
        !self.makes("replaced-view")
    }

    /// Whether members of the last view get time to report, before this process founds a group of one.
    pub(super) fn gives_time_to_report(&self) -> bool {
        !self.makes("alone-at-once")
    }
}
