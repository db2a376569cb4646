//! All states found, packed and spread over shards by hash.

use crate::expand::{WORD, put, take};

/// A successor that a worker found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) hash: u64,
    /// The position of its parent in the parent's level.
    pub(crate) parent: u32,
    /// Twice the index of the step from its parent; plus 1 if the step needs neither a fault nor time.
    pub(crate) step: u32,
    at: u32,
    len: u32,
}

/// Successors in the order found: their heads by shard, their bytes in one buffer.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) heads: Vec<Vec<Head>>,
    /// The packed states; only the first `used` bytes are valid.
    bytes: Vec<u8>,
    used: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self { heads: vec![Vec::new(); SHARDS], bytes: Vec::new(), used: 0 }
    }
}

impl Batch {
    /// Adds a successor. `pack` writes it, padded with zeros to a whole word, into at most `most` bytes and
    /// returns its length without padding.
    #[inline]
    pub(crate) fn push(
        &mut self,
        parent: u32,
        step: u32,
        most: usize,
        pack: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let at = self.used;
        if self.bytes.len() < at + most {
            self.bytes.resize(2 * (at + most), 0);
        }
        let len = pack(&mut self.bytes[at..at + most]);
        self.used = at + len;
        let hash = fingerprint_of_words(&self.bytes[at..], len);
        let (at, len) = (at as u32, len as u32);
        let shard = (hash >> (64 - SHARD_BITS)) as usize;
        self.heads[shard].push(Head { hash, parent, step, at, len });
    }

    /// Removes the successors of `parent`, which must be the last ones added.
    pub(crate) fn retract(&mut self, parent: u32) {
        for heads in &mut self.heads {
            while let Some(head) = heads.pop_if(|head| head.parent == parent) {
                self.used = self.used.min(head.at as usize);
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.heads.iter_mut().for_each(Vec::clear);
        self.used = 0;
    }

    #[inline]
    pub(crate) fn packed(&self, head: &Head) -> &[u8] {
        &self.bytes[head.at as usize..(head.at + head.len) as usize]
    }

    pub(crate) fn bytes(&self) -> usize {
        let heads: usize = self.heads.iter().map(Vec::capacity).sum();
        heads * size_of::<Head>() + self.bytes.capacity()
    }
}

/// An arena of byte records that never move.
#[derive(Debug)]
pub(crate) struct RowArena {
    chunks: Vec<Vec<u8>>,
}

/// The address of the first record.
pub(crate) const FIRST: u32 = 1;
/// The size of a chunk. A record never crosses a chunk boundary.
const CHUNK: usize = 1 << 16;

impl RowArena {
    pub(crate) fn new() -> Self {
        // A leading byte, so that no record has address 0, which means "free" in the hash table.
        Self { chunks: vec![vec![0]] }
    }

    /// Appends a record; returns its address.
    pub(crate) fn push(&mut self, packed: &[u8]) -> u32 {
        let last = self.chunks.last().expect("there is a chunk");
        if last.len() + packed.len() + 5 > CHUNK {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let number = self.chunks.len() - 1;
        assert!(number < 1 << 16, "a shard has room for four gigabytes");
        let chunk = &mut self.chunks[number];
        let at = chunk.len();
        put(chunk, packed.len() as u32);
        chunk.extend_from_slice(packed);
        (number * CHUNK + at) as u32
    }

    #[inline]
    pub(crate) fn get(&self, at: u32) -> &[u8] {
        let mut rest = &self.chunks[at as usize / CHUNK][at as usize % CHUNK..];
        let len = take(&mut rest);
        &rest[..len as usize]
    }

    #[inline]
    fn first(&self, at: u32) -> u8 {
        self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    /// The address after the record at `at`.
    pub(crate) fn after(&self, at: u32) -> u32 {
        let chunk = &self.chunks[at as usize / CHUNK];
        let mut rest = &chunk[at as usize % CHUNK..];
        let len = take(&mut rest) as usize;
        let end = chunk.len() - rest.len() + len;
        let number = at as usize / CHUNK;
        if end == chunk.len() && number + 1 < self.chunks.len() {
            ((number + 1) * CHUNK) as u32
        } else {
            (number * CHUNK + end) as u32
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.chunks.iter().map(Vec::capacity).sum()
    }
}

/// One part of the store: the states whose hashes begin with its number.
#[derive(Debug)]
pub(crate) struct Shard {
    /// Exact mode: the record's address and the low half of its hash. Compact mode: the whole hash.
    table: Vec<u64>,
    compact: bool,
    /// Compact mode: a bit for each slot of the table that holds a state of the next level.
    fresh: Vec<u64>,
    pub(crate) len: u64,
    pub(crate) rows: RowArena,
    /// Compact mode: the states of the current level; in exact mode they are in `rows`.
    current: RowArena,
    /// The blocks of the current level: the address of the first state, and how many there are.
    pub(crate) blocks: Vec<(u32, u32)>,
    next_blocks: Vec<(u32, u32)>,
    /// The address in `rows` at which the next level begins.
    level: u32,
    /// For each state, its parent (as difference to the parent of the state before) and the step from it.
    origins: Vec<Vec<u8>>,
    last_parent: u64,
    /// Whether a step that needs neither a fault nor time leads back to an earlier or the current level.
    pub(crate) cycles: bool,
}

/// How many successors are prefetched together before they are inserted.
pub(crate) const PREFETCH: usize = 16;

/// How many states a block has at most.
pub(crate) const BLOCK: u32 = 128;

impl Shard {
    pub(crate) fn new(compact: bool) -> Self {
        Self {
            table: vec![0; 64],
            compact,
            fresh: vec![0; usize::from(compact)],
            len: 0,
            rows: RowArena::new(),
            current: RowArena::new(),
            blocks: Vec::new(),
            next_blocks: Vec::new(),
            level: FIRST,
            origins: vec![Vec::new()],
            last_parent: 0,
            cycles: false,
        }
    }

    #[inline]
    fn slot(&self, hash: u64) -> usize {
        ((u128::from(hash << SHARD_BITS) * self.table.len() as u128) >> 64) as usize
    }

    /// Reads the memory that inserting these needs. The reads are independent, so the cache misses overlap.
    #[inline]
    pub(crate) fn touch(&self, heads: &[Head]) {
        let mut slots = [0; PREFETCH];
        let mut touched = 0;
        for (slot, head) in slots.iter_mut().zip(heads) {
            *slot = self.slot(head.hash);
            touched ^= self.table[*slot];
        }
        if !self.compact {
            for (slot, head) in slots.iter_mut().zip(heads) {
                while self.table[*slot] as u32 != head.hash as u32 && self.table[*slot] != 0 {
                    *slot = if *slot + 1 == self.table.len() { 0 } else { *slot + 1 };
                }
            }
            for slot in &slots[..heads.len()] {
                let at = (self.table[*slot] >> 32) as u32;
                touched ^= u64::from(self.rows.first(at));
            }
        }
        std::hint::black_box(touched);
    }

    /// Inserts a state reached from state number `parent` by `step`; returns false if it is known already.
    pub(crate) fn insert(&mut self, hash: u64, parent: u64, step: u32, packed: &[u8]) -> bool {
        let mut slot = self.slot(hash);
        let print = if hash == 0 { 1 } else { hash };
        loop {
            let found = self.table[slot];
            if found == 0 {
                break;
            }
            if self.compact {
                if found == print {
                    self.cycles |= step & 1 == 1 && !self.is_fresh(slot);
                    return false;
                }
            } else if found as u32 == hash as u32 {
                let at = (found >> 32) as u32;
                if self.rows.get(at) == packed {
                    self.cycles |= step & 1 == 1 && at < self.level;
                    return false;
                }
            }
            slot += 1;
            if slot == self.table.len() {
                slot = 0;
            }
        }
        let at = self.rows.push(packed);
        self.table[slot] =
            if self.compact { print } else { u64::from(at) << 32 | u64::from(hash as u32) };
        if self.compact {
            self.fresh[slot / 64] |= 1 << (slot % 64);
        }
        match self.next_blocks.last_mut() {
            Some((_, count)) if *count < BLOCK => *count += 1,
            _ => self.next_blocks.push((at, 1)),
        }
        self.len += 1;
        if self.origins.last().is_none_or(|origins| origins.len() + 10 > CHUNK) {
            self.origins.push(Vec::with_capacity(CHUNK));
        }
        let origins = self.origins.last_mut().expect("there is a chunk");
        put(origins, (parent - self.last_parent) as u32);
        put(origins, step >> 1);
        self.last_parent = parent;
        if self.len * 100 > self.table.len() as u64 * if self.compact { 90 } else { 66 } {
            self.grow();
        }
        true
    }

    fn grow(&mut self) {
        let small = self.table.len() < 1 << 14;
        let size = self.table.len() * if self.compact && !small { 5 } else { 8 } / 4;
        let old = std::mem::replace(&mut self.table, vec![0; size]);
        if self.compact {
            let fresh = std::mem::replace(&mut self.fresh, vec![0; size.div_ceil(64)]);
            for (slot, print) in old.into_iter().enumerate().filter(|(_, print)| *print != 0) {
                let to = self.put(print, print);
                self.fresh[to / 64] |= (fresh[slot / 64] >> (slot % 64) & 1) << (to % 64);
            }
            return;
        }
        // In the order of the records, so that only accesses to the table are random.
        drop(old);
        let mut at = FIRST;
        for _ in 0..self.len {
            let hash = fingerprint(self.rows.get(at));
            self.put(hash, u64::from(at) << 32 | u64::from(hash as u32));
            at = self.rows.after(at);
        }
    }

    /// Whether the state in this slot belongs to the next level; compact mode only.
    fn is_fresh(&self, slot: usize) -> bool {
        self.fresh[slot / 64] >> (slot % 64) & 1 == 1
    }

    /// Writes an entry into the first free slot; returns the slot.
    fn put(&mut self, hash: u64, entry: u64) -> usize {
        let mut slot = self.slot(hash);
        while self.table[slot] != 0 {
            slot = if slot + 1 == self.table.len() { 0 } else { slot + 1 };
        }
        self.table[slot] = entry;
        slot
    }

    /// The address of a known state; exact mode only.
    pub(crate) fn find(&self, hash: u64, packed: &[u8]) -> Option<u32> {
        let mut slot = self.slot(hash);
        while self.table[slot] != 0 {
            let found = self.table[slot];
            let at = (found >> 32) as u32;
            if found as u32 == hash as u32 && self.rows.get(at) == packed {
                return Some(at);
            }
            slot = if slot + 1 == self.table.len() { 0 } else { slot + 1 };
        }
        None
    }

    /// Makes the next level the current one; returns how many states of it this shard has.
    pub(crate) fn start_level(&mut self) -> u64 {
        self.blocks = std::mem::take(&mut self.next_blocks);
        if self.compact {
            self.fresh.fill(0);
            self.current = std::mem::replace(&mut self.rows, RowArena::new());
        } else if let Some(&(last, count)) = self.blocks.last() {
            self.level = (0..count).fold(last, |at, _| self.rows.after(at));
        }
        self.blocks.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    /// The arena with the states of the current level.
    pub(crate) fn current_rows(&self) -> &RowArena {
        if self.compact { &self.current } else { &self.rows }
    }

    /// The parent of this shard's state number `index`, and the step from it.
    pub(crate) fn origin(&self, index: u64) -> (u64, u32) {
        let (mut parent, mut left) = (0, index);
        for chunk in &self.origins {
            let mut rest = &chunk[..];
            while !rest.is_empty() {
                parent += u64::from(take(&mut rest));
                let step = take(&mut rest);
                if left == 0 {
                    return (parent, step);
                }
                left -= 1;
            }
        }
        unreachable!("every state has a parent")
    }

    /// Reads all states from the first on, in their order; exact mode only.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor { shard: self, at: FIRST, chunk: 0, origins: &self.origins[0], parent: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.table.capacity() + self.fresh.capacity()) * 8
            + self.rows.bytes()
            + self.current.bytes()
            + self.origins.iter().map(Vec::capacity).sum::<usize>()
    }
}

/// Reads the states of a shard in their order.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    shard: &'a Shard,
    at: u32,
    chunk: usize,
    origins: &'a [u8],
    parent: u64,
}

impl<'a> Cursor<'a> {
    /// The number of the parent, the step from it, and the packed state.
    pub(crate) fn next(&mut self) -> (u64, u32, &'a [u8]) {
        while self.origins.is_empty() {
            self.chunk += 1;
            self.origins = &self.shard.origins[self.chunk];
        }
        self.parent += u64::from(take(&mut self.origins));
        let step = take(&mut self.origins);
        let packed = self.shard.rows.get(self.at);
        self.at = self.shard.rows.after(self.at);
        (self.parent, step, packed)
    }
}

/// The number of shards. It does not depend on the number of threads, so the order of states does not
/// either.
pub(crate) const SHARDS: usize = 1 << SHARD_BITS;
pub(crate) const SHARD_BITS: u32 = 4;

/// The hash of a packed state.
pub(crate) fn fingerprint(packed: &[u8]) -> u64 {
    let mut print = FingerprintLanes::new(packed.len());
    let mut words = packed.chunks_exact(WORD);
    words.by_ref().for_each(|word| print.mix(word));
    let mut last = [0; WORD];
    let rest = words.remainder();
    last[..rest.len()].copy_from_slice(rest);
    print.mix(&last);
    print.finish()
}

/// As [`fingerprint`], of the first `len` bytes, if zeros follow up to a whole word.
#[inline]
fn fingerprint_of_words(packed: &[u8], len: usize) -> u64 {
    let mut print = FingerprintLanes::new(len);
    packed.chunks_exact(WORD).take(len / WORD + 1).for_each(|word| print.mix(word));
    print.finish()
}

/// A hash in two lanes of multiply and fold.
struct FingerprintLanes(u64, u64);

/// The product, its high half onto its low half.
#[inline]
pub(crate) fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    product as u64 ^ (product >> 64) as u64
}

impl FingerprintLanes {
    #[inline]
    fn new(len: usize) -> Self {
        Self(0x243f_6a88_85a3_08d3 ^ len as u64, 0x1319_8a2e_0370_7344)
    }

    #[inline]
    fn mix(&mut self, word: &[u8]) {
        let x = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        self.0 = fold(self.0 ^ x, 0x9e37_79b9_7f4a_7c15).wrapping_add(x);
        self.1 = fold(self.1 ^ x.rotate_left(29), 0xd6e8_feb8_6659_fd93) ^ self.0;
    }

    #[inline]
    fn finish(self) -> u64 {
        let Self(a, b) = self;
        fold(a ^ 0xa076_1d64_78bd_642f, b ^ 0xe703_7ed1_a0b4_28db)
            ^ fold(b, 0x8ebc_6af0_9c88_c6e3 ^ a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_does_not_change_the_fingerprint() {
        for len in 0..40 {
            let row: Vec<u8> = (0..len).map(|i| (i * 37 + 1) as u8).collect();
            let mut words = row.clone();
            words.resize(len + WORD, 0);
            assert_eq!(fingerprint_of_words(&words, len), fingerprint(&row), "{len}");
            words[len / WORD * WORD..].fill(7);
            assert_ne!(fingerprint_of_words(&words, len), fingerprint(&row), "{len}: no zeros");
        }
    }
}
