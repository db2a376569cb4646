//! Output: data goes to stdout, messages to stderr; files appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::ValueEnum;
use konklave_catalog::Error;
pub(crate) use konklave_catalog::{open_input, read_text};
use serde::Serialize;

use crate::interrupt;

/// Output format.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object, indented.
    Json,
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values, with a header.
    Csv,
}

/// Output format of a table.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum TableFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON array, indented.
    Json,
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values, with a header.
    Csv,
    /// A table for documents.
    Markdown,
}

/// Buffered stdout.
pub(crate) fn stdout() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Prints `value` as JSON.
pub(crate) fn print_json(value: &impl Serialize, format: Format) -> io::Result<()> {
    let mut out = stdout();
    if format == Format::Json {
        serde_json::to_writer_pretty(&mut out, value)?;
    } else {
        serde_json::to_writer(&mut out, value)?;
    }
    writeln!(out)?;
    out.flush()
}

/// Prints `value` as JSON, indented.
pub(crate) fn print_pretty_json(value: &impl Serialize) -> io::Result<()> {
    print_json(value, Format::Json)
}

/// Prints `value` as JSON on a line.
pub(crate) fn print_jsonl(value: &impl Serialize) -> io::Result<()> {
    print_json(value, Format::Jsonl)
}

/// Prints rows of named values; the first row's names are the header.
pub(crate) fn print_csv(rows: &[Vec<(String, String)>]) -> io::Result<()> {
    let mut out = stdout();
    let quoted = |word: &str| {
        if word.contains([',', '"', '\n']) {
            format!("\"{}\"", word.replace('"', "\"\""))
        } else {
            word.to_owned()
        }
    };
    if let Some(first) = rows.first() {
        let names: Vec<String> = first.iter().map(|(name, _)| quoted(name)).collect();
        writeln!(out, "{}", names.join(","))?;
    }
    for row in rows {
        let values: Vec<String> = row.iter().map(|(_, value)| quoted(value)).collect();
        writeln!(out, "{}", values.join(","))?;
    }
    out.flush()
}

/// Whether stdout is a terminal that shows colours. NO_COLOR turns them off, CLICOLOR_FORCE on.
pub(crate) fn colours() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    if set("NO_COLOR") || std::env::var("TERM").is_ok_and(|t| t == "dumb") {
        return false;
    }
    set("CLICOLOR_FORCE") || io::stdout().is_terminal()
}

/// `text` in bold green, red or yellow, if stdout shows colours.
pub(crate) fn paint(text: &str, colour: Colour) -> String {
    if colours() { format!("\x1b[1;{}m{text}\x1b[0m", colour as u8) } else { text.to_owned() }
}

/// `text` as a heading: bold, if stdout shows colours.
pub(crate) fn heading(text: &str) -> String {
    if colours() { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

/// Colours of verdicts. The words alone must suffice for readers who do not see them.
#[derive(Clone, Copy)]
pub(crate) enum Colour {
    /// Violated, stuck or wrong.
    Red = 31,
    /// Right.
    Green = 32,
    /// Undecided.
    Yellow = 33,
}

/// Fails if the disk is full, so that a command reports it before the work instead of after it.
pub(crate) fn has_room(file: &File) -> io::Result<()> {
    const SOMETHING: &[u8] = &[0; 1 << 16];
    let length = file.metadata()?.len();
    let mut end = file;
    end.seek(SeekFrom::End(0))?;
    let written = end.write_all(SOMETHING);
    file.set_len(length)?;
    end.seek(SeekFrom::Start(length))?;
    written
}

/// The files that are being written.
static TAKEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn release(path: &Path) {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| other != path);
}

/// A picture file: PNG or PDF if the name ends so, else SVG.
#[derive(Debug)]
pub(crate) struct Picture {
    target: Target,
    form: PictureForm,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PictureForm {
    Svg,
    Png,
    Pdf,
}

impl Picture {
    /// Opens `path`; refuses a name that ends in another form.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("svg");
        let form = match ending.to_ascii_lowercase().as_str() {
            "png" => PictureForm::Png,
            "pdf" => PictureForm::Pdf,
            "jpg" | "jpeg" | "gif" | "webp" | "eps" | "tex" | "html" | "htm" => {
                let file = path.display();
                return Err(Error::Usage(format!(
                    "{file}: pictures end in .svg, .png or .pdf; `{} export` writes further forms",
                    konklave_catalog::program()
                )));
            }
            _ => PictureForm::Svg,
        };
        Ok(Self { target: Target::open(path)?, form })
    }

    /// Opens `path`, if there is one.
    pub(crate) fn open_if(path: Option<&PathBuf>) -> Result<Option<Self>, Error> {
        path.map(|p| Self::open(p)).transpose()
    }

    /// Writes the picture and moves the file to its place.
    pub(crate) fn finish(self, svg: &str) -> Result<(), Error> {
        match self.form {
            PictureForm::Svg => self.target.finish(svg.as_bytes()),
            PictureForm::Png => self.target.finish(&crate::formats::png(svg, 2.0)?),
            PictureForm::Pdf => self.target.finish(&crate::formats::pdf(svg)?),
        }
    }
}

/// An output file that appears only when it is finished.
///
/// It is opened before the work starts, so that a wrong path is reported early.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    draft: Option<(PathBuf, File)>,
    /// A device or a pipe, which is written directly.
    direct: Option<File>,
}

impl Target {
    /// Opens `path` for writing; `-` is stdout. The target of a link is replaced, not the link; a device
    /// or a pipe is written directly.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            return Ok(Self { path: path.to_owned(), draft: None, direct: None });
        }
        let fail = |why| Error::Unwritable { file: path.display().to_string(), why };
        if path.is_dir() {
            return Err(fail(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")));
        }
        let path = &if path.exists() { path.canonicalize() } else { std::path::absolute(path) }
            .map_err(fail)?;
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if path.is_file() || !path.exists() {
            if taken.contains(path) {
                let file = path.display();
                return Err(Error::Usage(format!("{file} is named for two outputs")));
            }
            taken.push(path.clone());
        }
        drop(taken);
        if path.exists() && !path.is_file() {
            let file = fs::OpenOptions::new().write(true).open(path).map_err(fail)?;
            return Ok(Self { path: path.clone(), draft: None, direct: Some(file) });
        }
        let name = path.file_name().ok_or_else(|| {
            fail(io::Error::new(io::ErrorKind::InvalidInput, "it has no file name"))
        })?;
        let draft =
            path.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
        // The target itself must be writable, too, if it exists.
        if path.exists() {
            fs::OpenOptions::new().append(true).open(path).map_err(fail)?;
        }
        let file = File::create(&draft).map_err(fail)?;
        let target = Self { path: path.clone(), draft: Some((draft, file)), direct: None };
        let Some((draft, file)) = &target.draft else { return Ok(target) };
        interrupt::begun(draft);
        if let Err(why) = has_room(file) {
            return Err(fail(why));
        }
        Ok(target)
    }

    /// Opens `path`, if there is one.
    pub(crate) fn open_if(path: Option<&PathBuf>) -> Result<Option<Self>, Error> {
        path.map(|p| Self::open(p)).transpose()
    }

    /// Writes the file by `write` and moves it to its place at the end.
    pub(crate) fn stream<T>(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<io::Result<T>, Error>,
    ) -> Result<T, Error> {
        let fail = |why| Error::Unwritable { file: self.path.display().to_string(), why };
        if let Some(file) = &mut self.direct {
            return write(file)?.map_err(fail);
        }
        let Some((_, file)) = &mut self.draft else {
            return write(&mut stdout())?.map_err(fail);
        };
        let done = write(file)?.map_err(fail)?;
        self.finish(&[])?;
        Ok(done)
    }

    /// Writes `content` and moves the file to its place.
    pub(crate) fn finish(mut self, content: &[u8]) -> Result<(), Error> {
        let fail = |why| Error::Unwritable { file: self.path.display().to_string(), why };
        let Some((draft, mut file)) = self.draft.take() else {
            let written = match self.direct.take() {
                Some(mut file) => file.write_all(content),
                None => io::stdout().write_all(content),
            };
            return match written {
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                other => other.map_err(fail),
            };
        };
        let done = file
            .write_all(content)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&draft, &self.path));
        if done.is_err() {
            let _ = fs::remove_file(&draft);
        }
        interrupt::done(&draft);
        release(&self.path);
        done.map_err(fail)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some((draft, _)) = self.draft.take() {
            let _ = fs::remove_file(&draft);
            interrupt::done(&draft);
        }
        release(&self.path);
    }
}
