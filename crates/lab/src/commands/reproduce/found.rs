//! The findings of the measurements of one case, and the questions that a claim asks of them.

use serde_json::Value;

/// The values that the commands of one case gave, in order.
pub(super) struct Found {
    pub(super) values: Vec<Value>,
    /// How many nodes the first of the runs had.
    pub(super) nodes: f64,
}

impl Found {
    /// The number of nodes.
    pub(super) fn n(&self) -> f64 {
        self.nodes
    }

    /// The value at `i` as a number.
    pub(super) fn at(&self, i: usize) -> f64 {
        self.values.get(i).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// The first value as a number.
    pub(super) fn x(&self) -> f64 {
        self.at(0)
    }

    /// Whether the first value is this number.
    pub(super) fn eq(&self, expected: f64) -> bool {
        (self.x() - expected).abs() < 1e-9
    }

    /// Whether the first value is this number but for the beginning and the end of a long run.
    pub(super) fn near(&self, expected: f64) -> bool {
        (self.x() - expected).abs() < 0.01 * expected
    }

    /// The mean of all values.
    pub(super) fn mean(&self) -> f64 {
        let count = self.values.len();
        (0..count).map(|i| self.at(i)).sum::<f64>() / count as f64
    }

    /// Whether every value satisfies `is`.
    pub(super) fn each(&self, is: impl Fn(f64) -> bool) -> bool {
        self.each_i(|_, x| is(x))
    }

    /// Whether every value satisfies `is`, given its index.
    pub(super) fn each_i(&self, is: impl Fn(usize, f64) -> bool) -> bool {
        !self.values.is_empty() && (0..self.values.len()).all(|i| is(i, self.at(i)))
    }

    /// Whether all values are the same.
    pub(super) fn same(&self) -> bool {
        self.values.len() > 1 && self.values.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Whether the values, sorted, grow by one from one to the next.
    pub(super) fn is_staircase(&self) -> bool {
        let mut steps: Vec<f64> = (0..self.values.len()).map(|i| self.at(i)).collect();
        steps.sort_by(f64::total_cmp);
        steps.len() > 1 && steps.windows(2).all(|pair| pair[0] + 1.0 == pair[1])
    }

    /// Whether every value is this word.
    pub(super) fn all(&self, word: &str) -> bool {
        !self.values.is_empty() && self.values.iter().all(|value| value == word)
    }

    /// Whether the value at `i` is this word.
    pub(super) fn is(&self, i: usize, word: &str) -> bool {
        self.values.get(i).is_some_and(|value| value == word)
    }

    /// Whether there is no first value.
    pub(super) fn none(&self) -> bool {
        self.values.first().is_some_and(Value::is_null)
    }

    /// The value at `i` as JSON.
    pub(super) fn text(&self, i: usize) -> String {
        self.values.get(i).map_or_else(String::new, Value::to_string)
    }

    /// The keys of the first value.
    pub(super) fn keys(&self) -> Vec<&str> {
        let object = self.values.first().and_then(Value::as_object);
        object.map_or_else(Vec::new, |object| object.keys().map(String::as_str).collect())
    }

    /// Whether every value is a list with this word.
    pub(super) fn has(&self, word: &str) -> bool {
        !self.values.is_empty() && (0..self.values.len()).all(|i| self.has_at(i, word))
    }

    /// Whether the value at `i` is a list with this word.
    pub(super) fn has_at(&self, i: usize, word: &str) -> bool {
        let list = self.values.get(i).and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|item| item == word))
    }

    /// The part of the faults at `i` that did no harm.
    pub(super) fn part_at(&self, i: usize) -> f64 {
        let count = |name| self.values.get(i).and_then(|value| value[name].as_f64());
        match (count("harmless"), count("tried")) {
            (Some(harmless), Some(tried)) if tried > 0.0 => harmless / tried,
            _ => f64::NAN,
        }
    }

    /// The part of the first faults that did no harm.
    pub(super) fn part(&self) -> f64 {
        self.part_at(0)
    }

    /// Whether the part of harmless faults satisfies `is` for every value.
    pub(super) fn each_part(&self, is: impl Fn(f64) -> bool) -> bool {
        !self.values.is_empty() && (0..self.values.len()).all(|i| is(self.part_at(i)))
    }

    /// Whether in tables of guarantees a process starves under every fault under which there is a deadlock.
    pub(super) fn deadlocks_starve(&self) -> bool {
        let no = |table: &Value, property: &str| -> Vec<bool> {
            let rows = table.as_array().into_iter().flatten();
            let cells = rows.filter(|row| row["property"] == property);
            let cells = cells.flat_map(|row| row["cells"].as_array().into_iter().flatten());
            cells.map(|cell| cell["no"].is_object()).collect()
        };
        self.values.iter().all(|table| {
            let (deadlock, starvation) = (no(table, "deadlock"), no(table, "starvation"));
            let pairs = || deadlock.iter().zip(&starvation);
            pairs().any(|(dead, _)| *dead) && pairs().all(|(dead, starves)| !dead || *starves)
        })
    }
}
