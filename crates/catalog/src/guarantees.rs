//! What every algorithm keeps under which fault: the evaluation slide, computed.
//!
//! Each cell of the table is a search of all runs of a small group: *yes* if it was exhausted, *no*
//! with the length of the witness, *bounded* if it grew too large to decide.

use std::fmt;
use std::hash::{Hash, Hasher};

use konklave_algorithms::Assumption;
use konklave_check::{Options, Timing, Victim};
use serde::{Deserialize, Serialize};

use crate::{CheckPlan, Entry, Error, PROPERTIES, Scenario};

/// What may go wrong, and its name. Everywhere but under reordering, channels are FIFO; a crash is
/// told apart by what the crashed process was doing.
pub const CONDITIONS: [&str; 8] = [
    "FIFO",
    "reordering",
    "one loss",
    "one duplicate",
    "crash: idle",
    "crash: waiting",
    "crash: holder",
    "crash: arbiter",
];

/// Who crashes under a condition, if anyone does, and the word for it on the command line.
fn victim(condition: usize) -> Option<(Victim, &'static str)> {
    match condition {
        4 => Some((Victim::Idle, "idle")),
        5 => Some((Victim::Waiting, "waiting")),
        6 => Some((Victim::Holder, "holder")),
        7 => Some((Victim::Arbiter, "arbiter")),
        _ => None,
    }
}

/// What people call the properties that the table judges.
const TITLES: &[(&str, &str)] = &[
    ("exclusion", "safety"),
    ("deadlock", "deadlock-free"),
    ("starvation", "starvation-free"),
    ("order", "happened-before order"),
    ("unique", "one leader"),
    ("livelock", "livelock-free"),
    ("quiescence", "quiescent"),
];

/// What people call `property`.
pub fn title(property: &str) -> &str {
    TITLES.iter().find(|(name, _)| *name == property).map_or(property, |(_, title)| title)
}

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
        /// What finds it again.
        command: String,
    },
    /// The condition cannot come about: nobody ever plays that part.
    Never,
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
            Self::Never => f.write_str("–"),
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
        (self.name(), crate::sheet_hash(&self.sheet)).hash(&mut hasher);
        (self.judged(), CONDITIONS, bounds.nodes as u64, bounds.states).hash(&mut hasher);
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
            // Nobody holds a leader.
            if self.problem == "election" && matches!(victim(condition), Some((Victim::Holder, _)))
            {
                rows.iter_mut().for_each(|row| row.cells.push(Cell::Never));
                continue;
            }
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
        let (losses, duplicates) = (u8::from(condition == 2), u8::from(condition == 3));
        let victim = victim(condition);
        let crashes = u8::from(victim.is_some());
        let synchronous = self.sheet.assumes.contains(&Assumption::Synchronous);
        let options = Options {
            timing: if synchronous { Timing::WhenQuiet } else { Timing::Anytime },
            losses,
            duplicates,
            crashes,
            victims: victim.map_or(Victim::Anyone, |(who, _)| who),
            properties: properties.iter().map(|p| (*p).to_owned()).collect(),
            max_states: bounds.states,
            ..Options::default()
        };
        let mut words = Vec::new();
        for (name, k) in [("loss", losses), ("duplicate", duplicates), ("crash", crashes)] {
            words.extend((k > 0).then(|| format!("--{name} {k}")));
        }
        words.extend(victim.map(|(_, word)| format!("--victim {word}")));
        words.extend(synchronous.then(|| "--synchronous".to_owned()));
        let check = CheckPlan { options, extreme: None, arguments: words.join(" ") };
        let report = self.check(&plan, &check, &mut |_| true)?.report;
        let broken = report.property.as_deref().and_then(|broken| {
            let means = |p: &&&str| {
                PROPERTIES.iter().any(|(name, meant, _)| name == *p && meant.contains(&broken))
            };
            properties.iter().find(means).copied()
        });
        let cell = match (report.verdict, report.witness_length, broken) {
            ("exhausted", ..) => Cell::Yes { states: report.states },
            // Searched for alone, it breaks in as few steps.
            ("violated", Some(length), Some(broken)) => {
                Cell::No { length, command: format!("{} --property {broken}", report.command) }
            }
            ("violated", ..) => {
                let what = report.property.unwrap_or_default();
                return Err(Error::Data(format!("{}: {what} broke unasked", self.name())));
            }
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
        fifo: (condition == 1).then_some(false),
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
         everyone asks (or starts) once; for starvation, again and again. **yes**: every run was seen, and\n\
         none breaks it; **no (k)**: broken by a run of k steps, which the command below the table finds;\n\
         **?**: nothing found in {} states, and not decided; **–**: nobody ever plays that part.\n\n\
         Under a fault that the data sheet rules out, a *no* is no mistake of the algorithm: it says what\n\
         the assumption is for. Channels are FIFO but under *reordering*. One process crashes and stays\n\
         down, and everyone is told, in his own time; it is *idle* if its client wants nothing and it is at\n\
         rest, *waiting* or *holder* as its client is, *arbiter* if its client wants nothing but it has work\n\
         for others in hand. A process that waits or holds and has such work counts as waiting or holder.\n\n\
         Made by `konklave guarantees --markdown --cache docs/guarantees.json`, where the numbers of\n\
         states are, too.\n",
        bounds.nodes, bounds.states
    );
    for rows in rows.chunk_by(|a, b| a.algorithm == b.algorithm) {
        let (algorithm, nodes) = (&rows[0].algorithm, rows[0].nodes);
        let size = if nodes == bounds.nodes { String::new() } else { format!(", {nodes} nodes") };
        page += &format!("\n## {algorithm}{size}\n\n| | {} |\n", CONDITIONS.join(" | "));
        page += &format!("|---|{}\n", "---|".repeat(CONDITIONS.len()));
        for row in rows {
            let cells: Vec<String> = row.cells.iter().map(ToString::to_string).collect();
            page += &format!("| {} | {} |\n", title(&row.property), cells.join(" | "));
        }
        let commands: Vec<&str> =
            rows.iter().flat_map(|row| &row.cells).filter_map(shown).collect();
        if !commands.is_empty() {
            page += "\n<details><summary>what breaks it</summary>\n\n```sh\n";
            page += &commands.join("\n");
            page += "\n```\n\n</details>\n";
        }
    }
    page
}

/// The command that shows a *no*.
fn shown(cell: &Cell) -> Option<&str> {
    match cell {
        Cell::No { command, .. } => Some(command),
        Cell::Yes { .. } | Cell::Never | Cell::Bounded { .. } => None,
    }
}
