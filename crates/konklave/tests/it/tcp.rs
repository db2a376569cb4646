//! Groups over sockets on loopback.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use konklave::{Builder, Error, Event, Handover, LockAlgorithm, Node, State, Token};
use tokio::time::timeout;

use crate::refusal;

pub(crate) const LONG: Duration = Duration::from_secs(20);
const KEY: [u8; 32] = [7; 32];

/// Free ports, as addresses.
fn addresses(n: usize) -> Vec<String> {
    let listeners: Vec<TcpListener> =
        (0..n).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|l| l.local_addr().unwrap().to_string()).collect()
}

fn builder(addresses: &[String], i: usize) -> Builder {
    let name = format!("n{i}");
    crate::fast().name(name).listen(addresses[i].clone()).seeds(addresses.iter().cloned())
}

pub(crate) async fn group(
    n: usize,
    with: impl Fn(Builder, usize) -> Builder,
) -> (Vec<Node>, Vec<String>) {
    let addresses = addresses(n);
    let mut nodes = Vec::new();
    for i in 0..n {
        nodes.push(with(builder(&addresses, i), i).start().await.unwrap());
    }
    for node in &nodes {
        timeout(LONG, node.ready()).await.expect("they find each other").unwrap();
    }
    (nodes, addresses)
}

/// Three nodes with heartbeats so rare that batched frames do not travel with them in time.
async fn quiet_group() -> Vec<Node> {
    let timings = konklave::Timings {
        heartbeat: LONG,
        silence: 10 * LONG,
        lease: 5 * LONG,
        ..konklave::Timings::fast()
    };
    group(3, |b, _| b.timings(timings)).await.0
}

pub(crate) async fn lock_around(nodes: &[Node]) {
    let mut last = None;
    for round in 0..20 {
        let node = &nodes[round % nodes.len()];
        let guard = timeout(LONG, node.lock("a").acquire()).await.unwrap().unwrap();
        assert_eq!(guard.state(), State::Held);
        assert!(Some(guard.token()) > last);
        last = Some(guard.token());
        guard.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_cold_nodes_form_a_group_quickly() {
    let start = Instant::now();
    let (nodes, _) = group(3, |b, _| b).await;
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    lock_around(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_shared_key() {
    let (nodes, addresses) = group(3, |b, _| b.pre_shared_key(KEY)).await;
    lock_around(&nodes).await;
    // A peer with another key is refused; both sides report the reason.
    let mut events = nodes[0].events();
    let stranger = crate::fast().id(77).seeds(addresses.clone()).pre_shared_key([8; 32]);
    let stranger = stranger.start().await.unwrap();
    let mut theirs = stranger.events();
    for events in [&mut events, &mut theirs] {
        assert!(refusal(events).await.contains("wrong key"));
    }
    assert!(!stranger.status().member);
    let keyless = crate::fast().id(78).seeds(addresses).start().await.unwrap();
    let mut events = keyless.events();
    let refused = timeout(LONG, events.next()).await.unwrap();
    assert!(matches!(refused, Some(Event::Refused { .. })), "{refused:?}");
    assert_eq!(nodes[0].status().members.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashed_node_is_noticed_at_once() {
    let (mut nodes, addresses) = group(3, |b, _| b).await;
    let held = nodes[0].lock("a").handover(Handover::Fast).acquire().await.unwrap();
    let token = held.token();
    let gone = nodes.remove(0);
    // The process ends without releasing anything.
    let start = Instant::now();
    std::mem::forget(held);
    gone.kill();
    let next = timeout(LONG, nodes[0].lock("a").handover(Handover::Fast).acquire());
    let next = next.await.unwrap().unwrap();
    assert!(next.token() > token);
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    drop(next);
    drop(gone);
    // It restarts as another process.
    let again = builder(&addresses, 0).start().await.unwrap();
    timeout(LONG, again.ready()).await.unwrap().unwrap();
    let guard = timeout(LONG, again.lock("a").acquire()).await.unwrap().unwrap();
    assert!(guard.token() > token);
}

/// A node that was not up when it was called, and then called itself, is recognised by its address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_of_last_joined_node_is_noticed_at_once() {
    for _ in 0..5 {
        let addresses = addresses(3);
        let mut nodes = Vec::new();
        for i in [1, 2] {
            nodes.push(builder(&addresses, i).id(i as u32).start().await.unwrap());
        }
        // By now they call it only from time to time.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let last = builder(&addresses, 0).id(0).start().await.unwrap();
        for node in nodes.iter().chain([&last]) {
            timeout(LONG, node.ready()).await.expect("they find each other").unwrap();
        }
        let start = Instant::now();
        last.kill();
        timeout(LONG, nodes[0].lock("a").acquire())
            .await
            .unwrap()
            .unwrap()
            .release()
            .await
            .unwrap();
        assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn non_founder_joins_and_leaves() {
    let (mut nodes, addresses) = group(3, |b, _| b.pre_shared_key(KEY)).await;
    let fourth = crate::fast().name("n3").seeds(addresses).pre_shared_key(KEY);
    nodes.push(timeout(LONG, fourth.join()).await.unwrap().unwrap());
    lock_around(&nodes).await;
    assert_eq!(nodes[1].status().members.len(), 4);
    let fourth = nodes.pop().unwrap();
    timeout(LONG, fourth.leave()).await.unwrap().unwrap();
    lock_around(&nodes).await;
    assert_eq!(nodes[1].status().members.len(), 3);
    assert!(matches!(fourth.lock("a").acquire().await, Err(Error::Left)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn total_restart_from_disk_begins_new_generation() {
    let folder = std::env::temp_dir().join(format!("konklave-restart-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let with = |b: Builder, i: usize| b.data_dir(folder.join(i.to_string()));
    let (nodes, addresses) = group(3, with).await;
    let before = nodes[0].lock("a").acquire().await.unwrap().token();
    let taken = with(builder(&addresses, 0), 0).listen("127.0.0.1:0").start().await;
    assert!(matches!(taken, Err(Error::Store(..))), "{taken:?}");
    drop(nodes);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut nodes = Vec::new();
    for i in 0..2 {
        nodes.push(with(builder(&addresses, i), i).start().await.unwrap());
    }
    // Two of three cannot know whether the third went on without them.
    assert!(timeout(Duration::from_millis(500), nodes[0].ready()).await.is_err());
    assert!(nodes[0].what_is_missing().is_some());
    nodes.push(with(builder(&addresses, 2), 2).start().await.unwrap());
    timeout(LONG, nodes[0].ready()).await.unwrap().unwrap();
    let after = timeout(LONG, nodes[0].lock("a").acquire()).await.unwrap().unwrap().token();
    assert!(after.generation > before.generation);
    drop(nodes);
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn former_member_joins_group_instead_of_founding_alone() {
    let folder = std::env::temp_dir().join(format!("konklave-alone-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let with = |b: Builder, i: usize| b.data_dir(folder.join(i.to_string()));
    let (mut nodes, addresses) = group(3, with).await;
    let generation = nodes[1].status().view.unwrap().0;
    nodes.remove(0).kill();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let again = with(builder(&addresses, 0), 0).found_alone().start().await.unwrap();
    timeout(LONG, again.ready()).await.unwrap().unwrap();
    assert_eq!(again.status().view.unwrap().0, generation);
    assert_eq!(again.status().members.len(), 3);
    drop((nodes, again));
    tokio::time::sleep(Duration::from_millis(200)).await;
    // If no peer answers, it founds the group.
    let alone = with(builder(&addresses, 0), 0).found_alone().start().await.unwrap();
    timeout(LONG, alone.ready()).await.unwrap().unwrap();
    assert!(alone.status().view.unwrap().0 > generation);
    drop(alone);
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_disk_keeps_node_out_and_is_reported() {
    let folder = std::env::temp_dir().join(format!("konklave-full-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    // In the way of the temporary file.
    std::fs::create_dir_all(folder.join("node.json.new")).unwrap();
    let node = crate::fast().data_dir(&folder).start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(node.status().trouble.unwrap().contains("node.json"));
    assert!(!folder.join("node.json").exists());
    // A token that is not on disk could be given again.
    let early = node.lock("a").timeout(Duration::from_millis(300)).acquire().await;
    assert!(matches!(early, Err(Error::TimedOut(_))), "{early:?}");
    std::fs::remove_dir(folder.join("node.json.new")).unwrap();
    timeout(LONG, node.ready()).await.unwrap().unwrap();
    drop(timeout(LONG, node.lock("a").acquire()).await.unwrap().unwrap());
    assert_eq!(node.status().trouble, None);
    assert!(folder.join("node.json").exists());
    drop(node);
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_disk_is_reported_by_peers() {
    let addresses = addresses(2);
    let folder = std::env::temp_dir().join(format!("konklave-mute-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("node.json.new")).unwrap();
    let well = builder(&addresses, 0).start().await.unwrap();
    let ill = builder(&addresses, 1).data_dir(&folder).start().await.unwrap();
    let mut events = ill.events();
    let missing = || well.what_is_missing().unwrap_or_default();
    let named = async {
        while !missing().contains("connected to n1") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, named).await.expect("the other says for whom it waits");
    assert!(missing().contains("disk"), "{}", missing());
    std::fs::remove_dir(folder.join("node.json.new")).unwrap();
    timeout(LONG, well.ready()).await.unwrap().unwrap();
    let works = async { while events.next().await != Some(Event::Disk { trouble: None }) {} };
    timeout(LONG, works).await.expect("it is told that it works again");
    drop((well, ill));
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_on_port_is_refused() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (nodes, addresses) = group(3, |b, _| b.pre_shared_key(KEY)).await;
    let (open, open_address) = group(1, |b, _| b).await;
    let (mut keyed, mut plain) = (nodes[0].events(), open[0].events());
    let greeting = |rest: &[u8]| [&b"KNKL"[..], &[8, 0], rest].concat();
    let wrong_version = [b"KNKL".to_vec(), vec![0xee, 0xee, 4, 0, 0, 0, 0, 0]].concat();
    let http = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    let guess = greeting(&[&[0xff, 0xff][..], &[9; 48]].concat());
    for (key, bytes, why) in [
        (true, wrong_version.clone(), "version 61166"),
        (true, http.clone(), "does not speak the protocol"),
        (true, greeting(&[3, 0, 0xff, 0xff, 0xff]), "it has no key, we have one"),
        (true, guess.clone(), "wrong key"),
        (false, wrong_version, "version 61166"),
        (false, http, "does not speak the protocol"),
        (false, greeting(&[0xfe, 0xff]), "greeting has 65534 bytes"),
        (false, greeting(&[3, 0, 0xff, 0xff, 0xff]), "cannot be read"),
        (false, guess, "it has a key, we have none"),
    ] {
        let events = if key { &mut keyed } else { &mut plain };
        let address = if key { &addresses[0] } else { &open_address[0] };
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        let mut answer = Vec::new();
        let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.unwrap();
        let reason = refusal(events).await;
        assert!(reason.contains(why), "{reason}");
    }
    lock_around(&nodes).await;
}

/// A node of an earlier version sends its greeting in the clear, and reads the other's version in the answer.
#[tokio::test]
async fn node_of_earlier_version_and_its_peer_learn_versions() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    for keyed in [false, true] {
        let with = |b: Builder| if keyed { b.pre_shared_key(KEY) } else { b };
        let (nodes, addresses) = group(1, |b, _| with(b)).await;
        let mut events = nodes[0].events();
        let mut caller = tokio::net::TcpStream::connect(&addresses[0]).await.unwrap();
        caller.write_all(b"KNKL\x07\0\x04\0abcd").await.unwrap();
        let mut answer = [0; 8];
        timeout(LONG, caller.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(answer[..6], *b"KNKL\x08\0");
        let told = "it speaks protocol version 7, this node version 8: install the same version";
        assert!(refusal(&mut events).await.contains(told));
        // The same the other way: the old node is called.
        let old = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let seeds = [old.local_addr().unwrap().to_string()];
        let new = with(crate::fast().id(5).seeds(seeds)).start().await.unwrap();
        let mut events = new.events();
        let answering = async {
            loop {
                let (mut stream, _) = old.accept().await.unwrap();
                stream.write_all(b"KNKL\x07\0\x04\0abcd").await.unwrap();
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        };
        tokio::select! {
            () = answering => {}
            reason = refusal(&mut events) => assert!(reason.contains(told), "{reason}"),
        }
    }
}

/// The members change from one key to another, one after the other, and new members come with either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_change_one_member_after_the_other() {
    const NEW: [u8; 32] = [9; 32];
    let (mut nodes, addresses) = group(3, |b, _| b.pre_shared_key(KEY)).await;
    let joins = |id: u32, keys: Vec<[u8; 32]>| {
        let node = crate::fast().id(id).seeds(addresses.clone()).pre_shared_keys(keys);
        async move { timeout(LONG, node.join()).await.expect("it is let in").unwrap() }
    };
    nodes[0].change_keys([NEW, KEY]).unwrap();
    // Two members know only the old key, and this node prefers the new one.
    nodes.push(joins(50, vec![NEW, KEY]).await);
    for node in &nodes[1..] {
        node.change_keys([NEW, KEY]).unwrap();
    }
    nodes.push(joins(51, vec![KEY]).await);
    nodes[4].change_keys([NEW, KEY]).unwrap();
    nodes.push(joins(52, vec![NEW]).await);
    lock_around(&nodes).await;
    for node in &nodes {
        node.change_keys([NEW]).unwrap();
    }
    let mut events = nodes[0].events();
    let late = crate::fast().id(53).seeds(addresses).pre_shared_key(KEY).start().await.unwrap();
    assert!(refusal(&mut events).await.contains("wrong key"));
    assert!(!late.status().member);
    let none: [[u8; 32]; 0] = [];
    assert!(nodes[0].change_keys(none).is_err() && nodes[0].change_keys(["short"]).is_err());
}

/// One of three is shut out by its identity, and let in again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denied_identity_is_shut_out_until_it_is_allowed_again() {
    let (nodes, _) = group(3, |b, _| b.pre_shared_key(KEY)).await;
    lock_around(&nodes).await;
    let of = |members: Vec<konklave::MemberStatus>, node: u32| {
        members.into_iter().find(|member| member.node == node).and_then(|member| member.identity)
    };
    let third = nodes[2].id();
    let identity = of(nodes[2].status().members, third).expect("it has one");
    assert_eq!(of(nodes[0].status().members, third), Some(identity.clone()), "its peers know it");
    shut_out_and_back(&nodes, &identity).await;
}

/// The last node, with this identity, is shut out by the others, and let in again.
pub(crate) async fn shut_out_and_back(nodes: &[Node], identity: &str) {
    let (last, others) = nodes.split_last().unwrap();
    let mut events = last.events();
    others.iter().for_each(|node| node.deny([identity]));
    let told = async { while !refusal(&mut events).await.contains("is shut out here") {} };
    timeout(LONG, told).await.expect("it learns the reason");
    let members = |n: usize| async move {
        while others.iter().any(|node| node.status().members.len() != n) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, members(others.len())).await.expect("it is excluded");
    lock_around(others).await;
    let nobody: [&str; 0] = [];
    others.iter().for_each(|node| node.deny(nobody));
    timeout(LONG, members(nodes.len())).await.expect("it is back");
    lock_around(nodes).await;
}

/// An attacker opens connections and sends nothing, and replaces each one that is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_do_not_keep_members_out() {
    let (nodes, addresses) = group(3, |b, _| b.pre_shared_key(KEY)).await;
    let mut silent = tokio::task::JoinSet::new();
    for i in 0..300 {
        let address = addresses[i % addresses.len()].clone();
        silent.spawn(async move {
            use tokio::io::AsyncReadExt;
            loop {
                if let Ok(mut stream) = tokio::net::TcpStream::connect(&address).await {
                    // Until it is evicted.
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let late = crate::fast().name("late").seeds(addresses).pre_shared_key(KEY).start();
    let late = late.await.unwrap();
    timeout(LONG, late.ready()).await.expect("it gets in").unwrap();
    silent.shutdown().await;
    lock_around(&nodes).await;
}

#[tokio::test]
async fn listening_beyond_loopback_requires_protection() {
    let open = crate::fast().listen("0.0.0.0:0").start().await;
    assert!(matches!(open, Err(Error::Config(_))), "{open:?}");
    assert!(crate::fast().listen("0.0.0.0:0").insecure().start().await.is_ok());
    assert!(crate::fast().pre_shared_key("short").start().await.is_err());
}

/// A cached lock is granted without waiting, so a task in a loop never yields by itself.
#[tokio::test]
async fn local_loop_on_cached_lock_lets_others_in() {
    let (nodes, _) = group(2, |builder, _| builder).await;
    let (greedy, start) = (nodes[0].clone(), Instant::now());
    let done = Arc::new(AtomicBool::new(false));
    let enough = done.clone();
    let again = tokio::spawn(async move {
        while !enough.load(Ordering::Relaxed) && start.elapsed() < LONG {
            greedy.lock("a").acquire().await.unwrap().release().await.unwrap();
        }
    });
    tokio::task::yield_now().await;
    timeout(LONG, nodes[1].lock("a").acquire()).await.unwrap().unwrap().release().await.unwrap();
    done.store(true, Ordering::Relaxed);
    again.await.unwrap();
    assert!(start.elapsed() < LONG / 2, "the other had to wait until the first gave up");
}

/// The recorded grants: token, begin, end.
type History = Arc<std::sync::Mutex<Vec<(Token, Instant, Instant)>>>;

async fn contend(node: Node, until: Instant, history: History) {
    while Instant::now() < until {
        let wish = node.lock("a").timeout(LONG).acquire().await;
        let Ok(guard) = wish else { return };
        let from = Instant::now();
        tokio::task::yield_now().await;
        let to = Instant::now();
        if guard.state() != State::Lost {
            history.lock().unwrap().push((guard.token(), from, to));
        }
    }
}

/// One holder at a time; later ones have higher tokens.
fn judge(history: &History, what: &str) {
    let mut history = history.lock().unwrap().clone();
    history.sort_by_key(|(_, from, _)| *from);
    for pair in history.windows(2) {
        assert!(pair[0].0 < pair[1].0, "{what}: tokens grow: {pair:?}");
        assert!(pair[0].2 <= pair[1].1, "{what}: one at a time: {pair:?}");
    }
    assert!(history.len() > 50, "{what}: {}", history.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_algorithm_serves_locks_while_a_member_dies() {
    for mutex in LockAlgorithm::ALL {
        let (nodes, _) = group(3, |b, _| b.lock_algorithm(mutex)).await;
        lock_around(&nodes).await;
        let history = History::default();
        let until = Instant::now() + Duration::from_millis(1600);
        let tasks =
            (0..6).map(|i| tokio::spawn(contend(nodes[i % 3].clone(), until, history.clone())));
        let tasks: Vec<_> = tasks.collect();
        tokio::time::sleep(Duration::from_millis(200)).await;
        nodes[0].kill();
        for task in tasks {
            timeout(LONG, task).await.expect("nobody waits for ever").unwrap();
        }
        judge(&history, mutex.name());
        // The remaining node is served, and shows the holder.
        let held = timeout(LONG, nodes[1].lock("a").acquire()).await.unwrap().unwrap();
        let seen = timeout(LONG, async {
            while nodes[2].why("a").holders.first().map(|h| h.node) != Some(nodes[1].id()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        seen.await.expect("it is told");
        drop(held);
    }
}

/// Frames that nobody waits for are batched; that must not delay a request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_locks_in_sequence_come_at_once() {
    let nodes = quiet_group().await;
    let all = async {
        for i in 0..900 {
            drop(nodes[i / 300].lock(&format!("l{i}")).acquire().await.unwrap());
        }
    };
    timeout(LONG / 2, all).await.expect("nobody waits for a sign of life");
}

/// A node acknowledges two messages at once: a request waits for the first, none for the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn free_lock_comes_at_once_while_others_wait() {
    let nodes = quiet_group().await;
    let roles = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for i in 0..1200 {
        let [asks, holds, waits] = roles[i % roles.len()];
        let held = nodes[holds].lock(&format!("h{i}")).acquire();
        let held = timeout(LONG / 2, held).await.expect("it is free").unwrap();
        let next = nodes[waits].lock(&format!("h{i}"));
        let next = tokio::spawn(async move { next.acquire().await.unwrap() });
        // The two messages share a record if the second is a moment later.
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(i as u64 / 6 % 200) {
            std::hint::spin_loop();
        }
        let free = nodes[asks].lock(&format!("f{i}")).acquire();
        let free = timeout(LONG / 2, free).await;
        drop(free.unwrap_or_else(|_| panic!("lock {i}: it waits for a sign of life")).unwrap());
        drop(held);
        drop(timeout(LONG / 2, next).await.expect("it was let go").unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_with_other_lease_is_refused_with_reason() {
    let (nodes, addresses) = group(2, |b, _| b).await;
    let mut events = nodes[0].events();
    let lease = Duration::from_secs(8);
    let timings = konklave::Timings { lease, ..Default::default() };
    let stranger = crate::fast().id(77).seeds(addresses).timings(timings);
    let stranger = stranger.start().await.unwrap();
    assert_eq!(refusal(&mut events).await, "its lease is 8s, ours 1s");
    assert!(!stranger.status().member);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_with_other_lock_algorithm_is_refused_with_reason() {
    let (nodes, addresses) = group(2, |b, _| b.lock_algorithm(LockAlgorithm::NaimiTrehel)).await;
    let mut events = nodes[0].events();
    let stranger =
        crate::fast().id(77).seeds(addresses).lock_algorithm(LockAlgorithm::SuzukiKasami);
    let stranger = stranger.start().await.unwrap();
    assert_eq!(refusal(&mut events).await, "its mutex is suzuki-kasami, ours naimi-trehel");
    let reason = "its mutex is naimi-trehel, ours suzuki-kasami";
    let told = timeout(LONG, async {
        while !stranger.what_is_missing().is_some_and(|what| what.contains(reason)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    told.await.expect("it says why");
    assert!(!stranger.status().member);
    assert_eq!(nodes[0].status().members.len(), 2);
}

/// The release reaches the group before the node ends: no request waits for a lease.
#[tokio::test]
async fn release_then_leave_reaches_group() {
    for place in 0..3 {
        let (mut nodes, _) = group(3, |b, i| b.id(i as u32)).await;
        let node = nodes.remove(place);
        let guard = timeout(LONG, node.lock("a").acquire()).await.unwrap().unwrap();
        let next = nodes[0].clone();
        let waits = tokio::spawn(async move { next.lock("a").acquire().await.map(drop) });
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(guard);
        drop(node);
        let served = timeout(Duration::from_millis(700), waits).await;
        served.unwrap_or_else(|_| panic!("{place} is waited for")).unwrap().unwrap();
    }
}

/// Each node has a thread of its own, like a process.
#[test]
fn eight_clients_of_three_threads_take_turns() {
    let addresses = addresses(3);
    let threads = [3, 3, 2].into_iter().enumerate().map(|(i, clients)| {
        let addresses = addresses.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let node = builder(&addresses, i).id(i as u32).join().await.unwrap();
                let clients = (0..clients).map(|_| tokio::spawn(take_turns(node.clone())));
                let clients: Vec<_> = clients.collect();
                let mut all = Vec::new();
                for client in clients {
                    all.extend(client.await.unwrap());
                }
                // The other nodes need this one until they are done.
                timeout(LONG, node.barrier("done", 3).wait()).await.unwrap().unwrap();
                tokio::time::sleep(Duration::from_millis(500)).await;
                all
            })
        })
    });
    let threads: Vec<_> = threads.collect();
    let mut all: Vec<Token> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 8 * TURNS, "nobody had the same turn as another");
}

const TURNS: usize = 1000;

async fn take_turns(node: Node) -> Vec<Token> {
    let session = node.session("client");
    let mut tokens = Vec::new();
    for _ in 0..TURNS {
        let guard = timeout(LONG, session.lock("one").acquire()).await.unwrap().unwrap();
        tokens.push(guard.token());
        guard.release().await.unwrap();
    }
    tokens
}
