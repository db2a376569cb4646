//! Tables as others read them.

use std::io::Write;
use std::process::{Command, Stdio};

use bytes::Bytes;
use konklave_tables::Table;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

fn table(rows: i64) -> Table {
    let mut table = Table::default();
    table.ints("n", (0..rows).map(|i| (i % 5 != 0).then_some(i - 3)));
    table.floats("x", (0..rows).map(|i| Some(i as f64 / 4.0)));
    table.bools("even", (0..rows).map(|i| (i % 7 != 0).then_some(i % 2 == 0)));
    table.texts("kind", (0..rows).map(|i| Some(["ask", "tell", "größer, \"so\""][i as usize % 3])));
    table.texts("id", (0..rows).map(|i| (i % 11 != 0).then(|| format!("#{i}"))));
    table.texts("none", (0..rows).map(|_| None::<String>));
    table.about.push(("made by".into(), "a test".into()));
    table
}

#[test]
fn csv_quotes_what_it_must() {
    let csv = "n,x,even,kind,id,none\n,0,,ask,,\n-2,0.25,false,tell,#1,\n\
               -1,0.5,true,\"größer, \"\"so\"\"\",#2,\n";
    assert_eq!(table(3).to_csv(), csv);
    let mut odd = Table::default();
    odd.texts("a", [Some(""), None, Some("b\r\nc")]);
    assert_eq!(odd.to_csv(), "a\n\"\"\n\n\"b\r\nc\"\n");
}

#[test]
fn a_table_without_rows_or_columns_is_a_file_still() {
    for table in [Table::default(), table(0)] {
        let file = table.to_parquet();
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    }
}

#[test]
fn reading_returns_the_written_values() {
    // More than one row group.
    for rows in [1, 8, 1000, 140_000] {
        let table = table(rows);
        let bytes = table.to_parquet();
        assert_eq!(bytes, table.to_parquet(), "the same bytes");
        let file = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let about = file.metadata().file_metadata().key_value_metadata().unwrap();
        assert_eq!(about[0].key, "made by");
        assert_eq!(file.num_row_groups(), (rows as usize).div_ceil(131_072));
        let mut lines = table.to_csv();
        lines.drain(..=lines.find('\n').unwrap());
        let mut read = String::new();
        for row in file.get_row_iter(None).unwrap() {
            let cells: Vec<String> = row.unwrap().get_column_iter().map(|(_, f)| cell(f)).collect();
            read += &(cells.join(",") + "\n");
        }
        assert!(read == lines, "{rows} rows");
    }
}

/// As CSV has it.
fn cell(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) if text.contains(',') => format!("\"{}\"", text.replace('"', "\"\"")),
        Field::Str(text) => text.clone(),
        Field::Double(number) => number.to_string(),
        Field::Long(number) => number.to_string(),
        Field::Bool(yes) => yes.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
#[should_panic(expected = "columns are of the same length")]
fn columns_of_different_lengths_are_a_bug() {
    table(3).ints("short", [Some(1)]);
}

/// Reads the file with pyarrow, where that is installed, and compares with the CSV.
#[test]
fn pyarrow_reads_the_written_table() {
    let script = "
import sys, csv, io
import pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
pq.ParquetFile(sys.argv[1]).metadata
show = lambda v: '' if v is None else str(v).lower() if isinstance(v, bool) else '%g' % v if isinstance(v, float) else str(v)
out = csv.writer(sys.stdout, lineterminator='\\n')
out.writerow(table.column_names)
for row in zip(*[c.to_pylist() for c in table.columns]):
    out.writerow([show(v) for v in row])
";
    let there =
        Command::new("python3").args(["-c", "import pyarrow"]).stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        println!("skipped: no python3 with pyarrow here");
        return;
    }
    for rows in [0, 1, 3, 8, 1000, 300_000] {
        let table = table(rows);
        let path =
            std::env::temp_dir().join(format!("konklave-{}-{rows}.parquet", std::process::id()));
        std::fs::File::create(&path).unwrap().write_all(&table.to_parquet()).unwrap();
        let read = Command::new("python3").args(["-c", script]).arg(&path).output().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(read.status.success(), "{rows}: {}", String::from_utf8_lossy(&read.stderr));
        if rows <= 1000 {
            assert_eq!(String::from_utf8(read.stdout).unwrap(), table.to_csv(), "{rows} rows");
        }
    }
}
