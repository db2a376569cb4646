//! The data directory: the few facts about a node that must survive a restart.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::net::Secret;

const FILE: &str = "node.json";
const SCHEMA: &str = "konklave.node/1";

/// The record of a node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) schema: String,
    pub(crate) id: u32,
    pub(crate) key: u64,
    /// The number of its present incarnation.
    pub(crate) incarnation: u32,
    /// The highest generation it has seen.
    pub(crate) generation: u32,
    /// The members of the last view it was in: ids and names.
    pub(crate) members: Vec<(u32, String)>,
    /// The longest lease, in milliseconds, with which its clients may still hold locks; 0 if none is longer
    /// than the group's.
    #[serde(default)]
    pub(crate) longest_lease: u32,
    /// Its static key, if it ever shared a key with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Secret>,
}

/// The data directory of a node; locked against other processes.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    /// The file lock, held while the node lives.
    _lock: File,
}

impl Store {
    pub(crate) fn open(folder: &Path) -> Result<(Self, Option<Record>), Error> {
        let wrong = |path: PathBuf| move |error| Error::Store(path, error);
        fs::create_dir_all(folder).map_err(wrong(folder.to_owned()))?;
        let path = folder.join("lock");
        let lock = File::create(&path).map_err(wrong(path.clone()))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            let used = io::Error::new(io::ErrorKind::AddrInUse, "another node uses this directory");
            let taken = error == rustix::io::Errno::WOULDBLOCK;
            Error::Store(path, if taken { used } else { error.into() })
        })?;
        let path = folder.join(FILE);
        let record = match fs::read(&path) {
            Ok(bytes) => Some(Self::read(&bytes).map_err(wrong(path))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::Store(path, error)),
        };
        Ok((Self { folder: folder.to_owned(), _lock: lock }, record))
    }

    fn read(bytes: &[u8]) -> io::Result<Record> {
        let record: Record = serde_json::from_slice(bytes)?;
        if record.schema != SCHEMA {
            let what =
                format!("written by another version ({}); this one reads {SCHEMA}", record.schema);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(record)
    }

    /// Writes the record atomically, and syncs it to disk.
    pub(crate) fn save(&self, record: &Record) -> Result<(), Error> {
        let path = self.folder.join(FILE);
        let written = || -> io::Result<()> {
            let new = self.folder.join("node.json.new");
            let record = Record { schema: SCHEMA.into(), ..record.clone() };
            // For its owner alone: it may have the node's static key.
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(&serde_json::to_vec_pretty(&record)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        written().map_err(|error| Error::Store(path.clone(), error))
    }
}

#[cfg(test)]
mod tests;
