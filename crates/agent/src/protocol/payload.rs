//! Bytes in JSON: UTF-8 as a string, other bytes as hexadecimal digits.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// Messages longer than this are written as digits if escaping would make them too long for a frame.
const LONG: usize = 1 << 16;

/// The bytes of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payload {
    /// UTF-8.
    Text(String),
    /// Other bytes, two digits each.
    Hex(String),
}

impl Payload {
    /// Wraps `bytes`: UTF-8 as text, unless escaping would make a long text too long for a frame.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        // In JSON, a control character takes up to six bytes, and a quote two.
        let control = bytes.iter().filter(|byte| byte.is_ascii_control()).count();
        if bytes.len() > LONG && control * 4 > bytes.len() {
            return Self::digits(&bytes);
        }
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::digits(error.as_bytes()),
        }
    }

    fn digits(bytes: &[u8]) -> Self {
        let mut digits = String::new();
        for byte in bytes {
            // Writing to a string does not fail.
            let _ = write!(digits, "{byte:02x}");
        }
        Self::Hex(digits)
    }

    /// The bytes; `None` if the digits are invalid.
    #[must_use]
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.into_bytes()),
            Self::Hex(digits) => {
                let digits = digits.as_bytes();
                if !digits.len().is_multiple_of(2) {
                    return None;
                }
                let digit = |byte: u8| char::from(byte).to_digit(16);
                digits
                    .chunks_exact(2)
                    .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
                    .collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_went() {
        for bytes in [&b""[..], b"hello", &[0, 255, 16], "ü".as_bytes()] {
            assert_eq!(Payload::new(bytes.to_vec()).into_bytes().as_deref(), Some(bytes));
        }
        assert_eq!(Payload::new(vec![255, 1]), Payload::Hex("ff01".into()));
        assert_eq!(Payload::new(b"\t\n".to_vec()), Payload::Text("\t\n".into()));
        // Any message of the largest size fits into a frame, whichever bytes it has.
        for byte in [0, b'"', b'a', 0xff] {
            for other in [b'a', 0, b'\\'] {
                let mut bytes = [byte, other, other, other].repeat(konklave::MAX_MESSAGE / 4);
                bytes.sort_unstable();
                let frame = crate::protocol::encode(&Payload::new(bytes));
                assert!(frame.is_ok_and(|frame| frame.len() < (4 << 20) - 4096), "{byte} {other}");
            }
        }
        assert_eq!(Payload::Hex("0".into()).into_bytes(), None);
        assert_eq!(Payload::Hex("0ü".into()).into_bytes(), None);
        assert_eq!(Payload::Hex("zz".into()).into_bytes(), None);
    }
}
