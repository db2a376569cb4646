//! What is said to one peer: in order, and once, over as many connections as it takes.
//!
//! Frames are numbered. What the other has not confirmed is unconfirmed, and said again on the next connection;
//! what it has heard already it passes over. A process that was started anew is another peer.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::shared::{BATCH_FRAMES, Flush};
use crate::wire::{Frame, Hello, MAX_FRAME, WireError};
use konklave_process::ProcessId;

/// How much goes into one record.
const CHUNK: usize = 256 << 10;
/// How much room is unconfirmed for the next record.
const SPARE: usize = 4 << 10;
/// How much is unconfirmed for a peer that does not confirm, if it is more than one record. What is older is lost;
/// the group copes.
const UNCONFIRMED: usize = 64 << 20;
/// The same as long as there is no connection: who is away for days is work_pending for all the time.
const UNCONFIRMED_AWAY: usize = 1 << 20;

/// How often a peer has to be found silent: the first time it may be we who slept, with what it said unread.
const MISSED_CHECKS: u32 = 2;

/// Frames with successive numbers.
#[derive(Debug, Default)]
struct Chunk {
    first: u64,
    count: u64,
    bytes: Vec<u8>,
}

/// What is to be written next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// What was put into the record.
    Record,
    /// Nothing, for now.
    Nothing,
    /// Nothing any more: the connection is out of use.
    Closed,
}

#[derive(Default)]
struct State {
    /// Which process of the peer this is about.
    boot: u64,
    key: u64,
    /// The number of the next frame.
    next: u64,
    /// What is being collected, and room for what receive_partial after it.
    open: Vec<u8>,
    spare: Vec<u8>,
    open_count: u64,
    /// How many of these nobody waits for.
    batched: u64,
    /// How many can wait for what those here have to say.
    after_local: u64,
    /// What was not confirmed; how many of these have been written on this connection.
    unconfirmed: VecDeque<Chunk>,
    written: usize,
    bytes: usize,
    /// The last number that came from there, and the last of ours that was confirmed.
    received: u64,
    confirmed: u64,
    /// The connection in use.
    connection: Option<ActiveConnection>,
    connections: u64,
    /// Whether something has left lately: then that was a sign of life. If not, one is sign_due.
    sent_lately: bool,
    sign_due: bool,
    /// Whether there is something to say, and who says it, if it rests.
    work_pending: bool,
    writer: Option<Waker>,
    /// The same while it cannot write.
    blocked_writer: Option<Waker>,
    /// Whether the node knows the peer as connected.
    up: bool,
    address: String,
}

struct ActiveConnection {
    number: u64,
    caller: ProcessId,
    heard: Instant,
    /// How often in a row that was found to be too long ago.
    missed_checks: u32,
}

pub(super) struct Link {
    state: Mutex<State>,
    /// Held while something that came is taken in.
    delivery_turn: Mutex<()>,
}

/// What became of a new connection.
pub(super) enum Attached {
    /// It is the one in use; whether the node did not know that the peer is up.
    InUse { number: u64, news: bool },
    /// There is one already.
    Redundant,
    /// Another node with this id is connected.
    IdTaken,
}

impl Link {
    pub(super) fn new() -> Self {
        let state = Mutex::new(State { next: 1, ..State::default() });
        Self { state, delivery_turn: Mutex::default() }
    }

    /// Who takes in what came on one connection keeps those of the next one from doing so: what came first is
    /// heard first.
    pub(super) fn delivery_turn(&self) -> MutexGuard<'_, ()> {
        self.delivery_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a frame along; gives its number.
    pub(super) fn push(&self, frame: &Frame, flush: Flush) -> Result<u64, WireError> {
        let mut state = self.state();
        let open = std::mem::take(&mut state.open);
        let before = open.len();
        state.open = frame.encode(open);
        let bytes = state.open.len() - before;
        if bytes > MAX_FRAME {
            // The other would end the connection, and the next one, as we would say it there again.
            state.open.truncate(before);
            state.open.shrink_to(CHUNK);
            return Err(WireError::LongFrame(bytes));
        }
        Ok(state.frame_added(flush))
    }

    /// Takes a frame along that is bytes already.
    pub(super) fn push_bytes(&self, bytes: &[u8], flush: Flush) -> Result<u64, WireError> {
        if bytes.len() > MAX_FRAME {
            return Err(WireError::LongFrame(bytes.len()));
        }
        let mut state = self.state();
        state.open.extend_from_slice(bytes);
        Ok(state.frame_added(flush))
    }

    /// Wakes who speaks, unless all there is to say may wait for company.
    pub(super) fn wake(&self) {
        let state = self.state();
        let waits = state.open_count > state.batched || state.batched >= BATCH_FRAMES;
        if state.connection.is_some() && (waits || state.written < state.unconfirmed.len()) {
            wake_writer(state);
        }
    }

    /// Wakes who speaks: there is something to see to.
    pub(super) fn wake_writer(&self) {
        wake_writer(self.state());
    }

    /// Who speaks on connection `number` looks: ready if there is something to see to, with whether it can
    /// wait for what those here have to say.
    pub(super) fn poll_writable(&self, number: u64, task: &Context<'_>) -> Poll<bool> {
        let mut state = self.state();
        if state.connection.as_ref().is_none_or(|c| c.number != number) {
            return Poll::Ready(false);
        }
        if !std::mem::take(&mut state.work_pending) {
            state.writer = Some(task.waker().clone());
            return Poll::Pending;
        }
        let hurried = state.open_count > state.batched + state.after_local;
        let can_wait = state.open_count > 0 && !hurried && state.written == state.unconfirmed.len();
        Poll::Ready(can_wait)
    }

    /// Who speaks on connection `number` is writer_awake, and looks before it rests: it need not be woken. False:
    /// there is nobody to speak to, for all we receive; none: the connection is out of use.
    pub(super) fn writer_awake(&self, number: u64) -> Option<bool> {
        let mut state = self.state();
        let connection = state.connection.as_ref().filter(|c| c.number == number)?;
        let heard = connection.missed_checks < MISSED_CHECKS;
        state.writer = None;
        Some(heard)
    }

    /// A while has passed. If nothing was said in it, a sign of life is sign_due; if nothing was heard for
    /// `silence`, the connection is over.
    pub(super) fn check_liveness(&self, silence: Duration) {
        let mut state = self.state();
        let Some(connection) = &mut state.connection else { return };
        let silent = connection.heard.elapsed() > silence;
        connection.missed_checks = if silent { connection.missed_checks + 1 } else { 0 };
        let over = connection.missed_checks >= MISSED_CHECKS;
        // What nobody waits for stays where it is, unless nothing else has left.
        state.sign_due = !std::mem::take(&mut state.sent_lately);
        let blocked_writer = if over { state.blocked_writer.take() } else { None };
        if over || state.sign_due {
            wake_writer(state);
        }
        blocked_writer.into_iter().for_each(Waker::wake);
    }

    /// Who speaks on connection `number` cannot write: it looks up if the connection is over.
    pub(super) fn cannot_write(&self, number: u64, task: &Context<'_>) {
        let mut state = self.state();
        if state.connection.as_ref().is_some_and(|c| c.number == number) {
            state.blocked_writer = Some(task.waker().clone());
        }
    }

    /// Whether something was said that is not in a chunk yet.
    pub(super) fn has_open_chunk(&self) -> bool {
        self.state().open_count > 0
    }

    /// A connection to the peer stands: work_pending by `caller`, who is it or us.
    pub(super) fn attach(&self, hello: &Hello, caller: ProcessId, silence: Duration) -> Attached {
        let mut state = self.state();
        if let Some(old) = &state.connection {
            let alive = old.heard.elapsed() < silence / 2;
            if alive && state.key != hello.key {
                return Attached::IdTaken;
            }
            // Both sides may have work_pending at once: the call of the lower one counts.
            if alive && state.boot == hello.boot && caller >= old.caller {
                return Attached::Redundant;
            }
        }
        let news = !state.up || state.boot != hello.boot;
        if state.boot != hello.boot {
            let (connections, writer) = (state.connections, state.writer.take());
            *state = State { next: 1, connections, writer, ..State::default() };
        }
        state.boot = hello.boot;
        state.key = hello.key;
        state.address.clone_from(&hello.address);
        state.written = 0;
        state.up = true;
        state.connections += 1;
        let number = state.connections;
        state.connection =
            Some(ActiveConnection { number, caller, heard: Instant::now(), missed_checks: 0 });
        // Who uses the one before notices, also if it cannot write.
        let blocked_writer = state.blocked_writer.take();
        wake_writer(state);
        blocked_writer.into_iter().for_each(Waker::wake);
        Attached::InUse { number, news }
    }

    /// The connection is gone; whether it was the one in use.
    pub(super) fn detach(&self, number: u64) -> bool {
        let mut state = self.state();
        let used = state.connection.as_ref().is_some_and(|c| c.number == number);
        if used {
            state.connection = None;
        }
        used
    }

    /// Nobody answers there any more; whether the node thinks otherwise.
    pub(super) fn mark_down(&self) -> bool {
        let mut state = self.state();
        state.connection.is_none() && std::mem::replace(&mut state.up, false)
    }

    pub(super) fn is_connected(&self) -> bool {
        self.state().connection.is_some()
    }

    pub(super) fn address(&self) -> String {
        self.state().address.clone()
    }

    /// Puts what is to be written next on connection `number` into `record`: the number of its first frame,
    /// the last number that came from there, and the frames; none of them as a sign of life.
    pub(super) fn next_record(&self, number: u64, record: &mut Vec<u8>) -> Next {
        let mut state = self.state();
        if state.connection.as_ref().is_none_or(|c| c.number != number) {
            return Next::Closed;
        }
        if state.written == state.unconfirmed.len() {
            state.close_chunk();
        }
        let signs = std::mem::take(&mut state.sign_due);
        let (first, frames): (u64, &[u8]) = match state.unconfirmed.get(state.written) {
            Some(chunk) => (chunk.first, &chunk.bytes),
            None if signs => (0, &[]),
            None => return Next::Nothing,
        };
        record.extend(first.to_le_bytes());
        record.extend(state.received.to_le_bytes());
        record.extend_from_slice(frames);
        let said = state.written < state.unconfirmed.len();
        state.written += usize::from(said);
        state.sent_lately |= said;
        Next::Record
    }

    /// Something receive_partial on connection `number` that is not whole yet: over a slow network it may take its time.
    pub(super) fn receive_partial(&self, number: u64) {
        if let Some(connection) = self.state().connection.as_mut().filter(|c| c.number == number) {
            (connection.heard, connection.missed_checks) = (Instant::now(), 0);
        }
    }

    /// Frames from number `first` to number `last` arrived on connection `number`, or none but a sign of life,
    /// and the other has all of ours up to `confirmed`. How many of them we have had already; none if that
    /// connection is out of use.
    pub(super) fn receive(
        &self,
        number: u64,
        first: u64,
        last: Option<u64>,
        confirmed: u64,
    ) -> Option<u64> {
        let mut state = self.state();
        let connection = state.connection.as_mut().filter(|c| c.number == number)?;
        (connection.heard, connection.missed_checks) = (Instant::now(), 0);
        if confirmed < state.confirmed {
            // It has forgotten what we said, and so what it said: it counts from one again.
            state.received = 0;
        }
        state.confirmed = confirmed;
        while let Some(chunk) = state.unconfirmed.front()
            && chunk.first + chunk.count <= confirmed.saturating_add(1)
            && state.written > 0
        {
            state.bytes -= chunk.bytes.len();
            state.written -= 1;
            let done = state.unconfirmed.pop_front();
            state.reuse(done);
        }
        let known = (state.received + 1).saturating_sub(first);
        state.received = last.map_or(state.received, |last| state.received.max(last));
        Some(known)
    }
}

fn wake_writer(mut state: MutexGuard<'_, State>) {
    state.work_pending = true;
    let writer = state.writer.take();
    drop(state);
    writer.into_iter().for_each(Waker::wake);
}

impl State {
    /// A frame was added to what is being collected; gives its number.
    fn frame_added(&mut self, flush: Flush) -> u64 {
        match flush {
            Flush::Now => {}
            Flush::Soon => self.after_local += 1,
            Flush::Batched => self.batched += 1,
        }
        let number = self.next + self.open_count;
        self.open_count += 1;
        if self.open.len() >= CHUNK {
            self.close_chunk();
        }
        number
    }

    /// What was confirmed leaves room for what receive_partial next.
    fn reuse(&mut self, done: Option<Chunk>) {
        let bytes = done.map(|chunk| chunk.bytes);
        if let Some(mut bytes) = bytes.filter(|bytes| bytes.capacity() <= SPARE) {
            bytes.clear();
            self.spare = bytes;
        }
    }

    fn close_chunk(&mut self) {
        if self.open_count == 0 {
            return;
        }
        let bytes = std::mem::replace(&mut self.open, std::mem::take(&mut self.spare));
        let count = std::mem::take(&mut self.open_count);
        (self.batched, self.after_local) = (0, 0);
        self.bytes += bytes.len();
        self.unconfirmed.push_back(Chunk { first: self.next, count, bytes });
        self.next += count;
        let most = if self.connection.is_some() { UNCONFIRMED } else { UNCONFIRMED_AWAY };
        while self.bytes > most
            && self.unconfirmed.len() > 1
            && let Some(oldest) = self.unconfirmed.pop_front()
        {
            self.bytes -= oldest.bytes.len();
            self.written = self.written.saturating_sub(1);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::wire::MAX_RECORD;

    pub(in crate::net) fn hello(boot: u64) -> Hello {
        let (cluster, name, address) = (String::new(), String::new(), String::new());
        let mutex = "table".into();
        Hello {
            version: 1,
            cluster,
            id: 1,
            key: 1,
            boot,
            name,
            address,
            nonce: [0; 32],
            mutex,
            lease: 0,
        }
    }

    fn attach(link: &Link, boot: u64) -> u64 {
        match link.attach(&hello(boot), ProcessId(0), Duration::from_secs(1)) {
            Attached::InUse { number, .. } => number,
            Attached::Redundant | Attached::IdTaken => panic!("it is the first"),
        }
    }

    /// Whether who speaks is work_pending, and whether what it has to say can wait.
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

    /// What is written next: the number of its first frame, and how many there are.
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
    fn what_was_not_confirmed_is_said_again_on_the_next_connection() {
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
    fn what_nobody_would_take_in_does_not_leave() {
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
    fn what_is_longer_than_all_that_is_kept_is_said_all_the_same() {
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
    fn little_is_kept_for_one_who_is_away() {
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
    fn who_forgot_us_for_another_with_our_id_is_understood_again() {
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
    fn a_process_started_anew_is_told_nothing_old() {
        let link = Link::new();
        let first = attach(&link, 7);
        link.push(&ping(0), Flush::Now).unwrap();
        assert_eq!(link.receive(first, 1, Some(5), 0), Some(0));
        assert!(link.detach(first));
        let second = attach(&link, 8);
        assert_eq!(
            link.receive(first, 6, Some(9), 0),
            None,
            "what is read late is of the one before"
        );
        assert_eq!(next(&link, second), None);
        assert_eq!(link.state().received, 0);
    }

    #[test]
    fn what_was_heard_before_is_passed_over() {
        let link = Link::new();
        let number = attach(&link, 7);
        assert_eq!(link.receive(number, 1, Some(5), 0), Some(0));
        assert_eq!(link.receive(number, 4, Some(4), 0), Some(2));
        assert_eq!(link.receive(number, 0, None, 0), Some(6), "a sign of life is no frame");
        assert_eq!(link.receive(number, 6, Some(6), 0), Some(0));
        assert_eq!(link.receive(number, 9, Some(9), 0), Some(0), "a gap is the group's to mend");
    }

    #[test]
    fn what_nobody_waits_for_waits_for_company() {
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
    fn what_is_due_soon_waits_for_what_others_say_and_no_longer() {
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
    fn a_sign_of_life_is_due_when_nothing_else_was_said() {
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
        assert_eq!(
            (work_pending(&link, number).is_some(), said(&link)),
            (true, Some(1)),
            "instead"
        );
        link.check_liveness(second);
        assert_eq!((work_pending(&link, number), said(&link)), (None, None), "that was one");
        link.check_liveness(second);
        assert!(work_pending(&link, number).is_some());
    }

    #[test]
    fn who_is_silent_for_too_long_is_not_there() {
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
            "who cannot write learns that it is out of use"
        );
        assert_eq!(link.writer_awake(number), None);
    }

    #[test]
    fn of_two_calls_at_once_that_of_the_lower_one_counts() {
        let second = Duration::from_secs(1);
        let link = Link::new();
        assert!(matches!(link.attach(&hello(7), ProcessId(1), second), Attached::InUse { .. }));
        assert!(matches!(link.attach(&hello(7), ProcessId(0), second), Attached::InUse { .. }));
        assert!(matches!(link.attach(&hello(7), ProcessId(1), second), Attached::Redundant));
        let other = Hello { key: 2, ..hello(9) };
        assert!(matches!(link.attach(&other, ProcessId(0), second), Attached::IdTaken));
    }
}
