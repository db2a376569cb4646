//! Total and causal order, judged from the requests and indications alone.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{Group, ProcessId, ProcessMap, Verdict, Violation};

use super::super::Unit;

/// Total order without gaps: the deliveries of each member are a prefix of one sequence.
///
/// Crashed members count, too. Messages that all members have delivered are forgotten.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Log {
    /// The end of the sequence, from the first message that a member lacks, with delivery counts.
    row: VecDeque<(Unit, u32)>,
    /// The place of the first message in `row`.
    base: u64,
    /// How many messages each member has delivered.
    at: ProcessMap<u64>,
    members: u32,
    /// Whether a member has left the sequence. From then on nothing more is judged.
    broken: bool,
}

impl Log {
    pub(super) fn new(group: &Group) -> Self {
        Self {
            row: VecDeque::new(),
            base: 0,
            at: ProcessMap::new(group, 0),
            members: group.len() as u32,
            broken: false,
        }
    }

    /// Whether another member delivered `unit` at the place that `p` has reached. Then both have
    /// delivered the same messages before, and the verdict on the other one holds for `p`.
    pub(super) fn repeats(&self, p: ProcessId, unit: Unit) -> bool {
        let i = self.at[p].checked_sub(self.base).filter(|_| !self.broken);
        i.and_then(|i| self.row.get(i as usize)).is_some_and(|(known, _)| *known == unit)
    }

    pub(super) fn deliver(&mut self, p: ProcessId, unit: Unit) -> Verdict {
        if self.broken {
            return Ok(());
        }
        let position = self.at[p];
        self.at[p] += 1;
        // A restarted member may be at a place that is forgotten already.
        let Some(i) = position.checked_sub(self.base) else { return Ok(()) };
        if i as usize == self.row.len() {
            self.row.push_back((unit, 0));
        }
        let (expected, count) = &mut self.row[i as usize];
        if *expected != unit {
            self.broken = true;
            let expected = *expected;
            let detail = format!("{p} delivered {unit} where another delivered {expected}");
            return Err(Violation::new("total order", detail));
        }
        *count += 1;
        while self.row.front().is_some_and(|(_, count)| *count == self.members) {
            self.row.pop_front();
            self.base += 1;
        }
        Ok(())
    }

    /// A member has restarted: its deliveries are no part of the sequence any more.
    pub(super) fn forget(&mut self, p: ProcessId) {
        self.at[p] = 0;
        self.broken = true;
    }
}

/// Causal order: no member delivers a message before the messages that its sender had delivered.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Causes {
    /// For each message that a member lacks: its causes, and how many members have delivered it.
    of: BTreeMap<Unit, (Vec<Unit>, u32)>,
}

impl Causes {
    /// `unit` is multicast by a member that has delivered these messages, the last of each sender.
    pub(super) fn send(&mut self, unit: Unit, known: impl Iterator<Item = (ProcessId, u32)>) {
        let known = known.filter(|(p, number)| *p != unit.from && *number > 0);
        let mut causes: Vec<Unit> = known.map(|(from, number)| Unit { from, number }).collect();
        if unit.number > 1 {
            causes.push(Unit { from: unit.from, number: unit.number - 1 });
        }
        self.of.insert(unit, (causes, 0));
    }

    /// `repeats`: another member delivered `unit` after the same messages, so its verdict holds for `p`.
    /// In a total order this spares the search for all members but the first.
    pub(super) fn deliver(
        &mut self,
        p: ProcessId,
        unit: Unit,
        n: usize,
        repeats: bool,
        has: impl Fn(Unit) -> bool,
    ) -> Verdict {
        let Some((causes, count)) = self.of.get_mut(&unit) else { return Ok(()) };
        let missing = match repeats {
            true => None,
            false => causes.iter().copied().find(|&cause| !has(cause)),
        };
        *count += 1;
        if *count as usize == n {
            self.of.remove(&unit);
        }
        missing.map_or(Ok(()), |cause| {
            let detail = format!("{p} delivered {unit} before {cause}, which led to it");
            Err(Violation::new("causal order", detail))
        })
    }
}
