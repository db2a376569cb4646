//! Link to one peer: delivers frames in order and once, over any number of connections.
//!
//! Frames are numbered. Unconfirmed frames are kept, and sent again on the next connection; the peer skips
//! those it has already received. A restarted process is another peer.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::shared::{BATCH_FRAMES, Flush};
use crate::wire::{Frame, Hello, MAX_FRAME, WireError};
use konklave_process::ProcessId;

/// The most bytes of one record.
const CHUNK: usize = 256 << 10;
/// The capacity kept for the next record.
const SPARE: usize = 4 << 10;
/// The most bytes to keep for a peer that does not confirm, unless a single record is longer. Older frames
/// are lost; virtual synchrony replaces them.
const UNCONFIRMED: usize = 64 << 20;
/// The same without a connection: a peer may be away for days.
const UNCONFIRMED_AWAY: usize = 1 << 20;

/// After how many checks without a sign of life a connection is over. Not after one: this machine may have
/// slept, with the peer's frames unread.
const MISSED_CHECKS: u32 = 2;

/// Frames with consecutive numbers.
#[derive(Debug, Default)]
struct Chunk {
    first: u64,
    count: u64,
    bytes: Vec<u8>,
}

/// The next thing to write to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// The record that was put into the buffer.
    Record,
    /// Nothing for now.
    Nothing,
    /// Nothing any more: the connection has been replaced.
    Closed,
}

#[derive(Default)]
struct State {
    /// The peer's process: a random number per start.
    boot: u64,
    key: u64,
    /// The number of the next frame.
    next: u64,
    /// The open chunk, which collects frames; and a buffer to reuse for the next one.
    open: Vec<u8>,
    spare: Vec<u8>,
    open_count: u64,
    /// How many of its frames are batched.
    batched: u64,
    /// How many of its frames may wait until local tasks have run.
    after_local: u64,
    /// Closed chunks that are not confirmed, and how many of them are written on this connection.
    unconfirmed: VecDeque<Chunk>,
    written: usize,
    bytes: usize,
    /// The last number received, and the last own number that the peer confirmed.
    received: u64,
    confirmed: u64,
    /// The connection in use.
    connection: Option<ActiveConnection>,
    connections: u64,
    /// Whether a record was written since the last check: it counts as a sign of life. Otherwise one is due.
    sent_lately: bool,
    sign_due: bool,
    /// Whether the writer has work; and its waker while it is idle.
    work_pending: bool,
    writer: Option<Waker>,
    /// The writer's waker while the stream takes no bytes.
    blocked_writer: Option<Waker>,
    /// Whether the node counts the peer as connected.
    up: bool,
    address: String,
    /// The identity that the peer has proved with its static key or its certificate.
    identity: Option<String>,
}

struct ActiveConnection {
    number: u64,
    caller: ProcessId,
    heard: Instant,
    /// How many checks in a row found the peer silent.
    missed_checks: u32,
}

pub(super) struct Link {
    state: Mutex<State>,
    /// Held while received frames are delivered.
    delivery_turn: Mutex<()>,
}

/// The result of attaching a new connection.
pub(super) enum Attached {
    /// It is in use. `news`: the node did not count the peer as connected before.
    InUse { number: u64, news: bool },
    /// Another connection is in use.
    Redundant,
    /// Another node with this id is connected.
    IdTaken,
    /// The node has proved this identity before, and now another one or none.
    Impostor(String),
}

impl Link {
    pub(super) fn new() -> Self {
        let state = Mutex::new(State { next: 1, ..State::default() });
        Self { state, delivery_turn: Mutex::default() }
    }

    /// Serialises delivery across reconnects, so that frames keep their order.
    pub(super) fn delivery_turn(&self) -> MutexGuard<'_, ()> {
        self.delivery_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a frame; returns its number.
    pub(super) fn push(&self, frame: &Frame, flush: Flush) -> Result<u64, WireError> {
        let mut state = self.state();
        let open = std::mem::take(&mut state.open);
        let before = open.len();
        state.open = frame.encode(open);
        let bytes = state.open.len() - before;
        if bytes > MAX_FRAME {
            // The peer would close the connection at such a frame, and the next one, too, because the frame
            // would be sent again.
            state.open.truncate(before);
            state.open.shrink_to(CHUNK);
            return Err(WireError::LongFrame(bytes));
        }
        Ok(state.frame_added(flush))
    }

    /// Queues a frame that is already encoded.
    pub(super) fn push_bytes(&self, bytes: &[u8], flush: Flush) -> Result<u64, WireError> {
        if bytes.len() > MAX_FRAME {
            return Err(WireError::LongFrame(bytes.len()));
        }
        let mut state = self.state();
        state.open.extend_from_slice(bytes);
        Ok(state.frame_added(flush))
    }

    /// Wakes the writer, unless all pending frames are batched.
    pub(super) fn wake(&self) {
        let state = self.state();
        let waits = state.open_count > state.batched || state.batched >= BATCH_FRAMES;
        if state.connection.is_some() && (waits || state.written < state.unconfirmed.len()) {
            wake_writer(state);
        }
    }

    /// Wakes the writer in any case.
    pub(super) fn wake_writer(&self) {
        wake_writer(self.state());
    }

    /// Polled by the idle writer of connection `number`: ready when there is work. The value: whether all of
    /// it may wait until local tasks have run.
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

    /// Called when the task of connection `number` runs: its writer checks for work before it goes idle, so
    /// it need not be woken. Returns whether the peer seems alive; `None` if the connection has been
    /// replaced.
    pub(super) fn writer_awake(&self, number: u64) -> Option<bool> {
        let mut state = self.state();
        let connection = state.connection.as_ref().filter(|c| c.number == number)?;
        let alive = connection.missed_checks < MISSED_CHECKS;
        state.writer = None;
        Some(alive)
    }

    /// Periodic check. If no record was written since the last one, a sign of life is due. If nothing arrived
    /// for `silence`, repeatedly, the connection is over.
    pub(super) fn check_liveness(&self, silence: Duration) {
        let mut state = self.state();
        let Some(connection) = &mut state.connection else { return };
        let silent = connection.heard.elapsed() > silence;
        connection.missed_checks = if silent { connection.missed_checks + 1 } else { 0 };
        let over = connection.missed_checks >= MISSED_CHECKS;
        // Batched frames stay where they are, unless nothing else was written.
        state.sign_due = !std::mem::take(&mut state.sent_lately);
        let blocked_writer = if over { state.blocked_writer.take() } else { None };
        if over || state.sign_due {
            wake_writer(state);
        }
        blocked_writer.into_iter().for_each(Waker::wake);
    }

    /// The writer of connection `number` is blocked; it is woken if the connection is over.
    pub(super) fn cannot_write(&self, number: u64, task: &Context<'_>) {
        let mut state = self.state();
        if state.connection.as_ref().is_some_and(|c| c.number == number) {
            state.blocked_writer = Some(task.waker().clone());
        }
    }

    /// Whether frames wait in the open chunk.
    pub(super) fn has_open_chunk(&self) -> bool {
        self.state().open_count > 0
    }

    /// A connection to the peer is established; `caller` is the side that called.
    pub(super) fn attach(
        &self,
        hello: &Hello,
        identity: Option<&str>,
        caller: ProcessId,
        silence: Duration,
    ) -> Attached {
        let mut state = self.state();
        // A member may tell the key of another node, which all members know. It cannot prove its identity.
        if let Some(known) = &state.identity
            && state.key == hello.key
            && identity != Some(known)
        {
            return Attached::Impostor(known.clone());
        }
        if let Some(old) = &state.connection {
            let alive = old.heard.elapsed() < silence / 2;
            if alive && state.key != hello.key {
                return Attached::IdTaken;
            }
            // Both sides may have called at once: the call of the lower id counts.
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
        state.identity = identity.map(str::to_owned);
        state.address.clone_from(&hello.address);
        state.written = 0;
        state.up = true;
        state.connections += 1;
        let number = state.connections;
        state.connection =
            Some(ActiveConnection { number, caller, heard: Instant::now(), missed_checks: 0 });
        // The task of the replaced connection ends, even if its writer is blocked.
        let blocked_writer = state.blocked_writer.take();
        wake_writer(state);
        blocked_writer.into_iter().for_each(Waker::wake);
        Attached::InUse { number, news }
    }

    /// Connection `number` has ended; returns whether it was in use.
    pub(super) fn detach(&self, number: u64) -> bool {
        let mut state = self.state();
        let used = state.connection.as_ref().is_some_and(|c| c.number == number);
        if used {
            state.connection = None;
        }
        used
    }

    /// The peer's port is closed; returns whether the node still counted the peer as connected.
    pub(super) fn mark_down(&self) -> bool {
        let mut state = self.state();
        state.connection.is_none() && std::mem::replace(&mut state.up, false)
    }

    pub(super) fn is_connected(&self) -> bool {
        self.state().connection.is_some()
    }

    /// Ends the connection in use.
    pub(super) fn cut(&self) {
        let mut state = self.state();
        state.connection = None;
        let blocked_writer = state.blocked_writer.take();
        wake_writer(state);
        blocked_writer.into_iter().for_each(Waker::wake);
    }

    /// The identity that the peer has proved.
    pub(super) fn identity(&self) -> Option<String> {
        self.state().identity.clone()
    }

    pub(super) fn address(&self) -> String {
        self.state().address.clone()
    }

    /// Builds the next record for connection `number`: the number of its first frame, the last number
    /// received, and the frames; without frames, it is a sign of life.
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
        let has_frames = state.written < state.unconfirmed.len();
        state.written += usize::from(has_frames);
        state.sent_lately |= has_frames;
        Next::Record
    }

    /// A part of a record has arrived on connection `number`. On a slow network a long record takes its time,
    /// so each part counts as a sign of life.
    pub(super) fn receive_partial(&self, number: u64) {
        if let Some(connection) = self.state().connection.as_mut().filter(|c| c.number == number) {
            (connection.heard, connection.missed_checks) = (Instant::now(), 0);
        }
    }

    /// A record arrived on connection `number`: frames `first` to `last`, or none as a sign of life; the peer
    /// has received all own frames up to `confirmed`. Returns how many of its frames were received before;
    /// `None` if the connection has been replaced.
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
            // The peer has lost its state of this link, its own numbers included: it counts from one again.
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
    /// A frame was added to the open chunk; returns its number.
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

    /// Keeps the buffer of a confirmed chunk for the next one.
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
pub(super) mod tests;
