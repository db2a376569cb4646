//! The contract: a [`Process`] reacts to inputs, a [`Host`] carries out its effects.
//!
//! Every algorithm is one value that implements [`Process`]. It has no clock, no socket, no randomness and no
//! log of its own, so the simulator, the checker and the network run the same code:
//!
//! ```
//! use konklave_process::{Context, Group, Host, Effect, NoRecord, NoTimer, Process, ProcessId};
//!
//! /// Answers every question with "yes".
//! #[derive(Clone, PartialEq, Eq, Hash, Debug)]
//! struct Yes;
//!
//! impl Process for Yes {
//!     type Message = &'static str;
//!     type Timer = NoTimer;
//!     type Request = ProcessId;
//!     type Indication = &'static str;
//!     type Record = NoRecord;
//!
//!     fn on_request(&mut self, whom: ProcessId, ctx: &mut Context<'_, Self>) {
//!         ctx.send(whom, "well?");
//!     }
//!     fn on_message(&mut self, from: ProcessId, said: &'static str, ctx: &mut Context<'_, Self>) {
//!         match said {
//!             "well?" => ctx.send(from, "yes"),
//!             answer => ctx.indicate(answer),
//!         }
//!     }
//! }
//!
//! /// A host that records all effects.
//! struct Notes(Vec<Effect<Yes>>);
//! impl Host<Yes> for Notes {
//!     fn perform(&mut self, effect: Effect<Yes>) {
//!         self.0.push(effect);
//!     }
//!     fn choose(&mut self, _bound: u32) -> u32 {
//!         0
//!     }
//! }
//!
//! let group = Group::of(2);
//! let mut notes = Notes(vec![]);
//! Yes.on_message(ProcessId(1), "well?", &mut Context::new(ProcessId(0), &group, &mut notes));
//! assert_eq!(notes.0, [Effect::Send { to: ProcessId(1), message: "yes" }]);
//! ```

mod application;
mod clock;
mod compact_option;
mod condition;
mod context;
mod erased;
mod fixed;
mod group;
mod id;
mod input;
mod inspect;
mod ledger;
mod map;
mod meter;
mod monitor;
mod prefetch;
mod rng;
mod set;
pub mod topology;

pub use application::Application;
pub use clock::{LamportClock, Timestamp, VectorClock};
pub use compact_option::CompactOption;
pub use condition::{ClientEvent, Condition, Lasting};
pub use context::{Context, Host, Indications};
pub use erased::{
    AnyApplication, AnyData, AnyMeter, AnyMonitor, AnyProcess, AnyTag, AnyTimer, Data, EffectView,
    InputView, OrderedData, Portable, Recordable, encoded_size,
};
pub use fixed::Fixed;
pub use group::{Group, GroupError};
pub use id::{MAX_ID, Port, ProcessId};
pub use input::{Effect, Input, NoRecord, NoRequest, NoTimer};
pub use inspect::Inspect;
pub use ledger::{Ledger, judge_rest};
pub use map::ProcessMap;
pub use meter::{Meter, Window};
pub use monitor::{End, Monitor, Verdict, Violation};
pub use prefetch::{prefetch, prefetch_whole};
pub use rng::Rng;
pub use set::{PortSet, ProcessSet};
pub use topology::Topology;

use std::fmt::Debug;
use std::hash::Hash;

/// A deterministic state machine.
///
/// The value *is* the state. It holds no clock, no socket and no random generator, so a host may clone, hash,
/// compare and replay it. Inputs come in through the `on_*` handlers; effects go out through [`Context`].
pub trait Process: Clone + Eq + Hash + Debug {
    /// The messages between processes.
    type Message: Clone + Eq + Hash + Debug;
    /// The names of its timers. At most one timer of each name runs.
    type Timer: Clone + Eq + Ord + Hash + Debug;
    /// The requests of clients.
    type Request: Clone + Eq + Hash + Debug;
    /// The indications to clients.
    type Indication: Clone + Eq + Hash + Debug;
    /// The records it keeps in stable storage.
    type Record: Clone + Eq + Hash + Debug;

    /// The process starts for the first time.
    fn on_start(&mut self, _ctx: &mut Context<'_, Self>) {}

    /// The process restarts after a crash, in its initial state, with the record it saved last.
    fn on_recover(&mut self, _saved: Option<Self::Record>, ctx: &mut Context<'_, Self>) {
        self.on_start(ctx);
    }

    /// The client makes a request.
    fn on_request(&mut self, request: Self::Request, ctx: &mut Context<'_, Self>);

    /// A message arrives.
    fn on_message(&mut self, from: ProcessId, message: Self::Message, ctx: &mut Context<'_, Self>);

    /// A timer that was set has run out.
    fn on_timer(&mut self, _timer: Self::Timer, _ctx: &mut Context<'_, Self>) {}

    /// The failure detector suspects that `peer` has crashed.
    fn on_suspect(&mut self, _peer: ProcessId, _ctx: &mut Context<'_, Self>) {}

    /// The failure detector trusts `peer` again.
    fn on_trust(&mut self, _peer: ProcessId, _ctx: &mut Context<'_, Self>) {}
}
