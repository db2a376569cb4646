//! Multicast to a group: the problem. The files below solve it.
//!
//! The application [multicasts](Request::Multicast) a message, and every member
//! [delivers](Indication::Delivered) it: reliably, or in an order, as the algorithm guarantees.

mod clients;
mod measures;
mod number_map;
mod numbers;
mod properties;
mod sender_map;
mod sheet;
mod unit_map;

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

/// The requests of the application.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Send the message of this number to every member. Each member numbers its messages from 1.
    Multicast(u32),
}

/// The name of a message: its sender, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Unit {
    /// The member that multicast it.
    pub from: ProcessId,
    /// Its number among the sender's messages, from 1.
    pub number: u32,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {} of {}", self.number, self.from)
    }
}

/// The indications to the application.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Indication {
    /// A message is delivered.
    Delivered(Unit),
    /// This message will never be delivered: no process has it any more.
    Gone(Unit),
    /// This member has not answered for too long: the sender goes on without it.
    Suspected(ProcessId),
    /// An event for measures and monitors only.
    Note(Note),
}

/// An event below the application.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Note {
    /// A member notices that this message is missing.
    Missing(Unit),
    /// A member asks for this message again.
    Asked(Unit),
    /// A member sends this message again.
    Repaired(Unit),
    /// This message arrived at a member that already had it.
    Unwanted(Unit),
    /// This member holds the message and its place in the order: both survive a crash of all others.
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

/// Serialises a map as a list of pairs, because its keys are not strings.
fn pairs<K: Serialize, V: Serialize, S: Serializer>(
    map: &BTreeMap<K, V>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(map)
}
