//! A stream of bytes in messages of Noise: two bytes of length, then the encrypted message.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use snow::TransportState;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::TAG;

/// The most bytes in one message. With short messages, a slow network still delivers parts of a long record.
const PIECE: usize = 16 << 10;
/// The most messages to encrypt before the next one is written.
const PIECES: usize = 8;
/// Bytes of a message's length, in front of it.
const LENGTH: usize = 2;
/// The buffer for received bytes: several messages, so that many short ones cost one read.
const BUFFER: usize = 64 << 10;

/// An encrypted stream. It accepts each message once, and only in its place in the order.
pub(in crate::net) struct NoiseStream<S> {
    stream: S,
    cipher: TransportState,
    /// Received bytes: up to `taken` they are decrypted, up to `come` they have arrived.
    incoming: Vec<u8>,
    taken: usize,
    come: usize,
    /// A decrypted message for which the reader had no room, and the number of its bytes that were read.
    opened: Vec<u8>,
    read: usize,
    /// Encrypted messages, and the number of their bytes that were written.
    outgoing: Vec<u8>,
    written: usize,
}

impl<S> NoiseStream<S> {
    pub(super) fn new(stream: S, cipher: TransportState) -> Self {
        Self {
            stream,
            cipher,
            incoming: vec![0; BUFFER],
            taken: 0,
            come: 0,
            opened: Vec::new(),
            read: 0,
            outgoing: Vec::new(),
            written: 0,
        }
    }

    /// The range of the next message in `incoming`, if it has arrived.
    fn next_message(&self) -> io::Result<Option<std::ops::Range<usize>>> {
        let arrived = &self.incoming[self.taken..self.come];
        let Some(length) = arrived.first_chunk::<LENGTH>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if !(TAG + 1..=TAG + PIECE).contains(&length) {
            return Err(changed());
        }
        let from = self.taken + LENGTH;
        Ok((from + length <= self.come).then(|| from..from + length))
    }

    /// Decrypts the messages that have arrived, as far as `room` takes them; returns whether there was one. If a
    /// message was changed, the bytes before it are delivered, and the next read returns the error.
    fn open(&mut self, room: &mut ReadBuf<'_>) -> io::Result<bool> {
        let before = room.filled().len();
        match self.open_each(room) {
            Err(_) if room.filled().len() > before => Ok(true),
            opened => opened,
        }
    }

    fn open_each(&mut self, room: &mut ReadBuf<'_>) -> io::Result<bool> {
        let before = room.filled().len();
        loop {
            if self.read < self.opened.len() {
                let rest = &self.opened[self.read..];
                let some = rest.len().min(room.remaining());
                room.put_slice(&rest[..some]);
                self.read += some;
            }
            if room.remaining() == 0 || self.read < self.opened.len() {
                return Ok(true);
            }
            let Some(message) = self.next_message()? else {
                return Ok(room.filled().len() > before);
            };
            let (length, end) = (message.len() - TAG, message.end);
            let message = &self.incoming[message];
            if length <= room.remaining() {
                let plain = room.initialize_unfilled_to(length);
                self.cipher.read_message(message, plain).map_err(|_| changed())?;
                room.advance(length);
            } else {
                self.opened.resize(length, 0);
                self.read = 0;
                if self.cipher.read_message(message, &mut self.opened).is_err() {
                    self.opened.clear();
                    return Err(changed());
                }
            }
            self.taken = end;
        }
    }

    /// Makes room for the rest of the next message.
    fn make_room(&mut self) {
        if self.taken > 0 && (self.taken == self.come || BUFFER - self.taken < LENGTH + TAG + PIECE)
        {
            self.incoming.copy_within(self.taken..self.come, 0);
            (self.taken, self.come) = (0, self.come - self.taken);
        }
    }
}

impl<S: AsyncWrite + Unpin> NoiseStream<S> {
    /// Writes the encrypted messages.
    fn poll_outgoing(&mut self, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.outgoing.len() {
            let rest = &self.outgoing[self.written..];
            let more = ready!(Pin::new(&mut self.stream).poll_write(task, rest))?;
            if more == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += more;
        }
        self.outgoing.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for NoiseStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while !this.open(room)? {
            this.make_room();
            let mut more = ReadBuf::new(&mut this.incoming[this.come..]);
            ready!(Pin::new(&mut this.stream).poll_read(task, &mut more))?;
            let more = more.filled().len();
            if more == 0 {
                let whole = this.taken == this.come;
                let cut = || Err(io::ErrorKind::UnexpectedEof.into());
                return Poll::Ready(if whole { Ok(()) } else { cut() });
            }
            this.come += more;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for NoiseStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.poll_outgoing(task))?;
        let mut taken = 0;
        for piece in bytes.chunks(PIECE).take(PIECES) {
            let length = piece.len() + TAG;
            this.outgoing.extend_from_slice(&(length as u16).to_be_bytes());
            let from = this.outgoing.len();
            this.outgoing.resize(from + length, 0);
            let sealed = this.cipher.write_message(piece, &mut this.outgoing[from..]);
            sealed.map_err(io::Error::other)?;
            taken += piece.len();
        }
        // These bytes are taken. What the stream does not accept now leaves with the next write or flush.
        if let Poll::Ready(Err(error)) = this.poll_outgoing(task) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_outgoing(task))?;
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_outgoing(task))?;
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}

/// The error of a message that is not the next one of this connection.
fn changed() -> io::Error {
    let what = "a message does not belong to this connection, or was changed";
    io::Error::new(io::ErrorKind::InvalidData, what)
}
