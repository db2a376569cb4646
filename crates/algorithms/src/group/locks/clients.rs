//! The clients: each wants a lock a number of times; some join, leave, or ask for a new view.

use std::collections::VecDeque;

use konklave_process::{Application, Process, ProcessId, ProcessMap};

use super::{Indication, LockMode, Name, Request};
use crate::group::lock_table::{Event, Session, SessionOp};
use crate::group::table::{ClaimId, Key, Op, Space};
use crate::group::{Member, Plan, Token};
use crate::{Setup, SetupError, Workload};

/// One client for each process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lockers(ProcessMap<Locker>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Locker {
    name: Name,
    ask: Ask,
    phase: Phase,
    /// How often it still wants the lock.
    left: u32,
    inside_group: bool,
    asked_to_join: bool,
    reforms: bool,
    leaves: bool,
    rejoins: bool,
    /// Whether it revokes the lock once, as an operator.
    revokes: bool,
    /// Whether it outlives a crash of its process. Then it remembers the token of its grant.
    outlives: bool,
    token: Option<Token>,
    up: bool,
    /// The session, if this application is a client of the group and not a member itself.
    client: Option<SessionClient>,
    /// Requests of the client at the previous member, to be repeated through this member.
    repeats: VecDeque<SessionOp>,
}

/// A client with a session. It makes every request twice, as if it had lost the reply: the second
/// time through another member, some time later.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct SessionClient {
    /// The member that it is connected to.
    member: Option<Member>,
    session: Option<Session>,
    opening: bool,
    /// The number of its last request.
    request: u64,
    next: ProcessId,
}

/// How a client asks for its lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ask {
    mode: LockMode,
    wait: bool,
    priority: i32,
    /// Whether it may give up while it waits.
    cancels: bool,
    /// Whether it asks for the next time while it holds the lock.
    again: bool,
}

impl Ask {
    const USUAL: Self =
        Self { mode: LockMode::Exclusive, wait: true, priority: 0, cancels: false, again: false };

    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "exclusive" => Self::USUAL,
            "shared" => Self { mode: LockMode::Shared, ..Self::USUAL },
            "urgent" => Self { priority: 1, ..Self::USUAL },
            "try" => Self { wait: false, ..Self::USUAL },
            "cancel" => Self { cancels: true, ..Self::USUAL },
            "again" => Self { again: true, ..Self::USUAL },
            permit => {
                let of = permit.strip_prefix("permit-")?.parse().ok().filter(|of| *of > 0)?;
                Self { mode: LockMode::Permit { of }, ..Self::USUAL }
            }
        })
    }

    /// How the clients of `setup` ask, in node order, the last for the rest.
    pub fn of_clients(setup: &Setup) -> Result<Vec<Self>, SetupError> {
        let words = setup.chosen.get("ask").map_or("exclusive", String::as_str);
        let ask = |word| {
            let expected = "expected exclusive, shared, permit-3, urgent, try, cancel or again";
            Self::parse(word).ok_or_else(|| SetupError(format!("ask: `{word}`: {expected}")))
        };
        words.split(',').map(ask).collect()
    }
}

/// How long a client may be silent, in T: longer than any run.
const TTL: u32 = 1000;

impl Locker {
    /// Its next request of its own.
    fn next_request(&self) -> Option<Request> {
        let name = self.name.clone();
        if !self.inside_group {
            return (!self.asked_to_join && self.rejoins).then_some(Request::Join);
        }
        if self.reforms {
            return Some(Request::Reform);
        }
        if let Some(client) = &self.client {
            return client.next_op(self).map(Request::Operate);
        }
        let revoke = self.revokes.then(|| Request::Revoke { name: name.clone() });
        match self.phase {
            Phase::Outside | Phase::Inside if self.asks() => {
                let Ask { mode, wait, priority, .. } = self.ask;
                Some(Request::Acquire { name, mode, wait, priority })
            }
            Phase::Inside | Phase::Renewing => Some(Request::Release { name }),
            Phase::Waiting if self.ask.cancels => Some(Request::Release { name }),
            Phase::Orphaned => self.token.map(|token| Request::Adopt { name, token }),
            Phase::Outside | Phase::Waiting if revoke.is_some() => revoke,
            Phase::Outside => self.leaves.then_some(Request::Leave),
            Phase::Waiting => None,
        }
    }

    /// Whether it asks for its lock now.
    fn asks(&self) -> bool {
        self.left > 0 && (self.phase == Phase::Outside || self.ask.again)
    }

    fn goes_outside(&mut self) {
        (self.phase, self.token) = (Phase::Outside, None);
    }

    /// The session of a client ends with the membership of its member.
    fn loses_session(&mut self) {
        if let Some(client) = &mut self.client {
            (client.session, client.opening) = (None, false);
        }
    }
}

impl SessionClient {
    /// Its next operation.
    fn next_op(&self, locker: &Locker) -> Option<SessionOp> {
        let Some(session) = self.session else {
            let open = self.member.map(|via| SessionOp::Open { via, ttl: TTL });
            return open.filter(|_| !self.opening && locker.left > 0);
        };
        let key = Key { space: Space::Lock, name: locker.name.clone() };
        let claim = |number| ClaimId { member: session.member, session: session.number, number };
        match locker.phase {
            Phase::Outside if locker.left > 0 => {
                let Ask { mode, wait, priority, .. } = locker.ask;
                let (claim, safe, lease, label) = (claim(self.request + 1), false, 0, "".into());
                let op = Op::Acquire { claim, key, mode, wait, safe, lease, priority, label };
                Some(SessionOp::Request(op))
            }
            Phase::Inside => {
                Some(SessionOp::Request(Op::Release { claim: claim(self.request), key }))
            }
            Phase::Outside | Phase::Waiting | Phase::Renewing | Phase::Orphaned => None,
        }
    }

    /// Handles a result. Returns the new phase, if the client has the lock, or neither has nor awaits it.
    fn on_event(&mut self, event: &Event, waits: bool) -> Option<Phase> {
        match event {
            Event::Opened { session } => {
                self.session = Some(*session);
                None
            }
            Event::Granted { claim, .. } if waits && claim.number == self.request => {
                Some(Phase::Inside)
            }
            Event::Refused { claim } | Event::Revoked { claim, .. } => {
                (claim.number == self.request).then_some(Phase::Outside)
            }
            Event::Ended { session } if self.session == Some(*session) => {
                (self.session, self.opening) = (None, false);
                Some(Phase::Outside)
            }
            Event::Granted { .. } | Event::Ended { .. } => None,
        }
    }
}

/// The relation of a client to its lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Outside,
    Waiting,
    Inside,
    /// Inside, and the request for the next time is made.
    Renewing,
    /// Its process crashed while it held the lock, and it goes on.
    Orphaned,
}

impl Lockers {
    /// The clients that `workload` and the plan of `setup` describe. With `names` names, neighbours
    /// in node order want different ones.
    pub fn new(workload: &Workload, setup: &Setup) -> Self {
        let plan = Plan::of(setup);
        let names = setup.chosen.get("names").and_then(|n| n.parse().ok()).unwrap_or(1usize).max(1);
        let asks = Ask::of_clients(setup).unwrap_or_default();
        let outlives = setup.chosen.get("adopt").is_some_and(|v| v == "on");
        let nobody = Locker {
            name: Name::from("a"),
            ask: Ask::USUAL,
            phase: Phase::Outside,
            left: 0,
            inside_group: true,
            asked_to_join: false,
            reforms: false,
            leaves: false,
            rejoins: plan.rejoin,
            revokes: false,
            outlives,
            token: None,
            up: true,
            client: None,
            repeats: VecDeque::new(),
        };
        let mut lockers = ProcessMap::new(&setup.group, nobody);
        for (place, &p) in setup.group.members().iter().enumerate() {
            let locker = &mut lockers[p];
            if names > 1 {
                locker.name = Name::from(format!("a{}", place % names));
            }
            locker.ask = asks.get(place).or(asks.last()).copied().unwrap_or(Ask::USUAL);
            locker.left = workload.requests.get(place).copied().unwrap_or(0);
            locker.inside_group = !plan.joiners.contains(p);
            locker.rejoins |= plan.joiners.contains(p);
            locker.reforms = plan.reformers.contains(p);
            locker.leaves = plan.leavers.contains(p);
            locker.revokes = plan.revokers.contains(p);
            let next = setup.group.id((place + 1) % setup.group.len());
            let (member, session, opening, request) = (None, None, false, 0);
            let client = SessionClient { member, session, opening, request, next };
            locker.client = plan.clients.contains(p).then_some(client);
        }
        Self(lockers)
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Application<P> for Lockers {
    fn next(&self, at: ProcessId) -> Option<Request> {
        let locker = &self.0[at];
        if !locker.up {
            return None;
        }
        let repeats = || locker.repeats.front().cloned().map(Request::Operate);
        locker.next_request().or_else(repeats)
    }

    fn on_request(&mut self, at: ProcessId, request: &Request) {
        let locker = &mut self.0[at];
        match request {
            Request::Acquire { .. } => {
                let inside = locker.phase == Phase::Inside;
                locker.phase = if inside { Phase::Renewing } else { Phase::Waiting };
                locker.left = locker.left.saturating_sub(1);
            }
            Request::Adopt { .. } => locker.phase = Phase::Waiting,
            Request::Release { .. } if locker.phase == Phase::Renewing => {
                (locker.phase, locker.token) = (Phase::Waiting, None);
            }
            Request::Release { .. } => locker.goes_outside(),
            Request::Revoke { .. } => locker.revokes = false,
            Request::Join => locker.asked_to_join = true,
            Request::Leave => locker.leaves = false,
            Request::Reform | Request::Refound => locker.reforms = false,
            Request::Operate(op) => {
                if locker.next_request().as_ref() != Some(request) {
                    locker.repeats.pop_front();
                    return;
                }
                let Some(client) = &mut locker.client else { return };
                let next = client.next;
                match op {
                    SessionOp::Open { .. } => client.opening = true,
                    SessionOp::Request(Op::Acquire { claim, .. }) => {
                        client.request = claim.number;
                        locker.phase = Phase::Waiting;
                        locker.left = locker.left.saturating_sub(1);
                    }
                    _ => locker.phase = Phase::Outside,
                }
                if next != at && !matches!(op, SessionOp::Open { .. }) {
                    self.0[next].repeats.push_back(op.clone());
                }
            }
        }
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) {
        let locker = &mut self.0[at];
        match indication {
            Indication::Granted { token, .. } => {
                (locker.phase, locker.token) = (Phase::Inside, locker.outlives.then_some(*token));
            }
            Indication::Lost { .. } if locker.phase == Phase::Renewing => {
                (locker.phase, locker.token) = (Phase::Waiting, None);
            }
            Indication::Lost { .. } | Indication::Refused { .. } => locker.goes_outside(),
            Indication::Installed(view) => {
                if view.has_member(at) {
                    (locker.inside_group, locker.asked_to_join) = (true, false);
                }
                if let Some(client) = &mut locker.client {
                    client.member = view.find(at);
                }
            }
            Indication::Excluded | Indication::Left => {
                locker.goes_outside();
                (locker.inside_group, locker.asked_to_join) = (false, false);
                locker.rejoins &= *indication == Indication::Excluded;
                locker.loses_session();
            }
            Indication::Replied(event) => {
                let waits = locker.phase == Phase::Waiting;
                let phase = locker.client.as_mut().and_then(|client| client.on_event(event, waits));
                locker.phase = phase.unwrap_or(locker.phase);
            }
            Indication::Blocked => {}
        }
    }

    fn on_crash(&mut self, at: ProcessId) {
        let locker = &mut self.0[at];
        (locker.up, locker.reforms, locker.revokes) = (false, false, false);
        match locker.phase {
            Phase::Inside | Phase::Renewing | Phase::Orphaned if locker.outlives => {
                locker.phase = Phase::Orphaned
            }
            Phase::Waiting if locker.outlives && locker.token.is_some() => {
                locker.phase = Phase::Orphaned;
            }
            _ => locker.goes_outside(),
        }
        locker.loses_session();
    }

    fn on_restart(&mut self, at: ProcessId) {
        let locker = &mut self.0[at];
        (locker.up, locker.inside_group, locker.asked_to_join) = (true, false, false);
    }

    /// A holder releases.
    fn must_request(&self, at: ProcessId) -> bool {
        matches!(self.0[at].phase, Phase::Inside | Phase::Renewing)
    }

    fn waiting(&self) -> Vec<ProcessId> {
        let waiting = self.0.iter().filter(|(_, locker)| locker.phase == Phase::Waiting);
        waiting.map(|(p, _)| p).collect()
    }
}
