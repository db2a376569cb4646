//! The costs of an election.

use crate::Facts;

/// The messages of an election that one process starts.
pub(super) fn one_starts(f: &Facts<'_>) -> f64 {
    let group = &f.setup.group;
    if group.len() == 1 {
        return 0.0;
    }
    let place = |p| group.place(p).expect("initiators are members");
    let (from, to) = (place(f.initiators[0]), place(group.highest()));
    ((to + group.len() - from) % group.len()) as f64 + 2.0 * f.n()
}

/// The proposals of an election that all start: each number goes as far as the next higher one.
pub(super) fn proposals(f: &Facts<'_>) -> f64 {
    let members = f.setup.group.members();
    let n = members.len();
    // Going back round the ring twice, the stack holds the numbers ahead that nothing hides.
    let (mut stack, mut sum) = (Vec::<usize>::new(), 0);
    for i in (0..2 * n).rev() {
        while stack.last().is_some_and(|&j| members[j % n] <= members[i % n]) {
            stack.pop();
        }
        if i < n {
            sum += stack.last().map_or(n, |j| (j - i).min(n));
        }
        stack.push(i);
    }
    sum as f64
}

/// The most messages of the original form: the i-th of the initiators, from above, stops i others.
pub(super) fn relayed(f: &Facts<'_>) -> f64 {
    let (n, k) = (f.n(), f.k());
    if n > 1.0 { n * k - k * (k - 1.0) / 2.0 + n } else { 0.0 }
}
