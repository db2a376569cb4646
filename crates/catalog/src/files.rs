//! Files that are read: one rule for all of them. What cannot be opened or read is unreadable; what can,
//! and is no text, is bad data, with its line.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::Error;

/// Opens a file to read from. A device would be read for ever.
pub fn open_input(path: &Path) -> Result<File, Error> {
    let fail = |why| Error::Unreadable { file: path.display().to_string(), why };
    let kind = fs::metadata(path).map_err(fail)?.file_type();
    if kind.is_dir() {
        return Err(fail(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")));
    }
    if !kind.is_file() && !is_pipe(kind) {
        return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, "it is a device")));
    }
    File::open(path).map_err(fail)
}

#[cfg(unix)]
fn is_pipe(kind: fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_kind: fs::FileType) -> bool {
    false
}

/// Reads a text to its end.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let file = path.display().to_string();
    let mut bytes = Vec::new();
    let read = open_input(path)?.read_to_end(&mut bytes);
    read.map_err(|why| Error::Unreadable { file: file.clone(), why })?;
    String::from_utf8(bytes).map_err(|e| {
        let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        Error::Data(format!("{file}:{line}: not a text file (UTF-8)"))
    })
}
