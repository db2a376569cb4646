//! Group communication: the problem. The files below solve it.
//!
//! Processes form *views*: lists of members on which all members agree. The application
//! [`Multicast`](Request::Multicast)s commands. It receives [`Delivered`](Indication::Delivered)
//! commands and [`Installed`](Indication::Installed) views in one sequence, the same at every member.
//! A view change is a barrier that no message crosses.

mod channel;
mod clients;
mod measures;
mod properties;
mod sheet;
mod view;
mod within;

pub mod forming;
pub mod leader;
pub mod lifted;
pub mod lock_table;
pub mod locks;
pub mod table;
pub mod token;
pub mod virtual_synchrony;

pub use clients::{Clients, Plan};
pub use measures::{Measures, Summary};
pub use properties::Properties;
pub use sheet::SHEET;
pub use token::Token;
pub use view::{Member, View, ViewId};

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use konklave_process::{Process, ProcessId, ProcessSet};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

use crate::{Algorithm, Assumption, Metric, Pause, Problem, ProblemSheet, Setup, Watch, Workload};

/// The payload of a group: commands, parts of a state, summaries. The group does not look into it.
pub trait Data:
    Clone + Eq + Ord + Hash + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<T> Data for T where
    T: Clone + Eq + Ord + Hash + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// Serialises a map as a list of pairs, because its keys are not strings.
fn as_list<K, V, S>(map: &BTreeMap<K, V>, serializer: S) -> Result<S::Ok, S::Error>
where
    K: Serialize,
    V: Serialize,
    S: Serializer,
{
    serializer.collect_seq(map)
}

/// The assumptions of a group. It sends lost messages again only with heartbeats. A lease is only as good as
/// the clocks that measure it.
fn assumed(heartbeats: bool, leases: bool) -> &'static [Assumption] {
    use Assumption::{Reliable, SteadyClocks, UniqueIds};
    match (heartbeats, leases) {
        (false, false) => &[UniqueIds, Reliable],
        (false, true) => &[UniqueIds, Reliable, SteadyClocks],
        (true, false) => &[UniqueIds],
        (true, true) => &[UniqueIds, SteadyClocks],
    }
}

/// A command that only the application understands.
pub type Bytes = Arc<[u8]>;

/// The requests of the application.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Request<C> {
    /// Deliver this command to every member, in the same order everywhere.
    Multicast(C),
    /// Become a member.
    Join,
    /// Leave the group.
    Leave,
    /// Form a new view of the processes that answer.
    Reform,
    /// Form a group of one, in a new generation: an operator's last resort when a majority is lost
    /// for good.
    Refound,
    /// The answer to [`Indication::Wedged`], if the layer above gives one: its summary, which all
    /// processes of the next view receive.
    Freeze(C),
    /// The answer to [`Indication::StateWanted`]: the state of the application after all deliveries
    /// so far, in parts.
    State(Vec<C>),
}

/// The indications to the application.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Indication<C> {
    /// The application's message has this number in the present view.
    Sent {
        /// Counted from 1 in each view.
        seq: u32,
    },
    /// The command is refused: this process is outside, or too many commands wait to be sent.
    Refused(C),
    /// A message.
    Delivered {
        /// The view it was sent and is delivered in.
        view: ViewId,
        /// Its place in the order of that view.
        position: u64,
        /// The member that multicast it.
        sender: ProcessId,
        /// The sender's number for it.
        seq: u32,
        /// The command.
        command: C,
    },
    /// The view is ending: nothing is sent or delivered until the next view.
    Wedged,
    /// The next view begins.
    Installed {
        /// The view.
        view: View,
        /// The processes of the last view that left at their own request.
        left: ProcessSet,
        /// The summaries of the processes that promised, including those that do not go on.
        summaries: Vec<(Member, C)>,
    },
    /// The next view excludes this process, which did not ask to leave: its locks are lost.
    Excluded,
    /// The next view excludes this process, which asked to leave.
    Left,
    /// No majority answers. A majority may come back, or not.
    Blocked,
    /// An observer needs the state of the application.
    StateWanted,
    /// This is the state after all deliveries of this view before `position`.
    State {
        /// The place of the next delivery.
        position: u64,
        /// The parts.
        parts: Vec<C>,
    },
}

/// The problem of group communication.
#[derive(Clone, Copy, Debug)]
pub struct GroupCommunication;

impl<P> Problem<P> for GroupCommunication
where
    P: Algorithm + Process<Request = Request<Bytes>, Indication = Indication<Bytes>>,
{
    type Application = Clients;
    type Monitor = Properties;
    type Meter = Measures;
    type Summary = Summary;

    const SHEET: ProblemSheet = SHEET;

    fn application(workload: &Workload, setup: &Setup) -> Clients {
        Clients::new(workload, setup)
    }

    fn monitor(_watch: &Watch, setup: &Setup) -> Properties {
        Properties::new(setup)
    }

    fn meter(setup: &Setup) -> Measures {
        Measures::new(&setup.group)
    }

    fn pause(_request: &Request<Bytes>) -> Pause {
        Pause::Think
    }

    fn summary(meter: &Measures, _monitor: &Properties, unit: f64) -> Summary {
        meter.summary(unit)
    }

    fn served(meter: &Measures) -> Vec<(ProcessId, u64)> {
        meter.served()
    }

    fn measured(meter: &Measures, metric: Metric, unit: f64) -> Option<f64> {
        meter.measured(metric, unit)
    }
}

#[cfg(test)]
mod tests;
