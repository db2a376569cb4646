//! A stream of bytes in both directions over NATS.
//!
//! NATS delivers a message once or not at all. Pieces are numbered, so a missing one is noticed. Then the
//! stream ends as a broken connection does, and the link above sends unconfirmed frames again on the next
//! one. A window limits the bytes in flight.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_nats::Client;
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, split};
use tokio::sync::{mpsc, watch};

use super::message::{HEAD, StreamMessage};

/// The most bytes in flight or unread, in one direction.
pub(super) const WINDOW: u64 = 2 << 20;
/// The longest piece. Servers accept one mebibyte by default.
const PIECE: usize = 64 << 10;

/// The endpoint's side of a stream: takes arriving messages.
pub(super) struct NatsStream {
    pieces: mpsc::UnboundedSender<Bytes>,
    room: watch::Sender<u64>,
    /// The number of the next piece, and the bytes that have arrived before it.
    next: u64,
    arrived: u64,
    read: Arc<AtomicU64>,
    gone: Arc<AtomicBool>,
}

/// The side of the task that carries the stream.
pub(super) struct StreamTask {
    pieces: mpsc::UnboundedReceiver<Bytes>,
    room: watch::Receiver<u64>,
    read: Arc<AtomicU64>,
}

/// The two subjects of a stream.
pub(super) struct StreamRoute {
    pub(super) client: Client,
    /// The peer's subject, and this node's.
    pub(super) to: String,
    pub(super) from: String,
}

/// The result of an arriving piece.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Accepted {
    Fine,
    /// A piece is missing before it, or it exceeds the window.
    Broken,
}

impl NatsStream {
    /// A new stream; and the flag that is set if nobody reads the peer's inbox.
    pub(super) fn new() -> (Self, StreamTask, Arc<AtomicBool>) {
        let (pieces, arriving) = mpsc::unbounded_channel();
        let (room, changes) = watch::channel(0);
        let (read, gone) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let stream_task = StreamTask { pieces: arriving, room: changes, read: read.clone() };
        (Self { pieces, room, next: 1, arrived: 0, read, gone: gone.clone() }, stream_task, gone)
    }

    pub(super) fn take(&mut self, number: u64, bytes: Bytes) -> Accepted {
        if number < self.next {
            // A duplicate.
            return Accepted::Fine;
        }
        self.arrived += bytes.len() as u64;
        let waiting = self.arrived - self.read.load(Ordering::Acquire);
        if number > self.next || waiting > WINDOW {
            return Accepted::Broken;
        }
        self.next += 1;
        // An error means that the reader is gone; its task ends the stream.
        let _ = self.pieces.send(bytes);
        Accepted::Fine
    }

    pub(super) fn has_room(&self, read: u64) {
        self.room.send_if_modified(|known| std::mem::replace(known, read.max(*known)) < read);
    }

    /// The server reports that nobody reads the peer's inbox.
    pub(super) fn no_responders(self) {
        self.gone.store(true, Ordering::Release);
    }
}

impl StreamTask {
    /// Carries bytes in both directions, until either side ends.
    pub(super) async fn carry(self, route: &StreamRoute, stream: DuplexStream) -> io::Result<()> {
        let (mut reader, mut writer) = split(stream);
        let Self { mut pieces, mut room, read } = self;
        let inwards = async {
            let (mut total, mut reported) = (0, 0);
            while let Some(piece) = pieces.recv().await {
                writer.write_all(&piece).await?;
                total += piece.len() as u64;
                read.store(total, Ordering::Release);
                if total - reported >= WINDOW / 4 {
                    reported = total;
                    route.send(&StreamMessage::Room(total)).await?;
                }
            }
            writer.shutdown().await
        };
        let outwards = async {
            let (mut sent, mut number) = (0, 0);
            let mut buffer = vec![0; route.longest()];
            loop {
                let length = reader.read(&mut buffer).await?;
                if length == 0 {
                    return Ok(());
                }
                (sent, number) = (sent + length as u64, number + 1);
                let roomy = room.wait_for(|read| sent <= read.saturating_add(WINDOW)).await;
                drop(roomy.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?);
                let piece = StreamMessage::Piece(number, Bytes::copy_from_slice(&buffer[..length]));
                route.send(&piece).await?;
            }
        };
        tokio::select! {
            ended = inwards => ended,
            ended = outwards => ended,
        }
    }
}

impl StreamRoute {
    /// Sends with a reply subject: so the server reports at once if nobody reads the inbox.
    pub(super) async fn send(&self, message: &StreamMessage) -> io::Result<()> {
        let (to, from) = (self.to.clone(), self.from.clone());
        let sent = self.client.publish_with_reply(to, from, message.encode()).await;
        sent.map_err(io::Error::other)
    }

    fn longest(&self) -> usize {
        PIECE.min(self.client.max_payload().saturating_sub(HEAD)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_piece_is_ignored_and_missing_piece_breaks_stream() {
        let (mut stream, mut stream_task, _) = NatsStream::new();
        for number in [1, 2, 1, 2, 3] {
            assert_eq!(stream.take(number, Bytes::from(vec![number as u8])), Accepted::Fine);
        }
        let got: Vec<Bytes> = std::iter::from_fn(|| stream_task.pieces.try_recv().ok()).collect();
        assert_eq!(got.concat(), [1, 2, 3]);
        assert_eq!(stream.take(5, Bytes::from_static(b"x")), Accepted::Broken, "4 is missing");
    }

    #[test]
    fn piece_beyond_window_breaks_stream() {
        let (mut stream, stream_task, _) = NatsStream::new();
        let piece = Bytes::from(vec![0; WINDOW as usize / 2]);
        assert_eq!(stream.take(1, piece.clone()), Accepted::Fine);
        assert_eq!(stream.take(2, piece.clone()), Accepted::Fine);
        stream_task.read.store(WINDOW / 2, Ordering::Release);
        assert_eq!(stream.take(3, piece.clone()), Accepted::Fine, "some of it was read");
        assert_eq!(stream.take(4, piece), Accepted::Broken);
    }

    #[test]
    fn window_only_grows() {
        let (stream, stream_task, gone) = NatsStream::new();
        stream.has_room(5);
        stream.has_room(3);
        assert_eq!(*stream_task.room.borrow(), 5);
        stream.no_responders();
        assert!(gone.load(Ordering::Acquire));
    }
}
