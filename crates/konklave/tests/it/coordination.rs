//! Groups, campaigns, barriers, semaphores and sessions.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use futures_core::Stream;
use konklave::testing::Cluster;
use konklave::{Error, Group, GroupEvent, GroupLoss, Handover, Loss, Snapshot, State, WhyState};

const MS: Duration = Duration::from_millis(1);

/// The events of a group member; its state is the list of all messages.
#[derive(Default)]
struct Log {
    messages: Vec<String>,
    views: Vec<usize>,
    started_with: Option<Vec<String>>,
}

/// Reads until no event has come for a while, and gives the state when asked.
async fn follow(cluster: &Cluster, group: &mut Group, log: &mut Log, time: Duration) {
    loop {
        let event = tokio::select! {
            biased;
            event = group.next() => event.unwrap(),
            () = cluster.sleep(time) => return,
        };
        match event {
            GroupEvent::State(bytes) => {
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                let old: Vec<String> = text.split_whitespace().map(Into::into).collect();
                log.started_with = Some(old.clone());
                log.messages = old;
            }
            GroupEvent::First => log.started_with = Some(Vec::new()),
            GroupEvent::View(view) => log.views.push(view.members.len()),
            GroupEvent::Message { bytes, .. } => {
                log.messages.push(String::from_utf8(bytes.to_vec()).unwrap());
            }
            GroupEvent::Snapshot(wanted) => {
                wanted.give(log.messages.join(" ").into_bytes()).unwrap();
            }
            _ => return,
        }
    }
}

/// The group, with agreed delivery if `agreed`.
fn with_delivery(group: Group, agreed: bool) -> Group {
    if agreed { group.agreed() } else { group }
}

#[test]
fn members_get_all_messages_in_order_and_new_ones_the_state() {
    for (seed, agreed) in (0..8).map(|seed| (seed, [seed & 1, seed & 2, seed & 4].map(|e| e > 0))) {
        talk_join_and_leave(seed, agreed);
    }
}

fn talk_join_and_leave(seed: u64, agreed: [bool; 3]) {
    let cluster = Cluster::seeded(3, seed);
    cluster.block_on(async {
        let (a, b, c) = (cluster.node(0), cluster.node(1), cluster.node(2));
        let mut first = with_delivery(a.group("chat").await.unwrap(), agreed[0]);
        let mut logs = [Log::default(), Log::default(), Log::default()];
        follow(&cluster, &mut first, &mut logs[0], MS * 5).await;
        assert_eq!(logs[0].started_with, Some(vec![]));
        let joins = b.group("chat");
        let ((), second) = tokio::join!(follow(&cluster, &mut first, &mut logs[0], MS * 5), joins);
        let mut second = with_delivery(second.unwrap(), agreed[1]);
        for i in 0..50 {
            first.send(format!("a{i}").into_bytes()).await.unwrap();
            second.send(format!("b{i}").into_bytes()).await.unwrap();
        }
        follow(&cluster, &mut first, &mut logs[0], MS * 5).await;
        follow(&cluster, &mut second, &mut logs[1], MS * 5).await;
        assert_eq!(logs[0].messages.len(), 100);
        assert_eq!(logs[0].messages, logs[1].messages);
        // The third member joins while messages are in flight.
        for i in 50..60 {
            first.send(format!("a{i}").into_bytes()).await.unwrap();
        }
        let joins = c.group("chat");
        let [one, two, three] = &mut logs;
        let (_, _, third) = tokio::join!(
            follow(&cluster, &mut first, one, MS * 5),
            follow(&cluster, &mut second, two, MS * 5),
            joins
        );
        let mut third = with_delivery(third.unwrap(), agreed[2]);
        second.send(b"last".to_vec()).await.unwrap();
        follow(&cluster, &mut third, three, MS * 5).await;
        follow(&cluster, &mut first, one, MS * 5).await;
        assert!(three.started_with.as_ref().unwrap().len() >= 100);
        assert_eq!(three.messages, one.messages);
        assert_eq!(three.messages.len(), 111);
        drop(second);
        follow(&cluster, &mut third, three, MS * 5).await;
        assert_eq!(three.views.last(), Some(&2));
        cluster.crash(0);
        follow(&cluster, &mut third, three, MS * 100).await;
        assert_eq!(three.views.last(), Some(&1));
    });
}

#[test]
fn agreed_delivery_does_not_wait_for_majority() {
    let cluster = Cluster::new(3);
    cluster.delay(MS * 10, MS * 10);
    cluster.block_on(async {
        let mut times = Vec::new();
        for agreed in [false, true] {
            // The leader orders messages; a follower needs one round trip to it.
            let mut group = with_delivery(cluster.node(1).group("chat").await.unwrap(), agreed);
            follow(&cluster, &mut group, &mut Log::default(), MS * 100).await;
            let sent = cluster.now();
            group.send(b"x".to_vec()).await.unwrap();
            while !matches!(group.next().await.unwrap(), GroupEvent::Message { .. }) {}
            times.push(cluster.now() - sent);
        }
        assert!(times[1] < MS * 21 && times[0] >= times[1], "{times:?}");
        let mut leader = cluster.node(0).group("led").await.unwrap().agreed();
        follow(&cluster, &mut leader, &mut Log::default(), MS * 100).await;
        let sent = cluster.now();
        leader.send(b"y".to_vec()).await.unwrap();
        while !matches!(leader.next().await.unwrap(), GroupEvent::Message { .. }) {}
        assert_eq!(cluster.now(), sent, "its own need nobody");
    });
}

/// Continuing members have the same messages in the same order, with agreed delivery or without. An isolated
/// member may have had more.
#[test]
fn agreed_delivery_is_equal_at_continuing_members() {
    for seed in 0..40 {
        let cluster = Cluster::seeded(3, seed);
        cluster.block_on(async {
            let mut groups = Vec::new();
            for i in 0..3 {
                let node = cluster.node(i);
                groups.push(with_delivery(node.group("chat").await.unwrap(), (seed >> i) % 2 == 0));
                for group in &mut groups {
                    follow(&cluster, group, &mut Log::default(), MS * 3).await;
                }
            }
            let lost = (seed % 3) as usize;
            for round in 0..30 {
                for (i, group) in groups.iter().enumerate() {
                    group.send(format!("{i}.{round}").into_bytes()).await.unwrap();
                }
                if round == seed % 30 {
                    if seed % 2 == 0 { cluster.crash(lost) } else { cluster.isolate(lost) }
                }
                cluster.sleep(MS / 4).await;
                if round >= seed % 30 && seed % 2 == 0 {
                    break;
                }
            }
            let mut logs: Vec<Vec<String>> = Vec::new();
            for (_, group) in groups.iter_mut().enumerate().filter(|(i, _)| *i != lost) {
                let mut log = Log::default();
                follow(&cluster, group, &mut log, MS * 3000).await;
                logs.push(log.messages);
            }
            assert_eq!(logs[0], logs[1], "seed {seed}");
            let (i, mut own) = ((lost + 1) % 3, 0);
            for message in logs[0].iter().filter(|m| m.starts_with(&format!("{i}."))) {
                assert_eq!(
                    *message,
                    format!("{i}.{own}"),
                    "seed {seed}: each sender's in order, none twice"
                );
                own += 1;
            }
        });
    }
}

#[test]
fn slow_reader_is_removed_and_may_rejoin() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let mut first = cluster.node(0).group("chat").await.unwrap();
        let mut log = Log::default();
        let node = cluster.node(1);
        let joins = node.group("chat");
        let (_, deaf) = tokio::join!(follow(&cluster, &mut first, &mut log, MS * 5), joins);
        let mut deaf = deaf.unwrap();
        let long = "x".repeat(1 << 20);
        for _ in 0..80 {
            first.send(long.clone().into_bytes()).await.unwrap();
            follow(&cluster, &mut first, &mut log, MS * 5).await;
        }
        assert_eq!(log.messages.len(), 80, "nobody waits for it");
        assert_eq!(log.views.last(), Some(&1), "it is out");
        // It gets the messages until then, then the loss, then nothing.
        let mut heard = Log::default();
        follow(&cluster, &mut deaf, &mut heard, MS * 5).await;
        assert!((60..70).contains(&heard.messages.len()), "{}", heard.messages.len());
        assert!(matches!(deaf.try_next(), None | Some(GroupEvent::Lost(GroupLoss::TooSlow))));
        assert!(deaf.send(b"?".to_vec()).await.is_err());
        drop(deaf);
        log.messages.truncate(1);
        let again = node.group("chat");
        let (_, again) = tokio::join!(follow(&cluster, &mut first, &mut log, MS * 5), again);
        drop(again.unwrap());
    });
}

#[test]
fn crashed_donor_is_replaced() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let mut first = cluster.node(0).group("chat").await.unwrap();
        let mut log = Log::default();
        first.send(b"x".to_vec()).await.unwrap();
        follow(&cluster, &mut first, &mut log, MS * 5).await;
        let joins = cluster.node(1);
        let joins = joins.group("chat");
        let (_, second) = tokio::join!(follow(&cluster, &mut first, &mut log, MS * 5), joins);
        let second = second.unwrap();
        // The most junior member is asked for the state, and has crashed.
        let mut third = cluster.node(2).group("chat").await.unwrap();
        cluster.sleep(MS * 20).await;
        assert!(third.try_next().is_none(), "too early");
        drop(second);
        cluster.crash(1);
        follow(&cluster, &mut first, &mut log, MS * 100).await;
        let mut other = Log::default();
        follow(&cluster, &mut third, &mut other, MS * 5).await;
        assert_eq!(other.messages, ["x"]);
    });
}

#[test]
fn silent_donor_is_replaced() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let mut first = cluster.node(0).group("chat").await.unwrap();
        let mut log = Log::default();
        let joins = cluster.node(1);
        let joins = joins.group("chat");
        let (_, silent) = tokio::join!(follow(&cluster, &mut first, &mut log, MS * 5), joins);
        let silent = silent.unwrap();
        // The most junior member is asked for the state, and does not read.
        let mut third = cluster.node(2).group("chat").await.unwrap();
        cluster.sleep(MS * 20).await;
        assert!(third.try_next().is_none(), "too early");
        first.send(b"x".to_vec()).await.unwrap();
        let mut other = Log::default();
        // It gets a state within four seconds.
        tokio::join!(
            follow(&cluster, &mut first, &mut log, Duration::from_secs(10)),
            follow(&cluster, &mut third, &mut other, Duration::from_secs(4)),
        );
        assert_eq!(other.messages, ["x"]);
        // A late state of the first donor has no effect.
        let mut silent = silent;
        let mut late = Log { messages: vec!["late".into()], ..Log::default() };
        follow(&cluster, &mut silent, &mut late, MS * 5).await;
        third.send(b"y".to_vec()).await.unwrap();
        follow(&cluster, &mut third, &mut other, MS * 5).await;
        assert_eq!(other.messages, ["x", "y"]);
    });
}

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

/// The first event of `newcomer`, while each member answers requests for its state.
async fn first_event(
    cluster: &Cluster,
    newcomer: &mut Group,
    members: &mut [Group],
    mut answer: impl FnMut(usize, Snapshot),
) -> GroupEvent {
    loop {
        for (i, member) in members.iter_mut().enumerate() {
            while let Some(event) = member.try_next() {
                if let GroupEvent::Snapshot(wanted) = event {
                    answer(i, wanted);
                }
            }
        }
        if let Some(event) = newcomer.try_next() {
            return event;
        }
        cluster.sleep(MS).await;
    }
}

/// Two members with a state, and one that wants it.
async fn two_members_and_newcomer(cluster: &Cluster) -> ([Group; 2], Group) {
    let mut first = cluster.node(0).group("g").await.unwrap();
    assert!(matches!(first.next().await, Some(GroupEvent::First)));
    let mut second = cluster.node(1).group("g").await.unwrap();
    let members = std::slice::from_mut(&mut first);
    let give = |_, wanted: Snapshot| wanted.give(b"old").unwrap();
    let event = first_event(cluster, &mut second, members, give).await;
    assert!(matches!(event, GroupEvent::State(bytes) if *bytes == *b"old"));
    let newcomer = cluster.node(2).group("g").await.unwrap();
    ([first, second], newcomer)
}

#[test]
fn declined_state_is_asked_from_next_member_at_once() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (mut members, mut newcomer) = two_members_and_newcomer(&cluster).await;
        let start = cluster.now();
        let mut asked = Vec::new();
        let state = first_event(&cluster, &mut newcomer, &mut members, |i, wanted| {
            asked.push(i);
            match i {
                0 => wanted.give(b"of the first").unwrap(),
                // A panic of the member's code declines, too.
                _ => drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let _wanted = wanted;
                    std::panic::resume_unwind(Box::new("no state here"));
                }))),
            }
        });
        let state = state.await;
        assert!(matches!(&state, GroupEvent::State(s) if **s == *b"of the first"), "{state:?}");
        assert_eq!(asked, [1, 0]);
        assert!(cluster.now() - start < MS * 20, "it does not wait for a silent donor");
    });
}

#[test]
fn newcomer_learns_that_all_members_decline() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (mut members, mut newcomer) = two_members_and_newcomer(&cluster).await;
        let mut asked = Vec::new();
        let decline = |i, wanted: Snapshot| {
            asked.push(i);
            wanted.decline();
        };
        let event = first_event(&cluster, &mut newcomer, &mut members, decline).await;
        assert!(matches!(event, GroupEvent::NoState), "{event:?}");
        assert_eq!(asked, [1, 0], "each once");
        // It goes on: it gets messages, and gives its own state to others.
        newcomer.send(b"hello".to_vec()).await.unwrap();
        while !matches!(newcomer.next().await.unwrap(), GroupEvent::Message { .. }) {}
    });
}

#[test]
fn long_state_travels_in_pieces() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let (mut members, mut newcomer) = two_members_and_newcomer(&cluster).await;
        let state: Vec<u8> = (0..(3 << 20) + 7).map(|i| (i % 251) as u8).collect();
        let give = |_, wanted: Snapshot| wanted.give(&state).unwrap();
        let event = first_event(&cluster, &mut newcomer, &mut members, give).await;
        assert!(matches!(event, GroupEvent::State(bytes) if *bytes == *state));
    });
}

#[test]
fn member_learns_why_it_lost_its_group() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let mut group = cluster.node(0).group("g").await.unwrap();
        let session = cluster.node(0).session("s");
        let mut other = session.group("h").await.unwrap();
        let why = async |group: &mut Group| loop {
            match group.next().await.unwrap() {
                GroupEvent::Lost(why) => break why,
                GroupEvent::View(view) => assert!(view.generation > 0),
                _ => {}
            }
        };
        session.close();
        assert_eq!(why(&mut other).await, GroupLoss::Node(Loss::Closed));
        cluster.isolate(0);
        cluster.sleep(MS * 3000).await;
        cluster.heal();
        assert_eq!(why(&mut group).await, GroupLoss::Node(Loss::Excluded));
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
