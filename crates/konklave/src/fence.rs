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

#[cfg(feature = "tower")]
pub mod http;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::token::Token;

/// The header that carries a token to a service over HTTP.
pub const HEADER: &str = "Konklave-Token";

/// One statement for a database: it takes effect only if no later holder was there before, also if that
/// one's transaction was not yet over. The table needs a column for it: in SQLite
/// `fence TEXT NOT NULL DEFAULT ''`, in PostgreSQL [`COLUMN`]. The token is bound as
/// [`Token::to_hex`], which sorts like the token. No row changed: the lock is lost. (In a PostgreSQL
/// transaction that is `REPEATABLE READ` or stricter, who waited for a later holder gets an error instead.)
///
/// ```sql
/// UPDATE account SET balance = :balance, fence = :token WHERE id = :id AND fence <= :token
/// ```
pub const SQL: &str =
    "UPDATE account SET balance = :balance, fence = :token WHERE id = :id AND fence <= :token";

/// The column of [`SQL`] in PostgreSQL. Its collation matters: text in a database of people's language is
/// sorted as they do, and Danish has `aa` after `b`. SQLite compares bytes as it is.
pub const COLUMN: &str = "fence TEXT COLLATE \"C\" NOT NULL DEFAULT ''";

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

    /// Lets in who has `token`; whoever has a lower one will not be let in from now on. For what one may hold at
    /// a time: of those who share a lock, or have permits of one semaphore, only the latest would be let in.
    pub fn admit(&mut self, token: Token) -> Result<(), Stale> {
        if token < self.highest {
            return Err(Stale { token, highest: self.highest });
        }
        self.highest = token;
        Ok(())
    }

    /// The same for the value of a [`HEADER`] (a `tower` layer does it with the feature `tower`): a service answers 409 to the first kind of error, and
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
#[non_exhaustive]
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
}

impl FencedFile {
    /// The file at `path`, which need not exist. Of a symbolic link, the file that it leads to: it is
    /// one file with one fence, by whatever name.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }

    /// Replaces the content, whole or not at all, unless a later holder was here. Who may read and
    /// write it stays as it is. It waits for other writers and for the disk: in async code, call it where
    /// that is allowed (`spawn_blocking`).
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
        // The fence first: who is cut off between the two has kept others out, not let them in.
        let text = token.to_hex();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())?;
        // What stood there may have been longer.
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

/// The token that lies in a fence. One that cannot be read keeps everyone out: nobody knows who was here.
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

/// The longest way of symbolic links, as the kernel has it.
const LINKS: usize = 40;

/// Where the links at `path` lead to, be there a file or not.
fn behind(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target));
    }
    path
}

/// A new file at `new` with the mode and, where that is permitted, the owner of the one at `old`. Nobody
/// else can read it before it is so.
fn replacement(old: &Path, new: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
    let before = match fs::metadata(old) {
        Ok(before) => before,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return File::create(new),
        Err(error) => return Err(error),
    };
    // What a writer that was killed left behind, with a mode of its own.
    match fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
        // Only root may give a file away.
        let _ = fchown(&file, Some(before.uid()), Some(before.gid()));
    }
    file.set_permissions(before.permissions())?;
    Ok(file)
}
