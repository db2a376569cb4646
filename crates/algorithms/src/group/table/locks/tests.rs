use std::hash::BuildHasher;
use std::sync::Arc;

use konklave_process::ProcessId;
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
use rustc_hash::FxBuildHasher;

use super::*;
use crate::group::ViewId;
use crate::group::table::{Batch, Op};
use crate::group::table::{LockMode, Refusal, Space};

fn member(id: u32) -> Member {
    Member { id: ProcessId(id), incarnation: 1 }
}

fn claim(id: u32, number: u64) -> ClaimId {
    ClaimId { member: member(id), session: 0, number }
}

fn key() -> Key {
    Key { space: Space::Lock, name: "a".into() }
}

fn acquire(claim: ClaimId, mode: LockMode) -> Op {
    let label = "".into();
    Op::Acquire { claim, key: key(), mode, wait: true, safe: true, lease: 1000, priority: 0, label }
}

fn apply(table: &mut Table, op: Op) -> Vec<ClaimId> {
    let mut out = Vec::new();
    table.apply(&op, &mut out);
    granted(&out)
}

fn granted(out: &[Outcome]) -> Vec<ClaimId> {
    let granted = |o: &Outcome| match o {
        Outcome::Granted { claim, .. } => Some(*claim),
        _ => None,
    };
    out.iter().filter_map(granted).collect()
}

#[test]
fn repeated_outcomes_are_merged_until_next_grant() {
    let (a, b, c) = (claim(0, 1), claim(1, 1), claim(2, 1));
    let (mut table, mut out) = (Table::default(), Vec::new());
    for claim in [a, b, c] {
        table.apply(&acquire(claim, LockMode::Exclusive), &mut out);
    }
    let (changed, wanted) = (Outcome::Changed { key: key() }, Outcome::Contended { key: key() });
    assert_eq!(out[1..], [changed.clone(), wanted.clone()], "a has it, and others want it");
    table.apply(&Op::Release { claim: a, key: key() }, &mut out);
    assert!(matches!(out[3], Outcome::Granted { claim, .. } if claim == b));
    // The new holder's node could not know of the queue before.
    assert_eq!(out[4..], [changed, wanted]);
}

#[test]
fn first_come_first_served() {
    let mut table = Table::default();
    let (a, b, c) = (claim(0, 1), claim(1, 1), claim(2, 1));
    assert_eq!(apply(&mut table, acquire(a, LockMode::Exclusive)), [a]);
    assert_eq!(apply(&mut table, acquire(b, LockMode::Shared)), []);
    assert_eq!(apply(&mut table, acquire(c, LockMode::Shared)), []);
    assert_eq!(apply(&mut table, Op::Release { claim: b, key: key() }), [], "it holds nothing");
    assert_eq!(apply(&mut table, Op::Release { claim: a, key: key() }), [b, c]);
    assert_eq!(apply(&mut table, acquire(a, LockMode::Exclusive)), []);
    let d = claim(0, 2);
    assert_eq!(apply(&mut table, acquire(d, LockMode::Shared)), [], "not past who waits");
    assert_eq!(apply(&mut table, Op::Cancel { claim: a, key: key() }), [d]);
    for claim in [b, c, d] {
        apply(&mut table, Op::Release { claim, key: key() });
    }
    assert_eq!(table.len(), (0, 0, 0));
}

#[test]
fn excluded_holder_is_fenced_until_lease_expires() {
    let view = |epoch| ViewId { generation: 1, epoch, coordinator: ProcessId(1) };
    let (a, b) = (claim(0, 1), claim(1, 1));
    let request = || {
        let mut table = Table::default();
        apply(&mut table, acquire(a, LockMode::Exclusive));
        apply(&mut table, acquire(b, LockMode::Exclusive));
        table
    };
    let left: ProcessSet = [ProcessId(0)].into_iter().collect();
    let nobody = ProcessSet::new();
    let mut out = Vec::new();
    let mut table = request();
    table.install(view(1), &[member(1)], &nobody, &mut out);
    assert_eq!(granted(&out), []);
    assert_eq!(table.fenced(), [(member(0), 1000)]);
    assert_eq!(apply(&mut table, Op::LeaseExpired { member: member(0), lease: 1000 }), [b]);
    // It left in order.
    let mut table = request();
    table.install(view(1), &[member(1)], &left, &mut out);
    assert_eq!(granted(&std::mem::take(&mut out)), [b]);
    // It has restarted, at once or later: that says nothing about its earlier incarnation.
    let reborn = Member { incarnation: 2, ..member(0) };
    for gone_first in [false, true] {
        let mut table = request();
        if gone_first {
            table.install(view(1), &[member(1)], &nobody, &mut Vec::new());
        }
        table.install(view(2), &[member(1), reborn], &nobody, &mut out);
        assert_eq!(granted(&std::mem::take(&mut out)), []);
        assert_eq!(apply(&mut table, Op::LeaseExpired { member: member(0), lease: 1000 }), [b]);
    }
}

#[test]
fn shorter_lease_does_not_expire_longer_one_nor_a_present_holder() {
    let mut table = Table::default();
    let named = |name: &str| Key { space: Space::Lock, name: name.into() };
    for (number, lease) in [(1, 1000), (2, 5000)] {
        let (key, mode, label) = (named(&format!("l{lease}")), LockMode::Exclusive, "".into());
        let claim = claim(0, number);
        let (wait, safe, priority) = (true, true, 0);
        apply(&mut table, Op::Acquire { claim, key, mode, wait, safe, lease, priority, label });
    }
    let expired = |lease| Op::LeaseExpired { member: member(0), lease };
    apply(&mut table, expired(5000));
    assert_eq!(table.len().0, 2, "it is no excluded member");
    let view = ViewId { generation: 1, epoch: 1, coordinator: ProcessId(1) };
    table.install(view, &[member(1)], &ProcessSet::new(), &mut Vec::new());
    assert_eq!(table.fenced(), [(member(0), 1000), (member(0), 5000)]);
    apply(&mut table, expired(1000));
    assert_eq!(table.fenced(), [(member(0), 5000)]);
    assert!(table.lock(&named("l1000")).is_none());
}

/// A new member builds its table from parts. The order in which many locks are served, and so their tokens,
/// must be the same as at the old members.
#[test]
fn locks_are_served_in_same_order_at_all_members() {
    let acquire_named = |id, name: u64| {
        let key = Key { space: Space::Lock, name: format!("l{name}").into() };
        let (mode, label) = (LockMode::Exclusive, "".into());
        let claim = claim(id, name);
        Op::Acquire { claim, key, mode, wait: true, safe: false, lease: 1000, priority: 0, label }
    };
    let mut old = Table::default();
    for name in (0..200).map(|i| i * 77 % 200) {
        apply(&mut old, acquire_named(0, name));
        apply(&mut old, acquire_named(1, name));
    }
    let mut new = Table::default();
    for part in old.parts() {
        part.ops.iter().for_each(|op| new.apply(op, &mut Vec::new()));
    }
    let served = |table: &mut Table| {
        let mut out = Vec::new();
        let view = ViewId { generation: 1, epoch: 2, coordinator: ProcessId(1) };
        table.install(view, &[member(1), member(2)], &ProcessSet::new(), &mut out);
        out
    };
    assert_eq!(printed(&old), printed(&new));
    let (by_old, by_new) = (served(&mut old), served(&mut new));
    assert_eq!(granted(&by_old).len(), 200);
    assert_eq!(by_old, by_new);
    assert_eq!(old, new);
}

/// The table as the checker sees it: equal tables hash equally, however they were built.
fn printed(table: &Table) -> (u64, String) {
    let hash = FxBuildHasher.hash_one(table);
    (hash, serde_json::to_string(table).expect("a table is data"))
}

#[test]
fn try_request_is_refused_unless_lock_may_be_cached() {
    let mut table = Table::default();
    let (a, b) = (claim(0, 1), claim(1, 1));
    let label: Arc<str> = "".into();
    let tries = |claim, mode| Op::Acquire {
        claim,
        key: key(),
        mode,
        wait: false,
        safe: true,
        lease: 1000,
        priority: 0,
        label: label.clone(),
    };
    apply(&mut table, acquire(a, LockMode::Exclusive));
    let mut out = Vec::new();
    table.apply(&tries(b, LockMode::Exclusive), &mut out);
    assert_eq!(out, [Outcome::Contended { key: key() }], "its holder knows whether it is used");
    out.clear();
    table.apply(&Op::Deny { claim: b, key: key() }, &mut out);
    let why = Refusal::Busy;
    assert!(out.contains(&Outcome::Refused { claim: b, key: key(), why }));
    apply(&mut table, Op::Release { claim: a, key: key() });
    apply(&mut table, acquire(a, LockMode::Shared));
    out.clear();
    table.apply(&tries(b, LockMode::Exclusive), &mut out);
    assert_eq!(out, [Outcome::Refused { claim: b, key: key(), why }]);
}

proptest! {
    /// After any operations: exclusive holders are alone, tokens grow, free locks are not stored, and a table
    /// transferred in parts behaves like the original.
    #[test]
    fn table_invariants(steps in prop::collection::vec((0..4u32, 0..3u64, 0..9u8, any::<bool>()), 1..80)) {
        let mut table = Table::default();
        let mut copy: Option<Table> = None;
        let mut highest = Token::default();
        for (at, (id, number, what, wait)) in steps.into_iter().enumerate() {
            let claim = claim(id, number);
            let label: Arc<str> = "".into();
            let ask = |mode| Op::Acquire {
                claim, key: key(), mode, wait, safe: wait, lease: 1000, priority: 0, label: label.clone(),
            };
            let taken = |l: &Lock| {
                l.holders.iter().any(|g| g.claim == claim) || l.queue.iter().any(|w| w.claim == claim)
            };
            let has = table.lock(&key()).is_some_and(taken);
            let op = match what {
                0..=2 if !has => ask(LockMode::Exclusive),
                3 if !has => ask(LockMode::Shared),
                4 => Op::Cancel { claim, key: key() },
                5 => Op::Deny { claim, key: key() },
                6 => Op::Revoke { claim, key: key(), token: None },
                _ => Op::Release { claim, key: key() },
            };
            let mut out = Vec::new();
            table.apply(&op, &mut out);
            if let Some(copy) = &mut copy {
                let mut same = Vec::new();
                copy.apply(&op, &mut same);
                prop_assert_eq!(&same, &out);
                prop_assert_eq!(&*copy, &table);
            } else if at == 10 {
                let mut fresh = Table::default();
                let parts: Vec<Batch> = table.parts();
                parts.iter().flat_map(|b| b.ops.iter()).for_each(|op| fresh.apply(op, &mut Vec::new()));
                copy = Some(fresh);
            }
            for outcome in out {
                if let Outcome::Granted { token, .. } = outcome {
                    prop_assert!(token > highest);
                    highest = token;
                }
            }
            if let Some(lock) = table.lock(&key()) {
                let alone = lock.holders.iter().all(|g| g.mode == LockMode::Shared);
                prop_assert!(alone || lock.holders.len() == 1);
                prop_assert!(!lock.holders.is_empty(), "who waits for nobody has it");
            }
        }
    }
}
