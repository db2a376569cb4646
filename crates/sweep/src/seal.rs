//! Lines with a check sum: a damaged disk or a careless hand does not go unnoticed.
//!
//! A line is a JSON object whose last member is the sum over all bytes before it and over the study it
//! belongs to. So a row of another study does not fit, either. This keeps out accidents, not forgers.

use std::io::{self, Write};

use serde::Serialize;

/// FNV-1a: every step is one to one, so no single byte can change without changing the sum.
pub(crate) fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    parts.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

const MEMBER: &[u8] = b",\"sum\":\"";

/// Writes `value`, a struct, as a line of `study`.
pub(crate) fn write(out: &mut impl Write, study: &str, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.pop();
    let sum = hash([study.as_bytes(), &line]);
    out.write_all(&line)?;
    out.write_all(MEMBER)?;
    writeln!(out, "{sum:016x}\"}}")
}

/// Whether `line` is as it was written.
pub(crate) fn is_whole(line: &[u8], study: &str) -> bool {
    let Some(at) = line.len().checked_sub(MEMBER.len() + 18) else { return false };
    let (text, rest) = line.split_at(at);
    let sum = format!("{:016x}\"}}", hash([study.as_bytes(), text]));
    rest.strip_prefix(MEMBER) == Some(sum.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Pair {
        a: u32,
        b: &'static str,
    }

    #[test]
    fn no_byte_of_a_line_can_change_unnoticed() {
        let mut line = Vec::new();
        write(&mut line, "study", &Pair { a: 17, b: "x" }).unwrap();
        assert_eq!(line.pop(), Some(b'\n'));
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!((value["a"].as_u64(), value["b"].as_str()), (Some(17), Some("x")));
        assert!(is_whole(&line, "study"));
        assert!(!is_whole(&line, "another"));
        for i in 0..line.len() {
            for bit in 0..8 {
                let mut damaged = line.clone();
                damaged[i] ^= 1 << bit;
                assert!(!is_whole(&damaged, "study"), "byte {i}, bit {bit}");
            }
            assert!(!is_whole(&line[..i], "study"), "cut off after {i}");
        }
    }
}
