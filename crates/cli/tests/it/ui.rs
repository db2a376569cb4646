//! `konklave ui` as a user starts it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use super::{command, konklave};

#[test]
fn it_prints_the_address_of_a_page() {
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
fn a_port_that_is_taken_is_unavailable() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = konklave(&["ui", "--no-open", "--port", &port]);
    assert_eq!(said.code, 69, "{}", said.err);
    assert!(said.err.contains(&format!("cannot listen on 127.0.0.1 port {port}")), "{}", said.err);
    assert_eq!(konklave(&["ui", "--listen", "everywhere"]).code, 64);
}
