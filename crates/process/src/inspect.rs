//! Questions that hosts and judges ask a process.

use crate::{Context, Input, Process, ProcessId};

/// Questions that hosts and judges ask a process. Each has a default answer, so `impl Inspect for Mine {}` is
/// enough; an algorithm overrides those that make sense for it.
pub trait Inspect: Process {
    /// Whether the process is at rest: it has no queue, no lock, no deferred reply left.
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

    /// [Prefetches](crate::prefetch()) data on the heap that most handlers read, such as a list. The simulator
    /// calls it in large groups, shortly before a step of the process.
    #[inline]
    fn prefetch(&self) {}

    /// Passes an input to its handler. A host that has nothing to record may call
    /// [`on_message`](Process::on_message) directly instead.
    // Inlined, so that the input is never built: its kind selects the handler at compile time.
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
