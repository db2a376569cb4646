use std::sync::Arc;

use konklave_algorithms::multicast::srm::Srm;
use konklave_process::topology::Hops;
use konklave_process::{Group, ProcessId, Rng, Topology};
use konklave_sim::{Delay, Pace};
use konklave_testkit::{Case, Seen};

use super::is_within_bounds;

/// A group on `topology` where each link takes T, with timers as given and no session messages.
fn case(topology: Topology, [c1, c2, d1, d2]: [&str; 4]) -> Case<Srm> {
    let hops = Arc::new(Hops::new(&topology, &Group::of(topology.len())));
    let case = Case::<Srm>::on(topology).set("timers", "fixed").set("sessions", 0);
    let case = case.set("c1", c1).set("c2", c2).set("d1", d1).set("d2", d2);
    case.config(|c| c.delay = Delay::Hops(hops))
}

/// `source` multicasts two messages, so far apart that they do not meet; the first is lost on the
/// way to all in `beyond`.
fn lose(case: Case<Srm>, source: u32, beyond: &[ProcessId], seed: u64) -> Seen<Srm> {
    let n = case.setup.group.len();
    let mut requests = vec![0; n];
    requests[source as usize] = 2;
    let side: Vec<String> = beyond.iter().map(|p| p.0.to_string()).collect();
    let fault = format!("partition:{}@0-0.001", side.join(","));
    let case = case.requests(&requests).fault(&fault).config(|c| {
        c.seed = seed;
        c.think = Pace::Constant(0.01);
        c.script = vec![(ProcessId(source), 0.0)];
    });
    let seen = case.simulate();
    assert_eq!(seen.well().summary.delivered, 2 * n as u64);
    seen
}

fn chain(n: usize) -> Topology {
    Topology::from_edges("chain", n, (1..n).map(|i| (i - 1, i))).unwrap()
}

#[test]
fn without_loss_nothing_is_asked() {
    for n in [1, 2, 5, 50] {
        let case = Case::<Srm>::complete(n).requests(&vec![2; n]);
        let seen = case.simulate();
        assert_eq!(is_within_bounds(&case, seen.well()), 2);
        assert_eq!(seen.kind("Request") + seen.kind("Repair"), 0);
    }
}

#[test]
fn on_a_chain_one_member_asks_and_one_repairs() {
    for n in [10, 50, 100] {
        let beyond: Vec<ProcessId> = (n / 2..n).map(|i| ProcessId(i as u32)).collect();
        let seen = lose(case(chain(n), ["1", "0", "1", "0"]), 0, &beyond, 1);
        let summary = &seen.summary;
        assert_eq!(summary.requests_per_loss, Some(1.0), "n = {n}");
        assert_eq!(summary.repairs_per_loss, Some(1.0), "n = {n}");
    }
}

/// Requests for a message of one leaf of a star that all others lost, on average.
fn star(g: usize, c2: &str, runs: u64) -> f64 {
    let beyond: Vec<ProcessId> = (1..g).map(|i| ProcessId(i as u32)).collect();
    let requests = (0..runs).map(|seed| {
        // All leaves are equally far from each other: as if all were linked.
        let case = case(Topology::complete(g), ["2", c2, "1", "1"]);
        let seen = lose(case, 0, &beyond, seed);
        assert_eq!(seen.summary.repairs_per_loss, Some(1.0), "only the source has it");
        seen.summary.requests_per_loss.unwrap()
    });
    requests.sum::<f64>() / runs as f64
}

#[test]
fn on_a_star_about_one_in_c2_asks() {
    for (g, c2, runs) in [(20, 2, 60), (50, 2, 40), (100, 2, 30), (100, 10, 60), (100, 100, 100)] {
        let measured = star(g, &c2.to_string(), runs);
        let theory = 1.0 + (g as f64 - 2.0) / f64::from(c2);
        assert!(
            (measured - theory).abs() < 0.15 * theory + 0.1,
            "{g}, {c2}: {measured} ≠ {theory}"
        );
    }
}

#[test]
fn s1_without_spread_on_a_star_all_members_ask() {
    assert_eq!(star(30, "0", 1), 29.0);
}

/// A tree in which each node hangs under a random earlier one with fewer than `degree` links.
fn random_tree(n: usize, degree: usize, rng: &mut Rng) -> Topology {
    let (mut links, mut edges) = (vec![0; n], Vec::new());
    for i in 1..n {
        let parent = loop {
            let p = rng.below(i as u32) as usize;
            if links[p] < degree {
                break p;
            }
        };
        links[parent] += 1;
        links[i] += 1;
        edges.push((parent, i));
    }
    Topology::from_edges("tree", n, edges).unwrap()
}

#[test]
fn every_run_with_a_loss_or_a_crash_is_right() {
    let small = |n, requests: &[u32]| {
        let case = case(Topology::complete(n), ["2", "0", "1", "0"]).requests(requests);
        case.synchronous()
    };
    small(2, &[2, 0]).mishaps(1, 0).judge(REVEALED).check().exhausted(39);
    small(3, &[1, 0, 0]).mishaps(0, 1).check().exhausted(16);
    small(3, &[2, 0, 0]).crashes(1, 0).check().exhausted(237);
}

/// Without session messages a lost end goes unnoticed: what remains to be judged.
const REVEALED: &[&str] = &["no duplication", "no creation"];

#[test]
fn s2_a_lost_request_is_repeated() {
    let lost = |case: Case<Srm>| {
        case.requests(&[2, 0]).fault("lose:0>1/Data#1").fault("lose:1>0/Request#1")
    };
    let pair = || case(Topology::complete(2), ["2", "2", "1", "1"]);
    let seen = lost(pair()).simulate();
    assert_eq!((seen.well().summary.delivered, seen.kind("Request")), (4, 2));
    let seen = lost(pair()).mistake("one-round").simulate();
    assert_eq!(seen.violations.len(), 1, "{:?}", seen.violations);
    let checked = case(Topology::complete(2), ["2", "0", "1", "0"]).requests(&[1, 0]);
    let checked = checked.set("sessions", 3).synchronous().mishaps(2, 0);
    let found = checked.check();
    assert_eq!(found.verdict, "exhausted", "{found:?}");
    let found = checked.mistake("one-round").check();
    assert_eq!((found.verdict, found.property), ("violated", Some("validity")), "{found:?}");
}

#[test]
fn s3_a_late_repair_is_delivered_once() {
    let seen = case(Topology::complete(3), ["2", "2", "1", "1"])
        .requests(&[2, 0, 0])
        .fault("lose:0>1/Data#1")
        .fault("delay:0>1/Repair#1+30")
        .fault("delay:2>1/Repair#1+30")
        .simulate();
    assert_eq!(seen.well().summary.delivered, 6);
    assert!(seen.summary.repairs_per_loss.unwrap() >= 2.0);
}

#[test]
fn s4_every_wait_is_longer_than_zero() {
    // On one's own place the distance would be 0; it counts as 1.
    let seen = lose(case(chain(2), ["1", "0", "1", "0"]), 0, &[ProcessId(1)], 1);
    assert!(seen.summary.recovery_rtt.unwrap().min >= 1.0);
}

#[test]
fn s5_a_clock_that_runs_wild_changes_no_distance() {
    // Distances are links, not times: a member whose timers race or crawl asks early or late, and
    // no member waits for a time that is negative or past.
    for rate in ["50", "0.02"] {
        let lost = Case::<Srm>::complete(4)
            .requests(&[2, 0, 0, 0])
            .fault("lose:0>1/Data#1")
            .fault(&format!("rate:1*{rate}"));
        let seen = lost.simulate();
        assert_eq!(seen.well().summary.delivered, 8, "rate {rate}");
        assert_eq!(seen.summary.losses, 1, "rate {rate}");
    }
}

#[test]
fn s6_after_a_crash_of_the_source_any_holder_repairs() {
    let lost = case(Topology::complete(4), ["2", "2", "1", "1"])
        .requests(&[2, 0, 0, 0])
        .fault("lose:0>3/Data#1")
        .fault("crash:0@0.5");
    let seen = lost.simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(seen.summary.delivered, 8);
}

#[test]
fn s7_a_lost_end_shows_in_the_session_messages_of_others() {
    let seen = Case::<Srm>::complete(4)
        .requests(&[1, 0, 0, 0])
        .fault("lose:0>3/Data#1")
        .fault("crash:0@0.5")
        .simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(seen.summary.delivered, 4);
}

#[test]
fn an_outage_that_is_longer_than_any_number_of_session_messages_is_mended() {
    for until in [34, 3000] {
        let cut = |sessions: &str| {
            let case =
                Case::<Srm>::complete(5).requests(&[1, 0, 0, 0, 0]).set("sessions", sessions);
            case.fault(&format!("partition:1@0-{until}")).simulate()
        };
        assert_eq!(cut("agreed").well().summary.delivered, 5, "until {until}");
        assert_eq!(cut("3").violations.len(), 1, "until {until}");
    }
}

#[test]
fn session_messages_end_once_all_live_members_agree() {
    for fault in ["crash:1@0.5", "crash:0@5", "crash:4@15"] {
        let crashed = Case::<Srm>::complete(5).requests(&[1, 1, 0, 0, 0]).fault(fault);
        let seen = crashed.simulate();
        assert!(seen.violations.is_empty(), "{fault}: {:?}", seen.violations);
        assert!(seen.kind("Session") <= 5 * 4 * 6, "{fault}: {}", seen.kind("Session"));
        // A restarted member learns what it missed, and all agree again.
        let back = crashed.fault(&fault.replace("crash", "restart").replace('@', "@10")).simulate();
        assert!(back.violations.is_empty(), "{fault}: {:?}", back.violations);
    }
}

#[test]
fn s8_a_lost_repair_is_asked_for_beyond_the_hold_down() {
    let seen = case(Topology::complete(2), ["1", "0", "1", "0"])
        .requests(&[2, 0])
        .fault("lose:0>1/Data#1")
        .fault("lose:0>1/Repair#1")
        .simulate();
    assert_eq!(seen.well().summary.delivered, 4);
    assert!((2..=4).contains(&seen.kind("Request")), "{}", seen.kind("Request"));
}

/// A star of chains: the crying baby is the end of one of them.
fn spider(arms: usize) -> Topology {
    let edges = (0..arms).flat_map(|a| [(0, 1 + 2 * a), (1 + 2 * a, 2 + 2 * a)]);
    Topology::from_edges("spider", 1 + 2 * arms, edges).unwrap()
}

#[test]
fn s9_one_bad_link_costs_all_members_and_scoped_recovery_spares_them() {
    let baby = |scope: u32| {
        let case = case(spider(20), ["1", "1", "1", "1"]).set("scope", scope);
        lose(case, 0, &[ProcessId(40)], 3).summary.unwanted_per_member
    };
    let (all, scoped) = (baby(0), baby(1));
    assert!(all > 0.9 && scoped < 0.1, "{all} and {scoped}");
}

/// Loses each of 0's first `losses` messages on the way to all in `beyond`, one after the other.
fn lose_again(case: Case<Srm>, beyond: &[ProcessId], losses: u32) -> Seen<Srm> {
    let n = case.setup.group.len();
    let mut requests = vec![0; n];
    requests[0] = losses + 1;
    let side: Vec<String> = beyond.iter().map(|p| p.0.to_string()).collect();
    let mut case = case.requests(&requests);
    for i in 0..losses {
        let at = f64::from(i) * 500.0;
        case = case.fault(&format!("partition:{}@{at}-{}", side.join(","), at + 0.001));
    }
    case.config.script = (0..=losses).map(|i| (ProcessId(0), f64::from(i) * 500.0)).collect();
    let seen = case.simulate();
    assert_eq!(seen.well().summary.delivered, u64::from(losses + 1) * n as u64);
    seen
}

#[test]
fn a_lossy_edge_costs_about_one_request_and_one_repair_each_time() {
    // The same edge of a tree of degree 4 loses again and again: all behind it lose together.
    let mut rng = Rng::new(4);
    let tree = random_tree(60, 4, &mut rng);
    let hops = Hops::new(&tree, &Group::of(60));
    let edge = (1..60).max_by_key(|&i| {
        let behind = hops.beyond(i);
        if behind.contains(&ProcessId(0)) { 0 } else { behind.len() }
    });
    let beyond = hops.beyond(edge.unwrap());
    assert!(beyond.len() > 10, "{} behind it", beyond.len());
    let seen = lose_again(case(tree, ["2", "2", "log10", "log10"]), &beyond, 20);
    let summary = &seen.summary;
    assert_eq!(summary.losses, 20);
    let (requests, repairs) =
        (summary.requests_per_loss.unwrap(), summary.repairs_per_loss.unwrap());
    assert!((1.0..4.0).contains(&requests) && (1.0..3.0).contains(&repairs), "{summary:?}");
}

#[test]
fn each_loss_of_a_crying_baby_costs_all_members_a_repair() {
    // One bad link at the end: all others get every repair, and need none.
    let cries = |losses: u32, scope: u32| {
        let case = case(spider(20), ["1", "1", "1", "1"]).set("scope", scope);
        lose_again(case, &[ProcessId(40)], losses).summary.unwanted_per_member
    };
    for losses in [1, 5, 20] {
        let unwanted = cries(losses, 0) / f64::from(losses);
        assert!((0.9..1.5).contains(&unwanted), "{unwanted} for each of {losses} losses");
        assert!(cries(losses, 1) < 0.1 * f64::from(losses), "with scoped recovery");
    }
}

/// The processes that lose the first member's packets when a random link fails towards a random other one.
fn behind_a_link(topology: &Topology, rng: &mut Rng) -> Vec<ProcessId> {
    let group = Group::of(topology.len());
    let hops = Hops::new(topology, &group);
    let other = ProcessId(1 + rng.below(group.len() as u32 - 1));
    let sides: Vec<Vec<ProcessId>> = (1..hops.nodes()).map(|link| hops.beyond(link)).collect();
    let parts = |side: &&Vec<ProcessId>| side.contains(&ProcessId(0)) != side.contains(&other);
    let links: Vec<&Vec<ProcessId>> = sides.iter().filter(parts).collect();
    let below = links[rng.below(links.len() as u32) as usize];
    let lost = |p: &ProcessId| below.contains(p) == below.contains(&other);
    group.members().iter().copied().filter(lost).collect()
}

/// Requests, repairs and the last one's wait for a loss, on average over such links.
fn on_trees(g: usize, runs: u64, tree: impl Fn(&mut Rng) -> Topology) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for seed in 0..runs {
        let mut rng = Rng::new(seed);
        let topology = tree(&mut rng);
        assert_eq!(topology.len(), g);
        let beyond = behind_a_link(&topology, &mut rng);
        let seen = lose(case(topology, ["2", "2", "log10", "log10"]), 0, &beyond, seed).summary;
        let figures =
            [seen.requests_per_loss, seen.repairs_per_loss, seen.last_recovery_rtt.map(|s| s.mean)];
        for (sum, figure) in sums.iter_mut().zip(figures) {
            *sum += figure.unwrap() / runs as f64;
        }
    }
    sums
}

/// Compares with an independent simulation by the same rules. Both deviate by
/// chance.
#[track_caller]
fn is_about(measured: [f64; 3], reference: [f64; 3], case: &str) {
    for (x, y) in measured.into_iter().zip(reference) {
        assert!((x - y).abs() < 0.15 * y, "{case}: {measured:?} ≠ {reference:?}");
    }
}

#[test]
fn on_random_trees_one_asks_and_one_repairs() {
    for (g, reference) in
        [(10, [1.08, 1.00, 1.26]), (50, [1.19, 1.04, 0.83]), (100, [1.31, 1.03, 0.71])]
    {
        let measured = on_trees(g, 150, |rng| Topology::random_tree(g, rng));
        is_about(measured, reference, &format!("dense, G = {g}"));
    }
}

#[test]
fn sparse_members_of_a_large_tree_make_several_duplicates() {
    for (g, reference) in [(10, [2.3, 3.3, 2.4]), (50, [3.5, 4.1, 2.1]), (100, [3.9, 3.5, 1.9])] {
        let measured = on_trees(g, 150, |rng| Topology::scattered(g, 1000, 4, rng).unwrap());
        is_about(measured, reference, &format!("sparse, G = {g}"));
    }
}

/// So many rounds, in each of which the first of two messages is lost to all in `beyond`.
fn lose_in_rounds(case: Case<Srm>, beyond: &[ProcessId], rounds: u32) -> Seen<Srm> {
    let n = case.setup.group.len();
    let mut requests = vec![0; n];
    requests[0] = 2 * rounds;
    let side: Vec<String> = beyond.iter().map(|p| p.0.to_string()).collect();
    let mut case = case.requests(&requests);
    for round in 0..rounds {
        let at = f64::from(round) * 2000.0;
        case = case.fault(&format!("partition:{}@{at}-{}", side.join(","), at + 0.001));
    }
    let both = |round: u32| [f64::from(round) * 2000.0, f64::from(round) * 2000.0 + 0.01];
    case.config.script = (0..rounds).flat_map(both).map(|at| (ProcessId(0), at)).collect();
    let seen = case.simulate();
    assert_eq!(seen.well().summary.losses, u64::from(rounds));
    seen
}

#[test]
fn adaptive_timers_learn_to_ask_and_to_repair_once() {
    // The same link of the tree loses again and again.
    let rounds = |timers: &str, rounds: u32, seed: u64| {
        let mut rng = Rng::new(seed);
        let topology = Topology::scattered(50, 1000, 4, &mut rng).unwrap();
        let beyond = behind_a_link(&topology, &mut rng);
        let case = case(topology, ["2", "2", "log10", "log10"]).set("timers", timers);
        let summary = lose_in_rounds(case, &beyond, rounds).summary;
        let sum = |figure: Option<f64>| f64::from(rounds) * figure.unwrap();
        let last = summary.last_recovery_rtt.map(|last| last.mean);
        [sum(summary.requests_per_loss), sum(summary.repairs_per_loss), sum(last)]
    };
    let (mut fixed, mut settled, trees) = ([0.0; 3], [0.0; 3], 16);
    for seed in 0..trees {
        let [all, early, late] =
            [("fixed", 60), ("adaptive", 20), ("adaptive", 60)].map(|(t, r)| rounds(t, r, seed));
        for i in 0..3 {
            fixed[i] += all[i] / 60.0 / trees as f64;
            settled[i] += (late[i] - early[i]) / 40.0 / trees as f64;
        }
    }
    assert!(
        settled.iter().zip(&fixed).all(|(settled, fixed)| settled < fixed),
        "requests, repairs, last: {settled:?} after 20 rounds, {fixed:?} with fixed timers"
    );
    assert!(settled[0] < 2.5 && settled[1] < 2.5, "{settled:?}");
}

#[test]
fn the_longest_recovery_is_as_long_as_the_timers_allow() {
    for n in [10, 50, 100] {
        let beyond: Vec<ProcessId> = (n / 2..n).map(|i| ProcessId(i as u32)).collect();
        let seen = lose(case(chain(n), ["1", "0", "1", "0"]), 0, &beyond, 1);
        let last = seen.summary.last_recovery_rtt.unwrap().mean;
        let theory = (n as f64 / 2.0 + 3.0) / (2.0 * (n as f64 - 1.0));
        assert!((last - theory).abs() < 0.001, "n = {n}: {last} ≠ {theory}");
    }
}

#[test]
fn losses_copies_and_any_order_do_no_harm() {
    for seed in 0..200 {
        let case = Case::<Srm>::complete(6).requests(&[4; 6]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.loss = 0.1;
            c.duplicate = 0.1;
            c.think = Pace::Exponential(3.0);
        });
        let case = if seed % 2 == 0 { case } else { case.set("timers", "fixed") };
        assert_eq!(case.simulate().well().summary.delivered, 144, "seed {seed}");
    }
}

#[test]
fn ten_thousand_members_recover_together() {
    // A loss near the source of a tree of degree 4: half of all members lack the message.
    let mut rng = Rng::new(9);
    let tree = random_tree(10_000, 4, &mut rng);
    let hops = Hops::new(&tree, &Group::of(10_000));
    let beyond = hops.beyond(1);
    let seen = lose(case(tree, ["2", "2", "log10", "log10"]), 0, &beyond, 1);
    assert!(seen.summary.requests_per_loss.unwrap() < 20.0, "{:?}", seen.summary);
}
