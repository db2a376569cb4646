//! What the application wants and has, and when it may have it.

use konklave_process::{Context, Input};
use serde::Serialize;

use super::{Inner, Lifted};
use crate::group::locks::{Indication, Mode, Name, Token};
use crate::mutex;

/// Where the application stands with a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) enum Hold {
    /// It asked when there had been so many entries.
    Wanted(u64),
    /// It asked, and wants it no more.
    Unwanted,
    /// It could have it, but for the lease.
    Ready(Token),
    /// It has it.
    Held(Token),
}

impl<A: Inner> Lifted<A> {
    pub(super) fn acquire(&mut self, name: Name, ctx: &mut Context<'_, Self>) {
        match self.wishes.get(&name) {
            Some(Hold::Wanted(_) | Hold::Ready(_) | Hold::Held(_)) => return,
            // Still in the queue: it wants it again.
            Some(Hold::Unwanted) => {
                let since = self.locks.get(&name).map_or(0, |lock| lock.count);
                self.wishes.insert(name, Hold::Wanted(since));
                return;
            }
            None => {}
        }
        let since = self.locks.get(&name).map_or(0, |lock| lock.count);
        self.wishes.insert(name.clone(), Hold::Wanted(since));
        self.want_lease(ctx);
        if self.runs(ctx.me()) {
            self.drive(&name, Input::Request(mutex::Request::Acquire), ctx);
        }
    }

    pub(super) fn release(&mut self, name: Name, ctx: &mut Context<'_, Self>) {
        match self.wishes.get(&name) {
            Some(Hold::Held(_) | Hold::Ready(_)) => {
                self.wishes.remove(&name);
                if self.runs(ctx.me()) {
                    self.drive(&name, Input::Request(mutex::Request::Release), ctx);
                }
            }
            Some(Hold::Wanted(_)) if self.runs(ctx.me()) => {
                self.wishes.insert(name, Hold::Unwanted);
            }
            Some(Hold::Wanted(_)) => {
                self.wishes.remove(&name);
            }
            Some(Hold::Unwanted) | None => {}
        }
    }

    /// The algorithm lets us in.
    pub(super) fn admit(&mut self, name: Name, count: u64, ctx: &mut Context<'_, Self>) {
        match self.wishes.get(&name) {
            Some(Hold::Wanted(_)) => {
                self.wishes.insert(name, Hold::Ready(self.token(count)));
                self.enter_ready(ctx);
            }
            Some(Hold::Unwanted) => {
                self.wishes.remove(&name);
                self.drive(&name, Input::Request(mutex::Request::Release), ctx);
            }
            Some(Hold::Ready(_) | Hold::Held(_)) | None => {}
        }
    }

    /// Enters where nothing forbids it any more.
    pub(super) fn enter_ready(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.is_leased() {
            return;
        }
        for (name, hold) in &mut self.wishes {
            if let Hold::Ready(token) = *hold
                && (!self.cautious || self.known.contains(name))
            {
                *hold = Hold::Held(token);
                let mode = Mode::Exclusive;
                ctx.indicate(Indication::Granted { name: name.clone(), mode, token });
            }
        }
    }

    /// We must not rely on what we hold.
    pub(super) fn lose_all(&mut self, ctx: &mut Context<'_, Self>) {
        let held = self.wishes.iter().filter(|(_, hold)| matches!(hold, Hold::Held(_)));
        let names: Vec<Name> = held.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.wishes.remove(&name);
            ctx.indicate(Indication::Lost { name: name.clone() });
            if self.runs(ctx.me()) {
                self.drive(&name, Input::Request(mutex::Request::Release), ctx);
            }
        }
    }
}
