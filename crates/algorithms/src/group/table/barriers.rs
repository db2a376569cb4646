//! Barriers: nobody passes before the given number of parties has arrived.

use serde::{Deserialize, Serialize};

use super::{ClaimId, Name, Outcome, Table};
use crate::group::Member;

/// The parties that have arrived at a barrier.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct BarrierState {
    of: u32,
    pub(super) arrived: Vec<ClaimId>,
}

impl Table {
    pub(super) fn arrive(&mut self, name: Name, of: u32, claim: ClaimId, out: &mut Vec<Outcome>) {
        let empty = || BarrierState { of, arrived: Vec::new() };
        let barrier = self.barriers.entry(name.clone()).or_insert_with(empty);
        if barrier.of != of {
            return out.push(Outcome::Mismatch { claim, of: barrier.of });
        }
        barrier.arrived.push(claim);
        if barrier.arrived.len() >= of as usize
            && let Some(barrier) = self.barriers.remove(&name)
        {
            out.push(Outcome::Opened { claims: barrier.arrived });
        }
    }

    pub(super) fn depart(&mut self, name: &Name, claim: ClaimId, out: &mut Vec<Outcome>) {
        if self.barriers.get(name).is_some_and(|barrier| barrier.arrived.contains(&claim)) {
            self.thin(name, |c| c != claim);
            out.push(Outcome::Departed { claim });
        }
    }

    pub(super) fn depart_barriers(&mut self, members: &[Member]) {
        let names: Vec<Name> = self.barriers.keys().cloned().collect();
        for name in names {
            self.thin(&name, |claim| members.contains(&claim.member));
        }
    }

    fn thin(&mut self, name: &Name, stays: impl Fn(ClaimId) -> bool) {
        if let Some(barrier) = self.barriers.get_mut(name) {
            barrier.arrived.retain(|claim| stays(*claim));
            if barrier.arrived.is_empty() {
                self.barriers.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::ProcessId;

    use super::*;
    use crate::group::table::Op;

    fn claim(id: u32) -> ClaimId {
        let member = Member { id: ProcessId(id), incarnation: 1 };
        ClaimId { member, session: 0, number: 1 }
    }

    #[test]
    fn barrier_opens_for_all_and_starts_anew() {
        let (mut table, mut out) = (Table::default(), Vec::new());
        for round in 0..2 {
            for id in 0..3 {
                assert!(out.is_empty(), "round {round}: nobody goes on alone");
                let op = Op::Arrive { claim: claim(id), name: "b".into(), of: 3 };
                table.apply(&op, &mut out);
            }
            let claims = (0..3).map(claim).collect();
            assert_eq!(std::mem::take(&mut out), [Outcome::Opened { claims }]);
        }
        assert_eq!(table.len(), (0, 0, 0));
    }

    #[test]
    fn gone_or_withdrawn_parties_do_not_count() {
        let (mut table, mut out) = (Table::default(), Vec::new());
        for id in 0..2 {
            table.apply(&Op::Arrive { claim: claim(id), name: "b".into(), of: 3 }, &mut out);
        }
        table.depart_barriers(&[claim(1).member, claim(2).member]);
        table.apply(&Op::Arrive { claim: claim(2), name: "b".into(), of: 3 }, &mut out);
        table.apply(&Op::Depart { claim: claim(2), name: "b".into() }, &mut out);
        table.apply(&Op::Arrive { claim: claim(2), name: "b".into(), of: 3 }, &mut out);
        table.apply(&Op::Depart { claim: claim(0), name: "b".into() }, &mut out);
        let departed = Outcome::Departed { claim: claim(2) };
        assert_eq!(std::mem::take(&mut out), [departed], "the other one had not arrived");
        table.apply(&Op::Arrive { claim: claim(0), name: "b".into(), of: 2 }, &mut out);
        assert_eq!(out, [Outcome::Mismatch { claim: claim(0), of: 3 }]);
    }
}
