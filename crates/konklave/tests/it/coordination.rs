//! Campaigns, barriers, semaphores, several locks and sessions.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use futures_core::Stream;
use konklave::testing::Cluster;
use konklave::{Error, Handover, State, WhyState};

const MS: Duration = Duration::from_millis(1);

#[test]
fn one_candidate_leads_and_all_observe_it() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (a, b, c) = (cluster.node(0), cluster.node(1), cluster.node(2));
        let mut watch = c.observe("boss").unwrap();
        assert_eq!(watch.next().await, Some(None));
        let first = a.campaign("boss").handover(Handover::Fast).label("one").await.unwrap();
        let seen = watch.next().await.unwrap().unwrap();
        assert_eq!((seen.node, seen.label.as_str(), seen.token), (0, "one", first.token()));
        let won: Rc<RefCell<Vec<u32>>> = Rc::default();
        for (node, priority) in [(b.clone(), 0), (c.clone(), 5)] {
            let won = won.clone();
            cluster.spawn(async move {
                let lead = node.campaign("boss").priority(priority).await.unwrap();
                won.borrow_mut().push(node.id());
                lead.lost().await;
            });
            cluster.sleep(MS * 5).await;
        }
        assert!(won.borrow().is_empty());
        first.resign().await.unwrap();
        cluster.sleep(MS * 5).await;
        assert_eq!(*won.borrow(), [2], "who has the higher priority is next");
        a.step_down("boss").await.unwrap();
        cluster.sleep(MS * 5).await;
        assert_eq!(*won.borrow(), [2, 1]);
        let mut last = None;
        while let Some(Some(leader)) =
            tokio::select! { biased; next = watch.next() => next, () = cluster.sleep(MS * 5) => None }
        {
            last = Some(leader.node);
        }
        let _ = last;
        assert!(matches!(a.step_down("nobody").await, Err(Error::NotHeld(_))));
    });
}

#[test]
fn crashed_leader_is_succeeded() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let first = cluster.node(0).campaign("boss").handover(Handover::Fast).await.unwrap();
        let token = first.token();
        let before = cluster.now();
        cluster.crash(0);
        let next = cluster.node(1).campaign("boss").handover(Handover::Fast).await.unwrap();
        assert!(next.token() > token);
        assert!(cluster.now() - before < MS * 100);
        assert_eq!(first.state(), State::Lost);
    });
}

#[test]
fn barrier_opens_for_all() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (a, b, c) = (cluster.node(0), cluster.node(1), cluster.node(2));
        let (one, two, three) =
            (a.barrier("start", 3), b.barrier("start", 3), c.barrier("start", 3));
        for _ in 0..3 {
            let late = async {
                cluster.sleep(MS * 30).await;
                let before = cluster.now();
                three.wait().await.unwrap();
                before
            };
            let opened = async {
                let (x, y) = tokio::join!(one.wait(), two.wait());
                x.and(y).unwrap();
                cluster.now()
            };
            let (before, opened) = tokio::join!(late, opened);
            assert!(opened >= before);
        }
        let one = a.barrier("x", 2);
        let wrong = b.barrier("x", 3);
        let (_, wrong) = tokio::join!(
            async {
                tokio::select! { _ = one.wait() => {}, () = cluster.sleep(MS * 20) => {} }
            },
            async {
                cluster.sleep(MS * 5).await;
                wrong.wait().await
            }
        );
        assert!(matches!(wrong, Err(Error::Parties { of: 2, asked: 3, .. })));
    });
}

#[test]
fn semaphore_grants_its_permits_and_no_more() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let mut held = Vec::new();
        for i in 0..2 {
            held.push(cluster.node(i).semaphore("pool", 2).acquire().await.unwrap());
        }
        let full = cluster.node(2).semaphore("pool", 2).try_acquire().await;
        assert!(matches!(full, Err(Error::Busy(_))));
        let other = cluster.node(2).semaphore("pool", 3).acquire().await;
        assert!(matches!(other, Err(Error::Permits { of: 2, asked: 3, .. })));
        let none = cluster.node(2).semaphore("pool", 0).acquire().await;
        assert!(matches!(none, Err(Error::Config(_))));
        // A lock of the same name is another thing.
        assert!(cluster.node(2).lock("pool").try_acquire().await.is_ok());
        held.pop().unwrap().release().await.unwrap();
        assert!(cluster.node(2).semaphore("pool", 2).acquire().await.is_ok());
    });
}

#[test]
fn end_of_session_releases_everything() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (a, b) = (cluster.node(0), cluster.node(1));
        let session = a.session("client 1");
        let held = session.lock("x").acquire().await.unwrap();
        let also = session.lock("y").shared().acquire().await.unwrap();
        assert_eq!(b.status().locks[0].holders[0].label, "client 1");
        session.close();
        assert!(!session.is_open());
        held.lost().await;
        assert_eq!((held.state(), also.state()), (State::Lost, State::Lost));
        let before = cluster.now();
        for name in ["x", "y"] {
            b.lock(name).acquire().await.unwrap().release().await.unwrap();
        }
        assert!(cluster.now() - before < MS * 20, "at once: its node lives");
        assert!(matches!(session.lock("x").acquire().await, Err(Error::Closed)));
    });
}

#[test]
fn several_locks_are_granted_all_or_none() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (a, b) = (cluster.node(0), cluster.node(1));
        let held = a.lock("n").acquire().await.unwrap();
        let late = b.lock_all(["z", "n", "c"]).timeout(MS * 50).acquire().await;
        assert!(matches!(late, Err(Error::TimedOut(_))));
        assert!(b.lock_all(["z", "n", "c"]).try_acquire().await.is_err());
        for name in ["c", "z"] {
            assert!(a.lock(name).try_acquire().await.is_ok(), "{name} was given back");
        }
        held.release().await.unwrap();
        let all = b.lock_all(["z", "n", "c", "z"]).acquire().await.unwrap();
        let names: Vec<&str> = all.iter().map(|g| g.name()).collect();
        assert_eq!(names, ["c", "n", "z"]);
        all.release().await.unwrap();
    });
}

#[test]
fn deadlock_of_two_is_found() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (a, b) = (cluster.node(0), cluster.node(1));
        assert_eq!(a.why("x").state, WhyState::Free);
        let x = a.lock("x").acquire().await.unwrap();
        let y = b.lock("y").acquire().await.unwrap();
        assert_eq!(b.why("x").state, WhyState::Held);
        let one = a.lock("y").timeout(MS * 100).acquire();
        let two = b.lock("x").timeout(MS * 100).acquire();
        let looks = async {
            cluster.sleep(MS * 20).await;
            for node in [&a, &b] {
                let why = node.why("x");
                assert_eq!(why.state, WhyState::Deadlock, "{why:?}");
                assert_eq!(why.cycle.len(), 2);
                assert_eq!(why.lock.unwrap().holders[0].node, 0);
            }
        };
        let (one, two, ()) = tokio::join!(one, two, looks);
        assert!(one.is_err() && two.is_err());
        drop((x, y));
    });
}

/// Also if one of them uses a cached lock, of which the group knows only the former user.
#[test]
fn deadlock_with_cached_lock_is_found_at_its_node() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (first, a, b) =
            (cluster.node(0).session("first"), cluster.node(0).session("a"), cluster.node(1));
        drop(first.lock("x").acquire().await.unwrap());
        let (_x, _y) = (a.lock("x").acquire().await.unwrap(), b.lock("y").acquire().await.unwrap());
        let one = a.lock("y").timeout(MS * 100).acquire();
        let two = b.lock("x").timeout(MS * 100).acquire();
        let looks = async {
            cluster.sleep(MS * 20).await;
            assert_eq!(cluster.node(0).why("x").state, WhyState::Deadlock);
        };
        let (one, two, ()) = tokio::join!(one, two, looks);
        assert!(one.is_err() && two.is_err());
    });
}

#[test]
fn operator_revokes_lock_by_token() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (a, b) = (cluster.node(0), cluster.node(1));
        drop(a.lock("x").acquire().await.unwrap());
        let held = a.lock("x").acquire().await.unwrap();
        let old = konklave::Token { epoch: held.token().epoch + 1, ..held.token() };
        assert!(b.revoke("x", Some(old)).await.is_err());
        assert_eq!(held.state(), State::Held);
        b.revoke("x", Some(held.token())).await.unwrap();
        held.lost().await;
        assert!(b.lock("x").acquire().await.unwrap().token() > held.token());
    });
}

#[test]
fn leave_in_order_keeps_no_request_waiting() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let a = cluster.node(0);
        let held = a.lock("x").acquire().await.unwrap();
        let before = cluster.now();
        a.leave().await.unwrap();
        assert_eq!(held.state(), State::Lost);
        let next = cluster.node(1).lock("x").acquire().await.unwrap();
        assert!(cluster.now() - before < MS * 100, "{:?}", cluster.now() - before);
        drop(next);
        assert_eq!(cluster.node(1).status().members.len(), 2);
        assert!(a.lock("y").acquire().await.is_err());
    });
}

#[test]
fn names_are_checked() {
    let cluster = Cluster::new(1);
    cluster.block_on(async {
        let node = cluster.node(0);
        for name in ["", "a\nb", &"x".repeat(256)] {
            assert!(matches!(node.lock(name).acquire().await, Err(Error::BadName(_))), "{name:?}");
        }
        assert!(node.lock(&"x".repeat(255)).acquire().await.is_ok());
    });
}

#[test]
fn ten_thousand_names_come_and_go() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let node = cluster.node(1);
        for i in 0..10_000 {
            drop(node.lock(&format!("name{i}")).acquire().await.unwrap());
        }
        cluster.sleep(Duration::from_secs(3)).await;
        for i in 0..3 {
            assert_eq!(cluster.node(i).status().locks.len(), 0);
        }
    });
}

/// Scenario: parties drop the future of their wait again and again. Hazard: the barrier opens for one of them
/// just then, and it waits for a round that the others have finished.
#[test]
fn barrier_is_cancel_safe() {
    for seed in 0..30 {
        let cluster = Cluster::seeded(3, seed);
        let passed = Rc::new(RefCell::new([0; 3]));
        cluster.block_on(async {
            let party = async |i: usize| {
                let (barrier, mut random) = (cluster.node(i).barrier("round", 3), seed + i as u64);
                for round in 1..=20 {
                    loop {
                        random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
                        tokio::select! {
                            opened = barrier.wait() => break opened.unwrap(),
                            () = cluster.sleep(MS / 10 * (random >> 60) as u32) => {}
                        }
                    }
                    passed.borrow_mut()[i] = round;
                    let all = *passed.borrow();
                    assert!(all.iter().all(|others| others + 1 >= round), "{seed}: {all:?}");
                }
            };
            tokio::select! {
                _ = async { tokio::join!(party(0), party(1), party(2)) } => {}
                () = cluster.sleep(MS * 60_000) => panic!("{seed}: {:?} rounds", passed.borrow()),
            }
        });
    }
}

#[test]
fn clones_of_barrier_are_parties_of_their_own() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let one = cluster.node(0).barrier("b", 3);
        let (two, three) = (one.clone(), one.clone());
        let (a, b, c) = tokio::join!(one.wait(), two.wait(), three.wait());
        a.and(b).and(c).unwrap();
    });
}

#[test]
fn node_tells_whether_majority_answers_and_fails_at_once_without() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let node = cluster.node(0);
        let mut watch = node.watch_quorum();
        // As a stream, too.
        while poll_fn(|task| Pin::new(&mut watch).poll_next(task)).await != Some(true) {}
        node.ready().await.unwrap();
        assert!(node.has_quorum());
        let held = node.lock("mine").acquire().await.unwrap();
        // These wait for an answer of the group when its majority goes away.
        cluster.isolate(0);
        let asked = cluster.now();
        let tried = node.lock("a").try_acquire().await;
        assert!(matches!(tried, Err(Error::NoGroup(_))), "{tried:?}");
        assert!(cluster.now() - asked < MS * 1500, "{:?}", cluster.now() - asked);
        assert_eq!(watch.next().await, Some(false));
        assert!(!node.has_quorum());
        // And these begin without one.
        let asked = cluster.now();
        let revoked = node.revoke("mine", None).await;
        assert!(matches!(revoked, Err(Error::NoGroup(_))), "{revoked:?}");
        let led = node.step_down("boss").await;
        assert!(matches!(led, Err(Error::NoGroup(_))), "{led:?}");
        assert_eq!(cluster.now(), asked, "at once");
        drop(held);
        cluster.heal();
        node.ready().await.unwrap();
        assert_eq!(watch.next().await, Some(true));
        node.lock("a").try_acquire().await.unwrap().release().await.unwrap();
        node.leave().await.unwrap();
        assert_eq!(watch.next().await, None);
    });
}

/// A party with a wrong number of parties is refused after it has dropped its future: its next wait is answered.
#[test]
fn refused_arrival_that_was_dropped_blocks_no_later_one() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (right, wrong) = (cluster.node(0).barrier("b", 2), cluster.node(1).barrier("b", 3));
        let mut waits = Box::pin(right.wait());
        tokio::select! { _ = &mut waits => panic!("it is alone"), () = cluster.sleep(MS * 50) => {} }
        tokio::select! { biased; _ = wrong.wait() => panic!("no time"), () = async {} => {} }
        tokio::select! {
            answer = wrong.wait() => assert!(matches!(answer, Err(Error::Parties { .. }))),
            () = cluster.sleep(MS * 10_000) => panic!("it waits for ever"),
        }
    });
}
