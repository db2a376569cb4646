//! The fifth act: three operating system processes share a lock, and the holder is killed.
//!
//! The demo starts this program three times as `demo-member`, and speaks with each member by lines. A member
//! prints `ready`; on the line `acquire`, it takes the lock and prints its token. It holds the lock until it is
//! killed, and ends when its stdin does: no member outlives the demo.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use konklave::{FenceGate, Node, Timings, Token};

use super::heading;
use crate::args::DemoMemberArgs;
use crate::{Done, Failure};

/// The act takes two seconds; after this time something is wrong.
const LONGEST: Duration = Duration::from_secs(8);
const LOCK: &str = "reports";

/// Plays the act.
pub(super) fn kill_holder(out: &mut impl Write) -> Result<(), Failure> {
    writeln!(out, "{}", heading("5. Crash the holder in a real group"))?;
    writeln!(
        out,
        "Three operating system processes, connected by TCP, share a lock (library `konklave`).\n\
         One takes it, another one waits for it, and the holder is killed (SIGKILL)."
    )?;
    out.flush()?;
    let until = Instant::now() + LONGEST;
    let addresses = free_addresses(3)?;
    let start = |i| Member::start(&addresses, i);
    let (mut first, mut second, third) = (start(0)?, start(1)?, start(2)?);
    for member in [&first, &second, &third] {
        member.line(until)?;
    }
    first.order("acquire")?;
    let old = first.token(until)?;
    // The resource remembers the highest token that it has seen.
    let mut resource = FenceGate::default();
    let written = resource.admit(old);
    writeln!(out, "  member 1 holds the lock; its write with token {old} is {}", said(written))?;
    second.order("acquire")?;
    // The request needs a moment to reach the group.
    thread::sleep(Duration::from_millis(200));
    let killed = Instant::now();
    first.process.kill()?;
    writeln!(out, "  member 1 (process {}) is killed", first.process.id())?;
    out.flush()?;
    let new = second.token(until)?;
    let after = killed.elapsed().as_millis();
    let lease = Timings::fast().lease.as_millis();
    let written = resource.admit(new);
    writeln!(out, "  member 2 holds the lock; its write with token {new} is {}", said(written))?;
    let late = resource.admit(old);
    writeln!(out, "  a late write of member 1 with token {old} is {}", said(late))?;
    writeln!(
        out,
        "→ the next holder after {after} ms: the crash is noticed at once, and the lock is free when the\n  \
         lease of the killed holder ({lease} ms) has run out. The token keeps its late write away.\n"
    )?;
    Ok(())
}

fn said<E>(written: Result<(), E>) -> &'static str {
    if written.is_ok() { "accepted" } else { "refused" }
}

fn unavailable(why: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("demo: the three members on 127.0.0.1: {why}"), 69)
}

/// Free addresses on loopback.
fn free_addresses(n: usize) -> Result<Vec<String>, Failure> {
    let bound = (0..n).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<io::Result<Vec<_>>>();
    let addresses = bound.and_then(|all| all.iter().map(TcpListener::local_addr).collect());
    let addresses: Vec<std::net::SocketAddr> = addresses.map_err(unavailable)?;
    Ok(addresses.iter().map(ToString::to_string).collect())
}

/// A member as the demo sees it. It is killed when this is dropped.
struct Member {
    process: Child,
    orders: ChildStdin,
    lines: mpsc::Receiver<String>,
}

impl Member {
    fn start(addresses: &[String], index: usize) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(unavailable)?;
        let mut process = Command::new(program)
            .args(["demo-member", "--index", &index.to_string(), "--seeds", &addresses.join(",")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(unavailable)?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (orders, stdout) = pipes.ok_or_else(|| unavailable("a member has no pipes"))?;
        let (tell, lines) = mpsc::channel();
        // Ends with the member's stdout.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Ok(Self { process, orders, lines })
    }

    fn order(&mut self, order: &str) -> Result<(), Failure> {
        writeln!(self.orders, "{order}").map_err(unavailable)
    }

    /// The next line that the member prints.
    fn line(&self, until: Instant) -> Result<String, Failure> {
        let left = until.saturating_duration_since(Instant::now());
        self.lines.recv_timeout(left).map_err(|error| match error {
            mpsc::RecvTimeoutError::Timeout => {
                unavailable(format!("no answer within {} s", LONGEST.as_secs()))
            }
            mpsc::RecvTimeoutError::Disconnected => unavailable("one of them ended early"),
        })
    }

    fn token(&self, until: Instant) -> Result<Token, Failure> {
        self.line(until)?.parse().map_err(unavailable)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `demo-member`: the member itself.
pub(crate) fn member(args: &DemoMemberArgs) -> Done {
    let (tell, mut orders) = tokio::sync::mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
        // The demo is over, or was itself killed.
        std::process::exit(0);
    });
    let listen = args.seeds.get(args.index).ok_or_else(|| unavailable("no such member"))?;
    let builder = Node::builder()
        .timings(Timings::fast())
        .name(format!("member {}", args.index + 1))
        .cluster("demo")
        .listen(listen.clone())
        .seeds(args.seeds.iter().cloned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let node = builder.join().await.map_err(unavailable)?;
        println_now("ready")?;
        let mut held = Vec::new();
        while let Some(order) = orders.recv().await {
            if order == "acquire" {
                let guard = node.lock(LOCK).acquire().await.map_err(unavailable)?;
                println_now(&guard.token().to_string())?;
                held.push(guard);
            }
        }
        Ok(0)
    })
}

fn println_now(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
