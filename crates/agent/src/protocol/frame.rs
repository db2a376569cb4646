//! Frames: a length and a JSON object. Reading checks both, because the peer is not trusted.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest frame, its length not counted.
pub const MAX_FRAME: usize = 4 << 20;

/// An invalid frame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame is too long.
    #[error("the frame has {0} bytes; {MAX_FRAME} at most are allowed")]
    TooLong(usize),
    /// The frame is not the expected JSON object.
    #[error("the frame is invalid: {why}")]
    Malformed {
        /// The number of the call, if it can be read.
        id: Option<u64>,
        /// The error of the JSON reader.
        why: serde_json::Error,
    },
}

/// Encodes a value as a frame.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; 4];
    let malformed = |why| FrameError::Malformed { id: None, why };
    serde_json::to_writer(&mut frame, value).map_err(malformed)?;
    let length = frame.len() - 4;
    match u32::try_from(length) {
        Ok(short) if length <= MAX_FRAME => {
            frame[..4].copy_from_slice(&short.to_be_bytes());
            Ok(frame)
        }
        _ => Err(FrameError::TooLong(length)),
    }
}

/// Splits received bytes into frames.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where the first frame starts that has not been taken.
    start: usize,
}

impl Frames {
    /// The buffer to append received bytes to.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        &mut self.bytes
    }

    /// The next complete frame, if there is one. A malformed frame is skipped. After a frame that is too long,
    /// nothing more can be read, because the start of the next one is unknown.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let rest = &self.bytes[self.start..];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(FrameError::TooLong(length));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let value = serde_json::from_slice(body)
            .map_err(|why| FrameError::Malformed { id: number_of(body), why });
        self.start += 4 + length;
        value.map(Some)
    }
}

/// The number of a call that is otherwise malformed, for its answer.
fn number_of(body: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Numbered {
        id: u64,
    }
    serde_json::from_slice::<Numbered>(body).ok().map(|numbered| numbered.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_of_any_pieces() {
        let mut all = Vec::new();
        for i in 0..5_u32 {
            all.extend(encode(&"x".repeat(i as usize * 7)).expect("short"));
        }
        for piece in 1..all.len() {
            let mut frames = Frames::default();
            let mut seen = Vec::new();
            for bytes in all.chunks(piece) {
                frames.buffer().extend_from_slice(bytes);
                while let Some(text) = frames.take::<String>().expect("well formed") {
                    seen.push(text.len());
                }
            }
            assert_eq!(seen, [0, 7, 14, 21, 28]);
        }
    }

    #[test]
    fn too_long_a_frame_is_refused_before_it_is_read() {
        let mut frames = Frames::default();
        frames.buffer().extend_from_slice(&u32::MAX.to_be_bytes());
        assert!(matches!(frames.take::<String>(), Err(FrameError::TooLong(_))));
        assert!(matches!(encode(&"x".repeat(MAX_FRAME)), Err(FrameError::TooLong(_))));
    }

    #[test]
    fn garbage_is_an_error_and_no_panic() {
        let mut frames = Frames::default();
        frames.buffer().extend_from_slice(&[0, 0, 0, 2, b'{', 0xff]);
        frames.buffer().extend(encode(&serde_json::json!({ "id": 7 })).expect("short"));
        frames.buffer().extend(encode(&"after it").expect("short"));
        assert!(matches!(frames.take::<String>(), Err(FrameError::Malformed { id: None, .. })));
        assert!(matches!(frames.take::<String>(), Err(FrameError::Malformed { id: Some(7), .. })));
        assert_eq!(frames.take::<String>().expect("well formed").as_deref(), Some("after it"));
    }
}
