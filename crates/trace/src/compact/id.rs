//! Whether a key is the id of a node.

use serde::Serialize;
use serde::ser::{Impossible, Serializer};

use super::value::Unspeakable;

/// Takes a number, and nothing else.
pub(super) struct Id;

type Taken = Result<u32, Unspeakable>;
type Never = Impossible<u32, Unspeakable>;

/// No number.
macro_rules! refuse {
    ($($name:ident($($kind:ty),*) -> $result:ty;)*) => {
        $(fn $name(self, $(_: $kind),*) -> $result { Err(Unspeakable) })*
    };
}

impl Serializer for Id {
    type Ok = u32;
    type Error = Unspeakable;
    type SerializeSeq = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    #[inline]
    fn serialize_u32(self, value: u32) -> Taken {
        Ok(value)
    }
    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Taken {
        value.serialize(self)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Taken {
        Err(Unspeakable)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Taken {
        Err(Unspeakable)
    }
    refuse! {
        serialize_bool(bool) -> Taken;
        serialize_i8(i8) -> Taken;
        serialize_i16(i16) -> Taken;
        serialize_i32(i32) -> Taken;
        serialize_i64(i64) -> Taken;
        serialize_u8(u8) -> Taken;
        serialize_u16(u16) -> Taken;
        serialize_u64(u64) -> Taken;
        serialize_f32(f32) -> Taken;
        serialize_f64(f64) -> Taken;
        serialize_char(char) -> Taken;
        serialize_str(&str) -> Taken;
        serialize_bytes(&[u8]) -> Taken;
        serialize_none() -> Taken;
        serialize_unit() -> Taken;
        serialize_unit_struct(&'static str) -> Taken;
        serialize_unit_variant(&'static str, u32, &'static str) -> Taken;
        serialize_seq(Option<usize>) -> Result<Never, Unspeakable>;
        serialize_tuple(usize) -> Result<Never, Unspeakable>;
        serialize_tuple_struct(&'static str, usize) -> Result<Never, Unspeakable>;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Result<Never, Unspeakable>;
        serialize_map(Option<usize>) -> Result<Never, Unspeakable>;
        serialize_struct(&'static str, usize) -> Result<Never, Unspeakable>;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Result<Never, Unspeakable>;
    }
}
