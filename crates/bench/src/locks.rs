//! The locks with as many processes as they are meant for, beside W2 in the same run.

use konklave_algorithms::mutex::maekawa::Maekawa;
use konklave_algorithms::mutex::naimi_trehel::NaimiTrehel;
use konklave_algorithms::mutex::raymond::Raymond;
use konklave_algorithms::mutex::suzuki_kasami::SuzukiKasami;
use konklave_algorithms::{Setup, Workload};
use konklave_process::{Group, Topology};
use konklave_sim::{Config, Delay, Pace};
use serde_json::json;

use crate::measure::{Best, apart};
use crate::workloads::{Taken, What, run_algorithm, timed};
use crate::{floors, say};

/// The target: an event of a large lock takes at most so many times as long as one of W2.
const TARGET: f64 = 3.0;

/// The number of processes that contend in W2, and in the workloads that resemble it.
const FEW: usize = 100;

/// A lock with as many processes as it is meant for, and the load on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lock {
    kind: Kind,
    load: Load,
}

/// How many processes request the lock, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Load {
    /// A hundred processes, so seldom that they hardly meet: only the lock's own messages.
    Low,
    /// A hundred processes, again and again, as in W2. Some locks need fewer messages than entries then.
    Few,
    /// All processes at once.
    All,
}

const LOADS: [Load; 3] = [Load::Low, Load::Few, Load::All];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Raymond on a binary tree of 10⁵.
    Raymond,
    /// Naimi and Tréhel, 10⁵.
    NaimiTrehel,
    /// Maekawa by a grid of 100 × 100.
    MaekawaGrid,
    /// Maekawa by the projective plane of order 101.
    MaekawaPlane,
    /// Suzuki and Kasami, 1000.
    SuzukiKasami,
}

const KINDS: [Kind; 5] =
    [Kind::Raymond, Kind::NaimiTrehel, Kind::MaekawaGrid, Kind::MaekawaPlane, Kind::SuzukiKasami];

impl Lock {
    fn all() -> impl Iterator<Item = Self> {
        KINDS.into_iter().flat_map(|kind| LOADS.map(|load| Self { kind, load }))
    }

    pub(crate) fn name(self) -> String {
        let load = match self.load {
            Load::Low => "low",
            Load::Few => "few",
            Load::All => "all",
        };
        format!("{}:{load}", self.kind.name())
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().find(|lock| lock.name() == name)
    }

    /// The name of the workload in the report.
    pub(crate) fn title(self) -> String {
        match self.load {
            Load::Low => format!("{}, low load", self.kind.title()),
            Load::Few | Load::All => {
                format!("{}, {} contend", self.kind.title(), self.contenders())
            }
        }
    }

    fn contenders(self) -> usize {
        match self.load {
            Load::Low | Load::Few => FEW,
            Load::All => self.kind.nodes(),
        }
    }

    /// The number of requests of each process: a run has some millions of messages.
    fn times(self) -> u32 {
        match (self.kind, self.load) {
            (Kind::Raymond | Kind::NaimiTrehel, Load::Low) => 500,
            (Kind::Raymond | Kind::NaimiTrehel, Load::Few) => 5000,
            (Kind::Raymond | Kind::NaimiTrehel, Load::All) => 5,
            (Kind::MaekawaGrid | Kind::MaekawaPlane, Load::Low | Load::Few) => 30,
            (Kind::MaekawaGrid | Kind::MaekawaPlane, Load::All) => 1,
            (Kind::SuzukiKasami, Load::Low | Load::Few) => 30,
            (Kind::SuzukiKasami, Load::All) => 3,
        }
    }

    fn entries(self) -> u64 {
        self.contenders() as u64 * u64::from(self.times())
    }

    /// Runs the workload once, with delays of 1 to 1000 ticks and 10 ticks inside, as in W2.
    pub(crate) fn simulate(self) -> Result<Taken, String> {
        let n = self.kind.nodes();
        let topology = match self.kind {
            Kind::Raymond => Topology::kary_tree(n, 2),
            _ => Topology::complete(n),
        };
        let mut setup = Setup::new(Group::of(n), topology);
        if let Some(quorums) = self.kind.quorums() {
            setup.chosen.insert("quorums", quorums.into());
        }
        let mut requests = vec![0; n];
        for i in 0..self.contenders() {
            requests[i * n / self.contenders()] = self.times();
        }
        let workload = Workload { initiators: Vec::new(), requests };
        let config = Config {
            seed: 1,
            fifo: false,
            delay: Delay::Uniform(0.001, 1.0),
            hold: Pace::Constant(0.01),
            // An entry takes some tens of units in Raymond's tree, so a hundred processes must pause far longer.
            think: match self.load {
                Load::Low => Pace::Exponential(10_000.0),
                Load::Few | Load::All => Pace::Constant(0.0),
            },
            ..Config::default()
        };
        match self.kind {
            Kind::Raymond => run_algorithm::<Raymond>(setup, workload, &config),
            Kind::NaimiTrehel => run_algorithm::<NaimiTrehel>(setup, workload, &config),
            Kind::MaekawaGrid | Kind::MaekawaPlane => {
                run_algorithm::<Maekawa>(setup, workload, &config)
            }
            Kind::SuzukiKasami => run_algorithm::<SuzukiKasami>(setup, workload, &config),
        }
    }
}

impl Lock {
    /// Runs the floor of the workload once, if it has one.
    pub(crate) fn floor(self) -> Result<Taken, String> {
        match (self.kind, self.load) {
            (Kind::MaekawaGrid, Load::All) => Ok(timed(|| floors::maekawa_grid(100, 1))),
            _ => Err("of the locks beside W2, only maekawa-grid:all has a floor".into()),
        }
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Raymond => "raymond",
            Self::NaimiTrehel => "naimi-trehel",
            Self::MaekawaGrid => "maekawa-grid",
            Self::MaekawaPlane => "maekawa-plane",
            Self::SuzukiKasami => "suzuki-kasami",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Raymond => "Raymond, binary tree",
            Self::NaimiTrehel => "Naimi–Tréhel",
            Self::MaekawaGrid => "Maekawa, grid",
            Self::MaekawaPlane => "Maekawa, plane",
            Self::SuzukiKasami => "Suzuki–Kasami",
        }
    }

    fn nodes(self) -> usize {
        match self {
            Self::Raymond | Self::NaimiTrehel => 100_000,
            Self::MaekawaGrid => 10_000,
            // 101² + 101 + 1: the first projective plane with more than 10⁴ points.
            Self::MaekawaPlane => 10_303,
            Self::SuzukiKasami => 1000,
        }
    }

    fn quorums(self) -> Option<&'static str> {
        match self {
            Self::MaekawaGrid => Some("grid"),
            Self::MaekawaPlane => Some("plane"),
            Self::Raymond | Self::NaimiTrehel | Self::SuzukiKasami => None,
        }
    }
}

/// Measures all of them beside W2, in processor time where it is known. The comparison is by event, since some locks
/// need fewer messages than entries and each entry is two requests. The number of messages is printed, too.
pub(crate) fn mutex(as_json: bool, quick: bool) -> Result<(), String> {
    let runs = if quick { 1 } else { 5 };
    let w2 = apart(What::Mutex, false, 3 * runs)?;
    if !as_json {
        say(&format!(
            "{:<38} {:>7} {:>8} {:>9} {:>7} {:>6} {:>9} {:>7} {:>6} {:>8}",
            "lock", "nodes", "entries", "messages", "ns", "× W2", "events", "ns", "× W2", "peak MB"
        ))?;
        row("W2 Ricart–Agrawala, 100 contend", 100, 10_000, &w2, [1.0, 1.0])?;
    }
    let mut slow = 0;
    for lock in Lock::all() {
        let best = apart(What::Lock(lock), false, runs)?;
        let ratios = best.ratios(&w2);
        slow += usize::from(ratios[1] > TARGET);
        if as_json {
            let line = json!({
                "lock": lock.name(),
                "nodes": lock.kind.nodes(),
                "contenders": lock.contenders(),
                "entries": lock.entries(),
                "messages": best.messages,
                "events": best.events,
                "ns_per_message": best.wall_nanos,
                "cpu_ns_per_message": best.cpu_nanos,
                "w2_ns_per_message": w2.wall_nanos,
                "w2_cpu_ns_per_message": w2.cpu_nanos,
                "ns_per_event": best.per_event(),
                "w2_ns_per_event": w2.per_event(),
                "message_ratio": ratios[0],
                "event_ratio": ratios[1],
                "peak_mb": best.peak_kilobytes as f64 / 1024.0,
                "runs": runs,
            });
            say(&line.to_string())?;
        } else {
            row(&lock.title(), lock.kind.nodes(), lock.entries(), &best, ratios)?;
        }
    }
    if slow > 0 && !as_json {
        say(&format!("{slow} take more than {TARGET} times as long as W2 for an event"))?;
    }
    Ok(())
}

fn row(
    title: &str,
    nodes: usize,
    entries: u64,
    best: &Best,
    [message, event]: [f64; 2],
) -> Result<(), String> {
    say(&format!(
        "{title:<38} {nodes:>7} {entries:>8} {:>9} {:>7.1} {message:>6.2} {:>9} {:>7.1} {event:>6.2} \
         {:>8.1}",
        best.messages,
        best.per_message(),
        best.events,
        best.per_event(),
        best.peak_kilobytes as f64 / 1024.0,
    ))
}
