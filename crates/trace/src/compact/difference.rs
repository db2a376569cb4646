//! The difference between a state and the state before it.

use super::bytes::{Bad, Bytes};
use super::value::put_varint;

/// So many equal bytes end a difference: for fewer, a new piece takes more bytes than a repetition.
const ALIKE: usize = 4;

/// Writes the difference as *pieces*; after them the rest of the old state follows unchanged. A piece is
/// a number of unchanged bytes, and new bytes that replace old ones; see `book/en/reference/run-format.md`. `scratch`
/// is the buffer for the pieces.
pub(super) fn put_difference(out: &mut Vec<u8>, old: &[u8], new: &[u8], scratch: &mut Vec<u8>) {
    let begin = alike(old, new);
    let (mut old, mut new) = (&old[begin..], &new[begin..]);
    let end = alike_at_end(old, new);
    old = &old[..old.len() - end];
    new = &new[..new.len() - end];
    scratch.clear();
    let (mut pieces, mut same) = (0u64, begin);
    while !(old.is_empty() && new.is_empty()) {
        // A difference ends at the next bytes that both have; else it extends to the end.
        let until = (1..(old.len().min(new.len()) + 1).saturating_sub(ALIKE))
            .find(|&i| old[i..i + ALIKE] == new[i..i + ALIKE]);
        let (dropped, own) = until.map_or((old.len(), new.len()), |i| (i, i));
        put_varint(scratch, same as u64);
        put_varint(scratch, (own as u64) << 1 | u64::from(own != dropped));
        if own != dropped {
            put_varint(scratch, dropped as u64);
        }
        scratch.extend_from_slice(&new[..own]);
        (old, new) = (&old[dropped..], &new[own..]);
        same = alike(old, new);
        (old, new) = (&old[same..], &new[same..]);
        pieces += 1;
    }
    put_varint(out, pieces);
    out.extend_from_slice(scratch);
}

/// Reads a difference from [`put_difference`] and returns the new state.
pub(super) fn read_difference(bytes: &mut Bytes<'_>, mut old: &[u8]) -> Result<Vec<u8>, Bad> {
    let mut new = Vec::with_capacity(old.len() + 16);
    let mut take = |count: u64| {
        let count = usize::try_from(count).ok().filter(|count| *count <= old.len());
        let (taken, rest) = old.split_at(count?);
        old = rest;
        Some(taken)
    };
    const ELSEWHERE: Bad = Bad::Nonsense("a state goes on from another one");
    for _ in 0..bytes.count()? {
        new.extend_from_slice(take(bytes.varint()?).ok_or(ELSEWHERE)?);
        let own = bytes.varint()?;
        let dropped = if own & 1 == 1 { bytes.varint()? } else { own >> 1 };
        take(dropped).ok_or(ELSEWHERE)?;
        let own = usize::try_from(own >> 1).map_err(|_| Bad::CutOff)?;
        new.extend_from_slice(bytes.take(own)?);
    }
    new.extend_from_slice(old);
    Ok(new)
}

/// The number of equal bytes at the begin.
fn alike(a: &[u8], b: &[u8]) -> usize {
    // Eight at a time as far as that goes.
    let eights = a.chunks_exact(8).zip(b.chunks_exact(8)).take_while(|(a, b)| a == b).count();
    let rest = a[eights * 8..].iter().zip(&b[eights * 8..]);
    eights * 8 + rest.take_while(|(a, b)| a == b).count()
}

/// The number of equal bytes at the end.
fn alike_at_end(a: &[u8], b: &[u8]) -> usize {
    let eights = a.rchunks_exact(8).zip(b.rchunks_exact(8)).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - eights * 8], &b[..b.len() - eights * 8]);
    eights * 8 + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use konklave_process::Rng;

    use super::*;

    fn there_and_back(old: &[u8], new: &[u8]) -> usize {
        let mut out = Vec::new();
        put_difference(&mut out, old, new, &mut Vec::new());
        let mut bytes = Bytes::new(&out);
        assert_eq!(read_difference(&mut bytes, old).unwrap(), new, "{old:?}");
        assert!(bytes.is_empty());
        out.len()
    }

    #[test]
    fn difference_turns_the_old_text_into_the_new() {
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            // Few letters, so that much is alike.
            let [old, new] = [60, 60]
                .map(|most| (0..rng.below(most)).map(|_| rng.below(3) as u8).collect::<Vec<u8>>());
            there_and_back(&old, &new);
        }
    }

    #[test]
    fn changes_far_apart_cost_no_more_than_each_by_itself() {
        let mut rng = Rng::new(2);
        for changes in 0..4 {
            let old: Vec<u8> = (0..100).map(|_| rng.below(256) as u8).collect();
            let mut new = old.clone();
            (0..changes).for_each(|_| new[rng.below(100) as usize] ^= 1);
            assert!(there_and_back(&old, &new) <= 1 + 8 * changes);
        }
    }

    #[test]
    fn pieces_of_another_state_are_refused() {
        let mut out = Vec::new();
        put_difference(&mut out, &[1; 20], &[[1; 19].as_slice(), &[2]].concat(), &mut Vec::new());
        assert!(read_difference(&mut Bytes::new(&out), &[1; 5]).is_err());
    }
}
