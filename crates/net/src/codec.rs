//! The wire format of the laboratory's network.
//!
//! A connection carries messages one way. It opens with a [`Hello`] and goes on with frames. All
//! numbers are big-endian; the body is the message in [postcard](https://postcard.jamesmunns.com).
//!
//! ```text
//! hello:  magic "KNKL" | version u8 | group u64 | sender u32, incarnation u32
//!                                               | receiver u32, incarnation u32 | connection u32
//! frame:  length u32 of the rest | version u8 | sender u32 | message id u64 | body
//! ```

use konklave_process::{AnyData, AnyProcess, ProcessId};
use serde::Serialize;
use thiserror::Error;

/// The first bytes of every connection.
pub const MAGIC: [u8; 4] = *b"KNKL";

/// The version of hello and frames; any other version is refused.
pub const VERSION: u8 = 1;

/// The length of a hello, in bytes.
pub const HELLO_LEN: usize = 33;

/// The length of a frame's length, in bytes.
const PREFIX_LEN: usize = 4;

/// The length of a frame's header, between its length and its body.
const HEADER_LEN: usize = 13;

/// Why bytes are not a valid frame, or a message cannot be encoded.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CodecError {
    /// The bytes are of another protocol.
    #[error("it does not begin with \"KNKL\"")]
    Magic,
    /// The bytes are of this protocol, in another version.
    #[error("its version is {0}, ours is {VERSION}")]
    Version(u8),
    /// A frame is longer than the limit.
    #[error("a frame of {len} bytes is longer than {limit}")]
    TooLong {
        /// Its length.
        len: usize,
        /// The limit.
        limit: usize,
    },
    /// A frame has no room for its header.
    #[error("a frame of {0} bytes is too short")]
    TooShort(usize),
    /// The body is not a valid message.
    #[error("the body is not a valid message: {0}")]
    Body(postcard::Error),
    /// The body is longer than its message.
    #[error("{0} bytes follow the message")]
    Trailing(usize),
    /// A frame names another sender than the connection.
    #[error("a frame names {0} as its sender")]
    Sender(ProcessId),
}

/// One end of a connection: an incarnation of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// The process.
    pub process: ProcessId,
    /// How often it was restarted before.
    pub incarnation: u32,
}

/// The first message on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The number of the run; connections of other runs are refused.
    pub group: u64,
    /// The process that sends on this connection.
    pub sender: End,
    /// The process that receives.
    pub receiver: End,
    /// The number of this connection among those from this sender to this receiver.
    pub connection: u32,
}

impl Hello {
    /// Encodes the hello.
    pub fn encode(&self) -> [u8; HELLO_LEN] {
        let mut bytes = [0; HELLO_LEN];
        let mut rest = &mut bytes[..];
        let mut put = |part: &[u8]| {
            let (head, tail) = std::mem::take(&mut rest).split_at_mut(part.len());
            head.copy_from_slice(part);
            rest = tail;
        };
        put(&MAGIC);
        put(&[VERSION]);
        put(&self.group.to_be_bytes());
        for end in [self.sender, self.receiver] {
            put(&end.process.0.to_be_bytes());
            put(&end.incarnation.to_be_bytes());
        }
        put(&self.connection.to_be_bytes());
        bytes
    }

    /// Decodes a hello.
    pub fn decode(bytes: &[u8; HELLO_LEN]) -> Result<Self, CodecError> {
        let mut fields = Fields(bytes);
        if fields.take() != MAGIC {
            return Err(CodecError::Magic);
        }
        check_version(fields.take())?;
        let group = u64::from_be_bytes(fields.take());
        let mut number = || u32::from_be_bytes(fields.take());
        let mut end = || End { process: ProcessId(number()), incarnation: number() };
        Ok(Self { group, sender: end(), receiver: end(), connection: number() })
    }
}

/// A message on the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame<M> {
    /// The sender.
    pub sender: ProcessId,
    /// The number of the message, unique in the run.
    pub id: u64,
    /// The message.
    pub message: M,
}

/// Appends a frame to `out`; on failure `out` is unchanged.
pub fn encode<M: Serialize>(
    sender: ProcessId,
    id: u64,
    message: &M,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX_LEN]);
    out.push(VERSION);
    out.extend_from_slice(&sender.0.to_be_bytes());
    out.extend_from_slice(&id.to_be_bytes());
    let result = postcard::to_io(message, &mut *out).map(|_| ()).map_err(CodecError::Body);
    let len = out.len() - start - PREFIX_LEN;
    let result = result.and_then(|()| check_length(len, limit)).map(|len| len.to_be_bytes());
    match result {
        Ok(prefix) => {
            out[start..start + PREFIX_LEN].copy_from_slice(&prefix);
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// A frame and its length on the wire; none if the bytes are not a whole frame yet.
pub type Decoded<M> = Option<(Frame<M>, usize)>;

/// Decodes the first frame of `bytes`; `reader` decodes its message.
pub fn decode<R: Reader>(
    reader: &R,
    bytes: &[u8],
    limit: usize,
) -> Result<Decoded<R::Message>, CodecError> {
    let Some((prefix, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let len = check_length(u32::from_be_bytes(*prefix) as usize, limit)? as usize;
    if len < HEADER_LEN {
        return Err(CodecError::TooShort(len));
    }
    // A wrong version is refused at once, without waiting for the rest of the frame.
    if let Some(version) = rest.first() {
        check_version([*version])?;
    }
    let Some(frame) = rest.get(..len) else { return Ok(None) };
    let (header, body) = frame.split_at(HEADER_LEN);
    let mut fields = Fields(&header[1..]);
    let sender = ProcessId(u32::from_be_bytes(fields.take()));
    let id = u64::from_be_bytes(fields.take());
    Ok(Some((Frame { sender, id, message: read_body(reader, body)? }, PREFIX_LEN + len)))
}

/// Decodes the message that fills `body`.
pub(crate) fn read_body<R: Reader>(reader: &R, body: &[u8]) -> Result<R::Message, CodecError> {
    match reader.read(body).map_err(CodecError::Body)? {
        (message, []) => Ok(message),
        (_, rest) => Err(CodecError::Trailing(rest.len())),
    }
}

/// Decodes messages of one type.
pub trait Reader {
    /// The type of the messages.
    type Message;
    /// Decodes the message at the beginning of `bytes`; returns also the bytes behind it.
    fn read<'a>(&self, bytes: &'a [u8]) -> postcard::Result<(Self::Message, &'a [u8])>;
}

impl Reader for AnyProcess {
    type Message = AnyData;

    fn read<'a>(&self, bytes: &'a [u8]) -> postcard::Result<(AnyData, &'a [u8])> {
        self.decode_message(bytes)
    }
}

fn check_version([version]: [u8; 1]) -> Result<(), CodecError> {
    if version == VERSION { Ok(()) } else { Err(CodecError::Version(version)) }
}

fn check_length(len: usize, limit: usize) -> Result<u32, CodecError> {
    match u32::try_from(len) {
        Ok(fits) if len <= limit => Ok(fits),
        Ok(_) | Err(_) => Err(CodecError::TooLong { len, limit }),
    }
}

/// Takes fields one after the other from bytes whose length was checked.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("the length was checked");
        self.0 = rest;
        *field
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    const LIMIT: usize = 1 << 10;

    fn decode(bytes: &[u8], limit: usize) -> Result<Decoded<Message>, CodecError> {
        super::decode(&Postcard, bytes, limit)
    }

    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    enum Message {
        Nothing,
        Number(u64),
        Words { list: Vec<String>, maybe: Option<i32> },
    }

    struct Postcard;

    impl Reader for Postcard {
        type Message = Message;

        fn read<'a>(&self, bytes: &'a [u8]) -> postcard::Result<(Message, &'a [u8])> {
            postcard::take_from_bytes(bytes)
        }
    }

    fn message() -> impl Strategy<Value = Message> {
        prop_oneof![
            Just(Message::Nothing),
            any::<u64>().prop_map(Message::Number),
            (prop::collection::vec(".{0,9}", 0..4), any::<Option<i32>>())
                .prop_map(|(list, maybe)| Message::Words { list, maybe }),
        ]
    }

    fn frame() -> impl Strategy<Value = Frame<Message>> {
        let parts = (any::<u32>(), any::<u64>(), message());
        parts.prop_map(|(p, id, message)| Frame { sender: ProcessId(p), id, message })
    }

    fn bytes(frames: &[Frame<Message>]) -> Vec<u8> {
        let mut out = Vec::new();
        for Frame { sender, id, message } in frames {
            encode(*sender, *id, message, LIMIT, &mut out).unwrap();
        }
        out
    }

    fn hello() -> Hello {
        Hello {
            group: 0x0102_0304_0506_0708,
            sender: End { process: ProcessId(9), incarnation: 1 },
            receiver: End { process: ProcessId(258), incarnation: 2 },
            connection: 3,
        }
    }

    #[test]
    fn version_1_has_these_bytes() {
        let golden = b"KNKL\x01\x01\x02\x03\x04\x05\x06\x07\x08\
            \0\0\0\x09\0\0\0\x01\0\0\x01\x02\0\0\0\x02\0\0\0\x03";
        assert_eq!(&hello().encode(), golden);
        let golden = b"\0\0\0\x10\x01\0\0\0\x07\0\0\0\0\0\0\x01\0\x01\xac\x02";
        let frame = Frame { sender: ProcessId(7), id: 256, message: Message::Number(300) };
        assert_eq!(bytes(&[frame]), golden);
    }

    #[test]
    fn other_protocols_and_versions_are_refused() {
        let mut bytes = hello().encode();
        assert_eq!(Hello::decode(&bytes), Ok(hello()));
        bytes[4] = 2;
        assert_eq!(Hello::decode(&bytes), Err(CodecError::Version(2)));
        bytes[0] = b'G';
        assert_eq!(Hello::decode(&bytes), Err(CodecError::Magic));
        let refused = |bytes: &[u8]| decode(bytes, LIMIT).unwrap_err();
        assert_eq!(refused(b"\0\0\0\x0e\x07"), CodecError::Version(7));
        assert_eq!(refused(b"\0\0\0\x0c"), CodecError::TooShort(12));
        assert_eq!(refused(b"GET "), CodecError::TooLong { len: 0x4745_5420, limit: LIMIT });
        let trailing = b"\0\0\0\x0f\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(refused(trailing), CodecError::Trailing(1));
        let unknown = b"\0\0\0\x0e\x01\0\0\0\0\0\0\0\0\0\0\0\0\x05";
        assert!(matches!(refused(unknown), CodecError::Body(_)));
    }

    #[test]
    fn message_that_is_too_long_is_not_encoded() {
        let mut out = vec![1, 2, 3];
        let error = encode(ProcessId(0), 1, &vec![0u8; 90], 100, &mut out).unwrap_err();
        assert_eq!(error, CodecError::TooLong { len: 104, limit: 100 });
        assert_eq!(out, [1, 2, 3]);
    }

    proptest! {
        #[test]
        fn frames_are_decoded_as_they_were_encoded(frames in prop::collection::vec(frame(), 0..5)) {
            let bytes = bytes(&frames);
            let (mut rest, mut found) = (&bytes[..], Vec::new());
            while let Some((frame, len)) = decode(rest, LIMIT).unwrap() {
                found.push(frame);
                rest = &rest[len..];
            }
            prop_assert!(rest.is_empty());
            prop_assert_eq!(found, frames);
        }

        #[test]
        fn partial_frame_needs_more_bytes(frame in frame(), cut: prop::sample::Index) {
            let bytes = bytes(&[frame]);
            let part = &bytes[..cut.index(bytes.len())];
            prop_assert_eq!(decode(part, LIMIT), Ok(None));
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, LIMIT);
            let mut framed = (bytes.len() as u32).to_be_bytes().to_vec();
            framed.push(VERSION);
            framed.extend(&bytes[bytes.len().min(1)..]);
            let _ = decode(&framed, LIMIT);
            if let Some(hello) = bytes.first_chunk() {
                let _ = Hello::decode(hello);
            }
        }

        #[test]
        fn changed_byte_never_panics(frame in frame(), at: prop::sample::Index, to: u8) {
            let mut bytes = bytes(&[frame]);
            let at = at.index(bytes.len());
            bytes[at] = to;
            if let Ok(Some((_, len))) = decode(&bytes, LIMIT) {
                prop_assert!(len <= bytes.len());
            }
        }

        #[test]
        fn hellos_are_decoded_as_they_were_encoded(group: u64, numbers: [u32; 5]) {
            let [p, k, q, l, connection] = numbers;
            let end = |p, incarnation| End { process: ProcessId(p), incarnation };
            let hello = Hello { group, sender: end(p, k), receiver: end(q, l), connection };
            prop_assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }
    }
}
