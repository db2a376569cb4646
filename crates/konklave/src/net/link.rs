//! What is said to one peer: in order, and once, over as many connections as it takes.
//!
//! Frames are numbered. What the other has not confirmed is kept, and said again on the next connection;
//! what it has heard already it passes over. A process that was started anew is another peer.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::shared::{Hurry, LAZY};
use crate::wire::{Frame, Hello, MAX_FRAME, WireError};
use konklave_process::ProcessId;

/// How much goes into one record.
const CHUNK: usize = 256 << 10;
/// How much room is kept for the next record.
const SPARE: usize = 4 << 10;
/// How much is kept for a peer that does not confirm, if it is more than one record. What is older is lost;
/// the group copes.
const KEPT: usize = 64 << 20;
/// The same as long as there is no connection: who is away for days is called for all the time.
const KEPT_AWAY: usize = 1 << 20;

/// How often a peer has to be found silent: the first time it may be we who slept, with what it said unread.
const DOUBTS: u32 = 2;

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
    Over,
}

#[derive(Default)]
struct State {
    /// Which process of the peer this is about.
    boot: u64,
    key: u64,
    /// The number of the next frame.
    next: u64,
    /// What is being collected, and room for what comes after it.
    open: Vec<u8>,
    spare: Vec<u8>,
    open_count: u64,
    /// How many of these nobody waits for.
    lazy: u64,
    /// How many can wait for what those here have to say.
    soon: u64,
    /// What was not confirmed; how many of these have been written on this connection.
    kept: VecDeque<Chunk>,
    written: usize,
    bytes: usize,
    /// The last number that came from there, and the last of ours that was confirmed.
    received: u64,
    confirmed: u64,
    /// The connection in use.
    connection: Option<Connection>,
    connections: u64,
    /// Whether something has left lately: then that was a sign of life. If not, one is due.
    spoke: bool,
    due: bool,
    /// Whether there is something to say, and who says it, if it rests.
    called: bool,
    speaker: Option<Waker>,
    /// The same while it cannot write.
    stuck: Option<Waker>,
    /// Whether the node knows the peer as connected.
    up: bool,
    address: String,
}

struct Connection {
    number: u64,
    caller: ProcessId,
    heard: Instant,
    /// How often in a row that was found to be too long ago.
    doubts: u32,
}

pub(super) struct Link {
    state: Mutex<State>,
    /// Held while something that came is taken in.
    turn: Mutex<()>,
}

/// What became of a new connection.
pub(super) enum Attached {
    /// It is the one in use; whether the node did not know that the peer is up.
    Used { number: u64, news: bool },
    /// There is one already.
    Surplus,
    /// Another node with this id is connected.
    Taken,
}

impl Link {
    pub(super) fn new() -> Self {
        let state = Mutex::new(State { next: 1, ..State::default() });
        Self { state, turn: Mutex::default() }
    }

    /// Who takes in what came on one connection keeps those of the next one from doing so: what came first is
    /// heard first.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a frame along; gives its number.
    pub(super) fn push(&self, frame: &Frame, hurry: Hurry) -> Result<u64, WireError> {
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
        Ok(state.took_one(hurry))
    }

    /// Takes a frame along that is bytes already.
    pub(super) fn push_bytes(&self, bytes: &[u8], hurry: Hurry) -> Result<u64, WireError> {
        if bytes.len() > MAX_FRAME {
            return Err(WireError::LongFrame(bytes.len()));
        }
        let mut state = self.state();
        state.open.extend_from_slice(bytes);
        Ok(state.took_one(hurry))
    }

    /// Wakes who speaks, unless all there is to say may wait for company.
    pub(super) fn wake(&self) {
        let state = self.state();
        let waits = state.open_count > state.lazy || state.lazy >= LAZY;
        if state.connection.is_some() && (waits || state.written < state.kept.len()) {
            call(state);
        }
    }

    /// Wakes who speaks: there is something to see to.
    pub(super) fn call(&self) {
        call(self.state());
    }

    /// Who speaks on connection `number` looks: ready if there is something to see to, with whether it can
    /// wait for what those here have to say.
    pub(super) fn poll_called(&self, number: u64, task: &Context<'_>) -> Poll<bool> {
        let mut state = self.state();
        if state.connection.as_ref().is_none_or(|c| c.number != number) {
            return Poll::Ready(false);
        }
        if !std::mem::take(&mut state.called) {
            state.speaker = Some(task.waker().clone());
            return Poll::Pending;
        }
        let hurried = state.open_count > state.lazy + state.soon;
        let can_wait = state.open_count > 0 && !hurried && state.written == state.kept.len();
        Poll::Ready(can_wait)
    }

    /// Who speaks on connection `number` is awake, and looks before it rests: it need not be woken. False:
    /// there is nobody to speak to, for all we hear; none: the connection is out of use.
    pub(super) fn awake(&self, number: u64) -> Option<bool> {
        let mut state = self.state();
        let connection = state.connection.as_ref().filter(|c| c.number == number)?;
        let heard = connection.doubts < DOUBTS;
        state.speaker = None;
        Some(heard)
    }

    /// A while has passed. If nothing was said in it, a sign of life is due; if nothing was heard for
    /// `silence`, the connection is over.
    pub(super) fn look_after(&self, silence: Duration) {
        let mut state = self.state();
        let Some(connection) = &mut state.connection else { return };
        let silent = connection.heard.elapsed() > silence;
        connection.doubts = if silent { connection.doubts + 1 } else { 0 };
        let over = connection.doubts >= DOUBTS;
        // What nobody waits for stays where it is, unless nothing else has left.
        state.due = !std::mem::take(&mut state.spoke);
        let stuck = if over { state.stuck.take() } else { None };
        if over || state.due {
            call(state);
        }
        stuck.into_iter().for_each(Waker::wake);
    }

    /// Who speaks on connection `number` cannot write: it looks up if the connection is over.
    pub(super) fn cannot_write(&self, number: u64, task: &Context<'_>) {
        let mut state = self.state();
        if state.connection.as_ref().is_some_and(|c| c.number == number) {
            state.stuck = Some(task.waker().clone());
        }
    }

    /// Whether something was said that is not in a chunk yet.
    pub(super) fn has_more(&self) -> bool {
        self.state().open_count > 0
    }

    /// A connection to the peer stands: called by `caller`, who is it or us.
    pub(super) fn attach(&self, hello: &Hello, caller: ProcessId, silence: Duration) -> Attached {
        let mut state = self.state();
        if let Some(old) = &state.connection {
            let alive = old.heard.elapsed() < silence / 2;
            if alive && state.key != hello.key {
                return Attached::Taken;
            }
            // Both sides may have called at once: the call of the lower one counts.
            if alive && state.boot == hello.boot && caller >= old.caller {
                return Attached::Surplus;
            }
        }
        let news = !state.up || state.boot != hello.boot;
        if state.boot != hello.boot {
            let (connections, speaker) = (state.connections, state.speaker.take());
            *state = State { next: 1, connections, speaker, ..State::default() };
        }
        state.boot = hello.boot;
        state.key = hello.key;
        state.address.clone_from(&hello.address);
        state.written = 0;
        state.up = true;
        state.connections += 1;
        let number = state.connections;
        state.connection = Some(Connection { number, caller, heard: Instant::now(), doubts: 0 });
        // Who uses the one before notices, also if it cannot write.
        let stuck = state.stuck.take();
        call(state);
        stuck.into_iter().for_each(Waker::wake);
        Attached::Used { number, news }
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
    pub(super) fn give_up(&self) -> bool {
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
            return Next::Over;
        }
        if state.written == state.kept.len() {
            state.close_chunk();
        }
        let signs = std::mem::take(&mut state.due);
        let (first, frames): (u64, &[u8]) = match state.kept.get(state.written) {
            Some(chunk) => (chunk.first, &chunk.bytes),
            None if signs => (0, &[]),
            None => return Next::Nothing,
        };
        record.extend(first.to_le_bytes());
        record.extend(state.received.to_le_bytes());
        record.extend_from_slice(frames);
        let said = state.written < state.kept.len();
        state.written += usize::from(said);
        state.spoke |= said;
        Next::Record
    }

    /// Something comes on connection `number` that is not whole yet: over a slow network it may take its time.
    pub(super) fn comes(&self, number: u64) {
        if let Some(connection) = self.state().connection.as_mut().filter(|c| c.number == number) {
            (connection.heard, connection.doubts) = (Instant::now(), 0);
        }
    }

    /// Frames from number `first` to number `last` arrived on connection `number`, or none but a sign of life,
    /// and the other has all of ours up to `confirmed`. How many of them we have had already; none if that
    /// connection is out of use.
    pub(super) fn hear(
        &self,
        number: u64,
        first: u64,
        last: Option<u64>,
        confirmed: u64,
    ) -> Option<u64> {
        let mut state = self.state();
        let connection = state.connection.as_mut().filter(|c| c.number == number)?;
        (connection.heard, connection.doubts) = (Instant::now(), 0);
        if confirmed < state.confirmed {
            // It has forgotten what we said, and so what it said: it counts from one again.
            state.received = 0;
        }
        state.confirmed = confirmed;
        while let Some(chunk) = state.kept.front()
            && chunk.first + chunk.count <= confirmed.saturating_add(1)
            && state.written > 0
        {
            state.bytes -= chunk.bytes.len();
            state.written -= 1;
            let done = state.kept.pop_front();
            state.reuse(done);
        }
        let known = (state.received + 1).saturating_sub(first);
        state.received = last.map_or(state.received, |last| state.received.max(last));
        Some(known)
    }
}

fn call(mut state: MutexGuard<'_, State>) {
    state.called = true;
    let speaker = state.speaker.take();
    drop(state);
    speaker.into_iter().for_each(Waker::wake);
}

impl State {
    /// A frame was added to what is being collected; gives its number.
    fn took_one(&mut self, hurry: Hurry) -> u64 {
        match hurry {
            Hurry::Now => {}
            Hurry::Soon => self.soon += 1,
            Hurry::Lazy => self.lazy += 1,
        }
        let number = self.next + self.open_count;
        self.open_count += 1;
        if self.open.len() >= CHUNK {
            self.close_chunk();
        }
        number
    }

    /// What was confirmed leaves room for what comes next.
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
        (self.lazy, self.soon) = (0, 0);
        self.bytes += bytes.len();
        self.kept.push_back(Chunk { first: self.next, count, bytes });
        self.next += count;
        let most = if self.connection.is_some() { KEPT } else { KEPT_AWAY };
        while self.bytes > most
            && self.kept.len() > 1
            && let Some(oldest) = self.kept.pop_front()
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
            Attached::Used { number, .. } => number,
            Attached::Surplus | Attached::Taken => panic!("it is the first"),
        }
    }

    /// Whether who speaks is called, and whether what it has to say can wait.
    fn called(link: &Link, number: u64) -> Option<bool> {
        match link.poll_called(number, &Context::from_waker(Waker::noop())) {
            Poll::Ready(can_wait) => Some(can_wait),
            Poll::Pending => None,
        }
    }

    fn ping(stamp: u64) -> Frame {
        let view = konklave_algorithms::group::ViewId::default();
        Frame::Ping { view, stamp, said: 0 }
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
            link.push(&ping(stamp), Hurry::Now).unwrap();
            assert_eq!(next(&link, first), Some((stamp + 1, 1)));
        }
        assert_eq!(link.hear(first, 1, None, 1), Some(0), "the other has the first");
        assert!(link.detach(first));
        let second = attach(&link, 7);
        let again: Vec<u64> =
            std::iter::from_fn(|| next(&link, second)).map(|(first, _)| first).collect();
        assert_eq!(again, [2, 3]);
        assert_eq!(link.next_record(second, &mut Vec::new()), Next::Nothing);
        assert_eq!(
            link.next_record(first, &mut Vec::new()),
            Next::Over,
            "the old connection is out of use"
        );
    }

    #[test]
    fn what_nobody_would_take_in_does_not_leave() {
        let link = Link::new();
        let number = attach(&link, 7);
        link.push(&ping(0), Hurry::Now).unwrap();
        let long = vec![0; MAX_FRAME + 1];
        assert_eq!(link.push_bytes(&long, Hurry::Now), Err(WireError::LongFrame(MAX_FRAME + 1)));
        let peers = Frame::Peers(vec![(1, "x".repeat(MAX_FRAME))]);
        assert!(matches!(link.push(&peers, Hurry::Now), Err(WireError::LongFrame(_))));
        link.push(&ping(1), Hurry::Now).unwrap();
        assert_eq!(next(&link, number), Some((1, 2)), "the others do");
    }

    #[test]
    fn what_is_longer_than_all_that_is_kept_is_said_all_the_same() {
        let link = Link::new();
        let number = attach(&link, 7);
        let peers = Frame::Peers(vec![(1, "x".repeat(KEPT + CHUNK))]);
        link.push(&ping(0), Hurry::Now).unwrap();
        link.push(&peers, Hurry::Now).unwrap();
        link.push(&ping(1), Hurry::Now).unwrap();
        let mut record = Vec::new();
        assert_eq!(link.next_record(number, &mut record), Next::Record);
        assert!((KEPT..=MAX_RECORD).contains(&record.len()), "with what came before it");
        assert_eq!(next(&link, number), Some((3, 1)));
    }

    #[test]
    fn little_is_kept_for_one_who_is_away() {
        let link = Link::new();
        let number = attach(&link, 7);
        assert!(link.detach(number));
        let long = vec![0; 100];
        for _ in 0..5 * KEPT_AWAY / long.len() {
            link.push_bytes(&long, Hurry::Now).unwrap();
        }
        let state = link.state();
        let kept = state.bytes + state.open.len();
        assert!((KEPT_AWAY / 2..=KEPT_AWAY + CHUNK).contains(&kept), "{kept}");
    }

    #[test]
    fn who_forgot_us_for_another_with_our_id_is_understood_again() {
        let link = Link::new();
        let first = attach(&link, 7);
        link.push(&ping(0), Hurry::Now).unwrap();
        assert_eq!(next(&link, first), Some((1, 1)));
        assert_eq!(link.hear(first, 1, Some(5), 1), Some(0));
        assert!(link.detach(first));
        let second = attach(&link, 7);
        assert_eq!(link.hear(second, 1, Some(2), 0), Some(0), "it counts from one again");
        assert_eq!(link.hear(second, 1, Some(3), 0), Some(2));
    }

    #[test]
    fn a_process_started_anew_is_told_nothing_old() {
        let link = Link::new();
        let first = attach(&link, 7);
        link.push(&ping(0), Hurry::Now).unwrap();
        assert_eq!(link.hear(first, 1, Some(5), 0), Some(0));
        assert!(link.detach(first));
        let second = attach(&link, 8);
        assert_eq!(link.hear(first, 6, Some(9), 0), None, "what is read late is of the one before");
        assert_eq!(next(&link, second), None);
        assert_eq!(link.state().received, 0);
    }

    #[test]
    fn what_was_heard_before_is_passed_over() {
        let link = Link::new();
        let number = attach(&link, 7);
        assert_eq!(link.hear(number, 1, Some(5), 0), Some(0));
        assert_eq!(link.hear(number, 4, Some(4), 0), Some(2));
        assert_eq!(link.hear(number, 0, None, 0), Some(6), "a sign of life is no frame");
        assert_eq!(link.hear(number, 6, Some(6), 0), Some(0));
        assert_eq!(link.hear(number, 9, Some(9), 0), Some(0), "a gap is the group's to mend");
    }

    #[test]
    fn what_nobody_waits_for_waits_for_company() {
        let link = Link::new();
        let number = attach(&link, 7);
        let woken = |link: &Link| {
            link.wake();
            called(link, number).is_some()
        };
        assert_eq!(called(&link, number), Some(false), "of the connection itself");
        for stamp in 1..LAZY {
            link.push(&ping(stamp), Hurry::Lazy).unwrap();
            assert!(!woken(&link));
        }
        link.push(&ping(0), Hurry::Lazy).unwrap();
        assert!(woken(&link), "so many are enough");
        let link = Link::new();
        attach(&link, 7);
        link.push(&ping(0), Hurry::Lazy).unwrap();
        link.push(&ping(1), Hurry::Now).unwrap();
        assert!(woken(&link), "someone waits for the second");
    }

    #[test]
    fn what_is_due_soon_waits_for_what_others_say_and_no_longer() {
        let link = Link::new();
        let number = attach(&link, 7);
        link.push(&ping(0), Hurry::Soon).unwrap();
        link.push(&ping(1), Hurry::Lazy).unwrap();
        link.wake();
        assert_eq!(called(&link, number), Some(true), "it is to be written, and can wait");
        assert_eq!(called(&link, number), None, "told once");
        link.push(&ping(2), Hurry::Now).unwrap();
        link.wake();
        assert_eq!(called(&link, number), Some(false), "someone waits");
        assert_eq!(next(&link, number), Some((1, 3)), "all in one");
        link.push(&ping(3), Hurry::Soon).unwrap();
        link.wake();
        assert_eq!(called(&link, number), Some(true), "counted anew");
        assert!(link.detach(number));
        assert_eq!(called(&link, number), Some(false), "it is out of use");
        let number = attach(&link, 7);
        assert_eq!(called(&link, number), Some(false), "what was not confirmed goes first");
        while next(&link, number).is_some() {}
        link.call();
        assert_eq!(called(&link, number), Some(false), "there is nothing");
    }

    #[test]
    fn a_sign_of_life_is_due_when_nothing_else_was_said() {
        let (link, second) = (Link::new(), Duration::from_secs(1));
        link.look_after(second);
        let number = attach(&link, 7);
        let said = |link: &Link| next(link, number).map(|(_, count)| count);
        assert_eq!(called(&link, number), Some(false), "of the connection itself");
        assert_eq!(said(&link), None);
        link.look_after(second);
        assert_eq!((called(&link, number), said(&link)), (Some(false), Some(0)));
        assert_eq!(said(&link), None, "once");
        link.push(&ping(0), Hurry::Lazy).unwrap();
        link.look_after(second);
        assert_eq!((called(&link, number).is_some(), said(&link)), (true, Some(1)), "instead");
        link.look_after(second);
        assert_eq!((called(&link, number), said(&link)), (None, None), "that was one");
        link.look_after(second);
        assert!(called(&link, number).is_some());
    }

    #[test]
    fn who_is_silent_for_too_long_is_not_there() {
        let link = Link::new();
        let number = attach(&link, 7);
        link.look_after(Duration::from_secs(1000));
        assert_eq!(link.awake(number), Some(true));
        link.cannot_write(number, &Context::from_waker(Waker::noop()));
        link.look_after(Duration::ZERO);
        assert_eq!(link.awake(number), Some(true), "it may be we who slept");
        assert!(link.state().stuck.is_some());
        link.look_after(Duration::ZERO);
        assert_eq!(link.awake(number), Some(false), "we have heard nothing");
        assert!(called(&link, number).is_some(), "who speaks is told");
        assert!(link.state().stuck.is_none(), "also while it writes");
        assert_eq!(link.awake(number + 1), None, "another is not about this");
        assert_eq!(link.hear(number, 1, None, 0), Some(0));
        assert_eq!(link.awake(number), Some(true), "it was there, unread");
        link.cannot_write(number, &Context::from_waker(Waker::noop()));
        assert_eq!(attach(&link, 8), number + 1);
        assert!(link.state().stuck.is_none(), "who cannot write learns that it is out of use");
        assert_eq!(link.awake(number), None);
    }

    #[test]
    fn of_two_calls_at_once_that_of_the_lower_one_counts() {
        let second = Duration::from_secs(1);
        let link = Link::new();
        assert!(matches!(link.attach(&hello(7), ProcessId(1), second), Attached::Used { .. }));
        assert!(matches!(link.attach(&hello(7), ProcessId(0), second), Attached::Used { .. }));
        assert!(matches!(link.attach(&hello(7), ProcessId(1), second), Attached::Surplus));
        let other = Hello { key: 2, ..hello(9) };
        assert!(matches!(link.attach(&other, ProcessId(0), second), Attached::Taken));
    }
}
