//! A failure detector by heartbeats: eventually perfect, ◇P (Chandra, Toueg).
//!
//! In each period every process sends a heartbeat to every other one. It suspects a process when several periods have
//! ended since the last heartbeat. After a wrong suspicion it allows that process one period more. If delays have a
//! bound, known or not, the allowance reaches it: then no suspicion is wrong.

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
    /// The number of periods that have ended since the last heartbeat of each process.
    silent: ProcessMap<u32>,
    /// The number of period ends at which each process is suspected.
    patience: ProcessMap<u32>,
    suspected: ProcessSet,
    #[serde(skip)]
    period: Fixed<Duration>,
    #[serde(skip)]
    impatient: Fixed<bool>,
}

/// The heartbeat: the sender is alive.
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
            if self.learns() {
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
