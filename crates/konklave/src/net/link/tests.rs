//! A link, call by call.

use super::*;
use crate::wire::MAX_RECORD;

pub(in crate::net) fn hello(boot: u64) -> Hello {
    let (cluster, name, address) = (String::new(), String::new(), String::new());
    let mutex = "table".into();
    Hello { version: 1, cluster, id: 1, key: 1, boot, name, address, mutex, lease: 0 }
}

fn attach(link: &Link, boot: u64) -> u64 {
    match link.attach(&hello(boot), None, ProcessId(0), Duration::from_secs(1)) {
        Attached::InUse { number, .. } => number,
        _ => panic!("it is the first"),
    }
}

/// Whether the writer has work, and whether that work can wait.
fn work_pending(link: &Link, number: u64) -> Option<bool> {
    match link.poll_writable(number, &Context::from_waker(Waker::noop())) {
        Poll::Ready(can_wait) => Some(can_wait),
        Poll::Pending => None,
    }
}

fn ping(stamp: u64) -> Frame {
    let view = konklave_algorithms::group::ViewId::default();
    Frame::Ping { view, stamp, lifted_sent: 0 }
}

/// The next record: the number of its first frame, and the number of frames.
fn next(link: &Link, number: u64) -> Option<(u64, usize)> {
    let mut record = Vec::new();
    if link.next_record(number, &mut record) != Next::Record {
        assert!(record.is_empty());
        return None;
    }
    let (first, rest) = record.split_first_chunk::<8>().unwrap();
    let (mut rest, mut count) = (&rest[8..], 0);
    while !rest.is_empty() {
        (_, rest) = Frame::decode(rest).unwrap();
        count += 1;
    }
    Some((u64::from_le_bytes(*first), count))
}

#[test]
fn unconfirmed_frames_are_sent_again_on_next_connection() {
    let link = Link::new();
    let first = attach(&link, 7);
    for stamp in 0..3 {
        link.push(&ping(stamp), Flush::Now).unwrap();
        assert_eq!(next(&link, first), Some((stamp + 1, 1)));
    }
    assert_eq!(link.receive(first, 1, None, 1), Some(0), "the other has the first");
    assert!(link.detach(first));
    let second = attach(&link, 7);
    let again: Vec<u64> =
        std::iter::from_fn(|| next(&link, second)).map(|(first, _)| first).collect();
    assert_eq!(again, [2, 3]);
    assert_eq!(link.next_record(second, &mut Vec::new()), Next::Nothing);
    assert_eq!(
        link.next_record(first, &mut Vec::new()),
        Next::Closed,
        "the old connection is out of use"
    );
}

#[test]
fn frame_that_is_too_long_is_not_sent() {
    let link = Link::new();
    let number = attach(&link, 7);
    link.push(&ping(0), Flush::Now).unwrap();
    let long = vec![0; MAX_FRAME + 1];
    assert_eq!(link.push_bytes(&long, Flush::Now), Err(WireError::LongFrame(MAX_FRAME + 1)));
    let peers = Frame::Peers(vec![(1, "x".repeat(MAX_FRAME))]);
    assert!(matches!(link.push(&peers, Flush::Now), Err(WireError::LongFrame(_))));
    link.push(&ping(1), Flush::Now).unwrap();
    assert_eq!(next(&link, number), Some((1, 2)), "the others do");
}

#[test]
fn record_longer_than_buffer_is_sent() {
    let link = Link::new();
    let number = attach(&link, 7);
    let peers = Frame::Peers(vec![(1, "x".repeat(UNCONFIRMED + CHUNK))]);
    link.push(&ping(0), Flush::Now).unwrap();
    link.push(&peers, Flush::Now).unwrap();
    link.push(&ping(1), Flush::Now).unwrap();
    let mut record = Vec::new();
    assert_eq!(link.next_record(number, &mut record), Next::Record);
    assert!((UNCONFIRMED..=MAX_RECORD).contains(&record.len()), "with what came before it");
    assert_eq!(next(&link, number), Some((3, 1)));
}

#[test]
fn few_bytes_are_kept_for_disconnected_peer() {
    let link = Link::new();
    let number = attach(&link, 7);
    assert!(link.detach(number));
    let long = vec![0; 100];
    for _ in 0..5 * UNCONFIRMED_AWAY / long.len() {
        link.push_bytes(&long, Flush::Now).unwrap();
    }
    let state = link.state();
    let unconfirmed = state.bytes + state.open.len();
    assert!(
        (UNCONFIRMED_AWAY / 2..=UNCONFIRMED_AWAY + CHUNK).contains(&unconfirmed),
        "{unconfirmed}"
    );
}

#[test]
fn peer_that_lost_its_state_counts_from_one_again() {
    let link = Link::new();
    let first = attach(&link, 7);
    link.push(&ping(0), Flush::Now).unwrap();
    assert_eq!(next(&link, first), Some((1, 1)));
    assert_eq!(link.receive(first, 1, Some(5), 1), Some(0));
    assert!(link.detach(first));
    let second = attach(&link, 7);
    assert_eq!(link.receive(second, 1, Some(2), 0), Some(0), "it counts from one again");
    assert_eq!(link.receive(second, 1, Some(3), 0), Some(2));
}

#[test]
fn restarted_process_gets_no_old_frames() {
    let link = Link::new();
    let first = attach(&link, 7);
    link.push(&ping(0), Flush::Now).unwrap();
    assert_eq!(link.receive(first, 1, Some(5), 0), Some(0));
    assert!(link.detach(first));
    let second = attach(&link, 8);
    assert_eq!(link.receive(first, 6, Some(9), 0), None, "what is read late is of the one before");
    assert_eq!(next(&link, second), None);
    assert_eq!(link.state().received, 0);
}

#[test]
fn frames_received_before_are_skipped() {
    let link = Link::new();
    let number = attach(&link, 7);
    assert_eq!(link.receive(number, 1, Some(5), 0), Some(0));
    assert_eq!(link.receive(number, 4, Some(4), 0), Some(2));
    assert_eq!(link.receive(number, 0, None, 0), Some(6), "a sign of life is no frame");
    assert_eq!(link.receive(number, 6, Some(6), 0), Some(0));
    assert_eq!(link.receive(number, 9, Some(9), 0), Some(0), "a gap is the group's to mend");
}

#[test]
fn batched_frames_do_not_wake_writer() {
    let link = Link::new();
    let number = attach(&link, 7);
    let woken = |link: &Link| {
        link.wake();
        work_pending(link, number).is_some()
    };
    assert_eq!(work_pending(&link, number), Some(false), "of the connection itself");
    for stamp in 1..BATCH_FRAMES {
        link.push(&ping(stamp), Flush::Batched).unwrap();
        assert!(!woken(&link));
    }
    link.push(&ping(0), Flush::Batched).unwrap();
    assert!(woken(&link), "so many are enough");
    let link = Link::new();
    attach(&link, 7);
    link.push(&ping(0), Flush::Batched).unwrap();
    link.push(&ping(1), Flush::Now).unwrap();
    assert!(woken(&link), "someone waits for the second");
}

#[test]
fn frames_flushed_soon_wait_for_local_tasks_only() {
    let link = Link::new();
    let number = attach(&link, 7);
    link.push(&ping(0), Flush::Soon).unwrap();
    link.push(&ping(1), Flush::Batched).unwrap();
    link.wake();
    assert_eq!(work_pending(&link, number), Some(true), "it is to be written, and can wait");
    assert_eq!(work_pending(&link, number), None, "told once");
    link.push(&ping(2), Flush::Now).unwrap();
    link.wake();
    assert_eq!(work_pending(&link, number), Some(false), "someone waits");
    assert_eq!(next(&link, number), Some((1, 3)), "all in one");
    link.push(&ping(3), Flush::Soon).unwrap();
    link.wake();
    assert_eq!(work_pending(&link, number), Some(true), "counted anew");
    assert!(link.detach(number));
    assert_eq!(work_pending(&link, number), Some(false), "it is out of use");
    let number = attach(&link, 7);
    assert_eq!(work_pending(&link, number), Some(false), "what was not confirmed goes first");
    while next(&link, number).is_some() {}
    link.wake_writer();
    assert_eq!(work_pending(&link, number), Some(false), "there is nothing");
}

#[test]
fn sign_of_life_is_due_without_other_records() {
    let (link, second) = (Link::new(), Duration::from_secs(1));
    link.check_liveness(second);
    let number = attach(&link, 7);
    let said = |link: &Link| next(link, number).map(|(_, count)| count);
    assert_eq!(work_pending(&link, number), Some(false), "of the connection itself");
    assert_eq!(said(&link), None);
    link.check_liveness(second);
    assert_eq!((work_pending(&link, number), said(&link)), (Some(false), Some(0)));
    assert_eq!(said(&link), None, "once");
    link.push(&ping(0), Flush::Batched).unwrap();
    link.check_liveness(second);
    assert_eq!((work_pending(&link, number).is_some(), said(&link)), (true, Some(1)), "instead");
    link.check_liveness(second);
    assert_eq!((work_pending(&link, number), said(&link)), (None, None), "that was one");
    link.check_liveness(second);
    assert!(work_pending(&link, number).is_some());
}

#[test]
fn silent_connection_ends_after_two_checks() {
    let link = Link::new();
    let number = attach(&link, 7);
    link.check_liveness(Duration::from_secs(1000));
    assert_eq!(link.writer_awake(number), Some(true));
    link.cannot_write(number, &Context::from_waker(Waker::noop()));
    link.check_liveness(Duration::ZERO);
    assert_eq!(link.writer_awake(number), Some(true), "it may be we who slept");
    assert!(link.state().blocked_writer.is_some());
    link.check_liveness(Duration::ZERO);
    assert_eq!(link.writer_awake(number), Some(false), "we have heard nothing");
    assert!(work_pending(&link, number).is_some(), "who speaks is told");
    assert!(link.state().blocked_writer.is_none(), "also while it writes");
    assert_eq!(link.writer_awake(number + 1), None, "another is not about this");
    assert_eq!(link.receive(number, 1, None, 0), Some(0));
    assert_eq!(link.writer_awake(number), Some(true), "it was there, unread");
    link.cannot_write(number, &Context::from_waker(Waker::noop()));
    assert_eq!(attach(&link, 8), number + 1);
    assert!(
        link.state().blocked_writer.is_none(),
        "a writer learns that its connection is out of use"
    );
    assert_eq!(link.writer_awake(number), None);
}

#[test]
fn call_of_lower_id_wins() {
    let second = Duration::from_secs(1);
    let link = Link::new();
    assert!(matches!(link.attach(&hello(7), None, ProcessId(1), second), Attached::InUse { .. }));
    assert!(matches!(link.attach(&hello(7), None, ProcessId(0), second), Attached::InUse { .. }));
    assert!(matches!(link.attach(&hello(7), None, ProcessId(1), second), Attached::Redundant));
    let other = Hello { key: 2, ..hello(9) };
    assert!(matches!(link.attach(&other, None, ProcessId(0), second), Attached::IdTaken));
}

/// All members know each other's keys. Only its own static key or certificate proves that a node is it.
#[test]
fn node_keeps_its_identity() {
    let (link, no_time) = (Link::new(), Duration::ZERO);
    let attach = |boot, key, identity| {
        let hello = Hello { key, ..hello(boot) };
        link.attach(&hello, identity, ProcessId(0), no_time)
    };
    assert!(matches!(attach(7, 1, Some("a")), Attached::InUse { .. }));
    for identity in [Some("b"), None] {
        assert!(matches!(attach(8, 1, identity), Attached::Impostor(known) if known == "a"));
    }
    assert!(matches!(attach(9, 1, Some("a")), Attached::InUse { .. }), "it has restarted");
    assert!(matches!(attach(10, 2, Some("b")), Attached::InUse { .. }), "another node");
    assert_eq!(link.identity().as_deref(), Some("b"));
}
