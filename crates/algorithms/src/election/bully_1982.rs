//! The bully algorithm as Garcia-Molina published it: calls that return or time out, one after the
//! other, and a reorganisation before anyone works again.
//!
//! A candidate first calls everyone above it; if one is there, that one is left to it. If none is,
//! it halts everyone below, from the top down, then tells those it halted who coordinates, then
//! that the work goes on. A process takes a coordinator only from the one that halted it last: this
//! is what keeps a candidate that was overtaken from being followed, without any numbers.
//!
//! Whoever was left out (halted by one that crashed, or back up after a crash) is found by the two
//! procedures that run from time to time: the coordinator's *check* of whether all are normal, and
//! everyone's *timeout* if nothing was heard of the coordinator for long.

mod sheet;
#[cfg(test)]
mod tests;

use std::time::Duration;

use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use super::{Indication, Request};

/// One process of the algorithm; the names of the paper's state vector stand behind the fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Bully1982 {
    /// `s`.
    status: Status,
    /// `c`: whom it follows, itself if it leads; meaningless while halted.
    coordinator: Option<ProcessId>,
    /// `h`: who halted it last, perhaps itself.
    halted_by: Option<ProcessId>,
    /// `Up`: those a candidate has halted.
    up: ProcessSet,
    /// The call that has not returned, and the loop it belongs to.
    calling: Option<(Loop, ProcessId)>,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    timeout: Duration,
    check: Option<Duration>,
    keeps_running: bool,
    no_halted_by: bool,
}

/// What a process is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Status {
    /// Halted: no work is done.
    Election,
    /// The coordinator is known, the work is being divided.
    Reorganization,
    /// At work.
    Normal,
}

/// The loops of the procedures: each calls one process after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Loop {
    /// Election: is anyone above there?
    Probe,
    /// Election: everyone below stops.
    Halt,
    /// Election: those who stopped learn who coordinates.
    Name,
    /// Election: those who stopped go to work.
    Ready,
    /// Check: is everyone at work?
    Check,
    /// Timeout: is the coordinator there?
    Miss,
}

impl Loop {
    fn call(self) -> Call {
        match self {
            Self::Probe | Self::Miss => Call::AreYouThere,
            Self::Halt => Call::Halt,
            Self::Name => Call::NewCoordinator,
            Self::Ready => Call::Ready,
            Self::Check => Call::AreYouNormal,
        }
    }
}

/// What is called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Call {
    /// Always yes.
    AreYouThere,
    /// Yes if at work.
    AreYouNormal,
    /// Stop.
    Halt,
    /// I coordinate.
    NewCoordinator,
    /// Here is your work. (What it is does not matter here.)
    Ready,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A call.
    Call(Call),
    /// It returns, with yes or no.
    Return(Call, bool),
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The call should have returned.
    Return,
    /// The coordinator looks after the others.
    Check,
    /// Nothing was heard of the coordinator for long.
    Silence,
}

impl Bully1982 {
    /// Whom it follows; itself if it leads; nobody while halted.
    pub fn coordinator(&self) -> Option<ProcessId> {
        self.coordinator.filter(|_| self.status != Status::Election)
    }

    /// The procedure ELECTION.
    fn elect(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.cancel_timer(Timer::Check);
        ctx.cancel_timer(Timer::Silence);
        self.next(Loop::Probe, None, ctx);
    }

    /// The procedure TIMEOUT.
    fn miss(&mut self, ctx: &mut Context<'_, Self>) {
        match self.coordinator() {
            None => self.elect(ctx),
            Some(p) if p == ctx.me() => self.next(Loop::Check, None, ctx),
            Some(_) => self.next(Loop::Miss, None, ctx),
        }
    }

    /// The next call of a loop, after `last`; at the end of the loop, what the procedure does then.
    fn next(&mut self, which: Loop, last: Option<ProcessId>, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        let later = |p: &ProcessId| last.is_none_or(|last| *p > last);
        let peer = match which {
            Loop::Probe => ctx.others().filter(|p| *p > last.unwrap_or(me)).min(),
            Loop::Halt => ctx.others().filter(|p| *p < last.unwrap_or(me)).max(),
            Loop::Name | Loop::Ready => self.up.iter().find(later),
            Loop::Check => ctx.others().filter(later).min(),
            Loop::Miss => self.coordinator.filter(|_| last.is_none()),
        };
        self.calling = peer.map(|peer| (which, peer));
        if let Some(peer) = peer {
            ctx.send(peer, Message::Call(which.call()));
            return ctx.set_timer(Timer::Return, self.settings.timeout);
        }
        match which {
            Loop::Probe => {
                self.stop(me, ctx);
                self.up.clear();
                self.next(Loop::Halt, None, ctx);
            }
            Loop::Halt => {
                self.take(me, ctx);
                self.next(Loop::Name, None, ctx);
            }
            Loop::Name => self.next(Loop::Ready, None, ctx),
            Loop::Ready => {
                self.status = Status::Normal;
                self.check_later(ctx);
            }
            Loop::Check => self.check_later(ctx),
            Loop::Miss => self.wait(ctx),
        }
    }

    /// No work from now on.
    fn stop(&mut self, by: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.coordinator().is_some() {
            ctx.indicate(Indication::Deposed);
        }
        self.status = Status::Election;
        self.halted_by = Some(by);
        self.coordinator = None;
    }

    /// `coordinator` it is.
    fn take(&mut self, coordinator: ProcessId, ctx: &mut Context<'_, Self>) {
        self.status = Status::Reorganization;
        self.coordinator = Some(coordinator);
        Self::tell(coordinator, ctx);
    }

    fn tell(coordinator: ProcessId, ctx: &mut Context<'_, Self>) {
        ctx.indicate(if coordinator == ctx.me() {
            Indication::Leading { epoch: 0 }
        } else {
            Indication::Following { leader: Some(coordinator), epoch: 0 }
        });
    }

    fn check_later(&self, ctx: &mut Context<'_, Self>) {
        if let Some(period) = self.settings.check.filter(|_| ctx.group_size() > 1) {
            ctx.set_timer(Timer::Check, period);
        }
    }

    /// The one who is to lead us should be heard of before a loop over all of us can have ended.
    fn wait(&self, ctx: &mut Context<'_, Self>) {
        if let Some(period) = self.settings.check {
            let round = self.settings.timeout * ctx.group_size() as u32;
            ctx.set_timer(Timer::Silence, 2 * (period + round));
        }
    }

    fn on_call(&mut self, from: ProcessId, call: Call, ctx: &mut Context<'_, Self>) -> bool {
        let halted = self.status == Status::Election;
        let known = !halted && self.coordinator == Some(from);
        match call {
            Call::AreYouThere => return true,
            Call::AreYouNormal => {
                if known {
                    self.wait(ctx);
                }
                return self.status == Status::Normal;
            }
            Call::Halt => {
                self.stop(from, ctx);
                if !self.settings.keeps_running && self.calling.take().is_some() {
                    ctx.cancel_timer(Timer::Return);
                }
                ctx.cancel_timer(Timer::Check);
            }
            Call::NewCoordinator => {
                if !halted || (self.halted_by != Some(from) && !self.settings.no_halted_by) {
                    return false;
                }
                self.take(from, ctx);
            }
            Call::Ready if known => self.status = Status::Normal,
            Call::Ready => return false,
        }
        self.wait(ctx);
        true
    }

    fn on_return(&mut self, from: ProcessId, yes: bool, ctx: &mut Context<'_, Self>) {
        let Some((which, _)) = self.calling.take() else { return };
        ctx.cancel_timer(Timer::Return);
        match which {
            // It is for the one above to elect itself. It will, if it misses the coordinator.
            Loop::Probe => self.wait(ctx),
            Loop::Check if !yes => self.elect(ctx),
            Loop::Halt => {
                self.up.insert(from);
                self.next(which, Some(from), ctx);
            }
            // A call that came too late is no failure: who did not take it is found by the check.
            Loop::Name | Loop::Ready | Loop::Check | Loop::Miss => {
                self.next(which, Some(from), ctx);
            }
        }
    }

    fn on_no_return(&mut self, ctx: &mut Context<'_, Self>) {
        let Some((which, peer)) = self.calling.take() else { return };
        match which {
            Loop::Probe | Loop::Halt | Loop::Check => self.next(which, Some(peer), ctx),
            // One of those who are to work with us has failed: the simplest is to begin anew.
            Loop::Name | Loop::Ready | Loop::Miss => self.elect(ctx),
        }
    }
}

impl Process for Bully1982 {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.wait(ctx);
    }

    fn on_recover(&mut self, _saved: Option<NoRecord>, ctx: &mut Context<'_, Self>) {
        self.elect(ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if let Some(coordinator) = self.coordinator() {
            Self::tell(coordinator, ctx);
        }
        if self.calling.is_none() {
            self.miss(ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Call(Call::Halt) if from < ctx.me() => ctx.unexpected("halted from below"),
            Message::Call(call) => {
                let yes = self.on_call(from, call, ctx);
                ctx.send(from, Message::Return(call, yes));
            }
            Message::Return(call, yes) => {
                let awaited = |(which, peer): (Loop, _)| (which.call(), peer) == (call, from);
                if self.calling.is_some_and(awaited) {
                    self.on_return(from, yes, ctx);
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Return => self.on_no_return(ctx),
            Timer::Check => self.next(Loop::Check, None, ctx),
            Timer::Silence if self.calling.is_none() => self.miss(ctx),
            Timer::Silence => {}
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        let lost = self.coordinator() == Some(peer)
            || (self.status == Status::Election && self.halted_by == Some(peer));
        if lost && self.calling.is_none() {
            self.miss(ctx);
        }
    }
}
