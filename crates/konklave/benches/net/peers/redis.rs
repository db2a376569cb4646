//! Redis, with Redlock over three independent servers: two of three grants count.
//!
//! As in <https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/>, with all servers asked
//! at the same time, and a pause of 1 to 3 ms after a refusal.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::wire::{call, program, strange};
use super::{Client, Peer};

pub(super) struct Redlock;

/// Releases the lock only if it is ours.
const UNLOCK: &str = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) \
                      else return 0 end";

impl Peer for Redlock {
    fn name(&self) -> &'static str {
        "redlock"
    }

    fn package(&self) -> &'static str {
        "redis-server"
    }

    fn program(&self) -> Option<PathBuf> {
        program("redis-server")
    }

    fn ports(&self) -> usize {
        1
    }

    fn prepare(&self, i: usize, folder: &Path, ports: &[Vec<u16>]) -> io::Result<Command> {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.arg("--port").arg(ports[i][0].to_string()).arg("--dir").arg(folder);
        Ok(command)
    }

    fn connect(
        &self,
        ports: &[u16],
        lease: Duration,
        patience: Duration,
    ) -> io::Result<Box<dyn Client>> {
        let links: Vec<Option<Link>> =
            ports.iter().map(|port| Link::new(*port, patience).ok()).collect();
        let mut number = [0; 8];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut number)?;
        let seed = u64::from_le_bytes(number);
        let mut client = Redis {
            links,
            seed,
            value: format!("{seed:016x}"),
            lease,
            patience,
            held: None,
            unlock: String::new(),
        };
        let loaded = client.ask(&command(&["SCRIPT", "LOAD", UNLOCK]));
        let Some(script) = loaded.into_iter().flatten().next() else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        client.unlock = script;
        Ok(Box::new(client))
    }

    /// There is no leader: any server will do.
    fn leader(&self, _: &[u16]) -> io::Result<Option<usize>> {
        Ok(Some(0))
    }
}

struct Redis {
    links: Vec<Option<Link>>,
    seed: u64,
    value: String,
    lease: Duration,
    patience: Duration,
    held: Option<String>,
    unlock: String,
}

impl Redis {
    /// Asks all servers at once; returns the answer of each, if it gives one.
    fn ask(&mut self, question: &[u8]) -> Vec<Option<String>> {
        for link in &mut self.links {
            if link.as_mut().is_some_and(|l| l.stream.get_mut().write_all(question).is_err()) {
                *link = None;
            }
        }
        self.links.iter_mut().map(|link| answer(link.as_mut())).collect()
    }

    fn let_go(&mut self, lock: &str) {
        let unlock = command(&["EVALSHA", &self.unlock.clone(), "1", lock, &self.value.clone()]);
        self.ask(&unlock);
    }

    /// One to three milliseconds at random, so that two clients do not collide again.
    fn pause(&mut self) -> Duration {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        Duration::from_micros(1000 + self.seed % 2000)
    }
}

fn answer(link: Option<&mut Link>) -> Option<String> {
    link.and_then(|link| link.answer().ok().flatten())
}

impl Client for Redis {
    fn acquire(&mut self, lock: &str) -> io::Result<()> {
        let lease = self.lease.as_millis().to_string();
        let set = command(&["SET", lock, &self.value, "NX", "PX", &lease]);
        let end = Instant::now() + self.patience;
        while Instant::now() < end {
            let grants = self.ask(&set).iter().flatten().filter(|a| *a == "OK").count();
            if grants * 2 > self.links.len() {
                self.held = Some(lock.into());
                return Ok(());
            }
            self.let_go(lock);
            thread::sleep(self.pause());
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    fn release(&mut self) -> io::Result<()> {
        let Some(lock) = self.held.take() else { return Err(strange("nothing to release")) };
        self.let_go(&lock);
        Ok(())
    }
}

/// A connection to one server.
struct Link {
    stream: BufReader<TcpStream>,
}

impl Link {
    fn new(port: u16, patience: Duration) -> io::Result<Self> {
        Ok(Self { stream: BufReader::new(call(port, patience)?) })
    }

    /// The next answer, as far as it is needed here.
    fn answer(&mut self) -> io::Result<Option<String>> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| strange("an empty answer"))?;
        match kind {
            "+" | ":" => Ok(Some(rest.into())),
            "-" => Err(strange(rest)),
            "$" if rest == "-1" => Ok(None),
            "$" => self.line().map(Some),
            _ => Err(strange(line)),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().into())
    }
}

/// A command in Redis' protocol.
fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    bytes.into_bytes()
}
