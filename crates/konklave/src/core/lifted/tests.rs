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

/// Names that nobody uses any more are forgotten by a new view, and only then is there one.
#[test]
fn a_new_view_makes_room_when_many_names_are_idle() {
    let cluster =
        Cluster::with_lock_algorithm(LockAlgorithm::SuzukiKasami, 3, 0, Timings::default());
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

/// The same for names that are few and long: what is said of them when a view ends must not become too long.
#[test]
fn a_new_view_makes_room_when_idle_names_are_long() {
    let cluster =
        Cluster::with_lock_algorithm(LockAlgorithm::SuzukiKasami, 3, 0, Timings::default());
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

/// Until the disk has what it must, a grant is not told. Who gives up meanwhile leaves nobody behind that
/// has the lock.
#[test]
fn who_gives_up_while_its_grant_waits_for_the_disk_does_not_have_it() {
    let cluster =
        Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 1, 0, Timings::default());
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

/// The same where the lease is lost meanwhile: what was not told yet is asked for again.
#[test]
fn a_grant_that_waits_for_the_disk_when_the_lease_ends_is_asked_for_again() {
    let cluster =
        Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::default());
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

/// And where it is revoked meanwhile: who waits elsewhere has it, and the one it was not told comes next.
#[test]
fn a_grant_that_waits_for_the_disk_can_be_revoked() {
    let cluster =
        Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::default());
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

/// Twice at once, too: what is asked for again is not given back for the second time.
#[test]
fn a_grant_that_waits_for_the_disk_and_is_revoked_twice_has_one_holder() {
    for algorithm in [LockAlgorithm::Table, LockAlgorithm::NaimiTrehel] {
        let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::default());
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

/// Asks without waiting for the answer: what it is, once it is there.
fn ask(cluster: &Cluster, request: LockRequest) -> Rc<RefCell<Option<Result<Guard, Error>>>> {
    let answer = Rc::new(RefCell::new(None));
    let to = answer.clone();
    cluster.spawn(async move {
        let answer = request.acquire().await;
        *to.borrow_mut() = Some(answer);
    });
    answer
}

/// What lies here is not given safely before a majority knows of that, however quickly it could be.
#[test]
fn a_lock_that_lies_here_is_given_safely_only_when_others_know() {
    let cluster =
        Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::default());
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

/// Nor while one who is gone may still believe to have it.
#[test]
fn a_lock_that_lies_here_is_not_given_while_it_is_frozen() {
    let cluster =
        Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::default());
    let node = cluster.node(0);
    cluster.block_on(async {
        let held = cluster.node(2).lock("a").acquire().await.unwrap();
        let until = cluster.now() + held.valid_for();
        cluster.crash(2);
        cluster.sleep(100 * MS).await;
        // Who does not wait is refused, after which the lock lies where that was.
        let busy = node.lock("a").handover(Handover::Fast).try_acquire().await;
        assert!(matches!(busy, Err(Error::Busy(_))), "{busy:?}");
        let next = node.lock("a").handover(Handover::Fast).acquire().await.unwrap();
        assert!(cluster.now() >= until, "it may still be at it");
        drop(next);
    });
}

/// And who may mode nothing is not let in, and waits no longer than it wants to.
#[test]
fn without_a_lease_a_lock_that_lies_here_is_not_given() {
    let cluster =
        Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::default());
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

/// A word of one who used the lock before arrives when it has come, and its grant is not told yet.
#[test]
fn who_was_granted_it_is_not_refused_by_a_late_word() {
    let cluster =
        Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 0, Timings::default());
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
            let message = LockMessage::Used { number };
            let view = core.lifted.view;
            core.on_lifted_frame(from, LiftedFrame { view, number: next, name: "a".into(), message });
            // It was not really said.
            core.lifted.received.insert(from, next - 1);
        });
        node.shared().with(|core, _| core.saved());
        let granted = asked.await;
        assert!(granted.is_ok(), "{granted:?}");
        drop(granted);
        assert!(cluster.node(2).lock("a").timeout(5000 * MS).acquire().await.is_ok());
    });
}
