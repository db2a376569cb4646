//! The data sheet of virtual synchrony, its settings, and the rules that its mistake switches break.

use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{Inspect, ProcessId};

use super::VirtualSynchrony;
use crate::group::sheet::{HEARTBEAT, JOINERS, LEAVERS, REFORM, REJOIN, RETRY};
use crate::group::{Data, GroupCommunication, Plan, assumed};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

pub(super) const KEEP_DELIVERING: Mistake = Mistake {
    name: "keep-delivering",
    what: "a process that has promised goes on taking in and delivering messages",
    breaks: "uniform agreement",
    caught_by: "-n 3 --requests 1,0,0 --set reform=2 --set retry=off",
};
pub(super) const KEEP_ACKNOWLEDGING: Mistake = Mistake {
    name: "keep-acknowledging",
    what: "a process that has promised goes on acknowledging messages (rule Q4)",
    breaks: "uniform agreement",
    caught_by: "-n 3 --requests 1,0,0 --set reform=2 --set retry=off",
};
pub(super) const NO_MAJORITY: Mistake = Mistake {
    name: "no-majority",
    what: "any set of members may decide: two parts of a view form two next views",
    breaks: "view agreement",
    caught_by: "-n 3 --requests 0,0,0 --set reform=0,2 --set retry=off",
};
pub(super) const NON_PROMISERS: Mistake = Mistake {
    name: "non-promisers",
    what: "the next view may contain members that did not promise (rule Q2)",
    breaks: "self-delivery",
    caught_by: "-n 3 --requests 0,0,1 --set reform=0 --set retry=off",
};
pub(super) const TWO_PHASES: Mistake = Mistake {
    name: "two-phases",
    what: "the candidate installs after the promises, without having its proposal accepted",
    breaks: "view agreement",
    caught_by: "-n 3 --requests 0,0,0 --set reform=0,2 --set retry=off",
};
pub(super) const IGNORE_ACCEPTED: Mistake = Mistake {
    name: "ignore-accepted",
    what: "a candidate proposes its own although a promise reports an accepted proposal (rule Q1; \
           derecho#126)",
    breaks: "view agreement",
    caught_by: "-n 3 --requests 0,0,0 --set reform=0,2 --set retry=off",
};
pub(super) const AGREED: Mistake = Mistake {
    name: "agreed-delivery",
    what: "a message is delivered once it has a place, although a majority may lack it",
    breaks: "uniform agreement",
    caught_by: "-n 3 --requests 1,0,0 --crash 1 --set retry=off",
};
pub(super) const TWO_HALVES: Mistake = Mistake {
    name: "two-halves",
    what: "half of a view decides once all others have restarted, although the half with the most \
           senior member may have decided alone before (tie-break)",
    breaks: "view agreement",
    caught_by: "-n 2 --requests 0,0 --set tie-break=on --set reform=0 --set rejoin=on --set retry=off \
                --crash 1 --restart 1 --no-fifo --synchronous --early 1 --property views",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "virtual-synchrony",
    title: "Virtual synchrony",
    idea: "The members of a view agree, in one consensus, on the next view and on the messages \
           before it.",
    source: "K. Birman, T. Joseph, SOSP 1987; X. Défago, A. Schiper, P. Urbán, ACM CSUR 36(4), 2004; \
             lecture \"Übereinstimmung und Koordination\", part \"Zuverlässige Gruppenkommunikation\"",
    assumes: &[Assumption::UniqueIds, Assumption::Reliable],
    topologies: &[Shape::Complete],
    winner: None,
    // The algorithm assumes no fault away; so each formula has to exclude faults itself.
    costs: &[
        Cost {
            metric: Metric::Time,
            formula: "4T from the first stop to the next view",
            when: "one member asks for a new view, no process fails, joins or leaves, and delays have a limit",
            bound: |f| {
                let reform = f.setup.chosen(&SHEET, "reform");
                let one_asks = !reform.is("none") && reform.0.parse::<u32>().is_ok();
                let t = f.delay_max.filter(|_| one_asks && in_peace(f));
                t.map(|t| Bound::AtMost(4.0 * t))
            },
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "3T from sending to delivery, agreed 2T",
            when: "the view stays as it is, and delays have a limit",
            bound: |f| {
                let agreed = f.setup.chosen(&SHEET, "delivery").is("agreed");
                let hops = if agreed { 2.0 } else { 3.0 };
                f.delay_max.filter(|_| one_view(f)).map(|t| Bound::AtMost(hops * t))
            },
        },
        Cost {
            metric: Metric::Messages,
            formula: "n + (n − 1)² for each message, one less for the leader's",
            when: "the view stays as it is",
            bound: |f| {
                let most = f.n() + (f.n() - 1.0).powi(2);
                one_view(f).then(|| Bound::Between(f.entries() * (most - 1.0), f.entries() * most))
            },
        },
    ],
    guarantees: &[
        Guarantee::ViewAgreement,
        Guarantee::VirtualSynchrony,
        Guarantee::TotalOrder,
        Guarantee::UniformAgreement,
        Guarantee::SelfDelivery,
    ],
    fence: Some("generation and epoch of the view, place in its order"),
    mistakes: &[
        KEEP_DELIVERING,
        KEEP_ACKNOWLEDGING,
        NO_MAJORITY,
        NON_PROMISERS,
        TWO_PHASES,
        IGNORE_ACCEPTED,
        AGREED,
        TWO_HALVES,
    ],
    switches: &[
        Switch {
            name: "delivery",
            values: &["uniform", "agreed"],
            what: "when a message is delivered: once a majority has it, or once it has a place",
        },
        HEARTBEAT,
        Switch {
            name: "misses",
            values: &["4", "<number>"],
            what: "silent periods until suspicion",
        },
        RETRY,
        Switch {
            name: "window",
            values: &["64", "<number>"],
            what: "how many messages of one member may be under way",
        },
        Switch {
            name: "tie-break",
            values: &["off", "on"],
            what: "whether half of a view decides if its most senior member is among them",
        },
        Switch {
            name: "transfer",
            values: &["blocking", "streaming"],
            what: "whether deliveries wait while the application gives its state",
        },
        JOINERS,
        LEAVERS,
        REFORM,
        REJOIN,
    ],
};

/// Whether no process fails, joins or leaves, and there are no heartbeats.
fn in_peace(facts: &Facts<'_>) -> bool {
    let is = |name, value| facts.setup.chosen(&SHEET, name).is(value);
    facts.undisturbed && is("joiners", "none") && is("leavers", "none") && is("heartbeat", "0")
}

/// Whether the first view is also the last.
fn one_view(facts: &Facts<'_>) -> bool {
    in_peace(facts) && facts.setup.chosen(&SHEET, "reform").is("none")
}

/// The chosen switches, as the algorithm uses them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) unit: Duration,
    pub(super) agreed: bool,
    /// The period; none without heartbeats.
    pub(super) heartbeat: Option<Duration>,
    pub(super) misses: u32,
    pub(super) retry: bool,
    pub(super) window: u32,
    pub(super) tie_break: bool,
    pub(super) streaming: bool,
}

impl Settings {
    pub(super) fn of(setup: &Setup) -> Self {
        let chosen = |name| setup.chosen(&SHEET, name);
        let period = chosen("heartbeat").number();
        Self {
            unit: setup.unit,
            agreed: chosen("delivery").is("agreed"),
            heartbeat: (period > 0).then(|| setup.unit * period),
            misses: chosen("misses").number().max(1),
            retry: chosen("retry").is("on"),
            window: chosen("window").number().max(1),
            tie_break: chosen("tie-break").is("on"),
            streaming: chosen("transfer").is("streaming"),
        }
    }
}

/// Whether a group can start with these choices.
pub(super) fn check_setup(setup: &Setup) -> Result<(), SetupError> {
    setup.need(&SHEET, 1, &["misses", "window"])?;
    Plan::check(setup)
}

impl<C: Data> Inspect for VirtualSynchrony<C> {
    fn at_rest(&self) -> bool {
        !self.change.wedged
            && self.later.is_empty()
            && self.waiting.is_empty()
            && self.ordering.delivered == self.ordering.end()
            && self.ordering.unplaced.is_empty()
    }
}

impl Algorithm for VirtualSynchrony {
    type Problem = GroupCommunication;
    const SHEET: DataSheet = SHEET;
    const NEEDS_MAJORITY: bool = true;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self::build(me, setup)
    }

    /// With heartbeats, a run has no end.
    fn goes_on(setup: &Setup) -> bool {
        setup.chosen(&SHEET, "heartbeat").number() > 0
    }

    fn sheet(setup: &Setup) -> DataSheet {
        DataSheet { assumes: assumed(Self::goes_on(setup), false), ..SHEET }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        check_setup(setup)
    }
}

/// The rules that a mistake switch breaks. Without a mistake each of them holds.
impl<C: Data> VirtualSynchrony<C> {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// Whether this process takes in messages: not while it is wedged.
    pub(super) fn may_take_in(&self) -> bool {
        !self.change.wedged || self.makes(&KEEP_DELIVERING) || self.makes(&KEEP_ACKNOWLEDGING)
    }

    /// Whether this process delivers messages: not while it is wedged.
    pub(super) fn may_deliver(&self) -> bool {
        !self.change.wedged || self.makes(&KEEP_DELIVERING)
    }

    /// Q4: whether this process acknowledges messages: not while it is wedged.
    pub(super) fn may_acknowledge(&self) -> bool {
        !self.change.wedged || self.makes(&KEEP_ACKNOWLEDGING)
    }

    /// Whether a decision needs a majority.
    pub(super) fn requires_majority(&self) -> bool {
        !self.makes(&NO_MAJORITY)
    }

    /// Whether half of a view may decide after all others have restarted: only without the tie-break.
    pub(super) fn surviving_half_may_decide(&self) -> bool {
        !self.settings.tie_break || self.makes(&TWO_HALVES)
    }

    /// Whether a uniform delivery waits until a majority has the message.
    pub(super) fn waits_for_majority(&self) -> bool {
        !self.makes(&AGREED)
    }

    /// Q1: whether a candidate adopts an accepted proposal from its promises.
    pub(super) fn adopts_accepted(&self) -> bool {
        !self.makes(&IGNORE_ACCEPTED)
    }

    /// Q2: whether a process that did not promise may belong to the next view.
    pub(super) fn admits_without_promise(&self, id: ProcessId) -> bool {
        self.makes(&NON_PROMISERS) && !self.seems_gone(id)
    }

    /// Whether a candidate has its proposal accepted before it is decided.
    pub(super) fn asks_to_accept(&self) -> bool {
        !self.makes(&TWO_PHASES)
    }
}
