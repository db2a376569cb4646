//! Shutdown and failure of requests: no request waits for ever, and none reports success wrongly.

use std::time::Duration;

use konklave::testing::Cluster;
use konklave::{Error, GroupEvent, Loss, MAX_STATE, Node, Timings};
use tokio::time::timeout;

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(20);

#[test]
fn isolated_member_leaves_after_its_lease() {
    for heals in [false, true] {
        let cluster = Cluster::new(3);
        let node = cluster.node(0);
        let held = cluster.block_on(node.lock("a").acquire()).unwrap();
        cluster.isolate(0);
        let start = cluster.now();
        if heals {
            // The others exclude it, and it learns of that.
            let healer = cluster.sleep(MS * 300);
            cluster.block_on(healer);
            cluster.heal();
        }
        cluster.block_on(node.leave()).unwrap();
        assert!(cluster.now() - start < MS * 2000, "{:?}", cluster.now() - start);
        assert_eq!(held.loss(), Some(Loss::Left));
        assert!(!node.status().member);
        // The others continue.
        cluster.heal();
        drop(cluster.block_on(cluster.node(1).lock("a").timeout(MS * 5000).acquire()).unwrap());
    }
}

#[test]
fn waiting_requests_end_when_node_leaves_or_crashes() {
    for dies in [false, true] {
        let cluster = Cluster::new(3);
        let (node, other) = (cluster.node(0), cluster.node(1));
        cluster.block_on(async {
            let _held = other.lock("a").acquire().await.unwrap();
            let _leads = other.campaign("c").await.unwrap();
            let (mut events, mut leaders) = (node.events(), node.observe("c").unwrap());
            let barrier = node.barrier("b", 2);
            let ends = async {
                cluster.sleep(MS * 50).await;
                if dies { node.kill() } else { node.leave().await.unwrap() }
            };
            let campaign = async { node.campaign("c").await };
            let (lock, timed, campaign, meeting, ()) = tokio::join!(
                node.lock("a").acquire(),
                node.lock("a").timeout(MS * 60_000).acquire(),
                campaign,
                barrier.wait(),
                ends,
            );
            assert!(matches!(lock, Err(Error::Left)), "{lock:?}");
            assert!(matches!(timed, Err(Error::Left)), "{timed:?}");
            assert!(matches!(campaign, Err(Error::Left)), "{campaign:?}");
            assert!(matches!(meeting, Err(Error::Left | Error::Lost(_))), "{meeting:?}");
            while leaders.next().await.is_some() {}
            while events.next().await.is_some() {}
            assert!(matches!(node.group("g").await, Err(Error::Left)));
            assert!(matches!(node.revoke("a", None).await, Err(Error::Left)));
        });
    }
}

/// A node whose other founder never starts.
async fn alone(port: &str) -> Node {
    crate::fast().seeds([port, "127.0.0.1:1"]).listen(port).start().await.unwrap()
}

#[tokio::test]
async fn waiting_requests_end_without_group() {
    for dies in [false, true] {
        let node = alone("127.0.0.1:0").await;
        let ends = async {
            tokio::time::sleep(MS * 50).await;
            if dies { node.kill() } else { node.leave().await.unwrap() }
        };
        let barrier = node.barrier("b", 2);
        let all =
            async { tokio::join!(node.lock("a").acquire(), barrier.wait(), node.group("g"), ends) };
        let (lock, meeting, group, ()) = timeout(LONG, all).await.expect("nobody waits");
        assert!(matches!(lock, Err(Error::Left)), "{lock:?}");
        assert!(matches!(meeting, Err(Error::Left)), "{meeting:?}");
        assert!(matches!(group, Err(Error::Left)), "{group:?}");
    }
}

#[test]
fn release_of_lost_grant_fails() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let guard = cluster.node(0).lock("a").acquire().await.unwrap();
        let leads = cluster.node(0).campaign("c").await.unwrap();
        cluster.node(1).revoke("a", None).await.unwrap();
        cluster.node(1).step_down("c").await.unwrap();
        guard.lost().await;
        leads.lost().await;
        assert!(matches!(guard.release().await, Err(Error::Lost(_))));
        assert!(matches!(leads.resign().await, Err(Error::Lost(_))));
        // No request waits for it.
        cluster
            .node(1)
            .lock("a")
            .timeout(MS * 100)
            .acquire()
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    });
}

#[test]
fn node_ends_with_its_runtime() {
    let runtime = || {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        threads.worker_threads(1).enable_all().build().unwrap()
    };
    let (ours, theirs) = (runtime(), runtime());
    let node = theirs.block_on(async {
        let node = crate::fast().found_alone().start().await.unwrap();
        node.ready().await.unwrap();
        node
    });
    let guard = ours.block_on(node.lock("a").acquire()).unwrap();
    let waiting = ours.spawn({
        let node = node.clone();
        async move { node.lock("a").acquire().await.map(drop) }
    });
    let told = ours.spawn(guard.watch());
    theirs.shutdown_timeout(LONG);
    ours.block_on(async {
        timeout(LONG, told).await.expect("it is told").unwrap();
        assert!(matches!(guard.release().await, Err(Error::Lost(_))));
        let waited = timeout(LONG, waiting).await.expect("nobody waits").unwrap();
        assert!(matches!(waited, Err(Error::Left)), "{waited:?}");
        timeout(LONG, node.leave()).await.expect("it has left").unwrap();
    });
}

/// The same before any of the node's tasks has run.
#[test]
fn node_ends_with_runtime_that_stops_at_once() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let theirs = runtime();
    let node = theirs.block_on(crate::fast().found_alone().start()).unwrap();
    drop(theirs);
    runtime().block_on(async {
        let waited = timeout(LONG, node.lock("a").acquire()).await.expect("nobody waits");
        assert!(matches!(waited, Err(Error::Left)), "{:?}", waited.err());
    });
}

#[tokio::test]
async fn any_timeout_is_accepted() {
    let timings = Timings { keep: Duration::MAX, ..Timings::fast() };
    let node = crate::fast().found_alone().timings(timings).join().await.unwrap();
    node.lock("a").timeout(Duration::MAX).acquire().await.unwrap().release().await.unwrap();
    let both = node.lock_all(["a", "b"]).timeout(Duration::MAX).acquire().await.unwrap();
    both.release().await.unwrap();
    node.campaign("c").timeout(Duration::MAX).await.unwrap().resign().await.unwrap();
    tokio::time::sleep(MS * 250).await;
    node.lock("a").acquire().await.unwrap().release().await.unwrap();
    let ever = Duration::MAX;
    for timings in [
        Timings { lease: ever, ..Timings::fast() },
        Timings { silence: ever, ..Timings::fast() },
        Timings { heartbeat: ever, ..Timings::fast() },
        Timings { unit: ever, ..Timings::fast() },
    ] {
        let refused = crate::fast().timings(timings).start().await;
        assert!(matches!(refused, Err(Error::Config(_))), "{refused:?}");
    }
    assert!(matches!(crate::fast().founders(0).start().await, Err(Error::Config(_))));
}

#[test]
fn new_member_is_in_group_before_it_has_state() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let mut first = cluster.node(0).group("g").await.unwrap();
        // The first member, which is asked for its state, does not read its events.
        let mut second = cluster.node(1).group("g").await.unwrap();
        second.send(&b"early"[..]).await.unwrap();
        cluster.sleep(MS * 500).await;
        assert!(second.try_next().is_none(), "what comes waits for the state");
        let mut seen = Vec::new();
        while let Some(event) = first.try_next() {
            match event {
                GroupEvent::Snapshot(wanted) => wanted.give(&b"agreed"[..]).unwrap(),
                GroupEvent::Message { bytes, .. } => seen.push(bytes),
                _ => {}
            }
        }
        assert_eq!(seen, [(&b"early"[..]).into()]);
        let state = second.next().await;
        assert!(matches!(&state, Some(GroupEvent::State(s)) if **s == *b"agreed"), "{state:?}");
        loop {
            match second.next().await.unwrap() {
                GroupEvent::View(view) => {
                    assert!(view.members.contains(second.me()), "{view:?} {:?}", second.me());
                }
                GroupEvent::Message { bytes, .. } => break assert_eq!(*bytes, *b"early"),
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn state_that_is_too_long_is_not_given() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let mut first = cluster.node(0).group("g").await.unwrap();
        let mut second = cluster.node(1).group("g").await.unwrap();
        loop {
            if let Some(GroupEvent::Snapshot(wanted)) = first.next().await {
                let given = wanted.give(vec![0; MAX_STATE + 1]);
                break assert!(matches!(given, Err(Error::TooLong { .. })), "{given:?}");
            }
        }
        let event = second.next().await;
        assert!(matches!(event, Some(GroupEvent::NoState)), "{event:?}");
    });
}

#[test]
fn closing_session_fails_its_waiting_requests() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let session = cluster.node(0).session("s");
        let barrier = session.barrier("b", 2);
        let closes = async {
            cluster.sleep(MS * 50).await;
            session.close();
        };
        let (waited, ()) = tokio::join!(barrier.wait(), closes);
        assert!(matches!(waited, Err(Error::Closed)), "{waited:?}");
        let node = cluster.node(0);
        let session = node.session("t");
        let held = session.lock("a").acquire().await.unwrap();
        session.close();
        assert_eq!(held.loss(), Some(Loss::Closed));
        node.lock("a").acquire().await.unwrap().release().await.unwrap();
        // A barrier has a fixed number of parties.
        let (three, two) = (node.barrier("n", 3), node.barrier("n", 2));
        let (mut three, two) = (Box::pin(three.wait()), two.wait());
        tokio::select! {
            biased;
            _ = &mut three => panic!("it waits for three"),
            wrong = async { cluster.sleep(MS * 50).await; two.await } => {
                let text = wrong.unwrap_err().to_string();
                assert_eq!(text, "n is a barrier for 3 parties, not 2");
            }
        }
    });
}

#[test]
fn each_leader_change_is_observed_once() {
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let mut leaders = cluster.node(2).observe("c").unwrap();
        let mut told = vec![leaders.next().await.unwrap()];
        let first = cluster.node(0).campaign("c").await.unwrap();
        let second = cluster.node(1);
        let second = async { second.campaign("c").await.unwrap() };
        let dies = async {
            cluster.sleep(MS * 100).await;
            cluster.crash(0);
        };
        let (second, ()) = tokio::join!(second, dies);
        cluster.sleep(MS * 500).await;
        second.resign().await.unwrap();
        cluster.sleep(MS * 500).await;
        drop(first);
        cluster.crash(2);
        while let Some(leader) = leaders.next().await {
            told.push(leader);
        }
        assert!(told.windows(2).all(|pair| pair[0] != pair[1]), "{told:?}");
        let nodes: Vec<Option<u32>> = told.iter().map(|l| l.as_ref().map(|l| l.node)).collect();
        assert_eq!(nodes, [None, Some(0), Some(1), None]);
    });
}

#[tokio::test]
async fn leave_closes_port_and_data_directory() {
    let folder = std::env::temp_dir().join(format!("konklave-again-{}", std::process::id()));
    let mut port = "127.0.0.1:0".to_owned();
    for _ in 0..5 {
        let node = crate::fast().listen(&port).data_dir(&folder).found_alone();
        let node = node.join().await.expect("port and folder are free");
        port = node.address().unwrap().to_string();
        node.leave().await.unwrap();
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[cfg(feature = "nats")]
#[test]
fn debug_output_hides_passwords() {
    let builder = crate::fast().nats("nats://user:hush@a:4222,hush2@b/p").pre_shared_key("hush3");
    let shown = format!("{builder:?}");
    assert!(!shown.contains("hush") && shown.contains("nats://…@a:4222"), "{shown}");
}
