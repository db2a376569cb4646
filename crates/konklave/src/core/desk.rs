//! Who here waits and who here holds; and the locks this node keeps because nobody else wants them.
//!
//! The group grants a lock to a node. When its user lets it go and nobody waits, the node keeps it:
//! the next user here gets it without a message, with a token one higher. A request of another node
//! comes to us through the table like everything else, and has us give it back.

mod revoking;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use konklave_algorithms::group::Member;
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, oneshot};

use super::Core;
use crate::error::Error;
use crate::status::{Event, Loss};
use crate::table::{Claim, Hold, Key, Op, Refusal, Space, Waiting};
use crate::token::{KEPT_BITS, Token};

/// What someone here wants.
pub(crate) struct Wish {
    pub(crate) session: u32,
    pub(crate) key: Key,
    pub(crate) hold: Hold,
    pub(crate) wait: bool,
    pub(crate) safe: bool,
    pub(crate) priority: i32,
    pub(crate) label: Arc<str>,
    /// For how long it waits.
    pub(crate) patience: Option<Duration>,
    pub(crate) reply: oneshot::Sender<Result<Granted, Error>>,
}

/// What it gets.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) number: u64,
    pub(crate) token: Token,
    pub(crate) flag: Arc<Flag>,
}

/// Whether a grant is lost.
#[derive(Debug, Default)]
pub(crate) struct Flag {
    /// Why, as a number; zero: it is not.
    lost: AtomicU8,
    told: Notify,
}

impl Flag {
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire) != 0
    }

    /// Why it is lost, if it is.
    pub(crate) fn loss(&self) -> Option<Loss> {
        Loss::of(self.lost.load(Ordering::Acquire))
    }

    pub(crate) fn lose(&self, why: Loss) {
        self.lost.store(why.code(), Ordering::Release);
        self.told.notify_waiters();
    }

    /// Returns when it is lost.
    pub(crate) async fn lost(&self) {
        loop {
            let told = self.told.notified();
            if self.is_lost() {
                return;
            }
            told.await;
        }
    }
}

pub(super) struct Wanted {
    wish: Wish,
    deadline: Option<Duration>,
    /// Granted, but not told: the lease is not there yet.
    token: Option<(Claim, Token)>,
}

impl Wanted {
    pub(super) fn refuse_busy(self) {
        let name = self.wish.key.name.to_string();
        let _ = self.wish.reply.send(Err(Error::Busy(name)));
    }

    /// What was wanted, and until when.
    pub(super) fn into_wish(self) -> (Wish, Option<Duration>) {
        (self.wish, self.deadline)
    }
}

/// Something a session here holds.
pub(super) struct Held {
    pub(super) session: u32,
    key: Key,
    /// What the table knows it by.
    claim: Claim,
    flag: Arc<Flag>,
    /// Who has it, for people, and since when.
    pub(super) label: Arc<str>,
    pub(super) since: Duration,
}

/// A lock that was granted to this node.
struct Kept {
    /// What the table knows it by.
    claim: Claim,
    token: Token,
    safe: bool,
    /// Who here has it.
    user: Option<u64>,
    /// Since when nobody has.
    idle_since: Duration,
    /// Whom we refused it because someone here has it.
    denied: Option<Claim>,
}

impl Kept {
    fn next_token(&self) -> Option<Token> {
        let mask = (1 << KEPT_BITS) - 1;
        (self.token.k & mask < mask).then_some(Token { k: self.token.k + 1, ..self.token })
    }
}

#[derive(Default)]
pub(super) struct Desk {
    wanted: FxHashMap<u64, Wanted>,
    deadlines: BTreeSet<(Duration, u64)>,
    held: FxHashMap<u64, Held>,
    kept: FxHashMap<Key, Kept>,
    /// What was taken from someone here who has not let it go yet, and when it must have.
    taken: BTreeMap<u64, (Duration, Held)>,
    revoking: BTreeMap<u64, (Key, oneshot::Sender<Result<(), Error>>)>,
    /// When we saw whom become a holder.
    since: FxHashMap<Key, Vec<(Claim, Duration)>>,
    last: u64,
}

impl Desk {
    pub(super) fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn has_holds(&self) -> bool {
        !self.held.is_empty() || !self.kept.is_empty()
    }

    pub(super) fn first_deadline(&self) -> Option<Duration> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// What became of others' claims, and of those that were taken from us, is no business of ours any more.
    pub(super) fn forget_others(&mut self) {
        self.taken.clear();
        self.since.clear();
    }

    pub(super) fn since(&self, key: &Key, claim: Claim) -> Option<Duration> {
        self.since.get(key)?.iter().find(|(c, _)| *c == claim).map(|(_, since)| *since)
    }

    /// The highest token given here for what we hold or keep, whether someone here has it, and who, once told.
    pub(super) fn kept(&self, key: &Key, claim: Claim) -> Option<(Token, bool, Option<&Held>)> {
        let kept = self.kept.get(key).filter(|kept| kept.claim == claim)?;
        let held = kept.user.and_then(|number| self.held.get(&number));
        Some((kept.token, kept.user.is_some(), held))
    }

    /// What someone here still waits for.
    pub(super) fn wish(&self, number: u64) -> Option<&Wish> {
        self.wanted.get(&number).map(|wanted| &wanted.wish)
    }

    /// The same, unless it has been granted and only not told yet.
    pub(super) fn open_wish(&self, number: u64) -> Option<&Wish> {
        let wanted = self.wanted.get(&number).filter(|wanted| wanted.token.is_none());
        wanted.map(|wanted| &wanted.wish)
    }

    /// What was granted and not told yet is not granted any more: whether there was such a thing.
    pub(super) fn take_back(&mut self, number: u64) -> bool {
        self.wanted.get_mut(&number).is_some_and(|wanted| wanted.token.take().is_some())
    }

    /// What those here want who are `meant`, in the order in which they came.
    fn wanted_by(&self, meant: impl Fn(&Wanted) -> bool) -> Vec<u64> {
        let wanted = self.wanted.iter().filter(|(_, wanted)| meant(wanted));
        let mut numbers: Vec<u64> = wanted.map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers
    }

    pub(super) fn take_wanted(&mut self, number: u64) -> Option<Wanted> {
        let wanted = self.wanted.remove(&number)?;
        if let Some(due) = wanted.deadline {
            self.deadlines.remove(&(due, number));
        }
        Some(wanted)
    }
}

impl Core {
    /// Someone here wants something. Answers before it returns where no message is needed.
    pub(crate) fn acquire(&mut self, wish: Wish, now: Duration) -> u64 {
        self.now = self.now.max(now);
        let number = self.desk.next_number();
        let unserved = self.unserved(&wish.key, wish.hold).map_or(Ok(()), Err);
        if let Err(error) = self.is_usable(wish.session).and(unserved) {
            let _ = wish.reply.send(Err(error));
            return number;
        }
        if let Some(wish) = self.take_kept(number, wish) {
            let deadline = wish.patience.map(|patience| self.now.saturating_add(patience));
            if let Some(due) = deadline {
                self.desk.deadlines.insert((due, number));
            }
            self.desk.wanted.insert(number, Wanted { wish, deadline, token: None });
            self.ask(number);
            self.pump();
        }
        number
    }

    /// Gives a lock that we have kept, without a message, or the wish back.
    fn take_kept(&mut self, number: u64, wish: Wish) -> Option<Wish> {
        if wish.hold != Hold::Exclusive || wish.key.space != Space::Lock {
            return Some(wish);
        }
        if self.lifts(&wish.key) {
            return self.take_idle(number, wish);
        }
        if !self.desk.kept.contains_key(&wish.key) {
            return Some(wish);
        }
        let me = self.myself();
        let someone_waits = self.next_in_queue(&wish.key, me).is_some();
        let leased = self.lease.holds(self.now) && !self.unsaved;
        let Some(kept) = self.desk.kept.get_mut(&wish.key) else { return Some(wish) };
        if kept.user.is_some() && !wish.wait {
            let _ = wish.reply.send(Err(Error::Busy(wish.key.name.to_string())));
            return None;
        }
        let token = kept.next_token().filter(|_| kept.user.is_none() && kept.safe == wish.safe);
        let Some(token) = token.filter(|_| leased && !someone_waits) else { return Some(wish) };
        kept.token = token;
        kept.user = Some(number);
        let claim = kept.claim;
        self.hand_out(number, (wish, None), claim, token);
        None
    }

    /// Asks the group for what someone here wants.
    pub(super) fn ask(&mut self, number: u64) {
        let Some(wanted) = self.desk.wanted.get(&number) else { return };
        let Wish { session, ref key, hold, wait, safe, priority, ref label, .. } = wanted.wish;
        if self.lifts(key) {
            let name = key.name.clone();
            return self.ask_inside(number, &name, wait, safe);
        }
        let claim = Claim { member: self.myself(), session, number };
        let (key, label) = (key.clone(), label.clone());
        self.submit(Op::Acquire { claim, key, hold, wait, safe, priority, label });
    }

    /// After a time outside: asks for everything again.
    pub(super) fn ask_anew(&mut self) {
        for number in self.desk.wanted_by(|_| true) {
            if let Some(wanted) = self.desk.wanted.get_mut(&number) {
                wanted.token = None;
            }
            self.ask(number);
        }
    }

    pub(super) fn on_granted(&mut self, claim: Claim, key: Key, token: Token) {
        if claim.member != self.myself() {
            return;
        }
        let exclusive = self.table.lock(&key).is_some_and(|lock| {
            lock.holders.iter().any(|g| g.claim == claim && g.hold == Hold::Exclusive)
        });
        let keeps = key.space == Space::Lock && exclusive;
        let wanted = self.desk.take_wanted(claim.number);
        if keeps {
            let safe = self.table.lock(&key).is_some_and(|l| l.holders.iter().any(|g| g.safe));
            let user = wanted.as_ref().map(|_| claim.number);
            let idle_since = self.now;
            let kept = Kept { claim, token, safe, user, idle_since, denied: None };
            self.desk.kept.insert(key.clone(), kept);
        }
        match wanted {
            Some(wanted) => self.hand_out(claim.number, wanted.into_wish(), claim, token),
            // It has been given up meanwhile.
            None if keeps => self.decide(&key),
            None => self.submit(Op::Release { claim, key }),
        }
    }

    /// Tells who wanted it that it has it, as soon as that is safe to say.
    pub(super) fn hand_out(
        &mut self,
        number: u64,
        (wish, deadline): (Wish, Option<Duration>),
        claim: Claim,
        token: Token,
    ) {
        if !self.lease.holds(self.now) || self.unsaved {
            self.desk.deadlines.extend(deadline.map(|due| (due, number)));
            let waits = Wanted { wish, deadline, token: Some((claim, token)) };
            self.desk.wanted.insert(number, waits);
            return;
        }
        self.streak.one_more();
        self.waits.served = true;
        let flag = Arc::new(Flag::default());
        if !self.is_unheard() {
            self.tell(Event::Granted { name: wish.key.name.to_string(), token });
        }
        let Wish { session, key, label, reply, .. } = wish;
        let held = Held { session, key, claim, flag: flag.clone(), label, since: self.now };
        self.desk.held.insert(number, held);
        if reply.send(Ok(Granted { number, token, flag })).is_err() {
            self.release(number);
        }
    }

    /// Tells those whose grant had to wait for a lease.
    pub(super) fn hand_out_late(&mut self) {
        for number in self.desk.wanted_by(|wanted| wanted.token.is_some()) {
            if let Some((claim, token)) = self.desk.wanted.get(&number).and_then(|w| w.token)
                && let Some(wanted) = self.desk.take_wanted(number)
            {
                self.hand_out(number, wanted.into_wish(), claim, token);
            }
        }
        self.advance_all();
    }

    pub(super) fn on_refused(&mut self, claim: Claim, key: &Key, why: Refusal) {
        if claim.member != self.myself() {
            return;
        }
        let Some(wanted) = self.desk.take_wanted(claim.number) else { return };
        let name = key.name.to_string();
        let error = match (why, wanted.wish.hold) {
            (Refusal::Permits { of }, Hold::Permit { of: asked }) => {
                Error::Permits { name, of, asked }
            }
            (Refusal::Permits { .. } | Refusal::Busy, _) => Error::Busy(name),
        };
        let _ = wanted.wish.reply.send(Err(error));
    }

    /// What must be on disk is there: before, nothing is granted.
    pub(crate) fn saved(&mut self) {
        self.unsaved = false;
        if self.lease.holds(self.now) {
            self.hand_out_late();
            self.pump();
        }
    }

    /// Who here has it no more is told; the table is not.
    pub(super) fn lose(&mut self, number: u64, why: Loss) -> Option<Held> {
        let held = self.desk.held.remove(&number)?;
        held.flag.lose(why);
        self.tell(Event::Lost { name: held.key.name.to_string(), why });
        Some(held)
    }

    /// Gives back what a session here held.
    pub(crate) fn release(&mut self, number: u64) -> bool {
        let Some(held) = self.desk.held.remove(&number) else {
            return self.let_go_taken(number);
        };
        self.give_back(number, held.key, held.claim);
        true
    }

    fn give_back(&mut self, number: u64, key: Key, claim: Claim) {
        if self.lifts(&key) {
            return self.let_go(number, &key.name, false);
        }
        match self.desk.kept.get_mut(&key) {
            Some(kept) if kept.user == Some(number) => {
                (kept.user, kept.idle_since) = (None, self.now);
                self.decide(&key);
            }
            Some(_) | None => self.submit(Op::Release { claim, key }),
        }
        self.pump();
    }

    /// Nobody here waits for this any more. If it was granted meanwhile, it goes back.
    pub(crate) fn abandon(&mut self, number: u64) {
        if self.release(number) {
            return;
        }
        let Some(wanted) = self.desk.take_wanted(number) else { return };
        self.withdraw(number, &wanted);
        self.pump();
    }

    fn withdraw(&mut self, number: u64, wanted: &Wanted) {
        let name = &wanted.wish.key.name;
        if self.lifts(&wanted.wish.key) {
            return match wanted.token {
                Some(_) => self.let_go(number, name, false),
                None => self.give_up(number, name),
            };
        }
        let (key, session) = (wanted.wish.key.clone(), wanted.wish.session);
        match wanted.token {
            Some((claim, _)) => self.give_back(number, key, claim),
            None => {
                let claim = Claim { member: self.myself(), session, number };
                self.submit(Op::Cancel { claim, key });
            }
        }
    }

    pub(super) fn expire_wishes(&mut self) {
        while let Some((due, number)) = self.desk.deadlines.first().copied()
            && due <= self.now
        {
            self.desk.deadlines.remove(&(due, number));
            let Some(wanted) = self.desk.wanted.remove(&number) else { continue };
            self.withdraw(number, &wanted);
            let name = wanted.wish.key.name.to_string();
            let _ = wanted.wish.reply.send(Err(Error::TimedOut(name)));
        }
    }

    /// We are gone for good.
    pub(super) fn fail_wishes(&mut self) {
        self.desk.deadlines.clear();
        for number in self.desk.wanted_by(|_| true) {
            if let Some(wanted) = self.desk.wanted.remove(&number) {
                let _ = wanted.wish.reply.send(Err(Error::Left));
            }
        }
    }

    /// Who is next, of those who have not been served or given up.
    fn next_in_queue(&self, key: &Key, me: Member) -> Option<&Waiting> {
        let denied = self.desk.kept.get(key).and_then(|kept| kept.denied);
        let still = |w: &&Waiting| {
            let given_up = w.claim.member == me && !self.desk.wanted.contains_key(&w.claim.number);
            !given_up && denied != Some(w.claim)
        };
        self.table.lock(key)?.queue.iter().find(still)
    }

    /// What to do with a lock that was granted to this node: someone waits, or nobody has it.
    pub(super) fn decide(&mut self, key: &Key) {
        if !self.desk.kept.contains_key(key) {
            return;
        }
        let me = self.myself();
        let next = self.next_in_queue(key, me).cloned();
        let Some(kept) = self.desk.kept.get_mut(key) else { return };
        let Some(next) = next else { return };
        if kept.user.is_some() {
            if !next.wait {
                kept.denied = Some(next.claim);
                self.submit(Op::Deny { claim: next.claim, key: key.clone() });
            }
            return;
        }
        // Who wants it safely has it when the group knows that: of who has had it fast so far it does not.
        let local =
            next.claim.member == me && next.hold == Hold::Exclusive && (kept.safe || !next.safe);
        if let Some(token) = kept.next_token().filter(|_| local) {
            let from = std::mem::replace(&mut kept.claim, next.claim);
            (kept.token, kept.safe, kept.user) = (token, next.safe, Some(next.claim.number));
            self.submit(Op::Pass { key: key.clone(), from, to: next.claim, token });
            if let Some(wanted) = self.desk.take_wanted(next.claim.number) {
                self.hand_out(next.claim.number, wanted.into_wish(), next.claim, token);
            }
        } else {
            let claim = kept.claim;
            self.desk.kept.remove(key);
            self.submit(Op::Release { claim, key: key.clone() });
        }
    }

    /// Gives back what nobody here has used for a while.
    pub(super) fn drop_idle(&mut self) {
        let (now, keep) = (self.now, self.config.timings.keep);
        let idle = |k: &Kept| k.user.is_none() && k.idle_since.saturating_add(keep) <= now;
        let mut old: Vec<(Key, Claim)> = self
            .desk
            .kept
            .iter()
            .filter(|(_, k)| idle(k))
            .map(|(key, k)| (key.clone(), k.claim))
            .collect();
        old.sort_unstable();
        for (key, claim) in old {
            self.desk.kept.remove(&key);
            self.submit(Op::Release { claim, key });
        }
    }

    /// We may hold nothing any more: the others may have gone on without us.
    pub(super) fn lose_everything(&mut self, why: Loss) {
        let late = self.take_back_late();
        let mut numbers: Vec<u64> = self.desk.held.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            let Some(held) = self.lose(number, why) else { continue };
            if self.lifts(&held.key) {
                self.let_go(number, &held.key.name, true);
            } else if !self.desk.kept.contains_key(&held.key) {
                self.submit(Op::Release { claim: held.claim, key: held.key });
            }
        }
        let mut kept: Vec<(Key, Claim)> =
            self.desk.kept.drain().map(|(key, kept)| (key, kept.claim)).collect();
        kept.sort_unstable();
        for (key, claim) in kept {
            self.submit(Op::Release { claim, key });
        }
        late.into_iter().for_each(|number| self.ask(number));
    }

    /// What was granted and not yet told goes back, to be asked for again.
    fn take_back_late(&mut self) -> Vec<u64> {
        let numbers = self.desk.wanted_by(|wanted| wanted.token.is_some());
        for number in &numbers {
            let Some(wanted) = self.desk.wanted.get_mut(number) else { continue };
            let key = wanted.wish.key.clone();
            let Some((claim, _)) = wanted.token.take() else { continue };
            if self.lifts(&key) {
                self.let_go(*number, &key.name, true);
            } else if !self.desk.kept.contains_key(&key) {
                self.submit(Op::Release { claim, key });
            }
        }
        numbers
    }

    /// A session here is over.
    pub(super) fn end_claims(&mut self, session: u32) {
        for number in self.desk.wanted_by(|wanted| wanted.wish.session == session) {
            if let Some(wanted) = self.desk.take_wanted(number) {
                self.withdraw(number, &wanted);
                let _ = wanted.wish.reply.send(Err(Error::Closed));
            }
        }
        let held = |(n, h): (&u64, &Held)| (h.session == session).then_some(*n);
        let mut held: Vec<u64> = self.desk.held.iter().filter_map(held).collect();
        held.sort_unstable();
        for number in held {
            if let Some(held) = self.lose(number, Loss::Closed) {
                self.give_back(number, held.key, held.claim);
            }
        }
        let taken = |(n, (_, h)): (&u64, &(Duration, Held))| (h.session == session).then_some(*n);
        let taken: Vec<u64> = self.desk.taken.iter().filter_map(taken).collect();
        taken.into_iter().for_each(|number| _ = self.let_go_taken(number));
    }

    pub(super) fn on_changed(&mut self, key: &Key) {
        let holders = self.table.lock(key).map_or(&[][..], |lock| &lock.holders);
        let holders = holders.iter().map(|g| g.claim);
        let known = self.desk.since.get(key).map_or(&[][..], Vec::as_slice);
        if holders.clone().eq(known.iter().map(|(claim, _)| *claim)) {
            return self.tell_observers(key);
        }
        let holders: Vec<Claim> = holders.collect();
        let now = self.now;
        let since = self.desk.since.entry(key.clone()).or_default();
        let gone = since.iter().filter(|(claim, _)| !holders.contains(claim));
        let gone: Vec<_> = gone.map(|(claim, _)| claim.member.id).collect();
        since.retain(|(claim, _)| holders.contains(claim));
        let mut new = holders;
        new.retain(|claim| since.iter().all(|(known, _)| known != claim));
        since.extend(new.iter().map(|claim| (*claim, now)));
        if since.is_empty() {
            self.desk.since.remove(key);
        }
        self.tell_changes(key, &gone, &new);
        self.tell_observers(key);
    }
}
