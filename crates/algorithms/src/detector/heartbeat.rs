//! A failure detector by heartbeats.
//!
//! Everyone tells everyone in every period that it is alive. Who is silent for several periods is
//! suspected; when that proves wrong, it is given one period more from then on, so that in the end
//! a detector whose messages have a delay bound, known or not, makes no more mistakes.

mod sheet;
#[cfg(test)]
mod tests;

use std::time::Duration;

use konklave_process::{
    Context, Fixed, NoRecord, NoRequest, Process, ProcessId, ProcessMap, ProcessSet,
};
use serde::{Deserialize, Serialize};

use super::Indication;

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
