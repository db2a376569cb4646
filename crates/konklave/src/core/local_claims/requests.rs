//! Requests of local sessions, from the call to the grant, the refusal or the timeout.

use std::sync::Arc;
use std::time::Duration;

use super::{
    CachedLock, Core, Granted, LocalGrant, LocalRequest, LossFlag, Output, PendingRequest,
    in_millis,
};
use crate::error::Error;
use crate::status::Event;
use crate::table::{ClaimId, Key, LockMode, Op, Refusal, Space};
use crate::token::Token;

impl Core {
    /// Handles a request of a local session. If no message is needed, the answer is sent before this returns.
    pub(crate) fn acquire(&mut self, request: LocalRequest, now: Duration) -> u64 {
        self.now = self.now.max(now);
        let number = self.claims.next_number();
        let supported = self.unsupported(&request).map_or(Ok(()), Err);
        if let Err(error) = self.is_usable(request.session).and(supported) {
            let _ = request.reply.send(Err(error));
            return number;
        }
        self.note_lease(request.lease);
        if let Some(request) = self.grant_from_cache(number, request) {
            let deadline = request.patience.map(|patience| self.now.saturating_add(patience));
            if let Some(due) = deadline {
                self.claims.deadlines.insert((due, number));
            }
            self.claims.pending.insert(number, PendingRequest { request, deadline, token: None });
            self.ask(number);
            self.pump();
        }
        number
    }

    /// Serves a request from the cache, without a message. Returns the request if that is impossible.
    fn grant_from_cache(&mut self, number: u64, request: LocalRequest) -> Option<LocalRequest> {
        let cacheable = request.mode == LockMode::Exclusive && request.key.space == Space::Lock;
        if !cacheable || request.adopt.is_some() {
            return Some(request);
        }
        if self.lifts(&request.key) {
            return self.grant_idle(number, request);
        }
        if !self.claims.cached.contains_key(&request.key) {
            return Some(request);
        }
        let me = self.own_member();
        let someone_waits = self.next_in_queue(&request.key, me).is_some();
        let leased = self.lease.holds(request.lease, self.now) && !self.unsaved;
        let Some(cached) = self.claims.cached.get_mut(&request.key) else { return Some(request) };
        if cached.user.is_some() && !request.wait {
            let _ = request.reply.send(Err(Error::Busy(request.key.name.to_string())));
            return None;
        }
        let fits = cached.safe == request.safe && request.lease <= cached.lease;
        let token = cached.next_token().filter(|_| cached.user.is_none() && fits);
        let Some(token) = token.filter(|_| leased && !someone_waits) else { return Some(request) };
        cached.token = token;
        cached.user = Some(number);
        let claim = cached.claim;
        self.deliver_grant(number, (request, None), claim, token);
        None
    }

    /// Sends a request to the group, or to the lifted algorithm.
    pub(in crate::core) fn ask(&mut self, number: u64) {
        let Some(pending) = self.claims.pending.get(&number) else { return };
        let LocalRequest { session, ref key, mode, wait, safe, priority, ref label, .. } =
            pending.request;
        if self.lifts(key) {
            let name = key.name.clone();
            return self.request_lifted(number, &name, wait, safe);
        }
        let claim = ClaimId { member: self.own_member(), session, number };
        let (lease, adopt) = (in_millis(pending.request.lease), pending.request.adopt);
        let (key, label) = (key.clone(), label.clone());
        self.submit(match adopt {
            Some(token) => Op::Adopt { claim, key, token },
            None => Op::Acquire { claim, key, mode, wait, safe, lease, priority, label },
        });
    }

    /// Why this group cannot serve a request, if it cannot.
    fn unsupported(&self, request: &LocalRequest) -> Option<Error> {
        let timings = &self.config.timings;
        let name = || request.key.name.to_string();
        if self.lifts(&request.key) && request.adopt.is_some() {
            return Some(Error::Lost(name()));
        }
        if self.lifts(&request.key) && request.lease != timings.lease {
            return Some(Error::OnlyGroupLease {
                name: name(),
                algorithm: self.config.lock_algorithm,
            });
        }
        let lease = timings.check_lease(request.lease).err();
        lease.or_else(|| self.unsupported_mode(&request.key, request.mode))
    }

    /// Notes a lease that is longer than the group's, on disk before it is used: after all members were down, a
    /// group is founded only when its holders are gone. The note is removed when none has it any more.
    fn note_lease(&mut self, lease: Duration) {
        let lease = in_millis(lease);
        let longer = lease > self.record.longest_lease.max(in_millis(self.config.timings.lease));
        if longer && self.config.holders_outlive {
            self.record.longest_lease = lease;
            self.unsaved = true;
            self.out.push(Output::Save(self.record.clone()));
        }
    }

    /// Removes the note of a longer lease when no holder can have it any more.
    pub(in crate::core) fn forget_longer_leases(&mut self) {
        let over = self.forming.are_grants_over();
        if self.record.longest_lease > 0
            && over
            && !self.claims.any_longer(self.config.timings.lease)
        {
            self.record.longest_lease = 0;
            self.out.push(Output::Note(self.record.clone()));
        }
    }

    /// Submits all pending requests again after this node rejoined the group: the group dropped the old ones.
    pub(in crate::core) fn resubmit_requests(&mut self) {
        for number in self.claims.pending_where(|_| true) {
            if let Some(pending) = self.claims.pending.get_mut(&number) {
                pending.token = None;
            }
            self.ask(number);
        }
    }

    pub(in crate::core) fn on_granted(&mut self, claim: ClaimId, key: Key, token: Token) {
        if claim.member != self.own_member() {
            return;
        }
        let holders = self.table.lock(&key).map_or(&[][..], |lock| &lock.holders);
        let grant = holders.iter().find(|g| g.claim == claim);
        let exclusive = grant.is_some_and(|g| g.mode == LockMode::Exclusive);
        let safe = grant.is_some_and(|g| g.safe);
        let lease = Duration::from_millis(grant.map_or(0, |g| g.lease).into());
        let keeps = key.space == Space::Lock && exclusive;
        let mut pending = self.claims.remove_pending(claim.number);
        if let Some(PendingRequest { request, .. }) = &mut pending {
            // A client that takes over a grant may not remember its lease: the lease in the table counts.
            request.lease = request.lease.min(lease);
        }
        if keeps {
            let user = pending.as_ref().map(|_| claim.number);
            let idle_since = self.now;
            let cached = CachedLock { claim, token, safe, lease, user, idle_since, denied: None };
            self.claims.remove_cached(&key);
            self.claims.count_lease(lease);
            self.claims.cached.insert(key.clone(), cached);
        }
        match pending {
            Some(pending) => self.deliver_grant(claim.number, pending.into_request(), claim, token),
            // The request was withdrawn in the meantime.
            None if keeps => self.serve_queue(&key),
            None => self.submit(Op::Release { claim, key }),
        }
    }

    /// Delivers a grant to the session that requested it, or holds it back until there is a lease and the
    /// disk has caught up.
    pub(in crate::core) fn deliver_grant(
        &mut self,
        number: u64,
        (request, deadline): (LocalRequest, Option<Duration>),
        claim: ClaimId,
        token: Token,
    ) {
        if !self.lease.holds(request.lease, self.now) || self.unsaved {
            self.claims.awaits_renewal = true;
            self.claims.deadlines.extend(deadline.map(|due| (due, number)));
            let waits = PendingRequest { request, deadline, token: Some((claim, token)) };
            self.claims.pending.insert(number, waits);
            return;
        }
        self.grant_budget.spend();
        self.flush_state.granted_locally = true;
        let flag = Arc::new(LossFlag::default());
        if !self.has_no_receivers() {
            self.publish(Event::Granted { name: request.key.name.to_string(), token });
        }
        let LocalRequest { session, key, label, lease, reply, .. } = request;
        let (since, own) = (self.now, flag.clone());
        let held = LocalGrant { session, key, claim, flag: own, label, since, lease };
        self.claims.count_lease(lease);
        self.claims.held.insert(number, held);
        if reply.send(Ok(Granted { number, token, flag, lease })).is_err() {
            self.release(number);
        }
    }

    /// Delivers held-back grants: a lease has begun, or the disk has caught up.
    pub(in crate::core) fn deliver_held_back_grants(&mut self) {
        self.claims.awaits_renewal = false;
        for number in self.claims.pending_where(|pending| pending.token.is_some()) {
            if let Some((claim, token)) = self.claims.pending.get(&number).and_then(|w| w.token)
                && let Some(pending) = self.claims.remove_pending(number)
            {
                self.deliver_grant(number, pending.into_request(), claim, token);
            }
        }
        self.advance_all();
    }

    pub(in crate::core) fn on_refused(&mut self, claim: ClaimId, key: &Key, why: Refusal) {
        if claim.member != self.own_member() {
            return;
        }
        let Some(pending) = self.claims.remove_pending(claim.number) else { return };
        let name = key.name.to_string();
        let error = match (why, pending.request.mode) {
            (Refusal::Permits { of }, LockMode::Permit { of: asked }) => {
                Error::Permits { name, of, asked }
            }
            (Refusal::Permits { .. } | Refusal::Busy, _) => Error::Busy(name),
            (Refusal::Gone, _) => Error::Lost(name),
        };
        let _ = pending.request.reply.send(Err(error));
    }

    /// The disk has caught up: held-back grants may be delivered.
    pub(crate) fn saved(&mut self) {
        self.unsaved = false;
        if self.is_leased() || self.claims.awaits_renewal() {
            self.deliver_held_back_grants();
            self.pump();
        }
    }

    /// Withdraws a request whose future was dropped. If it has been granted in the meantime, releases it.
    pub(crate) fn abandon(&mut self, number: u64) {
        if self.release(number) {
            return;
        }
        let Some(pending) = self.claims.remove_pending(number) else { return };
        self.withdraw(number, &pending);
        self.pump();
    }

    pub(super) fn withdraw(&mut self, number: u64, pending: &PendingRequest) {
        let name = &pending.request.key.name;
        if self.lifts(&pending.request.key) {
            return match pending.token {
                Some(_) => self.release_lifted(number, name, false),
                None => self.drop_queued(number, name),
            };
        }
        let (key, session) = (pending.request.key.clone(), pending.request.session);
        match pending.token {
            Some((claim, _)) => self.give_back(number, key, claim),
            None => {
                let claim = ClaimId { member: self.own_member(), session, number };
                self.submit(Op::Cancel { claim, key });
            }
        }
    }

    pub(in crate::core) fn expire_requests(&mut self) {
        while let Some((due, number)) = self.claims.deadlines.first().copied()
            && due <= self.now
        {
            self.claims.deadlines.remove(&(due, number));
            let Some(pending) = self.claims.pending.remove(&number) else { continue };
            self.withdraw(number, &pending);
            let name = pending.request.key.name.to_string();
            let _ = pending.request.reply.send(Err(Error::TimedOut(name)));
        }
    }

    /// The node has left for good: fails all pending requests.
    pub(in crate::core) fn fail_requests(&mut self) {
        self.claims.deadlines.clear();
        for number in self.claims.pending_where(|_| true) {
            if let Some(pending) = self.claims.pending.remove(&number) {
                let _ = pending.request.reply.send(Err(Error::Left));
            }
        }
    }
}
