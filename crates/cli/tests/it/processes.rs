//! Elections among operating system processes, one of which is killed in the middle of it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{command, words};

/// A member, and what it said last.
struct Member {
    child: Child,
    last: Option<Value>,
}

/// A group of operating system processes. All are killed when it is dropped.
struct Group {
    members: BTreeMap<u32, Member>,
    lines: Receiver<(u32, Value)>,
    /// The processes that reported to lead, by epoch.
    reigns: BTreeMap<u64, Vec<u32>>,
}

impl Group {
    /// Starts the members 0 to n − 1; each knows the addresses of the others.
    fn start(line: &str, n: u32) -> Self {
        let (sender, lines) = channel();
        let mut starting = Vec::new();
        for me in 0..n {
            let words = words(&format!("member {line} -n {n} --me {me} --unit 25"));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let mut child = command(&words)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a member starts");
            let input = child.stdin.take().expect("it has a stdin");
            let mut output = BufReader::new(child.stdout.take().expect("it has a stdout"));
            let mut first = String::new();
            output.read_line(&mut first).expect("it speaks");
            let address = first.trim().strip_prefix("listens ").map(str::to_owned);
            let address = address.unwrap_or_else(|| panic!("{line}: {first}"));
            starting.push((me, child, input, output, address));
        }
        let all: Vec<String> =
            starting.iter().map(|(me, .., address)| format!("{me}={address}")).collect();
        let mut members = BTreeMap::new();
        for (me, child, input, output, _) in starting {
            introduce(input, &all.join(" "));
            listen(me, output, sender.clone());
            members.insert(me, Member { child, last: None });
        }
        Self { members, lines, reigns: BTreeMap::new() }
    }

    /// Sends SIGKILL to a member, as `kill -9` does.
    fn kill(&mut self, victim: u32) {
        let mut member = self.members.remove(&victim).expect("it lives");
        member.child.kill().expect("it can be killed");
        member.child.wait().expect("it is gone");
    }

    /// Hears what the members say until the time is up, or nothing is left to say.
    fn hear(&mut self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let Ok((from, said)) = self.lines.recv_timeout(left) else { return false };
        if let Some(epoch) = said["told"]["Leading"]["epoch"].as_u64() {
            let leaders = self.reigns.entry(epoch).or_default();
            if !leaders.contains(&from) {
                leaders.push(from);
            }
        }
        if let Some(member) = self.members.get_mut(&from) {
            member.last = Some(said["told"].clone());
        }
        true
    }

    /// The live leader that all survivors follow, if they do.
    fn agreed(&self) -> Option<u32> {
        let said = |me: u32, member: &Member| {
            let last = member.last.as_ref()?;
            match last["Following"]["leader"].as_u64() {
                Some(leader) => Some(leader as u32),
                None => last["Leading"].is_object().then_some(me),
            }
        };
        let mut named = self.members.iter().map(|(me, member)| said(*me, member));
        let leader = named.next()??;
        let all = named.all(|other| other == Some(leader));
        (all && self.members.contains_key(&leader)).then_some(leader)
    }
}

fn introduce(mut input: ChildStdin, all: &str) {
    writeln!(input, "{all}").expect("it listens");
}

fn listen(me: u32, output: impl BufRead + Send + 'static, lines: Sender<(u32, Value)>) {
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let said = serde_json::from_str(&line).unwrap_or_default();
            if lines.send((me, said)).is_err() {
                return;
            }
        }
    });
}

impl Drop for Group {
    fn drop(&mut self) {
        for member in self.members.values_mut() {
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

/// Starts a group of five, kills `victim` so long after the start, and waits for the survivors.
fn killed(line: &str, victim: u32, after: Duration) {
    let mut group = Group::start(line, 5);
    let kill_at = Instant::now() + after;
    while group.hear(kill_at) {}
    group.kill(victim);
    let patience = Instant::now() + Duration::from_secs(60);
    // An agreement counts only if it lasts.
    let steady = Duration::from_millis(750);
    let mut since: Option<(u32, Instant)> = None;
    loop {
        let now = Instant::now();
        assert!(now < patience, "{line}, {victim} killed after {after:?}: no leader");
        since = match (group.agreed(), since) {
            (Some(leader), Some((before, at))) if leader == before => Some((leader, at)),
            (Some(leader), _) => Some((leader, now)),
            (None, _) => None,
        };
        if since.is_some_and(|(_, at)| at + steady <= now) {
            break;
        }
        group.hear(now + Duration::from_millis(50));
    }
    for (epoch, leaders) in &group.reigns {
        assert_eq!(leaders.len(), 1, "{line}: {leaders:?} led in epoch {epoch}");
    }
}

/// Kills would-be winners and others, early, in the middle, and when all is settled.
fn killed_at_any_time(line: &'static str) {
    let runs = [(4, 0), (4, 30), (2, 60), (0, 120), (4, 1500)].map(|(victim, after)| {
        thread::spawn(move || killed(line, victim, Duration::from_millis(after)))
    });
    for run in runs {
        if let Err(panic) = run.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn bully_outlives_a_kill_in_the_middle_of_an_election() {
    killed_at_any_time("bully --set mode=hardened --set ping=10 --time-limit 4000");
}

#[test]
fn chang_roberts_outlives_a_kill_in_the_middle_of_an_election() {
    killed_at_any_time("chang-roberts --set mode=hardened --time-limit 4000");
}

#[test]
fn ring_list_outlives_a_kill_in_the_middle_of_an_election() {
    killed_at_any_time("ring-list --set mode=hardened --time-limit 4000");
}

#[test]
fn invitation_outlives_a_kill_in_the_middle_of_an_election() {
    killed_at_any_time("invitation --time-limit 4000");
}

#[test]
fn quorum_outlives_a_kill_in_the_middle_of_an_election() {
    killed_at_any_time("quorum --time-limit 4000");
}

#[test]
fn member_without_place_or_addresses_is_refused() {
    let refused = |line: &str, code: i32, word: &str| {
        let said = super::konklave_line(line);
        assert_eq!(said.code, code, "{line}: {}", said.err);
        assert!(said.err.contains(word), "{line}: {}", said.err);
    };
    refused("member bully -n 3 --me 7", 64, "not a member");
    refused("member bully -n 3 --me 0", 65, "the address of");
    refused("member bully -n 3 --me 0 --unit 0", 64, "positive");
}
