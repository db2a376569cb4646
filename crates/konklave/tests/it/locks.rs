//! Locks, in a group in memory.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use konklave::testing::Cluster;
use konklave::{Error, Handover, Node, State, Token};

const MS: Duration = Duration::from_millis(1);

#[test]
fn three_members_find_each_other_and_lock() {
    let cluster = Cluster::new(3);
    for i in 0..3 {
        assert!(cluster.node(i).status().member, "{:?}", cluster.node(i).status());
    }
    cluster.block_on(async {
        let first = cluster.node(0).lock("a").acquire().await.unwrap();
        let token = first.token();
        assert_eq!(first.state(), State::Held);
        first.release().await.unwrap();
        let second = cluster.node(1).lock("a").acquire().await.unwrap();
        assert!(second.token() > token);
    });
}

#[test]
fn one_member_alone_is_a_group() {
    let cluster = Cluster::new(1);
    cluster.block_on(async {
        let guard = cluster.node(0).lock("a").acquire().await.unwrap();
        cluster.sleep(Duration::from_secs(60)).await;
        assert_eq!(guard.state(), State::Held);
        guard.release().await.unwrap();
    });
}

/// All members know the granted node; only that node knows which session uses a cached lock.
#[test]
fn session_using_cached_lock_is_shown_at_its_node() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let node = cluster.node(0);
        drop(node.lock("a").label("first").acquire().await.unwrap());
        cluster.sleep(100 * MS).await;
        let again = node.lock("a").label("second").acquire().await.unwrap();
        let status = node.status();
        let holder = &status.locks[0].holders[0];
        assert_eq!((holder.label.as_str(), holder.since_ms), ("second", 0));
        assert_eq!(holder.token, again.token());
        let elsewhere = cluster.node(1).status();
        assert_eq!(elsewhere.locks[0].holders[0].label, "first");
    });
}

#[test]
fn cached_lock_is_granted_without_message_until_requested_elsewhere() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (a, b) = (cluster.node(0), cluster.node(1));
        let mut last = a.lock("a").acquire().await.unwrap().token();
        let before = cluster.now();
        for _ in 0..100 {
            let guard = a.lock("a").acquire().await.unwrap();
            assert!(guard.token() > last);
            last = guard.token();
        }
        assert_eq!(cluster.now(), before, "no message, no time");
        let other = b.lock("a").acquire().await.unwrap();
        assert!(other.token() > last);
        assert!(cluster.now() - before < 5 * MS);
        assert!(matches!(a.lock("a").try_acquire().await, Err(Error::Busy(_))));
        other.release().await.unwrap();
        let again = a.lock("a").try_acquire().await.unwrap();
        drop(again);
        assert!(a.lock("a").try_acquire().await.is_ok());
    });
}

#[test]
fn timeout_leaves_nothing_behind() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let held = cluster.node(0).lock("a").acquire().await.unwrap();
        let late = cluster.node(1).lock("a").timeout(50 * MS).acquire().await;
        assert!(matches!(late, Err(Error::TimedOut(_))), "{late:?}");
        // The third member learns of it with the next heartbeat.
        cluster.sleep(200 * MS).await;
        assert_eq!(cluster.node(2).status().locks[0].queue, []);
        // Dropping the future withdraws the request, too.
        {
            let node = cluster.node(2);
            let mut waiting = std::pin::pin!(node.lock("a").acquire());
            tokio::select! {
                biased;
                _ = &mut waiting => panic!("it is held"),
                () = cluster.sleep(20 * MS) => {}
            }
            assert_eq!(node.status().locks[0].queue.len(), 1);
        }
        cluster.sleep(5 * MS).await;
        assert_eq!(cluster.node(1).status().locks[0].queue, []);
        held.release().await.unwrap();
        assert!(cluster.node(1).lock("a").acquire().await.is_ok());
    });
}

#[test]
fn shared_holders_do_not_overtake_exclusive_request() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let a = cluster.node(0).lock("a").shared().acquire().await.unwrap();
        let b = cluster.node(1).lock("a").shared().acquire().await.unwrap();
        let node = cluster.node(2);
        let alone = node.lock("a").acquire();
        let mut alone = std::pin::pin!(alone);
        tokio::select! { biased; _ = &mut alone => panic!("shared"), () = cluster.sleep(10 * MS) => {} }
        let late = cluster.node(0).lock("a").shared().timeout(10 * MS).acquire().await;
        assert!(late.is_err(), "someone waits to have it alone");
        drop((a, b));
        let alone = alone.await.unwrap();
        assert_eq!(alone.state(), State::Held);
    });
}

#[test]
fn crash_frees_fast_locks_at_once_and_lease_safe_ones_after_lease() {
    for (mode, least, most) in [(Handover::Fast, 0, 60), (Handover::LeaseSafe, 900, 1200)] {
        let cluster = Cluster::new(3);
        cluster.block_on(async {
            let held = cluster.node(0).lock("a").handover(mode).acquire().await.unwrap();
            let before = cluster.now();
            cluster.crash(0);
            let next = cluster.node(1).lock("a").handover(mode).acquire().await.unwrap();
            assert!(next.token() > held.token());
            let took = cluster.now() - before;
            assert!(took >= least * MS && took <= most * MS, "{mode:?} {took:?}");
        });
    }
}

#[test]
fn minority_loses_grants_in_time_and_rejoins() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let held = cluster.node(0).lock("a").acquire().await.unwrap();
        cluster.isolate(0);
        let cut = cluster.now();
        held.lost().await;
        assert!(cluster.now() - cut <= Duration::from_secs(1));
        assert_eq!(held.state(), State::Lost);
        let next = cluster.node(1).lock("a").acquire().await.unwrap();
        assert!(cluster.now() - cut <= 3000 * MS, "{:?}", cluster.now() - cut);
        let refused = cluster.node(0).lock("b").timeout(2000 * MS).acquire().await;
        assert!(matches!(refused, Err(Error::TimedOut(_))));
        cluster.heal();
        let back = cluster.node(0).lock("b").timeout(5000 * MS).acquire().await.unwrap();
        assert!(back.token() > held.token());
        assert!(held.release().await.is_err(), "it was lost");
        next.release().await.unwrap();
    });
}

#[test]
fn tokens_grow_across_total_restart() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let before = cluster.node(0).lock("a").acquire().await.unwrap().token();
        for i in 0..3 {
            cluster.crash(i);
        }
        for i in 0..3 {
            cluster.restart(i);
        }
        let after = cluster.node(1).lock("a").acquire().await.unwrap().token();
        assert!(after.generation > before.generation, "{before} {after}");
    });
}

/// The leader, a follower that requests a lock, and an uninvolved member.
fn cast(cluster: &Cluster) -> (usize, usize, usize) {
    let leader = cluster.node(0).status().leader.expect("there is a view") as usize;
    (leader, (leader + 1) % 3, (leader + 2) % 3)
}

#[test]
fn uninvolved_member_learns_of_grant_with_next_heartbeat() {
    let cluster = Cluster::new(3);
    let (_, asker, third) = cast(&cluster);
    cluster.block_on(async {
        let held = cluster.node(asker).lock("free").acquire().await.unwrap();
        assert_eq!(cluster.node(third).status().locks, [], "nobody waits for it to know");
        cluster.sleep(300 * MS).await;
        assert_eq!(cluster.node(third).status().locks.len(), 1);
        // The requesting member learns of it at once: batched frames travel along.
        let late = cluster.node(third).lock("free").timeout(10 * MS).acquire().await;
        assert!(matches!(late, Err(Error::TimedOut(_))), "{late:?}");
        drop(held);
    });
}

#[test]
fn grant_known_to_leader_and_holder_survives_leader() {
    for seed in 0..100 {
        let cluster = Cluster::seeded(3, seed);
        let (leader, asker, third) = cast(&cluster);
        cluster.block_on(async {
            let held = cluster.node(asker).lock("free").handover(Handover::Fast).acquire().await;
            let held = held.unwrap();
            assert_eq!(cluster.node(third).status().locks, []);
            cluster.crash(leader);
            let next = cluster.node(third).lock("free").handover(Handover::Fast);
            let refused = next.timeout(500 * MS).acquire().await;
            assert!(matches!(refused, Err(Error::TimedOut(_))), "seed {seed}: {refused:?}");
            assert_eq!(held.state(), State::Held);
            let token = held.token();
            held.release().await.unwrap();
            let next = cluster.node(third).lock("free").acquire().await.unwrap();
            assert!(next.token() > token, "seed {seed}");
        });
    }
}

/// Clients without a pause between grants. A release must be flushed to the next holder immediately. If it
/// were batched, each turn would wait for a heartbeat.
#[test]
fn clients_take_turns_without_waiting_for_heartbeats() {
    for places in [&[0, 0, 0, 1, 1, 1, 2, 2][..], &[0, 1], &[1, 2], &[1, 1, 2], &[0, 0, 2], &[2, 2]]
    {
        for n in 2..=4 {
            let entries = 100;
            let places: Vec<usize> = places.iter().map(|place| place % n).collect();
            let cluster = Cluster::new(n);
            let begin = cluster.now();
            let tokens: Rc<RefCell<Vec<Token>>> = Rc::default();
            for place in &places {
                let turns = take_turns(cluster.node(*place), entries, tokens.clone());
                cluster.spawn(turns);
            }
            while tokens.borrow().len() < places.len() * entries {
                cluster.advance(MS);
            }
            let took = cluster.now() - begin;
            let tokens = tokens.borrow();
            assert!(tokens.is_sorted_by(|a, b| a < b), "each is higher than the one before");
            // The heartbeat is 140 ms.
            assert!(took < MS * tokens.len() as u32, "{n} {places:?}: {took:?}");
        }
    }
}

async fn take_turns(node: Node, entries: usize, tokens: Rc<RefCell<Vec<Token>>>) {
    let session = node.session("client");
    for _ in 0..entries {
        let wish = session.lock("one").timeout(Duration::from_secs(5));
        let guard = match wish.acquire().await {
            Ok(guard) => guard,
            Err(error) => panic!("{error}: {:#?}", node.status()),
        };
        tokens.borrow_mut().push(guard.token());
        guard.release().await.unwrap();
    }
}

/// The holder's node passes the lock between local sessions without a message. It must still learn of a
/// remote request behind them.
#[test]
fn remote_request_behind_local_ones_is_served_at_once() {
    for (holder, other) in [(0, 1), (1, 0), (1, 2), (2, 0), (2, 1), (0, 2)] {
        let cluster = Cluster::new(3);
        let tokens: Rc<RefCell<Vec<Token>>> = Rc::default();
        let first = cluster.block_on(cluster.node(holder).lock("one").acquire()).unwrap();
        for place in [holder, other] {
            cluster.spawn(take_turns(cluster.node(place), 1, tokens.clone()));
            cluster.advance(MS * 3);
        }
        let begin = cluster.now();
        drop(first);
        while tokens.borrow().len() < 2 {
            cluster.advance(MS);
        }
        let took = cluster.now() - begin;
        assert!(took < MS * 20, "from {holder} to {other}: {took:?}");
    }
}

/// No request waits for these releases, so they are batched. The releasing session's next request must not
/// wait for their acknowledgements.
#[test]
fn request_after_many_releases_is_served_at_once() {
    for place in 0..3 {
        let cluster = Cluster::new(3);
        cluster.block_on(async {
            let node = cluster.node(place);
            let mut held = Vec::new();
            for i in 0..12 {
                held.push(node.lock(&i.to_string()).shared().acquire().await.unwrap());
            }
            for guard in held {
                drop(guard);
                cluster.sleep(MS).await;
            }
            let begin = cluster.now();
            node.lock("next").acquire().await.unwrap().release().await.unwrap();
            let took = cluster.now() - begin;
            assert!(took < MS * 20, "{place}: {took:?}");
        });
    }
}

/// No request waits for these releases: they may arrive late, but not one after the other.
#[test]
fn many_locks_released_at_once_are_free_soon() {
    let cluster = Cluster::new(3);
    let most = MS * 250;
    for place in 0..3 {
        cluster.block_on(async {
            let mut held = Vec::new();
            for i in 0..100 {
                let name = format!("{place}-{i}");
                held.push(cluster.node(place).lock(&name).shared().acquire().await.unwrap());
            }
            held.into_iter().for_each(drop);
            let begin = cluster.now();
            for i in 0..100 {
                let name = format!("{place}-{i}");
                let wish = cluster.node((place + 1) % 3).lock(&name);
                drop(wish.timeout(Duration::from_secs(5)).acquire().await.unwrap());
            }
            let took = cluster.now() - begin;
            assert!(took < most, "{place}: {took:?}");
        });
    }
}
