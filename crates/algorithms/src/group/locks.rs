//! Locks of a group: the problem that the lock table and the lifted algorithms solve.
//!
//! The application asks to [`Acquire`](Request::Acquire) a lock by its name. It holds the lock from
//! [`Granted`](Indication::Granted) until it releases it or the lock is [`Lost`](Indication::Lost).
//!
//! An excluded holder may not know yet that its lock is lost, and may still use the resource. So each
//! grant has a fencing token, which is higher than those of all earlier grants of the lock, over
//! views and generations. A resource that remembers the highest token refuses earlier holders.

mod clients;
mod measures;
mod properties;

pub use clients::{Ask, Lockers};
pub use measures::{LockMeasures, LockSummary};
pub use properties::LockProperties;

pub use super::table::{LockMode, Name};

use konklave_process::{Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::lock_table::{Event, SessionOp};
use super::{Token, View};
use crate::{Algorithm, Metric, Pause, Problem, ProblemSheet, Setup, Watch, Workload};

/// The requests of the application.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Acquire a lock.
    Acquire {
        /// The lock.
        name: Name,
        /// The mode.
        mode: LockMode,
        /// Whether the application waits while the lock is not free.
        wait: bool,
        /// Higher priorities are served first, where the algorithm has them.
        priority: i32,
    },
    /// Take over the grant with this token: the client went on while its process restarted.
    Adopt {
        /// The lock.
        name: Name,
        /// The token.
        token: Token,
    },
    /// Release a lock, or cancel the request for it.
    Release {
        /// The lock.
        name: Name,
    },
    /// Revoke a lock, whoever holds it: an operator's request.
    Revoke {
        /// The lock.
        name: Name,
    },
    /// Become a member.
    Join,
    /// Leave the group.
    Leave,
    /// Form a new view.
    Reform,
    /// Found the group again, in a new generation.
    Refound,
    /// An operation on the session of a client.
    Operate(SessionOp),
}

/// The indications to the application.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Indication {
    /// The application has the lock.
    Granted {
        /// The lock.
        name: Name,
        /// The mode.
        mode: LockMode,
        /// The fencing token of this grant.
        token: Token,
    },
    /// The application has lost the lock, or must not rely on it.
    Lost {
        /// The lock.
        name: Name,
    },
    /// The request is refused: it does not wait, or there is no grant to take over.
    Refused {
        /// The lock.
        name: Name,
    },
    /// There is a new view.
    Installed(View),
    /// The next view excludes this process.
    Excluded,
    /// This process has left the group.
    Left,
    /// No majority answers.
    Blocked,
    /// The result of an operation on a session.
    Replied(Event),
}

/// The problem of locks in a group.
#[derive(Clone, Copy, Debug)]
pub struct Locks;

impl<P: Algorithm + Process<Request = Request, Indication = Indication>> Problem<P> for Locks {
    type Application = Lockers;
    type Monitor = LockProperties;
    type Meter = LockMeasures;
    type Summary = LockSummary;

    const SHEET: ProblemSheet = super::SHEET;

    fn application(workload: &Workload, setup: &Setup) -> Lockers {
        Lockers::new(workload, setup)
    }

    fn monitor(_watch: &Watch, setup: &Setup) -> LockProperties {
        LockProperties::new(setup)
    }

    fn meter(setup: &Setup) -> LockMeasures {
        LockMeasures::new(&setup.group)
    }

    fn pause(request: &Request) -> Pause {
        match request {
            Request::Release { .. } => Pause::Hold,
            Request::Acquire { .. }
            | Request::Adopt { .. }
            | Request::Revoke { .. }
            | Request::Join
            | Request::Leave
            | Request::Reform
            | Request::Refound
            | Request::Operate(_) => Pause::Think,
        }
    }

    fn summary(meter: &LockMeasures, monitor: &LockProperties, unit: f64) -> LockSummary {
        meter.summary(monitor, unit)
    }

    fn served(meter: &LockMeasures) -> Vec<(ProcessId, u64)> {
        meter.served()
    }

    fn measured(meter: &LockMeasures, metric: Metric, unit: f64) -> Option<f64> {
        meter.measured(metric, unit)
    }
}
