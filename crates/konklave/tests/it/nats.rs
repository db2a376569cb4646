//! Nodes connected over NATS, with a server for the test.

use std::time::{Duration, Instant};

use bytes::Bytes;
use konklave::{Builder, Error, Event, Group, GroupEvent, Handover, Node, State, Timings};
use tokio::time::{sleep, timeout};

use crate::nats_server::NatsServer;
use crate::refusal;

const LONG: Duration = Duration::from_secs(30);
const KEY: [u8; 32] = [7; 32];

fn builder(url: &str, i: usize) -> Builder {
    crate::fast().name(format!("n{i}")).nats(url).founders(3).pre_shared_key(KEY)
}

async fn ready(nodes: &[Node]) {
    for node in nodes {
        let ready = timeout(LONG, node.ready()).await;
        ready.unwrap_or_else(|_| panic!("{node:?}: {:?}", node.status())).unwrap();
    }
}

async fn group(urls: &[String]) -> Vec<Node> {
    let mut nodes = Vec::new();
    for i in 0..3 {
        nodes.push(builder(&urls[i % urls.len()], i).start().await.unwrap());
    }
    ready(&nodes).await;
    nodes
}

/// Each node in turn gets the lock. A grant that comes before a majority answers again, or during a pause of
/// the machine, is lost; then the node tries again.
async fn lock_around(nodes: &[Node]) {
    let (mut last, start) = (None, Instant::now());
    for round in 0..20 {
        loop {
            assert!(start.elapsed() < LONG, "never safe: {:?}", nodes[0].status());
            let lock = nodes[round % nodes.len()].lock("a");
            let guard = timeout(LONG, lock.acquire()).await.unwrap().unwrap();
            assert!(Some(guard.token()) > last);
            last = Some(guard.token());
            if guard.state() == State::Held {
                guard.release().await.unwrap();
                break;
            }
            drop(guard);
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// An application group with a member at each node.
async fn join_all(nodes: &[Node], name: &str) -> Vec<Group> {
    let (mut groups, mut begun): (Vec<Group>, Vec<bool>) = (Vec::new(), Vec::new());
    // Each member has the state once it has read its first event. Requests for the state are declined.
    let mut read = |groups: &mut Vec<Group>| {
        begun.resize(groups.len(), false);
        for (group, begun) in groups.iter_mut().zip(&mut begun) {
            while group.try_next().is_some() {
                *begun = true;
            }
        }
        begun.iter().all(|begun| *begun)
    };
    for node in nodes {
        let mut join = std::pin::pin!(timeout(LONG, node.group(name)));
        let joined = loop {
            tokio::select! {
                joined = &mut join => break joined.unwrap().unwrap(),
                () = sleep(Duration::from_millis(5)) => {
                    read(&mut groups);
                }
            }
        };
        groups.push(joined);
    }
    while !read(&mut groups) {
        sleep(Duration::from_millis(5)).await;
    }
    groups
}

async fn message(group: &mut Group) -> Vec<u8> {
    loop {
        if let GroupEvent::Message { bytes, .. } =
            timeout(LONG, group.next()).await.unwrap().unwrap()
        {
            return bytes.to_vec();
        }
    }
}

/// Sends messages to a group of all nodes, some longer than a NATS message: each member receives them in order.
async fn messages_arrive_in_order(nodes: &[Node]) {
    let mut groups = join_all(nodes, "chat").await;
    let mut wanted = Vec::new();
    for i in 0..40_usize {
        let text = vec![i as u8; if i % 10 == 9 { 900_000 } else { 10 }];
        timeout(LONG, groups[0].send(text.clone())).await.unwrap().unwrap();
        wanted.push(text);
    }
    for group in &mut groups {
        let mut got = Vec::new();
        while got.len() < wanted.len() {
            got.push(message(group).await);
        }
        assert!(got == wanted, "in order, each once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_form_group_over_nats() {
    let Some(server) = NatsServer::new() else { return };
    let start = Instant::now();
    let mut nodes = group(&[server.url()]).await;
    eprintln!("a group over NATS after {:?}", start.elapsed());
    lock_around(&nodes).await;
    messages_arrive_in_order(&nodes).await;
    // A fourth node joins without a number of founders, and leaves.
    let fourth = crate::fast().name("n3").nats(server.url()).pre_shared_key(KEY);
    nodes.push(timeout(LONG, fourth.join()).await.unwrap().unwrap());
    lock_around(&nodes).await;
    assert_eq!(nodes[1].status().members.len(), 4);
    timeout(LONG, nodes.pop().unwrap().leave()).await.unwrap().unwrap();
    lock_around(&nodes).await;
    assert_eq!(nodes[1].status().members.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn linked_servers_carry_one_group() {
    let Some(servers) = NatsServer::many(2) else { return };
    let nodes = group(&[servers[0].url(), servers[1].url()]).await;
    lock_around(&nodes).await;
    messages_arrive_in_order(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_servers_is_enough() {
    let Some(mut servers) = NatsServer::many(2) else { return };
    let url = format!("{},{}", servers[0].url(), servers[1].url());
    let nodes = group(&[url]).await;
    lock_around(&nodes).await;
    servers[0].kill();
    lock_around(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashed_node_is_noticed_within_about_a_heartbeat() {
    let Some(server) = NatsServer::new() else { return };
    let mut nodes = group(&[server.url()]).await;
    // Only after a while does the server's "no responders" count.
    sleep(Timings::fast().silence + Duration::from_millis(300)).await;
    let held = nodes[0].lock("a").handover(Handover::Fast).acquire().await.unwrap();
    let token = held.token();
    let gone = nodes.remove(0);
    let start = Instant::now();
    std::mem::forget(held);
    gone.kill();
    let next = timeout(LONG, nodes[0].lock("a").handover(Handover::Fast).acquire());
    let next = next.await.unwrap().unwrap();
    eprintln!("the next holder after {:?}", start.elapsed());
    assert!(next.token() > token);
    assert!(start.elapsed() < Timings::fast().silence, "{:?}", start.elapsed());
    // It restarts as another process.
    let again = builder(&server.url(), 0).start().await.unwrap();
    timeout(LONG, again.ready()).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn group_survives_restart_of_server() {
    let Some(mut server) = NatsServer::new() else { return };
    // Longer than the outage of the server: no member is excluded, and no message is lost or delivered twice.
    let timings = Timings {
        silence: Duration::from_secs(20),
        lease: Duration::from_secs(19),
        ..Timings::fast()
    };
    let mut nodes = Vec::new();
    for i in 0..3 {
        nodes.push(builder(&server.url(), i).timings(timings).start().await.unwrap());
    }
    ready(&nodes).await;
    let view = nodes[0].status().view;
    let held = nodes[0].lock("a").acquire().await.unwrap();
    let mut members = join_all(&nodes, "g").await;
    for round in 0..3_u8 {
        server.kill();
        let sent = members[1].send(vec![round]);
        // It is sent when the server is back.
        let (sent, ()) = tokio::join!(timeout(LONG, sent), async {
            sleep(Duration::from_millis(700)).await;
            server.start();
        });
        sent.unwrap().unwrap();
        for member in &mut members {
            assert_eq!(message(member).await, [round]);
        }
    }
    assert_eq!(held.state(), State::Held);
    assert_eq!(nodes[0].status().view, view, "nobody was excluded");
    assert_eq!(nodes[0].status().network, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_lock_survives_restart_of_server() {
    let Some(mut server) = NatsServer::new() else { return };
    let nodes = group(&[server.url()]).await;
    let held = nodes[0].lock("a").acquire().await.unwrap();
    let mut survived = 0;
    for _ in 0..3 {
        let start = Instant::now();
        server.kill();
        sleep(Duration::from_millis(350)).await;
        server.start();
        let away = start.elapsed();
        // A lease without the server, then a lease with it.
        sleep(Timings::fast().lease * 2).await;
        if away > Duration::from_millis(450) {
            eprintln!("away for {away:?}: the machine is too busy to tell");
        } else {
            assert_eq!(held.state(), State::Held, "away for {away:?}: {:?}", held.loss());
            survived += 1;
        }
        if held.state() == State::Lost {
            break;
        }
    }
    eprintln!("survived {survived} of 3 restarts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_end_without_server_and_group_recovers() {
    let Some(mut server) = NatsServer::new() else { return };
    let nodes = group(&[server.url()]).await;
    let held = nodes[0].lock("a").acquire().await.unwrap();
    let token = held.token();
    server.kill();
    timeout(LONG, held.lost()).await.expect("it is not safe without a majority");
    let trouble = nodes[0].status().network.expect("it says why");
    assert!(trouble.contains(&server.address().to_string()), "{trouble}");
    sleep(Duration::from_secs(3)).await;
    let refused = nodes[1].lock("b").timeout(Duration::from_millis(300)).acquire().await;
    assert!(refused.is_err(), "nothing is granted meanwhile");
    drop(held);
    server.start();
    ready(&nodes).await;
    lock_around(&nodes).await;
    let next = timeout(LONG, nodes[1].lock("a").acquire()).await.unwrap().unwrap();
    assert!(next.token() > token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreachable_server_is_reported_and_retried() {
    let Some(mut server) = NatsServer::later() else { return };
    let node = builder(&server.url(), 0).start().await.unwrap();
    let mut events = node.events();
    let told = timeout(LONG, async {
        loop {
            if let Some(Event::Network { trouble: Some(trouble) }) = events.next().await {
                break trouble;
            }
        }
    });
    let told = match node.status().network {
        Some(told) => told,
        None => told.await.unwrap(),
    };
    let address = server.address().to_string();
    assert!(told.contains(&address) && told.contains("refused"), "{told}");
    assert!(node.what_is_missing().unwrap().contains(&address));
    server.start();
    let others = [builder(&server.url(), 1).start().await, builder(&server.url(), 2).start().await];
    ready(std::slice::from_ref(&node)).await;
    assert_eq!(node.status().network, None);
    drop(others);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_key_and_garbage_on_subjects_do_no_harm() {
    let Some(server) = NatsServer::new() else { return };
    let nodes = group(&[server.url()]).await;
    let mut events = nodes[0].events();
    let stranger = crate::fast().nats(server.url()).pre_shared_key([8; 32]).start().await.unwrap();
    assert!(refusal(&mut events).await.contains("wrong key"));
    assert!(!stranger.status().member);
    drop(stranger);
    // Garbage on all subjects, and a replay of everything sent before.
    let client = async_nats::connect(server.address().to_string()).await.unwrap();
    let mut all = client.subscribe("test.>").await.unwrap();
    client.flush().await.unwrap();
    let mut heard = Vec::new();
    let listening = async {
        use futures_util::StreamExt;
        while let Some(message) = all.next().await {
            heard.push(message);
        }
    };
    let _ = tokio::join!(timeout(Duration::from_secs(1), listening), lock_around(&nodes));
    assert!(heard.len() > 40, "they talk: {}", heard.len());
    let view = nodes[0].status().view;
    for message in heard.iter().take(500) {
        let (subject, payload) = (message.subject.clone(), message.payload.clone());
        client.publish_with_reply(subject.clone(), subject.clone(), payload).await.unwrap();
        client.publish(subject, Bytes::from_static(b"\x01garbage!and more")).await.unwrap();
        let here = Bytes::from_static(b"0123456789abcdef");
        client.publish("test.konklave.here", here).await.unwrap();
        client.publish("test.konklave.here", Bytes::from(vec![0xff; 10_000])).await.unwrap();
    }
    client.flush().await.unwrap();
    lock_around(&nodes).await;
    messages_arrive_in_order(&nodes).await;
    assert_eq!(nodes[0].status().view, view, "nobody was excluded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_with_different_names_or_prefixes_stay_apart() {
    let Some(server) = NatsServer::new() else { return };
    let url = server.url();
    let mut nodes = Vec::new();
    for (cluster, place) in [("a", url.clone()), ("b", url.clone()), ("a", format!("{url}.more"))] {
        let node = crate::fast().cluster(cluster).nats(place).founders(2).start().await;
        nodes.push(node.unwrap());
    }
    sleep(Duration::from_millis(1500)).await;
    for node in &nodes {
        assert!(!node.status().member);
        assert!(node.what_is_missing().unwrap().contains("1 of 2 founders"), "{node:?}");
    }
    let friend = crate::fast().cluster("a").nats(url).founders(2).join();
    timeout(LONG, friend).await.unwrap().unwrap();
}

#[tokio::test]
async fn remote_server_requires_protection() {
    let open = crate::fast().nats("nats://broker.example:4222").start().await;
    assert!(matches!(open, Err(Error::Config(_))), "{open:?}");
    let wrong = crate::fast().nats("http://broker").insecure().start().await;
    assert!(matches!(wrong, Err(Error::Config(_))), "{wrong:?}");
}

#[tokio::test]
async fn invalid_credentials_are_refused_at_once() {
    let folder = std::env::temp_dir().join(format!("konk-creds-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("me.creds");
    let start = || crate::fast().nats("nats://127.0.0.1:1").nats_credentials(&file).start();
    let missing = start().await.unwrap_err().to_string();
    assert!(missing.contains("me.creds"), "{missing}");
    for wrong in ["", "hello", "-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n"]
    {
        std::fs::write(&file, wrong).unwrap();
        let error = start().await;
        assert!(matches!(error, Err(Error::Config(_))), "{wrong}: {error:?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
