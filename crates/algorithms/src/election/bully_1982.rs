//! The bully algorithm as Garcia-Molina published it: calls that return or time out, one after the other.
//!
//! A candidate calls all higher processes; if one returns the call, the election is left to it. If none does, the
//! candidate halts all lower processes from the top down, then names itself to the halted ones, then makes them ready.
//! A process accepts only the coordinator that halted it last.
//!
//! Two procedures run from time to time, and find processes that were left out: the coordinator *checks* whether all
//! processes are normal, and each process has a *timeout* for signs of life of the coordinator.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Indication, Request};

/// One process of the algorithm, with the names of the state vector in the paper.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Bully1982 {
    /// `s`.
    status: Status,
    /// `c`: the process it follows, itself if it leads; without meaning while halted.
    coordinator: Option<ProcessId>,
    /// `h`: the process that halted it last, perhaps itself.
    halted_by: Option<ProcessId>,
    /// `Up`: the processes that this candidate has halted.
    up: ProcessSet,
    /// The call that has not returned, and the loop it belongs to.
    calling: Option<(Loop, ProcessId)>,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// `s` of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Status {
    /// Halted: the process does no work.
    Election,
    /// The coordinator is known and divides the work.
    Reorganization,
    /// At work.
    Normal,
}

/// The loops of the procedures, each of which calls one process after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Loop {
    /// Election: is a higher process up?
    Probe,
    /// Election: all lower processes halt.
    Halt,
    /// Election: the halted processes learn of the coordinator.
    Name,
    /// Election: the halted processes go to work.
    Ready,
    /// Check: are all processes at work?
    Check,
    /// Timeout: is the coordinator up?
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

/// The procedures of other processes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Call {
    /// Returns yes.
    AreYouThere,
    /// Returns whether the process is at work.
    AreYouNormal,
    /// Halts the process.
    Halt,
    /// Names the caller as the coordinator.
    NewCoordinator,
    /// Assigns the work, which does not matter here.
    Ready,
}

/// The messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A call.
    Call(Call),
    /// The call returns, with yes or no.
    Return(Call, bool),
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The call should have returned.
    Return,
    /// The next check of the coordinator.
    Check,
    /// No sign of life of the coordinator for long.
    Silence,
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

impl Bully1982 {
    /// The process it follows; itself if it leads; none while halted.
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

    /// The next call of a loop, after that to `last`; after the last call, the next step of the procedure.
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
            return ctx.set_timer(Timer::Return, self.rules.timeout);
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

    /// Stops the work.
    fn stop(&mut self, by: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.coordinator().is_some() {
            ctx.indicate(Indication::Deposed);
        }
        self.status = Status::Election;
        self.halted_by = Some(by);
        self.coordinator = None;
    }

    /// Accepts `coordinator`.
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
        if let Some(period) = self.rules.check.filter(|_| ctx.group_size() > 1) {
            ctx.set_timer(Timer::Check, period);
        }
    }

    /// The process expects a sign of life within the time of a check and of a loop over the whole group.
    fn wait(&self, ctx: &mut Context<'_, Self>) {
        if let Some(period) = self.rules.check {
            let round = self.rules.timeout * ctx.group_size() as u32;
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
                self.stop_own_calls(ctx);
                ctx.cancel_timer(Timer::Check);
            }
            Call::NewCoordinator => {
                if !halted || !self.accepts_coordinator(from) {
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
            // A higher process is up. If it misses the coordinator, it holds an election.
            Loop::Probe => self.wait(ctx),
            Loop::Check if !yes => self.elect(ctx),
            Loop::Halt => {
                self.up.insert(from);
                self.next(which, Some(from), ctx);
            }
            // A call that came too late is no failure: the check finds a process that did not accept it.
            Loop::Name | Loop::Ready | Loop::Check | Loop::Miss => {
                self.next(which, Some(from), ctx);
            }
        }
    }

    fn on_no_return(&mut self, ctx: &mut Context<'_, Self>) {
        let Some((which, peer)) = self.calling.take() else { return };
        match which {
            Loop::Probe | Loop::Halt | Loop::Check => self.next(which, Some(peer), ctx),
            // A halted process, or the coordinator, has crashed: the election begins anew.
            Loop::Name | Loop::Ready | Loop::Miss => self.elect(ctx),
        }
    }
}
