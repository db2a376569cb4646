use std::collections::BTreeSet;
use std::time::Duration;

use konklave_process::ProcessId;

use crate::builder::Timings;
use crate::core::{Config, Core};
use crate::lock_algorithm::LockAlgorithm;
use crate::testing::Cluster;

/// The views of those members that can be granted something.
fn groups(cluster: &Cluster, up: &[usize]) -> BTreeSet<(u32, u64, Option<u32>)> {
    let all = up.iter().map(|i| cluster.node(*i).status());
    let usable = all.filter(|s| s.member && s.quorum.heard >= s.quorum.needed);
    usable.filter_map(|s| s.view.map(|(generation, epoch)| (generation, epoch, s.leader))).collect()
}

/// Started at once: more nodes than a group needs founders, but fewer than twice as many. In whatever order
/// they meet, there is one group in the end, and never two.
#[test]
fn surplus_founders_found_one_group() {
    for founders in [1, 2, 3, 4] {
        for n in founders..(2 * founders) {
            for seed in 0..100 {
                let cluster = Cluster::crowd(n, founders, seed);
                let everyone: Vec<usize> = (0..n).collect();
                for _ in 0..50 {
                    cluster.advance(Duration::from_millis(100));
                    let found = groups(&cluster, &everyone);
                    let leaders: BTreeSet<_> = found.iter().map(|(g, _, who)| (g, who)).collect();
                    assert!(leaders.len() <= 1, "{founders} of {n}, seed {seed}: {found:?}");
                }
                let found = groups(&cluster, &everyone);
                let inside = (0..n).filter(|i| cluster.node(*i).status().member).count();
                assert!(
                    found.len() == 1 && inside == n,
                    "{founders} of {n}, seed {seed}: {inside} inside, {found:?}"
                );
            }
        }
    }
}

/// Lets time pass until `done`, in small steps.
fn wait_until(cluster: &Cluster, done: impl Fn(&Cluster) -> bool) {
    for _ in 0..10_000 {
        if done(cluster) {
            return;
        }
        cluster.advance(Duration::from_micros(10));
    }
    panic!("it never happens");
}

fn is_inside(cluster: &Cluster, i: usize) -> bool {
    cluster.node(i).status().view.is_some()
}

/// Three of five found a group; one of them, a member that promised or the proposer itself, restarts before it enters, and
/// meets only the two processes that are no founders. It must not found a second group with these.
#[test]
fn restarted_founder_keeps_its_promise() {
    for restarted in [1, 2] {
        for seed in 0..20 {
            let cluster = Cluster::strangers(5, 3, seed);
            [(1, 2), (1, 3), (2, 3)].iter().for_each(|(i, j)| cluster.introduce(*i, *j));
            wait_until(&cluster, |cluster| is_inside(cluster, 1));
            let stays = if restarted == 1 { 2 } else { 1 };
            if restarted == 2 {
                cluster.cut(1, 2);
            }
            wait_until(&cluster, |cluster| is_inside(cluster, stays) && is_inside(cluster, 3));
            cluster.crash(restarted);
            cluster.heal();
            cluster.restart(restarted);
            [(0, restarted), (4, restarted), (0, 4)]
                .iter()
                .for_each(|(i, j)| cluster.introduce(*i, *j));
            cluster.advance(Duration::from_secs(3));
            let everyone = [0, 1, 2, 3, 4];
            let found = groups(&cluster, &everyone);
            assert_eq!(found.len(), 1, "{restarted} restarts, seed {seed}: {found:?}");
            for i in 0..5 {
                (0..i).filter(|j| *j != i).for_each(|j| cluster.introduce(i, j));
            }
            cluster.advance(Duration::from_secs(3));
            let inside = everyone.iter().filter(|i| cluster.node(**i).status().member).count();
            let found = groups(&cluster, &everyone);
            assert!((found.len(), inside) == (1, 5), "seed {seed}: {inside} inside, {found:?}");
        }
    }
}

/// Without a data directory the calendar keeps generations growing, also those of a group of one.
#[test]
fn group_of_one_without_record_has_generation_of_calendar() {
    let config = Config {
        id: ProcessId(7),
        name: "n7".into(),
        timings: Timings::fast(),
        record: None,
        seeds: 0,
        own: None,
        founders: None,
        alone: true,
        rng_seed: 1,
        calendar: 1000,
        lock_algorithm: LockAlgorithm::default(),
        local_turns: 1,
        holders_outlive: false,
    };
    let core = Core::new(config, Duration::from_secs(1));
    let (generation, _) = core.status(Duration::from_secs(1)).view.unwrap();
    assert!(generation >= 1000, "{generation}");
}
