//! The contract: a [`Process`] reacts to inputs, a [`Host`] carries out its effects.
//!
//! Every algorithm is one value that implements [`Process`]. It knows no clock, no socket, no
//! chance and no log, so the simulator, the checker and the network run the very same code:
//!
//! ```
//! use konklave_process::{Context, Group, Host, Effect, Input, NoRecord, NoTimer, Process, ProcessId};
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
//! /// A host that only writes down.
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
//! let asked = Input::Message { from: ProcessId(1), message: "well?" };
//! Yes.handle(asked, &mut Context::new(ProcessId(0), &group, &mut notes));
//! assert_eq!(notes.0, [Effect::Send { to: ProcessId(1), message: "yes" }]);
//! ```

mod ahead;
mod application;
mod clock;
mod context;
mod erased;
mod fixed;
mod group;
mod id;
mod input;
mod map;
mod maybe;
mod meter;
mod monitor;
mod rng;
mod set;
pub mod topology;

pub use ahead::{call_up, call_up_whole};
pub use application::Application;
pub use clock::{LamportClock, Timestamp, VectorClock};
pub use context::{Context, Host, Indications};
pub use erased::{
    AnyApplication, AnyData, AnyMeter, AnyMonitor, AnyProcess, AnyTag, AnyTimer, Data, EffectView,
    InputView, OrderedData, Portable, Recordable,
};
pub use fixed::Fixed;
pub use group::{Group, GroupError};
pub use id::{MAX_ID, Port, ProcessId};
pub use input::{Effect, Input, NoRecord, NoRequest, NoTimer};
pub use map::ProcessMap;
pub use maybe::Maybe;
pub use meter::Meter;
pub use monitor::{End, Monitor, Verdict, Violation};
pub use rng::Rng;
pub use set::{PortSet, ProcessSet};
pub use topology::Topology;

use std::fmt::Debug;
use std::hash::Hash;

/// A deterministic state machine.
///
/// The value *is* the state. It holds no clock, no socket and no random generator, so a host may
/// clone, hash, compare and replay it. All it learns comes in through `on_*`; all it does goes out
/// through [`Context`].
pub trait Process: Clone + Eq + Hash + Debug {
    /// What the processes say to each other.
    type Message: Clone + Eq + Hash + Debug;
    /// The names of its timers. Under one name at most one timer runs.
    type Timer: Clone + Eq + Ord + Hash + Debug;
    /// What the application asks for.
    type Request: Clone + Eq + Hash + Debug;
    /// What the application is told.
    type Indication: Clone + Eq + Hash + Debug;
    /// What it keeps in stable storage.
    type Record: Clone + Eq + Hash + Debug;

    /// The process comes up for the first time.
    fn on_start(&mut self, _ctx: &mut Context<'_, Self>) {}

    /// It comes up again after a crash, as newly built, with what it had saved.
    fn on_recover(&mut self, _saved: Option<Self::Record>, ctx: &mut Context<'_, Self>) {
        self.on_start(ctx);
    }

    /// The application asks for something.
    fn on_request(&mut self, request: Self::Request, ctx: &mut Context<'_, Self>);

    /// A message arrives.
    fn on_message(&mut self, from: ProcessId, message: Self::Message, ctx: &mut Context<'_, Self>);

    /// A timer that was set has run out.
    fn on_timer(&mut self, _timer: Self::Timer, _ctx: &mut Context<'_, Self>) {}

    /// The failure detector takes `peer` for crashed.
    fn on_suspect(&mut self, _peer: ProcessId, _ctx: &mut Context<'_, Self>) {}

    /// The failure detector takes `peer` for alive again.
    fn on_trust(&mut self, _peer: ProcessId, _ctx: &mut Context<'_, Self>) {}

    /// The logical time that a message of the application takes along, where there is one.
    fn stamp(&self) -> u64 {
        0
    }

    /// A message of the application arrives with the sender's logical time.
    fn on_stamp(&mut self, _from: ProcessId, _stamp: u64) {}

    /// Whether nothing is left over from past work: no queue, no lock, nothing put off.
    fn at_rest(&self) -> bool {
        true
    }

    /// How many tokens this process holds (token algorithms only).
    fn tokens(&self) -> usize {
        0
    }

    /// How many tokens `message` carries (token algorithms only).
    fn tokens_in(_message: &Self::Message) -> usize {
        0
    }

    /// Whom this process takes for its parent in the tree they build (tree algorithms only).
    fn parent(&self) -> Option<ProcessId> {
        None
    }

    /// A message will come soon: a chance to [call up](call_up) what most messages look at besides
    /// the process itself, such as a list on the heap. Only hosts of large groups ask.
    #[inline]
    fn call_up(&self) {}

    /// The door for hosts: what a trace records is what a replay feeds in. A host that has nothing to
    /// record may hand a message to [`on_message`](Self::on_message) itself, which is all that happens here.
    // Inlined, an input is never built: the host's kind of input picks the handler at once.
    #[inline(always)]
    fn handle(&mut self, input: Input<Self>, ctx: &mut Context<'_, Self>) {
        match input {
            Input::Message { from, message } => self.on_message(from, message, ctx),
            Input::Start => self.on_start(ctx),
            Input::Recover(saved) => self.on_recover(saved, ctx),
            Input::Request(request) => self.on_request(request, ctx),
            Input::Timer(timer) => self.on_timer(timer, ctx),
            Input::Suspect(peer) => self.on_suspect(peer, ctx),
            Input::Trust(peer) => self.on_trust(peer, ctx),
            Input::Stamp { from, stamp } => self.on_stamp(from, stamp),
        }
    }
}
