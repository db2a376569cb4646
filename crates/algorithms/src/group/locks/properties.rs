//! The properties: a lock has at most one holder among the processes of one view, and with leases at
//! most one holder at all; tokens grow.

use std::collections::BTreeMap;

use konklave_process::{Fixed, Monitor, Process, ProcessId, ProcessMap, Verdict, Violation};

use super::{FenceGate, Indication, Mode, Name, Request, Token};
use crate::Setup;
use crate::group::ViewId;
use crate::group::lock_table::{Command, Event, Reply, Session};

/// The monitor of locks in a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LockProperties {
    /// Whether a lock may have one holder only, excluded processes included.
    strict: Fixed<bool>,
    views: ProcessMap<Option<ViewId>>,
    /// The holders of each lock, with their modes.
    holders: BTreeMap<Name, Vec<(ProcessId, Mode)>>,
    /// The fence of the resource behind each lock, and the highest token granted.
    gates: BTreeMap<Name, (FenceGate, Token)>,
    refused: u64,
    /// Sessions of clients: the member that opened each, and the request that it waits for.
    sessions: BTreeMap<Session, (ProcessId, Option<u64>)>,
}

impl LockProperties {
    /// Nothing is held yet.
    pub fn new(setup: &Setup) -> Self {
        let is = |name, value| setup.chosen.get(name).is_some_and(|chosen| chosen == value);
        let safe = is("safety", "lease") || is("departed", "frozen");
        Self {
            strict: Fixed(safe),
            views: ProcessMap::new(&setup.group, None),
            holders: BTreeMap::new(),
            gates: BTreeMap::new(),
            refused: 0,
            sessions: BTreeMap::new(),
        }
    }

    /// How often a fence refused an earlier holder.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Judges the holders of `name`.
    fn judge(&self, name: &Name) -> Verdict {
        let holders = self.holders.get(name).map_or(&[][..], Vec::as_slice);
        for (i, (p, mode)) in holders.iter().enumerate() {
            for (q, other) in &holders[..i] {
                let alone = *mode == Mode::Exclusive || *other == Mode::Exclusive;
                let together = *self.strict || self.views[*p] == self.views[*q];
                if alone && together {
                    let detail = format!("{q} and {p} hold {name} at the same time");
                    return Err(Violation::new("mutual exclusion", detail));
                }
            }
        }
        Ok(())
    }

    fn granted(&mut self, at: ProcessId, name: &Name, mode: Mode, token: Token) -> Verdict {
        let newest = self.views.values().max().copied().flatten();
        let (gate, highest) = self.gates.entry(name.clone()).or_default();
        let stale = token < *highest || (token == *highest && mode == Mode::Exclusive);
        if stale && self.views[at] == newest {
            let detail = format!("{at} was granted {name} with {token} after {highest}");
            return Err(Violation::new("growing fences", detail));
        }
        *highest = token.max(*highest);
        self.refused += u64::from(!gate.admit(token));
        self.holders.entry(name.clone()).or_default().push((at, mode));
        self.judge(name)
    }

    /// The client at `at` receives a result.
    fn replied(&mut self, at: ProcessId, event: &Event) -> Verdict {
        match event {
            Event::Opened { session, via, .. } if *via == at => {
                self.sessions.insert(*session, (at, None));
            }
            Event::Answer { session, request, reply: Reply::Granted { name, mode, token } } => {
                let known = self.sessions.get_mut(session).filter(|(home, _)| *home == at);
                if known.and_then(|(_, wanted)| wanted.take_if(|w| w == request)).is_some() {
                    return self.granted(at, name, *mode, *token);
                }
            }
            Event::Ended { session } if self.sessions.get(session).is_some_and(|s| s.0 == at) => {
                self.sessions.remove(session);
                self.let_go(at, None);
            }
            Event::Opened { .. }
            | Event::Answer { .. }
            | Event::Released { .. }
            | Event::Ended { .. } => {}
        }
        Ok(())
    }

    fn let_go(&mut self, at: ProcessId, of: Option<&Name>) {
        self.holders.retain(|name, holders| {
            if of.is_none_or(|n| n == name) {
                holders.retain(|(p, _)| *p != at);
            }
            !holders.is_empty()
        });
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Monitor<P> for LockProperties {
    type Tag = ();

    fn on_request(&mut self, at: ProcessId, request: &Request) -> Verdict {
        match request {
            Request::Release { name } => self.let_go(at, Some(name)),
            // A request repeated through another member does not change what the client waits for.
            Request::Operate(Command::Acquire { session, request, .. }) => {
                let known = self.sessions.get_mut(session).filter(|(home, _)| *home == at);
                known.into_iter().for_each(|(_, wanted)| *wanted = Some(*request));
            }
            Request::Operate(Command::Release { session, name, .. }) => {
                if self.sessions.get(session).is_some_and(|(home, _)| *home == at) {
                    self.let_go(at, Some(name));
                }
            }
            Request::Acquire { .. }
            | Request::Join
            | Request::Leave
            | Request::Reform
            | Request::Refound
            | Request::Operate(_) => {}
        }
        Ok(())
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) -> Verdict {
        match indication {
            Indication::Granted { name, mode, token } => self.granted(at, name, *mode, *token),
            Indication::Lost { name } => {
                self.let_go(at, Some(name));
                Ok(())
            }
            Indication::Installed(view) => {
                self.views[at] = Some(view.id);
                let names: Vec<Name> = self.holders.keys().cloned().collect();
                names.iter().try_for_each(|name| self.judge(name))
            }
            Indication::Excluded | Indication::Left => {
                if let Some((name, _)) =
                    self.holders.iter().find(|(_, h)| h.iter().any(|(p, _)| *p == at))
                {
                    let detail = format!("{at} was not told that it lost {name}");
                    return Err(Violation::new("told of loss", detail));
                }
                self.views[at] = None;
                Ok(())
            }
            Indication::Replied(event) => self.replied(at, event),
            Indication::Blocked => Ok(()),
        }
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.let_go(at, None);
        self.views[at] = None;
    }
}
