//! The rules of Lamport that a switch or a mistake changes.

use konklave_process::{Context, Timestamp};

use super::{Lamport, Message, State};
use crate::{Mistake, Setup};

pub(super) const EQUAL_ACK: Mistake = Mistake {
    name: "equal-ack",
    what: "an acknowledgement carries the time of the request, not a later one: with a lower id it \
           does not count as later",
    breaks: "deadlock",
    caught_by: "-n 2 --requests 0,1",
};
pub(super) const NO_TIE_BREAK: Mistake = Mistake {
    name: "no-tie-break",
    what: "the queue is ordered by time without ids, and of two equal requests each takes its own \
           for the first",
    breaks: "mutual exclusion",
    caught_by: "-n 2",
};

/// The settings of a process, and the mistakes that it makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Whether a request is not acknowledged if a later request of ours does the same.
    suppresses: bool,
    equal_ack: bool,
    no_tie_break: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup, suppresses: bool) -> Self {
        let (equal_ack, no_tie_break) = (*setup.makes(&EQUAL_ACK), *setup.makes(&NO_TIE_BREAK));
        Self { suppresses, equal_ack, no_tie_break }
    }

    /// Whether our request is the head of the queue: the order is total.
    pub(super) fn is_head(self, ours: Timestamp, queue: &[Timestamp]) -> bool {
        queue.first().is_some_and(|head| match self.no_tie_break {
            true => head.time == ours.time,
            false => *head == ours,
        })
    }
}

impl Lamport {
    /// Acknowledges `request` at a later time: an earlier one would tell its process nothing.
    pub(super) fn acknowledge(&mut self, request: Timestamp, ctx: &mut Context<'_, Self>) {
        if self.rules.suppresses && self.has_sent_later_request(request, ctx) {
            return;
        }
        let clock = if self.rules.equal_ack { request.time } else { self.clock.tick() };
        ctx.send(request.process, Message::Ack { clock });
    }

    fn has_sent_later_request(&self, request: Timestamp, ctx: &Context<'_, Self>) -> bool {
        match self.state {
            State::Wanted { since, .. } => request < Timestamp { time: since, process: ctx.me() },
            State::Released | State::Held { .. } => false,
        }
    }
}
