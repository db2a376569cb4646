//! States as rows of numbers, and their packed form in bytes.

use super::{NONE, NumberedAction, Rules};
use crate::tables::{Sent, Tables};

/// A state in numbers, unpacked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NumberedState {
    pub(crate) locals: Vec<u32>,
    pub(crate) environment: u32,
    pub(crate) sent: u32,
    /// The messages in flight, in the order of their keys; with FIFO, within a channel in the order sent.
    pub(crate) flight: Vec<u32>,
    /// For each message its key: with FIFO its channel, else its number.
    pub(crate) keys: Vec<u32>,
}

/// A step and the state it leads to, as a difference from the state before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Successor<'a> {
    pub(super) before: &'a NumberedState,
    pub(crate) locals: &'a [u32],
    pub(crate) environment: u32,
    pub(super) sent: u32,
    /// The index of the message that leaves `flight`, or [`NONE`].
    pub(super) taken: usize,
    /// The index of the message that is duplicated, or [`NONE`].
    pub(super) doubled: usize,
    /// The messages sent, in the order of their keys.
    pub(crate) sends: &'a [Sent],
    pub(crate) action: NumberedAction,
    /// The index of the series of draws among those of this step.
    pub(crate) draw: u32,
    pub(crate) reaction: u32,
    pub(crate) violated: bool,
    /// Whether the step needs neither a fault nor the passing of time.
    pub(crate) untimed_progress: bool,
    /// Whether it is a request that the client need not make.
    pub(crate) voluntary: bool,
}

impl Successor<'_> {
    /// Calls `each` with the messages in flight after the step, in the order of their keys.
    #[inline]
    fn flight(&self, mut each: impl FnMut(u32)) {
        let mut sends = self.sends;
        for (i, (&message, &key)) in self.before.flight.iter().zip(&self.before.keys).enumerate() {
            while let Some((first, rest)) = sends.split_first()
                && first.key < key
            {
                each(first.message);
                sends = rest;
            }
            if i != self.taken {
                each(message);
            }
            if i == self.doubled {
                // Right behind the original: a later position results from a later duplication.
                each(message);
            }
        }
        sends.iter().for_each(|sent| each(sent.message));
    }

    /// An upper bound on the bytes that [`Successor::write`] writes, with the padding.
    #[inline]
    pub(crate) fn most(&self) -> usize {
        5 * (self.locals.len() + 2 + self.before.flight.len() + 1 + self.sends.len()) + WORD
    }

    /// Writes the packed state, padded with zeros to a whole word; returns its length without padding.
    #[inline]
    pub(crate) fn write(&self, rules: &Rules, into: &mut [u8]) -> usize {
        let mut writer = Writer { into, len: 0, word: 0, bits: 0 };
        for &local in self.locals {
            writer.put(local);
        }
        writer.put(self.environment);
        if rules.options.counts() {
            writer.put(self.sent);
        }
        if rules.options.fifo {
            self.flight(|message| writer.put(message));
        } else {
            let mut before = 0;
            self.flight(|message| {
                writer.put(message - before);
                before = message;
            });
        }
        writer.finish()
    }

    /// Appends the packed state.
    pub(crate) fn pack(&self, rules: &Rules, into: &mut Vec<u8>) {
        let at = into.len();
        into.resize(at + self.most(), 0);
        let len = self.write(rules, &mut into[at..]);
        into.truncate(at + len);
    }

    pub(crate) fn numbered(&self, tables: &Tables, rules: &Rules) -> NumberedState {
        let mut numbered = NumberedState::default();
        self.write_to(&mut numbered);
        numbered.find_keys(tables, rules);
        numbered
    }

    /// Writes the state without its keys.
    pub(crate) fn write_to(&self, numbered: &mut NumberedState) {
        numbered.locals.clear();
        numbered.locals.extend_from_slice(self.locals);
        (numbered.environment, numbered.sent) = (self.environment, self.sent);
        numbered.flight.clear();
        self.flight(|message| numbered.flight.push(message));
    }
}

/// The bytes of a word: packed states are written and hashed by words.
pub(crate) const WORD: usize = 8;

/// Writes numbers as [`put`] does, but a whole word at a time. A packed state is hashed by words right after
/// it is written, and reading a word that was stored in pieces stalls the processor.
struct Writer<'a> {
    into: &'a mut [u8],
    len: usize,
    /// The bits not written yet, and how many they are.
    word: u64,
    bits: u32,
}

impl Writer<'_> {
    #[inline]
    fn put(&mut self, x: u32) {
        let (mut bytes, mut width) = (u64::from(x), 8);
        if x >= 0x80 {
            (bytes, width) = (0, 0);
            let mut rest = x;
            while rest >= 0x80 {
                bytes |= u64::from(rest as u8 | 0x80) << width;
                (rest, width) = (rest >> 7, width + 8);
            }
            bytes |= u64::from(rest) << width;
            width += 8;
        }
        self.word |= bytes << self.bits;
        self.bits += width;
        if self.bits >= u64::BITS {
            self.flush();
            self.bits -= u64::BITS;
            // The bits that did not fit into the word.
            self.word = if self.bits == 0 { 0 } else { bytes >> (width - self.bits) };
            self.len += WORD;
        }
    }

    #[inline]
    fn flush(&mut self) {
        self.into[self.len..self.len + WORD].copy_from_slice(&self.word.to_le_bytes());
    }

    #[inline]
    fn finish(mut self) -> usize {
        self.flush();
        self.len + self.bits as usize / 8
    }
}

impl NumberedState {
    pub(crate) fn pack(&self, rules: &Rules, into: &mut Vec<u8>) {
        let next = Successor {
            before: self,
            locals: &self.locals,
            environment: self.environment,
            sent: self.sent,
            taken: NONE,
            doubled: NONE,
            sends: &[],
            action: NumberedAction::Deliver(0),
            draw: 0,
            reaction: 0,
            violated: false,
            untimed_progress: false,
            voluntary: false,
        };
        next.pack(rules, into);
    }

    #[inline]
    pub(crate) fn unpack(&mut self, tables: &Tables, rules: &Rules, mut from: &[u8]) {
        self.locals.clear();
        self.flight.clear();
        for _ in 0..rules.inputs.n {
            self.locals.push(take(&mut from));
        }
        self.environment = take(&mut from);
        self.sent = if rules.options.counts() { take(&mut from) } else { 0 };
        let mut before = 0;
        while !from.is_empty() {
            let message = take(&mut from);
            before = if rules.options.fifo { message } else { before + message };
            self.flight.push(before);
        }
        self.find_keys(tables, rules);
    }

    #[inline]
    pub(crate) fn find_keys(&mut self, tables: &Tables, rules: &Rules) {
        if rules.options.fifo {
            self.keys.clear();
            let channels = self.flight.iter().map(|m| tables.messages[*m as usize].channel);
            self.keys.extend(channels);
        } else {
            self.keys.clone_from(&self.flight);
        }
    }
}

/// Appends a number in LEB128: seven bits a byte, the lowest first.
#[inline]
pub(crate) fn put(into: &mut Vec<u8>, mut x: u32) {
    while x >= 0x80 {
        into.push(x as u8 | 0x80);
        x >>= 7;
    }
    into.push(x as u8);
}

/// Reads a number that [`put`] wrote, and advances `from`.
#[inline]
pub(crate) fn take(from: &mut &[u8]) -> u32 {
    let (mut x, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = from.split_first().expect("a packed number is whole");
        *from = rest;
        x |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return x;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_writer_writes_the_same_bytes_as_put() {
        let numbers = [0, 1, 127, 128, 300, 16_383, 16_384, 2_097_152, u32::MAX, 5, 0];
        for skip in 0..numbers.len() {
            for many in 0..=3 * numbers.len() {
                let row: Vec<u32> = numbers.iter().cycle().skip(skip).take(many).copied().collect();
                let mut plain = Vec::new();
                row.iter().for_each(|x| put(&mut plain, *x));
                let mut into = vec![0xff; 5 * many + WORD];
                let mut writer = Writer { into: &mut into, len: 0, word: 0, bits: 0 };
                row.iter().for_each(|x| writer.put(*x));
                let len = writer.finish();
                assert_eq!(into[..len], plain, "{row:?}");
                let zeros = len.next_multiple_of(WORD) - len;
                assert!(into[len..len + zeros].iter().all(|byte| *byte == 0), "{row:?}");
            }
        }
    }
}
