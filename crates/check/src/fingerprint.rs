//! Fingerprints of values, 128 bits wide; used by the tests to compare states of the plain rules.

use std::hash::{Hash, Hasher};

use crate::store::fold;

/// The fingerprint of a value. Among 10⁹ states, two share one with a probability of about 10⁻²¹.
pub(crate) fn fingerprint(value: &impl Hash) -> u128 {
    let mut hasher = Fold { a: 0x243f_6a88_85a3_08d3, b: 0x1319_8a2e_0370_7344 };
    value.hash(&mut hasher);
    hasher.fingerprint()
}

/// A hash in two lanes of multiply and fold.
pub(crate) struct Fold {
    a: u64,
    b: u64,
}

impl Fold {
    #[inline]
    fn mix(&mut self, x: u64) {
        self.a = fold(self.a ^ x, 0x9e37_79b9_7f4a_7c15).wrapping_add(x.rotate_left(32));
        self.b = fold(self.b.rotate_left(23) ^ x, 0xd6e8_feb8_6659_fd93) ^ self.a;
    }

    fn fingerprint(&self) -> u128 {
        let a = fold(self.a ^ 0xa076_1d64_78bd_642f, self.b ^ 0xe703_7ed1_a0b4_28db);
        let b = fold(self.b ^ 0x8ebc_6af0_9c88_c6e3, self.a ^ 0x5899_65cc_7537_4cc3);
        u128::from(a) << 64 | u128::from(b)
    }
}

impl Hasher for Fold {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.mix(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
        }
    }
    #[inline]
    fn write_u8(&mut self, x: u8) {
        self.mix(x.into());
    }
    #[inline]
    fn write_u16(&mut self, x: u16) {
        self.mix(x.into());
    }
    #[inline]
    fn write_u32(&mut self, x: u32) {
        self.mix(x.into());
    }
    #[inline]
    fn write_u64(&mut self, x: u64) {
        self.mix(x);
    }
    #[inline]
    fn write_usize(&mut self, x: usize) {
        self.mix(x as u64);
    }
    fn finish(&self) -> u64 {
        self.fingerprint() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn small_values_differ_in_both_halves() {
        let prints: Vec<u128> = (0u32..200_000).map(|x| fingerprint(&(x % 7, x))).collect();
        let high: BTreeSet<u64> = prints.iter().map(|p| (p >> 64) as u64).collect();
        let low: BTreeSet<u64> = prints.iter().map(|p| *p as u64).collect();
        assert_eq!((high.len(), low.len()), (200_000, 200_000));
    }
}
