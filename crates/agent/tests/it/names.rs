//! Many names in one session, without processes.

use std::time::{Duration, Instant};

use konklave_agent::client::Client;
use konklave_agent::protocol::{Answer, ClaimKind, Reply, Request};

use crate::cluster::Cluster;

#[test]
fn ten_thousand_names_are_held_at_once_and_free_when_the_session_ends() {
    const NAMES: usize = 10_000;
    // Long enough that a busy machine loses nothing: this is about names, not about time.
    let cluster = Cluster::with(3, &["--lease", "10", "--silence", "12"]);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let start = Instant::now();
        let ttl = Duration::from_secs(60);
        // Quotes are written twice as long.
        let many = "\"".repeat(200);
        let mut client = Client::connect(&cluster.socket(0), &many, ttl).await.expect("connected");
        let (mut granted, mut asked) = (0, 0);
        while granted < NAMES {
            // Some at a time: neither side has to keep them all on the way.
            while asked < NAMES && asked < granted + 500 {
                let name = format!("name-{asked}");
                let request =
                    Request::Acquire { name, claim: ClaimKind::Exclusive, wait: None, lease: None };
                client.send(request).await.expect("sent");
                asked += 1;
            }
            match client.next().await.expect("an answer") {
                Reply::Answer { answer: Answer::Granted { .. }, .. } => granted += 1,
                other => panic!("{other:?}"),
            }
        }
        eprintln!("{NAMES} names in {:?}", start.elapsed());
        let status = client.call(Request::Status { prefix: "name-".into(), limit: 10 }).await;
        match status.expect("a status") {
            Answer::Status(status) => assert_eq!(status.locks.len() + status.more, NAMES),
            other => panic!("{other:?}"),
        }
        // All names do not fit into an answer: the error comes at once, and one name can still be shown.
        let (start, limit) = (Instant::now(), NAMES);
        let all = client.call(Request::Status { prefix: String::new(), limit }).await;
        assert!(all.is_err_and(|why| why.to_string().contains("ask for fewer")));
        assert!(start.elapsed() < Duration::from_secs(5));
        let who = cluster.ask(1, &["who", "name-1"]);
        assert!(who.contains("name-1 ") && !who.contains("name-10"), "{who}");
        drop(client);
        let mut other = Client::connect(&cluster.socket(1), "after", ttl).await.expect("connected");
        for i in [0, NAMES / 2, NAMES - 1] {
            let request = Request::Acquire {
                name: format!("name-{i}"),
                claim: ClaimKind::Exclusive,
                wait: Some(5000),
                lease: None,
            };
            let answer = other.call(request).await.expect("an answer");
            assert!(matches!(answer, Answer::Granted { .. }), "{answer:?}");
        }
    });
}
