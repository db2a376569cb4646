//! Who here waits at a barrier.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::Core;
use crate::error::Error;
use crate::table::{Claim, Name, Op};

struct Waits {
    name: Name,
    of: u32,
    session: u32,
    reply: oneshot::Sender<Result<(), Error>>,
    /// Whether the group knows.
    asked: bool,
}

#[derive(Default)]
pub(super) struct Meetings(BTreeMap<u64, Waits>);

impl Meetings {
    /// We are outside. Who had arrived may have opened the barrier without knowing it.
    pub(super) fn fail(&mut self) {
        let waiting = std::mem::take(&mut self.0);
        for (number, waits) in waiting {
            if waits.asked {
                let _ = waits.reply.send(Err(Error::Lost(waits.name.to_string())));
            } else {
                self.0.insert(number, waits);
            }
        }
    }
}

impl Meetings {
    /// We are gone for good.
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
        let number = self.desk.next_number();
        if let Err(error) = self.is_usable(session) {
            let _ = reply.send(Err(error));
            return number;
        }
        self.meetings.0.insert(number, Waits { name, of, session, reply, asked: false });
        self.arrive_anew();
        self.pump();
        number
    }

    /// Tells the group of all who wait here and whom it does not know of.
    pub(super) fn arrive_anew(&mut self) {
        if !self.is_member() {
            return;
        }
        let member = self.myself();
        let mut ops = Vec::new();
        for (number, waits) in self.meetings.0.iter_mut().filter(|(_, w)| !w.asked) {
            waits.asked = true;
            let claim = Claim { member, session: waits.session, number: *number };
            ops.push(Op::Arrive { claim, name: waits.name.clone(), of: waits.of });
        }
        ops.into_iter().for_each(|op| self.submit(op));
    }

    /// Someone here does not wait any more, and is told so if it listens.
    pub(crate) fn depart(&mut self, number: u64) {
        if let Some(waits) = self.meetings.0.remove(&number) {
            let claim = Claim { member: self.myself(), session: waits.session, number };
            self.submit(Op::Depart { claim, name: waits.name });
            let _ = waits.reply.send(Err(Error::Closed));
            self.pump();
        }
    }

    pub(super) fn end_waits(&mut self, session: u32) {
        let of = |(n, w): (&u64, &Waits)| (w.session == session).then_some(*n);
        let numbers: Vec<u64> = self.meetings.0.iter().filter_map(of).collect();
        numbers.into_iter().for_each(|number| self.depart(number));
    }

    pub(super) fn on_opened(&mut self, claims: &[Claim]) {
        let me = self.myself();
        for claim in claims.iter().filter(|c| c.member == me) {
            if let Some(waits) = self.meetings.0.remove(&claim.number) {
                let _ = waits.reply.send(Ok(()));
            }
        }
    }

    pub(super) fn on_mismatch(&mut self, claim: Claim, of: u32) {
        if claim.member == self.myself()
            && let Some(waits) = self.meetings.0.remove(&claim.number)
        {
            let (name, asked) = (waits.name.to_string(), waits.of);
            let _ = waits.reply.send(Err(Error::Parties { name, of, asked }));
        }
    }
}
