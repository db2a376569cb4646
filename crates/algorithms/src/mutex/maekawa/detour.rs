//! Detours of tree quorums around suspected arbiters.

use std::sync::Arc;

use konklave_process::ProcessId;
use serde::Serialize;

use super::{Message, Node, Requester, Rules, State, Variant};
use crate::mutex::coterie::Coterie;
use crate::mutex::locking::Outbox;

/// A quorum that avoids suspected arbiters.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Detour {
    /// The arbiters whose locks it takes, lowest first.
    needed: Vec<ProcessId>,
    /// All arbiters that this request was sent to, lowest first. A suspected one may only be slow, so the release goes
    /// to it, too.
    asked: Vec<ProcessId>,
}

impl Requester {
    /// The arbiters to ask: the quorum, or a detour if some of the quorum are suspected.
    pub(super) fn choose_quorum(&mut self, rules: &Rules, me: ProcessId) -> Arc<[ProcessId]> {
        self.detour = self.around_suspects(rules, me).map(|needed| {
            let asked = needed.clone();
            Box::new(Detour { needed, asked })
        });
        self.detour.as_ref().map_or_else(|| rules.ask.clone(), |detour| detour.asked[..].into())
    }

    /// The arbiters to inform of the release.
    pub(super) fn leave_quorum(&mut self, rules: &Rules) -> Arc<[ProcessId]> {
        self.detour.take().map_or_else(|| rules.inform.clone(), |detour| detour.asked.into())
    }

    /// The arbiters whose locks a detour takes.
    pub(super) fn needed(&self) -> Option<&[ProcessId]> {
        self.detour.as_ref().map(|detour| &*detour.needed)
    }

    /// Whether the process has to wait anyway: without the locks of the arbiters that sent a failure, or are suspected
    /// and silent, the rest is not enough.
    pub(super) fn is_failing(&self, rules: &Rules) -> bool {
        let State::Wanted { answers, .. } = &self.state else { return false };
        let needed = self.needed().unwrap_or(&rules.ask);
        let is_needed = |p: &ProcessId| self.detour.is_none() || needed.binary_search(p).is_ok();
        let is_gone = |p: &ProcessId| needed.binary_search(p).is_ok() && answers.is_silent(*p);
        let gone = self.suspected.iter().filter(is_gone);
        rules.enough.is_out_of_reach(answers.failed().filter(is_needed).chain(gone))
    }

    /// A quorum without suspected processes, if the own one has some and there is another.
    fn around_suspects(&self, rules: &Rules, me: ProcessId) -> Option<Vec<ProcessId>> {
        let group = rules.tree.as_ref()?;
        if !self.suspected.iter().any(|p| rules.asks(p)) {
            return None;
        }
        Coterie::around(group, me, |p| self.suspected.contains(p))
    }
}

impl<V: Variant> Node<V> {
    /// Asks other arbiters in place of `suspect`. Locks that are not needed any more are kept until the release: an
    /// arbiter that inquires gets them back as any lock.
    pub(super) fn avoid(&mut self, suspect: ProcessId, out: &mut Outbox<Self>) {
        if !self.rules.heeds_suspicions() {
            return;
        }
        self.requester.suspected.insert(suspect);
        if let Some(needed) = self.requester.around_suspects(&self.rules, out.me()) {
            self.widen(needed, out);
        }
        self.enter_or_relinquish(out);
    }

    fn widen(&mut self, needed: Vec<ProcessId>, out: &mut Outbox<Self>) {
        let State::Wanted { since, answers } = &mut self.requester.state else { return };
        let mut asked = match self.requester.detour.take() {
            Some(detour) => detour.asked,
            None => self.rules.ask.to_vec(),
        };
        for &arbiter in &needed {
            if let Err(i) = asked.binary_search(&arbiter) {
                asked.insert(i, arbiter);
                out.send(arbiter, Message::Request { time: *since });
            }
        }
        answers.widen(&asked);
        self.requester.detour = Some(Box::new(Detour { needed, asked }));
    }
}
