//! Reader of records: collects the bytes of a connection, and splits them into records.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::wire::{MAX_RECORD, WireError, record_length};

/// The buffer, and so the most bytes to read at once.
const BUFFER: usize = 128 << 10;
/// A larger buffer is released after the record that needed it.
const LARGE: usize = 1 << 20;
/// Bytes of a record's length, in front of it.
pub(super) const LENGTH: usize = 4;

pub(super) struct RecordReader {
    bytes: Vec<u8>,
    /// Bytes up to `taken` are delivered, bytes up to `come` have arrived.
    taken: usize,
    come: usize,
}

impl Default for RecordReader {
    fn default() -> Self {
        Self { bytes: vec![0; BUFFER], taken: 0, come: 0 }
    }
}

impl RecordReader {
    /// The next complete record.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let Some(length) = self.announced()? else { return Ok(None) };
        let from = self.taken + LENGTH;
        let record = self.bytes[..self.come].get(from..from + length);
        self.taken = if record.is_some() { from + length } else { self.taken };
        Ok(record)
    }

    /// The length of the next record, if it has arrived.
    fn announced(&self) -> io::Result<Option<usize>> {
        let header = self.bytes[self.taken..self.come].first_chunk::<LENGTH>();
        header.map(|header| record_length(*header, MAX_RECORD)).transpose().map_err(garbage)
    }

    /// Reads the bytes that are there.
    pub(super) fn poll_fill(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        task: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.make_room()?;
        let mut room = ReadBuf::new(&mut self.bytes[self.come..]);
        ready!(stream.poll_read(task, &mut room))?;
        let more = room.filled().len();
        if more == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.come += more;
        Poll::Ready(Ok(()))
    }

    /// Makes room for the next record. Its announced length may be a lie, so the buffer never exceeds twice
    /// the bytes that have arrived.
    fn make_room(&mut self) -> io::Result<()> {
        if self.taken == self.come {
            (self.taken, self.come) = (0, 0);
            if self.bytes.len() > LARGE {
                self.bytes = vec![0; BUFFER];
            }
            return Ok(());
        }
        let needed = LENGTH + self.announced()?.unwrap_or(0);
        if self.taken + needed > self.bytes.len() {
            self.bytes.copy_within(self.taken..self.come, 0);
            (self.taken, self.come) = (0, self.come - self.taken);
        }
        if self.come == self.bytes.len() {
            self.bytes.resize(needed.min(2 * self.come), 0);
        }
        Ok(())
    }
}

pub(super) fn garbage(error: WireError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::poll_fn;

    use super::*;

    struct Pieces(VecDeque<Vec<u8>>);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            room: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            assert!(room.remaining() > 0, "there is always room");
            if let Some(mut piece) = self.0.pop_front() {
                let rest = piece.split_off(piece.len().min(room.remaining()));
                room.put_slice(&piece);
                if !rest.is_empty() {
                    self.0.push_front(rest);
                }
            }
            Poll::Ready(Ok(()))
        }
    }

    fn record(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
    }

    /// All records of a stream that arrives in pieces; the error that ended it; and the size of the buffer.
    async fn read(all: &[u8], piece: usize) -> (Vec<Vec<u8>>, io::Error, usize) {
        let mut inbox = RecordReader::default();
        let mut stream = Pieces(all.chunks(piece).map(<[u8]>::to_vec).collect());
        let mut records = Vec::new();
        loop {
            match inbox.next() {
                Ok(Some(record)) => records.push(record.to_vec()),
                Ok(None) => {
                    let filled = poll_fn(|task| inbox.poll_fill(Pin::new(&mut stream), task)).await;
                    if let Err(error) = filled {
                        return (records, error, inbox.bytes.len());
                    }
                }
                Err(error) => return (records, error, inbox.bytes.len()),
            }
        }
    }

    #[tokio::test]
    async fn records_are_reassembled_from_pieces() {
        let wanted = vec![vec![1, 2, 3], vec![], vec![7; BUFFER + 5], vec![8; 3 * BUFFER], vec![9]];
        let all: Vec<u8> = wanted.iter().flat_map(|bytes| record(bytes)).collect();
        for piece in [3, 4, 5, 1000, BUFFER - 1, BUFFER, BUFFER + 1, all.len()] {
            let (records, error, _) = read(&all, piece).await;
            assert_eq!(records.len(), wanted.len(), "in pieces of {piece}");
            assert!(records == wanted, "in pieces of {piece}");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
        let (records, error, _) = read(&all[..all.len() - 1], 1000).await;
        assert_eq!(records.len(), wanted.len() - 1, "the last one is not whole");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn announced_length_allocates_nothing() {
        let mut all = ((MAX_RECORD) as u32).to_le_bytes().to_vec();
        all.extend(vec![0; 2 * BUFFER]);
        let (_, _, room) = read(&all, BUFFER).await;
        assert!(room <= 4 * BUFFER, "{room}");
        let (_, error, _) = read(&(MAX_RECORD as u32 + 1).to_le_bytes(), 4).await;
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "more is never taken");
    }

    #[tokio::test]
    async fn large_buffer_is_released() {
        let large = record(&vec![1; 2 * LARGE]);
        let (records, _, room) = read(&large, BUFFER).await;
        assert_eq!((records.len(), room), (1, BUFFER));
    }
}
