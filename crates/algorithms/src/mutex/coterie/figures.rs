//! How large quorums are, and how they share the work.

use std::fmt;
use std::sync::Arc;

use konklave_process::{Group, ProcessId};
use serde::Serialize;

/// How large quorums are, and in how many of them a process is.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// The size of the smallest quorum.
    pub least: usize,
    /// The size of the largest.
    pub most: usize,
    /// K: the mean size.
    pub mean: f64,
    /// The fewest quorums that a process is in.
    pub lightest_load: usize,
    /// The most quorums that a process is in.
    pub heaviest_load: usize,
}

impl Figures {
    /// Of these sets, one for each member of `group`. What is one set for many is looked at once.
    pub(in crate::mutex) fn of(sets: &[Arc<[ProcessId]>], group: &Group) -> Self {
        let mut loads = vec![0; group.len()];
        for same in sets.chunk_by(Arc::ptr_eq) {
            for p in same[0].iter() {
                loads[group.place(*p).expect("sets hold members")] += same.len();
            }
        }
        Self::from(sets.iter().map(|set| set.len()), &loads)
    }

    /// The figures of the majorities that `weighted:VOTES` names: each place takes the votes from itself on, in ring
    /// order, until they are more than half of all. It leaves out places that are `down` as long as the others
    /// suffice.
    pub(in crate::mutex) fn of_votes(votes: &[u64], down: &[bool]) -> Self {
        let n = votes.len();
        let total: u64 = votes.iter().sum();
        let up: u64 = (0..n).filter(|&i| !down[i]).map(|i| votes[i]).sum();
        let counts = |i: usize| votes[i] > 0 && (!down[i] || 2 * up <= total);
        let voters: Vec<usize> = (0..n).filter(|&i| counts(i)).collect();
        let vote = |k: usize| votes[voters[k % voters.len()]];
        let (mut sizes, mut sum, mut end, mut first) = (Vec::with_capacity(n), 0, 0, 0);
        // How much heavier the load of each voter is than that of the one before it.
        let mut steps = vec![0i64; voters.len() + 1];
        for place in 0..n {
            // The first voter at this place or behind it; those before it are not in any more.
            while voters.get(first).is_some_and(|voter| *voter < place) {
                sum -= vote(first);
                first += 1;
            }
            while 2 * sum <= total && end < first + voters.len() {
                sum += vote(end);
                end += 1;
            }
            sizes.push(end - first);
            let last = end.min(voters.len());
            steps[first] += 1;
            steps[last] -= 1;
            steps[0] += i64::from(end > last);
            steps[end - last] -= i64::from(end > last);
        }
        let mut loads = vec![0; n];
        let mut load = 0;
        for (voter, step) in voters.iter().zip(&steps) {
            load += step;
            loads[*voter] = load as usize;
        }
        Self::from(sizes.into_iter(), &loads)
    }

    fn from(sizes: impl ExactSizeIterator<Item = usize> + Clone, loads: &[usize]) -> Self {
        Self {
            least: sizes.clone().min().unwrap_or(0),
            most: sizes.clone().max().unwrap_or(0),
            mean: sizes.clone().sum::<usize>() as f64 / sizes.len() as f64,
            lightest_load: loads.iter().copied().min().unwrap_or(0),
            heaviest_load: loads.iter().copied().max().unwrap_or(0),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |a: usize, b: usize| if a == b { a.to_string() } else { format!("{a} to {b}") };
        write!(f, "of {}", range(self.least, self.most))?;
        if self.least < self.most {
            write!(f, " (mean {:.1})", self.mean)?;
        }
        write!(f, ", each process in {}", range(self.lightest_load, self.heaviest_load))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Coterie, construct, ids, tidy};
    use super::*;
    use crate::Setup;
    use konklave_process::Topology;

    #[test]
    fn majorities_have_the_figures_of_the_quorums_that_they_are() {
        let none = |n| vec![false; n];
        let last_down = |n: usize| (0..n).map(|i| i + 1 == n).collect();
        for votes in [
            &[1][..],
            &[1, 1],
            &[1, 1, 1],
            &[1; 4],
            &[1; 9],
            &[2, 1, 1],
            &[0, 3, 1, 1, 0, 2],
            &[0, 0, 5],
            &[1, 0, 0],
        ] {
            for down in [none(votes.len()), last_down(votes.len())] {
                let group = Group::of(votes.len());
                let sets: Vec<_> =
                    construct::weighted(votes, &down).into_iter().map(tidy).collect();
                let figures = Figures::of(&ids(&sets, &group), &group);
                assert_eq!(Figures::of_votes(votes, &down), figures, "{votes:?}, {down:?}");
            }
        }
    }

    #[test]
    fn figures_are_told_in_words() {
        let setup = Setup::new(Group::of(5), Topology::complete(5));
        let words = |text: &str| Coterie::named(text, &setup).unwrap().figures().to_string();
        assert_eq!(words("majority"), "of 3, each process in 3");
        let listed = "0:0,1;1:0,1;2:0,1,2;3:0;4:0";
        assert_eq!(words(listed), "of 1 to 3 (mean 1.8), each process in 0 to 5");
    }
}
