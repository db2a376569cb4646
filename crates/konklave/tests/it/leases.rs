//! Leases of holders, whatever happens to their node.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use konklave::testing::Cluster;
use konklave::{Handover, LockAlgorithm, Node, State, Timings};

const MS: Duration = Duration::from_millis(1);
const ALGORITHMS: [LockAlgorithm; 3] =
    [LockAlgorithm::Table, LockAlgorithm::NaimiTrehel, LockAlgorithm::RicartAgrawala];

/// The time until member `i` has the lock.
async fn time_to_get(cluster: &Cluster, i: usize) -> Duration {
    let before = cluster.now();
    drop(cluster.node(i).lock("a").acquire().await.unwrap());
    cluster.now() - before
}

#[test]
fn restart_does_not_release_grants_of_earlier_incarnation() {
    for algorithm in ALGORITHMS {
        let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast());
        cluster.block_on(async {
            let _held = cluster.node(0).lock("a").acquire().await.unwrap();
            cluster.crash(0);
            cluster.restart(0);
            let took = time_to_get(&cluster, 1).await;
            assert!(took > 950 * MS && took < 1500 * MS, "{algorithm:?}: {took:?}");
        });
    }
}

#[test]
fn total_restart_waits_for_earlier_grants() {
    for algorithm in ALGORITHMS {
        for (n, outlived) in [(3, true), (3, false), (1, true), (1, false)] {
            let cluster = if outlived {
                Cluster::with_outliving_holders(algorithm, n)
            } else {
                Cluster::with_lock_algorithm(algorithm, n, 0, Timings::fast())
            };
            cluster.block_on(async {
                let _held = cluster.node(0).lock("a").acquire().await.unwrap();
                (0..n).for_each(|i| cluster.crash(i));
                (0..n).for_each(|i| cluster.restart(i));
                let took = time_to_get(&cluster, n - 1).await;
                assert_eq!(took > 950 * MS, outlived, "{algorithm:?}, {n}: {took:?}");
                assert!(took < 1500 * MS, "{algorithm:?}, {n}: {took:?}");
            });
        }
    }
}

#[test]
fn revoked_lock_is_granted_after_holder_released_it() {
    for algorithm in ALGORITHMS {
        for lets_go in [true, false] {
            let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast());
            cluster.block_on(async {
                let held = cluster.node(0).lock("a").acquire().await.unwrap();
                let token = held.token();
                let got = Rc::new(Cell::new(None));
                cluster.spawn(wait_for(cluster.node(1), got.clone()));
                cluster.sleep(20 * MS).await;
                cluster.node(2).revoke("a", None).await.unwrap();
                held.lost().await;
                assert_eq!(held.state(), State::Lost);
                cluster.sleep(300 * MS).await;
                assert_eq!(got.get(), None, "{algorithm:?}: its holder may still be at it");
                if lets_go {
                    drop(held);
                    cluster.sleep(20 * MS).await;
                    assert!(got.get().is_some_and(|next| next > token), "{algorithm:?}");
                } else {
                    cluster.sleep(800 * MS).await;
                    assert!(got.get().is_some_and(|next| next > token), "{algorithm:?}");
                }
            });
        }
    }
}

#[test]
fn second_revocation_does_not_shorten_holders_time() {
    for (algorithm, slots) in [
        (LockAlgorithm::Table, false),
        (LockAlgorithm::Table, true),
        (LockAlgorithm::NaimiTrehel, false),
    ] {
        let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast());
        let ask = |i| match slots {
            true => cluster.node(i).semaphore("a", 1),
            false => cluster.node(i).lock("a"),
        };
        cluster.block_on(async {
            let held = ask(0).acquire().await.unwrap();
            for _ in 0..2 {
                let _ = match slots {
                    true => cluster.node(1).revoke_permits("a", None).await,
                    false => cluster.node(1).revoke("a", None).await,
                };
                cluster.sleep(5 * MS).await;
            }
            assert_eq!(held.state(), State::Lost);
            let next = ask(2).timeout(100 * MS).acquire().await;
            assert!(next.is_err(), "{algorithm}, {slots}: its holder may still be at it");
            drop(held);
            assert!(ask(2).timeout(100 * MS).acquire().await.is_ok(), "{algorithm}, {slots}");
        });
    }
}

async fn wait_for(node: Node, got: Rc<Cell<Option<konklave::Token>>>) {
    let guard = node.lock("a").acquire().await.unwrap();
    got.set(Some(guard.token()));
    std::future::pending::<()>().await;
}

#[test]
fn revoked_idle_lock_is_free_at_once() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        drop(cluster.node(0).lock("a").acquire().await.unwrap());
        cluster.node(2).revoke("a", None).await.unwrap();
        let took = time_to_get(&cluster, 1).await;
        assert!(took < 20 * MS, "{took:?}");
    });
}

#[test]
fn frequent_view_changes_do_not_extend_fence() {
    let cluster = Cluster::new(5);
    cluster.block_on(async {
        let _held = cluster.node(4).lock("a").acquire().await.unwrap();
        cluster.crash(4);
        let got = Rc::new(Cell::new(None));
        cluster.spawn(wait_for(cluster.node(1), got.clone()));
        for _ in 0..8 {
            cluster.sleep(150 * MS).await;
            cluster.crash(3);
            cluster.sleep(50 * MS).await;
            cluster.restart(3);
        }
        assert!(got.get().is_some(), "the one who leads has led all the time");
    });
}

/// Two local requests wait for each other's release: the first with `Handover::Fast`, the second lease-safe.
/// The group must know of the second before its grant.
#[test]
fn lease_safe_request_after_fast_one_goes_through_group() {
    for algorithm in [LockAlgorithm::Table, LockAlgorithm::NaimiTrehel] {
        let cluster = Rc::new(Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast()));
        cluster.block_on(async {
            let node = cluster.node(1);
            let fast = node.lock("a").handover(Handover::Fast).acquire().await.unwrap();
            let got = Rc::new(RefCell::new(None));
            let waits = (node.clone(), got.clone());
            cluster.spawn(async move {
                *waits.1.borrow_mut() = waits.0.lock("a").acquire().await.ok();
            });
            cluster.sleep(MS * 200).await;
            cluster.isolate(1);
            fast.release().await.unwrap();
            let next = cluster.node(0).lock("a").acquire().await.unwrap();
            let held = got.borrow().as_ref().map(|guard| guard.state());
            assert!(held.is_none_or(|state| state == State::Lost), "{algorithm}: two at once");
            next.release().await.unwrap();
            cluster.heal();
            cluster.sleep(MS * 5000).await;
            assert!(
                got.take().is_some(),
                "{algorithm}: it is served when it is back, if not before"
            );
            assert!(node.lock("a").timeout(MS * 100).acquire().await.is_ok(), "{algorithm}");
        });
    }
}

/// A restarted process leaves in order, while a holder of its earlier incarnation may still act.
#[test]
fn leave_does_not_release_grants_of_earlier_incarnation() {
    for algorithm in ALGORITHMS {
        let plain = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast());
        for cluster in [plain, Cluster::with_outliving_holders(algorithm, 3)] {
            cluster.block_on(async {
                let _held = cluster.node(0).lock("a").acquire().await.unwrap();
                cluster.crash(0);
                let crashed = cluster.now();
                cluster.restart(0);
                cluster.node(0).ready().await.unwrap();
                cluster.node(0).leave().await.unwrap();
                drop(cluster.node(1).lock("a").acquire().await.unwrap());
                let took = cluster.now() - crashed;
                assert!(took > 950 * MS && took < 2500 * MS, "{algorithm:?}: {took:?}");
            });
        }
    }
}

/// A fast holder passes the lock to another local session while an operator revokes it.
#[test]
fn lock_passed_on_during_revocation_has_one_holder() {
    for algorithm in [LockAlgorithm::Table, LockAlgorithm::NaimiTrehel] {
        for wait in 0..8 {
            let cluster = Cluster::with_lock_algorithm(algorithm, 3, wait, Timings::fast());
            cluster.block_on(async {
                let fast = |i: usize| cluster.node(i).lock("a").handover(Handover::Fast);
                let first = fast(1).acquire().await.unwrap();
                let second = Rc::new(RefCell::new(None));
                let (request, slot) = (fast(1), second.clone());
                cluster.spawn(async move { *slot.borrow_mut() = request.acquire().await.ok() });
                cluster.sleep(200 * MS).await;
                let operator = cluster.node(0);
                cluster.spawn(async move { drop(operator.revoke("a", None).await) });
                cluster.sleep(wait as u32 * MS / 4).await;
                drop(first);
                let third = fast(1).timeout(50 * MS).acquire().await;
                let fourth = fast(2).timeout(50 * MS).acquire().await;
                let has = |guard: &konklave::Guard| guard.state() != State::Lost;
                let second = second.borrow();
                let holders = [second.as_ref(), third.as_ref().ok(), fourth.as_ref().ok()];
                let holders = holders.into_iter().flatten().filter(|guard| has(guard)).count();
                assert_eq!(holders, 1, "{algorithm}, {wait}");
            });
        }
    }
}
