//! Values in few bytes: as much as JSON can say, with names told once.

use std::collections::BTreeMap;
use std::fmt;

use rustc_hash::FxHashMap;
use serde::ser::{self, Serialize};
use serde_json::{Map, Number, Value};

// Below 0x80: that number.
const NULL: u8 = 0x80;
const FALSE: u8 = 0x81;
const TRUE: u8 = 0x82;
const POSITIVE: u8 = 0x83;
const NEGATIVE: u8 = 0x84;
const FLOAT: u8 = 0x85;
const TEXT: u8 = 0x86;
const NAMED: u8 = 0x87;
const LIST: u8 = 0x88;
const OBJECT: u8 = 0x89;
const VARIANT: u8 = 0x8a;
/// Lists and objects of up to fifteen, and names of low number, carry it along.
const SHORT_OBJECT: u8 = 0xa0;
const SHORT_LIST: u8 = 0xb0;
const LOW_VARIANT: u8 = 0xc0;
const LOW_NAMED: u8 = 0xe0;

/// Nested deeper is no value of ours.
const DEEPEST: u32 = 100;
/// Names beyond are told each time.
const MOST_NAMES: usize = 4096;

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

/// The names told so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By place in memory: names in types never move.
    fixed: FxHashMap<(usize, usize), u32>,
    by_text: BTreeMap<String, u32>,
    /// Those not yet written.
    pub(super) fresh: Vec<String>,
}

impl Names {
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

/// Appends `value` to `out`. What JSON cannot say becomes null.
pub(super) fn encode(value: &impl Serialize, out: &mut Vec<u8>, names: &mut Names) {
    let begin = out.len();
    if value.serialize(&mut Encoder { out, names }).is_err() {
        out.truncate(begin);
        out.push(NULL);
    }
}

struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    names: &'a mut Names,
}

/// Why a value cannot be written.
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
        Parts { encoder: this, list, held }
    }
}

/// A list or an object in the making.
struct Parts<'a> {
    encoder: Encoder<'a>,
    list: bool,
    held: Option<(Vec<u8>, usize)>,
}

impl Parts<'_> {
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

    fn name(&mut self, number: u32) {
        match &mut self.held {
            None => put_varint(self.encoder.out, u64::from(number) << 1),
            Some((bytes, count)) => {
                *count += 1;
                put_varint(bytes, u64::from(number) << 1);
            }
        }
    }

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
        Ok(Encoder { out: &mut *self.out, names: &mut *self.names }.parts(false, count))
    }
    fn serialize_struct(self, _: &'static str, count: usize) -> Result<Parts<'b>, Unspeakable> {
        self.serialize_map(Some(count))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        count: usize,
    ) -> Result<Parts<'b>, Unspeakable> {
        self.named(LOW_VARIANT, VARIANT, variant);
        self.serialize_map(Some(count))
    }
}

impl ser::SerializeSeq for Parts<'_> {
    type Ok = ();
    type Error = Unspeakable;
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
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        // JSON has its ways to write numbers and the like as keys.
        let key = match serde_json::to_value(key).map_err(|_| Unspeakable)? {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(yes) => yes.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return Err(Unspeakable),
        };
        let names = &mut *self.encoder.names;
        if names.by_text.len() < MOST_NAMES || names.by_text.contains_key(&key) {
            let number = names.by_text(&key);
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
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.put(value)
    }
    fn end(self) -> Done {
        self.finish()
    }
}

/// Bytes that are read one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    all: &'a [u8],
    pub(super) at: usize,
}

/// Why bytes cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bad {
    /// They end too early.
    CutOff,
    /// They make no sense.
    Nonsense(&'static str),
}

impl<'a> Bytes<'a> {
    pub(super) fn new(all: &'a [u8]) -> Self {
        Self { all, at: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.all.len()
    }

    pub(super) fn byte(&mut self) -> Result<u8, Bad> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Bad> {
        let end = self.at.checked_add(count).ok_or(Bad::CutOff)?;
        let taken = self.all.get(self.at..end).ok_or(Bad::CutOff)?;
        self.at = end;
        Ok(taken)
    }

    pub(super) fn varint(&mut self) -> Result<u64, Bad> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Bad::Nonsense("a number is too long"))
    }

    pub(super) fn zigzag(&mut self) -> Result<i64, Bad> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number that counts things to come, each of at least one byte.
    pub(super) fn count(&mut self) -> Result<usize, Bad> {
        let count = self.varint()?;
        let left = self.all.len() - self.at;
        usize::try_from(count).ok().filter(|count| *count <= left).ok_or(Bad::CutOff)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Bad> {
        let count = self.count()?;
        std::str::from_utf8(self.take(count)?).map_err(|_| Bad::Nonsense("this is no UTF-8 text"))
    }

    pub(super) fn value(&mut self, names: &[String]) -> Result<Value, Bad> {
        self.nested(names, 0)
    }

    fn nested(&mut self, names: &[String], depth: u32) -> Result<Value, Bad> {
        if depth > DEEPEST {
            return Err(Bad::Nonsense("a value is nested too deep"));
        }
        let name = |number: u64| {
            let name = usize::try_from(number).ok().and_then(|number| names.get(number));
            name.cloned().ok_or(Bad::Nonsense("a name was never told"))
        };
        let variant = |this: &mut Self, name: String| -> Result<Value, Bad> {
            let inner = this.nested(names, depth + 1)?;
            Ok(Value::Object(Map::from_iter([(name, inner)])))
        };
        Ok(match self.byte()? {
            small @ 0..0x80 => small.into(),
            NULL => Value::Null,
            FALSE => false.into(),
            TRUE => true.into(),
            POSITIVE => self.varint()?.into(),
            NEGATIVE => (!(self.varint()? as i64)).into(),
            FLOAT => {
                let bytes = self.take(8)?.try_into().expect("eight were taken");
                Number::from_f64(f64::from_le_bytes(bytes)).map_or(Value::Null, Value::Number)
            }
            TEXT => self.text()?.into(),
            NAMED => name(self.varint()?)?.into(),
            low @ LOW_NAMED.. => name(u64::from(low - LOW_NAMED))?.into(),
            VARIANT => {
                let name = name(self.varint()?)?;
                variant(self, name)?
            }
            low @ LOW_VARIANT..LOW_NAMED => variant(self, name(u64::from(low - LOW_VARIANT))?)?,
            LIST => {
                let count = self.count()?;
                self.list(count, names, depth)?
            }
            short @ SHORT_LIST..LOW_VARIANT => {
                self.list(usize::from(short - SHORT_LIST), names, depth)?
            }
            OBJECT => {
                let count = self.count()?;
                self.object(count, names, depth)?
            }
            short @ SHORT_OBJECT..SHORT_LIST => {
                self.object(usize::from(short - SHORT_OBJECT), names, depth)?
            }
            0x8b..SHORT_OBJECT => return Err(Bad::Nonsense("a value is of no known kind")),
        })
    }

    fn list(&mut self, count: usize, names: &[String], depth: u32) -> Result<Value, Bad> {
        let items = (0..count).map(|_| self.nested(names, depth + 1));
        items.collect::<Result<Vec<Value>, Bad>>().map(Value::Array)
    }

    fn object(&mut self, count: usize, names: &[String], depth: u32) -> Result<Value, Bad> {
        let mut fields = Map::new();
        for _ in 0..count {
            let key = self.varint()?;
            let name = if key & 1 == 0 {
                let name = usize::try_from(key >> 1).ok().and_then(|number| names.get(number));
                name.cloned().ok_or(Bad::Nonsense("a name was never told"))?
            } else {
                let bytes = self.take(usize::try_from(key >> 1).map_err(|_| Bad::CutOff)?)?;
                let text = std::str::from_utf8(bytes);
                text.map_err(|_| Bad::Nonsense("this is no UTF-8 text"))?.to_owned()
            };
            let value = self.nested(names, depth + 1)?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}
