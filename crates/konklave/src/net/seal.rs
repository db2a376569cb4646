//! Encryption of records: only holders of the key can read or write them, and each counts once.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce, Tag};
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The secrets of one connection, derived from the shared key and from both greetings. Each greeting has a
/// random number, so nothing from one connection is valid on another.
pub(super) struct Secrets {
    pub(super) seal: [u8; 32],
    pub(super) open: [u8; 32],
    /// Proves that this node knows the key.
    pub(super) proof: [u8; 32],
    /// The proof expected from the peer.
    pub(super) expected: [u8; 32],
}

fn derive(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

impl Secrets {
    /// Derives the secrets from the key and both greetings.
    pub(super) fn new(key: &[u8], caller: &[u8], called: &[u8], we_called: bool) -> Self {
        let root = derive(key, &[b"konklave/1", caller, called]);
        let of = |what: &[u8], by_caller: bool| {
            derive(&root, &[what, if by_caller { b"caller" } else { b"called" }])
        };
        Self {
            seal: of(b"records", we_called),
            open: of(b"records", !we_called),
            proof: of(b"proof", we_called),
            expected: of(b"proof", !we_called),
        }
    }
}

/// The cipher of one direction.
pub(super) struct Sealer(Option<(ChaCha20Poly1305, u64)>);

impl Sealer {
    pub(super) fn new(key: Option<[u8; 32]>) -> Self {
        Self(key.map(|key| (ChaCha20Poly1305::new(&key.into()), 0)))
    }

    fn nonce(counter: &mut u64) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&counter.to_le_bytes());
        *counter += 1;
        nonce.into()
    }

    /// Encrypts the next record in place, from byte `from` on.
    pub(super) fn seal(&mut self, record: &mut Vec<u8>, from: usize) {
        if let Some((cipher, counter)) = &mut self.0 {
            let nonce = Self::nonce(counter);
            let tag = cipher
                .encrypt_inout_detached(&nonce, &[], (&mut record[from..]).into())
                .expect("a record is shorter than the cipher's limit");
            record.extend_from_slice(&tag);
        }
    }

    /// Decrypts the next record in place; `None` if it is not the next record of this connection, or has
    /// another key.
    pub(super) fn open<'a>(&mut self, record: &'a mut [u8]) -> Option<&'a [u8]> {
        let Some((cipher, counter)) = &mut self.0 else { return Some(record) };
        let nonce = Self::nonce(counter);
        let end = record.len().checked_sub(size_of::<Tag>())?;
        let (sealed, tag) = record.split_at_mut(end);
        let tag: &Tag = (&*tag).try_into().ok()?;
        cipher.decrypt_inout_detached(&nonce, &[], (&mut *sealed).into(), tag).ok()?;
        Some(sealed)
    }
}

/// Compares in constant time.
pub(super) fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |difference, (x, y)| difference | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: &[u8], other: &[u8]) -> (Secrets, Secrets) {
        (Secrets::new(key, b"a", b"b", true), Secrets::new(other, b"a", b"b", false))
    }

    #[test]
    fn sides_agree_and_directions_differ() {
        let (a, b) = pair(b"key", b"key");
        assert!(same(&a.proof, &b.expected) && same(&b.proof, &a.expected));
        assert_eq!((a.seal, a.open), (b.open, b.seal));
        assert_ne!(a.seal, a.open);
    }

    #[test]
    fn other_key_fails_proof() {
        let (a, b) = pair(b"key", b"kez");
        assert!(!same(&a.proof, &b.expected));
    }

    #[test]
    fn record_is_opened_once_and_in_order() {
        let (a, b) = pair(b"key", b"key");
        let (mut sealer, mut opener) = (Sealer::new(Some(a.seal)), Sealer::new(Some(b.open)));
        let sealed: Vec<Vec<u8>> = (0..3)
            .map(|i| {
                let mut record = vec![9, 9, i, i, i];
                sealer.seal(&mut record, 2);
                record.split_off(2)
            })
            .collect();
        let mut first = sealed[0].clone();
        assert_eq!(opener.open(&mut first).unwrap(), [0, 0, 0]);
        assert!(opener.open(&mut sealed[0].clone()).is_none(), "replayed");
        let mut opener = Sealer::new(Some(b.open));
        assert!(opener.open(&mut sealed[1].clone()).is_none(), "one is missing before it");
        let mut opener = Sealer::new(Some(b.open));
        assert!(opener.open(&mut sealed[0].clone()[..9]).is_none(), "too short for a seal");
        let mut opener = Sealer::new(Some(b.open));
        let mut changed = sealed[0].clone();
        changed[1] ^= 1;
        assert!(opener.open(&mut changed).is_none(), "changed");
    }
}
