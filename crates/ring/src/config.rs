//! The config file: `key = value`, where the keys are the long names of the options.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{Flags, RingError};

const KEYS: [&str; 20] = [
    "size",
    "number-of-elections",
    "sleep",
    "worker-sleep",
    "send-timeout",
    "seed",
    "ids",
    "initiator",
    "fail",
    "quiet",
    "json",
    "log",
    "log-file",
    "log-console",
    "log-date",
    "log-level",
    "no-config-log",
    "algorithm",
    "simulate",
    "tcp",
];

/// The content of a config file, with line numbers for messages.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Config {
    pub(crate) flags: Flags,
    /// The line of each key.
    pub(crate) lines: BTreeMap<&'static str, usize>,
}

impl Config {
    pub(crate) fn read(file: &Path) -> Result<Self, RingError> {
        let unreadable = |reason| RingError::Unreadable { file: file.into(), reason };
        let text = String::from_utf8(std::fs::read(file).map_err(unreadable)?).map_err(|e| {
            let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
            let what = "not a text file (UTF-8)".into();
            RingError::Config { file: file.into(), line, what }
        })?;
        Self::parse(&text).map_err(|Wrong { line, what }| RingError::Config {
            file: file.into(),
            line,
            what,
        })
    }

    fn parse(text: &str) -> Result<Self, Wrong> {
        let source = Source(text);
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().unwrap_or_default();
            source.wrong(&at, e.message().replace('\n', ", "))
        })?;
        let mut config = Self::default();
        for (key, value) in table.get_ref() {
            config.set(key, value, source)?;
        }
        Ok(config)
    }

    fn set(
        &mut self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        source: Source<'_>,
    ) -> Result<(), Wrong> {
        let written = key.get_ref();
        let name = written.replace('_', "-");
        let Some(known) = KEYS.into_iter().find(|k| **k == name) else {
            return Err(source.wrong(&key.span(), unknown(written, &name)));
        };
        if self.lines.insert(known, source.line(&key.span())).is_some() {
            return Err(source.wrong(&key.span(), format!("{known} is given twice")));
        }
        let value = Value { key: known, value, source };
        let flags = &mut self.flags;
        match known {
            "size" => flags.size = Some(value.number()?),
            "number-of-elections" => flags.number_of_elections = Some(value.number()?),
            "sleep" => flags.sleep = Some(value.number()?),
            "worker-sleep" => flags.worker_sleep = Some(value.number()?),
            "send-timeout" => flags.send_timeout = Some(value.number()?),
            "seed" => flags.seed = Some(value.number()?),
            "ids" => flags.ids = Some(value.list(|v| v.number())?),
            "initiator" => flags.initiator = Some(value.number()?),
            "fail" => flags.fail = value.list(|v| v.string())?,
            "algorithm" => flags.algorithm = Some(value.string()?),
            "simulate" => flags.simulate = value.flag()?,
            "tcp" => flags.tcp = value.flag()?,
            "quiet" => flags.quiet = value.flag()?,
            "json" => flags.json = value.flag()?,
            "log" => flags.log = value.flag()?,
            "log-file" => flags.log_file = Some(value.string()?.into()),
            "log-console" => flags.log_console = value.flag()?,
            "log-date" => flags.log_date = value.flag()?,
            "log-level" => flags.log_level = Some(value.number_or_name()?),
            "no-config-log" => flags.no_config_log = value.flag()?,
            other => unreachable!("{other} is among the keys but not handled"),
        }
        Ok(())
    }
}

/// A mistake and its line.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Wrong {
    line: usize,
    what: String,
}

/// The text of the file; positions of values refer to it.
#[derive(Clone, Copy)]
struct Source<'a>(&'a str);

impl Source<'_> {
    fn line(&self, at: &Range<usize>) -> usize {
        let before = self.0.as_bytes().get(..at.start).unwrap_or_default();
        before.iter().filter(|b| **b == b'\n').count() + 1
    }

    fn wrong(&self, at: &Range<usize>, what: String) -> Wrong {
        Wrong { line: self.line(at), what }
    }
}

/// The value of a key, before its type is checked.
struct Value<'a> {
    key: &'static str,
    value: &'a Spanned<DeValue<'a>>,
    source: Source<'a>,
}

impl Value<'_> {
    fn number<N: TryFrom<u64>>(&self) -> Result<N, Wrong> {
        let DeValue::Integer(digits) = self.value.get_ref() else {
            return Err(self.expected("a whole number"));
        };
        let number = u64::from_str_radix(digits.as_str(), digits.radix()).ok();
        let fitting = number.and_then(|n| N::try_from(n).ok());
        fitting.ok_or_else(|| {
            let bits = 8 * size_of::<N>();
            self.expected(&format!("a whole number from 0 to 2^{bits} - 1"))
        })
    }

    fn flag(&self) -> Result<bool, Wrong> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.expected("true or false")),
        }
    }

    fn string(&self) -> Result<String, Wrong> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.expected("text in quotes")),
        }
    }

    fn number_or_name(&self) -> Result<String, Wrong> {
        match self.value.get_ref() {
            DeValue::Integer(digits) => Ok(digits.to_string()),
            _ => self.string(),
        }
    }

    /// A list, or a single value for a list of one.
    fn list<T>(&self, one: impl Fn(&Value<'_>) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
        let DeValue::Array(values) = self.value.get_ref() else {
            return Ok(vec![one(self)?]);
        };
        values.iter().map(|value| one(&Value { value, ..*self })).collect()
    }

    fn expected(&self, what: &str) -> Wrong {
        let found = self.source.0.get(self.value.span()).unwrap_or("something else");
        let what = format!("{}: expected {what}, found {found}", self.key);
        self.source.wrong(&self.value.span(), what)
    }
}

fn unknown(written: &str, name: &str) -> String {
    if name == "config" {
        return "config: a config file cannot name another one".into();
    }
    if name == "help" {
        return "help: only the command line has this one".into();
    }
    let distance = |key: &&str| strsim::damerau_levenshtein(key, name);
    let nearest = KEYS.into_iter().min_by_key(distance).expect("there are keys");
    if distance(&nearest) <= nearest.len().max(3) / 2 {
        format!("there is no key {written}; did you mean {nearest}?")
    } else {
        format!("there is no key {written}; the keys are {}", KEYS.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> (usize, String) {
        let Wrong { line, what } = Config::parse(text).unwrap_err();
        (line, what)
    }

    #[test]
    fn a_file_may_set_everything() {
        let text = "\
            # the whole ring\n\
            size = 3\n\
            number-of-elections = 2\n\
            sleep = 5_000\n\
            worker_sleep = 0x10\n\
            send-timeout = 900\n\
            seed = 7\n\
            ids = [17, 4, 99]\n\
            initiator = 4\n\
            fail = [\"99@start\", '4@message:3']\n\
            quiet = true\n\
            json = true\n\
            log = true\n\
            log-file = \"ring.log\"\n\
            log_console = true\n\
            log-date = true\n\
            log-level = 1\n\
            no-config-log = false\n\
            algorithm = \"franklin\"\n\
            simulate = true\n\
            tcp = false\n";
        let config = Config::parse(text).unwrap();
        let expected = Flags {
            size: Some(3),
            config: None,
            number_of_elections: Some(2),
            sleep: Some(5000),
            worker_sleep: Some(16),
            send_timeout: Some(900),
            seed: Some(7),
            ids: Some(vec![17, 4, 99]),
            initiator: Some(4),
            fail: vec!["99@start".into(), "4@message:3".into()],
            quiet: true,
            json: true,
            log: true,
            log_file: Some("ring.log".into()),
            log_console: true,
            log_date: true,
            log_level: Some("1".into()),
            no_config_log: false,
            algorithm: Some("franklin".into()),
            simulate: true,
            tcp: false,
        };
        assert_eq!(config.flags, expected);
        assert_eq!(config.lines.len(), KEYS.len());
        assert_eq!(config.lines["sleep"], 4);
    }

    #[test]
    fn every_option_but_help_and_config_is_a_key() {
        use clap::Args;
        let command = Flags::augment_args(clap::Command::new("ring"));
        let mut options: Vec<_> = command
            .get_arguments()
            .map(|a| a.get_long().unwrap_or("size"))
            .filter(|name| *name != "config")
            .collect();
        let mut keys = KEYS.to_vec();
        options.sort_unstable();
        keys.sort_unstable();
        assert_eq!(keys, options);
    }

    #[test]
    fn an_unknown_key_is_an_error_with_its_line_and_the_nearest_key() {
        let (line, what) = wrong("size = 3\n\nworker-slep = 4\n");
        assert_eq!(
            (line, what.as_str()),
            (3, "there is no key worker-slep; did you mean worker-sleep?")
        );
        assert!(wrong("colour = 3").1.starts_with("there is no key colour; the keys are size, "));
    }

    #[test]
    fn a_config_file_cannot_name_another_one() {
        let expected = "config: a config file cannot name another one";
        assert_eq!(wrong("size = 3\nconfig = 'b.toml'"), (2, expected.into()));
    }

    #[test]
    fn a_value_of_the_wrong_type_is_named_with_its_line() {
        let cases = [
            ("size = -3", "size: expected a whole number from 0 to 2^64 - 1, found -3"),
            ("size = 'three'", "size: expected a whole number, found 'three'"),
            ("sleep = 1.5", "sleep: expected a whole number, found 1.5"),
            (
                "initiator = 5000000000",
                "initiator: expected a whole number from 0 to 2^32 - 1, found 5000000000",
            ),
            ("log = 1", "log: expected true or false, found 1"),
            ("log-file = true", "log-file: expected text in quotes, found true"),
            ("ids = [1, 'two']", "ids: expected a whole number, found 'two'"),
        ];
        for (text, expected) in cases {
            assert_eq!(wrong(&format!("\n{text}\n")), (2, expected.into()));
        }
    }

    #[test]
    fn text_that_is_no_toml_is_refused_with_its_line() {
        assert_eq!(wrong("size = 3\nsleep 5\n").0, 2);
        assert_eq!(wrong("size = 3\nsize = 4\n").0, 2);
        assert_eq!(wrong("log-date = true\nlog_date = true").1, "log-date is given twice");
    }
}
