//! Leases of single grants, and grants that go on after their node was restarted or excluded.

use std::time::Duration;

use konklave::testing::Cluster;
use konklave::{Error, LockAlgorithm, Timings};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The time until member `i` has the lock.
async fn time_to_get(cluster: &Cluster, i: usize, lock: &str) -> Duration {
    let before = cluster.now();
    drop(cluster.node(i).lock(lock).acquire().await.unwrap());
    cluster.now() - before
}

#[test]
fn next_holder_waits_for_lease_of_grant() {
    for (lease, least, most) in
        [(300 * MS, 300 * MS, 700 * MS), (4 * SECOND, 4 * SECOND, 5 * SECOND)]
    {
        for cached in [false, true] {
            let cluster = Cluster::new(3);
            cluster.block_on(async {
                let lock = || cluster.node(0).lock("a").lease(lease);
                if cached {
                    // The same lease without a message.
                    lock().acquire().await.unwrap().release().await.unwrap();
                }
                let held = lock().acquire().await.unwrap();
                assert!(held.valid_for() <= lease && held.valid_for() > lease / 2);
                cluster.crash(0);
                let took = time_to_get(&cluster, 1, "a").await;
                assert!(took > least && took < most, "{lease:?}, {cached}: {took:?}");
            });
        }
    }
}

/// Scenario: a node has a lock with a short lease cached, for which the group waits no longer. Hazard: a local
/// session gets it with a longer one. Rule: the group must know the longest lease first.
#[test]
fn cached_lock_is_not_reused_with_longer_lease() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let node = cluster.node(0);
        node.lock("a").lease(300 * MS).acquire().await.unwrap().release().await.unwrap();
        let held = node.lock("a").lease(4 * SECOND).acquire().await.unwrap();
        assert!(held.valid_for() > 3 * SECOND);
        cluster.crash(0);
        let took = time_to_get(&cluster, 1, "a").await;
        assert!(took > 4 * SECOND, "{took:?}");
    });
}

#[test]
fn grants_of_one_node_expire_by_their_own_leases() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let node = cluster.node(0);
        let short = node.lock("short").lease(400 * MS).acquire().await.unwrap();
        let usual = node.lock("usual").acquire().await.unwrap();
        cluster.isolate(0);
        cluster.sleep(600 * MS).await;
        assert!(short.loss().is_some() && usual.loss().is_none());
        assert!(short.valid_for().is_zero() && !usual.valid_for().is_zero());
        cluster.sleep(600 * MS).await;
        assert!(usual.loss().is_some());
    });
}

#[test]
fn impossible_lease_is_refused() {
    let cluster = Cluster::new(1);
    cluster.block_on(async {
        for lease in [Duration::ZERO, 100 * MS, 25 * 60 * 60 * SECOND] {
            let refused = cluster.node(0).lock("a").lease(lease).acquire().await;
            assert!(matches!(refused, Err(Error::Config(_))), "{lease:?}");
        }
    });
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::fast());
    cluster.block_on(async {
        let refused = cluster.node(0).lock("a").lease(2 * SECOND).acquire().await;
        assert!(matches!(refused, Err(Error::OnlyGroupLease { .. })));
        let held = cluster.node(0).semaphore("s", 1).lease(2 * SECOND).acquire().await.unwrap();
        assert!(held.valid_for() > SECOND);
    });
}

/// After all members were down, the new table knows no grants: it waits for the longest lease, not for the group's.
#[test]
fn total_restart_waits_for_longest_lease_while_it_is_held() {
    for released in [false, true] {
        let cluster = Cluster::with_outliving_holders(LockAlgorithm::Table, 3);
        cluster.block_on(async {
            let held = cluster.node(0).lock("a").lease(6 * SECOND).acquire().await.unwrap();
            if released {
                held.release().await.unwrap();
                cluster.sleep(3 * SECOND).await;
            } else {
                std::mem::forget(held);
            }
            (0..3).for_each(|i| cluster.crash(i));
            (0..3).for_each(|i| cluster.restart(i));
            let took = time_to_get(&cluster, 1, "a").await;
            assert_eq!(took > 6 * SECOND, !released, "{took:?}");
            assert!(took < 8 * SECOND && took > 900 * MS, "{took:?}");
        });
    }
}

#[test]
fn restarted_node_goes_on_with_its_grant() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let held = cluster.node(0).lock("a").lease(4 * SECOND).acquire().await.unwrap();
        let token = held.token();
        cluster.crash(0);
        cluster.restart(0);
        let again = cluster.node(0).lock("a").lease(4 * SECOND).resume(token).acquire().await;
        let again = again.unwrap();
        assert_eq!(again.token(), token);
        assert!(again.valid_for() > 2 * SECOND);
        // Its first lease is over, and it is still the only holder.
        cluster.sleep(5 * SECOND).await;
        assert!(matches!(cluster.node(1).lock("a").try_acquire().await, Err(Error::Busy(_))));
        assert!(again.loss().is_none());
        again.release().await.unwrap();
        let next = cluster.node(1).lock("a").acquire().await.unwrap();
        assert!(next.token() > token);
    });
}

#[test]
fn leadership_and_shared_locks_and_permits_go_on() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let node = cluster.node(0);
        let lead = node.campaign("c").await.unwrap();
        let read = node.lock("r").shared().acquire().await.unwrap();
        let slot = node.semaphore("s", 2).acquire().await.unwrap();
        drop(node);
        cluster.crash(0);
        cluster.restart(0);
        let node = cluster.node(0);
        assert!(node.campaign("c").resume(lead.token()).await.is_ok());
        assert!(node.lock("r").shared().resume(read.token()).acquire().await.is_ok());
        assert!(node.semaphore("s", 2).resume(slot.token()).acquire().await.is_ok());
    });
}

#[test]
fn grant_whose_lease_is_over_is_not_resumed() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let token = cluster.node(0).lock("a").acquire().await.unwrap();
        let token = (token.token(), std::mem::forget(token)).0;
        cluster.crash(0);
        let next = cluster.node(1).lock("a").acquire().await.unwrap();
        cluster.restart(0);
        let late = cluster.node(0).lock("a").resume(token).acquire().await;
        assert!(matches!(late, Err(Error::Lost(_))), "{late:?}");
        // Nor is that of another node, or one that is held.
        let stolen = cluster.node(0).lock("a").resume(next.token()).acquire().await;
        assert!(matches!(stolen, Err(Error::Lost(_))), "{stolen:?}");
        assert!(next.loss().is_none());
    });
}

#[test]
fn excluded_node_goes_on_with_a_grant_of_long_lease() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let held = cluster.node(0).lock("a").lease(20 * SECOND).acquire().await.unwrap();
        let token = held.token();
        cluster.isolate(0);
        cluster.sleep(4 * SECOND).await;
        cluster.heal();
        held.lost().await;
        assert_eq!(held.loss(), Some(konklave::Loss::Excluded));
        let again = cluster.node(0).lock("a").lease(20 * SECOND).resume(token).acquire().await;
        assert_eq!(again.unwrap().token(), token);
    });
}

/// An operator revoked the grant while its node was restarting.
#[test]
fn resumed_grant_that_was_revoked_is_lost_at_once() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let held = cluster.node(0).lock("a").lease(10 * SECOND).acquire().await.unwrap();
        cluster.crash(0);
        cluster.sleep(SECOND).await;
        cluster.node(1).revoke("a", None).await.unwrap();
        cluster.restart(0);
        let lock = cluster.node(0).lock("a").lease(10 * SECOND);
        let again = lock.resume(held.token()).acquire().await.unwrap();
        again.lost().await;
        assert_eq!(again.loss(), Some(konklave::Loss::Revoked));
    });
}
