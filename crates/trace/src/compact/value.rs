//! Writes values of JSON in few bytes: each name is written once.

use std::collections::BTreeMap;
use std::fmt;

use rustc_hash::FxHashMap;
use serde::ser::{self, Serialize};
use serde_json::Value;

use super::id::Id;

// Below 0x80: that number.
pub(super) const NULL: u8 = 0x80;
pub(super) const FALSE: u8 = 0x81;
pub(super) const TRUE: u8 = 0x82;
pub(super) const POSITIVE: u8 = 0x83;
pub(super) const NEGATIVE: u8 = 0x84;
pub(super) const FLOAT: u8 = 0x85;
pub(super) const TEXT: u8 = 0x86;
pub(super) const NAMED: u8 = 0x87;
pub(super) const LIST: u8 = 0x88;
pub(super) const OBJECT: u8 = 0x89;
pub(super) const VARIANT: u8 = 0x8a;
/// An object with a field for each node of the header, in its order: only their values follow.
pub(super) const MEMBERS: u8 = 0x8b;
/// Lists and objects of up to fifteen items, and names with low numbers, have the number in their tag.
pub(super) const SHORT_OBJECT: u8 = 0xa0;
pub(super) const SHORT_LIST: u8 = 0xb0;
pub(super) const LOW_VARIANT: u8 = 0xc0;
pub(super) const LOW_NAMED: u8 = 0xe0;

/// Names beyond this number are written in full each time.
const MOST_NAMES: usize = 4096;

#[inline]
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, (value << 1 ^ value >> 63) as u64);
}

/// The names written so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By place in memory: names in types never move.
    fixed: FxHashMap<(usize, usize), u32>,
    by_text: BTreeMap<String, u32>,
    /// By the bytes that a key would have as a value: JSON's way to write a number as a key is long.
    by_key: FxHashMap<Vec<u8>, u32>,
    /// For new keys.
    key: Vec<u8>,
    /// The nodes of the header.
    members: Vec<u32>,
    /// Whether a value had as many fields as there are nodes, but other names: such fields are not compared again.
    other_fields: bool,
    /// Texts that are not yet written.
    pub(super) fresh: Vec<String>,
}

impl Names {
    /// No names yet, for a run of these nodes.
    pub(super) fn new(members: &[u32]) -> Self {
        Self { members: members.to_vec(), ..Self::default() }
    }

    #[inline]
    fn fixed(&mut self, name: &'static str) -> u32 {
        let place = (name.as_ptr() as usize, name.len());
        if let Some(&number) = self.fixed.get(&place) {
            return number;
        }
        let number = self.by_text(name);
        self.fixed.insert(place, number);
        number
    }

    fn by_text(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.by_text.get(name) {
            return number;
        }
        let number = self.by_text.len() as u32;
        self.by_text.insert(name.to_owned(), number);
        self.fresh.push(name.to_owned());
        number
    }
}

/// Appends `value` to `out`. A value that JSON cannot express becomes null.
pub(super) fn encode(value: &dyn erased_serde::Serialize, out: &mut Vec<u8>, names: &mut Names) {
    let begin = out.len();
    let tried = !names.other_fields;
    if value.serialize(&mut Encoder { out, names }).is_ok() {
        return;
    }
    out.truncate(begin);
    if tried && names.other_fields {
        return encode(value, out, names);
    }
    out.push(NULL);
}

struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    names: &'a mut Names,
}

/// The reason why a value cannot be written.
#[derive(Debug)]
pub(super) struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON cannot say")
    }
}

impl std::error::Error for Unspeakable {}

impl ser::Error for Unspeakable {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

type Done = Result<(), Unspeakable>;

impl<'a> Encoder<'a> {
    #[inline]
    fn positive(&mut self, value: u64) {
        if value < 0x80 {
            self.out.push(value as u8);
        } else {
            self.out.push(POSITIVE);
            put_varint(self.out, value);
        }
    }

    fn integer(&mut self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.positive(value),
            Err(_) => {
                self.out.push(NEGATIVE);
                put_varint(self.out, !value as u64);
            }
        }
    }

    fn counted(&mut self, short: u8, long: u8, count: usize) {
        if count < 16 {
            self.out.push(short | count as u8);
        } else {
            self.out.push(long);
            put_varint(self.out, count as u64);
        }
    }

    fn named(&mut self, low: u8, high: u8, name: &'static str) {
        let number = self.names.fixed(name);
        if number < 32 {
            self.out.push(low | number as u8);
        } else {
            self.out.push(high);
            put_varint(self.out, u64::from(number));
        }
    }

    fn object(&mut self, count: Option<usize>) -> Result<Parts<'_>, Unspeakable> {
        Ok(Encoder { out: &mut *self.out, names: &mut *self.names }.parts(false, count))
    }

    fn text(&mut self, text: &str) {
        self.out.push(TEXT);
        put_varint(self.out, text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    /// A list or map of unknown length is collected first.
    fn parts(self, list: bool, count: Option<usize>) -> Parts<'a> {
        let mut this = self;
        let held = match count {
            Some(count) => {
                if list {
                    this.counted(SHORT_LIST, LIST, count);
                } else {
                    this.counted(SHORT_OBJECT, OBJECT, count);
                }
                None
            }
            None => Some((Vec::new(), 0)),
        };
        Parts { encoder: this, list, held, members: None }
    }
}

/// A list or an object in the making.
struct Parts<'a> {
    encoder: Encoder<'a>,
    list: bool,
    held: Option<(Vec<u8>, usize)>,
    /// Of a field for each node: how many there are so far.
    members: Option<usize>,
}

impl Parts<'_> {
    /// Takes the key of the next node without writing it.
    #[inline]
    fn member<T: Serialize + ?Sized>(&mut self, key: &T, before: usize) -> Done {
        let names = &mut *self.encoder.names;
        if key.serialize(Id).ok().as_ref() == names.members.get(before) {
            self.members = Some(before + 1);
            return Ok(());
        }
        names.other_fields = true;
        Err(Unspeakable)
    }

    #[inline]
    fn put<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        match &mut self.held {
            None => value.serialize(&mut Encoder {
                out: &mut *self.encoder.out,
                names: &mut *self.encoder.names,
            }),
            Some((bytes, count)) => {
                *count += usize::from(self.list);
                value.serialize(&mut Encoder { out: bytes, names: &mut *self.encoder.names })
            }
        }
    }

    #[inline]
    fn name(&mut self, number: u32) {
        match &mut self.held {
            None => put_varint(self.encoder.out, u64::from(number) << 1),
            Some((bytes, count)) => {
                *count += 1;
                put_varint(bytes, u64::from(number) << 1);
            }
        }
    }

    #[inline]
    fn finish(mut self) -> Done {
        if let Some((bytes, count)) = self.held.take() {
            if self.list {
                self.encoder.counted(SHORT_LIST, LIST, count);
            } else {
                self.encoder.counted(SHORT_OBJECT, OBJECT, count);
            }
            self.encoder.out.extend_from_slice(&bytes);
        }
        Ok(())
    }
}

impl<'a, 'b> ser::Serializer for &'b mut Encoder<'a> {
    type Ok = ();
    type Error = Unspeakable;
    type SerializeSeq = Parts<'b>;
    type SerializeTuple = Parts<'b>;
    type SerializeTupleStruct = Parts<'b>;
    type SerializeTupleVariant = Parts<'b>;
    type SerializeMap = Parts<'b>;
    type SerializeStruct = Parts<'b>;
    type SerializeStructVariant = Parts<'b>;

    fn serialize_bool(self, value: bool) -> Done {
        self.out.push(if value { TRUE } else { FALSE });
        Ok(())
    }
    fn serialize_i8(self, value: i8) -> Done {
        self.integer(i64::from(value));
        Ok(())
    }
    fn serialize_i16(self, value: i16) -> Done {
        self.integer(i64::from(value));
        Ok(())
    }
    fn serialize_i32(self, value: i32) -> Done {
        self.integer(i64::from(value));
        Ok(())
    }
    fn serialize_i64(self, value: i64) -> Done {
        self.integer(value);
        Ok(())
    }
    fn serialize_u8(self, value: u8) -> Done {
        self.positive(u64::from(value));
        Ok(())
    }
    fn serialize_u16(self, value: u16) -> Done {
        self.positive(u64::from(value));
        Ok(())
    }
    #[inline]
    fn serialize_u32(self, value: u32) -> Done {
        self.positive(u64::from(value));
        Ok(())
    }
    fn serialize_u64(self, value: u64) -> Done {
        self.positive(value);
        Ok(())
    }
    fn serialize_f32(self, value: f32) -> Done {
        self.serialize_f64(f64::from(value))
    }
    fn serialize_f64(self, value: f64) -> Done {
        if value.is_finite() {
            self.out.push(FLOAT);
            self.out.extend_from_slice(&value.to_le_bytes());
        } else {
            self.out.push(NULL);
        }
        Ok(())
    }
    fn serialize_char(self, value: char) -> Done {
        self.text(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }
    fn serialize_str(self, value: &str) -> Done {
        self.text(value);
        Ok(())
    }
    fn serialize_bytes(self, value: &[u8]) -> Done {
        self.counted(SHORT_LIST, LIST, value.len());
        value.iter().for_each(|byte| self.positive(u64::from(*byte)));
        Ok(())
    }
    fn serialize_none(self) -> Done {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Done {
        self.out.push(NULL);
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Done {
        self.serialize_unit()
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Done {
        self.named(LOW_NAMED, NAMED, variant);
        Ok(())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        self.named(LOW_VARIANT, VARIANT, variant);
        value.serialize(self)
    }
    fn serialize_seq(self, count: Option<usize>) -> Result<Parts<'b>, Unspeakable> {
        Ok(Encoder { out: &mut *self.out, names: &mut *self.names }.parts(true, count))
    }
    fn serialize_tuple(self, count: usize) -> Result<Parts<'b>, Unspeakable> {
        self.serialize_seq(Some(count))
    }
    fn serialize_tuple_struct(
        self,
        _: &'static str,
        count: usize,
    ) -> Result<Parts<'b>, Unspeakable> {
        self.serialize_seq(Some(count))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        count: usize,
    ) -> Result<Parts<'b>, Unspeakable> {
        self.named(LOW_VARIANT, VARIANT, variant);
        self.serialize_seq(Some(count))
    }
    fn serialize_map(self, count: Option<usize>) -> Result<Parts<'b>, Unspeakable> {
        if count == Some(self.names.members.len()) && !self.names.other_fields {
            self.out.push(MEMBERS);
            let encoder = Encoder { out: &mut *self.out, names: &mut *self.names };
            return Ok(Parts { encoder, list: false, held: None, members: Some(0) });
        }
        self.object(count)
    }
    fn serialize_struct(self, _: &'static str, count: usize) -> Result<Parts<'b>, Unspeakable> {
        self.object(Some(count))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        count: usize,
    ) -> Result<Parts<'b>, Unspeakable> {
        self.named(LOW_VARIANT, VARIANT, variant);
        self.object(Some(count))
    }
}

impl ser::SerializeSeq for Parts<'_> {
    type Ok = ();
    type Error = Unspeakable;
    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.put(value)
    }
    fn end(self) -> Done {
        self.finish()
    }
}

impl ser::SerializeTuple for Parts<'_> {
    type Ok = ();
    type Error = Unspeakable;
    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.put(value)
    }
    fn end(self) -> Done {
        self.finish()
    }
}

impl ser::SerializeTupleStruct for Parts<'_> {
    type Ok = ();
    type Error = Unspeakable;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.put(value)
    }
    fn end(self) -> Done {
        self.finish()
    }
}

impl ser::SerializeTupleVariant for Parts<'_> {
    type Ok = ();
    type Error = Unspeakable;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.put(value)
    }
    fn end(self) -> Done {
        self.finish()
    }
}

impl ser::SerializeStruct for Parts<'_> {
    type Ok = ();
    type Error = Unspeakable;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        let number = self.encoder.names.fixed(name);
        self.name(number);
        self.put(value)
    }
    fn end(self) -> Done {
        self.finish()
    }
}

impl ser::SerializeStructVariant for Parts<'_> {
    type Ok = ();
    type Error = Unspeakable;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        ser::SerializeStruct::serialize_field(self, name, value)
    }
    fn end(self) -> Done {
        self.finish()
    }
}

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Unspeakable;
    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        if let Some(before) = self.members {
            return self.member(key, before);
        }
        self.key(key)
    }
    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.put(value)
    }
    fn end(self) -> Done {
        self.finish()
    }
}

impl Parts<'_> {
    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        let names = &mut *self.encoder.names;
        let mut bytes = std::mem::take(&mut names.key);
        bytes.clear();
        let mut encoder = Encoder { out: &mut bytes, names: &mut *names };
        let encoded = key.serialize(&mut encoder).is_ok();
        let known = names.by_key.get(&bytes).copied().filter(|_| encoded);
        names.key = bytes;
        if let Some(number) = known {
            self.name(number);
            return Ok(());
        }
        // JSON writes keys that are numbers as strings.
        let key = match serde_json::to_value(key).map_err(|_| Unspeakable)? {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(yes) => yes.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return Err(Unspeakable),
        };
        let names = &mut *self.encoder.names;
        if names.by_text.len() < MOST_NAMES || names.by_text.contains_key(&key) {
            let number = names.by_text(&key);
            if encoded {
                names.by_key.insert(names.key.clone(), number);
            }
            self.name(number);
            return Ok(());
        }
        let out = match &mut self.held {
            None => &mut *self.encoder.out,
            Some((bytes, count)) => {
                *count += 1;
                bytes
            }
        };
        put_varint(out, (key.len() as u64) << 1 | 1);
        out.extend_from_slice(key.as_bytes());
        Ok(())
    }
}
