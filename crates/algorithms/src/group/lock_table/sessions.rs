//! Sessions of clients that are no members (Chubby): a layer beside the table.
//!
//! A client has its session at a member, and may repeat a request through any other. The last reply of
//! each session is kept, so a repeated request gets the same one. The leader measures the silence of
//! clients, and proposes that a session has expired. A sign of life that is ordered before the proposal makes
//! it void.

use std::collections::{BTreeMap, BTreeSet};

use konklave_process::Context;
use serde::{Deserialize, Serialize};

use super::{Command, LockTable, Member, Op, Timer};
use crate::group::locks::{Indication, Name};
use crate::group::table::{ClaimId, Key};
use crate::group::{Request, Token};

/// A session: as long as its member is in the view, until it is closed or expires.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Session {
    /// The member that the client is connected to.
    pub member: Member,
    /// The number of the session in the group.
    pub number: u32,
}

/// An operation on a session.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum SessionOp {
    /// Begins a session.
    Open {
        /// The member that the client is connected to.
        via: Member,
        /// How long the client may be silent, in units of the group.
        ttl: u32,
    },
    /// The client is alive.
    KeepAlive {
        /// The session.
        session: Session,
    },
    /// The client acquires, releases or cancels, under a claim of its session.
    Request(Op),
    /// The session expires, unless another sign of life is ordered before this operation.
    Expire {
        /// The session.
        session: Session,
        /// The number of signs of life that the leader knew.
        signs: u32,
    },
    /// The session is over.
    Close {
        /// The session.
        session: Session,
    },
    /// All sessions, for a new member.
    State {
        /// The number of sessions opened so far.
        opened: u32,
        /// The sessions.
        clients: Vec<(Session, Client)>,
    },
}

/// The result of an operation, told to the member of the session.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The session begins.
    Opened {
        /// The session.
        session: Session,
    },
    /// A request is granted.
    Granted {
        /// The claim.
        claim: ClaimId,
        /// The lock.
        name: Name,
        /// The token of the grant.
        token: Token,
    },
    /// A request is over without a grant.
    Refused {
        /// The claim.
        claim: ClaimId,
    },
    /// An operator revoked the grant.
    Revoked {
        /// The claim.
        claim: ClaimId,
        /// The lock.
        name: Name,
    },
    /// There is no such session: all its locks are free.
    Ended {
        /// The session.
        session: Session,
    },
}

/// The group's knowledge of a session.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Client {
    ttl: u32,
    /// The number of its signs of life.
    signs: u32,
    /// The number of its last request, and the reply to it.
    last: u64,
    reply: Option<Event>,
}

/// All sessions. Equal at all members.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub(super) struct Sessions {
    opened: u32,
    #[serde(serialize_with = "crate::group::as_list")]
    clients: BTreeMap<Session, Client>,
}

impl Session {
    fn of(claim: ClaimId) -> Self {
        Self { member: claim.member, number: claim.session }
    }
}

impl Sessions {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Session, &Client)> {
        self.clients.iter()
    }

    pub(super) fn install(&mut self, members: &[Member]) {
        self.clients.retain(|session, _| members.contains(&session.member));
    }

    pub(super) fn state(&self) -> SessionOp {
        let clients = self.clients.iter().map(|(s, client)| (*s, client.clone())).collect();
        SessionOp::State { opened: self.opened, clients }
    }
}

impl LockTable {
    /// A client's operation. The safety of its grants is this member's affair.
    pub(super) fn operate(&mut self, mut op: SessionOp) {
        if let SessionOp::Request(Op::Acquire { safe, lease, .. }) = &mut op {
            (*safe, *lease) = self.safety();
        }
        self.outbox.push_back(Request::Multicast(Command::Session(op)));
    }

    pub(super) fn on_session_op(&mut self, op: SessionOp, ctx: &mut Context<'_, Self>) {
        match op {
            SessionOp::Open { via: member, ttl } => {
                self.sessions.opened += 1;
                let session = Session { member, number: self.sessions.opened };
                let client = Client { ttl, signs: 0, last: 0, reply: None };
                self.sessions.clients.insert(session, client);
                self.arm(session, ctx);
                tell(session, Event::Opened { session }, ctx);
            }
            SessionOp::KeepAlive { session } => {
                self.sign_of_life(session, ctx);
            }
            SessionOp::Request(op) => self.on_client_request(op, ctx),
            SessionOp::Expire { session, signs } => {
                let client = self.sessions.clients.get(&session);
                if client.is_some_and(|c| c.signs == signs || self.expires_any()) {
                    self.end(session, ctx);
                }
            }
            SessionOp::Close { session } => self.end(session, ctx),
            SessionOp::State { opened, clients } => {
                self.sessions = Sessions { opened, clients: clients.into_iter().collect() };
            }
        }
    }

    /// Whether the session still exists. At the leader, its time starts anew.
    fn sign_of_life(&mut self, session: Session, ctx: &mut Context<'_, Self>) -> bool {
        let Some(client) = self.sessions.clients.get_mut(&session) else {
            tell(session, Event::Ended { session }, ctx);
            return false;
        };
        client.signs += 1;
        self.arm(session, ctx);
        true
    }

    fn on_client_request(&mut self, op: Op, ctx: &mut Context<'_, Self>) {
        let (Op::Acquire { claim, .. } | Op::Release { claim, .. } | Op::Cancel { claim, .. }) = op
        else {
            return;
        };
        let (session, memory) = (Session::of(claim), !self.has_no_memory());
        if !self.sign_of_life(session, ctx) {
            return;
        }
        let Some(client) = self.sessions.clients.get_mut(&session) else { return };
        let last = client.reply.clone().filter(|_| client.last == claim.number);
        match op {
            Op::Acquire { .. } if claim.number <= client.last && memory => {
                last.into_iter().for_each(|reply| tell(session, reply, ctx));
            }
            Op::Acquire { .. } => {
                (client.last, client.reply) = (claim.number, None);
                self.apply(op, ctx);
            }
            // The grant was ordered first: the reply to the cancellation is the grant.
            Op::Cancel { .. } if last.is_some() => {
                last.into_iter().for_each(|reply| tell(session, reply, ctx));
            }
            Op::Cancel { .. } => {
                self.apply(op, ctx);
                self.answer(claim, Event::Refused { claim }, ctx);
            }
            _ => self.apply(op, ctx),
        }
    }

    /// Keeps the reply to a client's request, and passes it on if the session is at this member.
    pub(super) fn answer(&mut self, claim: ClaimId, reply: Event, ctx: &mut Context<'_, Self>) {
        let session = Session::of(claim);
        if let Some(client) = self.sessions.clients.get_mut(&session)
            && client.last == claim.number
        {
            client.reply = Some(reply.clone());
        }
        tell(session, reply, ctx);
    }

    /// Ends a session: releases its locks and withdraws its requests.
    fn end(&mut self, session: Session, ctx: &mut Context<'_, Self>) {
        if self.sessions.clients.remove(&session).is_none() {
            return;
        }
        let mut claims: BTreeSet<(Key, ClaimId)> = BTreeSet::new();
        for (key, lock) in self.table.locks() {
            let held = lock.holders.iter().map(|grant| grant.claim);
            let all = held.chain(lock.queue.iter().map(|waiting| waiting.claim));
            let own = all.filter(|claim| Session::of(*claim) == session);
            claims.extend(own.map(|claim| (key.clone(), claim)));
        }
        for (key, claim) in claims {
            self.apply(Op::Cancel { claim, key: key.clone() }, ctx);
            self.apply(Op::Release { claim, key }, ctx);
        }
        tell(session, Event::Ended { session }, ctx);
    }

    /// At the leader: the time of the session starts anew.
    pub(super) fn arm(&self, session: Session, ctx: &mut Context<'_, Self>) {
        if let Some(client) = self.sessions.clients.get(&session).filter(|_| self.leads(ctx.me())) {
            ctx.set_timer(Timer::Silent(session), self.settings.unit * client.ttl);
        }
    }

    pub(super) fn on_silence(&mut self, session: Session, ctx: &mut Context<'_, Self>) {
        let client = self.sessions.clients.get(&session).filter(|_| self.leads(ctx.me()));
        let Some(signs) = client.map(|client| client.signs) else { return };
        self.operate(SessionOp::Expire { session, signs });
        // A view change may drop the proposal: the timer runs on.
        self.arm(session, ctx);
    }
}

/// Only the member of a session is told of it.
fn tell(session: Session, event: Event, ctx: &mut Context<'_, LockTable>) {
    if session.member.id == ctx.me() {
        ctx.indicate(Indication::Replied(event));
    }
}
