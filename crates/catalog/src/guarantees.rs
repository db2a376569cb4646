//! The guarantees of every algorithm under each fault: the table of the evaluation slide, computed.
//!
//! Each cell of the table is a search of all runs of a small group: *yes* if it was exhausted, *no*
//! with the length of the witness, *bounded* if it grew too large to decide. A cell that is too large
//! for the group asked for is tried with a smaller one, and says so.
//!
//! Starvation concerns clients that make requests for ever. Most algorithms then count something without
//! bound (a clock, a fence), so no state comes twice and no search ends. Such a cell states what can be computed
//! instead: in all runs with so many requests of each client, no client waits for ever, and a client is
//! overtaken at most so many times.

mod page;

use std::fmt;
use std::hash::{Hash, Hasher};

use konklave_algorithms::{Assumption, Guarantee};
use konklave_check::{Options, Timing, Victim};
use konklave_trace::Run;
use serde::{Deserialize, Serialize};

use crate::{CheckPlan, Checked, Entry, Error, Scenario};

pub use page::{LEGEND, SYNCHRONOUS, head, page};

/// The faults and their names. Channels are FIFO except under reordering. Crashes are distinguished by
/// the role of the crashed process, in the words of [`Role`](crate::tolerance::Role).
pub const CONDITIONS: [&str; 10] = [
    "FIFO",
    "reordering",
    "one loss",
    "one duplicate",
    "crash: idle",
    "crash: waiting",
    "crash: holder",
    "crash: arbiter",
    "crash: coordinator",
    "crash: idle, with the token",
];

/// The processes that crash under a condition, if any, and their word on the command line.
fn victim(condition: usize) -> Option<(Victim, &'static str)> {
    match condition {
        4 => Some((Victim::Idle, "idle")),
        5 => Some((Victim::Waiting, "waiting")),
        6 => Some((Victim::Holder, "holder")),
        7 => Some((Victim::Arbiter, "arbiter")),
        8 => Some((Victim::Coordinator, "coordinator")),
        9 => Some((Victim::IdleTokenHolder, "idle-token-holder")),
        _ => None,
    }
}

/// The titles of the judged properties.
const TITLES: &[(&str, &str)] = &[
    ("exclusion", "safety"),
    ("deadlock", "deadlock-free"),
    ("starvation", "starvation-free"),
    ("order", "happened-before order"),
    ("unique", "one leader"),
    ("livelock", "livelock-free"),
    ("quiescence", "quiescent"),
];

/// The title of `property`.
pub fn title(property: &str) -> &str {
    TITLES.iter().find(|(name, _)| *name == property).map_or(property, |(_, title)| title)
}

/// One property of one algorithm, under every condition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GuaranteeRow {
    /// Full name of the algorithm.
    pub algorithm: String,
    /// How many nodes, unless a cell says otherwise.
    pub nodes: usize,
    /// Whether the searches take the algorithm at its word that time bounds are known: a timer fires only if no message
    /// is in flight.
    #[serde(default)]
    pub synchronous: bool,
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
        /// How many nodes.
        nodes: usize,
        /// How many states were explored.
        states: u64,
    },
    /// Not in this one.
    No {
        /// How many nodes.
        nodes: usize,
        /// How many steps the witness has.
        length: usize,
        /// The violated property; a deadlock also violates freedom from starvation.
        property: String,
        /// How often each client may ask; the largest number means for ever.
        requests: u32,
        /// The command that finds the violation again.
        command: String,
    },
    /// Not decided for clients that ask for ever. In every run of `requests` requests each, no client
    /// waits for ever or is overtaken more than `most` times.
    Bypass {
        /// How many nodes.
        nodes: usize,
        /// How often each client asks.
        requests: u32,
        /// How often one is overtaken at most: once it happens, too.
        most: u32,
        /// How many states were explored.
        states: u64,
    },
    /// Not applicable: no process ever has this role, or no message is ever sent.
    Never,
    /// Not decided. In no run of fewer steps than `depth` anything was found.
    Bounded {
        /// How deep the search came.
        depth: u32,
        /// How many states were allowed.
        states: u64,
    },
}

impl Cell {
    /// In a few characters, beside others of `nodes` nodes.
    pub fn beside(&self, nodes: usize) -> String {
        let size = match self {
            Self::Yes { nodes: n, .. }
            | Self::No { nodes: n, .. }
            | Self::Bypass { nodes: n, .. }
                if *n != nodes =>
            {
                format!(", n={n}")
            }
            _ => String::new(),
        };
        format!("{self}{size}")
    }

    fn is_bounded(&self) -> bool {
        matches!(self, Self::Bounded { .. })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes { .. } => f.write_str("yes"),
            Self::No { length, .. } => write!(f, "no ({length})"),
            Self::Bypass { most, requests, .. } => write!(f, "≤{most} in {requests}"),
            Self::Never => f.write_str("–"),
            Self::Bounded { depth, .. } => write!(f, "? ({depth})"),
        }
    }
}

/// How far each search goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// How many nodes; one or two more where an algorithm cannot do with so few, and fewer where it
    /// cannot be decided.
    pub nodes: usize,
    /// The most states of one search.
    pub states: u64,
}

/// Changed whenever the same bounds give other cells, so that no cache is believed.
const METHOD: u32 = 4;
/// The most memory of one search, about.
const BYTES: u64 = 256 << 20;
/// The most states with clients that ask for ever: if no state comes twice, more are of no use.
const ENDLESS: u64 = 20_000;
/// A cell that no group decides is tried again with so many times the states, if the algorithm has an end.
const FURTHER: u64 = 30;
/// No algorithm needs more nodes than were asked for and so many.
const MORE: usize = 2;

/// How far the searches of one group go.
#[derive(Clone, Copy)]
struct Effort {
    /// The most states of one search.
    states: u64,
    /// How often each client asks where clients that ask for ever have too many states.
    requests: u32,
}

/// The purpose of one search.
#[derive(Clone, Copy)]
struct Question<'a> {
    condition: usize,
    nodes: usize,
    /// How often each client asks.
    requests: u32,
    /// How many messages the application sends past the algorithm: what makes order visible.
    app_messages: u8,
    states: u64,
    properties: &'a [&'a str],
}

impl<'a> Question<'a> {
    fn of(condition: usize, nodes: usize, states: u64, properties: &'a [&'a str]) -> Self {
        let app_messages = u8::from(properties.contains(&ORDER));
        Self { condition, nodes, requests: 1, app_messages, states, properties }
    }
}

/// The property that is judged with a message of the application.
const ORDER: &str = "order";

impl Entry {
    /// Stands for all that decides its rows.
    pub fn guarantees_hash(&self, bounds: Bounds) -> String {
        let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
        (self.name(), crate::sheet_hash(&self.sheet)).hash(&mut hasher);
        (self.problem.guarantees, CONDITIONS, METHOD, bounds.nodes as u64, bounds.states)
            .hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// The rows of this algorithm; none if its problem has no such table.
    pub fn guarantees(&self, bounds: Bounds) -> Result<Vec<GuaranteeRow>, Error> {
        let judged = self.problem.guarantees;
        let sizes = self.sizes(bounds.nodes);
        let Some(&nodes) = sizes.first().filter(|_| !judged.is_empty()) else {
            return Ok(Vec::new());
        };
        let mut columns: Vec<Vec<Cell>> = Vec::new();
        for condition in 0..CONDITIONS.len() {
            let mut cells: Vec<Option<Cell>> = vec![None; judged.len()];
            if !self.has_role(condition, nodes)? {
                columns.push(vec![Cell::Never; judged.len()]);
                continue;
            }
            self.under_in_any_size(condition, &sizes, bounds, &mut cells)?;
            let cells = cells.into_iter().flatten().enumerate();
            let without = columns.first();
            let cells = cells.map(|(i, cell)| match without {
                Some(fifo) if condition > 1 && fifo[i] == cell && is_seen_whole(&cell) => {
                    Cell::Never
                }
                _ => cell,
            });
            let cells: Vec<Cell> = cells.collect();
            // A property that breaks without the fault breaks here, too, though no process has the role.
            columns.push(match cells.contains(&Cell::Never) {
                true => vec![Cell::Never; cells.len()],
                false => cells,
            });
        }
        let hash = self.guarantees_hash(bounds);
        let row = |(i, property): (usize, &&str)| GuaranteeRow {
            algorithm: self.name(),
            nodes,
            synchronous: self.is_synchronous(),
            property: (*property).to_owned(),
            cells: columns.iter().map(|column| column[i].clone()).collect(),
            hash: hash.clone(),
        };
        Ok(judged.iter().enumerate().map(row).collect())
    }

    /// The run that shows the *no* of a row under a condition; none if it says something else.
    pub fn guarantee_witness(
        &self,
        row: &GuaranteeRow,
        condition: usize,
        bounds: Bounds,
    ) -> Result<Option<Run>, Error> {
        let Some(Cell::No { nodes, property, requests, .. }) = row.cells.get(condition) else {
            return Ok(None);
        };
        let properties: &[&str] = &[property];
        let question = Question::of(condition, *nodes, bounds.states, properties);
        let question = Question { requests: *requests, ..question };
        match self.explored(question)?.witness {
            None if question.app_messages > 0 => {
                Ok(self.explored(Question { app_messages: 0, ..question })?.witness)
            }
            witness => Ok(witness),
        }
    }

    /// Whether a process may have the role that a condition crashes, as far as a run shows it.
    fn has_role(&self, condition: usize, nodes: usize) -> Result<bool, Error> {
        let plan = self.plan(scenario(nodes, condition, 1))?;
        match victim(condition) {
            Some((Victim::Coordinator, _)) => Ok(self.coordinator(&plan)?.is_some()),
            Some((Victim::IdleTokenHolder, _)) => self.has_token(&plan),
            Some((Victim::Holder, _)) => Ok(self.problem.holds),
            _ => Ok(true),
        }
    }

    /// The sizes to explore, the first first: not every algorithm has every size.
    fn sizes(&self, nodes: usize) -> Vec<usize> {
        let is_one = |n: &usize| self.plan(scenario(*n, 0, 1)).is_ok();
        let Some(largest) = (nodes..=nodes + MORE).find(is_one) else { return Vec::new() };
        // If a majority is the whole group, as it is of two, it says nothing of larger groups.
        let says_more = |n: &usize| {
            let plan = self.plan(scenario(*n, 0, 1));
            plan.is_ok_and(|plan| {
                let quorums = self.algorithm.quorums(&plan.setup);
                quorums.iter().all(|(name, figures)| *name != "majorities" || figures.most < *n)
            })
        };
        let smaller = (2..largest).rev().filter(says_more);
        std::iter::once(largest).chain(smaller).collect()
    }

    /// Whether the searches assume known time bounds, as the data sheet does.
    fn is_synchronous(&self) -> bool {
        self.sheet.assumes.contains(&Assumption::Synchronous)
    }

    /// Whether a search of all its runs may come to an end. Runs that go on for ever, or until chance ends them, have
    /// states without end.
    fn has_end(&self) -> bool {
        let by_chance = Guarantee::TerminationWithProbabilityOne;
        !self.algorithm.is_endless() && !self.sheet.guarantees.contains(&by_chance)
    }

    /// Every property under one condition: in the largest group, in smaller ones, then with more states.
    fn under_in_any_size(
        &self,
        condition: usize,
        sizes: &[usize],
        bounds: Bounds,
        cells: &mut [Option<Cell>],
    ) -> Result<(), Error> {
        let is_open = |cells: &[Option<Cell>]| cells.iter().flatten().any(Cell::is_bounded);
        for &nodes in sizes {
            let requests = if nodes > 2 { 2 } else { 3 };
            self.under(condition, nodes, Effort { states: bounds.states, requests }, cells)?;
            if !is_open(cells) {
                return Ok(());
            }
        }
        let effort = Effort { states: bounds.states.saturating_mul(FURTHER), requests: 1 };
        match sizes.first() {
            Some(&nodes) if self.has_end() => self.under(condition, nodes, effort, cells),
            _ => Ok(()),
        }
    }

    /// Every property under one condition, in order, of those that are open or bounded.
    fn under(
        &self,
        condition: usize,
        nodes: usize,
        effort: Effort,
        cells: &mut [Option<Cell>],
    ) -> Result<(), Error> {
        let judged = self.problem.guarantees;
        let is_open = |cell: &Option<Cell>| cell.as_ref().is_none_or(Cell::is_bounded);
        let states = effort.states;
        let mut open: Vec<usize> = (0..judged.len()).filter(|i| is_open(&cells[*i])).collect();
        // A cell that stays undecided keeps the result of the larger group.
        let mut set = |i: usize, cell: Cell| {
            if cells[i].is_none() || !cell.is_bounded() {
                cells[i] = Some(cell);
            }
        };
        // A property that needs more state, or other clients, is searched for alone.
        if let Some(at) = open.iter().position(|i| judged[*i] == ORDER) {
            let i = open.remove(at);
            let question = Question::of(condition, nodes, states, &[ORDER]);
            let mut found = self.search(question)?.1;
            if found.is_bounded() {
                // Runs without the message are fewer, and may break it, too.
                let without = self.search(Question { app_messages: 0, ..question })?.1;
                if matches!(without, Cell::No { .. }) {
                    found = without;
                }
            }
            set(i, found);
        }
        let starvation = open.iter().position(|i| judged[*i] == "starvation");
        let starvation = starvation.map(|at| open.remove(at));
        while !open.is_empty() {
            let properties: Vec<&str> = open.iter().map(|i| judged[*i]).collect();
            let question = Question::of(condition, nodes, states, &properties);
            let (broken, found) = self.search(question)?;
            open.retain(|&i| {
                let decided = broken.as_deref().is_none_or(|broken| broken == judged[i]);
                if decided {
                    set(i, found.clone());
                }
                !decided
            });
        }
        if let Some(i) = starvation {
            let deadlock = judged.iter().position(|property| *property == "deadlock");
            let known = deadlock.and_then(|at| cells[at].clone());
            let found = match known {
                Some(no @ Cell::No { .. }) => no,
                _ => self.starvation(condition, nodes, effort)?,
            };
            if cells[i].is_none() || !found.is_bounded() {
                cells[i] = Some(found);
            }
        }
        Ok(())
    }

    /// Whether someone may wait for ever: by a fair round of clients that ask for ever, if their states
    /// are few; else of clients that ask a few times.
    fn starvation(&self, condition: usize, nodes: usize, effort: Effort) -> Result<Cell, Error> {
        let Effort { states, requests } = effort;
        let properties: &[&str] = &["deadlock", "starvation"];
        let endless = Question::of(condition, nodes, states.min(ENDLESS), properties);
        let endless = Question { requests: u32::MAX, ..endless };
        let (_, found) = self.search(endless)?;
        if !found.is_bounded() {
            return Ok(found);
        }
        // When all others have used up their requests, no client can overtake any more.
        let all = requests * (nodes as u32).saturating_sub(1);
        for most in 0..=all {
            let bypass = format!("bypass:{most}");
            let properties: &[&str] = &["deadlock", "starvation", &bypass];
            let question = Question::of(condition, nodes, states, properties);
            match self.search(Question { requests, ..question })? {
                (Some(broken), _) if broken == bypass => {}
                (_, Cell::Yes { states, .. }) => {
                    return Ok(Cell::Bypass { nodes, requests, most, states });
                }
                (_, found) => return Ok(found),
            }
        }
        Err(Error::Data(format!(
            "{}: a process was overtaken more often than possible (a bug of konklave)",
            self.name()
        )))
    }

    fn explored(&self, question: Question<'_>) -> Result<Checked, Error> {
        let Question { condition, nodes, requests, app_messages, states, properties } = question;
        let plan = self.plan(scenario(nodes, condition, requests))?;
        let (losses, duplicates) = (u8::from(condition == 2), u8::from(condition == 3));
        let victim = victim(condition);
        let crashes = u8::from(victim.is_some());
        let synchronous = self.is_synchronous();
        let options = Options {
            timing: if synchronous { Timing::WhenQuiet } else { Timing::Anytime },
            losses,
            duplicates,
            crashes,
            victims: victim.map_or(Victim::Anyone, |(who, _)| who),
            app_messages,
            properties: properties.iter().map(|p| (*p).to_owned()).collect(),
            // So that a bound is reached at the same state everywhere.
            threads: 1,
            max_states: states,
            max_bytes: BYTES,
            ..Options::default()
        };
        let mut words = Vec::new();
        let budgets = [
            ("app-messages", app_messages),
            ("loss", losses),
            ("duplicate", duplicates),
            ("crash", crashes),
        ];
        for (name, k) in budgets {
            words.extend((k > 0).then(|| format!("--{name} {k}")));
        }
        words.extend(victim.map(|(_, word)| format!("--victim {word}")));
        words.extend(synchronous.then(|| "--synchronous".to_owned()));
        let check = CheckPlan { options, arguments: words.join(" "), ..CheckPlan::default() };
        self.check(&plan, &check, &mut |_| true)
    }

    /// One search; says which of the properties is broken, if one is.
    fn search(&self, question: Question<'_>) -> Result<(Option<String>, Cell), Error> {
        let report = self.explored(question)?.report;
        let Question { nodes, requests, states, properties, .. } = question;
        let broken = report.property.as_deref().and_then(|broken| {
            let means = |p: &&&str| {
                let word = p.split(':').next().unwrap_or_default();
                let mut known = self.problem.all_properties();
                known.any(|known| known.word == word && known.broken_by.contains(&broken))
            };
            properties.iter().find(means).map(|p| (*p).to_owned())
        });
        let cell = match (report.verdict, report.witness_length, broken.clone()) {
            ("exhausted", ..) => Cell::Yes { nodes, states: report.states },
            // Searched for alone, it breaks in as few steps.
            ("violated", Some(length), Some(property)) => {
                let command = format!("{} --property {property}", report.command);
                Cell::No { nodes, length, property, requests, command }
            }
            ("violated", ..) => {
                let what = report.property.unwrap_or_default();
                return Err(Error::Data(format!(
                    "{}: the search found a violation of {what}, which it does not judge (a bug of konklave)",
                    self.name()
                )));
            }
            _ => Cell::Bounded { depth: report.depth, states },
        };
        Ok((broken, cell))
    }
}

/// Whether every state was seen. If so and there are as many as without the fault, it never struck:
/// each state after it differs from all before, for what was spent is part of the state.
fn is_seen_whole(cell: &Cell) -> bool {
    match cell {
        Cell::Yes { .. } | Cell::Bypass { .. } => true,
        Cell::No { .. } | Cell::Never | Cell::Bounded { .. } => false,
    }
}

/// Everyone asks so often (elections: starts).
fn scenario(nodes: usize, condition: usize, requests: u32) -> Scenario {
    Scenario {
        nodes: Some(nodes),
        entries: (requests != 1).then_some(requests),
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
