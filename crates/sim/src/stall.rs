//! Stalls: a run in which events go on, but no client learns anything new.
//!
//! Scenario: a message is lost, and two processes ask each other the same question for ever. Hazard: such a run has
//! no end, and its limits of time and steps lie far off, since a run of a large group needs them. Rule: a run is cut
//! off if no client made a request or got an indication for many steps and a long time, no request of a client is
//! scheduled, and no fault is to come.

use crate::Time;
use crate::kinds::Kinds;

/// How long a run may go on without an event of a client. It is cut off when both are exceeded: a few processes may
/// take a long time for a few steps, and many processes make many steps in a short time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Patience {
    /// In steps.
    pub steps: u64,
    /// In T.
    pub time: f64,
}

/// The time at the end of a run in which no client learned anything new.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stall {
    /// Its duration.
    pub time: Time,
    /// Its steps.
    pub steps: u64,
    /// The messages sent in it, by kind.
    pub messages: Vec<(String, u64)>,
}

/// Watches for stalls. It looks at the run now and then, so that watching costs nothing.
#[derive(Default)]
pub(crate) struct StallWatch {
    patience: Option<(u64, Time)>,
    last: Option<Look>,
    /// The number of steps at the next look.
    next: u64,
}

/// The progress of a run at one look.
struct Look {
    client_events: u64,
    steps: u64,
    now: Time,
    kinds: Vec<(String, u64)>,
}

/// The progress of a run.
pub(crate) struct Progress<'a> {
    pub(crate) client_events: u64,
    pub(crate) steps: u64,
    pub(crate) now: Time,
    pub(crate) kinds: &'a Kinds,
    /// Whether a request of a client or a fault is to come.
    pub(crate) expects: bool,
}

impl StallWatch {
    /// A watch with patience for so many steps and so long; none waits for ever.
    pub(crate) fn new(patience: Option<(u64, Time)>) -> Self {
        let next = patience.map_or(u64::MAX, |(steps, _)| steps);
        Self { patience, last: None, next }
    }

    /// The number of steps after which to look.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Looks at the run; returns the stall if there is one.
    pub(crate) fn look(&mut self, run: &Progress<'_>) -> Option<Stall> {
        let (steps, time) = self.patience?;
        if run.steps < self.next {
            return None;
        }
        self.next = run.steps.saturating_add(steps);
        let same = |last: &&Look| last.client_events == run.client_events && !run.expects;
        let Some(last) = self.last.as_ref().filter(same) else {
            let kinds = run.kinds.iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
            let (client_events, steps, now) = (run.client_events, run.steps, run.now);
            self.last = Some(Look { client_events, steps, now, kinds });
            return None;
        };
        (run.now - last.now >= time).then(|| last.until(run))
    }
}

impl Look {
    /// The stall from this look until now.
    fn until(&self, run: &Progress<'_>) -> Stall {
        let before = |kind: &str| self.kinds.iter().find(|(known, _)| known == kind);
        let since = |(kind, count): (&str, u64)| {
            let sent = count - before(kind).map_or(0, |(_, count)| *count);
            (sent > 0).then(|| (kind.to_owned(), sent))
        };
        Stall {
            time: run.now - self.now,
            steps: run.steps - self.steps,
            messages: run.kinds.iter().filter_map(since).collect(),
        }
    }
}
