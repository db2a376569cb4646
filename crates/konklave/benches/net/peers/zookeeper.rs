//! `ZooKeeper`: the lock of its recipes. Each client creates a numbered node that lives as long as its
//! session, and waits for the node before it to go.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::wire::{call, program, receive, send, strange};
use super::{Client, Peer};

pub(super) struct ZooKeeper;

const JAR: &str = "/usr/share/java/zookeeper.jar";
const MAIN: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

impl Peer for ZooKeeper {
    fn name(&self) -> &'static str {
        "zookeeper"
    }

    fn package(&self) -> &'static str {
        "zookeeper"
    }

    fn program(&self) -> Option<PathBuf> {
        program("java").filter(|_| Path::new(JAR).is_file())
    }

    fn ports(&self) -> usize {
        3
    }

    fn prepare(&self, i: usize, folder: &Path, ports: &[Vec<u16>]) -> io::Result<Command> {
        let mut settings = format!(
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\nadmin.enableServer=false\nmaxClientCnxns=0\n\
             clientPortAddress=127.0.0.1\nclientPort={}\ndataDir={}\n",
            ports[i][0],
            folder.display()
        );
        for (i, p) in ports.iter().enumerate() {
            settings.push_str(&format!("server.{}=127.0.0.1:{}:{}\n", i + 1, p[1], p[2]));
        }
        let file = folder.join("zoo.cfg");
        fs::write(&file, settings)?;
        fs::write(folder.join("myid"), (i + 1).to_string())?;
        let mut command = Command::new("java");
        command.args(["-cp", JAR, MAIN]).arg(file);
        Ok(command)
    }

    fn connect(
        &self,
        ports: &[u16],
        lease: Duration,
        patience: Duration,
    ) -> io::Result<Box<dyn Client>> {
        let port = *ports.first().ok_or(io::ErrorKind::NotFound)?;
        let mut stream = call(port, patience)?;
        // Version, last change seen, session timeout, no session yet, no password.
        let lease = u32::try_from(lease.as_millis()).map_err(io::Error::other)?;
        let hello = [
            &0_u32.to_be_bytes()[..],
            &0_u64.to_be_bytes(),
            &lease.to_be_bytes(),
            &0_u64.to_be_bytes(),
            &16_u32.to_be_bytes(),
            &[0; 16],
        ];
        send(&mut stream, &hello.concat())?;
        let answer = receive(&mut stream)?;
        if answer.get(4..8).is_none_or(|timeout| timeout == [0; 4]) {
            return Err(strange("no session"));
        }
        // Often enough to keep the session alive, and to notice a timeout.
        stream.set_read_timeout(Some(patience.min(Duration::from_secs(1))))?;
        let (known, held) = (BTreeSet::new(), None);
        Ok(Box::new(Session { stream, patience, number: 0, known, held }))
    }

    fn leader(&self, ports: &[u16]) -> io::Result<Option<usize>> {
        for (i, port) in ports.iter().enumerate() {
            let mut stream = call(*port, Duration::from_secs(5))?;
            stream.write_all(b"srvr")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            if text.contains("Mode: leader") {
                return Ok(Some(i));
            }
        }
        Err(strange("no zookeeper says that it leads"))
    }
}

const CREATE: u32 = 1;
const DELETE: u32 = 2;
const EXISTS: u32 = 3;
const CHILDREN: u32 = 8;
const PING: u32 = 11;
/// Numbers of messages that answer no request: a watched change, and a ping.
const EVENT: i32 = -1;
const PONG: i32 = -2;
/// No such node; the node exists.
const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;

struct Session {
    stream: TcpStream,
    patience: Duration,
    /// The number of the last request.
    number: i32,
    /// The locks that have a parent node.
    known: BTreeSet<String>,
    held: Option<String>,
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u32).to_be_bytes());
    bytes.extend(text.as_bytes());
}

/// The text at `at`, which follows its length, and the position after it.
fn read_text(bytes: &[u8], at: usize) -> io::Result<(String, usize)> {
    let length = number(bytes, at)? as usize;
    let end = (at + 4).saturating_add(length);
    let found = bytes.get(at + 4..end).ok_or_else(|| strange("a short answer"))?;
    Ok((String::from_utf8_lossy(found).into_owned(), end))
}

fn number(bytes: &[u8], at: usize) -> io::Result<i32> {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(i32::from_be_bytes).ok_or_else(|| strange("a short answer"))
}

impl Session {
    /// Sends a request; returns the answer, or the error's number.
    fn ask(&mut self, what: u32, body: &[u8]) -> io::Result<Result<Vec<u8>, i32>> {
        self.number += 1;
        let head = [self.number.to_be_bytes(), what.to_be_bytes()].concat();
        send(&mut self.stream, &[&head[..], body].concat())?;
        let end = Instant::now() + self.patience;
        loop {
            let answer = self.next(end)?;
            if number(&answer, 0)? == self.number {
                let error = number(&answer, 12)?;
                return Ok(if error == 0 { Ok(answer[16..].to_vec()) } else { Err(error) });
            }
        }
    }

    /// The next message; keeps the session alive meanwhile.
    fn next(&mut self, end: Instant) -> io::Result<Vec<u8>> {
        loop {
            let mut first = [0];
            match self.stream.peek(&mut first) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {
                    let answer = receive(&mut self.stream)?;
                    if number(&answer, 0)? != PONG {
                        return Ok(answer);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < end => {
                    let ping = [PONG.to_be_bytes(), PING.to_be_bytes()].concat();
                    send(&mut self.stream, &ping)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Creates a node; if `numbered`, one that belongs to the session and gets a number.
    fn create(&mut self, path: &str, numbered: bool) -> io::Result<Result<String, i32>> {
        let mut body = Vec::new();
        text(&mut body, path);
        body.extend(0_u32.to_be_bytes());
        // Everyone may do everything.
        body.extend(1_u32.to_be_bytes());
        body.extend(31_u32.to_be_bytes());
        text(&mut body, "world");
        text(&mut body, "anyone");
        body.extend(if numbered { 3_u32 } else { 0 }.to_be_bytes());
        match self.ask(CREATE, &body)? {
            Ok(answer) => Ok(Ok(read_text(&answer, 0)?.0)),
            Err(error) => Ok(Err(error)),
        }
    }

    fn children(&mut self, folder: &str) -> io::Result<Vec<String>> {
        let mut body = Vec::new();
        text(&mut body, folder);
        body.push(0);
        let answer = self.ask(CHILDREN, &body)?.map_err(|e| strange(format!("error {e}")))?;
        let (mut at, mut names) = (4, Vec::new());
        for _ in 0..number(&answer, 0)? {
            let (name, after) = read_text(&answer, at)?;
            names.push(name);
            at = after;
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns when the node at `path` is gone.
    fn wait_for_end(&mut self, path: &str) -> io::Result<()> {
        let mut body = Vec::new();
        text(&mut body, path);
        body.push(1);
        match self.ask(EXISTS, &body)? {
            Err(NO_NODE) => return Ok(()),
            Err(error) => return Err(strange(format!("error {error}"))),
            Ok(_) => {}
        }
        let end = Instant::now() + self.patience;
        loop {
            let event = self.next(end)?;
            if number(&event, 0)? == EVENT && read_text(&event, 24)?.0 == path {
                return Ok(());
            }
        }
    }
}

impl Client for Session {
    fn acquire(&mut self, lock: &str) -> io::Result<()> {
        let folder = format!("/{lock}");
        if !self.known.contains(lock) {
            match self.create(&folder, false)? {
                Ok(_) | Err(NODE_EXISTS) => self.known.insert(lock.into()),
                Err(error) => return Err(strange(format!("error {error}"))),
            };
        }
        let made = self.create(&format!("{folder}/n"), true)?;
        let own = made.map_err(|error| strange(format!("error {error}")))?;
        loop {
            let names = self.children(&folder)?;
            let place = names.iter().position(|name| own.ends_with(name.as_str()));
            match place {
                Some(0) => break,
                Some(place) => self.wait_for_end(&format!("{folder}/{}", names[place - 1]))?,
                None => return Err(strange("our node is gone")),
            }
        }
        self.held = Some(own);
        Ok(())
    }

    fn release(&mut self) -> io::Result<()> {
        let own = self.held.take().ok_or_else(|| strange("nothing to release"))?;
        let mut body = Vec::new();
        text(&mut body, &own);
        body.extend((-1_i32).to_be_bytes());
        self.ask(DELETE, &body)?.map(drop).map_err(|error| strange(format!("error {error}")))
    }
}
