//! Every election that is meant for large groups, beside the basic workload (W1 or W3) of the same kind.

use konklave_algorithms::election::{
    Election, Indication, Request, adoption::Adoption, chang_roberts::ChangRoberts,
    dolev_klawe_rodeh::DolevKlaweRodeh, extinction::Extinction, firewire::FireWire,
    franklin::Franklin, hirschberg_sinclair::HirschbergSinclair, itai_rodeh::ItaiRodeh,
    ring_list::RingList, tree_wave::TreeWave, virtual_tree::VirtualTree,
    virtual_tree_wave::VirtualTreeWave,
};
use konklave_algorithms::{Algorithm, Setup, Workload};
use konklave_process::{Group, Process, ProcessId, Rng, Topology};
use konklave_sim::{Config, Delay};
use serde_json::json;

use crate::measure::{Best, apart};
use crate::workloads::{Taken, What, permutation, random_graph, run_algorithm};
use crate::{Options, say};

/// One election of one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Contest {
    /// Its place in the list of contestants.
    which: usize,
    /// The number of nodes.
    n: usize,
    /// Whether all processes start, or one.
    all: bool,
}

/// The topology of an algorithm's workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ground {
    /// A ring in one direction, compared with W1 of the same size.
    Directed,
    /// A ring in both directions, compared with W1 of the same size.
    Ring,
    /// A random tree, compared with W3.
    Tree,
    /// A random graph with ten edges a node, compared with W3.
    Graph,
}

/// An algorithm that takes part.
struct Contestant {
    name: &'static str,
    ground: Ground,
    /// The sizes; `--quick` leaves out the last.
    sizes: &'static [usize],
    /// Whether all processes start, or one; for each workload of the algorithm.
    all: &'static [bool],
    run: fn(Setup, Workload, &Config) -> Result<Taken, String>,
}

const RINGS: &[usize] = &[1000, 100_000, 1_000_000];
const BOTH: &[bool] = &[false, true];

/// The algorithms. An algorithm whose messages carry a growing list takes quadratic time on any simulator.
static CONTESTANTS: &[Contestant] = &[
    contestant::<ChangRoberts>(Ground::Directed, RINGS, &[true]),
    contestant::<DolevKlaweRodeh>(Ground::Directed, RINGS, &[true]),
    contestant::<Franklin>(Ground::Ring, RINGS, &[true]),
    contestant::<HirschbergSinclair>(Ground::Ring, RINGS, &[true]),
    contestant::<ItaiRodeh>(Ground::Directed, RINGS, &[true]),
    contestant::<RingList>(Ground::Directed, &[1000, 10_000], &[false]),
    contestant::<Extinction>(Ground::Graph, &[1000, 100_000], BOTH),
    contestant::<Adoption>(Ground::Graph, &[1000, 100_000], BOTH),
    contestant::<VirtualTree>(Ground::Graph, &[1000, 100_000], &[false]),
    contestant::<VirtualTreeWave>(Ground::Graph, &[1000, 100_000], &[false]),
    contestant::<TreeWave>(Ground::Tree, &[1000, 1_000_000], BOTH),
    contestant::<FireWire>(Ground::Tree, &[1000, 1_000_000], &[true]),
];

const fn contestant<P>(ground: Ground, sizes: &'static [usize], all: &'static [bool]) -> Contestant
where
    P: Algorithm<Problem = Election> + Process<Request = Request, Indication = Indication>,
{
    Contestant { name: P::SHEET.name, ground, sizes, all, run: run_algorithm::<P> }
}

impl Contest {
    fn contestant(self) -> &'static Contestant {
        &CONTESTANTS[self.which]
    }

    /// The name of the contest, such as `election:franklin:1000:all`.
    pub(crate) fn name(self) -> String {
        let who = if self.all { "all" } else { "one" };
        format!("election:{}:{}:{who}", self.contestant().name, self.n)
    }

    /// The contest of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut words = name.strip_prefix("election:")?.split(':');
        let (algorithm, n, who) = (words.next()?, words.next()?, words.next()?);
        let which = CONTESTANTS.iter().position(|c| c.name == algorithm)?;
        let all = match who {
            "all" => true,
            "one" => false,
            _ => return None,
        };
        let n = n.parse().ok().filter(|n| *n > 20)?;
        words.next().is_none().then_some(Self { which, n, all })
    }

    /// The name of the workload in the report.
    pub(crate) fn title(self) -> String {
        let who = if self.all { "all" } else { "one" };
        format!("{} n={}, {who}", self.contestant().name, self.n)
    }

    /// The basic workload with which the contest is compared.
    fn measure(self) -> What {
        match self.contestant().ground {
            Ground::Directed | Ground::Ring => What::Ring(self.n),
            Ground::Tree | Ground::Graph => What::Wave,
        }
    }

    /// Runs the contest once in the simulator.
    pub(crate) fn simulate(self) -> Result<Taken, String> {
        let n = self.n;
        let topology = match self.contestant().ground {
            Ground::Directed => Topology::directed_ring(n),
            Ground::Ring => Topology::ring(n),
            Ground::Tree => Topology::random_tree(n, &mut Rng::new(42)),
            Ground::Graph => random_graph(n)?,
        };
        // A random graph is as random with ascending ids, and W3 has them too.
        let ids = match self.contestant().ground {
            Ground::Directed | Ground::Ring => permutation(n),
            Ground::Tree | Ground::Graph => (0..n as u32).map(ProcessId).collect(),
        };
        let group = Group::new(ids.clone()).map_err(|e| e.to_string())?;
        let first: Vec<ProcessId> = ids[..1].to_vec();
        let initiators = if self.all { ids } else { first };
        let config = match self.measure() {
            // These algorithms need ordered channels. With varying delays, that takes a table of channels.
            What::Wave if self.wants_order() => Config::default(),
            What::Wave => {
                Config { delay: Delay::Uniform(0.001, 1.0), fifo: false, ..Config::default() }
            }
            What::Ring(_) | What::Mutex | What::Election(_) | What::Lock(_) | What::Crowd(_) => {
                Config::default()
            }
        };
        let setup = Setup::new(group, topology);
        (self.contestant().run)(setup, Workload { initiators, requests: Vec::new() }, &config)
    }

    fn wants_order(self) -> bool {
        self.contestant().name.starts_with("virtual-tree")
    }
}

/// The table of all contests.
pub(crate) fn elections(options: &Options) -> Result<(), String> {
    if !options.json {
        say(&format!(
            "{:<38} {:>11} {:>8} {:>8} {:>6} {:>8}  {:>6}",
            "election", "messages", "ns wall", "ns cpu", "ratio", "peak MB", "beside"
        ))?;
    }
    let mut measured: Vec<(What, Best)> = Vec::new();
    for (which, contestant) in CONTESTANTS.iter().enumerate() {
        let sizes = if options.quick { &contestant.sizes[..1] } else { contestant.sizes };
        for (&n, &all) in sizes.iter().flat_map(|n| contestant.all.iter().map(move |all| (n, all)))
        {
            let contest = Contest { which, n, all };
            let beside = contest.measure();
            let known = measured.iter().find(|(what, _)| *what == beside).map(|(_, best)| *best);
            let spine = match known {
                Some(best) => best,
                None => {
                    let best = apart(beside, false, runs(beside))?;
                    measured.push((beside, best));
                    best
                }
            };
            row(contest, &spine, options)?;
        }
    }
    Ok(())
}

fn runs(what: What) -> u32 {
    match what {
        What::Election(Contest { n, .. }) | What::Ring(n) if n < 100_000 => 9,
        _ => 3,
    }
}

fn row(contest: Contest, spine: &Best, options: &Options) -> Result<(), String> {
    let what = What::Election(contest);
    let best = apart(what, false, runs(what))?;
    let beside = contest.measure();
    let [ratio, _] = best.ratios(spine);
    let spine_nanos = spine.per_message();
    let megabytes = best.peak_kilobytes as f64 / 1024.0;
    if options.json {
        let row = json!({
            "workload": what.name(),
            "messages": best.messages,
            "ns_per_message": best.wall_nanos,
            "cpu_ns_per_message": best.cpu_nanos,
            "beside": beside.name(),
            "beside_ns_per_message": spine_nanos,
            "ratio": ratio,
            "peak_mb": megabytes,
        });
        return say(&row.to_string());
    }
    say(&format!(
        "{:<38} {:>11} {:>8.1} {:>8} {:>6.2} {:>8.1}  {} {:.1}",
        what.title(),
        best.messages,
        best.wall_nanos,
        best.cpu_nanos.map_or("-".into(), |nanos| format!("{nanos:.1}")),
        ratio,
        megabytes,
        beside.name(),
        spine_nanos,
    ))
}
