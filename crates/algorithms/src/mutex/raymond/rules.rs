//! The rules of Raymond that a switch or a mistake changes.

use konklave_process::{Context, ProcessId};

use super::Raymond;
use crate::mutex::State;
use crate::{Mistake, Setup};

pub(super) const NO_ASKED_FLAG: Mistake = Mistake {
    name: "no-asked-flag",
    what: "a process asks again for every process that joins its queue: its holder queues it twice",
    breaks: "expected inputs",
    caught_by: "-n 3 --topology path --requests 0,1,1",
};
pub(super) const FORGETS_SELF: Mistake = Mistake {
    name: "forgets-self",
    what: "the token goes on to the first of the queue, as on the slide: if that is the process \
           itself, its entry is gone and it never enters",
    breaks: "deadlock",
    caught_by: "-n 2 --topology path --requests 0,1",
};
pub(super) const FORGETS_REST: Mistake = Mistake {
    name: "forgets-rest",
    what: "a process that passes the token on does not ask the new holder for the rest of its queue",
    breaks: "deadlock",
    caught_by: "-n 3 --topology path --requests 0,1,1",
};
pub(super) const UNBOUNDED_GREEDY: Mistake = Mistake {
    name: "unbounded-greedy",
    what: "a process that leaves keeps the token for its own next request, however many others wait",
    breaks: "deadlock",
    caught_by: "-n 2 --topology path --requests 1,1",
};

/// The settings of a process, and the mistake that it makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// How often in a row a process may serve itself before the head of its queue.
    greedy: u32,
    mistake: Option<&'static str>,
}

impl Rules {
    pub(super) fn of(setup: &Setup, greedy: u32) -> Self {
        Self { greedy, mistake: setup.mistake }
    }

    fn makes(self, mistake: &Mistake) -> bool {
        self.mistake == Some(mistake.name)
    }

    /// A process asks its holder once, however many join its queue.
    pub(super) fn permits_request(self, asked: bool) -> bool {
        !asked || self.makes(&NO_ASKED_FLAG)
    }
}

impl Raymond {
    /// The token goes to the head of the queue, also after a release.
    pub(super) fn assign_privilege_on_release(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.rules.makes(&UNBOUNDED_GREEDY) {
            self.assign_privilege(ctx);
        }
    }

    /// If this process is the head of its queue, it enters when the token arrives.
    pub(super) fn assign_privilege_on_arrival(&mut self, ctx: &mut Context<'_, Self>) {
        if self.rules.makes(&FORGETS_SELF) && self.queue.front() == Some(&ctx.me()) {
            self.queue.pop_front();
        }
        self.assign_privilege(ctx);
    }

    /// After it passed the token on, the process asks the new holder for the rest of its queue.
    pub(super) fn make_request_for_rest(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.rules.makes(&FORGETS_REST) {
            self.make_request(ctx);
        }
    }

    /// Takes the head out of the queue, or this process if it is greedy and has not been too often.
    pub(super) fn take_next(&mut self, me: ProcessId) -> Option<ProcessId> {
        if self.queue.front() == Some(&me) {
            self.ahead = 0;
        } else if self.state == State::Wanted && self.ahead < self.rules.greedy {
            self.ahead += 1;
            let place = self.queue.iter().position(|&p| p == me)?;
            return self.queue.remove(place);
        }
        self.queue.pop_front()
    }

    /// Whether `from` is in the queue. That must not be, so a look at the newest 32 will do: in the
    /// middle of a star the queue is long.
    pub(super) fn has_newly_queued(&self, from: ProcessId) -> bool {
        self.queue.iter().rev().take(32).any(|&p| p == from)
    }
}
