//! Reading a run, line by line.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, Write};

use serde::Deserialize;
use serde_json::Value;

use crate::{Entry, Footer, Header, Incident, Run, Step, VERSION};

/// An error in a file, with its line.
#[derive(Debug)]
pub struct ReadError {
    /// The name of the file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The text that was found, and the expected one.
    pub problem: String,
    /// Whether all lines before it are sound, so that [`Run::salvage`] can read them.
    pub cut_off: bool,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.problem)
    }
}

impl std::error::Error for ReadError {}

/// The readable part of a file that may be cut off.
#[derive(Debug)]
pub struct Salvaged {
    /// The entries up to the cut.
    pub run: Run,
    /// The place of the cut, if there is one.
    pub cut: Option<ReadError>,
}

impl Run {
    /// Reads a whole run; `file` is its name in errors.
    pub fn read(file: &str, source: impl BufRead) -> Result<Self, ReadError> {
        let salvaged = Self::salvage(file, source)?;
        salvaged.cut.map_or(Ok(salvaged.run), Err)
    }

    /// Reads a run that may be cut off: a recorder was killed, or a disk is full.
    pub fn salvage(file: &str, source: impl BufRead) -> Result<Salvaged, ReadError> {
        let mut reader = Reader::new(file, source)?;
        let mut entries = Vec::new();
        let mut cut = None;
        for entry in reader.by_ref() {
            match entry {
                Ok(entry) => entries.push(entry),
                Err(error) if error.cut_off => cut = Some(error),
                Err(error) => return Err(error),
            }
        }
        let footer = reader.footer.take();
        Ok(Salvaged { run: Self { header: reader.header, entries, footer }, cut })
    }

    /// Writes the run as a file.
    pub fn write(&self, mut out: impl Write) -> std::io::Result<()> {
        write_line(&mut out, &self.header)?;
        for entry in &self.entries {
            write_line(&mut out, entry)?;
        }
        self.footer.iter().try_for_each(|footer| write_line(&mut out, footer))
    }

    /// The run as the text of a file.
    pub fn to_text(&self) -> String {
        let mut text = Vec::new();
        self.write(&mut text).expect("memory takes every byte");
        String::from_utf8(text).expect("JSON is UTF-8")
    }
}

pub(crate) fn write_line(
    out: &mut impl Write,
    line: &impl serde::Serialize,
) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// Reads one entry after the other, so that a long run needs no memory.
#[derive(Debug)]
pub struct Reader<R> {
    file: String,
    source: R,
    line: usize,
    header: Header,
    nodes: BTreeSet<u32>,
    footer: Option<Footer>,
    over: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header; `file` is the name of the source in errors.
    pub fn new(file: &str, source: R) -> Result<Self, ReadError> {
        let mut reader = Self {
            file: file.to_owned(),
            source,
            line: 0,
            header: Header::new("", Vec::new()),
            nodes: BTreeSet::new(),
            footer: None,
            over: false,
        };
        let Some(text) = reader.next_line()? else {
            reader.line = 1;
            return Err(reader.error(format!("the file is empty; {FIRST_LINE}")));
        };
        reader.header = reader.parse_header(&text)?;
        reader.nodes = reader.header.nodes.iter().copied().collect();
        Ok(reader)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The footer, once all entries are read.
    pub fn footer(&self) -> Option<&Footer> {
        self.footer.as_ref()
    }

    /// The line that was read last, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The next line that is not blank.
    fn next_line(&mut self) -> Result<Option<String>, ReadError> {
        loop {
            let mut bytes = Vec::new();
            self.line += 1;
            let read = self.source.read_until(b'\n', &mut bytes);
            let count = read.map_err(|e| self.error(format!("cannot be read: {e}")))?;
            if count == 0 {
                return Ok(None);
            }
            let ended = bytes.ends_with(b"\n");
            let Ok(text) = String::from_utf8(bytes) else {
                return Err(if ended { self.error("this is no UTF-8 text") } else { self.cut() });
            };
            if !text.trim().is_empty() {
                return Ok(Some(text));
            }
        }
    }

    fn parse_header(&self, text: &str) -> Result<Header, ReadError> {
        let no_run = |found| format!("this is no run, but {found}; {FIRST_LINE}");
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(_) if !text.ends_with('\n') && text.starts_with("{\"konklave\"") => {
                return Err(self.error("the header is cut off, so nothing can be read"));
            }
            Err(_) => return Err(self.error(no_run(format!("`{}`", shortened(text))))),
        };
        let Some(version) = value.get("konklave") else {
            return Err(self.error(no_run("JSON of another kind".into())));
        };
        if version.as_u64() != Some(VERSION.into()) {
            return Err(self.error(format!(
                "the format has version {version}, but this konklave reads version {VERSION}: \
                 take the konklave that wrote it, or a newer one"
            )));
        }
        let header =
            Header::deserialize(value).map_err(|e| self.error(format!("in the header: {e}")))?;
        if header.nodes.is_empty() {
            return Err(self.error("in the header: `nodes` is empty, but a run has members"));
        }
        let usable = header.unit.is_finite() && header.unit > 0.0;
        let unit = header.unit;
        usable.then_some(header).ok_or_else(|| {
            self.error(format!("in the header: `unit` is {unit}, but should be above 0"))
        })
    }

    fn parse(&mut self, text: &str) -> Result<Option<Entry>, ReadError> {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(_) if !text.ends_with('\n') => return Err(self.cut()),
            Err(e) => {
                let found = format!("`{}` is no JSON: {}", shortened(text), plain(&e));
                return Err(self.error(found));
            }
        };
        if value.get("in").is_some() {
            let step = Step::deserialize(value)
                .map_err(|e| self.error(format!("in a step: {}", plain(&e))))?;
            if !self.nodes.contains(&step.node) {
                let nodes: Vec<String> = self.header.nodes.iter().map(u32::to_string).collect();
                let (node, nodes) = (step.node, nodes.join(", "));
                let found = format!("a step of node {node}, but the header has nodes {nodes}");
                return Err(self.error(found));
            }
            return Ok(Some(Entry::Step(step)));
        }
        if value.get("end").is_some() {
            let footer = Footer::deserialize(value);
            self.footer = Some(footer.map_err(|e| self.error(format!("in the end: {e}")))?);
            return Ok(None);
        }
        match Incident::deserialize(value) {
            Ok(incident) => Ok(Some(Entry::Incident(incident))),
            Err(e) => Err(self.error(format!(
                "`{}` is neither a step (\"in\") nor an incident nor the end (\"end\"): {}",
                shortened(text),
                plain(&e)
            ))),
        }
    }

    fn error(&self, problem: impl Into<String>) -> ReadError {
        let (file, line) = (self.file.clone(), self.line);
        ReadError { file, line, problem: problem.into(), cut_off: false }
    }

    fn cut(&self) -> ReadError {
        let problem = "cut off: the file should go on to a last line {\"end\":…}";
        ReadError { cut_off: true, ..self.error(problem) }
    }

    fn advance(&mut self) -> Result<Option<Entry>, ReadError> {
        let Some(text) = self.next_line()? else { return Err(self.cut()) };
        if let Some(entry) = self.parse(&text)? {
            return Ok(Some(entry));
        }
        match self.next_line()? {
            None => Ok(None),
            Some(text) => {
                Err(self
                    .error(format!("`{}` comes after the end; nothing should", shortened(&text))))
            }
        }
    }
}

const FIRST_LINE: &str = "its first line should be like {\"konklave\":1,\"algorithm\":…}";

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.advance().transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The message of serde without its line, which counts from the begin of the entry.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => format!("{} (column {})", &text[..end], error.column()),
        None => text,
    }
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
