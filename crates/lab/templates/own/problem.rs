//! The problem: a counter that loses no increment. Everything that algorithms for it have in common.

use konklave_lab::algorithms::problem::{CostMeasures, Number, ProblemSheet, Property};
use konklave_lab::algorithms::{Algorithm, Metric, Pause, Problem, Setup, Watch, Workload};
use konklave_lab::process::{
    Application, ClientEvent, Condition, Lasting, Meter, Monitor, Process, ProcessId, ProcessMap,
    ProcessSet, Verdict, Violation,
};
use serde::{Deserialize, Serialize};

/// A client's request to its process.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Add one.
    Increment,
}

/// A process's answer to its client.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Indication {
    /// The increment has been made: this is the value after it.
    Counted(u32),
}

/// The name of the problem, and the parts that belong to it.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

impl<P: Algorithm + Process<Request = Request, Indication = Indication>> Problem<P> for Counting {
    type Application = Clients;
    type Monitor = NoLostIncrement;
    type Meter = Waits;
    type Summary = Summary;

    const SHEET: ProblemSheet = ProblemSheet {
        name: "counting",
        // The words for `check --property`; a judge below reports each violation by its own name.
        properties: &[
            Property::new("counted", &["no lost increment"], "no increment is lost"),
            Property::new(
                "limit",
                &["limit"],
                "no client is told more than K (limit:K)",
            )
            .with_number(Number::Required),
        ],
        guarantees: &["counted", "deadlock", "quiescence"],
        safety: &["no lost increment"],
        // The bars of pictures.
        conditions: &[Condition {
            what: Lasting::Waiting,
            name: "waits for the value",
            short: "",
            begins: &[ClientEvent::Request("Increment")],
            ends: &[ClientEvent::Indication("Counted")],
        }],
        // The columns of `costs`: names of fields of the summary.
        measures: CostMeasures {
            entries: "increments",
            wait: "mean_wait",
            ..CostMeasures::NONE
        },
        ..ProblemSheet::BLANK
    };

    fn application(workload: &Workload, setup: &Setup) -> Clients {
        let mut left = ProcessMap::new(&setup.group, 0);
        for (&p, &requests) in setup.group.members().iter().zip(&workload.requests) {
            left[p] = requests;
        }
        Clients {
            left,
            waiting: ProcessSet::new(),
        }
    }

    fn monitor(watch: &Watch, _setup: &Setup) -> NoLostIncrement {
        NoLostIncrement {
            values: Vec::new(),
            limit: watch.number("limit"),
        }
    }

    fn meter(setup: &Setup) -> Waits {
        let asked = ProcessMap::new(&setup.group, 0);
        Waits {
            served: asked.clone(),
            asked,
            total: 0,
            longest: 0,
        }
    }

    fn pause(Request::Increment: &Request) -> Pause {
        Pause::Think
    }

    fn summary(meter: &Waits, monitor: &NoLostIncrement, unit: f64) -> Summary {
        let increments: u64 = meter.served.values().sum();
        Summary {
            increments,
            highest_value: monitor.values.last().copied().unwrap_or(0),
            mean_wait: meter.total as f64 / unit / increments.max(1) as f64,
            longest_wait: meter.longest as f64 / unit,
        }
    }

    fn served(meter: &Waits) -> Vec<(ProcessId, u64)> {
        meter.served.iter().map(|(p, &times)| (p, times)).collect()
    }

    fn measured(meter: &Waits, metric: Metric, unit: f64) -> Option<f64> {
        (metric == Metric::EntryDelay).then(|| meter.longest as f64 / unit)
    }
}

/// The clients: each increments a number of times and waits for the value in between.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Clients {
    /// How many increments each still wants; the largest number means for ever.
    left: ProcessMap<u32>,
    waiting: ProcessSet,
}

impl<P: Process<Request = Request, Indication = Indication>> Application<P> for Clients {
    fn next(&self, at: ProcessId) -> Option<Request> {
        (self.left[at] > 0 && !self.waiting.contains(at)).then_some(Request::Increment)
    }

    fn on_request(&mut self, at: ProcessId, _request: &Request) {
        if self.left[at] != u32::MAX {
            self.left[at] = self.left[at].saturating_sub(1);
        }
        self.waiting.insert(at);
    }

    fn on_indication(&mut self, at: ProcessId, _indication: &Indication) {
        self.waiting.remove(at);
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.waiting.remove(at);
    }

    fn waiting(&self) -> Vec<ProcessId> {
        self.waiting.iter().collect()
    }
}

/// The judge: no two increments lead to the same value. If they do, one of them was lost.
///
/// It is part of the state that the checker explores, so it keeps no more than it needs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct NoLostIncrement {
    /// The values that clients were told, in ascending order.
    values: Vec<u32>,
    /// The highest value that a client may be told, with `--property limit:K`.
    limit: Option<u32>,
}

impl<P: Process<Request = Request, Indication = Indication>> Monitor<P> for NoLostIncrement {
    type Tag = ();

    fn on_indication(&mut self, at: ProcessId, Indication::Counted(value): &Indication) -> Verdict {
        match self.values.binary_search(value) {
            Err(place) => self.values.insert(place, *value),
            Ok(_) => {
                let detail = format!("{at} is told {value}, which was told before");
                return Err(Violation::new("no lost increment", detail));
            }
        }
        if self.limit.is_some_and(|limit| *value > limit) {
            let detail = format!("{at} is told {value}");
            return Err(Violation::new("limit", detail));
        }
        Ok(())
    }
}

/// The meter: how long each increment took.
#[derive(Debug)]
pub struct Waits {
    asked: ProcessMap<u64>,
    served: ProcessMap<u64>,
    total: u64,
    longest: u64,
}

impl<P: Process<Request = Request, Indication = Indication>> Meter<P> for Waits {
    fn on_request(&mut self, now: u64, at: ProcessId, _request: &Request) {
        self.asked[at] = now;
    }

    fn on_indication(&mut self, now: u64, at: ProcessId, _indication: &Indication) {
        let wait = now - self.asked[at];
        self.served[at] += 1;
        self.total += wait;
        self.longest = self.longest.max(wait);
    }
}

/// The figures that `run` prints under the name of the problem; times in T.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// The number of increments that clients were told of.
    pub increments: u64,
    /// The highest value that a client was told.
    pub highest_value: u32,
    /// From request to value, on average.
    pub mean_wait: f64,
    /// From request to value, at worst.
    pub longest_wait: f64,
}
