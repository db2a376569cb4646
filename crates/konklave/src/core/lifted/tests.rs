use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::builder::Timings;
use crate::error::Error;
use crate::mutex::Mutex;
use crate::testing::Cluster;

const MS: Duration = Duration::from_millis(1);

/// Names that nobody uses any more are forgotten by a new view, and only then is there one.
#[test]
fn a_new_view_makes_room_when_many_names_are_idle() {
    let cluster = Cluster::served_by(Mutex::SuzukiKasami, 3, 0, Timings::default());
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
    let cluster = Cluster::served_by(Mutex::SuzukiKasami, 3, 0, Timings::default());
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
    let cluster = Cluster::served_by(Mutex::NaimiTrehel, 1, 0, Timings::default());
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
    let cluster = Cluster::served_by(Mutex::NaimiTrehel, 3, 0, Timings::default());
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
