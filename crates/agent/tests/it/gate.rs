//! The fence in front of a real HTTP service.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use axum::Router;
use axum::extract::Extension;
use axum::routing::put;
use konklave::fence::http::FenceLayer;
use konklave::{FenceGate, Token};

/// Puts something, with these headers; the status and the body.
fn send(address: SocketAddr, headers: &[String]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let request = format!("PUT /report HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    (status, body)
}

#[test]
fn a_service_behind_the_gate_never_sees_a_holder_of_the_past() {
    let tokens = [7, 8, 9].map(Token::from_u128);
    let layer = FenceLayer::new(FenceGate::new(tokens[0]));
    let service = Router::new()
        .route("/report", put(|Extension(token): Extension<Token>| async move { token.to_hex() }))
        .layer(layer.clone());
    let (told, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            told.send(listener.local_addr().expect("bound")).expect("the test waits");
            axum::serve(listener, service).await.expect("it serves");
        });
    });
    let address = address.recv().expect("bound");
    let header = |token: Token| format!("Konklave-Token: {token}");
    let [past, old, new] = tokens;
    assert_eq!(send(address, &[header(old)]), (200, old.to_hex()));
    assert!(layer.is_current(old));
    assert_eq!(send(address, &[header(new)]), (200, new.to_hex()));
    assert_eq!(send(address, &[header(new)]), (200, new.to_hex()), "the same holder, again");
    assert!(!layer.is_current(old) && layer.highest() == new);
    for late in [old, past] {
        let (status, body) = send(address, &[header(late)]);
        assert_eq!(status, 409, "{body}");
        assert!(body.contains("is stale"), "{body}");
    }
    for wrong in [vec![], vec!["Konklave-Token: x".into()], vec![header(new), header(old)]] {
        assert_eq!(send(address, &wrong).0, 400, "{wrong:?}");
    }
    // The refused request has changed nothing.
    assert_eq!(send(address, &[header(new)]).0, 200);
}
