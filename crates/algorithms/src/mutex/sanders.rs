//! Sanders's mutual exclusion by any information structure.
//!
//! Each process has a set of others that it must ask and a set of those that it must inform when it
//! leaves. An arbiter that grants a request keeps itself locked only if it will be informed. With
//! the right sets this is a coordinator, or Ricart and Agrawala's algorithm, or Maekawa's, or
//! something between them. What happens is told in `locking.rs`.

mod sheet;
mod structure;
#[cfg(test)]
mod tests;

use konklave_process::{Context, NoRecord, NoTimer, Process, ProcessId};
use serde::Serialize;

pub use self::structure::Structure;
pub use super::locking::Message;
use super::locking::Node;
use super::{Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct Sanders(Node);

impl Process for Sanders {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        self.0.on_request(request, ctx);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        self.0.on_message(from, message, ctx);
    }
}
