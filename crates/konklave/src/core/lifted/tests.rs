use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use konklave_process::ProcessId;

use crate::builder::Timings;
use crate::error::Error;
use crate::lifted::{LiftedFrame, LockMessage};
use crate::lock::{Guard, Handover, LockRequest};
use crate::lock_algorithm::LockAlgorithm;
use crate::testing::Cluster;

const MS: Duration = Duration::from_millis(1);

#[test]
fn new_view_forgets_many_idle_names() {
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::SuzukiKasami, 3, 0, Timings::fast());
    let epoch = || cluster.node(1).status().view.map(|(_, epoch)| epoch);
    cluster.block_on(async {
        let node = cluster.node(0);
        let held = node.lock("held").acquire().await.unwrap();
        for i in 0..40 {
            drop(node.lock(&format!("l{i}")).acquire().await.unwrap());
        }
        cluster.sleep(500 * MS).await;
        assert_eq!(epoch(), Some(0), "few are kept");
        for i in 40..super::NAMES {
            drop(node.lock(&format!("l{i}")).acquire().await.unwrap());
        }
        cluster.sleep(500 * MS).await;
        assert_eq!(epoch(), Some(1), "many are forgotten, once");
        assert_eq!(held.state(), crate::State::Held);
        let next = cluster.node(2).lock("held").timeout(50 * MS);
        assert!(next.clone().acquire().await.is_err());
        let token = held.token();
        held.release().await.unwrap();
        assert!(next.acquire().await.unwrap().token() > token);
    });
}

#[test]
fn new_view_forgets_long_idle_names() {
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::SuzukiKasami, 3, 0, Timings::fast());
    let epoch = || cluster.node(1).status().view.map(|(_, epoch)| epoch);
    cluster.block_on(async {
        let node = cluster.node(0);
        let long = "l".repeat(250);
        let held = node.lock(&format!("{long}held")).acquire().await.unwrap();
        let use_all = async |some: std::ops::Range<usize>| {
            for i in some {
                drop(node.lock(&format!("{long}{i}")).acquire().await.unwrap());
            }
            cluster.sleep(500 * MS).await;
        };
        use_all(0..10).await;
        assert_eq!(epoch(), Some(0), "few are kept");
        use_all(10..40).await;
        assert_eq!(epoch(), Some(1), "many bytes are forgotten, once");
        assert_eq!(held.state(), crate::State::Held);
        held.release().await.unwrap();
    });
}

/// Until the record is on disk, a grant is held back. A request withdrawn meanwhile must not leave the lock
/// held.
#[test]
fn withdrawn_request_releases_held_back_grant() {
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 1, 0, Timings::fast());
    let node = cluster.node(0);
    for drops in [false, true] {
        cluster.block_on(async {
            node.shared().with(|core, _| core.unsaved = true);
            let mut asked = Box::pin(node.lock("a").timeout(100 * MS).acquire());
            if drops {
                assert!(poll_fn(|t| Poll::Ready(asked.as_mut().poll(t).is_pending())).await);
                drop(asked);
            } else {
                let late = asked.await;
                assert!(matches!(late, Err(Error::TimedOut(_))), "{late:?}");
            }
            node.shared().with(|core, _| core.saved());
            let next = node.lock("a").timeout(100 * MS).acquire().await;
            assert!(next.is_ok(), "{drops}: {next:?}");
        });
    }
}

/// If the lease ends meanwhile, the request is submitted again.
#[test]
fn held_back_grant_is_requested_again_after_lease_ends() {
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::fast());
    let node = cluster.node(0);
    cluster.block_on(async {
        let lost = node.lock("b").acquire().await.unwrap();
        let here = node.lock("a").acquire().await.unwrap();
        here.release().await.unwrap();
        node.shared().with(|core, _| core.unsaved = true);
        let mut asked = pin!(node.lock("a").timeout(60_000 * MS).acquire());
        assert!(poll_fn(|t| Poll::Ready(asked.as_mut().poll(t).is_pending())).await);
        cluster.isolate(0);
        lost.lost().await;
        node.found_alone();
        let granted = asked.await;
        assert!(granted.is_ok(), "{granted:?}");
        drop(granted);
        assert!(node.lock("a").timeout(100 * MS).acquire().await.is_ok());
    });
}

/// If the lock is revoked meanwhile, the request of another node is served, and then the held-back one.
#[test]
fn held_back_grant_can_be_revoked() {
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::fast());
    let node = cluster.node(0);
    cluster.block_on(async {
        drop(node.lock("a").acquire().await.unwrap());
        node.shared().with(|core, _| core.unsaved = true);
        let late = ask(&cluster, node.lock("a"));
        let other = ask(&cluster, cluster.node(1).lock("a"));
        cluster.sleep(20 * MS).await;
        assert!(late.borrow().is_none() && other.borrow().is_none());
        cluster.node(2).revoke("a", None).await.unwrap();
        cluster.sleep(20 * MS).await;
        assert!(matches!(&*other.borrow(), Some(Ok(_))), "it is free");
        node.shared().with(|core, _| core.saved());
        cluster.sleep(20 * MS).await;
        assert!(late.borrow().is_none(), "another has it");
        let before = other.take().unwrap().unwrap().token();
        cluster.sleep(20 * MS).await;
        let after = late.take().unwrap().unwrap().token();
        assert!(after > before, "{after} after {before}");
    });
}

/// Hazard: two revocations at once release the lock twice, although it was requested again in between.
#[test]
fn held_back_grant_revoked_twice_has_one_holder() {
    for algorithm in [LockAlgorithm::Table, LockAlgorithm::NaimiTrehel] {
        let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast());
        let node = cluster.node(0);
        cluster.block_on(async {
            node.shared().with(|core, _| core.unsaved = true);
            let late = ask(&cluster, node.lock("a"));
            cluster.sleep(20 * MS).await;
            for _ in 0..2 {
                let other = cluster.node(1);
                cluster.spawn(async move { drop(other.revoke("a", None).await) });
            }
            cluster.sleep(20 * MS).await;
            node.shared().with(|core, _| core.saved());
            cluster.sleep(20 * MS).await;
            let held = late.take().unwrap().unwrap();
            assert_eq!(held.state(), crate::State::Held);
            let next = cluster.node(2).lock("a").timeout(100 * MS).acquire().await;
            assert!(next.is_err(), "{algorithm}: two mode it at once");
        });
    }
}

/// Sends a request without waiting; the answer appears in the returned cell.
fn ask(cluster: &Cluster, request: LockRequest) -> Rc<RefCell<Option<Result<Guard, Error>>>> {
    let answer = Rc::new(RefCell::new(None));
    let to = answer.clone();
    cluster.spawn(async move {
        let answer = request.acquire().await;
        *to.borrow_mut() = Some(answer);
    });
    answer
}

/// Fast although it is idle here: a lease-safe grant needs a majority that knows of it.
#[test]
fn idle_lock_is_granted_lease_safe_only_after_majority_noted_it() {
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::fast());
    let node = cluster.node(1);
    cluster.block_on(async {
        drop(node.lock("a").handover(Handover::Fast).acquire().await.unwrap());
        cluster.isolate(1);
        assert!(
            node.lock("a").handover(Handover::Fast).try_acquire().await.is_ok(),
            "it lies here"
        );
        let safe = node.lock("a").timeout(100 * MS).acquire().await;
        assert!(matches!(safe, Err(Error::TimedOut(_))), "{safe:?}");
        cluster.heal();
        assert!(node.lock("a").timeout(2000 * MS).acquire().await.is_ok());
    });
}

/// An excluded holder may still use the lock.
#[test]
fn idle_lock_is_not_granted_while_fenced() {
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::fast());
    let node = cluster.node(0);
    cluster.block_on(async {
        let held = cluster.node(2).lock("a").acquire().await.unwrap();
        let until = cluster.now() + held.valid_for();
        cluster.crash(2);
        cluster.sleep(100 * MS).await;
        // The refused request leaves the idle lock at its node.
        let busy = node.lock("a").handover(Handover::Fast).try_acquire().await;
        assert!(matches!(busy, Err(Error::Busy(_))), "{busy:?}");
        let next = node.lock("a").handover(Handover::Fast).acquire().await.unwrap();
        assert!(cluster.now() >= until, "it may still be at it");
        drop(next);
    });
}

#[test]
fn idle_lock_is_not_granted_without_lease() {
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::fast());
    let node = cluster.node(1);
    cluster.block_on(async {
        let held = node.lock("a").acquire().await.unwrap();
        drop(node.lock("b").acquire().await.unwrap());
        cluster.isolate(1);
        held.lost().await;
        let late = ask(&cluster, node.lock("b").timeout(100 * MS));
        cluster.sleep(200 * MS).await;
        assert!(matches!(&*late.borrow(), Some(Err(Error::TimedOut(_)))), "{late:?}");
    });
}

/// Scenario: a refusal by the last holder arrives after the lock, while the grant is still held back.
#[test]
fn late_refusal_does_not_cancel_grant() {
    let cluster = Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::fast());
    let node = cluster.node(0);
    cluster.block_on(async {
        drop(node.lock("a").acquire().await.unwrap());
        node.shared().with(|core, _| core.unsaved = true);
        let mut asked = pin!(node.lock("a").try_acquire());
        assert!(poll_fn(|t| Poll::Ready(asked.as_mut().poll(t).is_pending())).await);
        cluster.sleep(5 * MS).await;
        node.shared().with(|core, _| {
            let (from, index) = (ProcessId(1), core.lifted.locks.find("a").unwrap());
            let number = core.lifted.locks[index].user.as_ref().unwrap().number;
            let next = core.lifted.received.get(&from).copied().unwrap_or(0) + 1;
            let message = LockMessage::InUse { number };
            let view = core.lifted.view;
            core.on_lifted_frame(
                from,
                LiftedFrame { view, number: next, name: "a".into(), message },
            );
            // The frame was made up: do not count it.
            core.lifted.received.insert(from, next - 1);
        });
        node.shared().with(|core, _| core.saved());
        let granted = asked.await;
        assert!(granted.is_ok(), "{granted:?}");
        drop(granted);
        assert!(cluster.node(2).lock("a").timeout(5000 * MS).acquire().await.is_ok());
    });
}
