//! A workbench for one test, and a client that sends exactly the given bytes.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use konklave_catalog::Catalog;
use konklave_web::{Options, Workbench};
use serde_json::Value;

/// A workbench that answers until the test is over.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) link: String,
    _runtime: tokio::runtime::Runtime,
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Why it was refused.
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }
}

impl Server {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listen = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let catalog: &'static Catalog = Box::leak(Box::new(Catalog::builtin()));
        let agents = vec!["/nowhere/agent.sock".into()];
        let options = Options { catalog, listen, port: 0, agents };
        let workbench = runtime.block_on(Workbench::open(options)).unwrap();
        let (address, link) = (workbench.address(), workbench.link());
        runtime.spawn(workbench.serve());
        Self { address, link, _runtime: runtime }
    }

    pub(crate) fn token(&self) -> &str {
        self.link.split("token=").nth(1).unwrap()
    }

    /// Asks as the page does.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        let authorization = format!("Authorization: Bearer {}", self.token());
        let host = format!("Host: {}", self.address);
        self.say(method, path, &[&host, &authorization], body)
    }

    /// Runs these scenarios.
    pub(crate) fn run(&self, scenarios: &str) -> Answer {
        self.ask("POST", "/api/run", &format!("{{\"scenarios\":[{scenarios}]}}"))
    }

    /// Says exactly this.
    pub(crate) fn say(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut stream = self.send(method, path, headers, body);
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// Says it, and leaves the answer to be read.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let headers = headers.join("\r\n");
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        // A server may close the connection before it has read the whole request.
        let _ = stream.write_all(text.as_bytes());
        stream
    }
}
