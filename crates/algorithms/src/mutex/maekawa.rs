//! Maekawa's mutual exclusion by quorums.
//!
//! To enter, a process needs the locks of its quorum only, some √n processes. Any two quorums have
//! a member in common, and that one locks itself for one of both at a time. As the paper has it,
//! the algorithm can deadlock; this is the version that Sanders corrected, with every message
//! stamped by the request it is about. What happens is told in `locking.rs`.

mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, NoRecord, NoTimer, Process, ProcessId};
use serde::Serialize;

pub use super::locking::Message;
use super::locking::Node;
use super::{Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct Maekawa(Node);

impl Process for Maekawa {
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

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.0.finds_ways_around() {
            self.0.on_suspect(peer, ctx);
        }
    }

    fn on_trust(&mut self, peer: ProcessId, _ctx: &mut Context<'_, Self>) {
        self.0.on_trust(peer);
    }
}
