//! Session messages: they tell how far each source has come, until all are known to agree on it.
//!
//! A number of them, however large, can get lost in an outage that is longer. So each says, too,
//! whether its sender has heard the same from everyone; who hears that one has not speaks again.
//! All fall silent when all agree, and nobody before.

use std::collections::BTreeMap;

use konklave_process::{Context, ProcessId};

use super::{Message, Srm, Timer};

/// In an undisturbed run in which no message takes longer than the interval, so many session
/// messages of a member at most follow its last news. All have spoken within 1.1 intervals of the
/// last news, and all have heard it one interval later: at most four were sent before, one says that
/// all agree, and one more is for those who said just before that they did not know it.
pub(super) const MOST: u32 = 6;

impl Srm {
    /// There is news: session messages will tell it.
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

    /// Whether everyone who is there is known to know what we know.
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
            self.speak_again(ctx);
        }
    }

    /// Someone does not know what we know, or does not know that we know it.
    fn speak_again(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.session_pending && self.talks() {
            self.next_session(ctx);
        }
    }

    /// Nobody waits for one that has crashed.
    pub(super) fn give_up(&mut self, peer: ProcessId) {
        if self.settings.agreed {
            self.suspected.insert(peer);
        }
    }

    /// Someone is back, who may lack what was said meanwhile.
    pub(super) fn take_back(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.suspected.remove(peer) {
            self.agreed.remove(peer);
            if self.high.iter().next().is_some() {
                self.speak_again(ctx);
            }
        }
    }
}
