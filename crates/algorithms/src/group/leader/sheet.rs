//! The data sheet of the leader of a group, and the rules that its mistake switches break.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::inside::Inside;
use super::{Leader, Leadership};
use crate::group::assumed;
use crate::group::sheet::{HEARTBEAT, RETRY};
use crate::group::virtual_synchrony::VirtualSynchrony;
use crate::{Algorithm, Assumption, DataSheet, Guarantee, Mistake, Setup, SetupError, Switch};

pub(super) const NO_DELAY: Mistake = Mistake {
    name: "no-delay",
    what: "a member that has granted a lease follows another candidate at once",
    breaks: "one leader at a time",
    caught_by: "-n 3 --requests 0,0,0 --break 1 --synchronous --clock 1 --time-limit 1 --set lease=20 --set retry=off --property unique",
};
pub(super) const SAME_EPOCH: Mistake = Mistake {
    name: "same-epoch",
    what: "the leader's number is the generation alone: a later leader has the same",
    breaks: "one leader per epoch",
    caught_by: "-n 3 --crash 1 --set retry=off",
};
pub(super) const OLD_ELECTION: Mistake = Mistake {
    name: "old-election",
    what: "with an election inside the view, a process takes in messages of the last view's election",
    breaks: "expected inputs",
    caught_by: "-n 3 --requests 1,0,0 --set retry=off --set election=dolev-klawe-rodeh",
};

/// The value of the switch `election` for a leader without an election.
const SENIORITY: &str = "seniority";

const SHEET: DataSheet = DataSheet {
    name: "leader",
    title: "Leader of a group",
    idea: "The most senior member of the present view leads.",
    source: "K. Birman, Isis (coordinator); leases: C. Gray, D. Cheriton, SOSP 1989",
    assumes: &[Assumption::UniqueIds, Assumption::Reliable],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[],
    guarantees: &[
        Guarantee::UniquePerEpoch,
        Guarantee::GrowingEpochs,
        Guarantee::Agreement,
        Guarantee::LiveLeader,
    ],
    fence: Some("generation and epoch of the view"),
    mistakes: &[NO_DELAY, SAME_EPOCH, OLD_ELECTION],
    switches: &[
        Switch {
            name: "lease",
            values: &["0", "<number>"],
            what: "how long a grant binds, in T; 0: there are no leases",
        },
        Switch {
            name: "election",
            values: &[SENIORITY, "franklin", "dolev-klawe-rodeh", "tree-wave", "adoption"],
            what: "how a view gets its leader: the most senior member, or an election inside the view, which starts \
                   anew with each view",
        },
        HEARTBEAT,
        RETRY,
    ],
};

impl Inspect for Leader {
    fn at_rest(&self) -> bool {
        self.group.at_rest() && self.inside.as_ref().is_none_or(|inside| inside.at_rest())
    }
}

impl Algorithm for Leader {
    type Problem = Leadership;
    const SHEET: DataSheet = SHEET;
    const NEEDS_MAJORITY: bool = true;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let lease = setup.chosen(&SHEET, "lease").number();
        let election = setup.chosen(&SHEET, "election").0;
        let repeats = setup.chosen(&SHEET, "heartbeat").number() > 0;
        let inside = || Box::new(Inside::new(election, repeats, setup));
        Self {
            group: VirtualSynchrony::build(me, setup),
            leads: false,
            rounds: Vec::new(),
            round: 0,
            lapsed: false,
            inside: (election != SENIORITY).then(inside),
            lease: Fixed((lease > 0).then(|| setup.unit * lease)),
            mistake: Fixed(setup.mistake),
        }
    }

    /// A lease binds its granters to the most senior member, which orders the view changes.
    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        let (lease, election) = (setup.chosen(&SHEET, "lease"), setup.chosen(&SHEET, "election").0);
        if lease.number() > 0 && election != SENIORITY {
            return Err(SetupError(format!(
                "lease={} needs election={SENIORITY}, not {election}: only the most senior member leads with a lease",
                lease.0
            )));
        }
        Ok(())
    }

    /// With leases no two processes lead at a time.
    fn sheet(setup: &Setup) -> DataSheet {
        let leases = setup.chosen(&SHEET, "lease").number() > 0;
        let assumes = assumed(setup.chosen(&SHEET, "heartbeat").number() > 0, leases);
        if !leases {
            return DataSheet { assumes, ..SHEET };
        }
        DataSheet {
            assumes,
            guarantees: &[
                Guarantee::UniqueLeader,
                Guarantee::UniquePerEpoch,
                Guarantee::GrowingEpochs,
                Guarantee::Agreement,
                Guarantee::LiveLeader,
            ],
            ..SHEET
        }
    }
}

/// The rules that a mistake switch breaks. Without a mistake each of them holds.
impl Leader {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// Whether a granted lease binds the member that granted it.
    pub(super) fn grants_bind(&self) -> bool {
        !self.makes(&NO_DELAY)
    }

    /// Whether a process takes in messages of an earlier view's election: never.
    pub(super) fn takes_in_old_views(&self) -> bool {
        self.makes(&OLD_ELECTION)
    }

    /// Whether the number of the view is part of the leader's epoch.
    pub(super) fn epochs_grow(&self) -> bool {
        !self.makes(&SAME_EPOCH)
    }
}
