//! The floor: what a message there and one back cost with nothing in between.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::report::median;

/// As many bytes as a small message of ours has.
const BYTES: usize = 64;
const ROUNDS: u32 = 20_000;

/// The cores that we may use.
pub(crate) fn cores() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// From now on this thread, and all that it starts, use these cores only.
pub(crate) fn keep_to(cores: &[usize]) {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).unwrap_or_else(|error| eprintln!("cores {cores:?}: {error}"));
}

/// A TCP ping-pong of two threads, each on its core.
pub(crate) fn ping_pong(here: usize, there: usize) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    let echo = thread::spawn(move || {
        keep_to(&[there]);
        let (mut stream, _) = listener.accept().expect("someone calls");
        stream.set_nodelay(true).expect("it is TCP");
        let mut bytes = [0; BYTES];
        while stream.read_exact(&mut bytes).is_ok() {
            stream.write_all(&bytes).expect("it listens");
        }
    });
    let times = thread::spawn(move || {
        keep_to(&[here]);
        let mut stream = TcpStream::connect(address).expect("someone listens");
        stream.set_nodelay(true).expect("it is TCP");
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let mut bytes = [1; BYTES];
            stream.write_all(&bytes).expect("it listens");
            stream.read_exact(&mut bytes).expect("it answers");
            times.push(start.elapsed().as_nanos() as f64);
        }
        median(&mut times)
    });
    let time = times.join().expect("it is measured");
    let _ = echo.join();
    Duration::from_nanos(time as u64)
}

/// The same between two runtimes, as everything here has one: what waiting for a readable socket costs on top.
pub(crate) fn ping_pong_of_runtimes(core: usize) -> Duration {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    fn runtime(core: usize) -> tokio::runtime::Runtime {
        keep_to(&[core]);
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    let echo = thread::spawn(move || {
        runtime(core).block_on(async {
            listener.set_nonblocking(true).expect("it is a socket");
            let listener = tokio::net::TcpListener::from_std(listener).expect("it listens");
            let (mut stream, _) = listener.accept().await.expect("someone calls");
            stream.set_nodelay(true).expect("it is TCP");
            let mut bytes = [0; BYTES];
            while stream.read_exact(&mut bytes).await.is_ok() {
                stream.write_all(&bytes).await.expect("it listens");
            }
        });
    });
    let times = thread::spawn(move || {
        runtime(core).block_on(async {
            let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
            stream.set_nodelay(true).expect("it is TCP");
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                let start = Instant::now();
                let mut bytes = [1; BYTES];
                stream.write_all(&bytes).await.expect("it listens");
                stream.read_exact(&mut bytes).await.expect("it answers");
                times.push(start.elapsed().as_nanos() as f64);
            }
            median(&mut times)
        })
    });
    let time = times.join().expect("it is measured");
    let _ = echo.join();
    Duration::from_nanos(time as u64)
}
