//! Checkpoints: a search on disk, so that it can be resumed. A file is written whole or not at all.
//!
//! A state is a row of numbers. The values behind the numbers cannot be written, since a process need not
//! be `Deserialize`. But values are numbered in the order of the search's queries. So the file contains the
//! queries, and a resumed search repeats them: every handler runs once more. The values must have the hash
//! that the file states. So a changed algorithm is noticed, not only a changed command line.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::options::Options;
use crate::search::Counters;
use crate::shared::{Level, Shared, read, write};
use crate::stopwatch::Stopwatch;
use crate::store::{SHARDS, fingerprint};
use crate::symmetry::{REASONS, Refuted};
use crate::tables::Query;

/// Which checkpoints a search writes, and which one it resumes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoints {
    /// The model in words; a checkpoint of another model is refused.
    pub identity: String,
    /// The file to write: when the search gives up, and now and then before that.
    pub write: Option<PathBuf>,
    /// The file to resume from.
    pub resume: Option<PathBuf>,
    /// The minimum time between two checkpoints written.
    pub every: Duration,
}

impl Default for Checkpoints {
    fn default() -> Self {
        let every = Duration::from_secs(60);
        Self { identity: String::new(), write: None, resume: None, every }
    }
}

impl Checkpoints {
    pub(crate) fn are_none(&self) -> bool {
        self.write.is_none() && self.resume.is_none()
    }
}

/// Why a checkpoint cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file cannot be read.
    #[error("cannot read {0}")]
    Unreadable(PathBuf, #[source] io::Error),
    /// The file cannot be written; an earlier file of that name is unchanged.
    #[error("cannot write {0}")]
    Unwritable(PathBuf, #[source] io::Error),
    /// The file is not a checkpoint, or it is damaged.
    #[error("{0}: {1}")]
    Damaged(PathBuf, &'static str),
    /// The file is a checkpoint of another search.
    #[error("{file}: checkpoint of another {what} (in the file: {there}; this search: {here})")]
    Differs {
        /// The file.
        file: PathBuf,
        /// The part of the configuration that differs.
        what: &'static str,
        /// The value in the file.
        there: String,
        /// The value of this search.
        here: String,
    },
    /// The recorded queries have other answers now: the algorithm has changed.
    #[error(
        "{0}: the algorithm or its judges have changed since this checkpoint was written; start the \
         search anew"
    )]
    Changed(PathBuf),
    /// Only an exact search of all states supports checkpoints.
    #[error("checkpoints need an exact search of all states; they do not work with {0}")]
    Unfit(&'static str),
}

const MAGIC: &[u8; 20] = b"konklave checkpoint\n";
const FORMAT: u64 = 2;

/// The options that determine which states there are, as text. Limits and the number of threads may differ
/// when a search is resumed.
pub(crate) fn identifying_options(options: &Options) -> String {
    let (threads, max_states, max_depth, max_bytes) = (0, 0, 0, 0);
    format!("{:?}", Options { threads, max_states, max_depth, max_bytes, ..options.clone() })
}

/// The reason why a search with these options does not support checkpoints, if there is one.
pub(crate) fn unfit(options: &Options) -> Option<&'static str> {
    let reasons = [
        (options.compact, "hashes alone (compact)"),
        (options.reduce, "reduction"),
        (options.swarm.is_some(), "random runs (shard)"),
    ];
    reasons.into_iter().find_map(|(unfit, why)| unfit.then_some(why))
}

/// The queries in a checkpoint, and the hash of all numbered values.
#[derive(Clone, Default, Debug)]
pub(crate) struct RecordedQueries {
    pub(crate) queries: Vec<Query>,
    pub(crate) digest: u64,
}

/// Writes checkpoints, and knows when the next one is due.
#[derive(Debug)]
pub(crate) struct CheckpointWriter {
    pub(crate) file: Option<PathBuf>,
    head: [String; 3],
    /// The permutations refuted before this search started.
    refuted: Vec<Refuted>,
    every: Duration,
    last: Stopwatch,
    pub(crate) queries: Vec<Query>,
    pub(crate) failed: Option<CheckpointError>,
}

impl CheckpointWriter {
    pub(crate) fn new(checkpoints: &Checkpoints, options: &Options, refuted: &[Refuted]) -> Self {
        let refuted = refuted.to_vec();
        let head = [
            env!("CARGO_PKG_VERSION").to_owned(),
            checkpoints.identity.clone(),
            identifying_options(options),
        ];
        let file = checkpoints.write.clone();
        let (every, last) = (checkpoints.every, Stopwatch::start());
        Self { file, head, refuted, every, last, queries: Vec::new(), failed: None }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.file.is_some() && self.last.elapsed() >= self.every
    }

    /// Writes these levels to the file; `digest` is the hash of all numbered values.
    pub(crate) fn write_checkpoint(
        &mut self,
        shared: &Shared,
        levels: &[Level],
        tally: Counters,
        digest: u64,
    ) {
        let Some(file) = self.file.clone() else { return };
        let begun = Stopwatch::start();
        let part = part_file(&file);
        let written = self.write(&part, shared, levels, tally, digest);
        if let Err(why) = written.and_then(|()| std::fs::rename(&part, &file)) {
            // The partial file is useless; the write error matters more than a failed removal.
            let _ = std::fs::remove_file(&part);
            self.failed = Some(CheckpointError::Unwritable(file, why));
        }
        self.last = Stopwatch::start();
        // So that writing takes at most a twentieth of the time.
        self.every = self.every.max(20 * begun.elapsed());
    }

    fn write(
        &self,
        part: &Path,
        shared: &Shared,
        levels: &[Level],
        tally: Counters,
        digest: u64,
    ) -> io::Result<()> {
        let mut out =
            SummedWriter { to: BufWriter::new(File::create(part)?), sum: Checksum::default() };
        out.bytes(MAGIC)?;
        out.number(FORMAT)?;
        for text in &self.head {
            out.number(text.len() as u64)?;
            out.bytes(text.as_bytes())?;
        }
        out.number(self.refuted.len() as u64)?;
        for (permutation, why) in &self.refuted {
            let why = REASONS.iter().position(|known| known == why);
            out.number(why.unwrap_or(REASONS.len()) as u64)?;
            for place in permutation {
                out.number(u64::from(*place))?;
            }
        }
        out.number(self.queries.len() as u64)?;
        for query in &self.queries {
            let (kind, a, b) = match *query {
                Query::Act(a, b) => (0, a, b),
                Query::React(a, b) => (1, a, b),
            };
            out.number(u64::from(a) << 1 | kind)?;
            out.number(u64::from(b))?;
        }
        out.bytes(&digest.to_le_bytes())?;
        let (least, most) = tally.messages.map_or((0, 0), |(l, m)| (u64::from(l), u64::from(m)));
        let (costliest, cheapest) = (tally.costliest.unwrap_or(0), tally.cheapest.unwrap_or(0));
        let ended = u64::from(tally.messages.is_some());
        for number in [tally.transitions, tally.ends, ended, least, most, costliest, cheapest] {
            out.number(number)?;
        }
        let shards: Vec<_> = shared.shards.iter().map(read).collect();
        out.number(shards.iter().any(|shard| shard.cycles).into())?;
        out.number(levels.len() as u64)?;
        let mut cursors: Vec<_> = shards.iter().map(|shard| shard.cursor()).collect();
        for level in levels {
            for (cursor, (_, size)) in cursors.iter_mut().zip(level.ranges()) {
                out.number(*size)?;
                for _ in 0..*size {
                    let (parent, step, packed) = cursor.next();
                    out.number(parent)?;
                    out.number(u64::from(step))?;
                    out.number(packed.len() as u64)?;
                    out.bytes(packed)?;
                }
            }
        }
        let sum = out.sum.finish();
        out.to.write_all(&sum.to_le_bytes())?;
        out.to.flush()?;
        out.to.get_ref().sync_all()
    }
}

/// The partial file: in the same folder, so that a rename replaces the checkpoint at once.
fn part_file(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    file.with_file_name(name)
}

/// Reads a checkpoint: first the refuted permutations, then the queries, the counters and the levels.
pub(crate) struct CheckpointReader {
    file: PathBuf,
    from: VarintReader<BufReader<File>>,
}

impl CheckpointReader {
    /// Opens a checkpoint. It must be undamaged and of the same version, model and options.
    pub(crate) fn open(
        file: &Path,
        checkpoints: &Checkpoints,
        options: &Options,
    ) -> Result<Self, CheckpointError> {
        let unreadable = |why| CheckpointError::Unreadable(file.to_owned(), why);
        let damaged = |why| CheckpointError::Damaged(file.to_owned(), why);
        let is_whole = checksum_matches(file).map_err(unreadable)?;
        let from = VarintReader { from: BufReader::new(File::open(file).map_err(unreadable)?) };
        let mut reader = Self { file: file.to_owned(), from };
        let mut magic = [0; MAGIC.len()];
        if reader.from.from.read_exact(&mut magic).is_err() || magic != *MAGIC {
            return Err(damaged("not a checkpoint"));
        }
        if !is_whole {
            return Err(damaged("the checkpoint is damaged: its checksum is wrong"));
        }
        let format = reader.number()?;
        reader.same("format", &format.to_string(), &FORMAT.to_string())?;
        let writer = CheckpointWriter::new(checkpoints, options, &[]);
        for (what, here) in ["version", "model", "choice of options"].iter().zip(&writer.head) {
            let there = reader.text()?;
            reader.same(what, &there, here)?;
        }
        Ok(reader)
    }

    fn same(&self, what: &'static str, there: &str, here: &str) -> Result<(), CheckpointError> {
        if there == here {
            return Ok(());
        }
        let (file, there, here) = (self.file.clone(), there.to_owned(), here.to_owned());
        Err(CheckpointError::Differs { file, what, there, here })
    }

    /// Reads the refuted permutations of `n` places.
    pub(crate) fn refuted(&mut self, n: u32) -> Result<Vec<Refuted>, CheckpointError> {
        let mut refuted = Vec::new();
        for _ in 0..self.number()? {
            let why = self.number()? as usize;
            let why = *REASONS.get(why).ok_or_else(|| self.changed())?;
            let mut permutation = Vec::new();
            for _ in 0..n {
                permutation.push(self.number()? as u32);
            }
            refuted.push((permutation.into_boxed_slice(), why));
        }
        Ok(refuted)
    }

    pub(crate) fn queries(&mut self) -> Result<RecordedQueries, CheckpointError> {
        let mut recorded = RecordedQueries::default();
        for _ in 0..self.number()? {
            let (a, b) = (self.number()?, self.number()? as u32);
            let actor = (a >> 1) as u32;
            recorded.queries.push(if a & 1 == 0 {
                Query::Act(actor, b)
            } else {
                Query::React(actor, b)
            });
        }
        let mut digest = [0; 8];
        self.from.bytes(&mut digest).map_err(|why| self.unreadable(why))?;
        recorded.digest = u64::from_le_bytes(digest);
        Ok(recorded)
    }

    pub(crate) fn tally(&mut self) -> Result<Counters, CheckpointError> {
        let mut numbers = [0; 7];
        for number in &mut numbers {
            *number = self.number()?;
        }
        let [transitions, ends, ended, least, most, costliest, cheapest] = numbers;
        let some = ended == 1;
        Ok(Counters {
            transitions,
            ends,
            messages: some.then_some((least as u32, most as u32)),
            costliest: some.then_some(costliest),
            cheapest: some.then_some(cheapest),
        })
    }

    /// Inserts all levels and calls `start_level` after each. The first level is in the store already and
    /// must be the same.
    pub(crate) fn levels(
        &mut self,
        shared: &Shared,
        mut start_level: impl FnMut(),
    ) -> Result<(), CheckpointError> {
        let cycles = self.number()? == 1;
        let mut packed = Vec::new();
        for level in 0..self.number()? {
            for number in 0..SHARDS {
                let mut shard = write(&shared.shards[number]);
                let size = self.number()?;
                if level == 0 && size != shard.len {
                    return Err(CheckpointError::Changed(self.file.clone()));
                }
                for _ in 0..size {
                    let (parent, step) = (self.number()?, self.number()? as u32);
                    packed.resize(self.number()? as usize, 0);
                    self.from.bytes(&mut packed).map_err(|why| self.unreadable(why))?;
                    let new = shard.insert(fingerprint(&packed), parent, step << 1, &packed);
                    if new != (level > 0) {
                        return Err(CheckpointError::Changed(self.file.clone()));
                    }
                }
            }
            if level > 0 {
                start_level();
            }
        }
        write(&shared.shards[0]).cycles |= cycles;
        Ok(())
    }

    pub(crate) fn changed(&self) -> CheckpointError {
        CheckpointError::Changed(self.file.clone())
    }

    fn number(&mut self) -> Result<u64, CheckpointError> {
        self.from.number().map_err(|why| self.unreadable(why))
    }

    fn text(&mut self) -> Result<String, CheckpointError> {
        let mut bytes = vec![0; self.number()? as usize];
        self.from.bytes(&mut bytes).map_err(|why| self.unreadable(why))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn unreadable(&self, why: io::Error) -> CheckpointError {
        CheckpointError::Unreadable(self.file.clone(), why)
    }
}

/// Whether a file ends in the checksum of all bytes before.
fn checksum_matches(file: &Path) -> io::Result<bool> {
    let mut from = BufReader::new(File::open(file)?);
    let Some(length) = from.get_ref().metadata()?.len().checked_sub(8) else { return Ok(false) };
    let mut sum = Checksum::default();
    let mut rest = (&mut from).take(length);
    let mut chunk = vec![0; 1 << 16];
    loop {
        let read = rest.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        sum.add(&chunk[..read]);
    }
    let mut last = [0; 8];
    from.read_exact(&mut last)?;
    Ok(sum.finish() == u64::from_le_bytes(last))
}

/// A checksum of bytes, independent of how they are split into calls.
#[derive(Default)]
struct Checksum {
    sum: u64,
    rest: Vec<u8>,
}

/// How many bytes are hashed at once.
const CHECKSUM_BLOCK: usize = 4096;

impl Checksum {
    fn add(&mut self, mut bytes: &[u8]) {
        while self.rest.len() + bytes.len() >= CHECKSUM_BLOCK {
            let (now, later) = bytes.split_at(CHECKSUM_BLOCK - self.rest.len());
            self.rest.extend_from_slice(now);
            self.fold();
            bytes = later;
        }
        self.rest.extend_from_slice(bytes);
    }

    fn fold(&mut self) {
        self.sum =
            self.sum.rotate_left(23).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ fingerprint(&self.rest);
        self.rest.clear();
    }

    fn finish(mut self) -> u64 {
        self.fold();
        self.sum
    }
}

struct SummedWriter<W> {
    to: W,
    sum: Checksum,
}

impl<W: Write> SummedWriter<W> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.add(bytes);
        self.to.write_all(bytes)
    }

    fn number(&mut self, mut x: u64) -> io::Result<()> {
        let (mut bytes, mut len) = ([0; 10], 0);
        while x >= 0x80 {
            bytes[len] = x as u8 | 0x80;
            len += 1;
            x >>= 7;
        }
        bytes[len] = x as u8;
        self.bytes(&bytes[..=len])
    }
}

struct VarintReader<R> {
    from: R,
}

impl<R: Read> VarintReader<R> {
    fn bytes(&mut self, into: &mut [u8]) -> io::Result<()> {
        self.from.read_exact(into)
    }

    fn number(&mut self) -> io::Result<u64> {
        let (mut x, mut byte) = (0, [0]);
        for shift in (0..64).step_by(7) {
            self.from.read_exact(&mut byte)?;
            x |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(x);
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "a number is too long"))
    }
}
