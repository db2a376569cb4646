//! The rules of the token ring that a switch or a mistake changes.

use std::time::Duration;

use konklave_process::Context;

use super::sheet::SHEET;
use super::{Timer, TokenRing};
use crate::{Mistake, Setup};

pub(super) const KEEPS_TOKEN: Mistake = Mistake {
    name: "keeps-token",
    what: "a process that leaves keeps the token until a wake-up call arrives, and may enter again and again",
    breaks: "bounded bypass",
    caught_by: "-n 2 --requests 3,1 --property bypass:1",
};
pub(super) const NO_EPOCH: Mistake = Mistake {
    name: "no-epoch",
    what: "a new token is like the old one, which was only late and not lost: now there are two",
    breaks: "one token",
    caught_by: "-n 3 --requests 1,1,0 --crash 1",
};

/// The switches and the mistakes of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Whether the token rests while no process wants it.
    pub(super) parks: bool,
    /// The wait of a process before it asks whether the token is lost.
    pub(super) patience: Option<Duration>,
    keeps_token: bool,
    no_epoch: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        let rounds = setup.chosen(&SHEET, "patience").number();
        Self {
            parks: setup.chosen(&SHEET, "mode").is("parking"),
            patience: (rounds > 0).then(|| setup.unit * setup.group.len() as u32 * rounds),
            keeps_token: *setup.makes(&KEEPS_TOKEN),
            no_epoch: *setup.makes(&NO_EPOCH),
        }
    }

    /// Whether the token rests after `idle` processes that did not want it.
    pub(super) fn rests(self, idle: u32, group_size: usize) -> bool {
        self.parks && idle as usize >= group_size
    }

    /// A wake-up call has no effect on a process that wants the token: after its turn the token makes a whole round.
    pub(super) fn remembers_call(self) -> bool {
        self.keeps_token
    }

    /// The epoch that a token carries.
    pub(super) fn epoch_of_token(self, epoch: u32) -> u32 {
        if self.no_epoch { 0 } else { epoch }
    }

    /// A token of an earlier epoch is void.
    pub(super) fn is_void(self, token: u32, epoch: u32) -> bool {
        token < epoch && !self.no_epoch
    }

    /// Whether the judges count a token of this epoch. A later token may meet an older one on its way, which no process
    /// accepts.
    pub(super) fn counts_token(self, epoch: u32) -> bool {
        epoch == 0 || self.no_epoch
    }
}

impl TokenRing {
    /// A process that leaves passes the token on, also if it wants to enter again.
    pub(super) fn pass_on_after_release(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.rules.keeps_token || std::mem::take(&mut self.called) {
            self.pass_on(ctx);
        }
    }

    /// Scenario: an epoch takes time to begin, and the holder keeps the token meanwhile. If each wait were equally
    /// short, epoch would follow epoch and the token would not move; so each wait is twice as long as the last.
    pub(super) fn be_patient(&self, ctx: &mut Context<'_, Self>) {
        const MOST_DOUBLED: u32 = 16;
        if let Some(patience) = self.rules.patience {
            let factor = 1 << self.alarms.min(MOST_DOUBLED);
            ctx.set_timer(Timer::Patience, patience.saturating_mul(factor));
        }
    }
}
