//! Runs that never end, though nobody asks for anything more.

use crate::search::Seen;

/// A state from which no run without faults can ever come to an end: it lies on a cycle, and
/// whatever happens there leads back to it. The one reached first, if there is any.
///
/// Such a state is a member of a strongly connected component of the steps without faults that has
/// a cycle and no way out. That every fair run goes on for ever from there is certain; runs that
/// merely *can* go on for ever are not looked for here.
pub(crate) fn find(seen: &Seen) -> Option<u32> {
    let edges = seen.edges.as_ref()?;
    let n = seen.numbers.len();
    // All states from which an end can be reached, going backwards from the ends.
    let mut degree = vec![0u32; n + 1];
    for (_, to) in edges {
        degree[*to as usize + 1] += 1;
    }
    for i in 0..n {
        degree[i + 1] += degree[i];
    }
    let starts = degree.clone();
    let mut sources = vec![0u32; edges.len()];
    let mut has_way_out = vec![false; n];
    for (from, to) in edges {
        sources[degree[*to as usize] as usize] = *from;
        degree[*to as usize] += 1;
        has_way_out[*from as usize] = true;
    }
    let mut ends: Vec<u32> = (0..n as u32).filter(|&i| !has_way_out[i as usize]).collect();
    ends.extend(&seen.timed);
    let mut can_end = vec![false; n];
    for &end in &ends {
        can_end[end as usize] = true;
    }
    while let Some(state) = ends.pop() {
        let range = starts[state as usize] as usize..starts[state as usize + 1] as usize;
        for &from in &sources[range] {
            if !std::mem::replace(&mut can_end[from as usize], true) {
                ends.push(from);
            }
        }
    }
    // States that cannot end lead into a cycle; the first one that leads back to itself lies on it.
    // Follow any steps from the first of them: after as many as there are, we are on a cycle.
    let first = (0..n as u32).find(|&i| !can_end[i as usize])?;
    let mut following = vec![u32::MAX; n];
    for (from, to) in edges {
        following[*from as usize] = *to;
    }
    let (mut at, mut visited) = (first, vec![false; n]);
    while !std::mem::replace(&mut visited[at as usize], true) {
        at = following[at as usize];
    }
    Some(at)
}
