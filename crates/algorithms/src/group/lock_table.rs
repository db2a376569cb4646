//! A replicated lock table: a state machine (Schneider) with sessions (Chubby) on virtual synchrony.
//!
//! Every operation is multicast in uniform total order, and each member applies it to its own copy of
//! the table. The place of an operation in the order of all views is the token of the locks that it
//! grants. A member holds its locks as long as it is in the view. A client of a member has a session,
//! which expires unless it is kept alive.
//!
//! Members' clocks differ, so the table reads none. Only the leader measures time, and *proposes* that
//! a session has expired. A sign of life that is ordered before the proposal makes it void.

mod expiry;
mod requests;
mod sheet;
mod table;

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};
use table::Flaw;

use super::locks::{Indication, Mode, Name, Request, Token};
use super::virtual_synchrony::{Message, Record, VirtualSynchrony};
use super::{
    Indication as GroupIndication, Member, Request as GroupRequest, View, ViewId, virtual_synchrony,
};
pub use table::{Client, Command, Event, Lock, Reply, Session, Table};

/// How many entries each part of the table has when it is sent to a new member.
const PART: usize = 256;

/// One process of the group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct LockTable {
    group: VirtualSynchrony<Command>,
    table: Table,
    /// Whether this process has the table of the group. A new member receives it from the donor.
    has_table: bool,
    /// The requests of this process's own application.
    #[serde(rename = "wishes")]
    requests: BTreeMap<Name, RequestState>,
    /// The number of the last one.
    #[serde(rename = "request")]
    last_request: u64,
    /// Whether this process was a member before the present view, too.
    was_member: bool,
    /// Whether this process is the leader, and measures the time of the sessions.
    watching: bool,
    /// Requests to the group that this step has yet to make; empty between steps.
    #[serde(skip)]
    outbox: VecDeque<GroupRequest<Command>>,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    unit: std::time::Duration,
    /// How long an excluded member may take to know it; none: its locks are free at once.
    lease: Option<std::time::Duration>,
    /// The mistake: the token is the place in the view alone.
    bare_token: bool,
}

/// The state of the application's request for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum RequestState {
    /// The application asked, with this number.
    Wanted(u64, Mode),
    /// The application holds the lock.
    Held(Token),
    /// The application was told that the lock is lost, and the table does not know of it yet.
    #[serde(rename = "Given")]
    Lost(Token),
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// A timer of the group.
    Group(virtual_synchrony::Timer),
    /// The time of a session is up: it was silent for too long, or its excluded member knows by now.
    Silent(Session),
    /// This process may be excluded for as long as its locks stay frozen.
    Lapse,
}

impl From<virtual_synchrony::Timer> for Timer {
    fn from(timer: virtual_synchrony::Timer) -> Self {
        Self::Group(timer)
    }
}

impl Process for LockTable {
    type Message = Message<Command>;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Record;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_start(ctx));
    }

    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        self.forget();
        self.requests.clear();
        self.step_group(ctx, |group, ctx| group.on_recover(saved, ctx));
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire { name, mode } => self.acquire(name, mode, ctx),
            Request::Release { name } => self.release(name, ctx),
            Request::Join => {
                self.step_group(ctx, |group, ctx| group.on_request(GroupRequest::Join, ctx))
            }
            Request::Leave => {
                self.step_group(ctx, |group, ctx| group.on_request(GroupRequest::Leave, ctx))
            }
            Request::Reform => {
                self.step_group(ctx, |group, ctx| group.on_request(GroupRequest::Reform, ctx))
            }
            Request::Refound => {
                // Locks of the old generation are lost with it.
                self.lose_all(ctx);
                self.forget();
                self.requests.retain(|_, state| matches!(state, RequestState::Wanted(..)));
                self.has_table = true;
                self.step_group(ctx, |group, ctx| group.on_request(GroupRequest::Refound, ctx));
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
        self.step_group(ctx, |group, ctx| group.on_message(from, message, ctx));
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Group(timer) => self.step_group(ctx, |group, ctx| group.on_timer(timer, ctx)),
            Timer::Silent(session) => self.on_silence(session, ctx),
            Timer::Lapse => self.lose_all(ctx),
        }
        self.flush(ctx);
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_suspect(peer, ctx));
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_trust(peer, ctx));
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

    /// The token of the operation at place `count` of `view`. The group may be in a later view by now.
    fn token(&self, view: ViewId, count: u64) -> Token {
        if self.settings.bare_token {
            return Token { count, ..Token::default() };
        }
        Token::of(view, count)
    }

    /// Lets the group take a step, and handles its indications.
    fn step_group(
        &mut self,
        ctx: &mut Context<'_, Self>,
        step: impl FnOnce(&mut VirtualSynchrony<Command>, &mut Context<'_, VirtualSynchrony<Command>>),
    ) {
        let mut indications: VecDeque<GroupIndication<Command>> =
            ctx.below(|ctx| step(&mut self.group, ctx)).into_iter().collect();
        while let Some(indication) = indications.pop_front() {
            self.on_group_indication(indication, ctx);
            // The group may answer these requests with indications: they follow the present ones.
            while let Some(request) = self.outbox.pop_front() {
                indications.extend(ctx.below(|ctx| self.group.on_request(request, ctx)));
            }
        }
    }

    fn submit(&mut self, command: Command) {
        self.outbox.push_back(GroupRequest::Multicast(command));
    }

    /// Makes the requests to the group that this step has collected.
    fn flush(&mut self, ctx: &mut Context<'_, Self>) {
        while let Some(request) = self.outbox.pop_front() {
            self.step_group(ctx, |group, ctx| group.on_request(request, ctx));
        }
    }

    fn on_group_indication(
        &mut self,
        indication: GroupIndication<Command>,
        ctx: &mut Context<'_, Self>,
    ) {
        match indication {
            GroupIndication::Delivered { view, position, command, .. } => {
                let mut events = Vec::new();
                self.watch(&command, ctx);
                self.table.apply(self.token(view, position + 1), command, &mut events);
                self.tell(events, ctx);
            }
            GroupIndication::Installed { view, left, .. } => {
                self.stop_lapse(ctx);
                self.on_view(view, &left, ctx);
            }
            GroupIndication::StateWanted => {
                self.outbox.push_back(GroupRequest::State(self.table.parts(PART)));
            }
            GroupIndication::State { parts, .. } => {
                self.has_table = true;
                let mut nothing = Vec::new();
                for part in parts {
                    self.table.apply(Token::default(), part, &mut nothing);
                }
            }
            GroupIndication::Excluded => {
                self.stop_lapse(ctx);
                self.lose_all(ctx);
                self.requests.clear();
                self.forget();
                ctx.indicate(Indication::Excluded);
            }
            GroupIndication::Left => {
                self.stop_lapse(ctx);
                self.lose_all(ctx);
                self.requests.clear();
                self.forget();
                ctx.indicate(Indication::Left);
            }
            GroupIndication::Blocked => {
                self.lose_all(ctx);
                ctx.indicate(Indication::Blocked);
            }
            GroupIndication::Wedged => {
                if let Some(lease) = self.settings.lease {
                    // The others may install a view without this process soon. Its locks are frozen there for a
                    // lease, so it gives them up in less: each clock may differ by up to a tenth.
                    ctx.set_timer(Timer::Lapse, lease * 8 / 10);
                }
            }
            GroupIndication::Sent { .. } | GroupIndication::Refused(_) => {}
        }
    }

    fn stop_lapse(&self, ctx: &mut Context<'_, Self>) {
        if self.settings.lease.is_some() {
            ctx.cancel_timer(Timer::Lapse);
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
            // A new leader gives every session its full time. If a leader that goes on did so, too,
            // no lease would run out where views follow each other fast; so it keeps the old timers.
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

    /// Passes on the events that concern this process's application or its clients.
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
}
