//! The table: sessions, locks and queues. The same operations in the same order give the same table
//! everywhere. It reads no clock.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::ProcessId;
use serde::{Deserialize, Serialize};

use crate::group::Member;
use crate::group::locks::{Mode, Name, Token};

/// How many answers of a session are kept, for those who ask again.
const REPLIES: usize = 16;

/// Who holds and waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Session {
    /// A member itself: as long as it is in the view.
    Member(Member),
    /// A client that was opened by the operation with this token: until it is closed or expires.
    Client(Token),
}

/// An operation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Begins the session of a client.
    Open {
        /// Through whom it is connected.
        via: ProcessId,
        /// Its own number for this.
        request: u64,
        /// For how long it may be silent, in units of the group.
        ttl: u32,
    },
    /// The client is alive.
    KeepAlive {
        /// Which.
        session: Session,
    },
    /// The session wants a lock.
    Acquire {
        /// Which session.
        session: Session,
        /// Its number for this: asked again, it gets the same answer.
        request: u64,
        /// The lock.
        name: Name,
        /// How.
        mode: Mode,
        /// Whether it waits if it cannot have it now.
        wait: bool,
    },
    /// The session lets go.
    Release {
        /// Which session.
        session: Session,
        /// The lock.
        name: Name,
        /// The grant it got: a release that comes late must not end another.
        token: Token,
    },
    /// The session wants something no more.
    Cancel {
        /// Which session.
        session: Session,
        /// The number of what it wanted.
        request: u64,
    },
    /// The client has been silent for too long, if it has been since then.
    Expire {
        /// Which.
        session: Session,
        /// The last sign of life that was known.
        seen: Token,
    },
    /// The session is over.
    Close {
        /// Which.
        session: Session,
    },
    /// A part of a table: its sessions.
    Sessions(Vec<(Session, Client)>),
    /// A part of a table: its locks.
    Locks(Vec<(Name, Lock)>),
}

/// What became of an operation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The session begins.
    Opened {
        /// Which.
        session: Session,
        /// Through whom.
        via: ProcessId,
        /// The client's number for it.
        request: u64,
    },
    /// To a request.
    Answer {
        /// Of which session.
        session: Session,
        /// To which of its requests.
        request: u64,
        /// What.
        reply: Reply,
    },
    /// The release was right, or not.
    Released {
        /// Of which session.
        session: Session,
        /// Which lock.
        name: Name,
        /// Whether it held it with that token.
        held: bool,
    },
    /// The session is over: all it held is free.
    Ended {
        /// Which.
        session: Session,
    },
}

/// An answer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// It has the lock.
    Granted {
        /// Which.
        name: Name,
        /// How.
        mode: Mode,
        /// With this token.
        token: Token,
    },
    /// It waits in the queue.
    Queued,
    /// It cannot have it now, and does not wait.
    Busy,
    /// It wants it no more.
    Cancelled,
    /// There is no such session.
    NoSession,
}

/// A session.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Client {
    /// For how long it may be silent; none for members.
    pub ttl: Option<u32>,
    /// Its last sign of life.
    pub seen: Token,
    /// Whether it is gone, but may not know: its locks are free only when it must know.
    pub frozen: bool,
    replies: VecDeque<(u64, Reply)>,
}

/// A lock that someone holds or waits for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// Who holds it: one, or several who share it.
    pub holders: Vec<(Session, Token)>,
    /// How it is held.
    pub mode: Mode,
    /// Who waits, in order.
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

/// A rule left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Flaw {
    #[default]
    None,
    /// A release need not name its grant.
    AnyToken,
    /// An expiry need not be up to date.
    AnyExpiry,
    /// A request asked again is another request.
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

    /// The lock called `name`, if someone holds it or waits for it.
    pub fn lock(&self, name: &str) -> Option<&Lock> {
        self.locks.get(name)
    }

    /// How many sessions and locks it has.
    pub fn len(&self) -> (usize, usize) {
        (self.sessions.len(), self.locks.len())
    }

    /// Whether nobody holds or waits.
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

    /// Carries out the operation at `now`, the place of the operation in the order of all views.
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

    /// The members of the view that begins at `now`: those who are gone hold nothing any more, or
    /// with `frozen`, until they must know it.
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

    /// Grants the lock to those at the head of the queue who can have it.
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

    /// Either it is cancelled or it was granted before: who cancels learns which.
    fn cancel(&mut self, now: Token, session: Session, request: u64, events: &mut Vec<Event>) {
        let waits = |lock: &Lock| lock.queue.iter().any(|(s, r, _)| (*s, *r) == (session, request));
        let name = self.locks.iter().find(|(_, lock)| waits(lock)).map(|(name, _)| name.clone());
        if let Some(name) = name {
            if let Some(lock) = self.locks.get_mut(&name) {
                lock.queue.retain(|(s, r, _)| (*s, *r) != (session, request));
            }
            self.answer(session, request, Reply::Cancelled, events);
            // Whoever stood behind it may be next.
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

    /// The session is over: it waits for nothing and holds nothing.
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

    /// Whether one more may hold it in this way.
    fn admits(&self, mode: Mode) -> bool {
        self.holders.is_empty() || (self.mode == Mode::Shared && mode == Mode::Shared)
    }

    fn concerns(&self, session: Session) -> bool {
        self.holders.iter().any(|(s, _)| *s == session)
            || self.queue.iter().any(|(s, ..)| *s == session)
    }
}
