//! Groups of one: founded by an operator, or left over, and joined by others later.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use konklave::testing::Cluster;
use konklave::{Error, Guard, Mutex, State, Timings};

const MS: Duration = Duration::from_millis(1);
const SOON: Duration = Duration::from_secs(1);
const ALGORITHMS: [Mutex; 3] = [Mutex::Table, Mutex::NaimiTrehel, Mutex::RicartAgrawala];

type Asked = Pin<Box<dyn Future<Output = Result<Guard, Error>>>>;

/// Asks, and does not wait for the answer.
async fn ask(wish: impl Future<Output = Result<Guard, Error>> + 'static) -> Asked {
    let mut asked: Asked = Box::pin(wish);
    assert!(poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx).is_pending())).await);
    asked
}

/// Cut off as the one who gives places and as one who asks for them.
fn cut_off(test: impl AsyncFn(&Cluster, usize, &str)) {
    for mutex in ALGORITHMS {
        for i in [0, 2] {
            let cluster = Cluster::served_by(mutex, 3, 0, Timings::default());
            cluster.block_on(test(&cluster, i, &format!("{mutex}, {i}")));
        }
    }
}

#[test]
fn what_was_let_go_while_cut_off_is_free_in_a_group_founded_alone() {
    cut_off(async |cluster, i, which| {
        let node = cluster.node(i);
        let lost = node.lock("x").acquire().await.unwrap();
        let led = node.campaign("boss").await.unwrap();
        cluster.isolate(i);
        cluster.sleep(5000 * MS).await;
        assert_eq!((lost.state(), led.state()), (State::Lost, State::Lost), "{which}");
        node.found_alone();
        let held = node.lock("x").timeout(SOON).acquire().await;
        assert!(held.is_ok_and(|held| held.token() > lost.token()), "{which}");
        assert!(node.campaign("boss").timeout(SOON).await.is_ok(), "{which}");
    });
}

#[test]
fn what_was_asked_while_cut_off_is_granted_in_a_group_founded_alone() {
    cut_off(async |cluster, i, which| {
        let node = cluster.node(i);
        cluster.isolate(i);
        let mut asked = Vec::new();
        for name in ["a", "b", "c", "d"] {
            asked.push(ask(node.lock(name).timeout(60 * SOON).acquire()).await);
            asked.push(ask(node.semaphore(name, 1).timeout(60 * SOON).acquire()).await);
        }
        cluster.sleep(5000 * MS).await;
        node.found_alone();
        let fifth = node.semaphore("e", 1).timeout(SOON).acquire().await;
        assert!(fifth.is_ok(), "{which}: {fifth:?}");
        assert!(node.lock("e").timeout(SOON).acquire().await.is_ok(), "{which}");
        for asked in asked {
            let granted = asked.await;
            assert!(granted.is_ok(), "{which}: {granted:?}");
        }
    });
}
