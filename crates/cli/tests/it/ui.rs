//! `konklave ui` as a user starts it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Folder, command, konklave};

#[test]
fn command_prints_the_address_of_its_page() {
    let mut child =
        command(&["ui", "--no-open"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut link = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
    let (host, token) =
        link.trim().strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET /api/catalog HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("mutex/central"), "{answer}");
}

#[test]
fn occupied_port_is_refused_as_unavailable() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = konklave(&["ui", "--no-open", "--port", &port]);
    assert_eq!(said.code, 69, "{}", said.err);
    assert!(said.err.contains(&format!("cannot listen on 127.0.0.1 port {port}")), "{}", said.err);
    assert_eq!(konklave(&["ui", "--listen", "everywhere"]).code, 64);
}

/// Ends with the test, however that ends.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(args: &[&str]) -> Ends {
    let mut command = command(args);
    Ends(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn page_shows_a_running_group_and_its_killed_member() {
    if std::env::var("KONKLAVE_NO_BROWSER").is_ok_and(|no| no == "1") {
        return println!("skipped: KONKLAVE_NO_BROWSER=1");
    }
    let folder = Folder::new("live");
    let free: Vec<_> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<_> = free.iter().map(|l| l.local_addr().unwrap().to_string()).collect();
    drop(free);
    let sockets: Vec<_> = (0..3).map(|i| folder.file(&format!("{i}.sock"))).collect();
    let agents: Vec<Ends> = (0..3)
        .map(|i| {
            start(&[
                "agent",
                "--name",
                &format!("n{i}"),
                "--peers",
                &addresses.join(","),
                "--listen",
                &addresses[i],
                "--socket",
                &sockets[i],
                "--data-dir",
                &folder.file(&format!("{i}.data")),
            ])
        })
        .collect();
    let ready = |socket: &String| {
        let said = konklave(&["status", "--socket", socket, "--format", "json"]);
        said.out.contains("\"primary\"")
    };
    let begin = Instant::now();
    while !sockets.iter().all(ready) {
        assert!(begin.elapsed() < Duration::from_secs(30), "no group");
        std::thread::sleep(Duration::from_millis(50));
    }
    let _holder = start(&["lock", "--socket", &sockets[0], "nightly", "--", "sleep", "100"]);
    let mut page = command(&["ui", "--no-open", "--agent", &sockets.join(",")]);
    let mut page = Ends(page.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut link = String::new();
    BufReader::new(page.0.stdout.take().unwrap()).read_line(&mut link).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let done = Command::new("node")
        .arg("journeys.mjs")
        .current_dir(root.join("crates/web/tests/browser"))
        .env("KONKLAVE_LINK", link.trim())
        .env("KONKLAVE_SHOTS", root.join("target/workbench"))
        .env("KONKLAVE_JOURNEY", "live group")
        .env("KONKLAVE_LIVE", agents[2].0.id().to_string())
        .output()
        .expect("node is there: `cargo xtask test` sets it up; KONKLAVE_NO_BROWSER=1 goes without");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("ok      live group"), "{said}");
}
