//! Columns of figures and words, written as CSV and as Parquet for DuckDB, Polars, pandas or R.
//!
//! ```
//! use konklave_tables::Table;
//!
//! let mut table = Table::default();
//! table.ints("nodes", [Some(3), Some(5)]);
//! table.texts("verdict", [Some("ok"), None]);
//! assert_eq!(table.to_csv(), "nodes,verdict\n3,ok\n5,\n");
//! ```

#[cfg(feature = "parquet")]
mod parquet;

/// Columns of the same length.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    /// Facts about the whole table: names and values. Parquet keeps them; CSV has no place for them.
    pub about: Vec<(String, String)>,
}

/// A column.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) values: Values,
}

/// The values of a column. Every value may be missing.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Values {
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Bool(Vec<Option<bool>>),
    Text(Vec<Option<String>>),
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Value `row` as CSV writes it; nothing where it is missing.
    fn cell(&self, row: usize) -> String {
        match self {
            Self::Int(values) => values[row].map_or(String::new(), |v| v.to_string()),
            Self::Float(values) => values[row].map_or(String::new(), |v| v.to_string()),
            Self::Bool(values) => values[row].map_or(String::new(), |v| v.to_string()),
            Self::Text(values) => values[row].as_deref().map_or(String::new(), quoted),
        }
    }
}

impl Table {
    /// Adds a column of whole numbers.
    pub fn ints(&mut self, name: &str, values: impl IntoIterator<Item = Option<i64>>) {
        self.add(name, Values::Int(values.into_iter().collect()));
    }

    /// Adds a column of numbers.
    pub fn floats(&mut self, name: &str, values: impl IntoIterator<Item = Option<f64>>) {
        self.add(name, Values::Float(values.into_iter().collect()));
    }

    /// Adds a column of yes and no.
    pub fn bools(&mut self, name: &str, values: impl IntoIterator<Item = Option<bool>>) {
        self.add(name, Values::Bool(values.into_iter().collect()));
    }

    /// Adds a column of words.
    pub fn texts<T: Into<String>>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = Option<T>>,
    ) {
        self.add(name, Values::Text(values.into_iter().map(|v| v.map(Into::into)).collect()));
    }

    fn add(&mut self, name: &str, values: Values) {
        if let Some(first) = self.columns.first() {
            assert_eq!(first.values.len(), values.len(), "columns are of the same length: {name}");
        }
        self.columns.push(Column { name: name.to_owned(), values });
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// As comma-separated values with a header (RFC 4180, lines end in `\n`). What is missing is
    /// left empty.
    pub fn to_csv(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|column| quoted(&column.name)).collect();
        let mut csv = names.join(",") + "\n";
        for row in 0..self.rows() {
            for (i, column) in self.columns.iter().enumerate() {
                if i > 0 {
                    csv.push(',');
                }
                csv.push_str(&column.values.cell(row));
            }
            csv.push('\n');
        }
        csv
    }

    /// As a Parquet file: every column optional, compressed with Snappy. The same table gives the
    /// same bytes.
    #[cfg(feature = "parquet")]
    pub fn to_parquet(&self) -> Vec<u8> {
        parquet::write(&self.columns, self.rows(), &self.about)
            .expect("columns of one length, written to memory")
    }
}

/// `word` as CSV writes it. Words that could be taken for nothing are quoted, too.
fn quoted(word: &str) -> String {
    if word.is_empty() || word.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", word.replace('"', "\"\""))
    } else {
        word.to_owned()
    }
}
