//! A new token when the old one may be lost.
//!
//! If the coordinator, the survivor with the highest id, learns of a crash, it asks all processes to join an epoch. A
//! process that joins accepts no older token any more, and no message of a crashed process; it reports whether it has
//! the token. After all have joined, the process with the token continues. If there is none, the token is lost, or will
//! be dropped where it arrives: only then the coordinator makes a new one.
//!
//! No process enters in an epoch before all have joined it. So the coordinator of the next epoch knows of it, and fences
//! grow. This needs right suspicions: a process that is suspected wrongly is not asked, and may be inside. Its fence is
//! then still lower than those of later epochs.

use std::sync::Arc;

use konklave_process::{Context, Group, ProcessId, ProcessSet};
use serde::Serialize;

use super::{Message, State, Token, TokenRing};

/// An epoch that begins.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Probing {
    /// The processes that have not joined yet.
    awaiting: ProcessSet,
    /// The process with the token.
    holder: Option<ProcessId>,
}

impl TokenRing {
    pub(super) fn has_crashed(&self, p: ProcessId) -> bool {
        self.crashed.binary_search(&p).is_ok()
    }

    /// Whether no survivor has a higher id. The nearest places come first: mostly a higher id is among them.
    pub(super) fn is_coordinator(&self, ctx: &Context<'_, Self>) -> bool {
        let (group, me) = (ctx.group(), ctx.me());
        let n = group.len();
        let place = group.place(me).expect("we are a member");
        let mut others = (1..=n / 2).flat_map(|d| [(place + d) % n, (place + n - d) % n]);
        !others.any(|place| group.id(place) > me && !self.has_crashed(group.id(place)))
    }

    /// The survivor with the highest id, as far as this process knows.
    pub(super) fn coordinator(&self, ctx: &Context<'_, Self>) -> ProcessId {
        let survivors = ctx.group().members().iter().filter(|p| !self.has_crashed(**p));
        *survivors.max().expect("we have not crashed")
    }

    /// Makes the next survivor the successor.
    pub(super) fn mend(&mut self, me: ProcessId, group: &Group) {
        let place = group.place(me).expect("we are a member");
        let mut after = (1..=group.len()).map(|i| group.id((place + i) % group.len()));
        self.successor =
            after.find(|p| *p == me || !self.has_crashed(*p)).expect("the ring comes back to us");
    }

    pub(super) fn on_crash_of(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.has_crashed(peer) {
            return;
        }
        self.skip(&[peer], ctx);
        if self.is_coordinator(ctx) {
            self.begin_epoch(ctx);
        }
    }

    /// The ring skips these processes.
    fn skip(&mut self, crashed: &[ProcessId], ctx: &mut Context<'_, Self>) {
        let before = self.successor;
        for p in crashed {
            if let Err(i) = self.crashed.binary_search(p) {
                self.crashed.insert(i, *p);
            }
        }
        self.mend(ctx.me(), ctx.group());
        // A wake-up call through the gap is lost.
        if self.successor != before && (self.called || self.state == State::Wanted) {
            self.call(ctx);
        }
    }

    pub(super) fn join(&mut self, epoch: u32) {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.probing = None;
        }
    }

    pub(super) fn begin_epoch(&mut self, ctx: &mut Context<'_, Self>) {
        let n = ctx.group_size() as u32;
        let place = ctx.group().place(ctx.me()).expect("we are a member") as u32;
        self.epoch = (self.epoch / n + 1) * n + place;
        let awaiting: ProcessSet = ctx.others().filter(|p| !self.has_crashed(*p)).collect();
        let crashed: Arc<[ProcessId]> = self.crashed.clone().into();
        for p in awaiting.iter() {
            ctx.send(p, Message::Probe { epoch: self.epoch, crashed: crashed.clone() });
        }
        self.frozen = self.token.is_some();
        let holder = self.frozen.then_some(ctx.me());
        self.probing = Some(Box::new(Probing { awaiting, holder }));
        self.try_begin(ctx);
    }

    pub(super) fn on_probe(
        &mut self,
        from: ProcessId,
        epoch: u32,
        crashed: &[ProcessId],
        ctx: &mut Context<'_, Self>,
    ) {
        self.skip(crashed, ctx);
        self.join(epoch);
        if epoch == self.epoch {
            self.frozen = self.token.is_some();
            ctx.send(from, Message::Report { epoch, token: self.frozen });
        } else {
            ctx.send(from, Message::Outdated { epoch: self.epoch });
        }
    }

    pub(super) fn on_report(
        &mut self,
        from: ProcessId,
        epoch: u32,
        token: bool,
        ctx: &mut Context<'_, Self>,
    ) {
        let Some(probing) = &mut self.probing else { return };
        if epoch == self.epoch {
            probing.awaiting.remove(from);
            if token {
                probing.holder = Some(from);
            }
            self.try_begin(ctx);
        }
    }

    /// A process that has crashed meanwhile had begun a later epoch.
    pub(super) fn on_outdated(&mut self, epoch: u32, ctx: &mut Context<'_, Self>) {
        if self.probing.is_some() && epoch > self.epoch {
            self.epoch = epoch;
            self.begin_epoch(ctx);
        }
    }

    fn try_begin(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(probing) = self.probing.take_if(|p| p.awaiting.is_empty()) else { return };
        match probing.holder {
            Some(p) if p == ctx.me() => self.resume(ctx),
            Some(p) => ctx.send(p, Message::Resume { epoch: self.epoch }),
            None => self.use_token(Token { entries: 0, idle: 0 }, ctx),
        }
    }

    /// The epoch has begun, and the token here is its token.
    pub(super) fn resume(&mut self, ctx: &mut Context<'_, Self>) {
        self.frozen = false;
        // Wake-up calls may be lost with crashed processes: the token makes a whole round.
        if let Some(token) = &mut self.token {
            token.idle = 0;
        }
        match self.state {
            State::Released => self.pass_on(ctx),
            State::Wanted => self.enter(ctx),
            State::Held | State::Out => {}
        }
    }
}
