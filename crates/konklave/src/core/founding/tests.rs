use std::collections::BTreeSet;
use std::time::Duration;

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
