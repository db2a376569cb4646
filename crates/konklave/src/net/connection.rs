//! An established connection: records in both directions.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use konklave_process::ProcessId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::link::{Link, Next};
use super::record_reader::{LENGTH, RecordReader, garbage};
use super::{Mesh, dial};
use crate::local_grant_budget::YieldToWoken;
use crate::shared::Shared;
use crate::wire::{Frame, WireError, last_number};

/// Length of the record header: the number of the first frame, and the last frame number confirmed.
const HEADER: usize = 16;
/// How often to read before writing; a part of the runtime's budget for a task.
const READS: u32 = 32;

pub(super) struct Connection {
    pub(super) mesh: Arc<Mesh>,
    pub(super) shared: Arc<Shared>,
    pub(super) link: Arc<Link>,
    pub(super) peer: ProcessId,
    pub(super) number: u64,
}

impl Connection {
    /// Reads and writes until the connection ends; returns why it ended.
    pub(super) async fn run<S>(&self, stream: S) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite,
    {
        let settings = &self.mesh.settings;
        let mut io = ConnectionIo {
            connection: self,
            stream: pin!(stream),
            reader: RecordReader::default(),
            frames: Vec::new(),
            record: Vec::new(),
            written: 0,
            state: WriterState::Writing,
        };
        match poll_fn(|task| io.poll(task)).await {
            Ended::Reading(why) => why,
            Ended::Writing(why) => {
                if why.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::TimedOut) {
                    // The peer no longer reads, but its last records may have arrived unread.
                    let rest = poll_fn(|task| io.poll_read(task));
                    let _ = timeout(settings.heartbeat, rest).await;
                }
                why
            }
        }
    }

    /// Delivers a record; `frames` is an empty buffer to reuse. Returns `false` if this connection has been
    /// replaced.
    fn take(&self, record: &[u8], frames: &mut Vec<Frame>) -> Result<bool, WireError> {
        let Some((header, mut rest)) = record.split_at_checked(HEADER) else {
            return Err(WireError::Short);
        };
        let number = |at: usize| {
            let bytes: [u8; 8] = header[at..at + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        let (first, confirmed) = (number(0), number(8));
        while !rest.is_empty() {
            let frame;
            (frame, rest) = Frame::decode(rest)?;
            frames.push(frame);
        }
        let last = match frames.len() {
            0 => None,
            count => Some(last_number(first, count)?),
        };
        let _turn = self.link.delivery_turn();
        let Some(known) = self.link.receive(self.number, first, last, confirmed) else {
            return Ok(false);
        };
        if !frames.is_empty() {
            self.deliver(first, frames, known);
        }
        Ok(true)
    }

    /// Delivers frames with numbers from `first`, except the first `known` ones, which have been delivered
    /// before.
    fn deliver(&self, first: u64, frames: &mut Vec<Frame>, known: u64) {
        let mut addresses = Vec::new();
        self.shared.with(|core, now| {
            for (number, frame) in (first..).zip(frames.drain(..)).skip(known as usize) {
                core.flight.note(now, false, self.peer.0, number, &frame);
                match frame {
                    Frame::Peers(peers) => addresses.extend(peers),
                    frame => core.on_frame(self.peer, frame, now),
                }
            }
            core.pump();
        });
        for (id, address) in addresses.into_iter().take(256) {
            if id != self.mesh.me.0 {
                dial::call(&self.mesh, &self.shared, address, None, Some(ProcessId(id)));
            }
        }
    }
}

/// The half of the connection that ended, and why.
enum Ended {
    Reading(io::Result<()>),
    Writing(io::Result<()>),
}

/// The state of the writing half.
enum WriterState {
    /// Writes records.
    Writing,
    /// Waits for frames to write.
    Idle,
    /// Waits until local tasks have run: their frames travel with the present ones.
    Yielding(YieldToWoken),
    /// Has written everything, and shuts the stream down.
    Closing,
}

/// Both halves of a connection, in one task, so that the frames a record causes leave before the task goes
/// idle. A hand-written state machine, because every message passes here twice.
struct ConnectionIo<'a, S> {
    connection: &'a Connection,
    stream: Pin<&'a mut S>,
    reader: RecordReader,
    /// Empty between records; kept to reuse its memory.
    frames: Vec<Frame>,
    /// The record being written, and how much of it is written.
    record: Vec<u8>,
    written: usize,
    state: WriterState,
}

impl<S: AsyncRead + AsyncWrite> ConnectionIo<'_, S> {
    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Ended> {
        let Connection { link, number, .. } = self.connection;
        let Some(alive) = link.writer_awake(*number) else {
            return Poll::Ready(Ended::Writing(Ok(())));
        };
        if let Poll::Ready(why) = self.poll_read(task) {
            return Poll::Ready(Ended::Reading(why));
        }
        // The peer seemed silent. Unless this machine slept: then its last records have just been read.
        if !alive && link.writer_awake(*number) == Some(false) {
            let silent =
                io::Error::new(io::ErrorKind::TimedOut, "the peer was silent for too long");
            return Poll::Ready(Ended::Writing(Err(silent)));
        }
        self.poll_write(task).map(Ended::Writing)
    }

    /// Delivers arriving records; ready when no more will come. After `READS` reads, the writer gets its
    /// turn.
    fn poll_read(&mut self, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        for i in 0..READS {
            let mut whole = false;
            while let Some(record) = self.reader.next()? {
                whole = true;
                if !self.connection.take(record, &mut self.frames).map_err(garbage)? {
                    return Poll::Ready(Ok(()));
                }
            }
            if i > 0 && !whole {
                self.connection.link.receive_partial(self.connection.number);
            }
            ready!(self.reader.poll_fill(self.stream.as_mut(), task))?;
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes pending frames; ready when there will be no more.
    fn poll_write(&mut self, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Connection { mesh, shared, link, number, .. } = self.connection;
        loop {
            while self.written < self.record.len() {
                let rest = &self.record[self.written..];
                let Poll::Ready(more) = self.stream.as_mut().poll_write(task, rest) else {
                    link.cannot_write(*number, task);
                    return Poll::Pending;
                };
                let more = more?;
                if more == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.written += more;
            }
            match &mut self.state {
                WriterState::Writing => {
                    if shared.has_deferred() && link.has_open_chunk() {
                        shared.send_deferred();
                    }
                    match self.next_record() {
                        Next::Record => {}
                        Next::Closed => return Poll::Ready(Ok(())),
                        Next::Nothing => {
                            let Poll::Ready(flushed) = self.stream.as_mut().poll_flush(task) else {
                                link.cannot_write(*number, task);
                                return Poll::Pending;
                            };
                            flushed?;
                            let over = *mesh.stop.borrow();
                            self.state =
                                if over { WriterState::Closing } else { WriterState::Idle };
                        }
                    }
                }
                WriterState::Idle => {
                    let can_wait = ready!(link.poll_writable(*number, task));
                    let others = YieldToWoken::default();
                    self.state =
                        if can_wait { WriterState::Yielding(others) } else { WriterState::Writing };
                }
                WriterState::Yielding(others) => {
                    ready!(others.poll(&shared.grant_budget, task));
                    self.state = WriterState::Writing;
                }
                WriterState::Closing => return self.stream.as_mut().poll_shutdown(task),
            }
        }
    }

    /// Builds the next record, if frames are pending: length, header and frames.
    fn next_record(&mut self) -> Next {
        let record = &mut self.record;
        record.clear();
        self.written = 0;
        record.extend([0; LENGTH]);
        let next = self.connection.link.next_record(self.connection.number, record);
        if next == Next::Record {
            let length = (record.len() - LENGTH) as u32;
            record[..LENGTH].copy_from_slice(&length.to_le_bytes());
        } else {
            record.clear();
        }
        next
    }
}

/// The time limit for a handshake.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
