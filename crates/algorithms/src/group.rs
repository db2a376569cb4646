//! Group communication: the problem. The files below solve it.
//!
//! Processes form *views*: lists of members that all members agree on. The application
//! [`Multicast`](Request::Multicast)s commands and is told each [`Delivered`](Indication::Delivered)
//! command and each [`Installed`](Indication::Installed) view in one sequence that is the same
//! everywhere: a view change is a barrier that no message crosses.

mod clients;
mod measures;
mod properties;
mod sheet;
mod view;

pub mod leader;
pub mod lifted;
pub mod lock_table;
pub mod locks;
pub mod virtual_synchrony;

pub use clients::{Clients, Plan};
pub use measures::{Measures, Summary};
pub use properties::Properties;
pub use sheet::SHEET;
pub use view::{Member, View, ViewId};

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use konklave_process::{Process, ProcessId, ProcessSet};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

use crate::{Algorithm, Assumption, Metric, Pause, Problem, ProblemSheet, Setup, Watch, Workload};

/// What a group carries: commands, parts of a state, summaries. To the group they are all alike.
pub trait Data:
    Clone + Eq + Ord + Hash + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<T> Data for T where
    T: Clone + Eq + Ord + Hash + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// Writes a map as a list of pairs: its keys are no strings.
fn as_list<K, V, S>(map: &BTreeMap<K, V>, serializer: S) -> Result<S::Ok, S::Error>
where
    K: Serialize,
    V: Serialize,
    S: Serializer,
{
    serializer.collect_seq(map)
}

/// What a group assumes: only heartbeats make it send again what was lost, and leases are as good as
/// the clocks that measure them.
fn assumed(heartbeats: bool, leases: bool) -> &'static [Assumption] {
    use Assumption::{Reliable, SteadyClocks, UniqueIds};
    match (heartbeats, leases) {
        (false, false) => &[UniqueIds, Reliable],
        (false, true) => &[UniqueIds, Reliable, SteadyClocks],
        (true, false) => &[UniqueIds],
        (true, true) => &[UniqueIds, SteadyClocks],
    }
}

/// Commands that only the application understands.
pub type Bytes = Arc<[u8]>;

/// What the application asks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Request<C> {
    /// Deliver this to everyone, in the same order everywhere.
    Multicast(C),
    /// Become a member.
    Join,
    /// Cease to be a member.
    Leave,
    /// Form a new view of those who answer.
    Reform,
    /// Form a group of one, in a new generation: an operator's last resort when a majority is lost
    /// for good.
    Refound,
    /// The answer to [`Indication::Wedged`], where the layer above gives one: what everyone shall
    /// know of us when the next view begins.
    Freeze(C),
    /// The answer to [`Indication::StateWanted`]: the state of the application after all that it was
    /// told so far, in parts.
    State(Vec<C>),
}

/// What the application is told.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Indication<C> {
    /// Our message got this number in the present view.
    Sent {
        /// Counted from 1 in each view.
        seq: u32,
    },
    /// There is no room for this one: too many wait for others to take them.
    Refused(C),
    /// A message.
    Delivered {
        /// The view it was sent and is delivered in.
        view: ViewId,
        /// Its place in the order of that view.
        position: u64,
        /// Who sent it.
        sender: ProcessId,
        /// The sender's number for it.
        seq: u32,
        /// What it says.
        command: C,
    },
    /// Nothing is sent or delivered until the next view: its content is being agreed on.
    Wedged,
    /// The next view.
    Installed {
        /// Who belongs to it, with a vote or without.
        view: View,
        /// Who is gone since the last one, and had asked for it.
        left: ProcessSet,
        /// What a majority of the last view had to say at its end, those included that do not go on.
        summaries: Vec<(Member, C)>,
    },
    /// The others formed a view without us, which we did not ask for: what we held is lost.
    Excluded,
    /// They formed a view without us, as we wished.
    Left,
    /// No majority answers. It may come back, or never.
    Blocked,
    /// Someone needs the state of the application.
    StateWanted,
    /// This is the state after all deliveries of this view before `position`.
    State {
        /// What the next delivery's place will be.
        position: u64,
        /// The parts.
        parts: Vec<C>,
    },
}

/// The problem of group communication.
#[derive(Clone, Copy, Debug)]
pub struct Group;

impl<P> Problem<P> for Group
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
