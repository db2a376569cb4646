//! The lease of a leader: promises of a majority, renewed by beats.
//!
//! A process that answers a beat promises to elect no other leader for a time E. With the answers of a majority the
//! leader may act for a little less than E, counted from the beat. So two leaders never act at once, if their clocks run
//! at nearly the same rate.

use konklave_process::{Context, ProcessId, ProcessSet};

use super::{Message, Quorum, Role, Timer};
use crate::election::Indication;

impl Quorum {
    /// Sends a beat to all; its lease counts from now.
    pub(super) fn beat(&mut self, ctx: &mut Context<'_, Self>) {
        let Role::Leader { beats, open, .. } = &mut self.role else { return };
        *beats += 1;
        let beat = *beats;
        open.push((beat, ProcessSet::new()));
        self.start_lease_at_question(beat, ctx);
        if self.rules.permits_next_beat(beat) {
            ctx.set_timer(Timer::Beat, self.rules.election / 5);
        }
        ctx.send_to_others(Message::Beat { term: self.ballot.term, beat });
        self.on_answer(ctx.me(), beat, ctx);
    }

    pub(super) fn on_beat(
        &mut self,
        from: ProcessId,
        term: u32,
        beat: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        self.catch_up(term, ctx);
        if term == self.ballot.term {
            if matches!(self.role, Role::Leader { .. }) {
                return ctx.unexpected("another leader of our term");
            }
            self.follow(Some(from), ctx);
            self.promise(ctx);
            self.wait_for_leader(ctx);
        }
        ctx.send(from, Message::BeatReply { term: self.ballot.term, beat });
    }

    /// Promises to elect no other leader for a time E.
    pub(super) fn promise(&mut self, ctx: &mut Context<'_, Self>) {
        self.loyal = true;
        ctx.set_timer(Timer::Loyalty, self.rules.election);
    }

    /// The answers of a majority to one beat are a lease.
    pub(super) fn on_answer(&mut self, from: ProcessId, beat: u32, ctx: &mut Context<'_, Self>) {
        let Role::Leader { open, .. } = &mut self.role else { return };
        let Some((_, answered)) = open.iter_mut().find(|(b, _)| *b == beat) else { return };
        answered.insert(from);
        if !Self::is_majority(answered, ctx) {
            return;
        }
        // This lease ends after those of all earlier beats.
        open.retain(|(earlier, _)| {
            if *earlier < beat {
                ctx.cancel_timer(Timer::Lease(*earlier));
            }
            *earlier > beat
        });
        self.start_lease_at_answer(beat, ctx);
        let Role::Leader { lease, .. } = &mut self.role else { return };
        match lease.replace(beat) {
            Some(before) => ctx.cancel_timer(Timer::Lease(before)),
            None => ctx.indicate(Indication::Leading { epoch: self.ballot.term }),
        }
    }

    /// The lease of this beat has ended, or it got no majority in time.
    pub(super) fn on_lease_end(&mut self, beat: u32, ctx: &mut Context<'_, Self>) {
        let Role::Leader { open, lease, .. } = &mut self.role else { return };
        if lease.is_none_or(|lease| lease == beat) && self.rules.leaves_office() {
            self.follow(None, ctx);
            self.wait_for_leader(ctx);
        } else {
            open.retain(|(b, _)| *b != beat);
        }
    }
}
