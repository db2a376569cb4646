//! Tests with real datagrams on the loopback interface.

use konklave_process::AnyData;
use tokio::time::timeout;

use super::*;
use crate::transport::Link;
use crate::transport::sample::sample;

/// Records what the transport reports.
#[derive(Default)]
struct RecordedEvents {
    lost: Mutex<Vec<u64>>,
    troubles: Mutex<Vec<Trouble>>,
}

impl TransportEvents for RecordedEvents {
    fn lost(&self, id: u64) {
        self.lost.lock().unwrap().push(id);
    }
    fn closed(&self, _: Link, _: u64) {}
    fn warn(&self, warning: Warning) {
        self.troubles.lock().unwrap().push(warning.trouble);
    }
}

type Ends = (Inbox, Outlet);

async fn network(n: usize, multicast: bool) -> (Network, Arc<RecordedEvents>, Vec<Ends>) {
    let recorded = Arc::new(RecordedEvents::default());
    let network =
        Network::new(Group::of(n), 1 << 20, multicast, sample(), recorded.clone()).unwrap();
    let end = |p: usize| End { process: ProcessId(p as u32), incarnation: 0 };
    let ends = (0..n).map(|p| network.attach(p, end(p)).unwrap()).collect();
    (network, recorded, ends)
}

fn parcel(to: usize, id: u64, text: &str) -> OutgoingMessage {
    OutgoingMessage { to, id, message: AnyData::new(text.to_owned()) }
}

async fn next(inbox: &mut Inbox) -> (u32, u64, String) {
    match timeout(Duration::from_secs(5), inbox.next()).await {
        Ok(Some(Arrival::Message { from, id, message })) => {
            (from.0, id, message.get::<String>().clone())
        }
        Ok(_) => panic!("the inbox is closed"),
        Err(_) => panic!("nothing arrives"),
    }
}

#[tokio::test]
async fn message_arrives_once_with_its_own_number() {
    for multicast in [false, true] {
        let (_network, recorded, mut ends) = network(4, multicast).await;
        for to in 1..4 {
            ends[0].1.send(parcel(to, 10 + to as u64, "to all"));
        }
        ends[0].1.send(parcel(2, 20, "to one"));
        ends[0].1.flush();
        for (to, end) in ends.iter_mut().enumerate().skip(1) {
            let mut expected = vec![(0, 10 + to as u64, "to all".to_owned())];
            if to == 2 {
                expected.push((0, 20, "to one".to_owned()));
            }
            let mut heard = Vec::new();
            for _ in &expected {
                heard.push(next(&mut end.0).await);
            }
            // Multicast and unicast datagrams arrive on different sockets, in any order.
            heard.sort_unstable();
            assert_eq!(heard, expected, "multicast: {multicast}");
        }
        sleep(2 * OVERDUE).await;
        assert!(
            recorded.lost.lock().unwrap().is_empty()
                && recorded.troubles.lock().unwrap().is_empty()
        );
    }
}

#[tokio::test]
async fn message_that_does_not_fit_is_lost_with_a_warning() {
    let (_network, recorded, mut ends) = network(2, false).await;
    ends[0].1.send(parcel(1, 1, &"x".repeat(70_000)));
    ends[0].1.send(parcel(1, 2, "short"));
    ends[0].1.flush();
    assert_eq!(next(&mut ends[1].0).await, (0, 2, "short".to_owned()));
    assert_eq!(*recorded.lost.lock().unwrap(), [1]);
    let troubles = recorded.troubles.lock().unwrap();
    let [trouble] = &troubles[..] else { panic!("{troubles:?}") };
    assert!(trouble.to_string().contains("is longer than 65507"), "{trouble}");
}

#[tokio::test]
async fn message_to_a_closed_socket_is_lost_after_a_while() {
    let (network, recorded, mut ends) = network(2, false).await;
    // The socket of the second member is closed.
    drop(ends.remove(1));
    ends[0].1.send(parcel(1, 1, "into the void"));
    ends[0].1.flush();
    sleep(2 * OVERDUE).await;
    assert_eq!(*recorded.lost.lock().unwrap(), [1]);
    // A detached member has no address, so the loss is known at once.
    network.detach(1);
    ends[0].1.send(parcel(1, 2, "to nobody"));
    ends[0].1.flush();
    assert_eq!(*recorded.lost.lock().unwrap(), [1, 2]);
}

#[tokio::test]
async fn datagrams_of_strangers_and_other_runs_are_dropped() {
    let (network, recorded, mut ends) = network(2, false).await;
    let (other, _notes, _ends) = self::network(2, false).await;
    let target = network.addresses()[1];
    let stranger = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let of_run = |run| {
        let receivers = vec![(1, 7)];
        let sender = ProcessId(0);
        Datagram { run, sender, receivers: &receivers, body: b"\x03abc" }.encode()
    };
    stranger.send_to(b"GET / HTTP/1.1", target).unwrap();
    stranger.send_to(&of_run(other.mesh.number), target).unwrap();
    stranger.send_to(&of_run(network.mesh.number)[..20], target).unwrap();
    let mut broken = of_run(network.mesh.number);
    let last = broken.len() - 1;
    broken[last] = 0xff;
    stranger.send_to(&broken, target).unwrap();
    ends[0].1.send(parcel(1, 9, "ours"));
    ends[0].1.flush();
    assert_eq!(next(&mut ends[1].0).await, (0, 9, "ours".to_owned()));
    let troubles = recorded.troubles.lock().unwrap();
    assert!(matches!(troubles[..], [Trouble::Hello(_), Trouble::Frame { .. }]), "{troubles:?}");
}
