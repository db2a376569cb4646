//! Studies: algorithms, parameters and seeds.

use std::collections::{BTreeMap, BTreeSet};

use konklave_catalog::{Catalog, Entry, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{expression, seal};

/// A study, as a TOML file says it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Study {
    /// The algorithms to run.
    pub algorithms: Vec<String>,
    /// How many nodes, one after the other.
    #[serde(default = "five")]
    pub nodes: Vec<usize>,
    /// How many seeds for each combination.
    #[serde(default = "ten")]
    pub seeds: u64,
    /// The first of them.
    #[serde(default = "one")]
    pub first_seed: u64,
    /// The common keys of a scenario. A value may be an expression of n, the number of nodes, as in `"10*n"`.
    #[serde(default)]
    pub base: BTreeMap<String, Value>,
    /// Keys of a scenario that vary, each with its values, which may be expressions of n; every combination is run.
    #[serde(default)]
    pub vary: BTreeMap<String, Vec<Value>>,
    /// Combinations of keys and values that are run one by one, beside `vary`; with the key `nodes`, for that number
    /// of nodes only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<BTreeMap<String, Value>>,
    /// The handling of combinations that cannot run.
    #[serde(default)]
    pub impossible: Impossible,
}

fn five() -> Vec<usize> {
    vec![5]
}
fn ten() -> u64 {
    10
}
fn one() -> u64 {
    1
}

/// The handling of combinations that cannot run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Impossible {
    /// Say which, before anything runs.
    #[default]
    Stop,
    /// Leave it out, and say so.
    Skip,
}

/// Why a study cannot be made.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The file says nothing sensible.
    #[error("{0}")]
    Data(String),
    /// An option or key is wrong.
    #[error("{0}")]
    Usage(String),
}

/// One run of a study.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its number among all.
    pub number: u64,
    /// The algorithm.
    pub entry: &'static Entry,
    /// The varied parameters, by name.
    pub parameters: BTreeMap<String, Value>,
    /// All of it.
    pub scenario: Scenario,
}

/// A part of the cases: those whose number leaves `index` when divided by `of`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// From 0.
    pub index: u64,
    /// Of how many.
    pub of: u64,
}

impl Shard {
    /// All cases.
    pub const ALL: Self = Self { index: 0, of: 1 };

    /// Reads `i/n`, i from 1 to n.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let wrong =
            || StudyError::Usage(format!("--shard {text}: expected i/n with i from 1 to n"));
        let (index, of) = text.split_once('/').ok_or_else(wrong)?;
        let index: u64 = index.trim().parse().map_err(|_| wrong())?;
        let of: u64 = of.trim().parse().map_err(|_| wrong())?;
        if index == 0 || index > of {
            return Err(wrong());
        }
        Ok(Self { index: index - 1, of })
    }

    /// The shard that a batch system gives us, by its array variables: Slurm's array tasks, or the
    /// indices of a Kubernetes job (whose number of completions comes as `KONKLAVE_SHARDS`).
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.parse::<u64>().ok();
        if let (Some(id), Some(of)) =
            (number("SLURM_ARRAY_TASK_ID"), number("SLURM_ARRAY_TASK_COUNT"))
        {
            let first = number("SLURM_ARRAY_TASK_MIN").unwrap_or(0);
            let step = number("SLURM_ARRAY_TASK_STEP").unwrap_or(1).max(1);
            let index = id.checked_sub(first)? / step;
            return (index < of).then_some(Self { index, of });
        }
        let (index, of) = (number("JOB_COMPLETION_INDEX")?, number("KONKLAVE_SHARDS")?);
        (index < of).then_some(Self { index, of })
    }

    /// Whether case `number` belongs to it.
    pub fn has(self, number: u64) -> bool {
        number % self.of == self.index
    }
}

/// A combination with its number of nodes.
type SizedCombination = (usize, BTreeMap<String, Value>);

impl Study {
    /// Reads a study file; `file` is its name for messages.
    pub fn parse(text: &str, file: &str) -> Result<Self, StudyError> {
        toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start.min(text.len()));
            let line = text[..at].matches('\n').count() + 1;
            StudyError::Data(format!("{file}:{line}: {}", e.message().replace('\n', " ")))
        })
    }

    /// A number that changes when the study does: results of another study are not taken for ours.
    pub fn hash(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{:016x}", seal::hash([text.as_bytes()]))
    }

    /// All cases, numbered; those that cannot be run come apart, with the reason.
    pub fn cases(&self, catalog: &'static Catalog) -> Result<(Vec<Case>, Vec<String>), StudyError> {
        if self.algorithms.is_empty() {
            return Err(StudyError::Usage("algorithms: a study needs at least one".into()));
        }
        if self.seeds == 0 {
            return Err(StudyError::Usage("seeds: a study needs at least one".into()));
        }
        if self.nodes.is_empty() {
            return Err(StudyError::Usage("nodes: a study needs at least one n".into()));
        }
        if let Some((key, _)) = self.vary.iter().find(|(_, values)| values.is_empty()) {
            return Err(StudyError::Usage(format!("{key}: needs at least one value")));
        }
        self.varies_nothing_twice()?;
        self.has_nothing_double(catalog)?;
        let (mut cases, mut impossible, mut number) = (Vec::new(), Vec::new(), 0);
        for algorithm in &self.algorithms {
            let entry = catalog.find(algorithm).map_err(|e| StudyError::Usage(e.to_string()))?;
            for (n, parameters) in self.sized()? {
                let scenario = self.scenario(entry, n, &parameters)?;
                match entry.plan(scenario.clone()) {
                    Ok(_) => {}
                    // A value that makes no sense is no combination that one may leave out.
                    Err(e)
                        if e.to_string().starts_with("--")
                            && !e.to_string().contains(" cannot run on ")
                            && self.impossible == Impossible::Stop =>
                    {
                        let what = e.to_string().trim_start_matches('-').to_owned();
                        return Err(StudyError::Data(format!("the study: {what}")));
                    }
                    Err(e) => {
                        let shown = show(&parameters);
                        impossible.push(format!("{} n={n}{shown}: {e}", entry.name()));
                        continue;
                    }
                }
                for seed in self.first_seed..self.first_seed + self.seeds {
                    let mut parameters = parameters.clone();
                    parameters.insert("nodes".into(), n.into());
                    let scenario = Scenario { seed: Some(seed), ..scenario.clone() };
                    cases.push(Case { number, entry, parameters, scenario });
                    number += 1;
                }
            }
        }
        if let (Impossible::Stop, Some(first)) = (self.impossible, impossible.first()) {
            return Err(StudyError::Usage(format!(
                "{first}; to leave such combinations out, use `impossible = \"skip\"` or --skip-impossible"
            )));
        }
        Ok((cases, impossible))
    }

    /// Algorithms, nodes and seeds have keys of their own: elsewhere they would be ignored.
    fn varies_nothing_twice(&self) -> Result<(), StudyError> {
        let base = &self.base;
        let only = self.only.iter().flat_map(|fixed| fixed.keys());
        let varied = |key: &str| {
            self.vary.keys().chain(only.clone().filter(|k| *k != "nodes")).any(|k| k == key)
        };
        for (key, own) in [("algorithm", "algorithms"), ("nodes", "nodes"), ("seed", "seeds")] {
            if base.contains_key(key) || varied(key) {
                return Err(StudyError::Data(format!(
                    "the study: {key}: use the key `{own}` of the study instead"
                )));
            }
        }
        if let Some(key) = only.clone().find(|key| self.vary.contains_key(*key)) {
            return Err(StudyError::Data(format!(
                "the study: {key}: a key that is varied cannot stand in `[[only]]`"
            )));
        }
        Ok(())
    }

    /// Refuses repeated values, whose runs would count twice.
    fn has_nothing_double(&self, catalog: &Catalog) -> Result<(), StudyError> {
        let full = |name: &String| catalog.find(name).map_or_else(|_| name.clone(), Entry::name);
        let lists = [
            ("algorithms", self.algorithms.iter().map(full).collect::<Vec<_>>()),
            ("nodes", self.nodes.iter().map(usize::to_string).collect()),
        ];
        let words = |values: &Vec<Value>| values.iter().map(word).collect::<Vec<_>>();
        let varied = self.vary.iter().map(|(key, values)| (key.as_str(), words(values)));
        for (key, values) in lists.into_iter().chain(varied) {
            let mut seen = BTreeSet::new();
            if let Some(double) = values.iter().find(|value| !seen.insert(value.as_str())) {
                let why = "occurs twice; each combination runs once for each seed";
                return Err(StudyError::Data(format!("the study: {key}: {double} {why}")));
            }
        }
        let mut seen = BTreeSet::new();
        let shown = |only| serde_json::to_string(only).unwrap_or_default();
        if let Some(double) = self.only.iter().map(shown).find(|only| !seen.insert(only.clone())) {
            return Err(StudyError::Data(format!("the study: only: {double} occurs twice")));
        }
        Ok(())
    }

    /// Every combination with its number of nodes. Those of `only` that name theirs come last.
    fn sized(&self) -> Result<Vec<SizedCombination>, StudyError> {
        let (own, others): (Vec<_>, Vec<_>) = self
            .combinations()
            .into_iter()
            .partition(|combination| combination.contains_key("nodes"));
        let mut all: Vec<_> = self
            .nodes
            .iter()
            .flat_map(|&n| others.iter().map(move |combination| (n, combination.clone())))
            .collect();
        for combination in own {
            let nodes = &combination["nodes"];
            let n = nodes.as_u64().filter(|n| *n > 0).ok_or_else(|| {
                let why = format!("the study: nodes: {nodes} in `[[only]]` is no number of nodes");
                StudyError::Data(why)
            })?;
            all.push((n as usize, combination));
        }
        let mut seen = BTreeSet::new();
        for (n, combination) in &all {
            let mut rest = combination.clone();
            rest.remove("nodes");
            if !seen.insert((n, serde_json::to_string(&rest).unwrap_or_default())) {
                let shown = show(&rest);
                return Err(StudyError::Data(format!(
                    "the study: only: n={n}{shown} occurs twice"
                )));
            }
        }
        Ok(all)
    }

    /// Every combination of `vary`, for each of `only`.
    fn combinations(&self) -> Vec<BTreeMap<String, Value>> {
        let mut all = if self.only.is_empty() { vec![BTreeMap::new()] } else { self.only.clone() };
        for (key, values) in &self.vary {
            all = all
                .into_iter()
                .flat_map(|fixed| {
                    values.iter().map(move |value| {
                        let mut more = fixed.clone();
                        more.insert(key.clone(), value.clone());
                        more
                    })
                })
                .collect();
        }
        all
    }

    /// The scenario of one combination: varied keys go before the base.
    fn scenario(
        &self,
        entry: &Entry,
        n: usize,
        parameters: &BTreeMap<String, Value>,
    ) -> Result<Scenario, StudyError> {
        let mut fields = serde_json::Map::new();
        let varied = parameters.iter().filter(|(key, _)| *key != "nodes");
        let base = self.base.iter().filter(|(key, _)| !parameters.contains_key(*key));
        for (key, value) in varied.chain(base) {
            let value = &expression::fill(value, n);
            // Times and pauses are words to a scenario, also when they look like numbers.
            let words = [
                "hold",
                "think",
                "delay",
                "initiators",
                "requests",
                "ids",
                "detect-after",
                "service",
                "down",
                "script",
            ];
            let value = match value {
                Value::Number(x) if words.contains(&key.as_str()) => Value::String(x.to_string()),
                other => other.clone(),
            };
            fields.insert(key.clone(), value);
        }
        let scenario: Scenario = serde_json::from_value(Value::Object(fields))
            .map_err(|e| StudyError::Data(format!("the study: {e}")))?;
        Ok(Scenario { algorithm: Some(entry.name()), nodes: Some(n), ..scenario })
    }
}

/// A value as one would type it: the number 1 is the word 1.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn show(parameters: &BTreeMap<String, Value>) -> String {
    parameters.iter().map(|(k, v)| format!(" {k}={v}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(text: &str) -> Study {
        Study::parse(text, "study.toml").unwrap()
    }

    #[test]
    fn every_combination_is_run_for_every_seed() {
        let study = study(
            "algorithms = [\"central\", \"ricart-agrawala\"]\nnodes = [2, 3]\nseeds = 5\n[vary]\nhold = [1, 2]\n",
        );
        let (cases, impossible) = study.cases(crate::builtin()).unwrap();
        assert_eq!((cases.len(), impossible.len()), (2 * 2 * 2 * 5, 0));
        assert!(cases.iter().enumerate().all(|(i, c)| c.number == i as u64));
        assert_eq!(cases[0].scenario.hold.as_deref(), Some("1"));
    }

    #[test]
    fn an_impossible_combination_stops_the_study_or_is_left_out() {
        let text = "algorithms = [\"tree-wave\"]\nnodes = [4]\nseeds = 1\n[vary]\ntopology = [\"path\", \"ring\"]\n";
        let error = study(text).cases(crate::builtin()).unwrap_err().to_string();
        assert!(error.contains("tree-wave n=4 topology=\"ring\""), "{error}");
        let (cases, left_out) =
            Study { impossible: Impossible::Skip, ..study(text) }.cases(crate::builtin()).unwrap();
        assert_eq!((cases.len(), left_out.len()), (1, 1));
    }

    #[test]
    fn values_may_be_expressions_of_n() {
        let text = "algorithms = [\"central\"]\nnodes = [4, 8]\nseeds = 1\n[base]\nthink = \"exponential:10*n\"\n\
                    entries = \"ceil(100/n)\"\n[vary]\nhold = [\"n/2\", 1]\n";
        let (cases, _) = study(text).cases(crate::builtin()).unwrap();
        let seen: Vec<_> = cases
            .iter()
            .map(|c| {
                (
                    c.scenario.think.clone().unwrap(),
                    c.scenario.entries,
                    c.scenario.hold.clone().unwrap(),
                )
            })
            .collect();
        let expected = [("40", 25, "2"), ("40", 25, "1"), ("80", 13, "4"), ("80", 13, "1")];
        assert_eq!(cases.len(), 4);
        // 100/3 is no whole number.
        let error = text.replace("ceil(100/n)", "100/n").replace("nodes = [4, 8]", "nodes = [3]");
        assert!(study(&error).cases(crate::builtin()).is_err());
        for ((think, entries, hold), (t, e, h)) in seen.iter().zip(expected) {
            assert_eq!((think.as_str(), hold.as_str()), (&*format!("exponential:{t}"), h));
            assert!(entries.is_some_and(|k| k == e), "{entries:?}");
        }
        // The value as it was written is the parameter, so that one curve has one name.
        assert_eq!(cases[0].parameters["hold"], "n/2");
    }

    #[test]
    fn a_combination_may_have_its_own_number_of_nodes() {
        let text = "algorithms = [\"central\"]\nnodes = [4]\nseeds = 1\n[[only]]\nnodes = 9\nhold = 2\n[[only]]\nhold = 3\n";
        let (cases, _) = study(text).cases(crate::builtin()).unwrap();
        let seen: Vec<_> =
            cases.iter().map(|c| (c.scenario.nodes, c.scenario.hold.clone().unwrap())).collect();
        assert_eq!(seen, [(Some(4), "3".to_owned()), (Some(9), "2".to_owned())]);
        for (text, why) in [
            (text.replace("nodes = 9", "nodes = 0"), "no number of nodes"),
            (text.replace("nodes = 9\nhold = 2", "nodes = 4\nhold = 3"), "n=4 hold=3 occurs twice"),
        ] {
            let error = study(&text).cases(crate::builtin()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_wrong_key_is_named_with_its_line() {
        let error = Study::parse("algorithms = []\nsedes = 3\n", "s.toml").unwrap_err().to_string();
        assert!(error.starts_with("s.toml:2:") && error.contains("sedes"), "{error}");
        let error = study("algorithms = [\"central\"]\n[vary]\nholt = [1]\n")
            .cases(crate::builtin())
            .unwrap_err();
        assert!(error.to_string().contains("holt"), "{error}");
    }

    #[test]
    fn duplicates_are_refused() {
        for (text, what) in [
            ("algorithms = [\"central\"]\nnodes = [8, 4, 8]\n", "nodes: 8 occurs twice"),
            ("algorithms = [\"central\", \"mutex/central\"]\n", "algorithms: mutex/central occurs"),
            ("algorithms = [\"central\"]\n[vary]\nhold = [1, \"1\"]\n", "hold: 1 occurs"),
            ("algorithms = [\"central\"]\n[[only]]\nhold = 1\n[[only]]\nhold = 1\n", "only: "),
        ] {
            let error = study(text).cases(crate::builtin()).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn shards_share_the_cases_without_overlap() {
        let shards: Vec<Shard> =
            (1..=3).map(|i| Shard::parse(&format!("{i}/3")).unwrap()).collect();
        for number in 0..20 {
            assert_eq!(shards.iter().filter(|s| s.has(number)).count(), 1);
        }
        for wrong in ["0/3", "4/3", "x", "1"] {
            assert!(Shard::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn batch_systems_tell_the_shard() {
        let slurm = |name: &str| {
            let value = match name {
                "SLURM_ARRAY_TASK_ID" => "7",
                "SLURM_ARRAY_TASK_COUNT" => "4",
                "SLURM_ARRAY_TASK_MIN" => "5",
                _ => return None,
            };
            Some(value.to_owned())
        };
        assert_eq!(Shard::from_environment(slurm), Some(Shard { index: 2, of: 4 }));
        let kubernetes = |name: &str| match name {
            "JOB_COMPLETION_INDEX" => Some("1".to_owned()),
            "KONKLAVE_SHARDS" => Some("3".to_owned()),
            _ => None,
        };
        assert_eq!(Shard::from_environment(kubernetes), Some(Shard { index: 1, of: 3 }));
        assert_eq!(Shard::from_environment(|_| None), None);
    }
}
