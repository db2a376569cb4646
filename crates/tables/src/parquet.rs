//! Parquet files, by the `parquet` crate without Arrow: see `docs/adr/0007-parquet-without-arrow.md`.

use std::ops::Range;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::{Column, Values};

/// A reader may take row groups one by one, or in parallel.
const ROWS_IN_GROUP: usize = 131_072;

pub(crate) fn write(
    columns: &[Column],
    rows: usize,
    about: &[(String, String)],
) -> Result<Vec<u8>> {
    let about = about.iter().map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
    let properties = WriterProperties::builder()
        .set_created_by(concat!("konklave version ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(about.collect()))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), schema(columns)?, Arc::new(properties))?;
    let mut begin = 0;
    while begin < rows {
        let range = begin..rows.min(begin + ROWS_IN_GROUP);
        begin = range.end;
        let mut group = file.next_row_group()?;
        for column in columns {
            if let Some(mut writer) = group.next_column()? {
                put(&column.values, range.clone(), &mut writer)?;
                writer.close()?;
            }
        }
        group.close()?;
    }
    file.into_inner()
}

/// Every column may have gaps.
fn schema(columns: &[Column]) -> Result<TypePtr> {
    let leaf = |column: &Column| {
        let (physical, logical) = match column.values {
            Values::Int(_) => (Physical::INT64, None),
            Values::Float(_) => (Physical::DOUBLE, None),
            Values::Bool(_) => (Physical::BOOLEAN, None),
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let leaf = Type::primitive_type_builder(&column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(leaf))
    };
    let leaves = columns.iter().map(leaf).collect::<Result<Vec<TypePtr>>>()?;
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(leaves).build()?))
}

fn put(values: &Values, rows: Range<usize>, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
    match values {
        Values::Int(all) => put_as::<Int64Type, _>(&all[rows], |v| *v, writer),
        Values::Float(all) => put_as::<DoubleType, _>(&all[rows], |v| *v, writer),
        Values::Bool(all) => put_as::<BoolType, _>(&all[rows], |v| *v, writer),
        Values::Text(all) => {
            put_as::<ByteArrayType, _>(&all[rows], |v| ByteArray::from(v.as_str()), writer)
        }
    }
}

fn put_as<D: DataType, T>(
    all: &[Option<T>],
    value: impl Fn(&T) -> D::T,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<()> {
    let there: Vec<i16> = all.iter().map(|v| i16::from(v.is_some())).collect();
    let values: Vec<D::T> = all.iter().flatten().map(value).collect();
    writer.typed::<D>().write_batch(&values, Some(&there), None)?;
    Ok(())
}
