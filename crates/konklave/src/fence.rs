//! Fencing: resources that refuse former holders.
//!
//! A lock service can tell a process that it holds a lock, but only the resource can stop a process that no
//! longer does. Pass the [`Token`] with every write; the resource refuses tokens lower than the highest it has seen:
//!
//! ```
//! use konklave::{FenceGate, Token};
//!
//! let mut gate = FenceGate::default();
//! let (old, new) = (Token::from_u128(7), Token::from_u128(8));
//! assert!(gate.admit(old).is_ok());
//! assert!(gate.admit(new).is_ok());
//! assert!(gate.admit(new).is_ok(), "the same holder may write again");
//! assert!(gate.admit(old).is_err(), "a former holder may not");
//! ```

#[cfg(feature = "tower")]
pub mod http;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::token::Token;

/// The HTTP header that carries a token.
pub const HEADER: &str = "Konklave-Token";

/// An SQL statement with a fence: it has no effect if a later holder has written before, even in a transaction
/// that was still open. The table needs a column: in SQLite `fence TEXT NOT NULL DEFAULT ''`, in PostgreSQL
/// [`COLUMN`]. Bind the token as [`Token::to_hex`], which sorts like the token. If no row changed, the lock is
/// lost. (In PostgreSQL with `REPEATABLE READ` or stricter, a statement that waited for a later holder fails
/// instead.)
///
/// ```sql
/// UPDATE account SET balance = :balance, fence = :token WHERE id = :id AND fence <= :token
/// ```
pub const SQL: &str =
    "UPDATE account SET balance = :balance, fence = :token WHERE id = :id AND fence <= :token";

/// The column of [`SQL`] in PostgreSQL. Its collation matters: a language's collation sorts differently (in
/// Danish, `aa` comes after `b`). SQLite compares bytes anyway.
pub const COLUMN: &str = "fence TEXT COLLATE \"C\" NOT NULL DEFAULT ''";

/// The token is older than one seen before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("token {token} is stale: {highest} has been seen")]
pub struct Stale {
    /// The token.
    pub token: Token,
    /// The highest token seen.
    pub highest: Token,
}

/// Remembers the highest token, and refuses lower ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FenceGate {
    highest: Token,
}

impl FenceGate {
    /// A gate that has seen `highest`.
    pub fn new(highest: Token) -> Self {
        Self { highest }
    }

    /// The highest token so far.
    pub fn highest(&self) -> Token {
        self.highest
    }

    /// Admits `token` unless it has seen a higher one; refuses lower ones from now on. Only for exclusive
    /// grants: of several shared holders, or holders of permits, it admits only the latest.
    pub fn admit(&mut self, token: Token) -> Result<(), Stale> {
        if token < self.highest {
            return Err(Stale { token, highest: self.highest });
        }
        self.highest = token;
        Ok(())
    }

    /// The same for the value of a [`HEADER`]: a service answers a stale token with 409, and a missing or
    /// malformed one with 400. (Feature `tower` has a layer that does it.)
    pub fn admit_header(&mut self, value: Option<&str>) -> Result<Token, HeaderError> {
        let value = value.ok_or(HeaderError::Missing)?;
        let token: Token = value.trim().parse().map_err(|_| HeaderError::Malformed)?;
        self.admit(token)?;
        Ok(token)
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The sender's lock has a newer holder.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The request has no token.
    #[error("the header {HEADER} is missing")]
    Missing,
    /// The header's value is not a token.
    #[error("{HEADER} is not a token")]
    Malformed,
}

impl HeaderError {
    /// The HTTP status to answer with.
    pub fn status(&self) -> u16 {
        match self {
            Self::Stale(_) => 409,
            Self::Missing | Self::Malformed => 400,
        }
    }
}

/// A file that only the latest holder can replace. The highest token lies beside it, in `NAME.fence`. All
/// writers must use this type, on one machine or on a shared disk with working `flock`.
#[derive(Clone, Debug)]
pub struct FencedFile {
    path: PathBuf,
}

impl FencedFile {
    /// The file at `path`, which need not exist. A symbolic link is followed: a file has one fence, by
    /// whatever name.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }

    /// Replaces the content atomically, unless a later holder has written before. Mode and owner stay as they
    /// are. Blocks for other writers and the disk: in async code, call it from `spawn_blocking`.
    pub fn write(&self, token: Token, content: &[u8]) -> io::Result<Result<(), Stale>> {
        let path = behind(&self.path);
        let fence = beside(&path, ".fence");
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&fence)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let highest = highest(&mut file)
            .map_err(|why| io::Error::new(why.kind(), format!("{}: {why}", fence.display())))?;
        if let Err(stale) = FenceGate::new(highest).admit(token) {
            return Ok(Err(stale));
        }
        // The fence first: a crash between the two writes then refuses older holders, and admits none.
        let text = token.to_hex();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())?;
        // The old text may have been longer.
        file.set_len(text.len() as u64)?;
        file.sync_all()?;
        let new = beside(&path, ".new");
        let mut whole = replacement(&path, &new)?;
        whole.write_all(content)?;
        whole.sync_all()?;
        fs::rename(&new, &path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(Ok(()))
    }
}

/// The token in a fence file. An unreadable fence refuses everyone, because the highest token is unknown.
fn highest(fence: &mut File) -> io::Result<Token> {
    let mut text = String::new();
    fence.read_to_string(&mut text)?;
    match text.trim() {
        "" => Ok(Token::default()),
        text => text.parse().map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why)),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(ending);
    name.into()
}

/// The most symbolic links to follow, as in the kernel.
const LINKS: usize = 40;

/// The target of the symbolic links at `path`, which need not exist.
fn behind(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target));
    }
    path
}

/// Creates a file at `new` with the mode of the file at `old` and, where permitted, its owner. Nobody else
/// can read it before.
fn replacement(old: &Path, new: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
    let before = match fs::metadata(old) {
        Ok(before) => before,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return File::create(new),
        Err(error) => return Err(error),
    };
    // A writer that was killed may have left one, with another mode.
    match fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
        // Only root may change the owner.
        let _ = fchown(&file, Some(before.uid()), Some(before.gid()));
    }
    file.set_permissions(before.permissions())?;
    Ok(file)
}
