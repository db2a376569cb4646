use std::sync::Arc;

use konklave_algorithms::group::Member;
use konklave_algorithms::group::lifted::{Any, Instance};
use konklave_algorithms::group::virtual_synchrony::{Ballot, Entry, Promise, Proposal};
use konklave_algorithms::mutex;
use konklave_process::{Input, ProcessId, ProcessSet};
use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::*;
use crate::lifted::{LockMessage, LockNote, NotedClaim};
use crate::lock_algorithm::LockAlgorithm;
use crate::table::{ClaimId, Key, LockMode, Op, Payload, Report, Space, Table};
use crate::token::Token;

fn view_id() -> ViewId {
    ViewId { generation: 3, epoch: 300, coordinator: ProcessId(2) }
}

fn member(id: u32) -> Member {
    Member { id: ProcessId(id), incarnation: 9 }
}

fn view() -> View {
    View { id: view_id(), members: vec![member(1), member(2)], observers: vec![member(3)] }
}

fn claim() -> ClaimId {
    ClaimId { member: member(2), session: 5, number: 129 }
}

fn key() -> Key {
    Key { space: Space::Lock, name: "reports".into() }
}

/// One operation of each kind.
fn ops() -> Vec<Op> {
    let (claim, key, name) = (claim(), key(), Arc::<str>::from("b"));
    let (label, payload) = (Arc::<str>::from("cron"), Payload([1, 2, 255].into()));
    let token = Token { generation: 1, epoch: 2, k: 3 << 20 };
    let (group, to) = (name.clone(), claim);
    let acquire = |mode, space| Op::Acquire {
        claim,
        key: Key { space, ..key.clone() },
        mode,
        wait: true,
        safe: false,
        lease: 8000,
        priority: -1,
        label: label.clone(),
    };
    let mut table = Table::default();
    table.apply(&acquire(LockMode::Exclusive, Space::Lock), &mut Vec::new());
    table.apply(&Op::Enter { group: group.clone(), claim, label: label.clone() }, &mut Vec::new());
    table.apply(&Op::Arrive { claim, name: name.clone(), of: 2 }, &mut Vec::new());
    let mut ops = vec![
        acquire(LockMode::Exclusive, Space::Lock),
        acquire(LockMode::Shared, Space::Lock),
        acquire(LockMode::Permit { of: 4 }, Space::Semaphore),
        acquire(LockMode::Exclusive, Space::Campaign),
        Op::Adopt { claim, key: key.clone(), token },
        Op::Release { claim, key: key.clone() },
        Op::Pass { key: key.clone(), from: claim, to, token },
        Op::Cancel { claim, key: key.clone() },
        Op::Deny { claim, key: key.clone() },
        Op::LeaseExpired { member: member(1), lease: 8000 },
        Op::Revoke { claim, key, token: Some(token) },
        Op::Arrive { claim, name: name.clone(), of: 3 },
        Op::Depart { claim, name },
        Op::Enter { group: group.clone(), claim, label },
        Op::Exit { group: group.clone(), claim },
        Op::Say { group: group.clone(), claim, payload: payload.clone() },
        Op::AskAnother { group: group.clone(), to, instead_of: claim, declined: true },
        Op::Give { group, to, by: claim, piece: payload, more: false },
    ];
    let reports = [
        Report::Holding { token, safe: true },
        Report::Waiting(300),
        Report::Parked,
        Report::Safe(member(2)),
        Report::Fenced(member(1)),
    ];
    ops.push(Op::Summary(reports.map(|report| ("reports".into(), report)).to_vec()));
    ops.extend(table.parts().iter().flat_map(|batch| batch.ops.to_vec()));
    ops
}

fn messages() -> Vec<Message<Batch>> {
    let (view, ballot) = (view_id(), Ballot { round: 2, by: ProcessId(1) });
    let suspects: ProcessSet = [ProcessId(1), ProcessId(300)].into_iter().collect();
    let command = Batch::of(ops());
    let small = Batch::of(vec![Op::Release { claim: claim(), key: key() }]);
    let entry = |command| Entry { sender: ProcessId(1), seq: 7, command };
    let next = Arc::new(Proposal {
        view: self::view(),
        from: 4,
        cut: vec![entry(small.clone())],
        left: suspects.clone(),
        summaries: vec![(member(2), Batch::of(vec![Op::Summary(Vec::new())]))],
    });
    let promise = Arc::new(Promise {
        accepted: Some((ballot, next.clone())),
        base: 1,
        order: vec![entry(small.clone())],
        last: vec![(ProcessId(1), 7)],
        out_of_order: vec![(9, entry(small.clone()))],
        unplaced: vec![entry(small.clone())],
        joins: vec![member(4)],
        leaves: suspects.clone(),
        synced: suspects.clone(),
        suspects: suspects.clone(),
        summary: None,
    });
    vec![
        Message::Join { member: member(4), heard: suspects.clone() },
        Message::Welcome,
        Message::NotMember { view },
        Message::Data { view, seq: 7, command: command.clone() },
        Message::Order { view, position: 1 << 40, entry: entry(command) },
        Message::Ack { view, held: 12 },
        Message::Heartbeat { view, held: 12, suspects: suspects.clone() },
        Message::Suspect { view, suspects },
        Message::Leave { view },
        Message::Synced { view },
        Message::Prepare { view, ballot },
        Message::Promise { view, ballot, promise },
        Message::Accept { view, ballot, next: next.clone() },
        Message::Accepted { view, ballot },
        Message::Ask { view },
        Message::Install { view, next },
        Message::State { view, position: 3, index: 0, count: 1, part: Some(small) },
        Message::StateAck { view, parts: 1 },
    ]
}

/// One message of each kind, and those of each algorithm while a group of two requests a lock.
fn lock_messages() -> Vec<LockMessage> {
    let token = Some(Token { generation: 1, epoch: 2, k: 3 });
    let (session, number, label) = (5, 129, Arc::<str>::from("cron"));
    let party = NotedClaim { session, number, safe: true, label, since: 1000 };
    let holder = token.map(|token| (token, party.clone()));
    let mut lock_messages = vec![
        LockMessage::Safe,
        LockMessage::Noted,
        LockMessage::Try { number },
        LockMessage::InUse { number },
        LockMessage::Revoke { number, token },
        LockMessage::Revoked { number, held: true },
        LockMessage::Note(LockNote { holder, queue: vec![party] }),
    ];
    let view = View { observers: Vec::new(), ..view() };
    for mutex in &LockAlgorithm::ALL[1..] {
        let group = konklave_process::Group::new(vec![ProcessId(1)]).expect("one is a group");
        let mut setup = konklave_algorithms::Setup::new(
            group,
            konklave_process::Topology::from_edges("alone", 1, []).expect("one place is a graph"),
        );
        setup.chosen.insert("mutex", mutex.name().to_owned());
        let name = Arc::<str>::from("reports");
        let build = |id| Instance::<Any>::fresh(ProcessId(id), &name, &view, &setup);
        let mut both = [1, 2].map(|id| build(id).expect("both are members"));
        let mut flight = std::collections::VecDeque::new();
        for (i, request) in [(0, mutex::Request::Acquire), (1, mutex::Request::Acquire)] {
            let from = ProcessId(i as u32 + 1);
            let sent = both[i].step(from, Input::Request(request)).sent;
            flight.extend(sent.into_iter().map(|(to, message)| (from, to, message)));
        }
        while let Some((from, to, message)) = flight.pop_front() {
            lock_messages.push(LockMessage::Step {
                count: 7,
                safe: true,
                noted: false,
                message: message.clone(),
            });
            let sent = both[to.0 as usize - 1].step(to, Input::Message { from, message }).sent;
            flight.extend(sent.into_iter().map(|(next, message)| (to, next, message)));
        }
    }
    lock_messages
}

fn frames() -> Vec<Frame> {
    let view = Some(view_id());
    let peer_status = PeerStatus {
        incarnation: 4,
        generation: 2,
        view,
        has_data_dir: true,
        earlier_grants_over: true,
    };
    let mut frames: Vec<Frame> = messages().into_iter().map(Frame::Group).collect();
    frames.extend([
        Frame::Ping { view: view_id(), stamp: u64::MAX, lifted_sent: 300 },
        Frame::Pong { view: view_id(), stamp: 0 },
        Frame::PeerStatus(peer_status),
        Frame::Found(self::view()),
        Frame::Peers(vec![(7, "10.0.0.1:7400".into())]),
    ]);
    let inside = |message| {
        Frame::Lifted(LiftedFrame { view: view_id(), number: 200, name: "reports".into(), message })
    };
    frames.extend(lock_messages().into_iter().map(inside));
    let founding = [
        FoundingMessage::Propose { number: 300, view: self::view() },
        FoundingMessage::Promise { number: 300 },
        FoundingMessage::Refuse { number: 300, to: ProcessId(7) },
        FoundingMessage::Withdraw { number: 300 },
    ];
    frames.extend(founding.map(Frame::Founding));
    frames
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Later releases of the same [`VERSION`] must read these bytes.
#[test]
fn the_bytes_are_those_of_this_version() {
    let hello = Hello {
        version: VERSION,
        cluster: "konklave".into(),
        id: 3,
        key: 1 << 60,
        boot: 5,
        name: "a".into(),
        address: "127.0.0.1:7400".into(),
        mutex: "naimi-trehel".into(),
        lease: 1_000_000,
    };
    let mut text = format!("hello {}\n", hex(&crate::net::encode_hello(&hello)));
    for frame in frames() {
        text.push_str(&format!("{}\n", hex(&frame.encode(Vec::new()))));
    }
    let path = format!("{}/tests/golden/wire-{VERSION}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file is there");
    assert_eq!(golden, text, "the wire format has changed: raise VERSION, then UPDATE=1");
}

#[test]
fn every_frame_comes_back_as_it_was_and_leaves_the_rest() {
    for frame in frames() {
        let mut bytes = frame.encode(Vec::new());
        let length = bytes.len();
        bytes.extend([1, 2, 3]);
        let (back, rest) = Frame::decode(&bytes).expect("it was a frame");
        assert_eq!((back, rest), (frame.clone(), &[1, 2, 3][..]));
        for cut in 0..length {
            assert!(Frame::decode(&bytes[..cut]).is_err(), "{frame:?} cut at {cut}");
        }
    }
}

#[test]
fn a_length_is_checked_before_anything_is_allocated() {
    assert_eq!(
        record_length(u32::MAX.to_le_bytes(), MAX_RECORD),
        Err(WireError::TooLong(u32::MAX as usize))
    );
    assert_eq!(record_length([1, 0, 0, 0], MAX_RECORD), Ok(1));
    // A frame that announces a list longer than any memory.
    let mut bytes = Frame::Peers(Vec::new()).encode(Vec::new());
    bytes.pop();
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    assert!(Frame::decode(&bytes).is_err());
}

/// A frame with some bytes changed, removed or added; or random bytes.
fn spoiled() -> impl Strategy<Value = Vec<u8>> {
    let frames: Vec<Vec<u8>> = frames().iter().map(|f| f.encode(Vec::new())).collect();
    let one = prop::sample::select(frames);
    let changed = (one, prop::collection::vec((any::<usize>(), any::<u8>(), 0..3), 1..6));
    let changed = changed.prop_map(|(mut bytes, changes)| {
        for (at, byte, what) in changes {
            let at = at % (bytes.len() + 1);
            match what {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ if at < bytes.len() => bytes[at] = byte,
                _ => {}
            }
        }
        bytes
    });
    prop_oneof![changed, prop::collection::vec(any::<u8>(), 0..200), Just(Vec::new())]
}

proptest! {
    #[test]
    fn garbage_is_refused_or_means_something_and_never_panics(bytes in spoiled()) {
        if let Ok((frame, rest)) = Frame::decode(&bytes) {
            prop_assert!(rest.len() <= bytes.len());
            // Every frame that can be decoded survives encoding.
            let again = frame.encode(Vec::new());
            prop_assert_eq!(Frame::decode(&again).map(|(f, _)| f), Ok(frame));
        }
    }
}

/// A member with the key may send nonsense: frames of a real run with a few bytes changed. The others must
/// drop them and go on.
#[test]
fn nonsense_of_a_member_does_no_harm() {
    inject_spoiled_frames(LockAlgorithm::Table, 100);
    LockAlgorithm::ALL[1..].iter().for_each(|mutex| inject_spoiled_frames(*mutex, 30));
}

fn inject_spoiled_frames(mutex: LockAlgorithm, seeds: u64) {
    let mut rng = konklave_process::Rng::new(1);
    let mut injected = 0;
    for seed in 0..seeds {
        let timings = crate::Timings::fast();
        let cluster = crate::testing::Cluster::with_lock_algorithm(mutex, 3, seed, timings);
        let node = cluster.node(1);
        for round in 0..60 {
            if round == 20 {
                cluster.crash(2);
            } else if round == 40 {
                cluster.restart(2);
            }
            let session = node.session("x");
            cluster.spawn(async move {
                let _ = session
                    .lock(&format!("l{round}"))
                    .timeout(std::time::Duration::from_millis(5))
                    .acquire()
                    .await;
            });
            cluster.advance(std::time::Duration::from_micros(100));
            for (from, to, mut bytes) in cluster.frames_in_flight() {
                let at = rng.below(bytes.len() as u32) as usize;
                bytes[at] = rng.below(256) as u8;
                if let Ok((frame, _)) = Frame::decode(&bytes) {
                    cluster.inject(to, ProcessId(from as u32), frame);
                    injected += 1;
                }
            }
            cluster.advance(std::time::Duration::from_millis(3));
        }
    }
    assert!(injected > 10 * seeds, "{mutex}: {injected}");
}

#[test]
fn numbers_end_before_they_begin_again() {
    assert_eq!(last_number(1, 1), Ok(1));
    assert_eq!(last_number(7, 3), Ok(9));
    for (first, frames) in [(u64::MAX, 1), (u64::MAX - 1, 1), (u64::MAX - 3, 3), (u64::MAX - 1, 9)]
    {
        assert_eq!(last_number(first, frames), Err(WireError::Count(first)));
    }
    assert_eq!(last_number(u64::MAX - 3, 2), Ok(u64::MAX - 2));
}
