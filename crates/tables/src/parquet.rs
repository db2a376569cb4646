//! Parquet files: <https://parquet.apache.org/docs/file-format/>. One data page for each column of
//! a row group; words by dictionary where that is shorter; no compression.
//!
//! Written here because the `parquet` crate brings sixty others for what are two hundred lines.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::thrift::{Struct, varint};
use crate::{Column, Values};

const MAGIC: &[u8; 4] = b"PAR1";
/// A reader may take row groups one by one, or in parallel.
const ROWS_IN_GROUP: usize = 131_072;

// The numbers of parquet.thrift.
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
const UNCOMPRESSED: i32 = 0;
const OPTIONAL: i32 = 1;
const UTF8: i32 = 0;

pub(crate) fn write(columns: &[Column], rows: usize, about: &[(String, String)]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    let mut groups = Vec::new();
    let mut begin = 0;
    while begin < rows {
        let range = begin..rows.min(begin + ROWS_IN_GROUP);
        begin = range.end;
        groups.push(row_group(&mut file, columns, range));
    }
    let about = about.iter().map(|(k, v)| Struct::default().text(1, k).text(2, v)).collect();
    let footer = Struct::default()
        .i32(1, 1)
        .parts(2, schema(columns))
        .i64(3, rows)
        .parts(4, groups)
        .parts(5, about)
        .text(6, concat!("konklave version ", env!("CARGO_PKG_VERSION"), " (build 1)"))
        .finish();
    file.extend(&footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(MAGIC);
    file
}

/// The physical type of a column.
fn kind(values: &Values) -> i32 {
    match values {
        Values::Bool(_) => 0,
        Values::Int(_) => 2,
        Values::Float(_) => 5,
        Values::Text(_) => 6,
    }
}

fn schema(columns: &[Column]) -> Vec<Struct> {
    let root = Struct::default().text(4, "schema").i32(5, columns.len() as i32);
    let leaves = columns.iter().map(|column| {
        let leaf =
            Struct::default().i32(1, kind(&column.values)).i32(3, OPTIONAL).text(4, &column.name);
        match column.values {
            Values::Text(_) => {
                let string = Struct::default().part(1, Struct::default());
                leaf.i32(6, UTF8).part(10, string)
            }
            Values::Int(_) | Values::Float(_) | Values::Bool(_) => leaf,
        }
    });
    std::iter::once(root).chain(leaves).collect()
}

fn row_group(file: &mut Vec<u8>, columns: &[Column], rows: Range<usize>) -> Struct {
    let begin = file.len();
    let chunks = columns.iter().map(|column| chunk(file, column, rows.clone())).collect();
    Struct::default().parts(1, chunks).i64(2, file.len() - begin).i64(3, rows.len())
}

fn chunk(file: &mut Vec<u8>, column: &Column, rows: Range<usize>) -> Struct {
    let begin = file.len();
    let Pages { dictionary, levels, mut values } = pages(&column.values, rows.clone());
    let encoding = if dictionary.is_some() { RLE_DICTIONARY } else { PLAIN };
    if let Some((count, words)) = &dictionary {
        let about = Struct::default().i32(1, *count as i32).i32(2, PLAIN).no(3);
        page(file, Struct::default().i32(1, DICTIONARY_PAGE), 7, about, words);
    }
    let data = file.len();
    let about =
        Struct::default().i32(1, rows.len() as i32).i32(2, encoding).i32(3, RLE).i32(4, RLE);
    let mut body = (levels.len() as u32).to_le_bytes().to_vec();
    body.extend(levels);
    body.append(&mut values);
    page(file, Struct::default().i32(1, DATA_PAGE), 5, about, &body);
    let size = file.len() - begin;
    let encodings: &[i32] =
        if dictionary.is_some() { &[PLAIN, RLE, encoding] } else { &[PLAIN, RLE] };
    let meta = Struct::default()
        .i32(1, kind(&column.values))
        .i32s(2, encodings)
        .texts(3, &[&column.name])
        .i32(4, UNCOMPRESSED)
        .i64(5, rows.len())
        .i64(6, size)
        .i64(7, size)
        .i64(9, data);
    let meta = if dictionary.is_some() { meta.i64(11, begin) } else { meta };
    Struct::default().i64(2, begin).part(3, meta)
}

fn page(file: &mut Vec<u8>, header: Struct, field: u8, about: Struct, body: &[u8]) {
    let size = body.len() as i32;
    file.extend(header.i32(2, size).i32(3, size).part(field, about).finish());
    file.extend(body);
}

/// A column chunk in its parts.
struct Pages {
    /// How many words, and the words.
    dictionary: Option<(usize, Vec<u8>)>,
    /// Which values are there.
    levels: Vec<u8>,
    /// Those that are there.
    values: Vec<u8>,
}

fn pages(values: &Values, rows: Range<usize>) -> Pages {
    fn plain<T: Copy>(all: &[Option<T>], put: impl Fn(&mut Vec<u8>, T)) -> Pages {
        let levels = hybrid(all.iter().map(|v| u32::from(v.is_some())), 1);
        let mut values = Vec::new();
        all.iter().flatten().for_each(|v| put(&mut values, *v));
        Pages { dictionary: None, levels, values }
    }
    match values {
        Values::Int(all) => plain(&all[rows], |bytes, v| bytes.extend(v.to_le_bytes())),
        Values::Float(all) => plain(&all[rows], |bytes, v| bytes.extend(v.to_le_bytes())),
        Values::Bool(all) => {
            let all = &all[rows];
            let levels = hybrid(all.iter().map(|v| u32::from(v.is_some())), 1);
            let values = packed(all.iter().flatten().map(|v| u32::from(*v)), 1);
            Pages { dictionary: None, levels, values }
        }
        Values::Text(all) => words(&all[rows]),
    }
}

fn words(all: &[Option<String>]) -> Pages {
    let levels = hybrid(all.iter().map(|v| u32::from(v.is_some())), 1);
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut order, mut indices) = (Vec::new(), Vec::new());
    for word in all.iter().flatten() {
        let next = order.len() as u32;
        let number = *numbers.entry(word).or_insert_with(|| {
            order.push(word.as_str());
            next
        });
        indices.push(number);
    }
    if order.len() * 2 > indices.len() {
        let values = byte_arrays(all.iter().flatten().map(String::as_str));
        return Pages { dictionary: None, levels, values };
    }
    let width = bits(order.len().saturating_sub(1) as u32);
    let mut values = vec![width];
    values.extend(hybrid(indices.into_iter(), width));
    Pages { dictionary: Some((order.len(), byte_arrays(order.into_iter()))), levels, values }
}

fn byte_arrays<'a>(words: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend((word.len() as u32).to_le_bytes());
        bytes.extend(word.as_bytes());
    }
    bytes
}

/// How many bits `most` takes, at least one.
fn bits(most: u32) -> u8 {
    (32 - most.leading_zeros()).max(1) as u8
}

/// Parquet's RLE/bit-packing hybrid: one repeated run where all values are the same, else one run
/// of packed ones.
fn hybrid(values: impl ExactSizeIterator<Item = u32> + Clone, width: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let count = values.len() as u64;
    let mut all = values.clone();
    let Some(first) = all.next() else { return bytes };
    if all.all(|value| value == first) {
        varint(&mut bytes, count << 1);
        bytes.extend(&first.to_le_bytes()[..usize::from(width.div_ceil(8))]);
        return bytes;
    }
    varint(&mut bytes, count.div_ceil(8) << 1 | 1);
    let mut body = packed(values, width);
    body.resize(count.div_ceil(8) as usize * usize::from(width), 0);
    bytes.append(&mut body);
    bytes
}

/// Values of `width` bits one after the other, the lowest bits first.
fn packed(values: impl Iterator<Item = u32>, width: u8) -> Vec<u8> {
    let (mut bytes, mut pending, mut held) = (Vec::new(), 0u64, 0);
    for value in values {
        pending |= u64::from(value) << held;
        held += width;
        while held >= 8 {
            bytes.push(pending as u8);
            pending >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        bytes.push(pending as u8);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_repeated_or_packed() {
        assert_eq!(hybrid([1; 5].into_iter(), 1), [10, 1]);
        assert_eq!(hybrid([0, 1, 0, 1].into_iter(), 1), [3, 0b1010]);
        // The example of the specification: 0 to 7 in three bits.
        assert_eq!(hybrid(0..8, 3), [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        assert_eq!(hybrid([].into_iter(), 3), []);
    }

    #[test]
    fn bits_are_as_few_as_possible() {
        assert_eq!([0, 1, 2, 3, 4, 255, 256].map(bits), [1, 1, 2, 2, 3, 8, 9]);
    }
}
