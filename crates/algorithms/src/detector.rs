//! Failure detection: the problem. The files below solve it.
//!
//! The application asks nothing. The detector reports a process as [`Suspect`](Indication::Suspect)ed
//! of a crash, and [`Restore`](Indication::Restore)s it if the suspicion was wrong (Chandra, Toueg).

pub mod heartbeat;
pub mod phi_accrual;
mod sheet;

pub use sheet::SHEET;

use std::collections::BTreeMap;

use konklave_process::{
    Application, End, Group, Meter, Monitor, NoRequest, Process, ProcessId, ProcessMap, ProcessSet,
    Verdict, Violation,
};
use serde::{Deserialize, Serialize};

use crate::{Algorithm, Pause, Problem, ProblemSheet, Setup, Watch, Workload};

/// The indications to the application.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Indication {
    /// This process seems to have crashed.
    Suspect(ProcessId),
    /// The suspicion was wrong: the process is alive.
    Restore(ProcessId),
}

/// The problem of failure detection.
#[derive(Clone, Copy, Debug)]
pub struct Detector;

impl<P: Algorithm + Process<Request = NoRequest, Indication = Indication>> Problem<P> for Detector {
    type Application = Nobody;
    type Monitor = Properties;
    type Meter = Measures;
    type Summary = Summary;

    const SHEET: ProblemSheet = SHEET;
    const ENDLESS: bool = true;

    fn application(_workload: &Workload, _setup: &Setup) -> Nobody {
        Nobody
    }

    fn monitor(watch: &Watch, setup: &Setup) -> Properties {
        Properties::new(&setup.group, watch.slips)
    }

    fn meter(_setup: &Setup) -> Measures {
        Measures::default()
    }

    fn pause(request: &NoRequest) -> Pause {
        match *request {}
    }

    fn summary(meter: &Measures, monitor: &Properties, unit: f64) -> Summary {
        let times = &meter.detection;
        Summary {
            suspicions: meter.suspicions,
            false_suspicions: meter.false_suspicions,
            detection_mean: (!times.is_empty())
                .then(|| times.iter().sum::<u64>() as f64 / times.len() as f64 / unit),
            detection_max: times.iter().max().map(|&t| t as f64 / unit),
            suspected: monitor.suspected.iter().map(|(p, s)| (p, s.clone())).collect(),
        }
    }
}

/// The application: it asks nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Nobody;

impl<P: Process<Request = NoRequest>> Application<P> for Nobody {
    fn next(&self, _: ProcessId) -> Option<NoRequest> {
        None
    }
    fn on_request(&mut self, _: ProcessId, request: &NoRequest) {
        match *request {}
    }
    fn on_indication(&mut self, _: ProcessId, _: &P::Indication) {}
    fn waiting(&self) -> Vec<ProcessId> {
        Vec::new()
    }
}

/// The monitor of the two properties. Completeness: in the end every live process suspects every
/// crashed one. Accuracy: in the end no live process is suspected; with a limit on wrong suspicions,
/// no process exceeds it on the way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Properties {
    suspected: ProcessMap<ProcessSet>,
    slips: Option<Slips>,
}

/// The number of wrong suspicions, by suspecting and suspected process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Slips {
    /// The limit for each pair.
    most: u32,
    counts: BTreeMap<(ProcessId, ProcessId), u32>,
    down: ProcessSet,
}

impl Properties {
    fn new(group: &Group, most: Option<u32>) -> Self {
        let (counts, down) = (BTreeMap::new(), ProcessSet::new());
        let slips = most.map(|most| Slips { most, counts, down });
        Self { suspected: ProcessMap::new(group, ProcessSet::new()), slips }
    }

    /// Counts the suspicion of `whom` by `at`, if it is wrong.
    fn slipped(&mut self, at: ProcessId, whom: ProcessId) -> Verdict {
        let Some(slips) = self.slips.as_mut().filter(|slips| !slips.down.contains(whom)) else {
            return Ok(());
        };
        let count = slips.counts.entry((at, whom)).or_default();
        *count += 1;
        if *count <= slips.most {
            return Ok(());
        }
        let detail = format!("{at} suspects {whom}, which is up, for the {count}. time");
        Err(Violation::new("accuracy", detail))
    }
}

impl<P: Process<Request = NoRequest, Indication = Indication>> Monitor<P> for Properties {
    type Tag = ();

    fn view(&self, _process: &P) -> Option<u64> {
        Some(0)
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) -> Verdict {
        let changed = match *indication {
            Indication::Suspect(p) => self.suspected[at].insert(p),
            Indication::Restore(p) => self.suspected[at].remove(p),
        };
        if changed {
            return match *indication {
                Indication::Suspect(p) => self.slipped(at, p),
                Indication::Restore(_) => Ok(()),
            };
        }
        let detail = match *indication {
            Indication::Suspect(p) => format!("{at} suspects {p}, and did so before"),
            Indication::Restore(p) => format!("{at} restores {p}, whom it did not suspect"),
        };
        Err(Violation::new("consistency", detail))
    }

    fn on_crash(&mut self, at: ProcessId) {
        if let Some(slips) = &mut self.slips {
            slips.down.insert(at);
        }
    }

    fn on_restart(&mut self, at: ProcessId) {
        self.suspected[at] = ProcessSet::new();
        if let Some(slips) = &mut self.slips {
            slips.down.remove(at);
            slips.counts.retain(|(by, _), _| *by != at);
        }
    }

    fn at_end(&self, end: &End) -> Verdict {
        let crashed: ProcessSet =
            self.suspected.iter().map(|(p, _)| p).filter(|p| !end.alive.contains(*p)).collect();
        for (p, suspected) in self.suspected.iter().filter(|(p, _)| end.alive.contains(*p)) {
            if let Some(dead) = crashed.difference(suspected).lowest() {
                let detail = format!("{p} does not suspect {dead}, which has crashed");
                return Err(Violation::new("completeness", detail));
            }
            if let Some(alive) = suspected.intersection(&end.alive).lowest() {
                let detail = format!("{p} suspects {alive}, which is alive");
                return Err(Violation::new("accuracy", detail));
            }
        }
        Ok(())
    }
}

/// The measures of suspicions.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    /// The processes that are down, and since when.
    crashed: BTreeMap<ProcessId, u64>,
    suspicions: u64,
    false_suspicions: u64,
    detection: Vec<u64>,
}

impl<P: Process<Request = NoRequest, Indication = Indication>> Meter<P> for Measures {
    fn on_request(&mut self, _: u64, _: ProcessId, request: &NoRequest) {
        match *request {}
    }

    fn on_indication(&mut self, now: u64, _at: ProcessId, indication: &Indication) {
        let Indication::Suspect(suspect) = *indication else { return };
        self.suspicions += 1;
        match self.crashed.get(&suspect) {
            Some(crashed) => self.detection.push(now - crashed),
            None => self.false_suspicions += 1,
        }
    }

    fn on_crash(&mut self, now: u64, at: ProcessId) {
        self.crashed.insert(at, now);
    }

    fn on_restart(&mut self, at: ProcessId) {
        self.crashed.remove(&at);
    }
}

/// The measures of a run of a failure detector; times in units of T.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The number of suspicions.
    pub suspicions: u64,
    /// The number of wrong ones.
    pub false_suspicions: u64,
    /// The mean time from a crash to a suspicion.
    pub detection_mean: Option<f64>,
    /// The longest time from a crash to a suspicion.
    pub detection_max: Option<f64>,
    /// The processes that each process suspects in the end.
    pub suspected: Vec<(ProcessId, ProcessSet)>,
}
