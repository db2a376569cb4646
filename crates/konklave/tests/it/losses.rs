//! The reason of a loss, in the guard and in events.

use std::time::Duration;

use konklave::testing::Cluster;
use konklave::{Event, Events, LockAlgorithm, Loss};

const LONG: Duration = Duration::from_secs(10);

/// The reason in the event for `name`.
async fn told(events: &mut Events, name: &str) -> Loss {
    loop {
        match events.next().await {
            Some(Event::Lost { name: lost, why }) if lost == name => return why,
            Some(_) => {}
            None => panic!("nobody tells"),
        }
    }
}

fn clusters() -> [Cluster; 2] {
    let lifted =
        Cluster::with_lock_algorithm(LockAlgorithm::NaimiTrehel, 3, 7, konklave::Timings::fast());
    [Cluster::new(3), lifted]
}

#[test]
fn revocation_is_reported() {
    for cluster in clusters() {
        cluster.block_on(async {
            let mut events = cluster.node(0).events();
            let guard = cluster.node(0).lock("a").acquire().await.unwrap();
            assert_eq!(guard.loss(), None);
            cluster.node(1).revoke("a", None).await.unwrap();
            guard.lost().await;
            assert_eq!(guard.loss(), Some(Loss::Revoked));
            assert_eq!(told(&mut events, "a").await, Loss::Revoked);
        });
    }
}

#[test]
fn lost_lease_is_reported() {
    for cluster in clusters() {
        cluster.block_on(async {
            let mut events = cluster.node(2).events();
            let guard = cluster.node(2).lock("a").acquire().await.unwrap();
            cluster.isolate(2);
            cluster.sleep(LONG).await;
            assert_eq!(guard.loss(), Some(Loss::Lease));
            assert_eq!(told(&mut events, "a").await, Loss::Lease);
        });
    }
}

#[test]
fn end_of_session_and_leave_are_reported() {
    for cluster in clusters() {
        cluster.block_on(async {
            let session = cluster.node(1).session("a client");
            let guard = session.lock("a").acquire().await.unwrap();
            session.close();
            assert_eq!(guard.loss(), Some(Loss::Closed));
            let leader = cluster.node(1).campaign("boss").await.unwrap();
            cluster.node(1).leave().await.unwrap();
            assert_eq!(leader.loss(), Some(Loss::Left));
        });
    }
}

#[test]
fn each_loss_has_its_text() {
    let all =
        [Loss::Lease, Loss::Revoked, Loss::Excluded, Loss::Dissolved, Loss::Left, Loss::Closed];
    for why in all {
        let event = Event::Lost { name: "a".into(), why };
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
        assert!(why.to_string().len() > 10);
    }
}
