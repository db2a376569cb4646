//! `keys`: makes the shared key of a group, or the certificates of its agents.

#[cfg(feature = "tls")]
mod certificates;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::args::{KeysArgs, KeysCommand, SharedKeyArgs};
use crate::failure::Failure;

/// The permissions of a file with a secret, and of one without.
const SECRET: u32 = 0o400;
#[cfg(feature = "tls")]
const PUBLIC: u32 = 0o644;

pub(crate) fn keys(args: &KeysArgs) -> Result<u8, Failure> {
    match &args.command {
        KeysCommand::Shared(args) => shared(args),
        #[cfg(feature = "tls")]
        KeysCommand::Tls(args) => certificates::make(args),
    }
}

/// The key in a key file: all its bytes, but for one end of line, which editors and copies add.
pub(crate) fn trimmed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.ends_with(b"\n") {
        bytes.pop();
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
    }
    bytes
}

fn shared(args: &SharedKeyArgs) -> Result<u8, Failure> {
    let mut key = [0; 32];
    getrandom::fill(&mut key)
        .map_err(|error| Failure::system("no random numbers")(io::Error::other(error)))?;
    let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    create(&args.file, &format!("{text}\n"), SECRET)?;
    let file = args.file.display();
    eprintln!(
        "konklave: wrote a new key to {file}: copy it to every machine, readable by the agent alone, and start \
         each agent with --key-file {file}"
    );
    Ok(0)
}

/// Creates a file; never replaces one.
fn create(file: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(file);
    let mut opened = opened.map_err(|why| match why.kind() {
        io::ErrorKind::AlreadyExists => Failure::Unwritable(format!(
            "{} exists, and is not replaced: move it away, or choose another name",
            file.display()
        )),
        _ => Failure::unwritable(file)(why),
    })?;
    opened.write_all(text.as_bytes()).map_err(Failure::unwritable(file))
}

/// Replaces a file as a whole, or creates it.
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only certificates are renewed"))]
fn replace(file: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    let _ = fs::remove_file(new);
    create(new, text, mode)?;
    fs::rename(new, file).map_err(Failure::unwritable(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_end_of_line_is_no_part_of_key() {
        for (file, key) in
            [("k", "k"), ("k\n", "k"), ("k\r\n", "k"), ("k\n\n", "k\n"), ("k ", "k "), ("", "")]
        {
            assert_eq!(trimmed(file.into()), key.as_bytes(), "{file:?}");
        }
    }
}
