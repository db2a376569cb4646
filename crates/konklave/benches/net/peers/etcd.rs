//! etcd: its lock service, with a lease per client, through its HTTP gateway.
//!
//! The gateway speaks gRPC to its own server: about 0.1 ms more than gRPC from outside.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::wire::{call, program, strange};
use super::{Client, Peer};

pub(super) struct Etcd;

impl Peer for Etcd {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn package(&self) -> &'static str {
        "etcd-server"
    }

    fn program(&self) -> Option<PathBuf> {
        program("etcd")
    }

    fn ports(&self) -> usize {
        2
    }

    fn prepare(&self, i: usize, folder: &Path, ports: &[Vec<u16>]) -> io::Result<Command> {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let (clients, others) = (url(ports[i][0]), url(ports[i][1]));
        let all = ports.iter().enumerate().map(|(i, p)| format!("n{i}={}", url(p[1])));
        let all = all.collect::<Vec<_>>().join(",");
        let mut command = Command::new("etcd");
        command.args(["--name", &format!("n{i}"), "--log-level", "error"]);
        command.arg("--data-dir").arg(folder.join("data"));
        command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &others, "--initial-advertise-peer-urls", &others]);
        command.args(["--initial-cluster", &all, "--initial-cluster-state", "new"]);
        Ok(command)
    }

    fn connect(
        &self,
        ports: &[u16],
        lease: Duration,
        patience: Duration,
    ) -> io::Result<Box<dyn Client>> {
        let port = *ports.first().ok_or(io::ErrorKind::NotFound)?;
        let mut http = Http(BufReader::new(call(port, patience)?));
        let granted =
            http.ask("/v3/lease/grant", &json!({ "TTL": lease.as_secs().to_string() }))?;
        let lease = granted["ID"].as_str().ok_or_else(|| strange(granted.to_string()))?.to_owned();
        Ok(Box::new(Session { http, lease, held: None }))
    }

    fn leader(&self, ports: &[u16]) -> io::Result<Option<usize>> {
        for (i, port) in ports.iter().enumerate() {
            let mut http = Http(BufReader::new(call(*port, Duration::from_secs(5))?));
            let status = http.ask("/v3/maintenance/status", &json!({}))?;
            if status["leader"].is_string() && status["leader"] == status["header"]["member_id"] {
                return Ok(Some(i));
            }
        }
        Err(strange("no etcd says that it leads"))
    }
}

struct Session {
    http: Http,
    lease: String,
    held: Option<Value>,
}

impl Client for Session {
    fn acquire(&mut self, lock: &str) -> io::Result<()> {
        let wish = json!({ "name": base64(lock.as_bytes()), "lease": self.lease });
        let granted = self.http.ask("/v3/lock/lock", &wish)?;
        self.held = Some(granted["key"].clone());
        Ok(())
    }

    fn release(&mut self) -> io::Result<()> {
        let key = self.held.take().ok_or_else(|| strange("nothing to release"))?;
        self.http.ask("/v3/lock/unlock", &json!({ "key": key })).map(drop)
    }
}

/// A persistent connection.
struct Http(BufReader<TcpStream>);

impl Http {
    fn ask(&mut self, path: &str, question: &Value) -> io::Result<Value> {
        let body = question.to_string();
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(text.as_bytes())?;
        let status = self.line()?;
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(": ") {
                Some(("content-length", n)) => length = n.parse().map_err(io::Error::other)?,
                Some(("transfer-encoding", how)) => chunked = how == "chunked",
                Some(_) => {}
                None => break,
            }
        }
        let body = if chunked { self.chunks()? } else { self.bytes(length)? };
        let text = String::from_utf8_lossy(&body);
        if !status.contains(" 200 ") {
            return Err(strange(format!("{status}: {text}")));
        }
        Ok(serde_json::from_str(&text)?)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().into())
    }

    fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length.min(1 << 20)];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
            all.extend(self.bytes(length)?);
            self.line()?;
            if length == 0 {
                return Ok(all);
            }
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = char::from(LETTERS[(bits >> (18 - 6 * i)) as usize & 63]);
            text.push(if i <= three.len() { letter } else { '=' });
        }
    }
    text
}
