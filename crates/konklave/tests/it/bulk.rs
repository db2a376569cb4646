//! Large messages, while some members do not receive them.

use std::time::Duration;

use konklave::testing::Cluster;
use konklave::{Group, GroupEvent, MAX_MESSAGE};

const MS: Duration = Duration::from_millis(1);

/// Sends `count` messages of the greatest length, and receives until it has `all` messages of all members. Returns
/// the first byte of each.
async fn send_and_receive(
    cluster: &Cluster,
    group: &mut Group,
    of: u8,
    count: usize,
    all: usize,
) -> Vec<u8> {
    let message = vec![of; MAX_MESSAGE];
    let (mut sent, mut heard) = (0, Vec::new());
    while sent < count || heard.len() < all {
        if sent < count {
            tokio::select! {
                biased;
                done = group.send(message.clone()) => {
                    done.unwrap();
                    sent += 1;
                }
                () = cluster.sleep(MS) => {}
            }
        } else {
            cluster.sleep(MS).await;
        }
        while let Some(event) = group.try_next() {
            match event {
                GroupEvent::Message { bytes, .. } => {
                    assert_eq!(bytes.len(), MAX_MESSAGE);
                    // Skip messages that were sent while others joined.
                    if (bytes[0] == 0) == (of == 0) {
                        heard.push(bytes[0]);
                    }
                }
                GroupEvent::Snapshot(wanted) => wanted.give(Vec::new()).unwrap(),
                GroupEvent::Lost(why) => panic!("{of} was lost after {}: {why}", heard.len()),
                _ => {}
            }
        }
    }
    heard
}

/// The first `count` nodes of the cluster, as members of one group.
async fn some(cluster: &Cluster, count: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for i in 0..count {
        let node = cluster.node(i);
        let joins = node.group("bulk");
        match groups.first_mut() {
            None => groups.push(joins.await.unwrap()),
            Some(first) => {
                let (_, joined) = tokio::join!(send_and_receive(cluster, first, 0, 1, 1), joins);
                groups.push(joined.unwrap());
            }
        }
    }
    groups
}

/// All other members keep what an isolated one lacks, and exchange it when the view ends. Hazard: if that
/// became longer than a frame, the view would never end.
#[test]
fn view_ends_although_isolated_member_lacks_many_bytes() {
    let cluster = Cluster::new(5);
    cluster.block_on(async {
        let mut groups = some(&cluster, 4).await;
        let [a, b, c, d] = &mut groups[..] else { panic!("four") };
        cluster.isolate(4);
        let (a, b, c, d) = tokio::join!(
            send_and_receive(&cluster, a, 1, 40, 160),
            send_and_receive(&cluster, b, 2, 40, 160),
            send_and_receive(&cluster, c, 3, 40, 160),
            send_and_receive(&cluster, d, 4, 40, 160)
        );
        assert!(a == b && b == c && c == d, "in one order");
        cluster.sleep(Duration::from_secs(3)).await;
        assert_eq!(cluster.node(0).status().members.len(), 4);
    });
}

/// Two members disagree on what all have: one may discard what the other keeps. Each accepts no more than it
/// can send when the view ends.
#[test]
fn view_ends_although_members_disagree_on_what_all_have() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let mut groups = some(&cluster, 2).await;
        let [first, second] = &mut groups[..] else { panic!("two") };
        cluster.cut(2, 1);
        let (one, other) = tokio::join!(
            send_and_receive(&cluster, first, 1, 160, 160),
            send_and_receive(&cluster, second, 2, 0, 160)
        );
        assert!(one == other, "in one order");
        cluster.sleep(Duration::from_secs(3)).await;
        assert_eq!(cluster.node(0).status().members.len(), 2);
    });
}

#[test]
fn isolated_sender_waits_before_queue_grows() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let group = cluster.node(0).group("bulk").await.unwrap();
        cluster.isolate(0);
        let sends = async {
            for sent in 0..100 {
                tokio::select! {
                    biased;
                    done = group.send(vec![0; MAX_MESSAGE]) => done.unwrap(),
                    () = cluster.sleep(MS) => return sent,
                }
            }
            100
        };
        let sent = sends.await;
        assert!((4..30).contains(&sent), "{sent}");
    });
}

/// A follower learns at once that another follower has its large messages: it may send no more before.
#[test]
fn large_messages_do_not_wait_for_heartbeats() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let mut groups = some(&cluster, 2).await;
        let [first, second] = &mut groups[..] else { panic!("two") };
        let begun = cluster.now();
        tokio::join!(
            send_and_receive(&cluster, first, 1, 0, 40),
            send_and_receive(&cluster, second, 2, 40, 40)
        );
        let took = cluster.now() - begun;
        assert!(took < MS * 200, "{took:?}");
    });
}
