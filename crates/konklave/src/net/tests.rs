use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::encode_hello;
use super::link::tests::hello;
use crate::wire::{Hello, VERSION};
use crate::{Node, Timings};

const LONG: Duration = Duration::from_secs(30);
/// The length of a record without frames.
const EMPTY: usize = 16;

async fn three() -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for id in 0..3 {
        let builder = Node::builder().id(id).listen("127.0.0.1:0").timings(Timings::fast());
        let builder = match nodes.first().and_then(Node::address) {
            Some(first) => builder.seeds([first.to_string()]),
            None => builder.found_alone(),
        };
        nodes.push(builder.join().await.unwrap());
    }
    nodes
}

/// A connection to `node` from outside the group.
async fn stranger(node: &Node) -> TcpStream {
    let mut stream = TcpStream::connect(node.address().unwrap()).await.unwrap();
    greet(&mut stream).await;
    stream
}

async fn greet(stream: &mut TcpStream) {
    let ours = Hello {
        version: VERSION,
        cluster: "konklave".into(),
        id: 77,
        key: 77,
        name: "stranger".into(),
        address: "127.0.0.1:9".into(),
        lease: Timings::fast().lease.as_micros() as u64,
        ..hello(77)
    };
    stream.write_all(&encode_hello(&ours)).await.unwrap();
    let mut head = [0; 8];
    stream.read_exact(&mut head).await.unwrap();
    let mut theirs = vec![0; u16::from_le_bytes([head[6], head[7]]).into()];
    stream.read_exact(&mut theirs).await.unwrap();
    stream.write_all(&[0]).await.unwrap();
    stream.read_exact(&mut [0]).await.unwrap();
}

/// The leader sends by its own clock, followers by the leader's; both must check connections without other
/// traffic.
#[tokio::test]
async fn silent_peer_gets_signs_of_life_and_is_dropped() {
    let nodes = three().await;
    // Until the heartbeats have converged.
    tokio::time::sleep(Timings::fast().heartbeat * 8).await;
    for node in &nodes {
        let mut stream = stranger(node).await;
        let mut signs = 0;
        let ended = async {
            while let Ok(length) = stream.read_u32_le().await {
                signs += usize::from(length as usize == EMPTY);
                let mut record = vec![0; length as usize];
                if stream.read_exact(&mut record).await.is_err() {
                    break;
                }
            }
        };
        timeout(LONG, ended).await.expect("it is given up");
        assert!(signs > 0, "{:?}: it is told that we live", node.id());
    }
}

/// A long record over a slow network: each part is a sign of life.
#[tokio::test]
async fn slow_long_record_counts_as_sign_of_life() {
    let quick = Timings { silence: Duration::from_millis(300), ..Timings::fast() };
    let node = Node::builder().id(0).listen("127.0.0.1:0").timings(quick).found_alone();
    let node = node.join().await.unwrap();
    for (slowly, stays) in [(true, true), (false, false)] {
        let mut stream = stranger(&node).await;
        stream.write_all(&1000_u32.to_le_bytes()).await.unwrap();
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if slowly {
                let _ = stream.write_all(&[0]).await;
            }
        }
        let mut read = [0; 1 << 10];
        let ended = loop {
            match stream.try_read(&mut read) {
                Ok(0) => break true,
                Ok(_) => {}
                Err(error) => break error.kind() != std::io::ErrorKind::WouldBlock,
            }
        };
        assert_eq!(ended, !stays, "slowly: {slowly}");
    }
}

#[test]
fn name_of_several_machines_is_recognised() {
    let several = |places: &[&str]| {
        let places: Vec<_> = places.iter().map(|place| place.parse().unwrap()).collect();
        super::dial::stands_for_several(&places)
    };
    assert!(!several(&["127.0.0.1:1"]));
    assert!(!several(&["[::1]:1", "127.0.0.1:1"]));
    assert!(several(&["10.0.0.1:1", "10.0.0.2:1"]));
    assert!(several(&["10.0.0.1:1", "[fd00::1]:1", "[fd00::2]:1"]));
}

/// Without protection, a false member could join, and anyone on the way could read along.
#[tokio::test]
async fn other_machine_is_not_called_unprotected() {
    let there =
        Node::builder().timings(Timings::fast()).listen("127.0.0.1:0").seeds(["198.51.100.1:7400"]);
    let refused = there.start().await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("198.51.100.1:7400 is another machine"), "{refused}");
}

#[tokio::test]
async fn founders_must_be_more_than_half_of_seeds() {
    let of_three = |n| {
        let seeds = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"];
        Node::builder().listen("127.0.0.1:0").seeds(seeds).founders(n).start()
    };
    let refused = of_three(1).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("the number of founders is 1, with 3 seeds"), "{refused}");
    assert!(of_three(2).await.is_ok());
}

/// The cause that ended one connection may end the next one, too.
#[tokio::test]
async fn peer_that_ends_each_connection_is_called_less_and_less() {
    for says in [&[0xff; 4][..], &[]] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = listener.local_addr().unwrap().to_string();
        let builder =
            Node::builder().timings(Timings::fast()).id(0).listen("127.0.0.1:0").seeds([there]);
        let node = builder.start().await.unwrap();
        let mut calls = 0;
        let answers = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                greet(&mut stream).await;
                calls += 1;
                // Announces a record longer than any may be.
                stream.write_all(says).await.unwrap();
                stream.shutdown().await.unwrap();
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        };
        let _ = timeout(Duration::from_secs(1), answers).await;
        assert!((2..16).contains(&calls), "{calls} with {says:?}");
        drop(node);
    }
}

/// The process that answers at the founders' common name may be this node itself. That does not make it the
/// only founder.
#[tokio::test]
async fn name_of_several_founds_nothing_without_number_of_founders() {
    for several in [false, true] {
        // Nobody listens there.
        let builder = Node::builder().listen("127.0.0.1:0").seeds(["127.0.0.1:1"]);
        let node = builder.start().await.unwrap();
        let missing = node.shared().with(|core, _| {
            if several {
                core.seed_is_several("all.test:1");
            }
            core.seed_is(0, core.me());
            core.what_is_missing()
        });
        assert_eq!(missing.contains("all.test:1 stands for several"), several, "{missing}");
        assert_eq!(missing.is_empty(), !several, "{missing}");
    }
}
