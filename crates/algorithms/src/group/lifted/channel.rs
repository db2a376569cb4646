//! The messages of the lifted algorithm, over the channels of the view.

use konklave_process::{Context, ProcessId};

use super::{Inner, InnerMessage, Lifted, Message};
use crate::group::channel::{Due, Numbered};

impl<M: Clone> Numbered for InnerMessage<M> {
    fn seq(&self) -> u32 {
        self.seq
    }

    fn numbered(self, seq: u32) -> Self {
        Self { seq, ..self }
    }
}

impl<A: Inner> Lifted<A> {
    /// Sends a message of the lifted algorithm.
    pub(super) fn send_inner(
        &mut self,
        to: ProcessId,
        inside: InnerMessage<A::Message>,
        ctx: &mut Context<'_, Self>,
    ) {
        let inside = self.channels.send(to, inside, self.settings.repeats);
        ctx.send(to, Message::Inside(inside));
    }

    /// At each heartbeat: confirms received messages, and sends unconfirmed ones again.
    pub(super) fn confirm_and_resend(&mut self, ctx: &mut Context<'_, Self>) {
        if self.wedged {
            return;
        }
        let view = self.view().id;
        for Due { to, confirms, again } in self.channels.due() {
            if let Some(upto) = confirms {
                ctx.send(to, Message::Got { view, upto });
            }
            for inside in again {
                ctx.send(to, Message::Inside(inside));
            }
        }
    }
}
