//! As much of Thrift's compact protocol as the footer of a Parquet file needs.
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

const BOOL_FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The fields of a struct, in the order of their numbers.
#[derive(Default)]
pub(crate) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    pub(crate) fn i32(self, field: u8, value: i32) -> Self {
        let mut this = self.field(field, I32);
        zigzag(&mut this.bytes, i64::from(value));
        this
    }

    pub(crate) fn i64(self, field: u8, value: usize) -> Self {
        let mut this = self.field(field, I64);
        zigzag(&mut this.bytes, value as i64);
        this
    }

    pub(crate) fn no(self, field: u8) -> Self {
        self.field(field, BOOL_FALSE)
    }

    pub(crate) fn text(self, field: u8, value: &str) -> Self {
        let mut this = self.field(field, BINARY);
        text(&mut this.bytes, value);
        this
    }

    pub(crate) fn part(self, field: u8, value: Self) -> Self {
        let mut this = self.field(field, STRUCT);
        this.bytes.extend(value.finish());
        this
    }

    pub(crate) fn parts(self, field: u8, values: Vec<Self>) -> Self {
        let mut this = self.field(field, LIST);
        this.list(values.len(), STRUCT);
        values.into_iter().for_each(|value| this.bytes.extend(value.finish()));
        this
    }

    pub(crate) fn i32s(self, field: u8, values: &[i32]) -> Self {
        let mut this = self.field(field, LIST);
        this.list(values.len(), I32);
        values.iter().for_each(|value| zigzag(&mut this.bytes, i64::from(*value)));
        this
    }

    pub(crate) fn texts(self, field: u8, values: &[&str]) -> Self {
        let mut this = self.field(field, LIST);
        this.list(values.len(), BINARY);
        values.iter().for_each(|value| text(&mut this.bytes, value));
        this
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn field(mut self, field: u8, kind: u8) -> Self {
        let step = field - self.last;
        assert!((1..=15).contains(&step), "fields come in order");
        self.bytes.push(step << 4 | kind);
        self.last = field;
        self
    }

    fn list(&mut self, length: usize, kind: u8) {
        if length < 15 {
            self.bytes.push((length as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(&mut self.bytes, length as u64);
        }
    }
}

pub(crate) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn zigzag(bytes: &mut Vec<u8>, value: i64) {
    varint(bytes, (value << 1 ^ value >> 63) as u64);
}

fn text(bytes: &mut Vec<u8>, value: &str) {
    varint(bytes, value.len() as u64);
    bytes.extend(value.as_bytes());
}
