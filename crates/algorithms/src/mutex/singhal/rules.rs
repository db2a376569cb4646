//! The rules of Singhal that a switch or a mistake changes.

use konklave_process::{Context, Fixed, ProcessId};

use super::{Message, Singhal, State};
use crate::{Mistake, Setup};

pub(super) const AS_PRINTED: Mistake = Mistake {
    name: "as-printed",
    what: "as in the lecture: an outdated request is ignored, and the token's knowledge is looked \
           at only on leaving",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 1,1,2",
};
pub(super) const ONLY_MERGE: Mistake = Mistake {
    name: "only-merge",
    what: "half of the repair: the token's knowledge counts on arrival, but an outdated request is \
           ignored",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 2,2,2",
};
pub(super) const ONLY_HINTS: Mistake = Mistake {
    name: "only-hints",
    what: "half of the repair: an outdated request is a hint, but the token's knowledge is looked \
           at only on leaving",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 2,2,2",
};
pub(super) const NO_STAIRCASE: Mistake = Mistake {
    name: "no-staircase",
    what: "at first each process asks only the process with the token",
    breaks: "deadlock",
    caught_by: "-n 3",
};
pub(super) const NO_ECHO: Mistake = Mistake {
    name: "no-echo",
    what: "a waiting process does not ask the sender of a new request in turn",
    breaks: "deadlock",
    caught_by: "-n 3",
};

/// The settings of a process, and the mistakes that it makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    arbitration: Arbitration,
    merges_on_arrival: bool,
    takes_hints: bool,
    no_echo: bool,
}

/// The process that gets the token next, of those that want it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arbitration {
    RoundRobin,
    Smallest,
    Nearest,
}

impl Rules {
    pub(super) fn of(setup: &Setup, arbitration: &str) -> Fixed<Self> {
        let (merges_on_arrival, takes_hints) = match setup.mistake {
            Some(mistake) if mistake == AS_PRINTED.name => (false, false),
            Some(mistake) if mistake == ONLY_MERGE.name => (true, false),
            Some(mistake) if mistake == ONLY_HINTS.name => (false, true),
            Some(_) | None => (true, true),
        };
        let arbitration = match arbitration {
            "smallest" => Arbitration::Smallest,
            "nearest" => Arbitration::Nearest,
            _ => Arbitration::RoundRobin,
        };
        let no_echo = *setup.makes(&NO_ECHO);
        Fixed(Self { arbitration, merges_on_arrival, takes_hints, no_echo })
    }

    /// At first the process at `place` asks all before it, so that of any two one asks the other.
    pub(super) fn staircase(setup: &Setup, place: usize) -> usize {
        if *setup.makes(&NO_STAIRCASE) { place.min(1) } else { place }
    }
}

impl Singhal {
    /// Scenario: two processes wait, and the request of one arrives at the other, which did not ask it. If the first
    /// gets the token, it does not know that the other waits; so the other asks it now.
    pub(super) fn echo(&self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        if !self.rules.no_echo {
            ctx.send(to, Message::Request(self.known[ctx.me()].number));
        }
    }

    /// Scenario: the token overtakes a request. As printed, the receiver ignores the request as outdated, and neither
    /// process asks the other from then on; so an outdated request is a hint that its sender does not ask any more.
    pub(super) fn on_outdated(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.rules.takes_hints {
            self.on_hint(from, ctx);
        }
    }

    /// The knowledge of the token counts from its arrival on, not only on release.
    pub(super) fn learn_on_arrival(&mut self) {
        if self.rules.merges_on_arrival {
            self.learn();
        }
    }

    /// The process that gets the token next, if one wants it.
    pub(super) fn next(&self, ctx: &Context<'_, Self>) -> Option<ProcessId> {
        let me = ctx.me();
        let place = |p: ProcessId| ctx.group().place(p).unwrap_or(0);
        let mut wanting =
            self.known.after(me).filter(|p| self.known[*p].state == State::Requesting);
        match self.rules.arbitration {
            Arbitration::RoundRobin => wanting.next(),
            Arbitration::Smallest => wanting.min_by_key(|p| self.known[*p].number),
            Arbitration::Nearest => {
                wanting.min_by_key(|p| (place(*p).abs_diff(place(me)), place(*p)))
            }
        }
    }
}
