//! The encoding of a datagram.

use konklave_process::ProcessId;

use crate::codec::{CodecError, MAGIC, VERSION};

/// A message to one receiver or several.
pub(crate) struct Datagram<'a, R> {
    /// The number of the run.
    pub(crate) run: u64,
    /// The sender.
    pub(crate) sender: ProcessId,
    /// The places of the receivers, each with its message number.
    pub(crate) receivers: R,
    /// The encoded message.
    pub(crate) body: &'a [u8],
}

/// The receivers of a datagram that was read.
pub(crate) struct Receivers<'a>(&'a [u8]);

const HEADER: usize = 19;
const RECEIVER: usize = 12;

impl Datagram<'_, &Vec<(usize, u64)>> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let length = HEADER + RECEIVER * self.receivers.len() + self.body.len();
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&MAGIC);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.run.to_be_bytes());
        bytes.extend_from_slice(&self.sender.0.to_be_bytes());
        // With more receivers than this, the datagram is too long and will be refused anyway.
        let count = u16::try_from(self.receivers.len()).unwrap_or(u16::MAX);
        bytes.extend_from_slice(&count.to_be_bytes());
        for (place, id) in self.receivers {
            bytes.extend_from_slice(&(*place as u32).to_be_bytes());
            bytes.extend_from_slice(&id.to_be_bytes());
        }
        bytes.extend_from_slice(self.body);
        bytes
    }
}

impl<'a> Datagram<'a, Receivers<'a>> {
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(CodecError::Magic)?;
        let short = || CodecError::TooShort(bytes.len());
        let (version, rest) = rest.split_first().ok_or_else(short)?;
        if *version != VERSION {
            return Err(CodecError::Version(*version));
        }
        let (run, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (sender, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (count, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let length = RECEIVER * usize::from(u16::from_be_bytes(*count));
        let (receivers, body) = rest.split_at_checked(length).ok_or_else(short)?;
        Ok(Self {
            run: u64::from_be_bytes(*run),
            sender: ProcessId(u32::from_be_bytes(*sender)),
            receivers: Receivers(receivers),
            body,
        })
    }

    /// The message number for the process at `place`; none if it is not a receiver.
    pub(crate) fn id_for(&self, place: usize) -> Option<u64> {
        let mut entries = self.receivers.0.chunks_exact(RECEIVER);
        entries.find_map(|entry| {
            let (to, id) = entry.split_first_chunk()?;
            let id = u64::from_be_bytes(*id.first_chunk()?);
            (u32::from_be_bytes(*to) as usize == place).then_some(id)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagram_is_decoded_and_a_truncated_one_refused() {
        let receivers = vec![(1, 70), (4, 71)];
        let sender = ProcessId(9);
        let bytes = Datagram { run: 5, sender, receivers: &receivers, body: b"abc" }.encode();
        let read = Datagram::decode(&bytes).unwrap();
        assert_eq!((read.run, read.sender, read.body), (5, sender, &b"abc"[..]));
        assert_eq!([0, 1, 4].map(|place| read.id_for(place)), [None, Some(70), Some(71)]);
        for len in 0..bytes.len() - 3 {
            assert!(Datagram::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
        assert_eq!(Datagram::decode(b"GET / HTTP/1.1").err(), Some(CodecError::Magic));
    }
}
