//! The floor of all times: a ping-pong of two processes over TCP, without anything else.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::report::median;
use crate::worker::{Worker, number};

/// The length of a small message of ours.
const BYTES: usize = 64;
const ROUNDS: u32 = 20_000;

/// How a side waits for the answer.
#[derive(Clone, Copy)]
pub(crate) enum Waiting {
    /// A blocked thread.
    Thread,
    /// A task of a runtime, as in the library; adds the cost of waiting for a readable socket.
    Task,
}

/// The cores this process may use.
pub(crate) fn cores() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Restricts this thread, and all it starts, to these cores.
pub(crate) fn keep_to(cores: &[usize]) {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).unwrap_or_else(|error| eprintln!("cores {cores:?}: {error}"));
}

/// The floor that others are compared with: on one core.
pub(crate) fn ping_pong_here() -> Duration {
    let core = cores().first().copied().unwrap_or(0);
    ping_pong(core, core, Waiting::Thread)
}

/// A TCP ping-pong of two processes, each on its core.
pub(crate) fn ping_pong(here: usize, there: usize, waiting: Waiting) -> Duration {
    let program = std::env::current_exe().expect("we are a program");
    let start = |core: usize, to: &str| {
        let how = match waiting {
            Waiting::Thread => "thread",
            Waiting::Task => "task",
        };
        let mut command = Command::new(&program);
        Worker::start(command.args(["floor", how, &core.to_string(), to])).expect("it starts")
    };
    let echo = start(there, "");
    let address = echo.answer().expect("it listens");
    let times = start(here, address["address"].as_str().unwrap_or_default());
    let answer = times.answer().expect("it is measured");
    Duration::from_nanos(number(&answer, "p50") as u64)
}

/// `net floor HOW CORE ADDRESS`: one side of it. Without an address, the answering one.
pub(crate) fn run(args: &[String]) {
    let [how, core, address] = args else { panic!("floor HOW CORE ADDRESS") };
    keep_to(&[core.parse().expect("a core is a number")]);
    let tasks = how == "task";
    let stream = if address.is_empty() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it is bound").to_string();
        println!("{}", json!({ "address": address }));
        listener.accept().expect("someone calls").0
    } else {
        TcpStream::connect(address).expect("someone listens")
    };
    stream.set_nodelay(true).expect("it is TCP");
    if tasks {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let talk = async move {
            stream.set_nonblocking(true).expect("it is a socket");
            let stream = tokio::net::TcpStream::from_std(stream).expect("it is a socket");
            if address.is_empty() { echo_task(stream).await } else { ask_task(stream).await }
        };
        runtime.expect("there is a runtime").block_on(talk);
    } else if address.is_empty() {
        echo(stream);
    } else {
        ask(stream);
    }
}

fn echo(mut stream: TcpStream) {
    let mut bytes = [0; BYTES];
    while stream.read_exact(&mut bytes).is_ok() && stream.write_all(&bytes).is_ok() {}
}

fn ask(mut stream: TcpStream) {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut bytes = [1; BYTES];
        stream.write_all(&bytes).expect("it listens");
        stream.read_exact(&mut bytes).expect("it answers");
        times.push(start.elapsed().as_nanos() as f64);
    }
    println!("{}", json!({ "p50": median(&mut times) }));
}

async fn echo_task(mut stream: tokio::net::TcpStream) {
    let mut bytes = [0; BYTES];
    while stream.read_exact(&mut bytes).await.is_ok() && stream.write_all(&bytes).await.is_ok() {}
}

async fn ask_task(mut stream: tokio::net::TcpStream) {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut bytes = [1; BYTES];
        stream.write_all(&bytes).await.expect("it listens");
        stream.read_exact(&mut bytes).await.expect("it answers");
        times.push(start.elapsed().as_nanos() as f64);
    }
    println!("{}", json!({ "p50": median(&mut times) }));
}
