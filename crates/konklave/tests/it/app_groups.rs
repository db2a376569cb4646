//! Groups of the application: order of messages, hand-over of the state, and loss of a membership.

use std::time::Duration;

use konklave::testing::Cluster;
use konklave::{Group, GroupEvent, GroupLoss, Loss, Snapshot};

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
