//! Session messages: they carry the highest number of each source, until all members agree on it.
//!
//! An outage can swallow any fixed number of session messages, and a loss would stay unnoticed. So
//! each session message also says whether all other members have sent the same numbers to its sender
//! (*settled*). A member that receives an unsettled one answers with its own. The members fall silent
//! once all of them are settled, and not before.

use std::collections::BTreeMap;

use konklave_process::{Context, ProcessId};

use super::{Message, Srm, Timer};

/// The most session messages that a member sends after its last news, in an undisturbed run in which
/// no message takes longer than the interval. Within 1.1 intervals of the last news each member has
/// sent one, and one interval later all have arrived: at most four are sent until then. One more is
/// settled, and one answers members whose last message was not settled yet.
pub(super) const MOST: u32 = 6;

impl Srm {
    /// This process has learned of a message: session messages begin anew.
    pub(super) fn on_news(&mut self, ctx: &mut Context<'_, Self>) {
        self.agreed.clear();
        if self.talks() {
            self.sessions = 0;
            self.next_session(ctx);
        }
    }

    fn talks(&self) -> bool {
        (self.settings.agreed || self.settings.sessions > 0) && self.settings.members > 1
    }

    fn next_session(&mut self, ctx: &mut Context<'_, Self>) {
        self.session_pending = self.settings.agreed;
        // Between nine and eleven tenths of the interval.
        let jitter = u64::from(ctx.choose(52)) + 231;
        ctx.set_timer(Timer::Session, self.time(self.settings.interval, jitter));
    }

    /// Whether every live member has sent the same numbers as this process knows.
    fn settled(&self, ctx: &Context<'_, Self>) -> bool {
        ctx.others().all(|p| self.agreed.contains(p) || self.suspected.contains(p))
    }

    pub(super) fn session(&mut self, ctx: &mut Context<'_, Self>) {
        let settled = self.settings.agreed && self.settled(ctx);
        let high = self.high.iter().map(|(p, high)| (p, *high)).collect();
        ctx.send_to_others(Message::Session { high, settled });
        self.session_pending = false;
        if self.settings.agreed {
            if !settled {
                self.next_session(ctx);
            }
            return;
        }
        self.sessions += 1;
        if self.sessions < self.settings.sessions {
            self.next_session(ctx);
        }
    }

    pub(super) fn on_session(
        &mut self,
        from: ProcessId,
        high: Vec<(ProcessId, u32)>,
        settled: bool,
        ctx: &mut Context<'_, Self>,
    ) {
        let theirs: BTreeMap<ProcessId, u32> =
            high.into_iter().filter(|(p, high)| *high > 0 && ctx.group().contains(*p)).collect();
        for (&source, &high) in &theirs {
            self.on_highest(source, high, ctx);
        }
        if !self.settings.agreed {
            return;
        }
        let ours = self.high.iter().filter(|(_, high)| **high > 0);
        let same = theirs.iter().map(|(p, high)| (*p, high)).eq(ours);
        if same {
            self.agreed.insert(from);
        } else {
            self.agreed.remove(from);
        }
        if !(same && settled) {
            self.resume_sessions(ctx);
        }
    }

    /// Another member does not have the same numbers, or is not settled: sends a session message.
    fn resume_sessions(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.session_pending && self.talks() {
            self.next_session(ctx);
        }
    }

    /// A suspected member is not waited for.
    pub(super) fn give_up(&mut self, peer: ProcessId) {
        if self.settings.agreed {
            self.suspected.insert(peer);
        }
    }

    /// `peer` is alive after all, and may lack messages of the meantime.
    pub(super) fn take_back(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.suspected.remove(peer) {
            self.agreed.remove(peer);
            if self.high.iter().next().is_some() {
                self.resume_sessions(ctx);
            }
        }
    }
}
