//! Every election with faults: a crash at every step of a run, with and without a restart; every
//! message lost once; a partition that heals. Under each fault an epoch has one leader. If an algorithm
//! promises to survive the fault, all follow one live leader in the end. `KONKLAVE_LONG=1`: 1000 seeds each.

use std::fmt::Write as _;

use konklave_algorithms::Algorithm;
use konklave_algorithms::election::adoption::Adoption;
use konklave_algorithms::election::bully;
use konklave_algorithms::election::bully_1982::Bully1982;
use konklave_algorithms::election::chang_roberts;
use konklave_algorithms::election::dolev_klawe_rodeh::DolevKlaweRodeh;
use konklave_algorithms::election::extinction::Extinction;
use konklave_algorithms::election::firewire::FireWire;
use konklave_algorithms::election::franklin::Franklin;
use konklave_algorithms::election::hirschberg_sinclair::HirschbergSinclair;
use konklave_algorithms::election::invitation::Invitation;
use konklave_algorithms::election::itai_rodeh::ItaiRodeh;
use konklave_algorithms::election::quorum::Quorum;
use konklave_algorithms::election::ring_list;
use konklave_algorithms::election::tree_wave::TreeWave;
use konklave_algorithms::election::virtual_tree::VirtualTree;
use konklave_algorithms::election::virtual_tree_wave::VirtualTreeWave;
use konklave_algorithms::election::{Election, Indication, Request};
use konklave_process::{Inspect, Portable, ProcessId, Rng, Topology};
use konklave_sim::{Delay, Ending};
use konklave_testkit::{Case, Seen};

/// The faults of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Strike {
    /// A process crashes, right after a step.
    Crash,
    /// A process crashes, right after a step, and restarts.
    Return,
    /// A message is lost.
    Loss,
    /// Some are cut off from the others for a while.
    Partition,
}

const ALL: [Strike; 4] = [Strike::Crash, Strike::Return, Strike::Loss, Strike::Partition];

/// The last fault strikes, or is healed, before this time.
const HEALED: u32 = 550;

/// So many steps of an endless run are struck, one after the other.
const MOST_STEPS: u64 = 150;

fn long() -> bool {
    std::env::var_os("KONKLAVE_LONG").is_some()
}

fn seeds() -> u64 {
    if long() { 1000 } else { 50 }
}

/// For so many seeds, a fault strikes at every step; for the other seeds, at one step.
fn thorough() -> u64 {
    if long() { 20 } else { 2 }
}

/// A run with faults, and what became of it.
fn struck<P>(case: &Case<P>, faults: &[String]) -> Result<Seen<P>, String>
where
    P: Algorithm<Problem = Election> + Portable<Request = Request, Indication = Indication>,
{
    let case = faults.iter().fold(case.clone(), |case, fault| case.fault(fault));
    let seen = case.simulate();
    let unsafe_ones = ["one leader", "growing epochs", "acyclic parents"];
    // Where a crash divides a bus, each part has its own root; `settled` looks at the parts.
    let divided = P::SHEET.name == "firewire" && faults[0].starts_with("crash");
    let wrong = |v: &&String| {
        unsafe_ones.iter().any(|name| v.starts_with(name))
            && !(divided && v.starts_with("one leader at a time"))
    };
    match seen.violations.iter().find(wrong) {
        Some(violation) => Err(violation.clone()),
        None => Ok(seen),
    }
}

/// Whether all live processes follow the same live one. If a crash divides a graph whose processes
/// communicate only along its edges, each part is judged alone.
fn settled<P>(case: &Case<P>, seen: &Seen<P>, down: Option<ProcessId>) -> Result<(), String>
where
    P: Algorithm<Problem = Election> + Inspect<Request = Request, Indication = Indication>,
{
    let group = &case.setup.group;
    // On a ring with a known order, crashed processes are skipped.
    let everyone_reaches_everyone =
        ["bully", "bully-1982", "chang-roberts", "invitation", "quorum", "ring-list"]
            .contains(&P::SHEET.name);
    let alive: Vec<ProcessId> =
        group.members().iter().copied().filter(|p| Some(*p) != down).collect();
    let mut parts: Vec<Vec<ProcessId>> = Vec::new();
    if everyone_reaches_everyone {
        parts.push(alive);
    } else {
        for &p in &alive {
            if parts.iter().any(|part| part.contains(&p)) {
                continue;
            }
            let mut part = vec![p];
            for i in 0.. {
                let Some(&at) = part.get(i) else { break };
                let near = case.setup.neighbours(at);
                let new: Vec<_> =
                    near.iter().filter(|q| alive.contains(q) && !part.contains(q)).collect();
                part.extend(new);
            }
            parts.push(part);
        }
    }
    // An initiator that crashes before it has said a word leaves nothing behind.
    let silent = |p: &ProcessId| Some(*p) == down || !seen.monitor.is_informed(*p);
    let nothing_began = group.members().iter().all(silent)
        && case.workload.initiators.iter().all(|p| Some(*p) == down)
        && seen.ending == Ending::Quiet
        && seen.processes.iter().all(Inspect::at_rest);
    if nothing_began {
        return Ok(());
    }
    for part in parts {
        let leading: Vec<_> =
            part.iter().copied().filter(|p| seen.monitor.leading().contains(*p)).collect();
        let [leader] = leading[..] else {
            return Err(format!("{leading:?} lead among {part:?}"));
        };
        for p in part {
            let named = seen.monitor.leader_of(p);
            if !seen.monitor.is_informed(p) || named.is_some_and(|named| named != leader) {
                return Err(format!("{p} follows {named:?}, but {leader} leads"));
            }
        }
    }
    Ok(())
}

/// The result of one sweep: runs, settled runs, the first run that broke a promise.
#[derive(Default, Debug)]
struct Tally {
    runs: u32,
    unsafe_runs: u32,
    settled: u32,
    first: String,
}

fn sweep<P>(make: impl Fn(u64) -> Case<P>, strike: Strike) -> Tally
where
    P: Algorithm<Problem = Election> + Portable<Request = Request, Indication = Indication>,
{
    let mut tally = Tally::default();
    for seed in 0..seeds() {
        let mut rng = Rng::new(seed).fork(strike as u64);
        let case = make(seed);
        let members = case.setup.group.members().to_vec();
        let quiet = case.simulate();
        let leader = quiet.summary.leader.unwrap_or(members[0]);
        let victims = [case.workload.initiators[0], members[members.len() / 2], leader];
        let moments = match strike {
            Strike::Loss => quiet.sent,
            Strike::Crash | Strike::Return | Strike::Partition => quiet.steps,
        };
        let moments = moments.clamp(1, MOST_STEPS);
        let chosen = if seed < thorough() {
            1..moments + 1
        } else {
            let one = 1 + u64::from(rng.below(moments as u32));
            one..one + 1
        };
        for moment in chosen {
            for victim in victims {
                let back = HEALED - 50 + rng.below(50);
                let faults = match strike {
                    Strike::Crash => vec![format!("crash:{}@#{moment}", victim.0)],
                    Strike::Return => vec![
                        format!("crash:{}@#{moment}", victim.0),
                        format!("restart:{}@{back}", victim.0),
                    ],
                    Strike::Loss => vec![format!("lose:#{moment}")],
                    Strike::Partition => {
                        let from = rng.below(60);
                        let to = from + 1 + rng.below(60);
                        vec![format!("partition:{}@{from}-{to}", victim.0)]
                    }
                };
                tally.runs += 1;
                let down = Some(victim).filter(|_| strike == Strike::Crash);
                let repeat = || {
                    let mut text = format!("seed {seed} {faults:?} n {}", members.len());
                    let _ = write!(text, " {:?}", case.workload.initiators);
                    text
                };
                match struck(&case, &faults) {
                    Err(violation) => {
                        tally.unsafe_runs += 1;
                        if tally.first.is_empty() {
                            tally.first = format!("{violation}: {}", repeat());
                        }
                    }
                    Ok(seen) => match settled(&case, &seen, down) {
                        Ok(()) => tally.settled += 1,
                        Err(why) => {
                            if tally.first.is_empty() {
                                tally.first = format!("{why}: {}", repeat());
                            }
                        }
                    },
                }
            }
        }
    }
    tally
}

/// A group of three to seven; all start, or one does.
fn group<P: Algorithm + Portable>(seed: u64, topology: fn(usize, &mut Rng) -> Topology) -> Case<P> {
    let mut rng = Rng::new(seed).fork(7);
    let n = 3 + rng.below(5) as usize;
    let mut ids: Vec<u32> = (0..n as u32).collect();
    rng.shuffle(&mut ids);
    let case = Case::<P>::on(topology(n, &mut rng)).ids(&ids);
    let case = if seed.is_multiple_of(2) { case } else { case.initiators(&ids[..1]) };
    case.config(|c| {
        c.seed = seed;
        c.delay = Delay::Uniform(0.1, 1.9);
        c.time_limit = 1200.0;
    })
}

fn ring(n: usize, _: &mut Rng) -> Topology {
    Topology::ring(n)
}

fn directed(n: usize, _: &mut Rng) -> Topology {
    Topology::directed_ring(n)
}

fn complete(n: usize, _: &mut Rng) -> Topology {
    Topology::complete(n)
}

fn tree(n: usize, rng: &mut Rng) -> Topology {
    Topology::random_tree(n, rng)
}

fn graph(n: usize, rng: &mut Rng) -> Topology {
    let more = rng.below(3) as usize;
    let m = (n - 1 + more).min(n * (n - 1) / 2);
    Topology::random_graph(n, m, rng).expect("so many edges fit")
}

/// Under every fault but `breaks` there is one leader per epoch. Under the faults `heals`, every run
/// settles.
#[track_caller]
fn expect<P>(make: impl Fn(u64) -> Case<P>, heals: &[Strike], breaks: &[Strike])
where
    P: Algorithm<Problem = Election> + Portable<Request = Request, Indication = Indication>,
{
    for strike in ALL {
        let tally = sweep(&make, strike);
        assert_eq!(tally.unsafe_runs > 0, breaks.contains(&strike), "{strike:?}: {}", tally.first);
        if heals.contains(&strike) {
            assert_eq!(tally.settled, tally.runs, "{strike:?}: {}", tally.first);
        } else {
            // It claims nothing, and would claim too little if it always got over it.
            assert!(tally.settled < tally.runs, "{strike:?} never does any harm");
        }
    }
}

#[test]
fn bully_hardened_gets_over_everything() {
    let make = |seed| {
        group::<bully::hardened::Hardened>(seed, complete).set("mode", "hardened").set("ping", 10)
    };
    expect(make, &ALL, &[]);
}

#[test]
fn bully_of_1982_gets_over_crashes_and_restarts() {
    // Often enough that all the steps that are struck are over before anyone comes back.
    let make = |seed| group::<Bully1982>(seed, complete).set("check", 10);
    expect(make, &[Strike::Crash, Strike::Return, Strike::Loss], &[Strike::Partition]);
}

#[test]
fn invitation_gets_over_everything() {
    expect(|seed| group::<Invitation>(seed, complete), &ALL, &[]);
}

#[test]
fn quorum_gets_over_everything() {
    expect(|seed| group::<Quorum>(seed, complete), &ALL, &[]);
}

#[test]
fn chang_roberts_hardened_gets_over_everything() {
    expect(|seed| group::<chang_roberts::hardened::Hardened>(seed, directed), &ALL, &[]);
}

#[test]
fn ring_list_hardened_gets_over_everything() {
    expect(
        |seed| group::<ring_list::hardened::Hardened>(seed, directed).set("mode", "hardened"),
        &ALL,
        &[],
    );
}

#[test]
fn virtual_tree_gets_over_crashes() {
    expect(|seed| group::<VirtualTree>(seed, ring), &[Strike::Crash, Strike::Return], &[]);
}

#[test]
fn firewire_gets_over_what_makes_a_bus_reset() {
    expect(|seed| group::<FireWire>(seed, tree), &[Strike::Crash, Strike::Return], &[]);
}

#[test]
fn a_fault_may_block_the_others_but_never_makes_two_leaders() {
    expect(|seed| group::<Adoption>(seed, graph), &[], &[]);
    expect(|seed| group::<DolevKlaweRodeh>(seed, directed), &[], &[]);
    expect(|seed| group::<Extinction>(seed, graph), &[], &[]);
    expect(|seed| group::<Franklin>(seed, ring), &[], &[]);
    expect(|seed| group::<HirschbergSinclair>(seed, ring), &[], &[]);
    expect(|seed| group::<ItaiRodeh>(seed, directed), &[], &[]);
    expect(|seed| group::<TreeWave>(seed, tree), &[], &[]);
    expect(|seed| group::<VirtualTreeWave>(seed, graph), &[], &[]);
}
