//! A replicated lock table: a state machine (Schneider) on virtual synchrony.
//!
//! Every operation is multicast in uniform total order, and each member applies it to its own copy of
//! the [`Table`]: the very table that the library's node replicates. A member holds its locks as long as it is
//! in the view. With leases, the grants of an excluded member stay fenced until it has given them up.
//!
//! Members' clocks differ, so the table reads none. Only the leader measures time, and *proposes* that
//! a lease has expired. Clients that are no members have sessions, a layer of its own beside the table.

mod leases;
mod mistakes;
mod requests;
mod sessions;
mod sheet;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use super::locks::{Indication, Name, Request};
use super::table::{Op, Outcome, Table};
use super::virtual_synchrony::{Message, Record, VirtualSynchrony};
use super::{
    Indication as GroupIndication, Member, Request as GroupRequest, View, virtual_synchrony,
};
use requests::{LockRequest, RequestState};
use sessions::Sessions;
pub use sessions::{Client, Event, Session, SessionOp};

/// One process of the group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct LockTable {
    group: VirtualSynchrony<Command>,
    table: Table,
    sessions: Sessions,
    /// Whether this process has the table of the group. A new member receives it from the donor.
    has_table: bool,
    /// The requests of this process's own application.
    requests: BTreeMap<Name, RequestState>,
    /// The application's next request for a lock that it holds.
    next: BTreeMap<Name, LockRequest>,
    /// The number of the last one.
    last_request: u64,
    /// Whether this process was a member before the present view, too.
    was_member: bool,
    /// Whether this process is the leader, and measures time.
    watching: bool,
    /// The leader's timers: excluded members with fenced grants, and the leases of these grants.
    expiries: BTreeSet<(Member, u32)>,
    /// Requests to the group that this step has yet to make; empty between steps.
    #[serde(skip)]
    outbox: VecDeque<GroupRequest<Command>>,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    unit: Duration,
    /// How long an excluded member may take to know it; none: its locks are free at once.
    lease: Option<Duration>,
    mistake: Option<&'static str>,
}

/// A command that the members multicast.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Command {
    /// An operation on the table.
    Table(Op),
    /// An operation on the session of a client.
    Session(SessionOp),
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// A timer of the group.
    Group(virtual_synchrony::Timer),
    /// A client was silent for too long.
    Silent(Session),
    /// Fenced grants of this member with this lease have expired.
    LeaseExpired(Member, u32),
    /// This process may be excluded for as long as its locks stay fenced.
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
        self.clear_requests();
        self.step_group(ctx, |group, ctx| group.on_recover(saved, ctx));
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire { name, mode, wait, priority } => {
                self.acquire(name, (mode, wait, priority), ctx);
            }
            Request::Adopt { name, token } => self.adopt(name, token, ctx),
            Request::Release { name } => self.release(&name, ctx),
            Request::Revoke { name } => self.revoke(&name, ctx),
            Request::Join => self.ask_group(GroupRequest::Join, ctx),
            Request::Leave => self.ask_group(GroupRequest::Leave, ctx),
            Request::Reform => self.ask_group(GroupRequest::Reform, ctx),
            Request::Refound => {
                // Locks of the old generation are lost with it.
                self.lose_all(ctx);
                self.forget();
                self.drop_lost();
                self.has_table = true;
                self.ask_group(GroupRequest::Refound, ctx);
            }
            Request::Operate(op) => self.operate(op),
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
            Timer::LeaseExpired(member, lease) => self.on_expiry(member, lease),
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

    /// The sessions of clients.
    pub fn sessions(&self) -> impl Iterator<Item = (&Session, &Client)> {
        self.sessions.iter()
    }

    /// The group below.
    pub fn group(&self) -> &VirtualSynchrony<Command> {
        &self.group
    }

    fn myself(&self, me: ProcessId) -> Option<Member> {
        self.view().find(me)
    }

    fn leads(&self, me: ProcessId) -> bool {
        self.view().leader() == Some(me)
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

    fn ask_group(&mut self, request: GroupRequest<Command>, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_request(request, ctx));
    }

    fn submit(&mut self, op: Op) {
        self.outbox.push_back(GroupRequest::Multicast(Command::Table(op)));
    }

    /// Makes the requests to the group that this step has collected.
    fn flush(&mut self, ctx: &mut Context<'_, Self>) {
        while let Some(request) = self.outbox.pop_front() {
            self.ask_group(request, ctx);
        }
    }

    fn on_group_indication(
        &mut self,
        indication: GroupIndication<Command>,
        ctx: &mut Context<'_, Self>,
    ) {
        match indication {
            GroupIndication::Delivered { command: Command::Table(op), .. } => self.apply(op, ctx),
            GroupIndication::Delivered { command: Command::Session(op), .. } => {
                self.on_session_op(op, ctx);
            }
            GroupIndication::Installed { view, left, .. } => {
                self.stop_lapse(ctx);
                self.on_view(&view, &left, ctx);
            }
            GroupIndication::StateWanted => {
                let parts = self.table.parts().into_iter().flat_map(|batch| batch.ops.to_vec());
                let sessions = Command::Session(self.sessions.state());
                let state = parts.map(Command::Table).chain([sessions]).collect();
                self.outbox.push_back(GroupRequest::State(state));
            }
            GroupIndication::State { parts, .. } => {
                self.has_table = true;
                self.table.set_view(self.named(self.view().id));
                for part in parts {
                    match part {
                        Command::Table(op) => self.table.apply(&op, &mut Vec::new()),
                        Command::Session(op) => self.on_session_op(op, ctx),
                    }
                }
            }
            GroupIndication::Excluded => {
                self.go_outside(ctx);
                ctx.indicate(Indication::Excluded);
            }
            GroupIndication::Left => {
                self.go_outside(ctx);
                ctx.indicate(Indication::Left);
            }
            GroupIndication::Blocked => {
                self.lose_all(ctx);
                ctx.indicate(Indication::Blocked);
            }
            GroupIndication::Wedged => self.start_lapse(ctx),
            GroupIndication::Sent { .. } | GroupIndication::Refused(_) => {}
        }
    }

    /// This process is in no view any more.
    fn go_outside(&mut self, ctx: &mut Context<'_, Self>) {
        self.stop_lapse(ctx);
        self.lose_all(ctx);
        self.clear_requests();
        self.forget();
    }

    fn forget(&mut self) {
        (self.table, self.sessions) = (Table::default(), Sessions::default());
        (self.has_table, self.was_member, self.watching) = (false, false, false);
        self.expiries.clear();
    }

    fn on_view(&mut self, view: &View, left: &ProcessSet, ctx: &mut Context<'_, Self>) {
        ctx.indicate(Indication::Installed(view.clone()));
        if !self.has_table {
            return;
        }
        self.sessions.install(&view.members);
        let mut outcomes = Vec::new();
        let left = self.departed_in_order(left, ctx);
        self.table.install(self.named(view.id), &view.members, &left, &mut outcomes);
        self.on_outcomes(outcomes, ctx);
        self.watch(ctx);
        if view.has_member(ctx.me()) {
            self.catch_up(ctx);
            self.was_member = true;
        }
    }

    /// Applies an operation, and acts on the outcomes that concern this process's application or its clients.
    fn apply(&mut self, op: Op, ctx: &mut Context<'_, Self>) {
        let mut outcomes = Vec::new();
        for op in self.distort(op, &mut outcomes) {
            self.table.apply(&op, &mut outcomes);
        }
        self.on_outcomes(outcomes, ctx);
    }

    fn on_outcomes(&mut self, outcomes: Vec<Outcome>, ctx: &mut Context<'_, Self>) {
        let Some(me) = self.myself(ctx.me()) else { return };
        for outcome in outcomes {
            match outcome {
                Outcome::Granted { claim, key, token } if claim.session != 0 => {
                    let name = key.name;
                    self.answer(claim, Event::Granted { claim, name, token }, ctx);
                }
                Outcome::Refused { claim, .. } if claim.session != 0 => {
                    self.answer(claim, Event::Refused { claim }, ctx);
                }
                Outcome::GrantRevoked { claim, key, .. } if claim.session != 0 => {
                    let name = key.name.clone();
                    self.answer(claim, Event::Revoked { claim, name }, ctx);
                    if claim.member == me {
                        self.submit(Op::Release { claim, key });
                    }
                }
                Outcome::Granted { claim, key, token } if claim.member == me => {
                    self.on_granted(claim, key, token, ctx);
                }
                Outcome::Refused { claim, key, .. } if claim.member == me => {
                    self.on_refused(claim, &key, ctx);
                }
                Outcome::GrantRevoked { claim, key, .. } if claim.member == me => {
                    self.on_grant_revoked(claim, key, ctx);
                }
                Outcome::Contended { key } => self.deny(me, &key),
                // Leases are awaited when a view begins; no operation is about barriers or groups here.
                _ => {}
            }
        }
    }
}
