//! The data sheet of forming, its settings, and the rules that its mistake switches break.

use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{Inspect, ProcessId};

use super::{Formation, Forming};
use crate::group::Data;
use crate::group::sheet::{HEARTBEAT, RETRY};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, SetupError,
    Switch,
};

pub(super) const TWO_PROMISES: Mistake = Mistake {
    name: "two-promises",
    what: "a process promises itself to two proposers",
    breaks: "view agreement",
    caught_by: "-n 3 --set retry=off --set founders=2 --synchronous",
};
pub(super) const ANY_FOUNDERS: Mistake = Mistake {
    name: "any-founders",
    what: "a process founds a group with the processes that are there, however few",
    breaks: "view agreement",
    caught_by: "-n 3 --set retry=off --set founders=2 --synchronous",
};
pub(super) const SOME_PROMISES: Mistake = Mistake {
    name: "some-promises",
    what: "a proposer enters its view before all its members have promised",
    breaks: "view agreement",
    caught_by: "-n 3 --set retry=off --set founders=2 --synchronous",
};
pub(super) const VOLATILE_PROMISES: Mistake = Mistake {
    name: "volatile-promises",
    what: "a promise is not recorded: a restarted process promises itself again, and its view has gone on",
    breaks: "view agreement",
    caught_by: "",
};
pub(super) const PROMISE_EARLY: Mistake = Mistake {
    name: "promise-early",
    what: "a restarted process promises itself although its last view may go on",
    breaks: "view agreement",
    caught_by: "",
};
pub(super) const OWN_GENERATION: Mistake = Mistake {
    name: "own-generation",
    what: "a first view has a generation above its proposer's alone",
    breaks: "deadlock",
    caught_by: "",
};
pub(super) const EARLY_GRANTS: Mistake = Mistake {
    name: "early-grants",
    what: "a group is founded while grants of an earlier view may be in use",
    breaks: "grants before founding",
    caught_by: "-n 2 --set retry=off --set beats=2 --crash 2 --restart 2 --synchronous",
};
pub(super) const KEEP_PROPOSAL: Mistake = Mistake {
    name: "keep-proposal",
    what: "a proposal stays although a member has restarted",
    breaks: "deadlock",
    caught_by: "-n 2 --set retry=off --set beats=2 --crash 2 --restart 2 --synchronous",
};
pub(super) const REPEAT_NUMBERS: Mistake = Mistake {
    name: "repeat-numbers",
    what: "a restarted proposer numbers its proposals from 1 again: a promise to its earlier incarnation counts",
    breaks: "deadlock",
    caught_by: "-n 2 --set retry=off --set beats=2 --crash 2 --restart 2 --synchronous",
};
pub(super) const NEVER_DISSOLVE: Mistake = Mistake {
    name: "never-dissolve",
    what: "a process stays in a view of which more than half has restarted",
    breaks: "deadlock",
    caught_by: "-n 2 --set retry=off --set beats=2 --crash 2 --restart 2 --synchronous",
};
pub(super) const KEEP_WITHDRAWN: Mistake = Mistake {
    name: "keep-withdrawn",
    what: "a promise does not end when the proposer withdraws",
    breaks: "deadlock",
    caught_by: "",
};
pub(super) const KEEP_RESTARTED: Mistake = Mistake {
    name: "keep-restarted",
    what: "a promise does not end when the proposer restarts",
    breaks: "deadlock",
    caught_by: "",
};
pub(super) const INSIST: Mistake = Mistake {
    name: "insist",
    what: "a proposer keeps its proposal although a member has promised itself to a lower id",
    breaks: "deadlock",
    caught_by: "",
};
pub(super) const ALONE_AT_ONCE: Mistake = Mistake {
    name: "alone-at-once",
    what: "a process founds a group of one without waiting for reports of a group that it was in",
    breaks: "view progress",
    caught_by: "-n 2 --set retry=off --set beats=2 --set alone=0 --crash 1 --restart 1 --synchronous",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "forming",
    title: "Forming a group",
    idea: "Founders promise themselves to one first view, and enter it once all its members have promised.",
    source: "Konklave's nodes; promises: L. Lamport, ACM TOCS 16(2), 1998 (Paxos)",
    assumes: &[
        Assumption::UniqueIds,
        Assumption::Reliable,
        Assumption::Fifo,
        Assumption::StableStorage,
    ],
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
    mistakes: &[
        TWO_PROMISES,
        ANY_FOUNDERS,
        SOME_PROMISES,
        VOLATILE_PROMISES,
        PROMISE_EARLY,
        OWN_GENERATION,
        EARLY_GRANTS,
        KEEP_PROPOSAL,
        REPEAT_NUMBERS,
        NEVER_DISSOLVE,
        KEEP_WITHDRAWN,
        KEEP_RESTARTED,
        INSIST,
        ALONE_AT_ONCE,
    ],
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
        setup.need(&SHEET, 1, &["beats"])?;
        if let Ok(id) = setup.chosen(&SHEET, "alone").0.parse()
            && !setup.group.contains(ProcessId(id))
        {
            return Err(SetupError(format!("alone: p{id} is no member")));
        }
        let n = setup.group.len();
        match setup.chosen(&SHEET, "founders").0.parse::<usize>() {
            Ok(founders) if founders > n || n >= 2 * founders => Err(SetupError(format!(
                "founders={founders}: a group of {n} needs more than {} founders, and at most {n}",
                n / 2
            ))),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// The rules that a mistake switch breaks. Without a mistake each of them holds.
impl<C: Data> Forming<C> {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// Whether a promise ends when the proposer withdraws.
    pub(super) fn releases_withdrawn(&self) -> bool {
        !self.makes(&KEEP_WITHDRAWN)
    }

    /// Whether a promise ends when the proposer has restarted.
    pub(super) fn releases_restarted(&self) -> bool {
        !self.makes(&KEEP_RESTARTED)
    }

    /// Whether a refused proposer leaves the field to a lower id.
    pub(super) fn yields(&self) -> bool {
        !self.makes(&INSIST)
    }

    /// Whether a process promises itself to one proposer at a time.
    pub(super) fn promises_once(&self) -> bool {
        !self.makes(&TWO_PROMISES)
    }

    /// Whether a process promises only once its last view is over.
    pub(super) fn heeds_last_view(&self) -> bool {
        !self.makes(&PROMISE_EARLY)
    }

    /// Whether a group is founded only once earlier grants are over.
    pub(super) fn waits_for_grants(&self) -> bool {
        !self.makes(&EARLY_GRANTS)
    }

    /// Whether a first view has a generation above all that its founders know.
    pub(super) fn heeds_known_generations(&self) -> bool {
        !self.makes(&OWN_GENERATION)
    }

    /// Whether all founders are needed.
    pub(super) fn needs_all_founders(&self) -> bool {
        !self.makes(&ANY_FOUNDERS)
    }

    /// Whether a proposal is withdrawn when a member is gone or in a group.
    pub(super) fn withdraws(&self) -> bool {
        !self.makes(&KEEP_PROPOSAL)
    }

    /// Whether all members promise before the first of them enters.
    pub(super) fn needs_all_promises(&self) -> bool {
        !self.makes(&SOME_PROMISES)
    }

    /// The part of a proposal's number that tells incarnations apart.
    pub(super) fn numbering(&self) -> u32 {
        if self.makes(&REPEAT_NUMBERS) { 0 } else { self.group.incarnation() }
    }

    /// Whether a view that can decide nothing is left.
    pub(super) fn dissolves(&self) -> bool {
        !self.makes(&NEVER_DISSOLVE)
    }

    /// Whether members of the last view get time to report, before this process founds a group of one.
    pub(super) fn gives_time_to_report(&self) -> bool {
        !self.makes(&ALONE_AT_ONCE)
    }
}
