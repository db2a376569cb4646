//! Tests the receiving side with raw sockets.

use std::time::Duration;

use konklave_process::{AnyData, ProcessId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::*;
use crate::codec::{self, CodecError, Hello};
use crate::transport::Link;
use crate::transport::sample::sample;
use crate::{Trouble, Warning};

const LIMIT: usize = 200;

/// Records what the transport reports.
#[derive(Default)]
struct RecordedEvents {
    closed: Mutex<Vec<(Link, u64)>>,
    troubles: Mutex<Vec<Trouble>>,
}

impl TransportEvents for RecordedEvents {
    fn lost(&self, id: u64) {
        panic!("message {id} fits into a frame");
    }
    fn closed(&self, link: Link, last: u64) {
        self.closed.lock().unwrap().push((link, last));
    }
    fn warn(&self, warning: Warning) {
        self.troubles.lock().unwrap().push(warning.trouble);
    }
}

fn network(n: usize) -> (Network, Arc<RecordedEvents>) {
    let recorded = Arc::new(RecordedEvents::default());
    (Network::new(Group::of(n), LIMIT, sample(), recorded.clone()), recorded)
}

fn end(p: u32, incarnation: u32) -> End {
    End { process: ProcessId(p), incarnation }
}

async fn attach(network: &Network, me: End) -> (Inbox, Outlet) {
    network.attach(me.process.0 as usize, me).await.unwrap()
}

async fn next(inbox: &mut Inbox) -> Arrival {
    let next = timeout(Duration::from_secs(5), inbox.next()).await;
    next.expect("something arrives in time").expect("the inbox is open")
}

async fn next_message(inbox: &mut Inbox) -> (u32, u64, String) {
    loop {
        if let Arrival::Message { from, id, message } = next(inbox).await {
            return (from.0, id, message.get::<String>().clone());
        }
    }
}

fn parcel(id: u64, message: &str) -> OutgoingMessage {
    OutgoingMessage { to: 0, id, message: AnyData::new(message.to_owned()) }
}

fn frame(sender: u32, id: u64, message: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(ProcessId(sender), id, &message, LIMIT, &mut bytes).unwrap();
    bytes
}

/// Sends a valid hello as p1 to p0, and then `bytes`; returns the messages that arrive and the warnings.
async fn say(bytes: &[u8]) -> (Vec<u64>, Vec<Trouble>) {
    let (network, recorded) = network(2);
    let (mut inbox, _outlet) = attach(&network, end(0, 0)).await;
    let hello =
        Hello { group: network.0.number, sender: end(1, 0), receiver: end(0, 0), connection: 1 };
    let mut stream = TcpStream::connect(network.addresses()[0]).await.unwrap();
    stream.write_all(&hello.encode()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut arrived = Vec::new();
    let link = loop {
        match next(&mut inbox).await {
            Arrival::Message { id, .. } => arrived.push(id),
            Arrival::End(link) => break link,
        }
    };
    assert_eq!((link.sender, link.receiver, link.connection), (end(1, 0), end(0, 0), 1));
    let troubles = std::mem::take(&mut *recorded.troubles.lock().unwrap());
    (arrived, troubles)
}

#[tokio::test]
async fn invalid_frame_ends_the_connection_after_the_frames_before_it() {
    let good = [frame(1, 1, "a"), frame(1, 2, "b")].concat();
    let trouble = |error| Trouble::Frame { from: ProcessId(1), error };
    assert_eq!(say(&good).await, (vec![1, 2], vec![]));
    let forged = [good.clone(), frame(0, 3, "c"), frame(1, 4, "d")].concat();
    let expected = vec![trouble(CodecError::Sender(ProcessId(0)))];
    assert_eq!(say(&forged).await, (vec![1, 2], expected));
    let oversized = [good.clone(), 201u32.to_be_bytes().to_vec()].concat();
    let expected = vec![trouble(CodecError::TooLong { len: 201, limit: LIMIT })];
    assert_eq!(say(&oversized).await, (vec![1, 2], expected));
    let cut = [good.clone(), frame(1, 3, "c")[..9].to_vec()].concat();
    assert_eq!(say(&cut).await, (vec![1, 2], vec![Trouble::Truncated(ProcessId(1))]));
    let mut not_text = frame(1, 3, "c");
    *not_text.last_mut().unwrap() = 0xff;
    let (arrived, troubles) = say(&[good, not_text].concat()).await;
    assert_eq!(arrived, [1, 2]);
    assert!(matches!(troubles[..], [Trouble::Frame { error: CodecError::Body(_), .. }]));
}

#[tokio::test]
async fn hello_must_name_this_group_a_member_and_this_incarnation() {
    for (sender, receiver, group) in [
        (end(7, 0), end(0, 0), 0),
        (end(1, 0), end(1, 0), 0),
        (end(1, 0), end(0, 1), 0),
        (end(1, 0), end(0, 0), 1),
    ] {
        let (network, recorded) = network(2);
        let (_inbox, _outlet) = attach(&network, end(0, 0)).await;
        let group_number = network.0.number ^ group;
        let hello = Hello { group: group_number, sender, receiver, connection: 1 };
        let mut stream = TcpStream::connect(network.addresses()[0]).await.unwrap();
        stream.write_all(&hello.encode()).await.unwrap();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
        let expected = match (sender.process.0, group) {
            (7, _) => Trouble::Stranger(ProcessId(7)),
            (_, 1) => Trouble::OtherGroup,
            _ => Trouble::NotForUs(ProcessId(1)),
        };
        assert_eq!(*recorded.troubles.lock().unwrap(), [expected]);
    }
}

#[tokio::test]
async fn messages_of_a_channel_keep_their_order() {
    let (network, recorded) = network(2);
    let (mut inbox, mut own) = attach(&network, end(0, 0)).await;
    let (_other, mut outlet) = attach(&network, end(1, 0)).await;
    for id in 0..3000 {
        outlet.send(parcel(id, "x"));
    }
    for id in 0..3000 {
        assert_eq!(next_message(&mut inbox).await, (1, id, "x".to_owned()));
    }
    own.send(parcel(9, "to myself"));
    assert_eq!(next_message(&mut inbox).await, (0, 9, "to myself".to_owned()));
    // A message goes out even if its sender is gone right after sending it.
    outlet.send(parcel(3000, "last words"));
    drop(outlet);
    assert_eq!(next_message(&mut inbox).await, (1, 3000, "last words".to_owned()));
    assert!(matches!(next(&mut inbox).await, Arrival::End(_)));
    assert!(recorded.troubles.lock().unwrap().is_empty());
}

#[tokio::test]
async fn restarted_peer_is_reached_through_a_new_connection() {
    let (network, recorded) = network(2);
    let (mut inbox, _) = attach(&network, end(0, 0)).await;
    let (_other, mut outlet) = attach(&network, end(1, 5)).await;
    outlet.send(parcel(1, "first"));
    assert_eq!(next_message(&mut inbox).await.1, 1);
    network.detach(0);
    drop(inbox);
    outlet.send(parcel(2, "into the void"));
    sleep(Duration::from_millis(20)).await;
    let (mut inbox, _) = attach(&network, end(0, 1)).await;
    outlet.send(parcel(3, "again"));
    assert_eq!(next_message(&mut inbox).await, (1, 3, "again".to_owned()));
    let closed = recorded.closed.lock().unwrap().clone();
    let link = |incarnation, connection| Link {
        sender: end(1, 5),
        receiver: end(0, incarnation),
        connection,
    };
    assert_eq!(closed, [(link(0, 1), 1)]);
}

#[tokio::test]
async fn writer_retries_until_the_peer_listens() {
    let (network, _) = network(2);
    let (_other, mut outlet) = attach(&network, end(1, 0)).await;
    // An address at which no process listens yet.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    network.0.enter(0, Some(Entry { address, end: end(0, 0) }));
    outlet.send(parcel(1, "hello?"));
    sleep(Duration::from_millis(30)).await;
    let (mut inbox, _) = attach(&network, end(0, 0)).await;
    assert_eq!(next_message(&mut inbox).await.1, 1);
}
