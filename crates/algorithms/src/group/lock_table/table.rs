//! The table: sessions, locks and queues. The same operations in the same order give the same table
//! at every member. It reads no clock.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::ProcessId;
use serde::{Deserialize, Serialize};

use crate::group::Member;
use crate::group::locks::{Mode, Name, Token};

/// How many replies of a session are kept, for repeated requests.
const REPLIES: usize = 16;

/// The owner of locks and requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Session {
    /// A member: as long as it is in the view.
    Member(Member),
    /// A client, from the `Open` operation with this token until the session is closed or expires.
    Client(Token),
}

/// An operation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Begins the session of a client.
    Open {
        /// The member that the client is connected to.
        via: ProcessId,
        /// The client's number for this operation.
        request: u64,
        /// How long the client may be silent, in units of the group.
        ttl: u32,
    },
    /// The client is alive.
    KeepAlive {
        /// The session.
        session: Session,
    },
    /// The session wants a lock.
    Acquire {
        /// The session.
        session: Session,
        /// The session's number for this request: a repeated request gets the same reply.
        request: u64,
        /// The lock.
        name: Name,
        /// The mode.
        mode: Mode,
        /// Whether the session waits if the lock is not free.
        wait: bool,
    },
    /// The session releases a lock.
    Release {
        /// The session.
        session: Session,
        /// The lock.
        name: Name,
        /// The token of the grant. A late release must not end a later grant, so it names its own.
        token: Token,
    },
    /// The session cancels a request.
    Cancel {
        /// The session.
        session: Session,
        /// The number of the request.
        request: u64,
    },
    /// The session expires, unless a sign of life after `seen` is ordered before this operation.
    Expire {
        /// The session.
        session: Session,
        /// The last sign of life that the leader knew.
        seen: Token,
    },
    /// The session is over.
    Close {
        /// The session.
        session: Session,
    },
    /// A part of a table: its sessions.
    Sessions(Vec<(Session, Client)>),
    /// A part of a table: its locks.
    Locks(Vec<(Name, Lock)>),
}

/// The result of an operation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The session begins.
    Opened {
        /// The session.
        session: Session,
        /// The member that the client is connected to.
        via: ProcessId,
        /// The client's number for it.
        request: u64,
    },
    /// The reply to a request.
    Answer {
        /// The session.
        session: Session,
        /// The number of its request.
        request: u64,
        /// The reply.
        reply: Reply,
    },
    /// A release took effect, or named a grant that is over.
    Released {
        /// The session.
        session: Session,
        /// The lock.
        name: Name,
        /// Whether the session held the lock with that token.
        held: bool,
    },
    /// The session is over: all its locks are free.
    Ended {
        /// The session.
        session: Session,
    },
}

/// The reply to a request.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The session has the lock.
    Granted {
        /// The lock.
        name: Name,
        /// The mode.
        mode: Mode,
        /// The token of this grant.
        token: Token,
    },
    /// The request waits in the queue.
    Queued,
    /// The lock is not free, and the request does not wait.
    Busy,
    /// The request was cancelled.
    Cancelled,
    /// There is no such session.
    NoSession,
}

/// A session.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Client {
    /// How long the client may be silent; none for members.
    pub ttl: Option<u32>,
    /// The place of its last sign of life.
    pub seen: Token,
    /// Whether this is an excluded member that may not know of it yet. Its locks stay held until the
    /// lease is over.
    pub frozen: bool,
    /// The last replies, with the numbers of their requests.
    replies: VecDeque<(u64, Reply)>,
}

/// A lock with a holder or a waiter.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// The holders with their tokens: one, or several that share the lock.
    pub holders: Vec<(Session, Token)>,
    /// How it is held.
    pub mode: Mode,
    /// The waiting requests, in order: session, number, mode.
    pub queue: VecDeque<(Session, u64, Mode)>,
}

/// The table.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Table {
    #[serde(serialize_with = "crate::group::as_list")]
    sessions: BTreeMap<Session, Client>,
    locks: BTreeMap<Name, Lock>,
    #[serde(skip)]
    flaw: konklave_process::Fixed<Flaw>,
}

/// The mistake of a table: a rule that it leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Flaw {
    #[default]
    None,
    /// A release need not name its grant.
    AnyToken,
    /// An expiry takes effect although a sign of life came before it.
    AnyExpiry,
    /// A repeated request is taken for a new one.
    NoMemory,
}

impl Table {
    pub(super) fn with(flaw: Flaw) -> Self {
        Self { flaw: konklave_process::Fixed(flaw), ..Self::default() }
    }

    pub(super) fn flaw(&self) -> Flaw {
        *self.flaw
    }

    /// The sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (&Session, &Client)> {
        self.sessions.iter()
    }

    /// The lock called `name`, if it has a holder or a waiter.
    pub fn lock(&self, name: &str) -> Option<&Lock> {
        self.locks.get(name)
    }

    /// The number of sessions and of locks.
    pub fn len(&self) -> (usize, usize) {
        (self.sessions.len(), self.locks.len())
    }

    /// Whether no lock has a holder or a waiter.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// The table in parts of at most `size` entries.
    pub fn parts(&self, size: usize) -> Vec<Command> {
        let sessions: Vec<_> = self.sessions.iter().map(|(s, c)| (*s, c.clone())).collect();
        let locks: Vec<_> = self.locks.iter().map(|(n, l)| (n.clone(), l.clone())).collect();
        let sessions = sessions.chunks(size).map(|part| Command::Sessions(part.to_vec()));
        let locks = locks.chunks(size).map(|part| Command::Locks(part.to_vec()));
        sessions.chain(locks).collect()
    }

    /// Applies an operation. `now` is its place in the order of all views.
    pub fn apply(&mut self, now: Token, command: Command, events: &mut Vec<Event>) {
        match command {
            Command::Open { via, request, ttl } => {
                let session = Session::Client(now);
                let client = Client { ttl: Some(ttl), seen: now, ..Client::new(now) };
                self.sessions.insert(session, client);
                events.push(Event::Opened { session, via, request });
            }
            Command::KeepAlive { session } => match self.sessions.get_mut(&session) {
                Some(client) => client.seen = now,
                None => events.push(Event::Ended { session }),
            },
            Command::Acquire { session, request, name, mode, wait } => {
                self.acquire(now, (session, request), name, (mode, wait), events);
            }
            Command::Release { session, name, token } => {
                self.release(now, session, name, token, events);
            }
            Command::Cancel { session, request } => self.cancel(now, session, request, events),
            Command::Expire { session, seen } => {
                let silent = |client: &Client| client.seen == seen;
                let any = *self.flaw == Flaw::AnyExpiry;
                if self.sessions.get(&session).is_some_and(|client| any || silent(client)) {
                    self.end(now, session, events);
                }
            }
            Command::Close { session } => self.end(now, session, events),
            Command::Sessions(part) => self.sessions.extend(part),
            Command::Locks(part) => self.locks.extend(part),
        }
    }

    /// A view with these members begins at `now`. The session of each former member ends, except
    /// where `frozen` holds: an excluded member may not know of it, so its locks stay held.
    pub fn members(
        &mut self,
        now: Token,
        members: &[Member],
        frozen: impl Fn(Member) -> bool,
        events: &mut Vec<Event>,
    ) {
        let gone: Vec<Session> = self.sessions.keys().copied().collect();
        for session in gone {
            match session {
                Session::Member(member) if !members.contains(&member) => {
                    let client = self.sessions.get_mut(&session);
                    if frozen(member) {
                        client.into_iter().for_each(|client| client.frozen = true);
                    } else if client.is_some_and(|client| !client.frozen) {
                        self.end(now, session, events);
                    }
                }
                Session::Member(_) | Session::Client(_) => {}
            }
        }
        for member in members {
            self.sessions.entry(Session::Member(*member)).or_insert_with(|| Client::new(now));
        }
    }

    fn answer(&mut self, session: Session, request: u64, reply: Reply, events: &mut Vec<Event>) {
        if let Some(client) = self.sessions.get_mut(&session) {
            client.replies.retain(|(r, _)| *r != request);
            client.replies.push_back((request, reply.clone()));
            if client.replies.len() > REPLIES {
                client.replies.pop_front();
            }
        }
        events.push(Event::Answer { session, request, reply });
    }

    fn acquire(
        &mut self,
        now: Token,
        (session, request): (Session, u64),
        name: Name,
        (mode, wait): (Mode, bool),
        events: &mut Vec<Event>,
    ) {
        let Some(client) = self.sessions.get_mut(&session) else {
            let reply = Reply::NoSession;
            return events.push(Event::Answer { session, request, reply });
        };
        client.seen = now;
        let known = client.replies.iter().find(|(r, _)| *r == request);
        if let Some((_, reply)) = known.filter(|_| *self.flaw != Flaw::NoMemory) {
            let reply = reply.clone();
            return events.push(Event::Answer { session, request, reply });
        }
        let lock = self.locks.entry(name.clone()).or_insert_with(Lock::free);
        if lock.admits(mode) && lock.queue.is_empty() {
            self.grant(now, (session, request), name, mode, events);
        } else if wait {
            lock.queue.push_back((session, request, mode));
            self.answer(session, request, Reply::Queued, events);
        } else {
            self.answer(session, request, Reply::Busy, events);
        }
    }

    fn grant(
        &mut self,
        token: Token,
        (session, request): (Session, u64),
        name: Name,
        mode: Mode,
        events: &mut Vec<Event>,
    ) {
        if let Some(lock) = self.locks.get_mut(&name) {
            lock.holders.push((session, token));
            lock.mode = mode;
        }
        self.answer(session, request, Reply::Granted { name, mode, token }, events);
    }

    /// Grants the lock to the requests at the head of its queue, as many as it admits.
    fn grant_next(&mut self, now: Token, name: &Name, events: &mut Vec<Event>) {
        while let Some(lock) = self.locks.get_mut(name) {
            let admitted = lock.queue.front().is_some_and(|(.., mode)| lock.admits(*mode));
            let Some((session, request, mode)) = admitted.then(|| lock.queue.pop_front()).flatten()
            else {
                break;
            };
            self.grant(now, (session, request), name.clone(), mode, events);
        }
        if self.locks.get(name).is_some_and(Lock::is_free) {
            self.locks.remove(name);
        }
    }

    fn release(
        &mut self,
        now: Token,
        session: Session,
        name: Name,
        token: Token,
        events: &mut Vec<Event>,
    ) {
        let any = *self.flaw == Flaw::AnyToken;
        let holders = self.locks.get_mut(&name).map(|lock| &mut lock.holders);
        let held = holders.is_some_and(|holders| {
            let before = holders.len();
            holders.retain(|(s, t)| *s != session || !(any || *t == token));
            holders.len() < before
        });
        events.push(Event::Released { session, name: name.clone(), held });
        if held {
            self.grant_next(now, &name, events);
        }
    }

    /// Cancels a request. If the request was granted before, the reply says so.
    fn cancel(&mut self, now: Token, session: Session, request: u64, events: &mut Vec<Event>) {
        let waits = |lock: &Lock| lock.queue.iter().any(|(s, r, _)| (*s, *r) == (session, request));
        let name = self.locks.iter().find(|(_, lock)| waits(lock)).map(|(name, _)| name.clone());
        if let Some(name) = name {
            if let Some(lock) = self.locks.get_mut(&name) {
                lock.queue.retain(|(s, r, _)| (*s, *r) != (session, request));
            }
            self.answer(session, request, Reply::Cancelled, events);
            // The request behind it may be admissible now.
            return self.grant_next(now, &name, events);
        }
        let known = self.sessions.get(&session).map(|client| &client.replies);
        let reply = match known.and_then(|replies| replies.iter().find(|(r, _)| *r == request)) {
            Some((_, reply)) => reply.clone(),
            None if known.is_some() => Reply::Cancelled,
            None => Reply::NoSession,
        };
        events.push(Event::Answer { session, request, reply });
    }

    /// Ends a session: releases its locks and removes its requests.
    fn end(&mut self, now: Token, session: Session, events: &mut Vec<Event>) {
        if self.sessions.remove(&session).is_none() {
            return;
        }
        events.push(Event::Ended { session });
        let concerned: Vec<Name> = self
            .locks
            .iter()
            .filter(|(_, lock)| lock.concerns(session))
            .map(|(name, _)| name.clone())
            .collect();
        for name in concerned {
            if let Some(lock) = self.locks.get_mut(&name) {
                lock.holders.retain(|(s, _)| *s != session);
                lock.queue.retain(|(s, ..)| *s != session);
            }
            self.grant_next(now, &name, events);
        }
    }
}

impl Client {
    fn new(now: Token) -> Self {
        Self { ttl: None, seen: now, frozen: false, replies: VecDeque::new() }
    }
}

impl Lock {
    fn free() -> Self {
        Self { holders: Vec::new(), mode: Mode::Exclusive, queue: VecDeque::new() }
    }

    fn is_free(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    /// Whether one more session may hold it in this mode.
    fn admits(&self, mode: Mode) -> bool {
        self.holders.is_empty() || (self.mode == Mode::Shared && mode == Mode::Shared)
    }

    fn concerns(&self, session: Session) -> bool {
        self.holders.iter().any(|(s, _)| *s == session)
            || self.queue.iter().any(|(s, ..)| *s == session)
    }
}
