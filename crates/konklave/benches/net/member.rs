//! A member that takes commands on standard input and answers each with a line.

use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use konklave::{Group, GroupEvent, Guard, Handover, Node, Timings};
use serde_json::{Value, json};

use crate::report::{median, quantile};

/// Set for members that share a key.
pub(crate) const KEYED: &str = "KONKLAVE_BENCH_KEYED";

/// A clock shared by all processes of the machine, in nanoseconds.
pub(crate) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub(crate) fn run(args: &[String]) {
    let args = args.to_vec();
    let place: usize = args[0].parse().expect("the first argument is a place");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (orders, mut next) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if orders.send(line).is_err() {
                break;
            }
        }
    });
    // A task like any other: the runtime's main future would be polled after all tasks.
    let serving = async move {
        let keyed = std::env::var_os(KEYED).is_some_and(|keyed| !keyed.is_empty());
        let builder = Node::builder();
        let builder = if keyed { builder.pre_shared_key([7; 32]) } else { builder };
        let node = builder
            .timings(Timings::fast())
            .name(format!("n{place}"))
            // The first member leads.
            .id(place as u32)
            .lock_algorithm(args[1].parse().expect("the second one is an algorithm"))
            .listen(args[2 + place].clone())
            .seeds(args[2..].iter().cloned())
            .join()
            .await
            .expect("the others come");
        println!("{}", json!({ "ready": now() }));
        let mut member = Member { node, group: None, held: None, seen: 0, view: 0 };
        loop {
            let order = tokio::select! {
                order = next.recv() => order,
                event = next_event(member.group.as_mut()) => {
                    member.take(event);
                    continue;
                }
            };
            let Some(order) = order else { break };
            let words: Vec<&str> = order.split_whitespace().collect();
            println!("{}", member.obey(&words).await);
        }
    };
    let ended =
        runtime.expect("there is a runtime").block_on(async { tokio::spawn(serving).await });
    ended.expect("a member does not panic");
}

/// The next event while no command runs.
async fn next_event(group: Option<&mut Group>) -> GroupEvent {
    match group {
        Some(group) => group.next().await.expect("the node lives"),
        None => std::future::pending().await,
    }
}

struct Member {
    node: Node,
    group: Option<Group>,
    held: Option<Guard>,
    /// The number of messages received and not asked for yet.
    seen: u64,
    /// The number of members of the group.
    view: usize,
}

fn word<T: std::str::FromStr>(words: &[&str], at: usize) -> T {
    let word = words.get(at).and_then(|w| w.parse().ok());
    word.unwrap_or_else(|| panic!("{words:?}: what is word {at}?"))
}

impl Member {
    async fn obey(&mut self, words: &[&str]) -> Value {
        match words[0] {
            "again" => self.again(word(words, 1)).await,
            "remote" => self.remote(word(words, 1), words[2], words.get(3) == Some(&"fast")).await,
            "contend" => self.contend(word(words, 1), word(words, 2), word(words, 3)).await,
            "cycles" => self.cycles(word(words, 1)).await,
            "join" => {
                self.group = Some(self.node.group(words[1]).await.expect("there is a group"));
                json!({})
            }
            "agreed" => {
                self.group = self.group.take().map(Group::agreed);
                json!({})
            }
            "part" => {
                (self.group, self.seen, self.view) = (None, 0, 0);
                json!({})
            }
            "views" => {
                let members: usize = word(words, 1);
                while self.view != members {
                    let event = next_event(self.group.as_mut()).await;
                    self.take(event);
                }
                json!({ "at": now() })
            }
            "send" => self.send(word(words, 1), word(words, 2)).await,
            "latency" => self.latency(word(words, 1), word(words, 2)).await,
            "receive" => {
                self.receive(word(words, 1)).await;
                json!({ "end": now() })
            }
            "hold" | "wait" => {
                let safe = words.get(2) == Some(&"safe");
                let mode = if safe { Handover::LeaseSafe } else { Handover::Fast };
                self.held = self.node.lock(words[1]).handover(mode).acquire().await.ok();
                json!({ "at": now() })
            }
            other => panic!("{other}: no such order"),
        }
    }

    /// The same lock again and again.
    async fn again(&self, rounds: u64) -> Value {
        let mut times = Vec::new();
        for _ in 0..rounds / 100 {
            let start = now();
            for _ in 0..100 {
                drop(self.node.lock("again").acquire().await.expect("it is here"));
            }
            times.push((now() - start) as f64 / 100.0);
            tokio::task::yield_now().await;
        }
        json!({ "p50": median(&mut times) })
    }

    /// Another lock each time.
    async fn remote(&self, rounds: u64, prefix: &str, fast: bool) -> Value {
        let mode = if fast { Handover::Fast } else { Handover::LeaseSafe };
        let (mut acquires, mut cycles) = (Vec::new(), Vec::new());
        for i in 0..rounds {
            let name = format!("{prefix}-{i}");
            let start = now();
            let guard = self.node.lock(&name).handover(mode).acquire().await.expect("it is free");
            acquires.push((now() - start) as f64);
            guard.release().await.expect("it was ours");
            cycles.push((now() - start) as f64);
        }
        let slow = quantile(&mut acquires, 0.99);
        json!({ "acquire": median(&mut acquires), "slow": slow, "cycle": median(&mut cycles) })
    }

    /// Clients compete for one lock, from a moment that all processes know.
    async fn contend(&self, clients: usize, start: u64, seconds: f64) -> Value {
        tokio::time::sleep(Duration::from_nanos(start.saturating_sub(now()))).await;
        let end = start + (seconds * 1e9) as u64;
        let tasks = (0..clients).map(|_| {
            let session = self.node.session("client");
            tokio::spawn(async move {
                let mut spans = Vec::new();
                while now() < end {
                    let guard = session.lock("one").acquire().await.expect("it is granted");
                    let start = now();
                    spans.push((start, now()));
                    guard.release().await.expect("it was ours");
                }
                spans
            })
        });
        let mut clients = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            clients.push(task.await.expect("it ends"));
        }
        json!({ "clients": clients })
    }

    /// Three local clients, each with a lock that all processes use in turn.
    async fn cycles(&self, seconds: f64) -> Value {
        let end = now() + (seconds * 1e9) as u64;
        let tasks = (0..3).map(|i| {
            let session = self.node.session("client");
            let name = format!("own-{}-{i}", self.node.id());
            tokio::spawn(async move {
                let mut count = 0_u64;
                while now() < end {
                    drop(session.lock(&name).acquire().await.expect("it is granted"));
                    count += 1;
                    if count.is_multiple_of(64) {
                        tokio::task::yield_now().await;
                    }
                }
                count
            })
        });
        let mut total = 0;
        for task in tasks.collect::<Vec<_>>() {
            total += task.await.expect("it ends");
        }
        json!({ "rate": total as f64 / seconds })
    }

    fn take(&mut self, event: GroupEvent) {
        match event {
            GroupEvent::Message { .. } => self.seen += 1,
            GroupEvent::View(view) => self.view = view.members.len(),
            GroupEvent::Snapshot(wanted) => drop(wanted),
            GroupEvent::First | GroupEvent::NoState | GroupEvent::State(_) => {}
            _ => panic!("the group is lost"),
        }
    }

    async fn receive(&mut self, count: u64) {
        while self.seen < count {
            let event = next_event(self.group.as_mut()).await;
            self.take(event);
        }
        self.seen -= count;
    }

    /// Sends messages, and waits until all have come back.
    async fn send(&mut self, bytes: usize, count: u64) -> Value {
        let payload: Arc<[u8]> = vec![7; bytes].into();
        let group = self.group.as_mut().expect("it has joined");
        let start = now();
        let (mut sent, mut back) = (0, 0);
        while back < count {
            while sent < count && sent < back + 16_384 {
                group.send(payload.clone()).await.expect("it belongs to it");
                sent += 1;
                if sent % 512 == 0 {
                    break;
                }
            }
            let mut event = group.try_next();
            if event.is_none() && (sent == count || sent >= back + 16_384) {
                event = group.next().await;
            }
            while let Some(
                GroupEvent::Message { .. }
                | GroupEvent::View(_)
                | GroupEvent::First
                | GroupEvent::NoState
                | GroupEvent::State(_),
            ) = event
            {
                back += u64::from(matches!(event, Some(GroupEvent::Message { .. })));
                event = group.try_next();
            }
            tokio::task::yield_now().await;
        }
        json!({ "start": start, "end": now() })
    }

    /// One message at a time: from sending to delivery.
    async fn latency(&mut self, bytes: usize, count: u64) -> Value {
        let payload: Arc<[u8]> = vec![7; bytes].into();
        let mut times = Vec::new();
        for _ in 0..count {
            let start = now();
            self.group
                .as_ref()
                .expect("it has joined")
                .send(payload.clone())
                .await
                .expect("it belongs to it");
            self.receive(1).await;
            times.push((now() - start) as f64);
        }
        json!({ "p50": median(&mut times) })
    }
}
