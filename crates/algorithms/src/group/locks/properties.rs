//! The properties: among the processes of one view, or with leases among all, a lock has no more holders than
//! their modes admit; tokens grow; a request that does not wait is refused only for another's sake.

use std::collections::BTreeMap;

use konklave_process::{
    Fixed, Monitor, Process, ProcessId, ProcessMap, ProcessSet, Verdict, Violation,
};

use super::{Indication, LockMode, Name, Request};
use crate::Setup;
use crate::group::lock_table::{Event, SessionOp};
use crate::group::table::Op;
use crate::group::{Token, ViewId};

/// The monitor of locks in a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LockProperties {
    /// Whether a lock may have one holder only, excluded processes included.
    strict: Fixed<bool>,
    views: ProcessMap<Option<ViewId>>,
    /// The holders of each lock, with their modes.
    holders: BTreeMap<Name, Vec<(ProcessId, LockMode)>>,
    /// The tokens granted of each lock.
    tokens: BTreeMap<Name, Highest>,
    refused: u64,
    /// The request that the client at each process waits for, and how.
    asked: ProcessMap<Option<(u64, LockMode)>>,
    /// The processes that take a grant over after a restart.
    adopting: ProcessSet,
    /// The only process that ever asked for each lock; none if there are several, or if it crashed.
    only: BTreeMap<Name, Option<ProcessId>>,
}

/// The highest tokens granted of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Highest {
    any: Token,
    exclusive: Token,
}

impl LockProperties {
    /// Nothing is held yet.
    pub fn new(setup: &Setup) -> Self {
        let is = |name, value| setup.chosen.get(name).is_some_and(|chosen| chosen == value);
        let safe = is("safety", "lease") || is("departed", "fenced");
        Self {
            strict: Fixed(safe),
            views: ProcessMap::new(&setup.group, None),
            holders: BTreeMap::new(),
            tokens: BTreeMap::new(),
            refused: 0,
            asked: ProcessMap::new(&setup.group, None),
            adopting: ProcessSet::new(),
            only: BTreeMap::new(),
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
            let together = |q: ProcessId| *self.strict || self.views[*p] == self.views[q];
            let others = holders[..i].iter().filter(|(q, _)| together(*q));
            let clashing = others.clone().find(|(_, other)| clash(*mode, *other));
            let mut alike = others.filter(|(_, other)| other == mode);
            let surplus = match mode {
                LockMode::Permit { of } => alike.nth((*of as usize).saturating_sub(1)),
                LockMode::Exclusive | LockMode::Shared => None,
            };
            if let Some((q, _)) = clashing.or(surplus) {
                let detail = format!("{q} and {p} hold {name} at the same time");
                return Err(Violation::new("mutual exclusion", detail));
            }
        }
        Ok(())
    }

    fn granted(&mut self, at: ProcessId, name: &Name, mode: LockMode, token: Token) -> Verdict {
        let newest = self.views.values().max().copied().flatten();
        let adopts = self.adopting.remove(at);
        let highest = self.tokens.entry(name.clone()).or_default();
        // Shared holders may learn of their grants in any order.
        let exclusive = mode == LockMode::Exclusive;
        let before = if exclusive { highest.any } else { highest.exclusive };
        // Nobody else has had the lock since the grant that a restarted process takes over.
        let stale = token < before || (token == before && !adopts);
        if stale && self.views[at] == newest {
            let detail = format!("{at} was granted {name} with token {token} after {before}");
            return Err(Violation::new("growing fences", detail));
        }
        self.refused += u64::from(token < before);
        highest.any = token.max(highest.any);
        if exclusive {
            highest.exclusive = token.max(highest.exclusive);
        }
        self.holders.entry(name.clone()).or_default().push((at, mode));
        self.judge(name)
    }

    /// A request that does not wait is refused.
    fn on_refused(&mut self, at: ProcessId, name: &Name) -> Verdict {
        if !self.adopting.remove(at) && self.only.get(name) == Some(&Some(at)) {
            let detail = format!("{at} was refused {name}, for which no other process ever asked");
            return Err(Violation::new("refused though free", detail));
        }
        Ok(())
    }

    fn on_asked(&mut self, at: ProcessId, name: &Name) {
        let only = self.only.entry(name.clone()).or_insert(Some(at));
        *only = only.filter(|p| *p == at);
    }

    /// The client at `at` receives a result.
    fn replied(&mut self, at: ProcessId, event: &Event) -> Verdict {
        match event {
            Event::Granted { claim, name, token } => {
                let asked = self.asked[at].take_if(|(number, _)| *number == claim.number);
                if let Some((_, mode)) = asked {
                    return self.granted(at, name, mode, *token);
                }
            }
            Event::Revoked { name, .. } => self.let_go(at, Some(name)),
            Event::Ended { .. } => self.let_go(at, None),
            Event::Opened { .. } | Event::Refused { .. } => {}
        }
        Ok(())
    }

    /// The client at `at` operates on a session. A request repeated for another client changes nothing.
    fn on_client_op(&mut self, at: ProcessId, op: &Op) {
        match op {
            Op::Acquire { claim, key, mode, .. } if claim.member.id == at => {
                self.on_asked(at, &key.name);
                self.asked[at] = Some((claim.number, *mode));
            }
            Op::Release { claim, key } if claim.member.id == at => self.let_go(at, Some(&key.name)),
            _ => {}
        }
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
            Request::Acquire { name, .. } => self.on_asked(at, name),
            Request::Adopt { .. } => {
                self.adopting.insert(at);
            }
            Request::Release { name } => self.let_go(at, Some(name)),
            Request::Operate(SessionOp::Request(op)) => self.on_client_op(at, op),
            Request::Revoke { .. }
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
            Indication::Refused { name } => self.on_refused(at, name),
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
        self.adopting.remove(at);
        self.only.values_mut().for_each(|only| *only = only.filter(|p| *p != at));
    }
}

/// Whether two holders with these modes exclude each other. A semaphore is no lock, though it may have the
/// name of one.
fn clash(one: LockMode, other: LockMode) -> bool {
    match (one, other) {
        (LockMode::Permit { of }, LockMode::Permit { of: asked }) => of != asked,
        (LockMode::Permit { .. }, _) | (_, LockMode::Permit { .. }) => false,
        (one, other) => one == LockMode::Exclusive || other == LockMode::Exclusive,
    }
}
