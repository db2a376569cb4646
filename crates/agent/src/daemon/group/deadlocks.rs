//! Who waits in a circle, over all names: what `why` says of one of them, `doctor` finds without being
//! told which.

use std::collections::BTreeMap;

use konklave::{LockStatus, NodeId};

use crate::protocol::Finding;

/// A client, at its node.
type Party = (NodeId, u32);

/// How many circles are told.
const SHOWN: usize = 5;

/// One who waits for what another has.
struct Wait {
    text: String,
    whose: Party,
}

/// Whether someone waits in a circle.
pub(super) fn examine(locks: &[LockStatus]) -> Finding {
    let circles = circles(locks);
    let well = circles.is_empty();
    let detail = match circles.len() {
        0 => "nobody waits for what waits for it".to_owned(),
        n => {
            let mut told = circles.into_iter().take(SHOWN).collect::<Vec<_>>().join("; ");
            if n > SHOWN {
                told.push_str(&format!("; and {} more", n - SHOWN));
            }
            format!("{told}: end one of these commands (`why NAME` tells more)")
        }
    };
    Finding { what: "circles".into(), well, detail }
}

/// The circles of waiting, in words. Of circles that share someone, one at least.
fn circles(locks: &[LockStatus]) -> Vec<String> {
    let mut waits: BTreeMap<Party, Vec<Wait>> = BTreeMap::new();
    for lock in locks {
        for waiter in &lock.queue {
            let node = if waiter.name.is_empty() { "?" } else { &waiter.name };
            let text = format!("{node} ({}) waits for {}", waiter.label, lock.name);
            let edges = lock
                .holders
                .iter()
                .map(|holder| Wait { text: text.clone(), whose: (holder.node, holder.session) });
            waits.entry((waiter.node, waiter.session)).or_default().extend(edges);
        }
    }
    let mut found = Vec::new();
    // Whether someone is on the way that we go now; who is not any more is done with.
    let mut seen: BTreeMap<Party, bool> = BTreeMap::new();
    for &start in waits.keys() {
        if seen.contains_key(&start) {
            continue;
        }
        seen.insert(start, true);
        let mut way: Vec<(Party, usize)> = vec![(start, 0)];
        while let Some((party, next)) = way.last_mut() {
            let party = *party;
            let Some(wait) = waits.get(&party).and_then(|all| all.get(*next)) else {
                seen.insert(party, false);
                way.pop();
                continue;
            };
            *next += 1;
            match seen.get(&wait.whose) {
                None => {
                    seen.insert(wait.whose, true);
                    way.push((wait.whose, 0));
                }
                Some(true) => {
                    let from = way.iter().position(|(p, _)| *p == wait.whose).unwrap_or_default();
                    let texts = way[from..].iter().filter_map(|(p, next)| {
                        waits.get(p)?.get(next.checked_sub(1)?).map(|wait| wait.text.clone())
                    });
                    found.push(texts.collect::<Vec<_>>().join(", "));
                }
                Some(false) => {}
            }
        }
    }
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use konklave::{Holder, Token, Waiter};

    use super::*;

    /// A lock that node 0's session `holder` has, and `waiters` want.
    fn lock(name: &str, holders: &[u32], waiters: &[u32]) -> LockStatus {
        let holder = |&session: &u32| Holder {
            node: 0,
            name: "n".into(),
            session,
            label: format!("s{session}"),
            mode: "exclusive".into(),
            token: Token::default(),
            since_ms: 0,
            valid_for_ms: None,
            used: Some(true),
            frozen: false,
        };
        let waiter = |&session: &u32| Waiter {
            node: 0,
            name: "n".into(),
            session,
            label: format!("s{session}"),
            mode: "exclusive".into(),
            priority: 0,
        };
        LockStatus {
            kind: "lock".into(),
            name: name.into(),
            permits: None,
            holders: holders.iter().map(holder).collect(),
            queue: waiters.iter().map(waiter).collect(),
        }
    }

    #[test]
    fn circles_are_found_and_queues_are_none() {
        let well = |locks: &[LockStatus]| examine(locks).well;
        assert!(well(&[]));
        assert!(well(&[lock("a", &[1], &[2, 3]), lock("b", &[2], &[3]), lock("c", &[], &[])]));
        // A long queue is gone through without ending our stack.
        let row: Vec<_> = (0..20_000).map(|i| lock(&format!("l{i}"), &[i], &[i + 1])).collect();
        assert!(well(&row));
        let two = [lock("a", &[1], &[2]), lock("b", &[2], &[1, 3])];
        let finding = examine(&two);
        assert!(!finding.well);
        assert_eq!(circles(&two), ["n (s1) waits for b, n (s2) waits for a"]);
        assert!(finding.detail.contains("n (s2) waits for a"), "{}", finding.detail);
        // Who waits for those in the circle is not part of it.
        let outside = [lock("a", &[1], &[0, 2]), lock("b", &[2], &[1])];
        assert!(!circles(&outside)[0].contains("s0"), "{:?}", circles(&outside));
        // A command that asks for the lock it runs under.
        assert_eq!(circles(&[lock("own", &[7], &[7])]), ["n (s7) waits for own"]);
        let three = [lock("a", &[1], &[2]), lock("b", &[2], &[3]), lock("c", &[3], &[1])];
        assert_eq!(circles(&three).len(), 1);
        let many: Vec<_> = (0..9).map(|i| lock(&format!("m{i}"), &[i], &[i])).collect();
        assert!(examine(&many).detail.contains("and 4 more"), "{}", examine(&many).detail);
    }
}
