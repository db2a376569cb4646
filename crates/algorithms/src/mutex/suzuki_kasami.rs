//! Suzuki and Kasami's mutual exclusion by a broadcast token.
//!
//! Whoever has the token may enter. Who wants it asks everyone; the token knows whose last request
//! was served and keeps the queue of those who wait.

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use konklave_process::{
    Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessMap, ProcessSet,
};
use serde::{Deserialize, Serialize};

use self::sheet::{OWN_NUMBER, STALE, UNCOUNTED};
use super::{Fence, Indication, Request};
use crate::Mistake;

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct SuzukiKasami {
    phase: Phase,
    /// RN: the highest number of a request of each process that we heard of.
    requested: ProcessMap<u32>,
    token: Option<Token>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// Where we stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Phase {
    /// We want nothing.
    Idle,
    /// We have asked.
    Wanting,
    /// We are inside.
    Held,
}

/// The right to enter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// LN: the number of the last request of each process that was served.
    served: ProcessMap<u32>,
    /// Who waits.
    queue: VecDeque<ProcessId>,
}

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// I want the token, for the `number`-th time.
    Request(u32),
    /// Here it is.
    Token(Arc<Token>),
}

impl SuzukiKasami {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        let token = self.token.as_ref().expect("only the one with the token enters");
        let entries: u64 = token.served.values().map(|&times| u64::from(times)).sum();
        self.phase = Phase::Held;
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries + 1)) });
    }

    fn pass_on(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        let token = self.token.take().expect("only the one with the token passes it on");
        ctx.send(to, Message::Token(Arc::new(token)));
    }
}

impl Process for SuzukiKasami {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        match request {
            Request::Acquire => {
                if self.token.is_some() {
                    self.requested[me] += u32::from(!self.makes(&UNCOUNTED));
                    return self.enter(ctx);
                }
                self.phase = Phase::Wanting;
                self.requested[me] += 1;
                ctx.send_to_others(Message::Request(self.requested[me]));
            }
            Request::Release => {
                self.phase = Phase::Idle;
                let token = self.token.as_mut().expect("only the one with the token leaves");
                token.served[me] = self.requested[me];
                let queued: ProcessSet = token.queue.iter().copied().collect();
                // From our successor on: everyone's turn comes, whatever the ids.
                for p in self.requested.after(me) {
                    if self.requested[p] > token.served[p] && !queued.contains(p) {
                        token.queue.push_back(p);
                    }
                }
                if let Some(next) = token.queue.pop_front() {
                    self.pass_on(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(number) => {
                let whose = if self.makes(&OWN_NUMBER) { ctx.me() } else { from };
                let known = &mut self.requested[whose];
                *known = (*known).max(number);
                let number = *known;
                let wants = |token: &Token| number > token.served[whose] || self.makes(&STALE);
                if self.phase == Phase::Idle && self.token.as_ref().is_some_and(wants) {
                    self.pass_on(from, ctx);
                }
            }
            Message::Token(token) => {
                // A copy of an earlier token answers a request that was served.
                let due = token.served[ctx.me()] + 1 == self.requested[ctx.me()];
                if self.phase == Phase::Wanting && due {
                    self.token = Some(Arc::unwrap_or_clone(token));
                    self.enter(ctx);
                }
            }
        }
    }
}
