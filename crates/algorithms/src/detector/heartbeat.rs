//! A failure detector by heartbeats.
//!
//! Everyone tells everyone in every period that it is alive. Who is silent for several periods is
//! suspected; when that proves wrong, it is given one period more from then on, so that in the end
//! a detector whose messages have a delay bound, known or not, makes no more mistakes.

use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{
    Context, Fixed, NoRecord, NoRequest, Process, ProcessId, ProcessMap, ProcessSet,
};
use serde::{Deserialize, Serialize};

use super::{Detector, Indication};
use crate::{Algorithm, Assumption, DataSheet, Guarantee, Mistake, Setup, SetupError, Switch};

const IMPATIENT: Mistake = Mistake {
    name: "impatient",
    what: "a wrong suspicion teaches nothing: a process that is always late is suspected again and again",
    breaks: "accuracy",
    caught_by: "",
};

const SHEET: DataSheet = DataSheet {
    name: "heartbeat",
    title: "Heartbeat failure detector",
    idea: "Say that you are alive in every period; suspect who is silent for several.",
    source: "T. D. Chandra, S. Toueg, JACM 43(2), 1996 (eventually perfect detector)",
    assumes: &[Assumption::Reliable, Assumption::BoundedDelays, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[],
    guarantees: &[Guarantee::Completeness, Guarantee::EventualAccuracy],
    fence: None,
    mistakes: &[IMPATIENT],
    switches: &[
        Switch { name: "period", values: &["2", "<number>"], what: "the period, in T" },
        Switch {
            name: "misses",
            values: &["3", "<number>"],
            what: "silent periods until suspicion",
        },
    ],
};

/// One process of the detector.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Heartbeat {
    /// How many periods each process has been silent.
    silent: ProcessMap<u32>,
    /// How many silent periods each is allowed.
    patience: ProcessMap<u32>,
    suspected: ProcessSet,
    #[serde(skip)]
    period: Fixed<Duration>,
    #[serde(skip)]
    impatient: Fixed<bool>,
}

/// I am alive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Alive;

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The end of a period.
    Period,
}

impl Process for Heartbeat {
    type Message = Alive;
    type Timer = Timer;
    type Request = NoRequest;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.send_to_others(Alive);
        ctx.set_timer(Timer::Period, *self.period);
    }

    fn on_request(&mut self, request: NoRequest, _ctx: &mut Context<'_, Self>) {
        match request {}
    }

    fn on_message(&mut self, from: ProcessId, Alive: Alive, ctx: &mut Context<'_, Self>) {
        self.silent[from] = 0;
        if self.suspected.remove(from) {
            if !*self.impatient {
                self.patience[from] += 1;
            }
            ctx.indicate(Indication::Restore(from));
        }
    }

    fn on_timer(&mut self, Timer::Period: Timer, ctx: &mut Context<'_, Self>) {
        for p in ctx.others() {
            let silent = &mut self.silent[p];
            *silent = (*silent + 1).min(self.patience[p]);
            if *silent == self.patience[p] && self.suspected.insert(p) {
                ctx.indicate(Indication::Suspect(p));
            }
        }
        ctx.send_to_others(Alive);
        ctx.set_timer(Timer::Period, *self.period);
    }
}

impl Algorithm for Heartbeat {
    type Problem = Detector;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let misses = setup.chosen(&SHEET, "misses").number();
        Self {
            silent: ProcessMap::new(&setup.group, 0),
            patience: ProcessMap::new(&setup.group, misses),
            suspected: ProcessSet::new(),
            period: Fixed(setup.unit * setup.chosen(&SHEET, "period").number()),
            impatient: setup.makes(&IMPATIENT),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["period", "misses"])
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, set, tell};

    use super::*;

    fn bench() -> Bench<Heartbeat> {
        let setup = Setup::new(Group::of(2), Topology::complete(2));
        Bench::new(Heartbeat::new(ProcessId(0), &setup), ProcessId(0), &setup.group)
    }

    #[test]
    fn it_says_that_it_is_alive_and_sets_the_period() {
        let period = Duration::from_millis(2);
        assert_eq!(bench().start(), [send(1, Alive), set(Timer::Period, period)]);
    }

    #[test]
    fn three_silent_periods_are_suspicious_and_a_word_clears_it() {
        let mut p0 = bench();
        let suspects = |p0: &mut Bench<Heartbeat>| {
            p0.fire(Timer::Period).contains(&tell(Indication::Suspect(ProcessId(1))))
        };
        assert!(!suspects(&mut p0) && !suspects(&mut p0));
        assert!(suspects(&mut p0));
        assert!(!suspects(&mut p0), "told once");
        assert_eq!(p0.hear(1, Alive), [tell(Indication::Restore(ProcessId(1)))]);
        // Having been wrong once, it waits one period more.
        assert!(!suspects(&mut p0) && !suspects(&mut p0) && !suspects(&mut p0));
        assert!(suspects(&mut p0));
    }
}
