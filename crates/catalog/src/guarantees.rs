//! What every algorithm keeps under which fault: the evaluation slide, computed.
//!
//! Each cell of the table is a search of all runs of a small group: *yes* if it was exhausted, *no*
//! with the length of the witness, *bounded* if it grew too large to decide.

use std::fmt;
use std::hash::{Hash, Hasher};

use konklave_algorithms::Assumption;
use konklave_check::{Options, Timing};
use serde::{Deserialize, Serialize};

use crate::{CheckPlan, Entry, Error, PROPERTIES, Scenario};

/// What may go wrong, and its name.
pub const CONDITIONS: [&str; 5] = ["FIFO", "reordering", "one loss", "one duplicate", "one crash"];

/// One property of one algorithm, under every condition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GuaranteeRow {
    /// Full name of the algorithm.
    pub algorithm: String,
    /// How many nodes.
    pub nodes: usize,
    /// The property, by its name on the command line.
    pub property: String,
    /// One for each of [`CONDITIONS`].
    pub cells: Vec<Cell>,
    /// Stands for the data sheet and the bounds: if it is the same, so is the row.
    pub hash: String,
}

/// Whether a property is kept under a condition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// In every run.
    Yes {
        /// How many states were explored.
        states: u64,
    },
    /// Not in this one.
    No {
        /// How many steps the witness has.
        length: usize,
        /// What shows it.
        command: String,
    },
    /// Nothing was found in so many states.
    Bounded {
        /// How many.
        states: u64,
    },
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes { .. } => f.write_str("yes"),
            Self::No { length, .. } => write!(f, "no ({length})"),
            Self::Bounded { .. } => f.write_str("?"),
        }
    }
}

/// How far each search goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// How many nodes; one more where an algorithm cannot do with so few.
    pub nodes: usize,
    /// The most states of one search.
    pub states: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { nodes: 3, states: 20_000 }
    }
}

impl Entry {
    /// The properties that the table judges, of this problem.
    fn judged(&self) -> &'static [&'static str] {
        match self.problem {
            "mutex" => &["exclusion", "deadlock", "starvation", "order", "quiescence"],
            "election" => &["unique", "agreement", "termination", "livelock", "quiescence"],
            _ => &[],
        }
    }

    /// Stands for all that decides its rows.
    pub fn guarantees_hash(&self, bounds: Bounds) -> String {
        let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
        let sheet = &self.sheet;
        let promises = format!("{:?} {:?} {:?}", sheet.assumes, sheet.guarantees, sheet.topologies);
        let choices: Vec<&str> = sheet.switches.iter().map(|switch| switch.name).collect();
        (env!("CARGO_PKG_VERSION"), self.name(), sheet.idea, promises).hash(&mut hasher);
        (choices, self.judged(), CONDITIONS, bounds).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// The rows of this algorithm; none if its problem has no such table.
    pub fn guarantees(&self, bounds: Bounds) -> Result<Vec<GuaranteeRow>, Error> {
        let Some(nodes) = self.fewest(bounds.nodes) else { return Ok(Vec::new()) };
        let hash = self.guarantees_hash(bounds);
        let mut rows: Vec<GuaranteeRow> = self
            .judged()
            .iter()
            .map(|property| GuaranteeRow {
                algorithm: self.name(),
                nodes,
                property: (*property).to_owned(),
                cells: Vec::new(),
                hash: hash.clone(),
            })
            .collect();
        for condition in 0..CONDITIONS.len() {
            let cells = self.under(condition, nodes, bounds)?;
            for (row, (_, cell)) in rows.iter_mut().zip(cells) {
                row.cells.push(cell);
            }
        }
        Ok(rows)
    }

    /// The size to explore: not every algorithm has every size.
    fn fewest(&self, nodes: usize) -> Option<usize> {
        (nodes..nodes + 3).find(|&n| self.plan(scenario(n, 0, false)).is_ok())
    }

    /// Every property under one condition, in order.
    fn under(
        &self,
        condition: usize,
        nodes: usize,
        bounds: Bounds,
    ) -> Result<Vec<(&'static str, Cell)>, Error> {
        let mut cells: Vec<(&'static str, Option<Cell>)> =
            self.judged().iter().map(|property| (*property, None)).collect();
        // What needs more to be remembered, or clients that never have enough, is searched for alone.
        for (property, cell) in &mut cells {
            if ["order", "starvation"].contains(property) {
                let (_, found) = self.search(condition, nodes, bounds, &[property])?;
                *cell = Some(found);
            }
        }
        loop {
            let open: Vec<&'static str> =
                cells.iter().filter(|(_, cell)| cell.is_none()).map(|(p, _)| *p).collect();
            if open.is_empty() {
                break;
            }
            let (broken, found) = self.search(condition, nodes, bounds, &open)?;
            for (property, cell) in &mut cells {
                let decided = broken.is_none_or(|broken| broken == *property);
                if cell.is_none() && decided {
                    *cell = Some(found.clone());
                }
            }
        }
        Ok(cells.into_iter().filter_map(|(property, cell)| Some((property, cell?))).collect())
    }

    /// One search; says which of `properties` is broken, if one is.
    fn search(
        &self,
        condition: usize,
        nodes: usize,
        bounds: Bounds,
        properties: &[&'static str],
    ) -> Result<(Option<&'static str>, Cell), Error> {
        let endless = properties.contains(&"starvation");
        let plan = self.plan(scenario(nodes, condition, endless))?;
        let (losses, duplicates, crashes) =
            (u8::from(condition == 2), u8::from(condition == 3), u8::from(condition == 4));
        let synchronous = self.sheet.assumes.contains(&Assumption::Synchronous);
        let options = Options {
            timing: if synchronous { Timing::WhenQuiet } else { Timing::Anytime },
            losses,
            duplicates,
            crashes,
            properties: properties.iter().map(|p| (*p).to_owned()).collect(),
            max_states: bounds.states,
            ..Options::default()
        };
        let mut words = Vec::new();
        for (name, k) in [("loss", losses), ("duplicate", duplicates), ("crash", crashes)] {
            words.extend((k > 0).then(|| format!("--{name} {k}")));
        }
        words.extend(synchronous.then(|| "--synchronous".to_owned()));
        words.extend(properties.iter().map(|p| format!("--property {p}")));
        let check = CheckPlan { options, extreme: None, arguments: words.join(" ") };
        let report = self.check(&plan, &check, &mut |_| true)?.report;
        let broken = report.property.as_deref().and_then(|broken| {
            let means = |p: &&&str| {
                PROPERTIES.iter().any(|(name, meant, _)| name == *p && meant.contains(&broken))
            };
            properties.iter().find(means).copied()
        });
        let cell = match (report.verdict, report.witness_length) {
            ("exhausted", _) => Cell::Yes { states: report.states },
            ("violated", Some(length)) => Cell::No { length, command: report.command },
            _ => Cell::Bounded { states: report.states },
        };
        Ok((broken, cell))
    }
}

/// Everyone asks or starts once; or, if `endless`, again and again.
fn scenario(nodes: usize, condition: usize, endless: bool) -> Scenario {
    Scenario {
        nodes: Some(nodes),
        entries: endless.then_some(u32::MAX),
        fifo: Some(condition != 1),
        ..Scenario::default()
    }
}

/// A hash that is the same everywhere and for ever.
struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The whole table as a page of the docs.
pub fn page(rows: &[GuaranteeRow], bounds: Bounds) -> String {
    let mut page = format!(
        "# Guarantees, computed\n\n\
         Every cell is a search of all runs of a small group, of {} nodes unless said otherwise, in which\n\
         everyone asks (or starts) once; for starvation, again and again. **yes**: every run was seen;\n\
         **no (k)**: broken by a run of k steps; **?**: not decided within {} states. Under a fault that the data\n\
         sheet rules out, a *no* is no mistake of the algorithm: it says what the assumption is for.\n\
         Made by `konklave guarantees --markdown`.\n",
        bounds.nodes, bounds.states
    );
    let mut algorithm = "";
    for row in rows {
        if row.algorithm != algorithm {
            algorithm = &row.algorithm;
            let size = if row.nodes == bounds.nodes {
                String::new()
            } else {
                format!(", {} nodes", row.nodes)
            };
            page += &format!("\n## {algorithm}{size}\n\n| | {} |\n", CONDITIONS.join(" | "));
            page += &format!("|---|{}\n", "---|".repeat(CONDITIONS.len()));
        }
        let cells: Vec<String> = row.cells.iter().map(ToString::to_string).collect();
        page += &format!("| {} | {} |\n", row.property, cells.join(" | "));
    }
    page
}
