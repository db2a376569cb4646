//! Best-effort multicast: one message to each member, and nothing more.
//!
//! It is the baseline of all other multicasts: it repeats nothing and orders nothing. If a sender
//! crashes half-way, only some members deliver its message.

mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Indication, Request, Unit};

/// One process of the algorithm. It has no state.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct BestEffort {
    #[serde(skip)]
    forgets_itself: Fixed<bool>,
}

/// The messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The application's message of this number.
    Data(u32),
}

impl Process for BestEffort {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        ctx.send_to_others(Message::Data(number));
        if self.delivers_own() {
            ctx.indicate(Indication::Delivered(Unit { from: ctx.me(), number }));
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let Message::Data(number) = message;
        ctx.indicate(Indication::Delivered(Unit { from, number }));
    }
}
