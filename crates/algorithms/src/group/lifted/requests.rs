//! The application's requests for locks, from request to release.

use konklave_process::{Context, Input};
use serde::Serialize;

use super::{Inner, Lifted};
use crate::group::Token;
use crate::group::locks::{Indication, LockMode, Name};
use crate::mutex;

/// The state of the application's request for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) enum RequestState {
    /// The application asked, when this many entries were known.
    Wanted(u64),
    /// The application asked and released again, and the algorithm still queues the request.
    #[serde(rename = "Unwanted")]
    Cancelled,
    /// The algorithm granted the lock, but a lease is missing or an excluded holder may be inside.
    Ready(Token),
    /// The application holds the lock.
    Held(Token),
}

impl<A: Inner> Lifted<A> {
    pub(super) fn acquire(&mut self, name: Name, ctx: &mut Context<'_, Self>) {
        match self.requests.get(&name) {
            Some(RequestState::Wanted(_) | RequestState::Ready(_) | RequestState::Held(_)) => {
                return;
            }
            // The cancelled request is still in the queue, and serves as the new one.
            Some(RequestState::Cancelled) => {
                let since = self.locks.get(&name).map_or(0, |lock| lock.count);
                self.requests.insert(name, RequestState::Wanted(since));
                return;
            }
            None => {}
        }
        let since = self.locks.get(&name).map_or(0, |lock| lock.count);
        self.requests.insert(name.clone(), RequestState::Wanted(since));
        self.want_lease(ctx);
        if self.runs(ctx.me()) {
            self.step_lock(&name, Input::Request(mutex::Request::Acquire), ctx);
        }
    }

    pub(super) fn release(&mut self, name: Name, ctx: &mut Context<'_, Self>) {
        match self.requests.get(&name) {
            Some(RequestState::Held(_) | RequestState::Ready(_)) => {
                self.requests.remove(&name);
                if self.runs(ctx.me()) {
                    self.step_lock(&name, Input::Request(mutex::Request::Release), ctx);
                }
            }
            Some(RequestState::Wanted(_)) if self.runs(ctx.me()) => {
                self.requests.insert(name, RequestState::Cancelled);
            }
            Some(RequestState::Wanted(_)) => {
                self.requests.remove(&name);
            }
            Some(RequestState::Cancelled) | None => {}
        }
    }

    /// The algorithm grants the lock `name`.
    pub(super) fn admit(&mut self, name: Name, count: u64, ctx: &mut Context<'_, Self>) {
        match self.requests.get(&name) {
            Some(RequestState::Wanted(_)) => {
                self.requests.insert(name, RequestState::Ready(self.token(count)));
                self.enter_ready(ctx);
            }
            Some(RequestState::Cancelled) => {
                self.requests.remove(&name);
                self.step_lock(&name, Input::Request(mutex::Request::Release), ctx);
            }
            Some(RequestState::Ready(_) | RequestState::Held(_)) | None => {}
        }
    }

    /// Grants the application all locks that no lease and no excluded holder holds back.
    pub(super) fn enter_ready(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.is_leased() {
            return;
        }
        for (name, state) in &mut self.requests {
            if let RequestState::Ready(token) = *state
                && (!self.excluded_may_hold || self.accounted_for.contains(name))
            {
                *state = RequestState::Held(token);
                let mode = LockMode::Exclusive;
                ctx.indicate(Indication::Granted { name: name.clone(), mode, token });
            }
        }
    }

    /// Reports all held locks to the application as lost, and releases them.
    pub(super) fn lose_all(&mut self, ctx: &mut Context<'_, Self>) {
        let held = self.requests.iter().filter(|(_, state)| matches!(state, RequestState::Held(_)));
        let names: Vec<Name> = held.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.requests.remove(&name);
            ctx.indicate(Indication::Lost { name: name.clone() });
            if self.runs(ctx.me()) {
                self.step_lock(&name, Input::Request(mutex::Request::Release), ctx);
            }
        }
    }
}
