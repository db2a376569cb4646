//! Mutual exclusion: the problem. The files below solve it.
//!
//! The application asks to [`Acquire`](Request::Acquire), is told that it is
//! [`Granted`](Indication::Granted) and may be alone inside until it [`Release`](Request::Release)s.

mod clients;
mod hand_over;
mod locking;
mod measures;
mod properties;
mod sheet;

pub mod cao_singhal;
pub mod carvalho_roucairol;
pub mod central;
pub mod coterie;
pub mod lamport;
pub mod maekawa;
pub mod naimi_trehel;
pub mod neilsen_mizuno;
pub mod raymond;
pub mod ricart_agrawala;
pub mod ricart_agrawala_acknowledged;
pub mod ricart_agrawala_token;
pub mod sanders;
pub mod singhal;
pub mod suzuki_kasami;
pub mod token_ring;
pub mod voting;

pub use clients::Clients;
pub use measures::{Fairness, Measured, Measures, Moment, OpenLoad, Summary};
pub use properties::{Knowledge, Properties};
pub use sheet::{INSIDE, SHEET, WAITING};

use std::fmt;

use konklave_process::{Process, ProcessId};
use serde::{Deserialize, Serialize};

use crate::{Algorithm, Metric, Pause, Problem, ProblemSheet, Setup, Watch, Workload};

/// A request of the application.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Request {
    /// It asks to enter the critical section.
    Acquire,
    /// It leaves the critical section.
    Release,
}

/// An indication to the application.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Indication {
    /// It is in the critical section. The fence number, if the algorithm has one, tells this entry from all earlier ones.
    Granted {
        /// Grows from entry to entry, so that a resource can refuse a former holder.
        fence: Option<Fence>,
    },
}

/// The state of a process, in the terms of Ricart and Agrawala's paper.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum State {
    /// It is outside and does not want to enter.
    Released,
    /// It has asked to enter.
    Wanted,
    /// It is inside.
    Held,
}

/// A number that grows from entry to entry: first the epoch, then the count within it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Fence(pub u64, pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self(0, count) => write!(f, "fence {count}"),
            Self(epoch, count) => write!(f, "fence {epoch}.{count}"),
        }
    }
}

/// The problem of mutual exclusion.
#[derive(Clone, Copy, Debug)]
pub struct Mutex;

impl<P: Algorithm + Process<Request = Request, Indication = Indication>> Problem<P> for Mutex {
    type Application = Clients;
    type Monitor = Properties;
    type Meter = Measures;
    type Summary = Summary;

    const SHEET: ProblemSheet = SHEET;

    fn application(workload: &Workload, setup: &Setup) -> Clients {
        Clients::new(&setup.group, &workload.requests)
    }

    fn monitor(watch: &Watch, setup: &Setup) -> Properties {
        Properties::new(watch, &setup.group)
    }

    fn meter(setup: &Setup) -> Measures {
        Measures::new(setup)
    }

    fn pause(request: &Request) -> Pause {
        match request {
            Request::Acquire => Pause::Think,
            Request::Release => Pause::Hold,
        }
    }

    fn summary(meter: &Measures, monitor: &Properties, unit: f64) -> Summary {
        meter.summary(monitor, unit)
    }

    fn served(meter: &Measures) -> Vec<(ProcessId, u64)> {
        meter.served()
    }

    fn measured(meter: &Measures, metric: Metric, unit: f64) -> Option<f64> {
        meter.measured(metric, unit)
    }
}
