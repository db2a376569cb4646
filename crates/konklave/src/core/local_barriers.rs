//! Local sessions that wait at barriers.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::Core;
use crate::error::Error;
use crate::table::{ClaimId, Name, Op};

struct BarrierWait {
    name: Name,
    of: u32,
    session: u32,
    reply: oneshot::Sender<Result<(), Error>>,
    /// Whether the arrival was submitted to the group.
    submitted: bool,
}

#[derive(Default)]
pub(super) struct LocalBarriers(BTreeMap<u64, BarrierWait>);

impl LocalBarriers {
    /// This node is outside the group. A barrier may have opened without its knowledge, so submitted arrivals fail.
    pub(super) fn fail(&mut self) {
        let waiting = std::mem::take(&mut self.0);
        for (number, waits) in waiting {
            if waits.submitted {
                let _ = waits.reply.send(Err(Error::Lost(waits.name.to_string())));
            } else {
                self.0.insert(number, waits);
            }
        }
    }
}

impl LocalBarriers {
    /// The node has left for good.
    pub(super) fn end(&mut self) {
        for (_, waits) in std::mem::take(&mut self.0) {
            let _ = waits.reply.send(Err(Error::Left));
        }
    }
}

impl Core {
    pub(crate) fn arrive(
        &mut self,
        session: u32,
        name: Name,
        of: u32,
        reply: oneshot::Sender<Result<(), Error>>,
    ) -> u64 {
        let number = self.claims.next_number();
        if let Err(error) = self.is_usable(session) {
            let _ = reply.send(Err(error));
            return number;
        }
        self.barriers.0.insert(number, BarrierWait { name, of, session, reply, submitted: false });
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
        for (number, waits) in self.barriers.0.iter_mut().filter(|(_, w)| !w.submitted) {
            waits.submitted = true;
            let claim = ClaimId { member, session: waits.session, number: *number };
            ops.push(Op::Arrive { claim, name: waits.name.clone(), of: waits.of });
        }
        ops.into_iter().for_each(|op| self.submit(op));
    }

    /// A local session gives up waiting.
    pub(crate) fn depart(&mut self, number: u64) {
        if let Some(waits) = self.barriers.0.remove(&number) {
            let claim = ClaimId { member: self.own_member(), session: waits.session, number };
            self.submit(Op::Depart { claim, name: waits.name });
            let _ = waits.reply.send(Err(Error::Closed));
            self.pump();
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
            if let Some(waits) = self.barriers.0.remove(&claim.number) {
                let _ = waits.reply.send(Ok(()));
            }
        }
    }

    pub(super) fn on_mismatch(&mut self, claim: ClaimId, of: u32) {
        if claim.member == self.own_member()
            && let Some(waits) = self.barriers.0.remove(&claim.number)
        {
            let (name, asked) = (waits.name.to_string(), waits.of);
            let _ = waits.reply.send(Err(Error::Parties { name, of, asked }));
        }
    }
}
