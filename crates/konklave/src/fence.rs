//! At the resource: no holder of the past gets through.
//!
//! A lock tells its holder that it may; only the resource can tell it that it may *not any more*.
//! Give the resource the [`Token`] with every write, and let it refuse what is lower than the highest
//! it has seen:
//!
//! ```
//! use konklave::{FenceGate, Token};
//!
//! let mut gate = FenceGate::default();
//! let (old, new) = (Token::from_u128(7), Token::from_u128(8));
//! assert!(gate.admit(old).is_ok());
//! assert!(gate.admit(new).is_ok());
//! assert!(gate.admit(new).is_ok(), "the same holder may come again");
//! assert!(gate.admit(old).is_err(), "a holder of the past may not");
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::token::Token;

/// The header that carries a token to a service over HTTP.
pub const HEADER: &str = "Konklave-Token";

/// One statement for a database: it takes effect only if no later holder was there before. The
/// table needs a column `fence TEXT NOT NULL DEFAULT ''`; the token is bound as
/// [`Token::to_hex`], which sorts like the token. No row changed: the lock is lost.
///
/// ```sql
/// UPDATE account SET balance = :balance, fence = :token WHERE id = :id AND fence <= :token
/// ```
pub const SQL: &str =
    "UPDATE account SET balance = :balance, fence = :token WHERE id = :id AND fence <= :token";

/// Someone came too late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("token {token} is of the past: {highest} was here")]
pub struct Stale {
    /// What it showed.
    pub token: Token,
    /// What has been seen.
    pub highest: Token,
}

/// Remembers the highest token, and lets nobody through who has a lower one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FenceGate {
    highest: Token,
}

impl FenceGate {
    /// One that has seen `highest`.
    pub fn new(highest: Token) -> Self {
        Self { highest }
    }

    /// The highest token so far.
    pub fn highest(&self) -> Token {
        self.highest
    }

    /// Lets in who has `token`; whoever has a lower one will not be let in from now on.
    pub fn admit(&mut self, token: Token) -> Result<(), Stale> {
        if token < self.highest {
            return Err(Stale { token, highest: self.highest });
        }
        self.highest = token;
        Ok(())
    }

    /// The same for the value of a [`HEADER`]: a service answers 409 to the first kind of error, and
    /// 400 to the second.
    pub fn admit_header(&mut self, value: Option<&str>) -> Result<Token, HeaderError> {
        let value = value.ok_or(HeaderError::Missing)?;
        let token: Token = value.trim().parse().map_err(|_| HeaderError::Malformed)?;
        self.admit(token)?;
        Ok(token)
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeaderError {
    /// Its sender held the lock in the past.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// It has no token.
    #[error("no {HEADER}")]
    Missing,
    /// What it has is no token.
    #[error("{HEADER} is no token")]
    Malformed,
}

impl HeaderError {
    /// The status a service answers with.
    pub fn status(&self) -> u16 {
        match self {
            Self::Stale(_) => 409,
            Self::Missing | Self::Malformed => 400,
        }
    }
}

/// A file that only the latest holder can replace. The highest token lies beside it, in
/// `NAME.fence`; every writer, on one machine or on a shared disk with working `flock`, must go
/// through here.
#[derive(Clone, Debug)]
pub struct FencedFile {
    path: PathBuf,
    fence: PathBuf,
}

impl FencedFile {
    /// The file at `path`, which need not exist.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        let mut fence = path.clone().into_os_string();
        fence.push(".fence");
        Self { path, fence: fence.into() }
    }

    /// Replaces the content, whole or not at all, unless a later holder was here.
    pub fn write(&self, token: Token, content: &[u8]) -> io::Result<Result<(), Stale>> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.fence)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let highest = match text.trim() {
            "" => Token::default(),
            text => text.parse().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?,
        };
        if let Err(stale) = FenceGate::new(highest).admit(token) {
            return Ok(Err(stale));
        }
        // The fence first: who is cut off between the two has kept others out, not let them in.
        file.seek(SeekFrom::Start(0))?;
        file.write_all(token.to_hex().as_bytes())?;
        file.sync_all()?;
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let mut whole = File::create(&new)?;
        whole.write_all(content)?;
        whole.sync_all()?;
        fs::rename(&new, &self.path)?;
        Ok(Ok(()))
    }
}
