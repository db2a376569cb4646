//! Counts the messages of each kind.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;

/// Messages by kind. A kind is a variant of the enum, in the order of its declaration.
#[derive(Debug, Default)]
pub(crate) struct Kinds(Vec<Kind>);

#[derive(Debug, Default, Clone)]
struct Kind {
    count: u64,
    name: String,
}

/// All kinds from this number on are counted as one; no algorithm has so many.
const MOST: usize = 255;

impl Kinds {
    /// Counts `message`.
    #[inline]
    pub(crate) fn count<M: Debug + Clone>(&mut self, message: &M) {
        match self.0.get_mut(number(message)) {
            Some(kind) if kind.count > 0 => kind.count += 1,
            // A copy, so that messages need no address: most go from registers straight to the queue.
            _ => self.meet(message.clone()),
        }
    }

    /// Counts the first message of its kind.
    #[cold]
    fn meet<M: Debug>(&mut self, message: M) {
        let number = number(&message);
        if number >= self.0.len() {
            self.0.resize(number + 1, Kind::default());
        }
        self.0[number] = Kind { count: 1, name: name_of(&message) };
    }

    /// The name of the kind of `message`, which was counted.
    pub(crate) fn name<M>(&self, message: &M) -> &str {
        self.0.get(number(message)).map_or("", |kind| &kind.name)
    }

    /// All kinds met, with their counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().filter(|k| k.count > 0).map(|k| (k.name.as_str(), k.count))
    }
}

/// The number of the enum variant. A `Discriminant` reveals it only to a hasher.
#[inline]
fn number<M>(message: &M) -> usize {
    struct Number(u64);
    impl Hasher for Number {
        #[inline]
        fn write(&mut self, bytes: &[u8]) {
            self.0 = bytes.iter().rev().fold(0, |number, b| number << 8 | u64::from(*b));
        }
        #[inline]
        fn write_isize(&mut self, number: isize) {
            self.0 = number as u64;
        }
        #[inline]
        fn finish(&self) -> u64 {
            self.0
        }
    }
    let mut hasher = Number(0);
    discriminant(message).hash(&mut hasher);
    (hasher.finish() as usize).min(MOST)
}

/// The kind of a message: the first word of its debug text.
fn name_of(message: &impl Debug) -> String {
    let text = format!("{message:?}");
    let word = text.split(|c: char| !c.is_alphanumeric() && c != '_').next();
    word.filter(|w| !w.is_empty()).unwrap_or("message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone)]
    #[expect(dead_code, reason = "only the names are read")]
    enum Message {
        Ask { when: u32 },
        Answer(u8),
        Never,
    }

    #[test]
    fn kinds_are_counted_by_name_in_the_order_of_their_declaration() {
        let mut kinds = Kinds::default();
        for message in [Message::Answer(1), Message::Ask { when: 3 }, Message::Answer(2)] {
            kinds.count(&message);
        }
        assert_eq!(kinds.iter().collect::<Vec<_>>(), [("Ask", 1), ("Answer", 2)]);
        assert_eq!(kinds.name(&Message::Answer(9)), "Answer");
        assert_eq!(kinds.name(&Message::Never), "");
    }

    #[test]
    fn messages_that_are_no_enum_are_of_one_kind() {
        let mut kinds = Kinds::default();
        kinds.count(&"well?");
        kinds.count(&"yes");
        assert_eq!(kinds.iter().collect::<Vec<_>>(), [("message", 2)]);
    }
}
