//! Lease-safe holders of lifted locks: a majority knows them, and no message is wasted.

use std::time::Duration;

use konklave::testing::Cluster;
use konklave::{Handover, LockAlgorithm, State, Timings};

const MS: Duration = Duration::from_millis(1);

fn cluster(algorithm: LockAlgorithm, n: usize) -> Cluster {
    Cluster::with_lock_algorithm(algorithm, n, 0, Timings::fast())
}

fn lifted() -> impl Iterator<Item = LockAlgorithm> {
    LockAlgorithm::ALL.into_iter().filter(|m| *m != LockAlgorithm::Table)
}

/// Messages and time to get a lock that another node has used, over several names that start at different
/// nodes.
fn costs(algorithm: LockAlgorithm, n: usize, mode: Handover) -> Vec<(u64, Duration)> {
    // Heartbeats so rare that answers to pings are not batched and do not count among the following frames.
    let timings = Timings { heartbeat: 250 * MS, ..Timings::fast() };
    let cluster = Cluster::with_lock_algorithm(algorithm, n, 0, timings);
    // All messages have the same delay, so times count hops.
    cluster.delay(MS, MS);
    cluster.block_on(async {
        cluster.node(0).ready().await.unwrap();
        // Until all send their heartbeats together.
        cluster.sleep(12 * timings.heartbeat).await;
        let mut costs = Vec::new();
        for i in 0..12 {
            let name = format!("l{i}");
            drop(cluster.node(0).lock(&name).handover(Handover::Fast).acquire().await.unwrap());
            // Halfway between two heartbeats.
            let beat = timings.heartbeat;
            let past = cluster.now().as_nanos() % beat.as_nanos();
            cluster.sleep(beat + beat / 4 - Duration::from_nanos(past as u64)).await;
            let (sent, start) = (cluster.sent(), cluster.now());
            drop(cluster.node(1).lock(&name).handover(mode).acquire().await.unwrap());
            costs.push((cluster.sent() - sent, cluster.now() - start));
        }
        costs
    })
}

#[test]
fn lease_safe_lock_costs_no_extra_message_among_three() {
    for algorithm in lifted() {
        let (fast, safe) =
            (costs(algorithm, 3, Handover::Fast), costs(algorithm, 3, Handover::LeaseSafe));
        for (fast, safe) in fast.into_iter().zip(safe) {
            assert!(safe.1 <= fast.1.max(2 * MS), "{algorithm}: {safe:?}, Fast: {fast:?}");
            // One more where the request is forwarded, or where the token has always been at the node.
            assert!(safe.0 <= fast.0 + 4, "{algorithm}: {safe:?}, Fast: {fast:?}");
        }
    }
}

#[test]
fn central_lease_safe_grant_sends_nothing_else() {
    let costs = costs(LockAlgorithm::NaimiTrehel, 3, Handover::LeaseSafe);
    let direct = costs.iter().filter(|cost| **cost == (2, 2 * MS)).count();
    let passed_on = costs.iter().filter(|cost| **cost == (4, 3 * MS)).count();
    assert!(direct > 0 && passed_on > 0 && direct + passed_on == costs.len(), "{costs:?}");
}

/// The former holder knows of the safe holder, and leaves just when that falls silent: its note must be kept.
#[test]
fn note_of_leaving_member_is_kept() {
    for algorithm in lifted() {
        for name in ["a", "b", "c", "d", "e", "f"] {
            let cluster = cluster(algorithm, 3);
            cluster.block_on(async {
                drop(cluster.node(0).lock(name).acquire().await.unwrap());
                let held = cluster.node(1).lock(name).acquire().await.unwrap();
                let leaver = cluster.node(0);
                cluster.isolate(1);
                cluster.spawn(async move { leaver.leave().await.unwrap() });
                let next = cluster.node(2).lock(name).acquire().await.unwrap();
                assert_eq!(held.state(), State::Lost, "{algorithm} {name}: two at once");
                assert!(next.token() > held.token());
            });
        }
    }
}

/// Of five members, only the one that hands the lock over knows the requester: too few for a lease-safe
/// grant, enough for a fast one.
#[test]
fn lease_safe_grant_needs_majority_that_noted_it() {
    for algorithm in [LockAlgorithm::NaimiTrehel, LockAlgorithm::Central] {
        for (mode, granted) in [(Handover::Fast, true), (Handover::LeaseSafe, false)] {
            let cluster = cluster(algorithm, 5);
            cluster.delay(MS, MS);
            cluster.block_on(async {
                for i in 0..12 {
                    let lock = cluster.node(0).lock(&format!("l{i}")).handover(Handover::Fast);
                    drop(lock.acquire().await.unwrap());
                }
                [2, 3, 4].into_iter().for_each(|to| cluster.cut(1, to));
                let mut got = 0;
                for i in 0..12 {
                    let lock = cluster.node(1).lock(&format!("l{i}")).handover(mode);
                    got += usize::from(lock.timeout(5 * MS).acquire().await.is_ok());
                }
                assert_eq!(got > 0, granted, "{algorithm} {mode:?}: {got}");
            });
        }
    }
}

/// In a group of five, two may fall silent together: the holder, and a member that has noted it.
#[test]
fn safe_holder_stays_known_when_two_of_five_fall_silent() {
    for algorithm in lifted() {
        for other in [0, 2, 3, 4] {
            let cluster = cluster(algorithm, 5);
            cluster.block_on(async {
                drop(cluster.node(0).lock("a").acquire().await.unwrap());
                let held = cluster.node(1).lock("a").acquire().await.unwrap();
                cluster.isolate(1);
                cluster.isolate(other);
                let i = if other == 4 { 3 } else { 4 };
                let next = cluster.node(i).lock("a").acquire().await.unwrap();
                assert_eq!(held.state(), State::Lost, "{algorithm}, with {other}: two at once");
                assert!(next.token() > held.token());
            });
        }
    }
}
