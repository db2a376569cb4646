//! Total and causal order, judged from what crosses the line to the application.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{Group, ProcessId, ProcessMap, Verdict, Violation};

use super::super::Unit;

/// Total order without holes: what each member delivers is a beginning of one row.
///
/// Members that only part of the group agree on are judged as strictly as the rest: crashed ones
/// count, too. What all have delivered is forgotten.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Log {
    /// The part of the row that some have not delivered, and how many have.
    row: VecDeque<(Unit, u32)>,
    /// Where the row begins.
    base: u64,
    /// How many each member has delivered.
    at: ProcessMap<u64>,
    members: u32,
    /// Whether someone has left the row; from then on only that is known.
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

    /// Whether `unit` is what another delivered at the place where `p` is. Then both had delivered the
    /// same before, and what was found of the other holds for `p`.
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
        // A member that came up again may be behind what all others have forgotten.
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

    /// A member came up anew: what it delivers from now on is no part of the row.
    pub(super) fn forget(&mut self, p: ProcessId) {
        self.at[p] = 0;
        self.broken = true;
    }
}

/// Causal order: nobody delivers a message before those that its sender knew when it sent it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Causes {
    /// For what some have not delivered: the last messages its sender knew, and how many have it.
    of: BTreeMap<Unit, (Vec<Unit>, u32)>,
}

impl Causes {
    /// `unit` is multicast by one who knows these messages, the last of each sender.
    pub(super) fn send(&mut self, unit: Unit, known: impl Iterator<Item = (ProcessId, u32)>) {
        let known = known.filter(|(p, number)| *p != unit.from && *number > 0);
        let mut causes: Vec<Unit> = known.map(|(from, number)| Unit { from, number }).collect();
        if unit.number > 1 {
            causes.push(Unit { from: unit.from, number: unit.number - 1 });
        }
        self.of.insert(unit, (causes, 0));
    }

    /// `repeats`: another delivered it after the same messages that `p` has, so there is nothing new to
    /// find. In a total order that is so for all but the first: of a hundred, one goes through what
    /// the sender knew of a hundred.
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
