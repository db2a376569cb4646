//! Records of what happens: levels, lines, console and file.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::Sender;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use konklave_process::ProcessId;

use crate::RingError;
use crate::ledger::Event;

/// The level of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Every operation on a buffer.
    Trace,
    /// The configuration; every message sent and received.
    Debug,
    /// The course of an election.
    Info,
    /// A neighbour is skipped, a stale message dropped.
    Warn,
    /// A worker is alone in the ring, or an election does not end.
    Error,
    /// A violation: two leaders at once.
    Critical,
}

impl Level {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Trace, "TRACE"),
        (Self::Debug, "DEBUG"),
        (Self::Info, "INFO"),
        (Self::Warn, "WARN"),
        (Self::Error, "ERROR"),
        (Self::Critical, "CRITICAL"),
    ];

    /// The level of this number or name.
    pub fn parse(text: &str) -> Option<Self> {
        let by_number = || Self::ALL.get(text.parse::<usize>().ok()?).map(|(level, _)| *level);
        let by_name = |(_, name): &&(Self, &str)| name.eq_ignore_ascii_case(text);
        Self::ALL.iter().find(by_name).map(|(level, _)| *level).or_else(by_number)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = Self::ALL[*self as usize];
        f.pad(name)
    }
}

/// One line of the log.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Record {
    pub(crate) at: Timestamp,
    pub(crate) level: Level,
    /// The worker; none for the ring itself.
    pub(crate) who: Option<ProcessId>,
    pub(crate) text: String,
}

/// The log of a worker. Its records reach the journal in causal order.
#[derive(Clone)]
pub(crate) struct WorkerLog {
    pub(crate) who: ProcessId,
    /// From which level on; none without a log.
    pub(crate) level: Option<Level>,
    pub(crate) events: Sender<Event>,
}

impl WorkerLog {
    pub(crate) fn write(&self, level: Level, text: impl FnOnce() -> String) {
        if self.level.is_some_and(|least| level >= least) {
            let record = Record { at: Timestamp::now(), level, who: Some(self.who), text: text() };
            self.tell(Event::Log(record));
        }
    }

    /// Sends an event to the ring. A closed channel means that the program is about to end.
    pub(crate) fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// The targets of records: console and file.
pub(crate) struct Journal<'a> {
    /// From which level on; none without a log.
    pub(crate) level: Option<Level>,
    err: &'a mut dyn Write,
    console: bool,
    file: Option<File>,
    /// Whether writing to the file failed.
    pub(crate) is_cut_short: bool,
    date: bool,
    zone: TimeZone,
}

impl<'a> Journal<'a> {
    /// A journal without a log: it only warns.
    pub(crate) fn new(err: &'a mut dyn Write) -> Self {
        Self {
            level: None,
            err,
            console: false,
            file: None,
            is_cut_short: false,
            date: false,
            zone: TimeZone::UTC,
        }
    }

    /// Starts to log to `target`.
    pub(crate) fn open(&mut self, target: &Target) -> Result<(), RingError> {
        if let Some(path) = &target.file {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let refused = |reason| RingError::LogFile { path: path.clone(), reason };
            self.file = Some(file.map_err(refused)?);
        }
        self.level = Some(target.level);
        self.console = target.console;
        self.date = target.date;
        self.zone = TimeZone::system();
        Ok(())
    }

    /// Whether records go to the console.
    pub(crate) fn on_console(&self) -> bool {
        self.console
    }

    /// A record of the ring itself.
    pub(crate) fn write(&mut self, level: Level, text: impl FnOnce() -> String) {
        if self.level.is_some_and(|least| level >= least) {
            self.record(&Record { at: Timestamp::now(), level, who: None, text: text() });
        }
    }

    /// A record of a worker or of the ring.
    pub(crate) fn record(&mut self, record: &Record) {
        if self.console {
            // Where the console is gone, there is nobody to tell.
            let _ = writeln!(self.err, "{}", line(record, &self.zone, false));
            let _ = self.err.flush();
        }
        let Some(file) = &mut self.file else { return };
        let line = line(record, &self.zone, self.date) + "\n";
        if let Err(reason) = file.write_all(line.as_bytes()) {
            self.file = None;
            self.is_cut_short = true;
            self.talk(&format!("warning: cannot write to the log file any more ({reason})"));
        }
    }

    /// A line for people on stderr, which is no record.
    pub(crate) fn talk(&mut self, text: &str) {
        let _ = writeln!(self.err, "{text}");
    }
}

/// Level and targets of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// From which level on.
    pub level: Level,
    /// Whether to the console.
    pub console: bool,
    /// To which file.
    pub file: Option<Box<Path>>,
    /// Whether lines in the file carry the date.
    pub date: bool,
}

fn line(record: &Record, zone: &TimeZone, date: bool) -> String {
    let at = record.at.to_zoned(zone.clone());
    let at = at.strftime(if date { "%Y-%m-%d %H:%M:%S%.3f" } else { "%H:%M:%S%.3f" });
    match record.who {
        Some(ProcessId(id)) => {
            format!("{at} {:<5} [worker {id}] {}", record.level, record.text)
        }
        None => format!("{at} {:<5} [ring] {}", record.level, record.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(who: Option<u32>) -> Record {
        Record {
            at: "2026-03-01T09:05:07.042Z".parse().unwrap(),
            level: Level::Info,
            who: who.map(ProcessId),
            text: "leads".into(),
        }
    }

    #[test]
    fn a_line_has_time_level_worker_and_text() {
        let zone = TimeZone::UTC;
        assert_eq!(line(&record(Some(9)), &zone, false), "09:05:07.042 INFO  [worker 9] leads");
        assert_eq!(line(&record(None), &zone, true), "2026-03-01 09:05:07.042 INFO  [ring] leads");
    }

    #[test]
    fn times_are_local() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert!(line(&record(None), &zone, false).starts_with("11:05:07.042 "));
    }

    #[test]
    fn levels_have_numbers_and_names() {
        assert_eq!(Level::parse("0"), Some(Level::Trace));
        assert_eq!(Level::parse("5"), Some(Level::Critical));
        assert_eq!(Level::parse("Warn"), Some(Level::Warn));
        assert_eq!(["6", "-1", "", "loud"].map(Level::parse), [None; 4]);
    }

    #[test]
    fn message_below_the_level_is_not_formatted() {
        let mut err = Vec::new();
        let mut journal = Journal::new(&mut err);
        let target = Target { level: Level::Warn, console: true, file: None, date: false };
        journal.open(&target).unwrap();
        journal.write(Level::Info, || unreachable!("nobody reads this"));
        journal.write(Level::Error, || "alone".into());
        assert!(String::from_utf8(err).unwrap().ends_with(" ERROR [ring] alone\n"));
    }
}
