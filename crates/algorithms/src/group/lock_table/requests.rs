//! The requests of the application of this process.

use konklave_process::Context;

use super::{Command, LockTable, Reply, RequestState, Session};
use crate::group::locks::{Indication, Mode, Name};

impl LockTable {
    /// After a time outside the group: requests the wanted locks, and releases the lost ones.
    pub(super) fn catch_up(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(session) = self.myself(ctx.me()) else { return };
        let requests: Vec<(Name, RequestState)> =
            self.requests.iter().map(|(name, state)| (name.clone(), *state)).collect();
        for (name, state) in requests {
            match state {
                RequestState::Lost(token) => {
                    self.requests.remove(&name);
                    self.submit(Command::Release { session, name, token });
                }
                // A request that this process made in the last view is in the table or under way.
                RequestState::Wanted(request, mode) if !self.was_member => {
                    let wait = true;
                    self.submit(Command::Acquire { session, request, name, mode, wait });
                }
                RequestState::Wanted(..) | RequestState::Held(_) => {}
            }
        }
    }

    pub(super) fn on_answer(
        &mut self,
        session: Session,
        request: u64,
        reply: Reply,
        ctx: &mut Context<'_, Self>,
    ) {
        let Reply::Granted { name, mode, token } = reply else { return };
        match self.requests.get(&name) {
            Some(RequestState::Wanted(wanted, _)) if *wanted == request => {
                self.requests.insert(name.clone(), RequestState::Held(token));
                ctx.indicate(Indication::Granted { name, mode, token });
            }
            Some(RequestState::Held(held)) if *held == token => {}
            // The application has cancelled the request.
            _ => self.submit(Command::Release { session, name, token }),
        }
    }

    /// Reports all held locks to the application as lost.
    pub(super) fn lose_all(&mut self, ctx: &mut Context<'_, Self>) {
        for (name, state) in &mut self.requests {
            if let RequestState::Held(token) = *state {
                *state = RequestState::Lost(token);
                ctx.indicate(Indication::Lost { name: name.clone() });
            }
        }
    }

    pub(super) fn acquire(&mut self, name: Name, mode: Mode, ctx: &mut Context<'_, Self>) {
        match self.requests.get(&name) {
            Some(RequestState::Wanted(..) | RequestState::Held(_)) => return,
            // The table takes the lost lock for held: release it first.
            Some(RequestState::Lost(_)) => self.release(name.clone(), ctx),
            None => {}
        }
        self.last_request += 1;
        let request = self.last_request;
        self.requests.insert(name.clone(), RequestState::Wanted(request, mode));
        let member = self.view().has_member(ctx.me());
        if let Some(session) = self.myself(ctx.me()).filter(|_| member) {
            let wait = true;
            self.submit(Command::Acquire { session, request, name, mode, wait });
        }
    }

    pub(super) fn release(&mut self, name: Name, ctx: &mut Context<'_, Self>) {
        let Some(session) = self.myself(ctx.me()) else {
            self.requests.remove(&name);
            return;
        };
        match self.requests.remove(&name) {
            Some(RequestState::Held(token) | RequestState::Lost(token)) => {
                self.submit(Command::Release { session, name, token });
            }
            Some(RequestState::Wanted(request, _)) => {
                self.submit(Command::Cancel { session, request });
            }
            None => {}
        }
    }
}
