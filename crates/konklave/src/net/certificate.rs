//! The facts of a certificate that rustls does not tell: its version and its end.

/// The facts of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    /// 1 to 3.
    pub(super) version: u8,
    /// The end of its validity, in seconds since 1970.
    pub(super) ends: u64,
}

// The tags of DER that stand before the end of the validity.
const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;

/// Reads the facts of a certificate (DER); `None` if it is not one.
pub(super) fn facts(certificate: &[u8]) -> Option<Facts> {
    let mut rest = element(&mut &certificate[..], SEQUENCE)?;
    let mut rest = element(&mut rest, SEQUENCE)?;
    // Version 1 is not written.
    let version = match element(&mut rest, VERSION) {
        Some(mut inner) => element(&mut inner, INTEGER)?.first()?.checked_add(1)?,
        None => 1,
    };
    element(&mut rest, INTEGER)?;
    element(&mut rest, SEQUENCE)?;
    element(&mut rest, SEQUENCE)?;
    let mut validity = element(&mut rest, SEQUENCE)?;
    time(&mut validity)?;
    Some(Facts { version, ends: time(&mut validity)? })
}

/// The content of the next element, if it has this tag. Then `bytes` is what follows it.
fn element<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(2)?;
    if head[0] != tag {
        return None;
    }
    let (length, rest) = match head[1] {
        short @ 0..0x80 => (usize::from(short), rest),
        long => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            if digits.len() > 4 {
                return None;
            }
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
        }
    };
    let (content, after) = rest.split_at_checked(length)?;
    *bytes = after;
    Some(content)
}

/// The next moment, in seconds since 1970: `YYMMDDhhmmssZ`, or with four digits of the year.
fn time(bytes: &mut &[u8]) -> Option<u64> {
    let (text, century) = match element(bytes, UTC_TIME) {
        Some(text) => (text, None),
        None => (element(bytes, GENERALIZED_TIME)?, Some(())),
    };
    let digits = text.strip_suffix(b"Z")?;
    let number = |from: usize, to: usize| {
        let digits = std::str::from_utf8(digits.get(from..to)?).ok()?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten()
    };
    let (year, at) = match century {
        Some(()) => (number(0, 4)?, 4),
        None => (number(0, 2).map(|year| if year < 50 { 2000 + year } else { 1900 + year })?, 2),
    };
    if digits.len() != at + 10 {
        return None;
    }
    let pair = |i: usize| number(at + 2 * i, at + 2 * i + 2);
    let (month, day) = (pair(0)?, pair(1)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days(year, month, day) * 86_400 + pair(2)? * 3600 + pair(3)? * 60 + pair(4)?)
}

/// The days from 1970 to this one.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years that begin in March: the day of leap years is their last.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let before = 365 * year + year / 4 - year / 100 + year / 400;
    before + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_are_counted_over_leap_years() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 2, 29), 11_016);
        assert_eq!(days(2000, 3, 1), 11_017);
        assert_eq!(days(2026, 11, 19), 20_776);
        assert_eq!(days(2100, 3, 1) - days(2100, 2, 28), 1);
    }

    #[test]
    fn both_forms_of_time_are_read() {
        let read = |tag: u8, text: &str| {
            time(&mut &[&[tag, text.len() as u8], text.as_bytes()].concat()[..])
        };
        assert_eq!(read(UTC_TIME, "700101000001Z"), Some(1));
        assert_eq!(read(UTC_TIME, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(read(GENERALIZED_TIME, "20500101000000Z"), Some(2_524_608_000));
        for wrong in [
            "",
            "Z",
            "700101000001",
            "701301000001Z",
            "70010100000Z",
            "7001010000011Z",
            "+00101000001Z",
        ] {
            assert_eq!(read(UTC_TIME, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn version_and_end_of_certificate_are_read() {
        let mut params = rcgen::CertificateParams::new(vec!["konklave".into()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2031, 5, 6);
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let facts = facts(certificate.der()).unwrap();
        assert_eq!(facts, Facts { version: 3, ends: days(2031, 5, 6) * 86_400 });
    }

    proptest! {
        #[test]
        fn reading_arbitrary_bytes_never_panics(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
            nested in any::<bool>(),
        ) {
            let _ = facts(&bytes);
            if nested {
                let inner = [&[SEQUENCE, bytes.len() as u8], &bytes[..]].concat();
                let _ = facts(&[&[SEQUENCE, inner.len() as u8], &inner[..]].concat());
            }
        }
    }
}
