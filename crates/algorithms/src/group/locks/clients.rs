//! The clients: each wants a lock a number of times; some join, leave, or ask for a new view.

use std::collections::VecDeque;

use konklave_process::{Application, Process, ProcessId, ProcessMap};

use super::{Indication, Mode, Name, Request, Token};
use crate::group::Plan;
use crate::group::lock_table::{Command, Event, Reply, Session};
use crate::{Setup, Workload};

/// One client for each process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lockers(ProcessMap<Locker>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Locker {
    name: Name,
    phase: Phase,
    /// How often it still wants the lock.
    left: u32,
    inside_group: bool,
    asked_to_join: bool,
    reforms: bool,
    leaves: bool,
    rejoins: bool,
    up: bool,
    /// The session, if this application is a client of the group and not a member itself.
    client: Option<SessionClient>,
    /// Requests of the client at the previous member, to be repeated through this member.
    repeats: VecDeque<Command>,
}

/// A client with a session. It makes every request twice, as if it had lost the reply: the second
/// time through another member, some time later.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct SessionClient {
    session: Option<Session>,
    opening: bool,
    /// The number of its last request, and the token of its last grant.
    request: u64,
    token: Token,
    next: ProcessId,
}

/// How long a client may be silent, in T: longer than any run.
const TTL: u32 = 1000;

impl Locker {
    /// Its next request of its own.
    fn next_request(&self, at: ProcessId) -> Option<Request> {
        let name = self.name.clone();
        if !self.inside_group {
            return (!self.asked_to_join && self.rejoins).then_some(Request::Join);
        }
        if self.reforms {
            return Some(Request::Reform);
        }
        if let Some(client) = &self.client {
            return client.next_command(at, self).map(Request::Operate);
        }
        match self.phase {
            Phase::Outside if self.left > 0 => {
                Some(Request::Acquire { name, mode: Mode::Exclusive })
            }
            Phase::Outside if self.leaves => Some(Request::Leave),
            Phase::Inside => Some(Request::Release { name }),
            Phase::Outside | Phase::Waiting => None,
        }
    }
}

impl SessionClient {
    /// Its next operation.
    fn next_command(&self, at: ProcessId, locker: &Locker) -> Option<Command> {
        let name = locker.name.clone();
        let Some(session) = self.session else {
            let open = Command::Open { via: at, request: 0, ttl: TTL };
            return (!self.opening && locker.left > 0).then_some(open);
        };
        match locker.phase {
            Phase::Outside if locker.left > 0 => {
                let (mode, wait) = (Mode::Exclusive, true);
                Some(Command::Acquire { session, request: self.request + 1, name, mode, wait })
            }
            Phase::Inside => Some(Command::Release { session, name, token: self.token }),
            Phase::Outside | Phase::Waiting => None,
        }
    }

    /// Handles a result. Returns the new phase, if the client has the lock or lost its session.
    fn on_event(&mut self, at: ProcessId, event: &Event, waits: bool) -> Option<Phase> {
        match event {
            Event::Opened { session, via, .. } if *via == at => {
                self.session = Some(*session);
                None
            }
            Event::Answer { session, request, reply: Reply::Granted { token, .. } }
                if waits && self.session == Some(*session) && *request == self.request =>
            {
                self.token = *token;
                Some(Phase::Inside)
            }
            Event::Ended { session } if self.session == Some(*session) => {
                self.session = None;
                Some(Phase::Outside)
            }
            Event::Opened { .. }
            | Event::Answer { .. }
            | Event::Released { .. }
            | Event::Ended { .. } => None,
        }
    }
}

/// The relation of a client to its lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Outside,
    Waiting,
    Inside,
}

impl Lockers {
    /// The clients that `workload` and the plan of `setup` describe. With `names` names, neighbours
    /// in node order want different ones.
    pub fn new(workload: &Workload, setup: &Setup) -> Self {
        let plan = Plan::of(setup);
        let names = setup.chosen.get("names").and_then(|n| n.parse().ok()).unwrap_or(1usize).max(1);
        let nobody = Locker {
            name: Name::from("a"),
            phase: Phase::Outside,
            left: 0,
            inside_group: true,
            asked_to_join: false,
            reforms: false,
            leaves: false,
            rejoins: plan.rejoin,
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
            locker.left = workload.requests.get(place).copied().unwrap_or(0);
            locker.inside_group = !plan.joiners.contains(p);
            locker.rejoins |= plan.joiners.contains(p);
            locker.reforms = plan.reformers.contains(p);
            locker.leaves = plan.leavers.contains(p);
            let next = setup.group.id((place + 1) % setup.group.len());
            let (session, opening, request, token) = (None, false, 0, Token::default());
            let client = SessionClient { session, opening, request, token, next };
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
        locker.next_request(at).or_else(repeats)
    }

    fn on_request(&mut self, at: ProcessId, request: &Request) {
        let locker = &mut self.0[at];
        match request {
            Request::Acquire { .. } => {
                locker.phase = Phase::Waiting;
                locker.left = locker.left.saturating_sub(1);
            }
            Request::Release { .. } => locker.phase = Phase::Outside,
            Request::Join => locker.asked_to_join = true,
            Request::Leave => locker.leaves = false,
            Request::Reform | Request::Refound => locker.reforms = false,
            Request::Operate(command) => {
                if locker.next_request(at).as_ref() != Some(request) {
                    locker.repeats.pop_front();
                    return;
                }
                let Some(client) = &mut locker.client else { return };
                let next = client.next;
                match command {
                    Command::Open { .. } => client.opening = true,
                    Command::Acquire { request, .. } => {
                        client.request = *request;
                        locker.phase = Phase::Waiting;
                        locker.left = locker.left.saturating_sub(1);
                    }
                    _ => locker.phase = Phase::Outside,
                }
                if next != at && !matches!(command, Command::Open { .. }) {
                    self.0[next].repeats.push_back(command.clone());
                }
            }
        }
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) {
        let locker = &mut self.0[at];
        match indication {
            Indication::Granted { .. } => locker.phase = Phase::Inside,
            Indication::Lost { .. } => locker.phase = Phase::Outside,
            Indication::Installed(view) => {
                if view.has_member(at) {
                    (locker.inside_group, locker.asked_to_join) = (true, false);
                }
            }
            Indication::Excluded => {
                locker.phase = Phase::Outside;
                (locker.inside_group, locker.asked_to_join) = (false, false);
            }
            Indication::Left => {
                locker.phase = Phase::Outside;
                (locker.inside_group, locker.rejoins) = (false, false);
            }
            Indication::Replied(event) => {
                let waits = locker.phase == Phase::Waiting;
                let phase =
                    locker.client.as_mut().and_then(|client| client.on_event(at, event, waits));
                locker.phase = phase.unwrap_or(locker.phase);
            }
            Indication::Blocked => {}
        }
    }

    fn on_crash(&mut self, at: ProcessId) {
        let locker = &mut self.0[at];
        (locker.up, locker.phase, locker.reforms) = (false, Phase::Outside, false);
    }

    fn on_restart(&mut self, at: ProcessId) {
        let locker = &mut self.0[at];
        (locker.up, locker.inside_group, locker.asked_to_join) = (true, false, false);
    }

    /// A holder releases.
    fn must_request(&self, at: ProcessId) -> bool {
        self.0[at].phase == Phase::Inside
    }

    fn waiting(&self) -> Vec<ProcessId> {
        let waiting = self.0.iter().filter(|(_, locker)| locker.phase == Phase::Waiting);
        waiting.map(|(p, _)| p).collect()
    }
}
