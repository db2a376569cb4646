//! Groups of one member: founded by an operator, or left over; joined by others later.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use konklave::testing::Cluster;
use konklave::{Error, Guard, LockAlgorithm, State, Timings};

const MS: Duration = Duration::from_millis(1);
const SOON: Duration = Duration::from_secs(1);
const ALGORITHMS: [LockAlgorithm; 3] =
    [LockAlgorithm::Table, LockAlgorithm::NaimiTrehel, LockAlgorithm::RicartAgrawala];

type Asked = Pin<Box<dyn Future<Output = Result<Guard, Error>>>>;

/// Starts a request without waiting for the answer.
async fn ask(request: impl Future<Output = Result<Guard, Error>> + 'static) -> Asked {
    let mut asked: Asked = Box::pin(request);
    assert!(poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx).is_pending())).await);
    asked
}

/// Runs the test with the leader isolated, and with a follower isolated.
fn cut_off(test: impl AsyncFn(&Cluster, usize, &str)) {
    for algorithm in ALGORITHMS {
        for i in [0, 2] {
            let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast());
            cluster.block_on(test(&cluster, i, &format!("{algorithm}, {i}")));
        }
    }
}

#[test]
fn lock_released_while_isolated_is_free_in_group_of_one() {
    cut_off(async |cluster, i, which| {
        let node = cluster.node(i);
        let lost = node.lock("x").acquire().await.unwrap();
        let led = node.campaign("boss").await.unwrap();
        cluster.isolate(i);
        cluster.sleep(5000 * MS).await;
        assert_eq!((lost.state(), led.state()), (State::Lost, State::Lost), "{which}");
        node.found_alone();
        let held = node.lock("x").timeout(SOON).acquire().await;
        assert!(held.is_ok_and(|held| held.token() > lost.token()), "{which}");
        assert!(node.campaign("boss").timeout(SOON).await.is_ok(), "{which}");
    });
}

#[test]
fn request_made_while_isolated_is_granted_in_group_of_one() {
    cut_off(async |cluster, i, which| {
        let node = cluster.node(i);
        cluster.isolate(i);
        let mut asked = Vec::new();
        for name in ["a", "b", "c", "d"] {
            asked.push(ask(node.lock(name).timeout(60 * SOON).acquire()).await);
            asked.push(ask(node.semaphore(name, 1).timeout(60 * SOON).acquire()).await);
        }
        cluster.sleep(5000 * MS).await;
        node.found_alone();
        let fifth = node.semaphore("e", 1).timeout(SOON).acquire().await;
        assert!(fifth.is_ok(), "{which}: {fifth:?}");
        assert!(node.lock("e").timeout(SOON).acquire().await.is_ok(), "{which}");
        for asked in asked {
            let granted = asked.await;
            assert!(granted.is_ok(), "{which}: {granted:?}");
        }
    });
}

/// Checks a guard until another node is a member, and for a while longer.
async fn held_while_joined(cluster: &Cluster, held: &Guard, which: &str) {
    let members = || cluster.node(0).status().members.iter().filter(|m| m.votes).count();
    let mut together = 0;
    for look in 0.. {
        cluster.sleep(MS / 20).await;
        assert_eq!(held.state(), State::Held, "{which}: look {look}, {} members", members());
        together += u32::from(members() == 2);
        if together == 500 {
            break;
        }
        assert!(look < 100_000, "{which}: nobody joins");
    }
    for _ in 0..50 {
        cluster.sleep(100 * MS).await;
        assert_eq!(held.state(), State::Held, "{which}");
    }
}

#[test]
fn last_member_keeps_its_grants_when_another_joins() {
    for algorithm in ALGORITHMS {
        let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast());
        cluster.block_on(async {
            cluster.crash(2);
            cluster.node(1).leave().await.unwrap();
            let held = cluster.node(0).lock("a").acquire().await.unwrap();
            let leads = cluster.node(0).campaign("boss").await.unwrap();
            cluster.sleep(3000 * MS).await;
            cluster.restart(2);
            held_while_joined(&cluster, &held, &algorithm.to_string()).await;
            assert_eq!(leads.state(), State::Held, "{algorithm}");
            held.release().await.unwrap();
        });
    }
}

/// The same without any earlier answer: there is no old lease that could have run out.
#[test]
fn founder_of_group_of_one_keeps_its_grants_when_another_joins() {
    for algorithm in ALGORITHMS {
        let cluster = Cluster::with_lock_algorithm(algorithm, 2, 0, Timings::fast());
        cluster.block_on(async {
            (0..2).for_each(|i| cluster.crash(i));
            cluster.restart(0);
            cluster.node(0).found_alone();
            let held = cluster.node(0).lock("a").acquire().await.unwrap();
            cluster.restart(1);
            held_while_joined(&cluster, &held, &algorithm.to_string()).await;
            // The new member waits for the lock like any other.
            let busy = cluster.node(1).lock("a").timeout(50 * MS).acquire().await;
            assert!(matches!(busy, Err(Error::TimedOut(_))), "{algorithm}: {busy:?}");
            held.release().await.unwrap();
            drop(cluster.node(1).lock("a").timeout(SOON).acquire().await.unwrap());
        });
    }
}

/// The lease at the end of a group of one is a lease like any other. If its member is isolated right after,
/// it loses its grants before the joined members get them.
#[test]
fn isolated_founder_loses_grants_before_joined_members_get_them() {
    for algorithm in ALGORITHMS {
        let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast());
        cluster.block_on(async {
            (0..3).for_each(|i| cluster.crash(i));
            cluster.restart(0);
            cluster.node(0).found_alone();
            let held = cluster.node(0).lock("a").acquire().await.unwrap();
            cluster.restart(1);
            cluster.restart(2);
            let members = |i| cluster.node(i).status().members.iter().filter(|m| m.votes).count();
            while members(1) < 3 || members(2) < 3 {
                cluster.sleep(MS / 20).await;
            }
            cluster.isolate(0);
            let next = cluster.node(1).lock("a").acquire().await.unwrap();
            assert!(next.token() > held.token(), "{algorithm}");
            assert_eq!(held.state(), State::Lost, "{algorithm}: two at once");
        });
    }
}

/// One of the last two members restarts. The other knows that nobody went on without it, and keeps its
/// grants. The third founder is not needed.
#[test]
fn one_of_two_continues_when_the_other_restarts() {
    for algorithm in ALGORITHMS {
        for (away, reborn, stays) in [(2, 0, 1), (2, 1, 0), (0, 2, 1)] {
            let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast());
            let which = format!("{algorithm}, n{away} away, n{reborn} born again");
            cluster.block_on(async {
                cluster.crash(away);
                let held = cluster.node(stays).lock("a").acquire().await.unwrap();
                cluster.sleep(500 * MS).await;
                cluster.crash(reborn);
                let generation = cluster.node(stays).status().view.unwrap().0;
                let busy = cluster.node(stays).lock("b").timeout(150 * MS).acquire().await;
                assert!(matches!(busy, Err(Error::TimedOut(_))), "{which}: half is no majority");
                cluster.restart(reborn);
                let other = cluster.node(reborn).lock("b").timeout(3 * SOON).acquire().await;
                drop(other.unwrap_or_else(|error| panic!("{which}: {error}")));
                assert_eq!(held.state(), State::Held, "{which}");
                assert_eq!(cluster.node(stays).status().view.unwrap().0, generation, "{which}");
                held.release().await.unwrap();
                let next = cluster.node(reborn).lock("a").timeout(SOON).acquire().await;
                drop(next.unwrap_or_else(|error| panic!("{which}: {error}")));
            });
        }
    }
}

/// The same with half of four members: all of the remaining two are needed.
#[test]
fn half_of_group_continues_when_other_half_restarts() {
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::Table, 4, 0, Timings::fast());
    cluster.block_on(async {
        let generation = cluster.node(0).status().view.unwrap().0;
        (1..3).for_each(|i| cluster.crash(i));
        cluster.isolate(3);
        (1..3).for_each(|i| cluster.restart(i));
        let busy = cluster.node(0).lock("a").timeout(3 * SOON).acquire().await;
        assert!(matches!(busy, Err(Error::TimedOut(_))), "one of four: {busy:?}");
        cluster.heal();
        drop(cluster.node(1).lock("a").timeout(5 * SOON).acquire().await.unwrap());
        assert_eq!(cluster.node(0).status().view.unwrap().0, generation);
    });
}

/// A node without a record may have had higher incarnations before: so all founders are needed.
#[test]
fn restart_without_record_proves_nothing() {
    let mut goes_on = 0;
    for seed in 0..40 {
        let cluster = Cluster::with_lock_algorithm(LockAlgorithm::Table, 3, seed, Timings::fast());
        cluster.block_on(async {
            cluster.crash(2);
            cluster.sleep(500 * MS).await;
            cluster.crash(1);
            cluster.restart_empty(1);
            let served = cluster.node(0).lock("a").timeout(3 * SOON).acquire().await;
            goes_on += u32::from(served.is_ok());
            drop(served);
            cluster.restart(2);
            for i in 0..3 {
                let served = cluster.node(i).lock("b").timeout(6 * SOON).acquire().await;
                drop(served.unwrap_or_else(|error| panic!("seed {seed}, n{i}: {error}")));
            }
        });
    }
    assert!((1..40).contains(&goes_on), "both happen: {goes_on}");
}

/// A process that founded another generation and then restarted is no proof that nobody went on: it did
/// itself.
#[test]
fn replaced_view_does_not_continue() {
    for algorithm in ALGORITHMS {
        let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast());
        cluster.block_on(async {
            cluster.crash(2);
            cluster.sleep(500 * MS).await;
            cluster.isolate(0);
            cluster.crash(1);
            cluster.restart(1);
            cluster.node(1).found_alone();
            let later =
                cluster.node(1).lock("a").timeout(9 * SOON).acquire().await.unwrap().token();
            cluster.crash(1);
            cluster.heal();
            cluster.restart(1);
            let early = cluster.node(0).lock("a").timeout(3 * SOON).acquire().await;
            assert!(matches!(early, Err(Error::TimedOut(_))), "{algorithm}: {early:?}");
            cluster.restart(2);
            for i in 0..3 {
                let guard = cluster.node(i).lock("a").timeout(9 * SOON).acquire().await.unwrap();
                assert!(guard.token() > later, "{algorithm}: {} after {later}", guard.token());
            }
        });
    }
}

/// If one of the remaining half is lost for good, an operator can continue with any of the others.
#[test]
fn half_of_group_dissolves_after_a_while() {
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::Table, 4, 0, Timings::fast());
    cluster.block_on(async {
        (1..4).for_each(|i| cluster.crash(i));
        (2..4).for_each(|i| cluster.restart(i));
        cluster.sleep(10 * SOON).await;
        assert!(cluster.node(0).status().view.is_some(), "the other one may come back");
        cluster.sleep(10 * SOON).await;
        assert_eq!(cluster.node(0).status().view, None);
        cluster.node(3).found_alone();
        drop(cluster.node(0).lock("a").timeout(9 * SOON).acquire().await.unwrap());
    });
}

/// The last member leaves while another enters: that one has the state and continues, or is outside again.
#[test]
fn member_entering_while_last_one_leaves_ends_inside_or_outside() {
    for leaves in [true, false] {
        let cluster = Cluster::with_lock_algorithm(LockAlgorithm::Table, 2, 0, Timings::fast());
        cluster.block_on(async {
            (0..2).for_each(|i| cluster.crash(i));
            cluster.restart(0);
            cluster.node(0).found_alone();
            drop(cluster.node(0).lock("a").acquire().await.unwrap());
            cluster.restart(1);
            while cluster.node(1).status().view.is_none() {
                cluster.sleep(MS / 20).await;
            }
            assert!(!cluster.node(1).status().member, "it only enters");
            if leaves {
                cluster.node(0).leave().await.unwrap();
            }
            cluster.crash(0);
            cluster.sleep(if leaves { SOON } else { 20 * SOON }).await;
            let status = cluster.node(1).status();
            assert!(status.member || status.view.is_none(), "left in order: {leaves}: {status:?}");
            if !status.member {
                cluster.node(1).found_alone();
            }
            drop(cluster.node(1).lock("a").timeout(9 * SOON).acquire().await.unwrap());
        });
    }
}
