//! Symmetry: which processes are interchangeable, in numbers.
//!
//! A permutation of the places renames every numbered value: locals, messages, observations, environments.
//! Nobody declares how; it follows from two rules. The start is renamed to itself. If a query is renamed to
//! another, its answer is renamed to the other's answer. If a value would need two images under one
//! permutation, that permutation is refuted. book/en/learn/checking.md says why this is enough.

use rustc_hash::FxHashSet;

use crate::expand::{NumberedState, Rules};
use crate::tables::{
    BREAK, CUT, DUPLICATED, EARLY, EnvironmentFacts, Inputs, LOST, LocalFacts, OTHER, Query,
    Tables, UNDELIVERED,
};

/// The image of each place.
pub(crate) type Permutation = Box<[u32]>;

/// The reasons for which a permutation is refuted.
pub(crate) const STARTS: &str = "they do not start alike";
pub(crate) const STEPS: &str = "they do not do the same in the same situation";
pub(crate) const SENDS: &str = "they do not send the same in the same situation";
pub(crate) const CLIENTS: &str = "their clients may not do the same";
pub(crate) const JUDGES: &str = "a judge does not say the same of them";
pub(crate) const CYCLES: &str = "runs may go on forever";
/// The reasons in the order in which checkpoints number them.
pub(crate) const REASONS: [&str; 6] = [STARTS, STEPS, SENDS, CLIENTS, JUDGES, CYCLES];

/// A permutation that does not preserve the model, and why.
pub(crate) type Refuted = (Permutation, &'static str);

/// Larger groups are only turned round: they have too many permutations to look at.
const LARGEST_FULL: u32 = 6;
const UNKNOWN: u32 = u32::MAX;

/// The permutations that are not refuted, and the image of every value under each of them.
#[derive(Debug)]
pub(crate) struct Symmetry {
    inputs: Inputs,
    /// A group of permutations; the first is the identity.
    permutations: Vec<Permutation>,
    /// Their inverses.
    sources: Vec<Permutation>,
    pub(crate) products: Products,
    pub(crate) locals: Images,
    pub(crate) messages: Images,
    pub(crate) environments: Images,
    pub(crate) observations: Images,
    refuted: Vec<(usize, &'static str)>,
}

/// The multiplication table of the permutations.
#[derive(Debug)]
pub(crate) struct Products {
    many: usize,
    of: Vec<u32>,
}

impl Products {
    /// The permutation that applies `first`, then `then`.
    fn of(&self, then: usize, first: usize) -> usize {
        self.of[then * self.many + first] as usize
    }
}

/// The image of each value of one kind under each permutation.
#[derive(Debug, Default)]
pub(crate) struct Images {
    many: usize,
    of: Vec<u32>,
}

impl Images {
    #[inline]
    pub(crate) fn get(&self, thing: u32, by: usize) -> u32 {
        self.of[thing as usize * self.many + by]
    }

    fn knows(&self, thing: u32) -> bool {
        self.of.get(thing as usize * self.many).is_some_and(|image| *image != UNKNOWN)
    }

    /// Learns the images of one value: `orbit[by]` is its image under permutation `by`. The images of the
    /// other values of the orbit follow. Returns the permutations under which a value would have two images.
    pub(crate) fn learn(&mut self, orbit: &[u32], products: &Products) -> Vec<usize> {
        let all = 0..self.many;
        if self.knows(orbit[0]) {
            return all.filter(|&by| self.get(orbit[0], by) != orbit[by]).collect();
        }
        let mut refuted = Vec::new();
        for first in all.clone() {
            let row = orbit[first] as usize * self.many;
            if self.of.len() < row + self.many {
                self.of.resize(row + self.many, UNKNOWN);
            }
            for then in all.clone() {
                let (known, image) = (&mut self.of[row + then], orbit[products.of(then, first)]);
                if *known == UNKNOWN {
                    *known = image;
                } else if *known != image {
                    refuted.push(then);
                }
            }
        }
        refuted
    }
}

/// Scratch to find a canonical form in.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The state whose canonical form is computed.
    pub(crate) here: NumberedState,
    pub(crate) best: NumberedState,
    pub(crate) packed: Vec<u8>,
    row: Vec<u32>,
    ties: Vec<usize>,
    flight: Vec<u32>,
}

impl Scratch {
    pub(crate) fn of(here: NumberedState) -> Self {
        Self { here, ..Self::default() }
    }
}

impl Symmetry {
    /// The largest group found that contains no refuted permutation; none if that is the identity alone.
    pub(crate) fn without(refuted: &[Refuted], n: u32) -> Option<Self> {
        let refuted = refuted.iter().map(|(permutation, _)| permutation.clone()).collect();
        let permutations = subgroup(candidates(n), &refuted);
        let many = permutations.len();
        if many < 2 {
            return None;
        }
        let place = |p: &Permutation| permutations.iter().position(|q| q == p);
        let all = permutations.iter();
        let products = all.flat_map(|then| permutations.iter().map(|first| after(then, first)));
        let products = products.map(|p| place(&p).expect("it is a group") as u32).collect();
        let images = || Images { many, of: Vec::new() };
        Some(Self {
            inputs: Inputs { n },
            sources: permutations.iter().map(inverse).collect(),
            products: Products { many, of: products },
            locals: images(),
            messages: images(),
            environments: images(),
            observations: images(),
            refuted: Vec::new(),
            permutations,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.permutations.len()
    }

    /// The image of a place.
    pub(crate) fn place(&self, place: u32, by: usize) -> u32 {
        self.permutations[by][place as usize]
    }

    /// The image of a channel.
    pub(crate) fn channel(&self, channel: u32, by: usize) -> u32 {
        let n = self.inputs.n;
        self.place(channel / n, by) * n + self.place(channel % n, by)
    }

    /// The image of a link, which has the number of its channel from the lower place.
    pub(crate) fn link(&self, link: u32, by: usize) -> u32 {
        let n = self.inputs.n;
        let (one, other) = (self.place(link / n, by), self.place(link % n, by));
        one.min(other) * n + one.max(other)
    }

    fn channels(&self, set: u64, by: usize) -> u64 {
        let n = self.inputs.n;
        let members = (0..n * n).filter(|c| set != 0 && set >> c & 1 == 1);
        members.fold(0, |set, c| set | 1 << self.channel(c, by))
    }

    fn places(&self, set: u64, by: usize) -> u64 {
        let members = (0..self.inputs.n).filter(|p| set >> p & 1 == 1);
        members.fold(0, |set, place| set | 1 << self.place(place, by))
    }

    /// The image of an input.
    pub(crate) fn input(&self, input: u32, by: usize) -> u32 {
        if input < OTHER {
            return self.messages.get(input, by);
        }
        self.inputs.renamed(input, |place| self.place(place, by))
    }

    /// Whether all values in this query have images.
    pub(crate) fn covers(&self, query: Query) -> bool {
        match query {
            Query::Act(LOST | UNDELIVERED | DUPLICATED, message) => self.messages.knows(message),
            Query::Act(CUT | BREAK | EARLY, _) => true,
            Query::Act(local, input) => {
                self.locals.knows(local) && (input >= OTHER || self.messages.knows(input))
            }
            Query::React(environment, observation) => {
                self.environments.knows(environment) && self.observations.knows(observation)
            }
        }
    }

    /// Refutes these permutations.
    pub(crate) fn refute(&mut self, by: impl IntoIterator<Item = usize>, why: &'static str) {
        self.refuted.extend(by.into_iter().map(|by| (by, why)));
    }

    pub(crate) fn is_refuted(&self) -> bool {
        !self.refuted.is_empty()
    }

    /// Refutes all permutations but the identity.
    pub(crate) fn refute_all(&mut self, why: &'static str) {
        self.refuted.extend((1..self.len()).map(|by| (by, why)));
    }

    /// The refuted permutations, and why each was refuted.
    pub(crate) fn refuted(&self) -> impl Iterator<Item = (&Permutation, &'static str)> {
        self.refuted.iter().map(|(by, why)| (&self.permutations[*by], *why))
    }

    /// The classes of interchangeable places.
    pub(crate) fn classes(&self) -> Vec<Vec<u32>> {
        let class = |place: u32| {
            let mut class: Vec<u32> = (0..self.len()).map(|by| self.place(place, by)).collect();
            class.sort_unstable();
            class.dedup();
            class
        };
        let mut classes: Vec<_> = (0..self.inputs.n).map(class).filter(|c| c.len() > 1).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Whether the second local may be the image of the first: their facts agree under the permutation.
    pub(crate) fn fits_local(
        &self,
        (local, other): (LocalFacts, LocalFacts),
        by: usize,
        tables: &Tables,
    ) -> bool {
        let list = |(begin, end): (u32, u32)| &tables.lists[begin as usize..end as usize];
        let (news, others) = (list(local.news), list(other.news));
        let is_there = |news: &u32| others.contains(&self.input(*news, by));
        (self.place(local.place, by), local.up, local.at_rest, local.has_token, local.waits)
            == (other.place, other.up, other.at_rest, other.has_token, other.waits)
            && list(local.timers) == list(other.timers)
            && news.len() == others.len()
            && news.iter().all(is_there)
    }

    /// As [`Symmetry::fits_local`], for environments.
    pub(crate) fn fits_environment(
        &self,
        (environment, other): (EnvironmentFacts, EnvironmentFacts),
        by: usize,
        tables: &Tables,
    ) -> bool {
        let list = |(begin, end): (u32, u32)| &tables.asks[begin as usize..end as usize];
        let (asks, others) = (list(environment.asks), list(other.asks));
        let is_there =
            |(place, asked): &(u32, u32)| others.contains(&(self.place(*place, by), *asked));
        asks.len() == others.len()
            && asks.iter().all(is_there)
            && self.places(environment.waiting, by) == other.waiting
            && self.places(environment.holding, by) == other.holding
            && self.places(environment.obliged, by) == other.obliged
            && environment.spent == other.spent
            && self.channels(environment.cut, by) == other.cut
            && self.channels(environment.broken, by) == other.broken
    }

    /// The image of a set of places.
    pub(crate) fn alive(&self, alive: u64, by: usize) -> u64 {
        self.places(alive, by)
    }

    /// Puts the least of all that `scratch.here` can be renamed to into `scratch.best`; returns by which.
    pub(crate) fn canonical(&self, tables: &Tables, rules: &Rules, scratch: &mut Scratch) -> usize {
        let Scratch { here, best, row, ties, flight, .. } = scratch;
        ties.clear();
        for (by, sources) in self.sources.iter().enumerate() {
            row.clear();
            row.extend(sources.iter().map(|p| self.locals.get(here.locals[*p as usize], by)));
            row.push(self.environments.get(here.environment, by));
            let least = &mut best.locals;
            if ties.is_empty() || *row < *least {
                std::mem::swap(row, least);
                ties.clear();
                ties.push(by);
            } else if row == least {
                ties.push(by);
            }
        }
        best.environment = best.locals.pop().expect("the environment is last");
        best.sent = here.sent;
        let mut chosen = ties[0];
        for (i, &by) in ties.iter().enumerate() {
            self.rename_flight(here, by, tables, rules, flight);
            if i == 0 || *flight < best.flight {
                std::mem::swap(flight, &mut best.flight);
                chosen = by;
            }
        }
        best.find_keys(tables, rules);
        chosen
    }

    fn rename_flight(
        &self,
        numbered: &NumberedState,
        by: usize,
        tables: &Tables,
        rules: &Rules,
        into: &mut Vec<u32>,
    ) {
        into.clear();
        into.extend(numbered.flight.iter().map(|message| self.messages.get(*message, by)));
        if rules.options.fifo {
            into.sort_by_key(|message| tables.messages[*message as usize].channel);
        } else {
            into.sort_unstable();
        }
    }

    /// The state with its processes renamed; none if a part of it has no number yet.
    pub(crate) fn rename(
        &self,
        numbered: &NumberedState,
        by: usize,
        tables: &Tables,
        rules: &Rules,
    ) -> Option<NumberedState> {
        let named = numbered.locals.iter().all(|local| self.locals.knows(*local))
            && numbered.flight.iter().all(|message| self.messages.knows(*message))
            && self.environments.knows(numbered.environment);
        if !named {
            return None;
        }
        let sources = self.sources[by].iter();
        let locals = sources.map(|p| self.locals.get(numbered.locals[*p as usize], by)).collect();
        let environment = self.environments.get(numbered.environment, by);
        let mut renamed =
            NumberedState { locals, environment, sent: numbered.sent, ..NumberedState::default() };
        self.rename_flight(numbered, by, tables, rules, &mut renamed.flight);
        renamed.find_keys(tables, rules);
        Some(renamed)
    }

    pub(crate) fn bytes(&self) -> usize {
        let images = [&self.locals, &self.messages, &self.environments, &self.observations];
        4 * images.iter().map(|images| images.of.capacity()).sum::<usize>()
    }
}

/// The permutation that applies `first`, then `then`.
fn after(then: &Permutation, first: &Permutation) -> Permutation {
    first.iter().map(|place| then[*place as usize]).collect()
}

fn inverse(permutation: &Permutation) -> Permutation {
    let mut inverse = permutation.clone();
    for (from, to) in (0u32..).zip(permutation) {
        inverse[*to as usize] = from;
    }
    inverse
}

/// The permutations to try, in order: all of a small group, the rotations of a large one.
fn candidates(n: u32) -> Vec<Permutation> {
    if n > LARGEST_FULL {
        return (0..n).map(|shift| (0..n).map(|place| (place + shift) % n).collect()).collect();
    }
    let mut found = vec![Vec::new()];
    for _ in 0..n {
        let longer = found.iter().flat_map(|begun: &Vec<u32>| {
            let left = (0..n).filter(|place| !begun.contains(place));
            left.map(|place| begun.iter().copied().chain([place]).collect())
        });
        found = longer.collect();
    }
    found.into_iter().map(Vec::into_boxed_slice).collect()
}

/// A group of `candidates` without refuted permutations. Each candidate, in order, is added if the group it
/// generates contains no refuted one.
fn subgroup(candidates: Vec<Permutation>, refuted: &FxHashSet<Permutation>) -> Vec<Permutation> {
    let mut group = vec![candidates[0].clone()];
    let mut generators = Vec::new();
    for candidate in candidates {
        if refuted.contains(&candidate) || group.contains(&candidate) {
            continue;
        }
        generators.push(candidate);
        let larger = generated(&generators);
        if larger.iter().any(|p| refuted.contains(p)) {
            generators.pop();
        } else {
            group = larger;
        }
    }
    group.sort_unstable();
    group
}

/// The group that these permutations generate.
fn generated(generators: &[Permutation]) -> Vec<Permutation> {
    let mut found: Vec<Permutation> = vec![(0..generators[0].len() as u32).collect()];
    let mut known: FxHashSet<Permutation> = found.iter().cloned().collect();
    let mut at = 0;
    while at < found.len() {
        for generator in generators {
            let next = after(generator, &found[at]);
            if known.insert(next.clone()) {
                found.push(next);
            }
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[&[u32]]) -> Vec<Refuted> {
        rows.iter().map(|row| (Permutation::from(*row), "tried")).collect()
    }

    #[test]
    fn permutations_not_refuted_form_a_group() {
        let many = |n, refuted: &[&[u32]]| {
            Symmetry::without(&of(refuted), n).map_or(1, |symmetry| symmetry.len())
        };
        assert_eq!((many(1, &[]), many(2, &[]), many(3, &[]), many(5, &[])), (1, 2, 6, 120));
        assert_eq!(many(8, &[]), 8, "only turns");
        // Without one swap of three, turns are left, or another swap.
        assert_eq!(many(3, &[&[1, 0, 2]]), 2);
        assert_eq!(many(3, &[&[0, 2, 1], &[1, 0, 2], &[2, 1, 0]]), 3);
        let last_two = Symmetry::without(&of(&[&[1, 0, 2], &[2, 1, 0], &[1, 2, 0]]), 3);
        assert_eq!(last_two.unwrap().classes(), [[1, 2]]);
    }

    #[test]
    fn two_images_of_one_value_refute_a_permutation() {
        let symmetry = Symmetry::without(&of(&[]), 3).unwrap();
        let (products, mut images) = (&symmetry.products, Images { many: 6, of: Vec::new() });
        // Three things moved about as the places are.
        let orbit: Vec<u32> = (0..6).map(|by| symmetry.place(0, by)).collect();
        assert!(images.learn(&orbit, products).is_empty());
        assert!(
            (0..3).all(|thing| (0..6).all(|by| images.get(thing, by) == symmetry.place(thing, by)))
        );
        assert!(images.learn(&[1; 6], products).len() == 4, "two of six leave it where it is");
        // A table whose state is moved only by swaps is moved by turns as well.
        assert!(!images.learn(&[3, 4, 3, 3, 3, 3], products).is_empty());
    }
}
