//! A lock table that every member has: one total order of operations, one outcome.
//!
//! Operations are multicast in uniform total order, and each member applies them to its own copy of
//! the table. The place of an operation in the order of all views is the token of what it grants. A
//! member's locks are its own for as long as it is in the view; clients of members have sessions
//! that must be kept alive. Time is only the leader's: it *proposes* that a session has expired, and
//! the proposal is void when a sign of life comes before it in the order.

mod sheet;
mod table;

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};
use table::Flaw;

use super::locks::{Indication, Mode, Name, Request, Token};
use super::virtual_synchrony::{Message, Record, VirtualSynchrony};
use super::{Indication as Told, Member, Request as Wish, View, ViewId, virtual_synchrony};
pub use table::{Client, Command, Event, Lock, Reply, Session, Table};

/// How many entries a part of the table has that is sent to a new member.
const PART: usize = 256;

/// One process of the group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct LockTable {
    group: VirtualSynchrony<Command>,
    table: Table,
    /// Whether the table is the group's: a new member has to be given it first.
    has_table: bool,
    /// What our own application wants and has.
    wishes: BTreeMap<Name, Hold>,
    /// The number of our last request.
    request: u64,
    /// Whether we were a member before the present view, too.
    was_member: bool,
    /// Whether we lead, and watch the time of the sessions.
    watching: bool,
    /// What we want of the group: empty between steps.
    #[serde(skip)]
    outbox: VecDeque<Wish<Command>>,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    unit: std::time::Duration,
    /// How long an excluded member may take to learn it; none: we do not wait for that.
    lease: Option<std::time::Duration>,
    bare_token: bool,
}

/// Where our application stands with a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Hold {
    /// It asked, with this number.
    Wanted(u64, Mode),
    /// It has it.
    Held(Token),
    /// It had it and was told that it is lost; the table does not know.
    Given(Token),
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// One of the group.
    Group(virtual_synchrony::Timer),
    /// A session has been silent for as long as it may, or an excluded member must know by now.
    Silent(Session),
}

impl From<virtual_synchrony::Timer> for Timer {
    fn from(timer: virtual_synchrony::Timer) -> Self {
        Self::Group(timer)
    }
}

impl LockTable {
    /// The present view.
    pub fn view(&self) -> &View {
        self.group.view()
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The group below.
    pub fn group(&self) -> &VirtualSynchrony<Command> {
        &self.group
    }

    fn myself(&self, me: ProcessId) -> Option<Session> {
        self.view().find(me).map(Session::Member)
    }

    /// The token of what happens at a place of a view. The group may be further by now.
    fn token(&self, view: ViewId, count: u64) -> Token {
        if self.settings.bare_token {
            return Token { count, ..Token::default() };
        }
        Token::of(view, count)
    }

    /// Lets the group take a step, and draws our conclusions.
    fn run(
        &mut self,
        ctx: &mut Context<'_, Self>,
        step: impl FnOnce(&mut VirtualSynchrony<Command>, &mut Context<'_, VirtualSynchrony<Command>>),
    ) {
        let mut told: VecDeque<Told<Command>> =
            ctx.below(|ctx| step(&mut self.group, ctx)).into_iter().collect();
        while let Some(indication) = told.pop_front() {
            self.conclude(indication, ctx);
            // What the group does about our wishes comes after what it has done already.
            while let Some(wish) = self.outbox.pop_front() {
                told.extend(ctx.below(|ctx| self.group.on_request(wish, ctx)));
            }
        }
    }

    fn submit(&mut self, command: Command) {
        self.outbox.push_back(Wish::Multicast(command));
    }

    /// Carries out what we have decided to wish.
    fn flush(&mut self, ctx: &mut Context<'_, Self>) {
        while let Some(wish) = self.outbox.pop_front() {
            self.run(ctx, |group, ctx| group.on_request(wish, ctx));
        }
    }

    fn conclude(&mut self, indication: Told<Command>, ctx: &mut Context<'_, Self>) {
        match indication {
            Told::Delivered { view, position, command, .. } => {
                let mut events = Vec::new();
                self.watch(&command, ctx);
                self.table.apply(self.token(view, position + 1), command, &mut events);
                self.tell(events, ctx);
            }
            Told::Installed { view, left, .. } => self.on_view(view, &left, ctx),
            Told::StateWanted => {
                self.outbox.push_back(Wish::State(self.table.parts(PART)));
            }
            Told::State { parts, .. } => {
                self.has_table = true;
                let mut nothing = Vec::new();
                for part in parts {
                    self.table.apply(Token::default(), part, &mut nothing);
                }
            }
            Told::Excluded => {
                self.lose_all(ctx);
                self.wishes.clear();
                self.forget();
                ctx.indicate(Indication::Excluded);
            }
            Told::Left => {
                self.lose_all(ctx);
                self.wishes.clear();
                self.forget();
                ctx.indicate(Indication::Left);
            }
            Told::Blocked => {
                self.lose_all(ctx);
                ctx.indicate(Indication::Blocked);
            }
            Told::Sent { .. } | Told::Refused(_) | Told::Wedged => {}
        }
    }

    fn forget(&mut self) {
        self.table = Table::with(self.flaw());
        (self.has_table, self.was_member, self.watching) = (false, false, false);
    }

    fn flaw(&self) -> Flaw {
        self.table.flaw()
    }

    fn on_view(&mut self, view: View, left: &ProcessSet, ctx: &mut Context<'_, Self>) {
        ctx.indicate(Indication::Installed(view.clone()));
        if !self.has_table {
            return;
        }
        let mut events = Vec::new();
        let safe = self.settings.lease.is_some();
        let frozen = |member: Member| safe && !left.contains(member.id);
        let leads = view.leader() == Some(ctx.me());
        let kept = if leads && self.watching { self.frozen() } else { Vec::new() };
        self.table.members(self.token(view.id, 0), &view.members, frozen, &mut events);
        self.tell(events, ctx);
        if leads {
            // Who begins to lead gives everyone their full time. Who goes on has their times
            // already: else no lease would ever run out where views follow each other fast.
            let watched: Vec<Session> = match self.watching {
                true => self.frozen().into_iter().filter(|s| !kept.contains(s)).collect(),
                false => self.table.sessions().map(|(session, _)| *session).collect(),
            };
            for session in watched {
                self.arm(session, ctx);
            }
        }
        self.watching = leads;
        if view.has_member(ctx.me()) {
            self.catch_up(ctx);
            self.was_member = true;
        }
    }

    /// The sessions of those who may not know yet that they are excluded.
    fn frozen(&self) -> Vec<Session> {
        self.table.sessions().filter(|(_, client)| client.frozen).map(|(s, _)| *s).collect()
    }

    /// After a time outside: asks for what we want, and gives back what we were told is lost.
    fn catch_up(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(session) = self.myself(ctx.me()) else { return };
        let wishes: Vec<(Name, Hold)> =
            self.wishes.iter().map(|(name, hold)| (name.clone(), *hold)).collect();
        for (name, hold) in wishes {
            match hold {
                Hold::Given(token) => {
                    self.wishes.remove(&name);
                    self.submit(Command::Release { session, name, token });
                }
                // What a member asked in the last view is in the table, or on its way.
                Hold::Wanted(request, mode) if !self.was_member => {
                    let wait = true;
                    self.submit(Command::Acquire { session, request, name, mode, wait });
                }
                Hold::Wanted(..) | Hold::Held(_) => {}
            }
        }
    }

    /// The leader watches the time.
    fn watch(&mut self, command: &Command, ctx: &mut Context<'_, Self>) {
        match command {
            Command::KeepAlive { session } | Command::Acquire { session, .. } => {
                self.arm(*session, ctx);
            }
            Command::Open { .. }
            | Command::Release { .. }
            | Command::Cancel { .. }
            | Command::Expire { .. }
            | Command::Close { .. }
            | Command::Sessions(_)
            | Command::Locks(_) => {}
        }
    }

    fn arm(&mut self, session: Session, ctx: &mut Context<'_, Self>) {
        if self.view().leader() != Some(ctx.me()) {
            return;
        }
        let client = self.table.sessions().find(|(s, _)| **s == session).map(|(_, c)| c);
        let after = match client {
            Some(client) if client.frozen => self.settings.lease,
            Some(client) => client.ttl.map(|ttl| self.settings.unit * ttl),
            None => None,
        };
        if let Some(after) = after {
            ctx.set_timer(Timer::Silent(session), after);
        }
    }

    fn on_silence(&mut self, session: Session, ctx: &mut Context<'_, Self>) {
        if self.view().leader() != Some(ctx.me()) {
            return;
        }
        let client = self.table.sessions().find(|(s, _)| **s == session).map(|(_, c)| c);
        let Some(seen) = client.map(|client| client.seen) else { return };
        self.submit(Command::Expire { session, seen });
        // The proposal may get lost with a view.
        self.arm(session, ctx);
    }

    /// Tells our application what concerns it.
    fn tell(&mut self, events: Vec<Event>, ctx: &mut Context<'_, Self>) {
        let me = self.myself(ctx.me());
        for event in events {
            match event {
                Event::Answer { session, request, reply } if Some(session) == me => {
                    self.on_answer(session, request, reply, ctx);
                }
                Event::Opened { session, via, .. } => {
                    self.arm(session, ctx);
                    if via == ctx.me() {
                        ctx.indicate(Indication::Replied(event));
                    }
                }
                Event::Answer { session: Session::Client(_), .. }
                | Event::Released { session: Session::Client(_), .. }
                | Event::Ended { session: Session::Client(_) } => {
                    ctx.indicate(Indication::Replied(event));
                }
                Event::Answer { .. } | Event::Released { .. } | Event::Ended { .. } => {}
            }
        }
    }

    fn on_answer(
        &mut self,
        session: Session,
        request: u64,
        reply: Reply,
        ctx: &mut Context<'_, Self>,
    ) {
        let Reply::Granted { name, mode, token } = reply else { return };
        match self.wishes.get(&name) {
            Some(Hold::Wanted(wanted, _)) if *wanted == request => {
                self.wishes.insert(name.clone(), Hold::Held(token));
                ctx.indicate(Indication::Granted { name, mode, token });
            }
            Some(Hold::Held(held)) if *held == token => {}
            // It wants it no more.
            _ => self.submit(Command::Release { session, name, token }),
        }
    }

    /// Tells our application that it must not rely on what it holds.
    fn lose_all(&mut self, ctx: &mut Context<'_, Self>) {
        for (name, hold) in &mut self.wishes {
            if let Hold::Held(token) = *hold {
                *hold = Hold::Given(token);
                ctx.indicate(Indication::Lost { name: name.clone() });
            }
        }
    }

    fn acquire(&mut self, name: Name, mode: Mode, ctx: &mut Context<'_, Self>) {
        match self.wishes.get(&name) {
            Some(Hold::Wanted(..) | Hold::Held(_)) => return,
            // The table does not know yet that we had lost it.
            Some(Hold::Given(_)) => self.release(name.clone(), ctx),
            None => {}
        }
        self.request += 1;
        let request = self.request;
        self.wishes.insert(name.clone(), Hold::Wanted(request, mode));
        let member = self.view().has_member(ctx.me());
        if let Some(session) = self.myself(ctx.me()).filter(|_| member) {
            let wait = true;
            self.submit(Command::Acquire { session, request, name, mode, wait });
        }
    }

    fn release(&mut self, name: Name, ctx: &mut Context<'_, Self>) {
        let Some(session) = self.myself(ctx.me()) else {
            self.wishes.remove(&name);
            return;
        };
        match self.wishes.remove(&name) {
            Some(Hold::Held(token) | Hold::Given(token)) => {
                self.submit(Command::Release { session, name, token });
            }
            Some(Hold::Wanted(request, _)) => {
                self.submit(Command::Cancel { session, request });
            }
            None => {}
        }
    }
}

impl Process for LockTable {
    type Message = Message<Command>;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Record;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| group.on_start(ctx));
    }

    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        self.forget();
        self.wishes.clear();
        self.run(ctx, |group, ctx| group.on_recover(saved, ctx));
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire { name, mode } => self.acquire(name, mode, ctx),
            Request::Release { name } => self.release(name, ctx),
            Request::Join => self.run(ctx, |group, ctx| group.on_request(Wish::Join, ctx)),
            Request::Leave => self.run(ctx, |group, ctx| group.on_request(Wish::Leave, ctx)),
            Request::Reform => self.run(ctx, |group, ctx| group.on_request(Wish::Reform, ctx)),
            Request::Refound => {
                // What the old generation held is lost with it.
                self.lose_all(ctx);
                self.forget();
                self.wishes.retain(|_, hold| matches!(hold, Hold::Wanted(..)));
                self.has_table = true;
                self.run(ctx, |group, ctx| group.on_request(Wish::Refound, ctx));
            }
            Request::Operate(command) => self.submit(command),
        }
        self.flush(ctx);
    }

    fn on_message(
        &mut self,
        from: ProcessId,
        message: Message<Command>,
        ctx: &mut Context<'_, Self>,
    ) {
        self.run(ctx, |group, ctx| group.on_message(from, message, ctx));
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Group(timer) => self.run(ctx, |group, ctx| group.on_timer(timer, ctx)),
            Timer::Silent(session) => self.on_silence(session, ctx),
        }
        self.flush(ctx);
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| group.on_suspect(peer, ctx));
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| group.on_trust(peer, ctx));
    }
}
