//! The data sheet of the leader of a group, and the rules that its mistake switches break.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::{Leader, Leadership};
use crate::group::assumed;
use crate::group::sheet::{HEARTBEAT, RETRY};
use crate::group::virtual_synchrony::VirtualSynchrony;
use crate::{Algorithm, Assumption, DataSheet, Guarantee, Mistake, Setup, Switch};

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
    mistakes: &[NO_DELAY, SAME_EPOCH],
    switches: &[
        Switch {
            name: "lease",
            values: &["0", "<number>"],
            what: "how long a grant binds, in T; 0: there are no leases",
        },
        HEARTBEAT,
        RETRY,
    ],
};

impl Inspect for Leader {
    fn at_rest(&self) -> bool {
        self.group.at_rest()
    }
}

impl Algorithm for Leader {
    type Problem = Leadership;
    const SHEET: DataSheet = SHEET;
    const NEEDS_MAJORITY: bool = true;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let lease = setup.chosen(&SHEET, "lease").number();
        Self {
            group: VirtualSynchrony::build(me, setup),
            leads: false,
            rounds: Vec::new(),
            round: 0,
            lapsed: false,
            lease: Fixed((lease > 0).then(|| setup.unit * lease)),
            mistake: Fixed(setup.mistake),
        }
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

    /// Whether the number of the view is part of the leader's epoch.
    pub(super) fn epochs_grow(&self) -> bool {
        !self.makes(&SAME_EPOCH)
    }
}
