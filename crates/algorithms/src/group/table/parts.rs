//! Transfer of the table to a new member, in parts of bounded length.

use super::{AppGroup, BarrierState, Batch, Key, Lock, Name, Op, Part, Table};

/// The most entries of a part, and the bytes from which on a part takes no more.
const ENTRIES: usize = 256;
const BYTES: usize = 256 << 10;
/// About how many bytes a name, a holder or a waiter takes, without its label.
const ONE: usize = 48;

impl Table {
    /// The whole table in parts.
    pub fn parts(&self) -> Vec<Batch> {
        let mut locks: Vec<_> = self.locks.iter().map(|(k, l)| (k.clone(), l.clone())).collect();
        locks.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let barriers = self.barriers.iter().map(|(n, m)| (n.clone(), m.clone()));
        let app_groups = self.app_groups.iter().map(|(n, c)| (n.clone(), c.clone()));
        let mut barriers = chunks(barriers, of_barrier).into_iter();
        let mut app_groups = chunks(app_groups, of_app_group).into_iter();
        let count = self.tokens.count;
        let bare =
            || Part { count, locks: Vec::new(), barriers: Vec::new(), app_groups: Vec::new() };
        let locks = chunks(locks.into_iter(), of_lock).into_iter();
        let mut parts: Vec<Part> = locks.map(|locks| Part { locks, ..bare() }).collect();
        // At least one part, even if the table is empty.
        for _ in 0..barriers.len().max(app_groups.len()).max(1) {
            let barriers = barriers.next().unwrap_or_default();
            let app_groups = app_groups.next().unwrap_or_default();
            parts.push(Part { barriers, app_groups, ..bare() });
        }
        parts.into_iter().map(|part| Batch::of(vec![Op::Part(part)])).collect()
    }

    pub(super) fn take_part(&mut self, part: Part) {
        self.tokens.count = part.count;
        self.locks.extend(part.locks);
        self.barriers.extend(part.barriers);
        self.app_groups.extend(part.app_groups);
    }
}

fn chunks<T>(entries: impl Iterator<Item = T>, weight: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut chunks, mut bytes): (Vec<Vec<T>>, usize) = (Vec::new(), 0);
    for entry in entries {
        let more = weight(&entry);
        match chunks.last_mut().filter(|c| c.len() < ENTRIES && bytes + more <= BYTES) {
            Some(chunk) => {
                chunk.push(entry);
                bytes += more;
            }
            None => {
                chunks.push(vec![entry]);
                bytes = more;
            }
        }
    }
    chunks
}

fn of_lock((key, lock): &(Key, Lock)) -> usize {
    let holders = lock.holders.iter().map(|grant| 2 * ONE + grant.label.len());
    let queue = lock.queue.iter().map(|waiting| ONE + waiting.label.len());
    ONE + key.name.len() + holders.chain(queue).sum::<usize>()
}

fn of_barrier((name, barrier): &(Name, BarrierState)) -> usize {
    ONE + name.len() + ONE * barrier.arrived.len()
}

fn of_app_group((name, app_group): &(Name, AppGroup)) -> usize {
    let members = app_group
        .members
        .iter()
        .map(|place| 2 * ONE + place.label.len() + place.declined.len() * ONE);
    ONE + name.len() + members.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use konklave_process::ProcessId;

    use super::*;
    use crate::group::Member;
    use crate::group::table::{ClaimId, LockMode, Space};

    /// With the longest names and labels, and many waiters and members.
    #[test]
    fn parts_are_bounded_and_rebuild_table() {
        let member = Member { id: ProcessId(1), incarnation: 1 << 30 };
        let claim = |number| ClaimId { member, session: 7, number };
        let mut old = Table::default();
        for i in 0..3000 {
            let name: Name = format!("{:0>250}", i % 100).into();
            let (label, mode) = (name.clone(), LockMode::Exclusive);
            let key = Key { space: Space::Lock, name: name.clone() };
            let (wait, safe, priority) = (true, true, 0);
            let acquire = Op::Acquire {
                claim: claim(i),
                key,
                mode,
                wait,
                safe,
                lease: 8000,
                priority,
                label: label.clone(),
            };
            let arrive = Op::Arrive { claim: claim(i), name: name.clone(), of: 100 };
            let enter = Op::Enter { group: name, claim: claim(i), label };
            [acquire, arrive, enter].into_iter().for_each(|op| old.apply(&op, &mut Vec::new()));
        }
        let mut new = Table::default();
        for part in old.parts() {
            let bytes = postcard::to_extend(&part, Vec::new()).unwrap().len();
            assert!(bytes < 2 * BYTES, "{bytes}");
            part.ops.iter().for_each(|op| new.apply(op, &mut Vec::new()));
        }
        assert_eq!(new, old);
    }
}
