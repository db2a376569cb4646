//! Wave election on a tree: explorers go out, echoes return, the result goes out.
//!
//! Explorers wake all processes. A process with an echo on all its edges but one sends the highest number it knows over
//! the last; the two processes whose echoes meet know the highest number of all and spread it. A process knows its
//! edges only, not the tree.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{
    CompactOption, Context, Fixed, NoRecord, NoTimer, Port, Process, ProcessId,
};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::ticked::Ticked;
use super::{Indication, Request};

/// One process of the algorithm. Trees of millions are built of these: two fill a cache line.
#[repr(align(32))]
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct TreeWave {
    awake: bool,
    /// The edges, ticked if an echo has arrived.
    #[serde(rename = "echoed")]
    edges: Ticked,
    /// The number of edges without an echo.
    left: u32,
    /// The edge of the own echo.
    sent: CompactOption<Port>,
    /// The highest known number.
    best: ProcessId,
    decided: bool,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// The messages, which go over edges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Wakes a process.
    Explore,
    /// The highest number on this side.
    Echo(ProcessId),
    /// The highest number of all.
    Info(ProcessId),
}

impl Process for TreeWave {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if self.decided {
            ctx.indicate(Indication::outcome(self.best, ctx.me()));
        } else if !self.awake {
            self.wake(None, ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        if self.is_late(message) {
            return;
        }
        let Some(port) = self.edges.port(from) else {
            return ctx.unexpected("a message from a stranger");
        };
        match message {
            Message::Explore if !self.awake => self.wake(Some(port), ctx),
            Message::Explore => self.echo_if_ready(ctx),
            Message::Echo(best) => {
                self.best = self.best.max(best);
                self.left -= u32::from(self.edges.tick(port));
                if !self.awake {
                    self.wake(Some(port), ctx);
                } else if self.sent == Some(port) && !self.decided {
                    self.decide(Some(port), ctx);
                } else {
                    self.echo_if_ready(ctx);
                }
            }
            Message::Info(best) => {
                self.best = best;
                self.decide(Some(port), ctx);
            }
        }
    }
}

impl TreeWave {
    /// Whether `message` has no effect any more, over whichever edge it came.
    fn is_late(&self, message: Message) -> bool {
        match message {
            Message::Explore => self.rules.ignores_explorer(self.awake),
            Message::Echo(_) => false,
            Message::Info(_) => self.decided,
        }
    }

    fn wake(&mut self, by: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.awake = true;
        self.edges.send_all_but(by, Message::Explore, ctx);
        if by.is_some() || self.rules.permits_echo_of_starter(self.edges.len()) {
            self.echo_if_ready(ctx);
        }
    }

    /// Echoes over the last edge without an echo; a leaf does so as soon as it is awake.
    fn echo_if_ready(&mut self, ctx: &mut Context<'_, Self>) {
        if self.decided || self.sent.is_some() {
            return;
        }
        match self.left {
            // An echo was faster than its explorer.
            0 => self.decide(None, ctx),
            1 => {
                let last = self.edges.unticked().expect("one edge is left");
                self.sent = last.into();
                ctx.send(self.edges.peer(last), Message::Echo(self.best));
            }
            _ => {}
        }
    }

    fn decide(&mut self, except: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.decided = true;
        ctx.indicate(Indication::outcome(self.best, ctx.me()));
        self.edges.send_all_but(except, Message::Info(self.best), ctx);
    }
}
