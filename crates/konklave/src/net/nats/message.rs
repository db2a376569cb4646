//! Messages of a stream over NATS: a head of nine bytes, then a piece of the stream.

use bytes::Bytes;

/// Bytes of the head: the kind, and a number.
pub(super) const HEAD: usize = 9;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum StreamMessage {
    /// Opens a stream.
    Call,
    /// The piece with this number.
    Piece(u64, Bytes),
    /// Flow control: this many bytes were read in all, so there is room for more.
    Room(u64),
    /// The stream has ended, or is broken.
    End,
}

impl StreamMessage {
    /// The message as bytes.
    pub(super) fn encode(&self) -> Bytes {
        match self {
            Self::Call => Bytes::copy_from_slice(&head(0, 0)),
            Self::Piece(number, bytes) => [&head(1, *number)[..], bytes].concat().into(),
            Self::Room(read) => Bytes::copy_from_slice(&head(2, *read)),
            Self::End => Bytes::copy_from_slice(&head(3, 0)),
        }
    }

    /// Parses a message; `None` if it is invalid.
    pub(super) fn decode(bytes: &Bytes) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let number = u64::from_le_bytes(*rest.first_chunk()?);
        let more = bytes.slice(HEAD..);
        match (kind, more.is_empty()) {
            (0, true) => Some(Self::Call),
            (1, false) => Some(Self::Piece(number, more)),
            (2, true) => Some(Self::Room(number)),
            (3, true) => Some(Self::End),
            _ => None,
        }
    }
}

/// The head of a message.
fn head(kind: u8, number: u64) -> [u8; HEAD] {
    let mut head = [kind; HEAD];
    head[1..].copy_from_slice(&number.to_le_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_survive_encoding() {
        let piece = StreamMessage::Piece(258, Bytes::from_static(b"xy"));
        assert_eq!(&piece.encode()[..], [1, 2, 1, 0, 0, 0, 0, 0, 0, b'x', b'y']);
        for message in
            [StreamMessage::Call, piece, StreamMessage::Room(u64::MAX), StreamMessage::End]
        {
            assert_eq!(StreamMessage::decode(&message.encode()), Some(message));
        }
        for none in [&b""[..], &[3], &[1, 0, 0, 0, 0, 0, 0, 0, 0], &[9, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(StreamMessage::decode(&Bytes::from_static(none)), None, "{none:?}");
        }
    }

    proptest! {
        #[test]
        fn decoding_arbitrary_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let bytes = Bytes::from(bytes);
            if let Some(message) = StreamMessage::decode(&bytes) {
                prop_assert_eq!(StreamMessage::decode(&message.encode()), Some(message));
            }
        }
    }
}
