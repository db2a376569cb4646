//! Links that break, for good or until they are repaired. An algorithm for graphs survives that; each
//! part of the graph elects on its own. Both ends suspect each other, as they would after a crash.

use konklave_algorithms::Algorithm;
use konklave_algorithms::election::firewire::FireWire;
use konklave_algorithms::election::virtual_tree::VirtualTree;
use konklave_algorithms::election::{Election, Indication, Request};
use konklave_process::{Inspect, Portable, Rng, Topology};
use konklave_sim::{Delay, Ending};
use konklave_testkit::{Case, Seen};

/// The links of a graph.
fn links(graph: &Topology) -> Vec<(usize, usize)> {
    let after = |a: usize| graph.adjacent(a).filter(move |b| *b > a).map(move |b| (a, b));
    (0..graph.len()).flat_map(after).collect()
}

/// The two parts of a graph with a broken link: with the first process, and without it.
fn parts(graph: &Topology, broken: Option<(usize, usize)>) -> [Vec<usize>; 2] {
    let is_whole = |a: usize, b: usize| broken != Some((a.min(b), a.max(b)));
    let mut first = vec![0];
    for i in 0.. {
        let Some(&at) = first.get(i) else { break };
        let near = graph.adjacent(at).filter(|b| is_whole(at, *b) && !first.contains(b));
        let near: Vec<usize> = near.collect();
        first.extend(near);
    }
    let others = (0..graph.len()).filter(|p| !first.contains(p)).collect();
    [first, others]
}

/// Asserts that all processes of `part` follow one of them, which leads.
#[track_caller]
fn settled<P>(case: &Case<P>, seen: &Seen<P>, part: &[usize], what: &str)
where
    P: Algorithm<Problem = Election> + Inspect<Request = Request, Indication = Indication>,
{
    let members = part.iter().map(|&place| case.setup.group.id(place));
    let leads = |p: &_| seen.monitor.leading().contains(*p);
    let leaders: Vec<_> = members.clone().filter(leads).collect();
    let [leader] = leaders[..] else { panic!("{what}: {leaders:?} lead among {part:?}") };
    for p in members {
        let named = seen.monitor.leader_of(p);
        assert!(seen.monitor.is_informed(p), "{what}: {p} knows of nobody");
        assert!(named.is_none_or(|named| named == leader), "{what}: {p} follows {named:?}");
    }
}

/// One link of a random graph breaks at a random time; every second time it is mended.
fn struck<P: Algorithm + Portable>(
    seed: u64,
    graph: fn(usize, &mut Rng) -> Topology,
) -> (Case<P>, Option<(usize, usize)>, String) {
    let mut rng = Rng::new(seed);
    let n = 3 + rng.below(8) as usize;
    let graph = graph(n, &mut rng);
    let all = links(&graph);
    let (a, b) = all[rng.below(all.len() as u32) as usize];
    let from = rng.below(40);
    let mended = rng.chance(0.5);
    let until = if mended { format!("-{}", from + 1 + rng.below(40)) } else { String::new() };
    let fault = format!("break:{a}-{b}@{from}{until}");
    let case = Case::<P>::on(graph).initiators(&[0]).fault(&fault).config(|c| {
        c.seed = seed;
        c.delay = Delay::Uniform(0.2, 1.8);
        c.detect_after = Some(4.0);
    });
    (case, Some((a, b)).filter(|_| !mended), format!("seed {seed}, {fault}"))
}

#[test]
fn a_bus_that_breaks_is_two_and_mended_it_is_one() {
    for seed in 0..600 {
        let (case, broken, what) = struck::<FireWire>(seed, Topology::random_tree);
        let seen = case.simulate();
        assert_eq!(seen.ending, Ending::Quiet, "{what}");
        // While the bus is two, it has two roots: links were to be reliable.
        let cycle = seen.violations.iter().find(|v| v.starts_with("acyclic parents"));
        assert_eq!(cycle, None, "{what}");
        for part in parts(&case.setup.topology, broken).iter().filter(|part| !part.is_empty()) {
            settled(&case, &seen, part, &what);
        }
    }
}

fn graph(n: usize, rng: &mut Rng) -> Topology {
    let most = n * (n - 1) / 2;
    let m = (n - 1 + rng.below(4) as usize).min(most);
    Topology::random_graph(n, m, rng).expect("so many edges fit")
}

#[test]
fn a_virtual_tree_grows_around_a_broken_link_and_never_into_a_cycle() {
    let mut split = 0;
    for seed in 0..1000 {
        let (case, broken, what) = struck::<VirtualTree>(seed, graph);
        let seen = case.simulate();
        assert_eq!(seen.ending, Ending::Quiet, "{what}");
        let unsafe_ones = ["acyclic parents", "one leader"];
        let wrong = |v: &&String| unsafe_ones.iter().any(|name| v.starts_with(name));
        assert_eq!(seen.violations.iter().find(wrong), None, "{what}");
        let [with_root, without] = parts(&case.setup.topology, broken);
        settled(&case, &seen, &with_root, &what);
        split += u32::from(!without.is_empty());
    }
    assert!((50..800).contains(&split), "{split}");
}

/// Every graph of up to four and every link of it: the tree stands again, and no two links are
/// needed for that.
#[test]
fn whichever_link_of_a_small_graph_breaks_all_who_reach_the_root_are_attached() {
    let mut cases = 0;
    for graph in (2..=4).flat_map(Topology::all_connected) {
        for (a, b) in links(&graph) {
            for when in [2, 5, 30] {
                let what = format!("{}, break:{a}-{b}@{when}", graph.name);
                let case = Case::<VirtualTree>::on(graph.clone()).initiators(&[0]);
                let seen = case.fault(&format!("break:{a}-{b}@{when}")).simulate();
                assert_eq!(seen.ending, Ending::Quiet, "{what}");
                let cycle = seen.violations.iter().find(|v| v.starts_with("acyclic parents"));
                assert_eq!(cycle, None, "{what}");
                let [with_root, _] = parts(&graph, Some((a, b)));
                settled(&Case::<VirtualTree>::on(graph.clone()), &seen, &with_root, &what);
                cases += 1;
            }
        }
    }
    // One link of two nodes, nine of the four graphs of three, 144 of the 38 graphs of four.
    assert_eq!(cases, 3 * (1 + 9 + 144));
}

#[test]
fn v5_who_takes_the_nearest_neighbour_left_takes_its_own_child() {
    // 0 – 1 – 2 – 3, and the link in the middle breaks.
    let case = Case::<VirtualTree>::on(Topology::path(4)).initiators(&[0]).fault("break:1-2@30");
    let right = case.simulate();
    let cycle = |v: &String| v.starts_with("acyclic parents");
    assert!(!right.violations.iter().any(cycle), "{:?}", right.violations);
    assert!(right.processes[2..].iter().all(|p| p.parent().is_none()));
    let naive = case.mistake("naive-reselect").config(|c| c.time_limit = 200.0).simulate();
    assert!(naive.violations.iter().any(cycle), "{:?}", naive.violations);
}
