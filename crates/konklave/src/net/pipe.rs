//! One connection in use: records in both directions.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use konklave_process::ProcessId;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use super::link::Link;
use super::seal::Sealer;
use super::{Mesh, dial};
use crate::shared::Shared;
use crate::wire::{Frame, MAX_RECORD, WireError, record_length};

/// The number of the first frame, and of the last that was confirmed.
const HEADER: usize = 16;
/// How much is read at once.
const BUFFER: usize = 128 << 10;

pub(super) struct Pipe {
    pub(super) mesh: Arc<Mesh>,
    pub(super) shared: Arc<Shared>,
    pub(super) link: Arc<Link>,
    pub(super) peer: ProcessId,
    pub(super) number: u64,
}

impl Pipe {
    /// Reads and writes until the connection ends: why it did.
    pub(super) async fn run<S>(&self, stream: S, sealer: Sealer, opener: Sealer) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite,
    {
        let (reader, writer) = tokio::io::split(stream);
        let mut reading = pin!(self.read(reader, opener));
        // One task for both: what a record brings about leaves before the task rests.
        let written = tokio::select! {
            biased;
            result = &mut reading => return result,
            result = self.write(writer, sealer) => result,
        };
        if written.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::TimedOut) {
            // Nobody is there any more who reads; but what it said last may be here, unread.
            let _ = timeout(self.mesh.settings.heartbeat, reading).await;
        }
        written
    }

    async fn write(
        &self,
        mut writer: impl AsyncWrite + Unpin,
        mut sealer: Sealer,
    ) -> io::Result<()> {
        let settings = &self.mesh.settings;
        let mut beat = tokio::time::interval(settings.heartbeat.max(settings.silence / 8));
        let mut record = Vec::new();
        // Whether something has left since the last beat: then that was a sign of life. If not, one is due.
        let (mut spoke, mut due) = (false, false);
        loop {
            if self.shared.lingers() && self.link.has_more() {
                self.shared.say_all();
            }
            let Some((chunk, received)) = self.link.next_chunk(self.number) else { return Ok(()) };
            if let Some(chunk) = chunk {
                pack(&mut record, chunk.first, received, &chunk.bytes, &mut sealer);
                writer.write_all(&record).await?;
                (spoke, due) = (true, false);
                continue;
            }
            if std::mem::take(&mut due) {
                pack(&mut record, 0, received, &[], &mut sealer);
                writer.write_all(&record).await?;
            }
            writer.flush().await?;
            if *self.mesh.stop.borrow() {
                return writer.shutdown().await;
            }
            // What nobody waits for stays where it is, unless nothing else has left for a while.
            while !due {
                tokio::select! {
                    () = self.link.ready.notified() => {
                        // Those who were woken speak first: what they say leaves with what waits.
                        if self.link.can_wait() {
                            self.shared.streak.others_first().await;
                        }
                        break;
                    }
                    _ = beat.tick() => {
                        if self.link.silent_for() > settings.silence {
                            let kind = io::ErrorKind::TimedOut;
                            return Err(io::Error::new(kind, "silent for too long"));
                        }
                        due = !std::mem::take(&mut spoke);
                    }
                }
            }
        }
    }

    async fn read(&self, reader: impl AsyncRead + Unpin, mut opener: Sealer) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(BUFFER, reader);
        let mut record = Vec::new();
        loop {
            let mut header = [0; 4];
            reader.read_exact(&mut header).await?;
            record.resize(record_length(header, MAX_RECORD).map_err(garbage)?, 0);
            reader.read_exact(&mut record).await?;
            if !opener.open(&mut record) {
                let what = "a record that is not of this connection, or was changed";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            if !self.take(&record).map_err(garbage)? {
                return Ok(());
            }
        }
    }

    /// Takes a record in; false: this connection is out of use.
    fn take(&self, record: &[u8]) -> Result<bool, WireError> {
        let Some((header, mut rest)) = record.split_at_checked(HEADER) else {
            return Err(WireError::Short);
        };
        let number = |at: usize| {
            let bytes: [u8; 8] = header[at..at + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        let (first, confirmed) = (number(0), number(8));
        let Some(mut known) = self.link.hear(self.number, first, confirmed) else {
            return Ok(false);
        };
        let (mut frames, mut last) = (Vec::new(), first);
        while !rest.is_empty() {
            let (frame, after) = Frame::decode(rest)?;
            match known.checked_sub(1) {
                Some(fewer) => known = fewer,
                None => {
                    self.mesh.flight.note(false, self.peer.0, last, &frame);
                    frames.push(frame);
                }
            }
            (rest, last) = (after, last.saturating_add(1));
        }
        if last > first {
            self.link.received(last - 1);
        }
        if !frames.is_empty() {
            self.deliver(frames);
        }
        Ok(true)
    }

    fn deliver(&self, frames: Vec<Frame>) {
        let mut addresses = Vec::new();
        self.shared.with(|core, now| {
            for frame in frames {
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

fn garbage(error: WireError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Makes a record: length, then, sealed, numbers and frames.
fn pack(record: &mut Vec<u8>, first: u64, received: u64, frames: &[u8], sealer: &mut Sealer) {
    record.clear();
    record.extend([0; 4]);
    record.extend(first.to_le_bytes());
    record.extend(received.to_le_bytes());
    record.extend_from_slice(frames);
    sealer.seal(record, 4);
    let length = (record.len() - 4) as u32;
    record[..4].copy_from_slice(&length.to_le_bytes());
}

/// How long a stranger may take to introduce itself.
pub(super) const GREETING: Duration = Duration::from_secs(3);
