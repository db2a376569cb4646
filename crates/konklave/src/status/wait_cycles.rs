//! Cycles in the wait-for graph.

use std::collections::BTreeMap;

use super::{NodeId, Status, Waiter};

/// For each waiting party: what it waits for, and the holder of that.
pub(crate) type WaitsFor<P, W> = BTreeMap<P, Vec<(W, P)>>;

/// At most `most` cycles reachable from `starts`: the parties, and what each waits for. Of cycles that share
/// a party, at least one is found.
pub(crate) fn wait_cycles<P: Ord + Copy, W: Clone>(
    waits: &WaitsFor<P, W>,
    starts: impl IntoIterator<Item = P>,
    most: usize,
) -> Vec<Vec<(P, W)>> {
    let mut found = Vec::new();
    // `true` for parties on the present path, `false` for those that are done.
    let mut seen: BTreeMap<P, bool> = BTreeMap::new();
    for start in starts {
        if seen.contains_key(&start) {
            continue;
        }
        seen.insert(start, true);
        let mut path: Vec<(P, usize)> = vec![(start, 0)];
        while found.len() < most
            && let Some((party, next)) = path.last_mut()
        {
            let party = *party;
            let Some((_, holder)) = waits.get(&party).and_then(|all| all.get(*next)) else {
                seen.insert(party, false);
                path.pop();
                continue;
            };
            *next += 1;
            match seen.get(holder) {
                None => {
                    seen.insert(*holder, true);
                    path.push((*holder, 0));
                }
                Some(true) => {
                    let from = path.iter().position(|(p, _)| p == holder).unwrap_or_default();
                    let cycle = path[from..].iter().filter_map(|(p, next)| {
                        let (what, _) = waits.get(p)?.get(next.checked_sub(1)?)?;
                        Some((*p, what.clone()))
                    });
                    found.push(cycle.collect());
                }
                Some(false) => {}
            }
        }
    }
    found
}

impl Status {
    /// Sessions that wait for each other, over all names: what each waits for, and its request. A session
    /// that waits for its own lock is a cycle, too. At most `most` cycles are returned; of cycles that share
    /// a session, at least one is found.
    pub fn wait_cycles(&self, most: usize) -> Vec<Vec<(&str, &Waiter)>> {
        let mut waits: WaitsFor<(NodeId, u32), (&str, &Waiter)> = BTreeMap::new();
        for lock in &self.locks {
            for waiter in &lock.queue {
                let holders = lock.holders.iter().map(|holder| (holder.node, holder.session));
                let edges = holders.map(|holder| ((lock.name.as_str(), waiter), holder));
                waits.entry((waiter.node, waiter.session)).or_default().extend(edges);
            }
        }
        let wait_cycles = wait_cycles(&waits, waits.keys().copied(), most);
        wait_cycles.into_iter().map(|all| all.into_iter().map(|(_, what)| what).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The graph with these edges: the first party waits for the second.
    fn waits(edges: &[(u32, u32)]) -> WaitsFor<u32, (u32, u32)> {
        let mut waits = WaitsFor::new();
        for edge in edges {
            waits.entry(edge.0).or_insert_with(Vec::new).push((*edge, edge.1));
        }
        waits
    }

    fn all(edges: &[(u32, u32)]) -> Vec<Vec<u32>> {
        let waits = waits(edges);
        let found = wait_cycles(&waits, waits.keys().copied(), 9);
        for cycle in &found {
            for (i, (_, (_, holder))) in cycle.iter().enumerate() {
                assert_eq!(*holder, cycle[(i + 1) % cycle.len()].0, "each waits for the next");
            }
        }
        found.into_iter().map(|cycle| cycle.into_iter().map(|(p, _)| p).collect()).collect()
    }

    #[test]
    fn cycles_are_found_and_queues_are_not() {
        assert!(all(&[]).is_empty());
        assert!(all(&[(2, 1), (3, 1), (3, 2)]).is_empty());
        assert_eq!(all(&[(2, 1), (1, 2), (3, 2)]), [[1, 2]]);
        assert_eq!(all(&[(0, 1), (2, 1), (1, 2)]), [[1, 2]], "who only waits for them is no part");
        assert_eq!(all(&[(7, 7)]), [[7]]);
        assert_eq!(all(&[(2, 1), (3, 2), (1, 3)]).len(), 1);
        assert_eq!(all(&[(1, 1), (2, 2), (3, 4), (4, 3)]).len(), 3);
    }

    #[test]
    fn long_queue_is_searched_and_number_of_cycles_bounded() {
        let row: Vec<(u32, u32)> = (0..100_000).map(|i| (i, i + 1)).collect();
        assert!(all(&row).is_empty());
        // Every party waits for the first one, too: a cycle for each.
        let back = (1..100_000).map(|i| (i, 0));
        let row: Vec<(u32, u32)> = row.iter().copied().chain(back).collect();
        let waits = waits(&row);
        assert_eq!(wait_cycles(&waits, waits.keys().copied(), 3).len(), 3);
        assert_eq!(wait_cycles(&waits, [50_000], 1).len(), 1);
    }
}
