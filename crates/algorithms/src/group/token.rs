//! Fencing tokens.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ViewId;

/// Bits of `k` for local grants: so many times in a row, a node may grant a cached lock without the group.
pub const LOCAL_GRANT_BITS: u32 = 20;

/// A fencing token. Later grants of a name have higher tokens, across crashes, partitions and total restarts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Token {
    /// Grows when the group is founded anew.
    pub generation: u32,
    /// Grows with each view.
    pub epoch: u32,
    /// Grows with each grant.
    pub k: u64,
}

impl Token {
    /// Token number `k` of a view.
    pub fn of(view: ViewId, k: u64) -> Self {
        let epoch = u32::try_from(view.epoch).unwrap_or(u32::MAX);
        Self { generation: view.generation, epoch, k }
    }

    /// The token as a number that compares like it.
    pub fn to_u128(self) -> u128 {
        u128::from(self.generation) << 96 | u128::from(self.epoch) << 64 | u128::from(self.k)
    }

    /// Whether it is `granted`, or a later local grant under it.
    pub fn derives_from(self, granted: Self) -> bool {
        let base = |token: Self| token.to_u128() >> LOCAL_GRANT_BITS;
        self >= granted && base(self) == base(granted)
    }

    /// From [`to_u128`](Self::to_u128).
    pub fn from_u128(number: u128) -> Self {
        let (generation, epoch) = ((number >> 96) as u32, (number >> 64) as u32);
        Self { generation, epoch, k: number as u64 }
    }

    /// The token as 32 hexadecimal digits, which sort like it: for databases and headers.
    pub fn to_hex(self) -> String {
        format!("{:032x}", self.to_u128())
    }
}

/// `generation.epoch.k`.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.generation, self.epoch, self.k)
    }
}

/// The text is not a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseTokenError(String);

impl fmt::Display for ParseTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = "expected generation.epoch.k, or 32 hexadecimal digits";
        write!(f, "{:?} is not a token: {expected}", self.0)
    }
}

impl std::error::Error for ParseTokenError {}

/// Parses both forms.
impl FromStr for Token {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, ParseTokenError> {
        let wrong = || ParseTokenError(text.chars().take(64).collect());
        if text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return u128::from_str_radix(text, 16).map(Self::from_u128).map_err(|_| wrong());
        }
        let mut parts = text.split('.');
        let mut next = || parts.next().filter(|p| p.bytes().all(|b| b.is_ascii_digit()));
        let token = (|| {
            Some(Self {
                generation: next()?.parse().ok()?,
                epoch: next()?.parse().ok()?,
                k: next()?.parse().ok()?,
            })
        })();
        token.filter(|_| parts.next().is_none()).ok_or_else(wrong)
    }
}

/// As text in human-readable formats, as numbers in others.
impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.collect_str(self);
        }
        (self.generation, self.epoch, self.k).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            return text.parse().map_err(serde::de::Error::custom);
        }
        let (generation, epoch, k) = Deserialize::deserialize(deserializer)?;
        Ok(Self { generation, epoch, k })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn every_form_is_lossless_and_keeps_the_order(a: u128, b: u128) {
            let (x, y) = (Token::from_u128(a), Token::from_u128(b));
            prop_assert_eq!(x.to_u128(), a);
            prop_assert_eq!(x.to_string().parse(), Ok(x));
            prop_assert_eq!(x.to_hex().parse(), Ok(x));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(x.to_hex().cmp(&y.to_hex()), a.cmp(&b));
            let json = serde_json::to_string(&x).expect("a token is text");
            prop_assert_eq!(serde_json::from_str::<Token>(&json).expect("and back"), x);
        }

        #[test]
        fn parsing_arbitrary_text_does_not_panic(text in any::<String>()) {
            let _ = text.parse::<Token>();
        }
    }

    #[test]
    fn signs_and_surplus_parts_are_refused() {
        for text in ["", "1", "1.2", "1.2.3.4", "+1.2.3", "1.2.-3", "1..3", "4294967296.0.0"] {
            assert!(text.parse::<Token>().is_err(), "{text}");
        }
    }
}
