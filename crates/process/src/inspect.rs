//! The side of a process that hosts see.

use crate::{Context, Input, Process, ProcessId};

/// Questions that hosts and judges ask a process besides running it. Each has an answer by default: an algorithm
/// answers those that make sense for it, and `impl Inspect for Mine {}` is enough.
pub trait Inspect: Process {
    /// Whether nothing is left over from past work: no queue, no lock, no deferred reply.
    fn at_rest(&self) -> bool {
        true
    }

    /// The number of tokens this process holds (token algorithms only).
    fn tokens(&self) -> usize {
        0
    }

    /// The number of tokens that `message` carries (token algorithms only).
    fn tokens_in(_message: &Self::Message) -> usize {
        0
    }

    /// The parent of this process in the tree that the group builds (tree algorithms only).
    fn parent(&self) -> Option<ProcessId> {
        None
    }

    /// The logical time that a message of the application carries (algorithms with a logical clock only).
    fn stamp(&self) -> u64 {
        0
    }

    /// A message of the application arrives with the sender's logical time.
    fn on_stamp(&mut self, _from: ProcessId, _stamp: u64) {}

    /// [Prefetches](crate::prefetch()) what most messages read besides the process itself, such as a list on the
    /// heap. The simulator asks for it in large groups, shortly before the process makes a step.
    #[inline]
    fn prefetch(&self) {}

    /// Hands an input to its handler: what a trace records is what a replay feeds in. A host that has nothing to
    /// record may call [`on_message`](Process::on_message) itself, which is all that happens here.
    // Inlined, an input is never built: the host's kind of input selects the handler at compile time.
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
