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

pub use clients::Lockers;
pub use measures::{LockMeasures, LockSummary};
pub use properties::LockProperties;

use std::fmt;
use std::sync::Arc;

use konklave_process::{Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::lock_table::{Command, Event};
use super::{View, ViewId};
use crate::{Algorithm, Metric, Pause, Problem, ProblemSheet, Setup, Watch, Workload};

/// The name of a lock.
pub type Name = Arc<str>;

/// How a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// Together with other shared holders.
    Shared,
}

/// A fencing token: it is higher than the tokens of all earlier grants of the lock.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Token {
    /// Grows when an operator founds the group again.
    pub generation: u32,
    /// Grows from view to view.
    pub epoch: u64,
    /// Grows within a view.
    pub count: u64,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fence {}.{}", self.epoch, self.count)?;
        match self.generation {
            0 => Ok(()),
            generation => write!(f, " of generation {generation}"),
        }
    }
}

impl Token {
    /// The token number `count` of a view.
    pub fn of(view: ViewId, count: u64) -> Self {
        Self { generation: view.generation, epoch: view.epoch, count }
    }

    /// As 20 bytes that compare like the token.
    pub fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&self.generation.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[12..].copy_from_slice(&self.count.to_be_bytes());
        bytes
    }

    /// As one number of 64 bits within a generation, where it fits: 24 bits of epoch, 40 of count.
    pub fn to_number(self) -> Option<u64> {
        (self.epoch < 1 << 24 && self.count < 1 << 40).then_some(self.epoch << 40 | self.count)
    }
}

/// The fence of a resource: it refuses holders with an older token than one it has seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FenceGate {
    highest: Token,
}

impl FenceGate {
    /// Whether a holder with `token` may pass. From now on, lower tokens may not.
    pub fn admit(&mut self, token: Token) -> bool {
        let passes = token >= self.highest;
        self.highest = self.highest.max(token);
        passes
    }
}

/// The requests of the application.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Acquire a lock.
    Acquire {
        /// The lock.
        name: Name,
        /// The mode.
        mode: Mode,
    },
    /// Release a lock, or cancel the request for it.
    Release {
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
    /// An operation on the lock table, for the session of a client.
    Operate(Command),
}

/// The indications to the application.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Indication {
    /// The application has the lock.
    Granted {
        /// The lock.
        name: Name,
        /// The mode.
        mode: Mode,
        /// The fencing token of this grant.
        token: Token,
    },
    /// The application has lost the lock, or must not rely on it.
    Lost {
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
    /// The result of an operation on the lock table.
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
