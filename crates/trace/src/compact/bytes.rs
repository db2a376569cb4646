//! Reading values, from bytes that may be anything.

use serde_json::{Map, Number, Value};

use super::value::{
    FALSE, FLOAT, LIST, LOW_NAMED, LOW_VARIANT, MEMBERS, NAMED, NEGATIVE, NULL, OBJECT, POSITIVE,
    SHORT_LIST, SHORT_OBJECT, TEXT, TRUE, VARIANT,
};

/// Values nested deeper than this are refused: the file is damaged.
const DEEPEST: u32 = 100;

/// Bytes that are read one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    all: &'a [u8],
    pub(super) at: usize,
}

/// The tables that values refer to.
#[derive(Clone, Copy)]
struct Known<'a> {
    names: &'a [String],
    members: &'a [u32],
}

/// The reason why bytes cannot be read.
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
        self.left() == 0
    }

    /// The number of bytes left.
    pub(super) fn left(&self) -> usize {
        self.all.len().saturating_sub(self.at)
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

    /// A value; `names` are those read so far, `nodes` those of the run.
    pub(super) fn value(&mut self, names: &[String], members: &[u32]) -> Result<Value, Bad> {
        self.nested(Known { names, members }, 0)
    }

    fn nested(&mut self, known: Known<'_>, depth: u32) -> Result<Value, Bad> {
        if depth > DEEPEST {
            return Err(Bad::Nonsense("a value is nested too deep"));
        }
        let name = |number: u64| {
            let name = usize::try_from(number).ok().and_then(|number| known.names.get(number));
            name.cloned().ok_or(Bad::Nonsense("a name is used before it is defined"))
        };
        let variant = |this: &mut Self, name: String| -> Result<Value, Bad> {
            let inner = this.nested(known, depth + 1)?;
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
                self.list(count, known, depth)?
            }
            short @ SHORT_LIST..LOW_VARIANT => {
                self.list(usize::from(short - SHORT_LIST), known, depth)?
            }
            OBJECT => {
                let count = self.count()?;
                self.object(count, known, depth)?
            }
            short @ SHORT_OBJECT..SHORT_LIST => {
                self.object(usize::from(short - SHORT_OBJECT), known, depth)?
            }
            MEMBERS => {
                let fields = known
                    .members
                    .iter()
                    .map(|member| Ok((member.to_string(), self.nested(known, depth + 1)?)));
                Value::Object(fields.collect::<Result<Map<String, Value>, Bad>>()?)
            }
            0x8c..SHORT_OBJECT => return Err(Bad::Nonsense("a value is of no known kind")),
        })
    }

    fn list(&mut self, count: usize, known: Known<'_>, depth: u32) -> Result<Value, Bad> {
        let items = (0..count).map(|_| self.nested(known, depth + 1));
        items.collect::<Result<Vec<Value>, Bad>>().map(Value::Array)
    }

    fn object(&mut self, count: usize, known: Known<'_>, depth: u32) -> Result<Value, Bad> {
        let mut fields = Map::new();
        for _ in 0..count {
            let key = self.varint()?;
            let name = if key & 1 == 0 {
                let name =
                    usize::try_from(key >> 1).ok().and_then(|number| known.names.get(number));
                name.cloned().ok_or(Bad::Nonsense("a name is used before it is defined"))?
            } else {
                let bytes = self.take(usize::try_from(key >> 1).map_err(|_| Bad::CutOff)?)?;
                let text = std::str::from_utf8(bytes);
                text.map_err(|_| Bad::Nonsense("this is no UTF-8 text"))?.to_owned()
            };
            let value = self.nested(known, depth + 1)?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}
