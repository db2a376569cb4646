//! Leader election: the problem. The files below solve it.
//!
//! The application tells some processes to [`Elect`](Request::Elect); in the end each process is
//! [`Leading`](Indication::Leading) or [`Following`](Indication::Following).

mod edges;
mod measures;
mod properties;
pub mod ring;
mod sheet;
mod starters;
mod ticked;

pub mod adoption;
pub mod bully;
pub mod bully_1982;
pub mod chang_roberts;
pub mod dolev_klawe_rodeh;
pub mod extinction;
pub mod firewire;
pub mod franklin;
pub mod hirschberg_sinclair;
pub mod invitation;
pub mod itai_rodeh;
pub mod quorum;
pub mod ring_list;
pub mod tree_wave;
pub mod virtual_tree;
pub mod virtual_tree_wave;

pub use measures::{Measures, Summary};
pub use properties::Properties;
pub use ring::Direction;
pub use sheet::{FOLLOWING, LEADING, SHEET};
pub use starters::Starters;

use konklave_process::{Process, ProcessId};
use serde::{Deserialize, Serialize};

use crate::{Algorithm, Metric, Pause, Problem, ProblemSheet, Setup, Watch, Workload};

/// The request of the application.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Start an election.
    Elect,
}

/// The indications to the application.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Indication {
    /// The process is a candidate. Only algorithms that elect among the initiators say so: a process that was captured
    /// before it could start is no candidate.
    Candidate,
    /// The process leads from now on, in this epoch.
    Leading {
        /// The number of the election; 0 in textbook algorithms, which have no epochs.
        epoch: u32,
    },
    /// Another process leads.
    Following {
        /// The leader; none if processes have no ids.
        leader: Option<ProcessId>,
        /// The number of the election.
        epoch: u32,
    },
    /// The process knows of no leader any more: an election has begun, or it stepped down.
    Deposed,
    /// There will be no leader: the topology has a loop.
    Loop,
}

impl Indication {
    /// The indication to `me` that `leader` won, without epochs.
    pub(crate) fn outcome(leader: ProcessId, me: ProcessId) -> Self {
        if leader == me {
            Self::Leading { epoch: 0 }
        } else {
            Self::Following { leader: Some(leader), epoch: 0 }
        }
    }
}

/// The problem of leader election.
#[derive(Clone, Copy, Debug)]
pub struct Election;

impl<P: Algorithm + Process<Request = Request, Indication = Indication>> Problem<P> for Election {
    type Application = Starters;
    type Monitor = Properties;
    type Meter = Measures;
    type Summary = Summary;

    const SHEET: ProblemSheet = SHEET;

    fn application(workload: &Workload, setup: &Setup) -> Starters {
        Starters::new(&setup.group, workload).obliged(P::start_together(setup))
    }

    fn scripted(workload: &Workload, setup: &Setup) -> Starters {
        Starters::scripted(&setup.group, workload).obliged(P::start_together(setup))
    }

    fn monitor(watch: &Watch, setup: &Setup) -> Properties {
        Properties::new(&P::sheet(setup), setup).watching(watch.stability)
    }

    fn meter(_setup: &Setup) -> Measures {
        Measures::default()
    }

    fn pause(request: &Request) -> Pause {
        match request {
            Request::Elect => Pause::Think,
        }
    }

    fn summary(meter: &Measures, monitor: &Properties, unit: f64) -> Summary {
        meter.summary(monitor, unit)
    }

    fn measured(meter: &Measures, metric: Metric, unit: f64) -> Option<f64> {
        meter.measured(metric, unit)
    }
}
