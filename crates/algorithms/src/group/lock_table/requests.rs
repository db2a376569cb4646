//! The requests of the application of this process.

use konklave_process::Context;
use serde::Serialize;

use super::{LockTable, Member, Op};
use crate::group::Token;
use crate::group::locks::{Indication, Name};
use crate::group::table::{ClaimId, Key, LockMode, Space};

/// The state of the application's request for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) enum RequestState {
    /// The application asked.
    Wanted(LockRequest),
    /// The application holds the lock, with this token.
    Held(LockRequest, Token),
    /// The application was told that the lock is lost, and the table does not know of it yet.
    Lost(LockRequest),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct LockRequest {
    number: u64,
    mode: LockMode,
    wait: bool,
    priority: i32,
    /// The grant to take over, for a client that went on while this process restarted.
    adopt: Option<Token>,
}

impl LockRequest {
    fn claim(self, member: Member) -> ClaimId {
        ClaimId { member, session: 0, number: self.number }
    }

    fn key(self, name: &Name) -> Key {
        let space = match self.mode {
            LockMode::Exclusive | LockMode::Shared => Space::Lock,
            LockMode::Permit { .. } => Space::Semaphore,
        };
        Key { space, name: name.clone() }
    }
}

impl LockTable {
    /// After a time outside the group: releases the lost locks, and requests the wanted ones.
    pub(super) fn catch_up(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(me) = self.myself(ctx.me()) else { return };
        for (name, request) in self.drop_lost() {
            self.submit(Op::Release { claim: request.claim(me), key: request.key(&name) });
        }
        // A request that this process made in the last view is in the table or under way.
        let wanted = |(name, state): (&Name, &RequestState)| match state {
            RequestState::Wanted(request) if !self.was_member => Some((name.clone(), *request)),
            _ => None,
        };
        let wanted: Vec<(Name, LockRequest)> = self.requests.iter().filter_map(wanted).collect();
        wanted.iter().for_each(|(name, request)| self.ask(me, name, *request));
    }

    /// Removes the requests whose locks are lost, and returns them.
    pub(super) fn drop_lost(&mut self) -> Vec<(Name, LockRequest)> {
        let lost = |(name, state): (&Name, &RequestState)| match state {
            RequestState::Lost(request) => Some((name.clone(), *request)),
            _ => None,
        };
        let lost: Vec<(Name, LockRequest)> = self.requests.iter().filter_map(lost).collect();
        lost.iter().for_each(|(name, _)| self.want_next(name));
        lost
    }

    fn ask(&mut self, me: Member, name: &Name, request: LockRequest) {
        let LockRequest { mode, wait, priority, .. } = request;
        let (claim, key) = (request.claim(me), request.key(name));
        let ((safe, lease), label) = (self.safety(), "".into());
        self.submit(match request.adopt {
            Some(token) => Op::Adopt { claim, key, token },
            None => Op::Acquire { claim, key, mode, wait, safe, lease, priority, label },
        });
    }

    /// The application's request with this claim, if it is still in this state.
    fn request_of(&self, claim: ClaimId, key: &Key) -> Option<RequestState> {
        let state = self.requests.get(&key.name).copied()?;
        let (RequestState::Wanted(r) | RequestState::Held(r, _) | RequestState::Lost(r)) = state;
        (r.number == claim.number).then_some(state)
    }

    pub(super) fn on_granted(
        &mut self,
        claim: ClaimId,
        key: Key,
        token: Token,
        ctx: &mut Context<'_, Self>,
    ) {
        let name = key.name.clone();
        match self.request_of(claim, &key) {
            Some(RequestState::Wanted(request)) => self.hold(name, request, token, ctx),
            Some(RequestState::Held(..) | RequestState::Lost(_)) => {}
            // The application has cancelled the request, and the grant was ordered first.
            None if self.keeps_cancelled() => {}
            None => self.submit(Op::Release { claim, key }),
        }
    }

    fn hold(
        &mut self,
        name: Name,
        request: LockRequest,
        token: Token,
        ctx: &mut Context<'_, Self>,
    ) {
        self.requests.insert(name.clone(), RequestState::Held(request, token));
        ctx.indicate(Indication::Granted { name, mode: request.mode, token });
    }

    /// The application's request for this lock is over: its next one takes the place.
    fn want_next(&mut self, name: &Name) {
        match self.next.remove(name) {
            Some(next) => self.requests.insert(name.clone(), RequestState::Wanted(next)),
            None => self.requests.remove(name),
        };
    }

    pub(super) fn clear_requests(&mut self) {
        self.requests.clear();
        self.next.clear();
    }

    pub(super) fn on_refused(&mut self, claim: ClaimId, key: &Key, ctx: &mut Context<'_, Self>) {
        if let Some(RequestState::Wanted(_)) = self.request_of(claim, key) {
            self.requests.remove(&key.name);
            ctx.indicate(Indication::Refused { name: key.name.clone() });
        }
    }

    /// An operator revoked the grant. It stays in the table until this process releases it.
    pub(super) fn on_grant_revoked(
        &mut self,
        claim: ClaimId,
        key: Key,
        ctx: &mut Context<'_, Self>,
    ) {
        if let Some(RequestState::Held(..)) = self.request_of(claim, &key) {
            self.want_next(&key.name);
            ctx.indicate(Indication::Lost { name: key.name.clone() });
            self.submit(Op::Release { claim, key });
        }
    }

    /// A request is queued behind a lock that is held here. If the request does not wait, it is denied.
    pub(super) fn deny(&mut self, me: Member, key: &Key) {
        let Some(lock) = self.table.lock(key) else { return };
        let mine = lock.holders.iter().any(|grant| grant.claim.member == me);
        if let Some(next) = lock.queue.front().filter(|next| mine && !next.wait) {
            self.submit(Op::Deny { claim: next.claim, key: key.clone() });
        }
    }

    /// Reports all held locks to the application as lost.
    pub(super) fn lose_all(&mut self, ctx: &mut Context<'_, Self>) {
        for (name, state) in &mut self.requests {
            if let RequestState::Held(request, _) = *state {
                *state = RequestState::Lost(request);
                ctx.indicate(Indication::Lost { name: name.clone() });
            }
        }
    }

    pub(super) fn acquire(
        &mut self,
        name: Name,
        (mode, wait, priority): (LockMode, bool, i32),
        ctx: &mut Context<'_, Self>,
    ) {
        let request = LockRequest { number: 0, mode, wait, priority, adopt: None };
        self.want(name, request, ctx);
    }

    /// The client went on while this process restarted: takes its grant over.
    pub(super) fn adopt(&mut self, name: Name, token: Token, ctx: &mut Context<'_, Self>) {
        let (mode, wait, priority) = (LockMode::Exclusive, true, 0);
        let request = LockRequest { number: 0, mode, wait, priority, adopt: Some(token) };
        self.want(name, request, ctx);
    }

    fn want(&mut self, name: Name, request: LockRequest, ctx: &mut Context<'_, Self>) {
        match self.requests.get(&name) {
            Some(RequestState::Held(held, _)) if self.may_queue(&name, *held, request) => {}
            Some(RequestState::Wanted(_) | RequestState::Held(..)) => return,
            // The table takes the lost lock for held: release it first.
            Some(RequestState::Lost(_)) => self.release(&name, ctx),
            None => {}
        }
        let request = LockRequest { number: self.next_number(), ..request };
        if self.requests.contains_key(&name) {
            self.next.insert(name.clone(), request);
        } else {
            self.requests.insert(name.clone(), RequestState::Wanted(request));
        }
        let member = self.view().has_member(ctx.me());
        if let Some(me) = self.myself(ctx.me()).filter(|_| member) {
            self.ask(me, &name, request);
        }
    }

    /// Whether the application may ask for the next time while it holds the lock.
    fn may_queue(&self, name: &Name, held: LockRequest, next: LockRequest) -> bool {
        let alone = |request: LockRequest| request.mode == LockMode::Exclusive;
        !self.next.contains_key(name) && alone(held) && alone(next)
    }

    fn next_number(&mut self) -> u64 {
        self.last_request += 1;
        self.last_request
    }

    pub(super) fn release(&mut self, name: &Name, ctx: &mut Context<'_, Self>) {
        let Some(state) = self.requests.get(name).copied() else { return };
        let next = self.next.get(name).copied();
        self.want_next(name);
        let Some(me) = self.myself(ctx.me()) else { return };
        match (state, self.is_next(me, name, next)) {
            (RequestState::Held(request, token), Some(next)) => {
                let (key, from, to) = (request.key(name), request.claim(me), next.claim(me));
                let k = if self.keeps_token() { token.k } else { token.k + 1 };
                let token = Token { k, ..token };
                self.submit(Op::Pass { key, from, to, token });
                self.hold(name.clone(), next, token, ctx);
            }
            (RequestState::Held(request, _) | RequestState::Lost(request), _) => {
                self.submit(Op::Release { claim: request.claim(me), key: request.key(name) });
            }
            (RequestState::Wanted(request), _) => {
                self.submit(Op::Cancel { claim: request.claim(me), key: request.key(name) });
            }
        }
    }

    /// The next request of this application, if it is the next in the queue: then this member passes the
    /// lock to it at once, with a token of its own, and tells the group.
    fn is_next(&self, me: Member, name: &Name, next: Option<LockRequest>) -> Option<LockRequest> {
        let next = next?;
        let queue = &self.table.lock(&next.key(name))?.queue;
        queue.front().is_some_and(|waiting| waiting.claim == next.claim(me)).then_some(next)
    }

    /// An operator revokes the lock, whoever holds it.
    pub(super) fn revoke(&mut self, name: &Name, ctx: &mut Context<'_, Self>) {
        let Some(member) = self.myself(ctx.me()) else { return };
        let claim = ClaimId { member, session: 0, number: self.next_number() };
        let key = Key { space: Space::Lock, name: name.clone() };
        self.submit(Op::Revoke { claim, key, token: None });
    }
}
