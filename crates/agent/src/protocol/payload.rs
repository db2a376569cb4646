//! Bytes in JSON: as text where they are text, in hexadecimal digits where they are not.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// The bytes of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payload {
    /// UTF-8.
    Text(String),
    /// Anything else, two digits a byte.
    Hex(String),
}

impl Payload {
    /// Wraps `bytes`.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => {
                let mut digits = String::new();
                for byte in error.as_bytes() {
                    // Writing to a string does not fail.
                    let _ = write!(digits, "{byte:02x}");
                }
                Self::Hex(digits)
            }
        }
    }

    /// The bytes; none if the digits are not digits.
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
        assert_eq!(Payload::Hex("0".into()).into_bytes(), None);
        assert_eq!(Payload::Hex("0ü".into()).into_bytes(), None);
        assert_eq!(Payload::Hex("zz".into()).into_bytes(), None);
    }
}
