//! Multicast to a group: the problem. The files below solve it.
//!
//! The application asks to [`Multicast`](Request::Multicast) and every member is told what was
//! [`Delivered`](Indication::Delivered) — reliably, or in an order, as far as the algorithm goes.

mod clients;
mod few;
mod measures;
mod numbers;
mod properties;
mod sheet;
mod table;
mod window;

pub mod ack;
pub mod best_effort;
pub mod causal;
pub mod fifo;
pub mod isis;
pub mod lamport_order;
pub mod nack;
pub mod sequencer;
pub mod srm;
pub mod token_order;

pub use clients::Clients;
pub use measures::{Measures, Summary};
pub use numbers::Numbers;
pub use properties::Properties;
pub use sheet::SHEET;

use std::collections::BTreeMap;
use std::fmt;

use konklave_process::{Process, ProcessId};
use serde::{Deserialize, Serialize, Serializer};

use crate::{Algorithm, Metric, Pause, Problem, ProblemSheet, Setup, Watch, Workload};

/// What the application asks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Everyone shall have this: the number of the message, counted from 1 at each member.
    Multicast(u32),
}

/// The name of a message: whose it is, and which of its messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Unit {
    /// Who multicast it.
    pub from: ProcessId,
    /// Which of its messages, counted from 1.
    pub number: u32,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {} of {}", self.number, self.from)
    }
}

/// What the application is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Indication {
    /// Here is a message.
    Delivered(Unit),
    /// This message will never come: nobody has it any more. A hole that is told is no silent one.
    Gone(Unit),
    /// This member has not answered for so long that we go on without it.
    Suspected(ProcessId),
    /// What measures and judges need, and no application.
    Note(Note),
}

/// What happens below the application.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Note {
    /// A message is noticed to be missing.
    Missing(Unit),
    /// Someone asks for a message again.
    Asked(Unit),
    /// Someone sends it again.
    Repaired(Unit),
    /// A repair arrived where it was not needed.
    Unwanted(Unit),
    /// The message and its place in the order are here: it would survive if all others crashed.
    Held(Unit),
}

/// The problem of multicast.
#[derive(Clone, Copy, Debug)]
pub struct Multicast;

impl<P: Algorithm + Process<Request = Request, Indication = Indication>> Problem<P> for Multicast {
    type Application = Clients;
    type Monitor = Properties;
    type Meter = Measures;
    type Summary = Summary;

    const SHEET: ProblemSheet = SHEET;

    fn application(workload: &Workload, setup: &Setup) -> Clients {
        Clients::new(&setup.group, &workload.requests)
    }

    fn monitor(watch: &Watch, setup: &Setup) -> Properties {
        Properties::new(watch, &P::sheet(setup), &setup.group)
    }

    fn meter(setup: &Setup) -> Measures {
        Measures::new(setup)
    }

    fn pause(request: &Request) -> Pause {
        let Request::Multicast(_) = request;
        Pause::Think
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

/// Writes a map entry by entry: not every format has keys that are more than a word.
fn pairs<K: Serialize, V: Serialize, S: Serializer>(
    map: &BTreeMap<K, V>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(map)
}
