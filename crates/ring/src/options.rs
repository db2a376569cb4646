//! Checked options: from the command line, then the config file, then the defaults.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;

use konklave_process::{Group, ProcessId, Rng};

use crate::config::Config;
use crate::log::{Level, Target};
use crate::{Flags, RingError};

/// More workers than any system has threads for.
const MAX_SIZE: u64 = 10_000;
/// The least ratio of the send timeout to the workers' pause.
const SLACK_MS: u64 = 10;

/// Checked options.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The workers in ring order.
    pub group: Group,
    /// The number of elections; 0: without end.
    pub number_of_elections: u64,
    /// The pause between elections.
    pub sleep: Duration,
    /// The pause of a worker after each task.
    pub worker_sleep: Duration,
    /// The time after which a neighbour that does not take a message is regarded as failed.
    pub send_timeout: Duration,
    /// The seed of ids and initiators.
    pub seed: u64,
    /// The initiator of every election; none: a random worker each time.
    pub initiator: Option<ProcessId>,
    /// The workers that fail, each with the event.
    pub failures: BTreeMap<ProcessId, FailAt>,
    /// Whether no results are printed.
    pub quiet: bool,
    /// Whether results are printed as JSON.
    pub json: bool,
    /// Level and targets of the log.
    pub log: Option<Target>,
    /// Whether the configuration is logged.
    pub config_log: bool,
    /// Warnings about the options, for stderr.
    pub warnings: Vec<String>,
    /// Algorithm and world of the elections, if the workers of the ring do not run them.
    pub external: Option<External>,
}

/// Algorithm and world of elections that the workers of the ring do not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct External {
    /// The algorithm.
    pub algorithm: String,
    /// The world.
    pub world: World,
}

/// The world of external elections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum World {
    /// In the simulator.
    Simulated,
    /// Tasks with channels.
    Tasks,
    /// Tasks with TCP sockets.
    Tcp,
}

/// The event upon which a worker fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailAt {
    /// At once.
    Start,
    /// After it handled this many messages.
    Message(u64),
    /// After it has won and announced itself.
    Elected,
}

impl FailAt {
    fn parse(text: &str) -> Option<(ProcessId, Self)> {
        let (id, event) = text.split_once('@')?;
        let event = match event.split_once(':') {
            None if event == "start" => Self::Start,
            None if event == "elected" => Self::Elected,
            Some(("message", count)) => {
                Self::Message(count.parse().ok().filter(|count| *count > 0)?)
            }
            _ => return None,
        };
        Some((ProcessId(id.parse().ok()?), event))
    }
}

impl Options {
    /// The options from `flags` and the config file that they name.
    pub fn resolve(flags: &Flags) -> Result<Self, RingError> {
        let given = Given::new(flags)?;
        let wanted = &given.flags;
        let seed = wanted.seed.unwrap_or_else(any_seed);
        let group = given.group(seed)?;
        let worker_sleep = wanted.worker_sleep.unwrap_or(500);
        let mut warnings = Vec::new();
        Ok(Self {
            number_of_elections: wanted.number_of_elections.unwrap_or(0),
            sleep: Duration::from_millis(wanted.sleep.unwrap_or(5000)),
            worker_sleep: Duration::from_millis(worker_sleep),
            send_timeout: given.send_timeout(worker_sleep)?,
            seed,
            initiator: given.initiator(&group)?,
            failures: given.failures(&group)?,
            quiet: wanted.quiet,
            json: wanted.json,
            log: given.log(&mut warnings)?,
            config_log: !wanted.no_config_log,
            warnings,
            external: given.external()?,
            group,
        })
    }

    /// The ids in ring order.
    pub fn ids(&self) -> Vec<u32> {
        self.group.members().iter().map(|p| p.0).collect()
    }

    /// All options in one line.
    pub(crate) fn describe(&self) -> String {
        let millis = |d: Duration| d.as_millis();
        let mut text = format!(
            "configuration: size = {}, ids = {:?}, number-of-elections = {}, sleep = {}, \
             worker-sleep = {}, send-timeout = {}, seed = {}",
            self.group.len(),
            self.ids(),
            self.number_of_elections,
            millis(self.sleep),
            millis(self.worker_sleep),
            millis(self.send_timeout),
            self.seed,
        );
        if let Some(ProcessId(initiator)) = self.initiator {
            text += &format!(", initiator = {initiator}");
        }
        for (ProcessId(id), event) in &self.failures {
            text += &match event {
                FailAt::Start => format!(", fail = {id}@start"),
                FailAt::Message(count) => format!(", fail = {id}@message:{count}"),
                FailAt::Elected => format!(", fail = {id}@elected"),
            };
        }
        if let Some(log) = &self.log {
            let file = log.file.as_ref().map(|f| f.display().to_string());
            text += &format!(
                ", log-level = {}, log-console = {}, log-file = {}, log-date = {}",
                log.level,
                log.console,
                file.as_deref().unwrap_or("none"),
                log.date,
            );
        }
        if let Some(External { algorithm, world }) = &self.external {
            let world = match world {
                World::Simulated => "simulator",
                World::Tasks => "tasks",
                World::Tcp => "tcp",
            };
            text += &format!(", algorithm = {algorithm}, world = {world}");
        }
        text + &format!(", quiet = {}, json = {}", self.quiet, self.json)
    }
}

/// The given options and their origin.
struct Given {
    flags: Flags,
    /// The config file, and the lines of its keys.
    file: Option<(Box<Path>, BTreeMap<&'static str, usize>)>,
}

impl Given {
    fn new(flags: &Flags) -> Result<Self, RingError> {
        let Some(path) = &flags.config else {
            return Ok(Self { flags: flags.clone(), file: None });
        };
        let Config { flags: mut merged, mut lines } = Config::read(path)?;
        let Flags {
            size,
            config: _,
            number_of_elections,
            sleep,
            worker_sleep,
            send_timeout,
            seed,
            ids,
            initiator,
            fail,
            quiet,
            json,
            log,
            log_file,
            log_console,
            log_date,
            log_level,
            no_config_log,
            algorithm,
            simulate,
            tcp,
        } = flags;
        let lines_ref = &mut lines;
        over(size, &mut merged.size, "size", lines_ref);
        over(
            number_of_elections,
            &mut merged.number_of_elections,
            "number-of-elections",
            lines_ref,
        );
        over(sleep, &mut merged.sleep, "sleep", lines_ref);
        over(worker_sleep, &mut merged.worker_sleep, "worker-sleep", lines_ref);
        over(send_timeout, &mut merged.send_timeout, "send-timeout", lines_ref);
        over(seed, &mut merged.seed, "seed", lines_ref);
        over(ids, &mut merged.ids, "ids", lines_ref);
        over(initiator, &mut merged.initiator, "initiator", lines_ref);
        over(log_file, &mut merged.log_file, "log-file", lines_ref);
        over(log_level, &mut merged.log_level, "log-level", lines_ref);
        over(algorithm, &mut merged.algorithm, "algorithm", lines_ref);
        if !fail.is_empty() {
            merged.fail.clone_from(fail);
            lines.remove("fail");
        }
        merged.quiet |= quiet;
        merged.json |= json;
        merged.log |= log;
        merged.log_console |= log_console;
        merged.log_date |= log_date;
        merged.no_config_log |= no_config_log;
        merged.simulate |= simulate;
        merged.tcp |= tcp;
        Ok(Self { flags: merged, file: Some((path.as_path().into(), lines)) })
    }

    /// An error that names the option and its value where they were given.
    fn refuse(&self, key: &'static str, value: impl ToString, why: &str) -> RingError {
        let value = value.to_string();
        let in_file = self.file.as_ref().and_then(|(f, lines)| Some((f, *lines.get(key)?)));
        match in_file {
            Some((file, line)) => {
                let what = format!("{key} = {value}: {why}");
                RingError::Config { file: file.clone(), line, what }
            }
            None if key == "size" => RingError::Usage(format!("SIZE {value}: {why}")),
            None => RingError::Usage(format!("--{key} {value}: {why}")),
        }
    }

    fn group(&self, seed: u64) -> Result<Group, RingError> {
        let size = match (self.flags.size, &self.flags.ids) {
            (Some(size), _) => size,
            (None, Some(ids)) => ids.len() as u64,
            (None, None) => {
                return Err(RingError::Usage(
                    "SIZE is missing: give the number of workers, or size = N in the config file"
                        .into(),
                ));
            }
        };
        if size == 0 {
            return Err(self.refuse("size", size, "a ring needs at least 1 worker"));
        }
        if size > MAX_SIZE {
            let why = format!("each worker has threads of its own, {MAX_SIZE} is the limit");
            return Err(self.refuse("size", size, &why));
        }
        let ids = match &self.flags.ids {
            None => random_ids(size as u32, seed),
            Some(ids) if ids.len() as u64 == size => ids.clone(),
            Some(ids) => {
                let why = format!("these are {} ids for a ring of {size} workers", ids.len());
                return Err(self.refuse("ids", listed(ids), &why));
            }
        };
        Group::new(ids.iter().copied().map(ProcessId).collect())
            .map_err(|why| self.refuse("ids", listed(&ids), &why.to_string()))
    }

    fn send_timeout(&self, worker_sleep: u64) -> Result<Duration, RingError> {
        let Some(timeout) = self.flags.send_timeout else {
            return Ok(Duration::from_millis(worker_sleep.saturating_mul(4).max(2000)));
        };
        let least = worker_sleep.saturating_add(SLACK_MS);
        if timeout < least {
            let why = format!(
                "with --worker-sleep {worker_sleep} it must be at least {least}, \
                 or healthy neighbours would be taken for failed"
            );
            return Err(self.refuse("send-timeout", timeout, &why));
        }
        Ok(Duration::from_millis(timeout))
    }

    fn initiator(&self, group: &Group) -> Result<Option<ProcessId>, RingError> {
        match self.flags.initiator.map(ProcessId) {
            Some(p) if !group.contains(p) => Err(self.refuse("initiator", p.0, &nobody(p, group))),
            initiator => Ok(initiator),
        }
    }

    fn failures(&self, group: &Group) -> Result<BTreeMap<ProcessId, FailAt>, RingError> {
        let mut failures = BTreeMap::new();
        for text in &self.flags.fail {
            let Some((id, event)) = FailAt::parse(text) else {
                let why = "expected ID@start, ID@message:K with K from 1, or ID@elected";
                return Err(self.refuse("fail", text, why));
            };
            if !group.contains(id) {
                return Err(self.refuse("fail", text, &nobody(id, group)));
            }
            if failures.insert(id, event).is_some() {
                return Err(self.refuse("fail", text, "a worker can fail only once"));
            }
        }
        Ok(failures)
    }

    fn external(&self) -> Result<Option<External>, RingError> {
        let Flags { algorithm, simulate, tcp, .. } = &self.flags;
        let world = match (simulate, tcp) {
            (true, true) => {
                return Err(self.refuse("tcp", true, "cannot be combined with --simulate"));
            }
            (true, false) => World::Simulated,
            (false, true) => World::Tcp,
            (false, false) if algorithm.is_some() => World::Tasks,
            (false, false) => return Ok(None),
        };
        let algorithm = algorithm.clone().unwrap_or_else(|| "chang-roberts".into());
        Ok(Some(External { algorithm, world }))
    }

    fn log(&self, warnings: &mut Vec<String>) -> Result<Option<Target>, RingError> {
        let flags = &self.flags;
        let level = match &flags.log_level {
            None => Level::Info,
            Some(text) => Level::parse(text).ok_or_else(|| {
                let why = "expected 0 to 5, or TRACE, DEBUG, INFO, WARN, ERROR, CRITICAL";
                self.refuse("log-level", text, why)
            })?,
        };
        if !flags.log && !flags.log_console && flags.log_file.is_none() {
            let idle = [
                (flags.log_level.is_some(), "--log-level"),
                (flags.log_date, "--log-date"),
                (flags.no_config_log, "--no-config-log"),
            ];
            let idle: Vec<_> = idle.iter().filter(|(given, _)| *given).map(|(_, o)| *o).collect();
            if !idle.is_empty() {
                warnings.push(format!(
                    "{} alone does not log anything: add --log or --log-file",
                    idle.join(", ")
                ));
            }
            return Ok(None);
        }
        if flags.log_date && flags.log_file.is_none() {
            warnings.push("--log-date is for the log file only: add --log-file".into());
        }
        Ok(Some(Target {
            level,
            console: flags.log_console || flags.log_file.is_none(),
            file: flags.log_file.as_deref().map(Into::into),
            date: flags.log_date,
        }))
    }
}

/// Merges options; those of the command line take precedence.
fn over<T: Clone>(
    command_line: &Option<T>,
    merged: &mut Option<T>,
    key: &str,
    lines: &mut BTreeMap<&'static str, usize>,
) {
    if command_line.is_some() {
        merged.clone_from(command_line);
        lines.remove(key);
    }
}

fn listed(ids: &[u32]) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn nobody(id: ProcessId, group: &Group) -> String {
    let mut ids: Vec<_> = group.members().iter().map(|p| p.0).collect();
    ids.sort_unstable();
    let more = if ids.len() > 12 { ", …" } else { "" };
    ids.truncate(12);
    format!(
        "no worker has id {} (there are {}{more}); --seed or --ids fixes the ids",
        id.0,
        listed(&ids)
    )
}

/// Distinct random ids, in a small range that leaves gaps.
fn random_ids(size: u32, seed: u64) -> Vec<u32> {
    let mut limit = 99;
    while limit < 2 * size {
        limit = limit * 10 + 9;
    }
    let mut ids: Vec<u32> = (1..=limit).collect();
    Rng::new(seed).fork(0).shuffle(&mut ids);
    ids.truncate(size as usize);
    ids
}

/// A seed that is short enough to be typed again.
fn any_seed() -> u64 {
    RandomState::new().hash_one(()) % 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(size: u64) -> Flags {
        Flags { size: Some(size), seed: Some(1), ..Flags::default() }
    }

    fn refusal(flags: Flags) -> (u8, String) {
        let error = Options::resolve(&flags).unwrap_err();
        (error.exit_code(), error.to_string())
    }

    #[test]
    fn the_defaults_are_those_of_the_report() {
        let options = Options::resolve(&sized(8)).unwrap();
        assert_eq!(options.group.len(), 8);
        assert_eq!(options.number_of_elections, 0);
        assert_eq!(options.sleep, Duration::from_millis(5000));
        assert_eq!(options.worker_sleep, Duration::from_millis(500));
        assert_eq!(options.send_timeout, Duration::from_millis(2000));
        assert_eq!((options.log, options.config_log), (None, true));
        assert!(options.warnings.is_empty());
    }

    #[test]
    fn the_send_timeout_grows_with_the_sleep_of_the_workers() {
        let flags = Flags { worker_sleep: Some(800), ..sized(3) };
        assert_eq!(Options::resolve(&flags).unwrap().send_timeout, Duration::from_millis(3200));
        let flags = Flags { worker_sleep: Some(u64::MAX), ..sized(3) };
        assert_eq!(Options::resolve(&flags).unwrap().send_timeout, Duration::from_millis(u64::MAX));
    }

    #[test]
    fn the_same_seed_gives_the_same_distinct_ids() {
        let ids = Options::resolve(&sized(300)).unwrap().ids();
        assert_eq!(ids, Options::resolve(&sized(300)).unwrap().ids());
        let other = Flags { seed: Some(2), ..sized(300) };
        assert_ne!(ids, Options::resolve(&other).unwrap().ids());
    }

    #[test]
    fn wrong_value_is_refused_with_its_option() {
        let cases = [
            (
                Flags::default(),
                "SIZE is missing: give the number of workers, or size = N in the config file",
            ),
            (sized(0), "SIZE 0: a ring needs at least 1 worker"),
            (sized(10_001), "SIZE 10001: each worker has threads of its own, 10000 is the limit"),
            (
                Flags { ids: Some(vec![1, 2]), ..sized(3) },
                "--ids 1,2: these are 2 ids for a ring of 3 workers",
            ),
            (
                Flags { ids: Some(vec![1, 1]), ..sized(2) },
                "--ids 1,1: ids must be unique, but 1 is given twice",
            ),
            (
                Flags { ids: Some(vec![4, 7]), initiator: Some(5), ..Flags::default() },
                "--initiator 5: no worker has id 5 (there are 4,7); --seed or --ids fixes the ids",
            ),
            (
                Flags { log_level: Some("6".into()), ..sized(3) },
                "--log-level 6: expected 0 to 5, or TRACE, DEBUG, INFO, WARN, ERROR, CRITICAL",
            ),
            (
                Flags { send_timeout: Some(505), ..sized(3) },
                "--send-timeout 505: with --worker-sleep 500 it must be at least 510, \
                 or healthy neighbours would be taken for failed",
            ),
            (
                Flags { ids: Some(vec![4]), fail: vec!["4@message:0".into()], ..Flags::default() },
                "--fail 4@message:0: expected ID@start, ID@message:K with K from 1, or ID@elected",
            ),
        ];
        for (flags, message) in cases {
            assert_eq!(refusal(flags), (64, message.into()));
        }
    }

    #[test]
    fn failures_are_read_and_belong_to_workers() {
        let flags = |fail: &[&str]| Flags {
            ids: Some(vec![3, 5, 9]),
            fail: fail.iter().map(ToString::to_string).collect(),
            ..Flags::default()
        };
        let options = Options::resolve(&flags(&["9@elected", "3@start", "5@message:12"])).unwrap();
        let expected = [(3, FailAt::Start), (5, FailAt::Message(12)), (9, FailAt::Elected)];
        assert_eq!(options.failures, expected.map(|(id, at)| (ProcessId(id), at)).into());
        for wrong in ["9", "9@", "@start", "x@start", "9@never", "9@message", "9@message:x"] {
            assert!(refusal(flags(&[wrong])).1.contains("expected ID@start"), "{wrong}");
        }
        assert!(refusal(flags(&["8@start"])).1.contains("no worker has id 8"));
        assert!(
            refusal(flags(&["9@start", "9@elected"])).1.contains("a worker can fail only once")
        );
    }

    #[test]
    fn options_that_only_shape_the_log_do_not_start_it() {
        let flags = Flags { log_level: Some("debug".into()), log_date: true, ..sized(3) };
        let options = Options::resolve(&flags).unwrap();
        assert_eq!(options.log, None);
        let warning =
            "--log-level, --log-date alone does not log anything: add --log or --log-file";
        assert_eq!(options.warnings, [warning]);
    }

    #[test]
    fn a_log_file_silences_the_console_unless_both_are_wanted() {
        let file = |flags: Flags| {
            let flags = Flags { log_file: Some("x.log".into()), ..flags };
            Options::resolve(&flags).unwrap().log.unwrap().console
        };
        assert!(!file(sized(3)));
        assert!(!file(Flags { log: true, ..sized(3) }));
        assert!(file(Flags { log_console: true, ..sized(3) }));
        let console = Flags { log: true, ..sized(3) };
        assert!(Options::resolve(&console).unwrap().log.unwrap().console);
    }
}
