//! Group communication with many members, beside W2 and W3 in the same run.

use std::sync::Arc;

use konklave_algorithms::group::virtual_synchrony::VirtualSynchrony;
use konklave_algorithms::multicast::sequencer::Sequencer;
use konklave_algorithms::multicast::srm::Srm;
use konklave_algorithms::multicast::token_order::TokenOrder;
use konklave_algorithms::{Setup, Workload};
use konklave_process::topology::Hops;
use konklave_process::{Group, ProcessId, Rng, Topology};
use konklave_sim::{Config, Delay, Pace};
use serde_json::json;

use crate::measure::{Best, apart};
use crate::say;
use crate::workloads::{Taken, What, run_algorithm};

/// The target: an event of a group takes at most so many times as long as one of W2 or W3.
const TARGET: f64 = 3.0;

/// The workload of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Crowd {
    /// Scalable reliable multicast on a tree of 10⁴: each of ten messages is lost on the way to many.
    Srm,
    /// A sequencer, 100 members, 10⁴ multicasts: 10⁶ messages.
    Sequencer,
    /// The same with 10⁶ multicasts: 10⁸ messages.
    SequencerLong,
    /// A token ring of 100 members, 10⁴ multicasts.
    TokenOrder,
    /// 100 members of which 30 crash, one after the other: 30 view changes.
    Views,
}

const ALL: [Crowd; 5] =
    [Crowd::Srm, Crowd::Sequencer, Crowd::SequencerLong, Crowd::TokenOrder, Crowd::Views];

impl Crowd {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Srm => "group:srm",
            Self::Sequencer => "group:sequencer",
            Self::SequencerLong => "group:sequencer-long",
            Self::TokenOrder => "group:token-order",
            Self::Views => "group:views",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|crowd| crowd.name() == name)
    }

    /// The name of the workload in the report.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Srm => "srm, tree of 10⁴, 10 losses",
            Self::Sequencer => "sequencer, 100 members, 10⁴ sent",
            Self::SequencerLong => "sequencer, 100 members, 10⁶ sent",
            Self::TokenOrder => "token-order, 100 members, 10⁴ sent",
            Self::Views => "virtual-synchrony, 100, 30 crash",
        }
    }

    /// Runs the workload once.
    pub(crate) fn simulate(self) -> Result<Taken, String> {
        match self {
            Self::Srm => srm(10_000, 10),
            Self::Sequencer => run_algorithm::<Sequencer>(complete(), all_send(100), &paced()),
            Self::SequencerLong => {
                run_algorithm::<Sequencer>(complete(), all_send(10_000), &paced())
            }
            Self::TokenOrder => run_algorithm::<TokenOrder>(complete(), all_send(100), &paced()),
            Self::Views => {
                let crash = |i: u32| format!("crash:{}@{}", 70 + i, 20 * i + 1).parse();
                let faults = (0..30).map(crash).collect::<Result<_, String>>()?;
                let config = Config { faults, detect_after: Some(3.0), ..Config::default() };
                run_algorithm::<VirtualSynchrony>(complete(), all_send(0), &config)
            }
        }
    }
}

fn complete() -> Setup {
    Setup::new(Group::of(100), Topology::complete(100))
}

fn all_send(times: u32) -> Workload {
    Workload { initiators: Vec::new(), requests: vec![times; 100] }
}

/// About one multicast for each T, by a random member of the hundred.
fn paced() -> Config {
    Config { think: Pace::Exponential(100.0), ..Config::default() }
}

/// The first member of a tree sends. Each message is lost on the edge with the most members behind it.
fn srm(n: usize, losses: u32) -> Result<Taken, String> {
    let mut rng = Rng::new(9);
    let mut links = vec![0; n];
    let mut edges = Vec::new();
    for child in 1..n {
        let parent = loop {
            let place = rng.below(child as u32) as usize;
            if links[place] < 4 {
                break place;
            }
        };
        links[parent] += 1;
        links[child] += 1;
        edges.push((parent, child));
    }
    let tree = Topology::from_edges("tree", n, edges).map_err(|e| e.to_string())?;
    let group = Group::of(n);
    let hops = Hops::new(&tree, &group);
    let behind: Vec<String> = hops.beyond(1).iter().map(|p| p.0.to_string()).collect();
    let mut setup = Setup::new(group, tree);
    setup.chosen.insert("sessions", "0".into());
    setup.chosen.insert("timers", "fixed".into());
    let mut requests = vec![0; n];
    requests[0] = 2 * losses;
    let times: Vec<f64> = (0..losses).map(|i| f64::from(i) * 1000.0).collect();
    let lose = |at: &f64| format!("partition:{}@{at}-{}", behind.join(","), at + 0.001).parse();
    let config = Config {
        delay: Delay::Hops(Arc::new(hops)),
        faults: times.iter().map(lose).collect::<Result<_, String>>()?,
        script: times.iter().flat_map(|at| [*at, at + 0.01]).map(|at| (ProcessId(0), at)).collect(),
        ..Config::default()
    };
    run_algorithm::<Srm>(setup, Workload { initiators: Vec::new(), requests }, &config)
}

/// Measures all of them beside W2 and W3, in processor time where it is known. The comparison is by event: a timer
/// that runs out is as much work as a message that arrives. The number of messages is printed, too.
pub(crate) fn group(as_json: bool, quick: bool) -> Result<(), String> {
    let runs = if quick { 1 } else { 3 };
    let (w2, w3) = (apart(What::Mutex, false, 3 * runs)?, apart(What::Wave, false, runs)?);
    if !as_json {
        say(&format!(
            "{:<36} {:>10} {:>7} {:>10} {:>7} {:>6} {:>6} {:>8}",
            "group", "messages", "ns", "events", "ns", "× W2", "× W3", "peak MB"
        ))?;
        row("W2 Ricart–Agrawala, 100", &w2, [&w2, &w3])?;
        row("W3 echo, 10⁵", &w3, [&w2, &w3])?;
    }
    let mut slow = 0;
    for crowd in ALL.into_iter().filter(|crowd| !quick || *crowd != Crowd::SequencerLong) {
        let runs = if crowd == Crowd::SequencerLong { 1 } else { runs };
        let best = apart(What::Crowd(crowd), false, runs)?;
        let ratios = [best.ratios(&w2), best.ratios(&w3)];
        slow += usize::from(ratios.iter().all(|[_, event]| *event > TARGET));
        if as_json {
            let line = json!({
                "group": crowd.name(),
                "messages": best.messages,
                "events": best.events,
                "ns_per_message": best.wall_nanos,
                "cpu_ns_per_message": best.cpu_nanos,
                "ns_per_event": best.per_event(),
                "w2_ns_per_event": w2.per_event(),
                "w3_ns_per_event": w3.per_event(),
                "message_ratio_w2": ratios[0][0],
                "message_ratio_w3": ratios[1][0],
                "event_ratio_w2": ratios[0][1],
                "event_ratio_w3": ratios[1][1],
                "peak_mb": best.peak_kilobytes as f64 / 1024.0,
                "runs": runs,
            });
            say(&line.to_string())?;
        } else {
            row(crowd.title(), &best, [&w2, &w3])?;
        }
    }
    if slow > 0 && !as_json {
        say(&format!("{slow} take more than {TARGET} times as long as W2 and W3 for an event"))?;
    }
    Ok(())
}

/// One row; its ratios are per event.
fn row(title: &str, best: &Best, beside: [&Best; 2]) -> Result<(), String> {
    let [w2, w3] = beside.map(|spine| best.ratios(spine)[1]);
    say(&format!(
        "{title:<36} {:>10} {:>7.1} {:>10} {:>7.1} {w2:>6.2} {w3:>6.2} {:>8.1}",
        best.messages,
        best.per_message(),
        best.events,
        best.per_event(),
        best.peak_kilobytes as f64 / 1024.0,
    ))
}
