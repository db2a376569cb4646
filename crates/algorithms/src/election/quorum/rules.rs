//! The rules of the majority election that a switch or a mistake changes, and its times.

use std::time::Duration;

use konklave_process::Context;

use super::sheet::SHEET;
use super::{Quorum, Timer};
use crate::{Mistake, Setup};

pub(super) const NO_PERSIST: Mistake = Mistake {
    name: "no-persist",
    what: "term and vote are not saved: a restarted process votes a second time in the same term",
    breaks: "one leader per epoch",
    caught_by: "-n 3 --requests 0,0,0 --crash 1 --restart 1 --no-detector --synchronous --early 1 --set max-term=1 --set max-beats=1 --set jitter=1 --property unique",
};
pub(super) const NO_PRE_VOTE: Mistake = Mistake {
    name: "no-pre-vote",
    what: "a process that misses a leader raises its term at once: after a partition it deposes the leader",
    breaks: "stability",
    caught_by: "",
};
pub(super) const LEASE_FROM_ACK: Mistake = Mistake {
    name: "lease-from-ack",
    what: "a lease counts from the answers, not from the question: it outlasts the promises by their delay",
    breaks: "one leader at a time",
    caught_by: "-n 3 --initiators 0 --synchronous --clock 1 --time-limit 6 --early 2 --set election=5 --set drift=20 --set jitter=1 --set max-beats=1 --set max-term=2 --property unique",
};
pub(super) const NO_LEASE: Mistake = Mistake {
    name: "no-lease",
    what: "a leader stays in office until it learns of another term, also without a majority",
    breaks: "one leader at a time",
    caught_by: "-n 3 --initiators 0 --synchronous --clock 1 --time-limit 6 --set election=5 --set drift=20 --set jitter=1 --set max-beats=1 --set max-term=2 --property unique",
};
pub(super) const VOTE_AT_ONCE: Mistake = Mistake {
    name: "vote-at-once-after-restart",
    what: "a restarted process forgets its promise to a leader, and votes for another process",
    breaks: "one leader at a time",
    caught_by: "",
};

/// The times, the limits and the mistake of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// E: the time of a promise.
    pub(super) election: Duration,
    lease: Duration,
    /// The number of different waits between E and 2E.
    pub(super) jitter: u32,
    max_term: u32,
    max_beats: u32,
    mistake: Option<&'static str>,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        let number = |name| setup.chosen(&SHEET, name).number();
        let election = setup.unit * number("election");
        Self {
            election,
            lease: election * (100 - number("drift").min(99)) / 100,
            jitter: number("jitter").max(1),
            max_term: number("max-term"),
            max_beats: number("max-beats"),
            mistake: setup.mistake,
        }
    }

    fn makes(self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake.name)
    }

    /// Whether a process may campaign in this term.
    pub(super) fn permits_campaign(self, term: u32) -> bool {
        self.max_term == 0 || term <= self.max_term
    }

    /// Whether a leader sends another beat after this one.
    pub(super) fn permits_next_beat(self, beat: u32) -> bool {
        beat != self.max_beats
    }

    /// A process asks for tentative votes before it raises its term.
    pub(super) fn asks_first(self) -> bool {
        !self.makes(NO_PRE_VOTE)
    }

    /// A leader whose lease has ended leaves office.
    pub(super) fn leaves_office(self) -> bool {
        !self.makes(NO_LEASE)
    }
}

impl Quorum {
    /// Scenario: a process votes, restarts, and votes for another candidate in the same term. So term and vote are saved
    /// before the vote is sent.
    pub(super) fn save(&self, ctx: &mut Context<'_, Self>) {
        if !self.rules.makes(NO_PERSIST) {
            ctx.save(self.ballot);
        }
    }

    /// Scenario: a process promises, and restarts. Its promise is forgotten, but the leader still relies on it; so the
    /// process renews it.
    pub(super) fn promise_after_restart(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.rules.makes(VOTE_AT_ONCE) {
            self.promise(ctx);
        }
    }

    /// A lease counts from the moment of its question.
    pub(super) fn start_lease_at_question(&self, beat: u32, ctx: &mut Context<'_, Self>) {
        if !self.rules.makes(LEASE_FROM_ACK) {
            ctx.set_timer(Timer::Lease(beat), self.rules.lease);
        }
    }

    /// Not from the moment of its answers, which promise less time.
    pub(super) fn start_lease_at_answer(&self, beat: u32, ctx: &mut Context<'_, Self>) {
        if self.rules.makes(LEASE_FROM_ACK) {
            ctx.set_timer(Timer::Lease(beat), self.rules.lease);
        }
    }
}
