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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use konklave_process::{Group, ProcessId, ProcessMap};

    use super::super::bytes::Bytes;
    use super::super::value::{Names, encode};
    use super::*;

    /// Writes `value`, reads it again, and returns the number of bytes.
    fn there_and_back(value: &impl Serialize, nodes: &[u32]) -> usize {
        let (mut names, mut out) = (Names::new(nodes), Vec::new());
        encode(value, &mut out, &mut names);
        let read = Bytes::new(&out).value(&names.fresh, nodes).unwrap();
        assert_eq!(read, serde_json::to_value(value).unwrap());
        out.len()
    }

    #[test]
    fn a_map_over_all_nodes_is_written_without_their_ids() {
        let group = Group::new([17, 4, 99].map(ProcessId).to_vec()).unwrap();
        let mut map = ProcessMap::new(&group, 0);
        map[ProcessId(4)] = 5;
        assert_eq!(there_and_back(&map, &[17, 4, 99]), 4);
        assert!(there_and_back(&[Some(&map), None], &[17, 4, 99]) < 8);
        assert!(there_and_back(&map, &[1, 2, 3]) > 4);
    }

    #[test]
    fn other_maps_of_that_size_keep_their_keys() {
        let map =
            |keys: [u32; 3]| keys.map(|key| (key, key)).into_iter().collect::<BTreeMap<_, _>>();
        for keys in [[0, 1, 2], [0, 1, 9], [7, 8, 9]] {
            there_and_back(&map(keys), &[0, 1, 2]);
            there_and_back(&[map([0, 1, 2]), map(keys), map([0, 1, 2])], &[0, 1, 2]);
        }
        there_and_back(&BTreeMap::from([("0", 1)]), &[0]);
    }
}
