//! Local sessions that wait at barriers.
//!
//! Scenario: a party arrives, drops its future, and waits again. Hazard: the barrier opens before the group has
//! learned of the withdrawal. The others go on, and the new arrival counts for a round that the party has not
//! reached. Rule: an arrival that is withdrawn stays known until the group has confirmed it, and the next arrival
//! of the party is sent only then. If the barrier opens for the withdrawn one, the next wait of the party returns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::Core;
use crate::error::Error;
use crate::table::{ClaimId, Name, Op};

/// One party at a barrier.
#[derive(Debug, Default)]
pub(crate) struct Party {
    /// Whether the barrier opened for it while it did not wait.
    opened: AtomicBool,
}

impl Party {
    /// The barrier opened for it, and it does not know.
    pub(crate) fn open(&self) {
        self.opened.store(true, Ordering::Relaxed);
    }
}

type Reply = oneshot::Sender<Result<(), Error>>;

struct BarrierWait {
    name: Name,
    of: u32,
    session: u32,
    party: Arc<Party>,
    /// `None` once the arrival is withdrawn.
    reply: Option<Reply>,
    /// Whether the arrival was submitted to the group.
    submitted: bool,
}

impl BarrierWait {
    fn answer(self, answer: Result<(), Error>) {
        if let Some(reply) = self.reply {
            let _ = reply.send(answer);
        }
    }
}

#[derive(Default)]
pub(super) struct LocalBarriers(BTreeMap<u64, BarrierWait>);

impl LocalBarriers {
    /// This node is outside the group. A barrier may have opened without its knowledge, so submitted arrivals fail.
    pub(super) fn fail(&mut self) {
        let unsubmitted = self.unsubmitted();
        for (number, waits) in std::mem::take(&mut self.0) {
            if !unsubmitted.contains(&number) {
                let lost = Error::Lost(waits.name.to_string());
                waits.answer(Err(lost));
            } else {
                self.0.insert(number, waits);
            }
        }
    }

    /// The node has left for good.
    pub(super) fn end(&mut self) {
        for (_, waits) in std::mem::take(&mut self.0) {
            waits.answer(Err(Error::Left));
        }
    }

    /// The arrivals that may be submitted: none of a party whose last one is being withdrawn.
    fn unsubmitted(&self) -> Vec<u64> {
        let withdrawn =
            |party| self.0.values().any(|w| w.reply.is_none() && Arc::ptr_eq(&w.party, party));
        let ready = self.0.iter().filter(|(_, w)| !w.submitted && !withdrawn(&w.party));
        ready.map(|(number, _)| *number).collect()
    }

    /// Removes the arrival of `party` that waits, if there is one.
    fn remove_waiting(&mut self, party: &Arc<Party>) -> Option<BarrierWait> {
        let waits = |w: &BarrierWait| w.reply.is_some() && Arc::ptr_eq(&w.party, party);
        let number = self.0.iter().find(|(_, w)| waits(w)).map(|(number, _)| *number)?;
        self.0.remove(&number)
    }
}

impl Core {
    pub(crate) fn arrive(
        &mut self,
        session: u32,
        name: Name,
        of: u32,
        party: &Arc<Party>,
        reply: Reply,
    ) -> u64 {
        let number = self.claims.next_number();
        if let Err(error) = self.is_usable(session) {
            let _ = reply.send(Err(error));
            return number;
        }
        if party.opened.swap(false, Ordering::Relaxed) {
            let _ = reply.send(Ok(()));
            return number;
        }
        let (party, reply) = (Arc::clone(party), Some(reply));
        let waits = BarrierWait { name, of, session, party, reply, submitted: false };
        self.barriers.0.insert(number, waits);
        self.rearrive();
        self.pump();
        number
    }

    /// Submits all local arrivals that the group does not know of.
    pub(super) fn rearrive(&mut self) {
        if !self.is_member() {
            return;
        }
        let member = self.own_member();
        let mut ops = Vec::new();
        for number in self.barriers.unsubmitted() {
            let Some(waits) = self.barriers.0.get_mut(&number) else { continue };
            waits.submitted = true;
            let claim = ClaimId { member, session: waits.session, number };
            ops.push(Op::Arrive { claim, name: waits.name.clone(), of: waits.of });
        }
        ops.into_iter().for_each(|op| self.submit(op));
    }

    /// A local session gives up waiting.
    pub(crate) fn depart(&mut self, number: u64) {
        let waits = self.barriers.0.get_mut(&number);
        if let Some(reply) = waits.and_then(|waits| waits.reply.take()) {
            let _ = reply.send(Err(Error::Closed));
            self.withdraw_arrival(number);
            self.pump();
        }
    }

    /// Withdraws an arrival that nobody waits for any more. The group confirms it, if it knows the arrival.
    fn withdraw_arrival(&mut self, number: u64) {
        let member = self.own_member();
        match self.barriers.0.get(&number) {
            Some(waits) if waits.submitted => {
                let claim = ClaimId { member, session: waits.session, number };
                self.submit(Op::Depart { claim, name: waits.name.clone() });
            }
            _ => drop(self.barriers.0.remove(&number)),
        }
    }

    pub(super) fn end_waits(&mut self, session: u32) {
        let of = |(n, w): (&u64, &BarrierWait)| (w.session == session).then_some(*n);
        let numbers: Vec<u64> = self.barriers.0.iter().filter_map(of).collect();
        numbers.into_iter().for_each(|number| self.depart(number));
    }

    pub(super) fn on_opened(&mut self, claims: &[ClaimId]) {
        let me = self.own_member();
        for claim in claims.iter().filter(|c| c.member == me) {
            let Some(waits) = self.barriers.0.remove(&claim.number) else { continue };
            // It opened for a party that had dropped its future: then its next wait is over.
            let next = match waits.reply {
                Some(_) => Some(waits),
                None => self.barriers.remove_waiting(&waits.party).or_else(|| {
                    waits.party.open();
                    None
                }),
            };
            if let Some(waits) = next {
                waits.answer(Ok(()));
            }
        }
    }

    /// The arrival is withdrawn: the next one of the same party may be submitted.
    pub(super) fn on_departed(&mut self, claim: ClaimId) {
        if claim.member == self.own_member() && self.barriers.0.remove(&claim.number).is_some() {
            self.rearrive();
        }
    }

    pub(super) fn on_mismatch(&mut self, claim: ClaimId, of: u32) {
        if claim.member == self.own_member()
            && let Some(waits) = self.barriers.0.remove(&claim.number)
        {
            let (name, asked) = (waits.name.to_string(), waits.of);
            waits.answer(Err(Error::Parties { name, of, asked }));
            // If it was being withdrawn, this answers it, too.
            self.rearrive();
        }
    }
}
