//! Quorums: for each process whom it must ask, so that any two ask someone in common.

mod construct;
mod field;
mod figures;

use std::sync::Arc;

use konklave_process::{Group, ProcessId};

pub use self::figures::Figures;

use crate::{Setup, SetupError};

/// A coterie: a quorum for each process of a group, any two of which meet.
///
/// All processes share one coterie, so a group of n pays for it once: O(n√n) for grids and planes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coterie {
    group: Group,
    /// In node order; each with its ids in order.
    sets: Vec<Arc<[ProcessId]>>,
}

/// The names of coteries, for errors and help.
pub const FORMS: &str = "grid, plane, majority, tree, 13, weighted:VOTES (as in weighted:2,1,1), \
wall:WIDTHS (as in wall:1,2,3), or the quorum of each id, as in 0:3,4;1:3,4;2:3";

/// Up to this size of a group, every coterie is verified: for n = 10⁴ this takes a tenth of a second. Larger ones
/// are right by construction, and the tests verify each construction.
const MOST_VERIFIED: usize = 1 << 14;

impl Coterie {
    /// The coterie that `text` names for the group of `setup`, built and verified once for all.
    pub fn named(text: &str, setup: &Setup) -> Result<Arc<Self>, SetupError> {
        let build = || Self::new(text, setup).map(Arc::new);
        (*setup.share(&format!("quorums={text}"), build)).clone()
    }

    fn new(text: &str, setup: &Setup) -> Result<Self, SetupError> {
        let group = &setup.group;
        let n = group.len();
        let down: Vec<bool> = group.members().iter().map(|p| setup.down.contains(p)).collect();
        let wrong = |why: &str| SetupError(format!("quorums={text}: {why}"));
        let (kind, arguments) = text.split_once(':').unwrap_or((text, ""));
        let sets = match (kind, arguments) {
            ("grid", "") => construct::grid(n),
            ("plane", "") => construct::plane(n),
            ("majority", "") => construct::weighted(&vec![1; n], &down),
            ("tree", "") => construct::tree(n, &down)
                .ok_or_else(|| wrong("too many are down: no path leads through the tree"))?,
            ("13", "") if n == 13 => construct::thirteen(),
            ("13", "") => return Err(wrong(&format!("these quorums are for 13 nodes, not {n}"))),
            ("weighted", votes) => {
                // Small enough for any sum of them; twice it is compared.
                let votes: Vec<u32> = numbers(votes).map_err(|e| wrong(&e))?;
                let votes: Vec<u64> = votes.into_iter().map(u64::from).collect();
                if votes.len() != n || votes.iter().all(|v| *v == 0) {
                    return Err(wrong(&format!("it takes the votes of {n} nodes, not all 0")));
                }
                construct::weighted(&votes, &down)
            }
            ("wall", widths) => {
                let widths: Vec<usize> = numbers(widths).map_err(|e| wrong(&e))?;
                let sum = widths.iter().try_fold(0, |sum: usize, width| sum.checked_add(*width));
                if sum != Some(n) || widths.contains(&0) {
                    return Err(wrong(&format!(
                        "the rows of a wall hold its {n} nodes, none is empty"
                    )));
                }
                construct::wall(&widths)
            }
            _ => explicit(text, group).map_err(|e| wrong(&e))?,
        };
        Self::of(group, sets).map_err(|e| wrong(&e.0))
    }

    /// The coterie of these sets of places, in node order, if any two of them meet.
    fn of(group: &Group, sets: Vec<Vec<usize>>) -> Result<Self, SetupError> {
        let sets: Vec<Places> = sets.into_iter().map(tidy).collect();
        let coterie = Self { group: group.clone(), sets: ids(&sets, group) };
        match strangers(&sets, |_, _| false) {
            None => Ok(coterie),
            Some((i, j)) => {
                let named = |i: usize| format!("{} = {}", group.id(i), members(&coterie.sets[i]));
                let (a, b) = (named(i), named(j));
                Err(SetupError(format!("the quorums of {a} and of {b} have nobody in common")))
            }
        }
    }

    /// The quorum of `p`, its ids in order.
    pub fn quorum(&self, p: ProcessId) -> &Arc<[ProcessId]> {
        &self.sets[self.group.place(p).expect("every member has a quorum")]
    }

    /// A quorum of `p` in the tree of `group` without the processes that are `gone`, its ids in order, if there is one.
    /// It meets every other quorum of the tree, also one without other processes.
    pub(super) fn around(
        group: &Group,
        p: ProcessId,
        gone: impl Fn(ProcessId) -> bool,
    ) -> Option<Vec<ProcessId>> {
        let place = group.place(p)?;
        let path = construct::tree_path(group.len(), place, &|v| gone(group.id(v)))?;
        let mut ids: Vec<ProcessId> = path.into_iter().map(|v| group.id(v)).collect();
        ids.sort_unstable();
        Some(ids)
    }

    /// How many others are in the quorum of `p`: so many messages it takes to tell them all.
    pub fn others(&self, p: ProcessId) -> usize {
        let quorum = self.quorum(p);
        quorum.len() - usize::from(quorum.binary_search(&p).is_ok())
    }

    /// Its sizes and loads.
    pub fn figures(&self) -> Figures {
        Figures::of(&self.sets, &self.group)
    }
}

/// The quorums of a text like `0:3,4;1:3,4;2:3`, by ids. Who is not named asks all who are asked.
fn explicit(text: &str, group: &Group) -> Result<Vec<Vec<usize>>, String> {
    if group.len() > MOST_VERIFIED {
        return Err(format!("quorums are listed for up to {MOST_VERIFIED} nodes"));
    }
    let mut sets = vec![Vec::new(); group.len()];
    for (whose, members) in entries(text, group, FORMS)? {
        if !sets[whose].is_empty() {
            return Err(format!("{} is there twice", group.id(whose)));
        }
        sets[whose] = places(members, group)?;
    }
    let asked = tidy(sets.concat());
    sets.iter_mut().filter(|set| set.is_empty()).for_each(|set| *set = asked.to_vec());
    Ok(sets)
}

/// The parts `id:…` of a text, with the place of each id; `forms` says what would be right. They
/// are parted by semicolons or, for shells to let them alone, by plus signs.
pub(super) fn entries<'a>(
    text: &'a str,
    group: &Group,
    forms: &str,
) -> Result<Vec<(usize, &'a str)>, String> {
    let entry = |part: &'a str| {
        let Some((whose, what)) = part.split_once(':') else {
            return Err(format!("`{part}` is unknown; possible are {forms}"));
        };
        match places(whose, group)?[..] {
            [place] => Ok((place, what)),
            _ => Err(format!("`{whose}` is no id")),
        }
    };
    text.split([';', '+']).map(str::trim).filter(|part| !part.is_empty()).map(entry).collect()
}

/// The places of a list of ids, which must not be empty.
pub(super) fn places(list: &str, group: &Group) -> Result<Vec<usize>, String> {
    let place = |id: u32| group.place(ProcessId(id)).ok_or_else(|| format!("p{id} is no member"));
    numbers(list)?.into_iter().map(place).collect()
}

/// A list of numbers, which must not be empty.
pub(super) fn numbers<T: std::str::FromStr>(list: &str) -> Result<Vec<T>, String> {
    let number = |word: &str| {
        let digits = word.trim().trim_start_matches('p');
        digits.parse().map_err(|_| {
            let large = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            format!("`{}` is {}", word.trim(), if large { "too large" } else { "no number" })
        })
    };
    list.split(',').map(number).collect()
}

/// A set as people write it.
pub(super) fn members(set: &[ProcessId]) -> String {
    let names: Vec<String> = set.iter().map(ProcessId::to_string).collect();
    format!("{{{}}}", names.join(", "))
}

/// A set of places, in order, each once. Equal sets may be one.
pub(super) type Places = Arc<[usize]>;

/// Puts the members of a set in order, each once.
pub(super) fn tidy(mut set: Vec<usize>) -> Places {
    set.sort_unstable();
    set.dedup();
    set.into()
}

/// The ids of sets of places, each in the order of ids. What is one set stays one.
pub(super) fn ids(sets: &[Places], group: &Group) -> Vec<Arc<[ProcessId]>> {
    let mut all: Vec<Arc<[ProcessId]>> = Vec::with_capacity(sets.len());
    for (i, set) in sets.iter().enumerate() {
        let same = i.checked_sub(1).filter(|&before| Arc::ptr_eq(set, &sets[before]));
        all.push(same.map_or_else(
            || {
                let mut ids: Vec<ProcessId> = set.iter().map(|&place| group.id(place)).collect();
                ids.sort_unstable();
                ids.into()
            },
            |before| all[before].clone(),
        ));
    }
    all
}

/// The first two places that are not `excused` and whose sets have no common member. It is also none if the group is
/// too large to verify.
///
/// A place meets all places whose sets contain one of its members. So this takes n·K unions of n bits, instead of n²
/// intersections.
pub(super) fn strangers(
    sets: &[Places],
    excused: impl Fn(usize, usize) -> bool,
) -> Option<(usize, usize)> {
    let n = sets.len();
    // Of two sets that both hold more than half, one member is in both.
    if n > MOST_VERIFIED || sets.iter().all(|set| 2 * set.len() > n) {
        return None;
    }
    let words = n.div_ceil(64);
    let mut whose = vec![0u64; n * words];
    for (i, set) in sets.iter().enumerate() {
        set.iter().for_each(|q| whose[q * words + i / 64] |= 1 << (i % 64));
    }
    let mut met = vec![0u64; words];
    for (i, set) in sets.iter().enumerate() {
        met.fill(0);
        for q in &**set {
            let row = &whose[q * words..(q + 1) * words];
            met.iter_mut().zip(row).for_each(|(met, row)| *met |= row);
        }
        let gaps = met.iter().enumerate().filter(|(_, word)| **word != !0);
        let mut unmet = gaps.flat_map(|(w, word)| {
            (64 * w..n.min(64 * w + 64)).filter(move |j| word >> (j % 64) & 1 == 0)
        });
        if let Some(j) = unmet.find(|&j| !excused(i, j)) {
            return Some((i.min(j), i.max(j)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use konklave_process::Topology;

    use super::*;

    fn setup(n: usize) -> Setup {
        Setup::new(Group::of(n), Topology::complete(n))
    }

    fn named(text: &str, n: usize) -> Result<Arc<Coterie>, SetupError> {
        Coterie::named(text, &setup(n))
    }

    #[test]
    fn every_construction_gives_quorums_that_meet_and_hold_their_owner() {
        for n in (1..=120).chain([133, 183, 200, 273, 307, 400]) {
            for kind in ["grid", "plane", "majority", "tree"] {
                let coterie = named(kind, n).unwrap_or_else(|e| panic!("n = {n}: {e}"));
                let own = |p: &ProcessId| coterie.quorum(*p).contains(p);
                assert!(coterie.group.members().iter().all(own), "{kind}, n = {n}");
            }
        }
    }

    #[test]
    fn planes_have_equal_sizes_and_equal_loads() {
        for m in [1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19] {
            let figures = named("plane", m * (m + 1) + 1).unwrap().figures();
            let k = m + 1;
            assert_eq!((figures.least, figures.most), (k, k), "order {m}");
            assert_eq!((figures.lightest_load, figures.heaviest_load), (k, k), "order {m}");
        }
        let thirteen = named("13", 13).unwrap().figures();
        assert_eq!(thirteen.to_string(), "of 4, each process in 4");
    }

    #[test]
    fn group_without_a_plane_gets_a_folded_larger_one() {
        for (n, most) in [(4, 3), (6, 3), (8, 4), (12, 4), (14, 5), (32, 8), (58, 9), (92, 12)] {
            assert!(named("plane", n).unwrap().figures().most <= most, "n = {n}");
        }
        let figures = named("plane", 12).unwrap().figures().to_string();
        assert_eq!(figures, "of 4, each process in 3 to 6");
    }

    #[test]
    fn grids_trees_and_majorities_have_the_sizes_of_the_book() {
        let sizes = |kind, n| {
            let figures = named(kind, n).unwrap().figures();
            (figures.least, figures.most)
        };
        assert_eq!(sizes("grid", 100), (19, 19));
        assert_eq!(sizes("grid", 7), (3, 5));
        assert_eq!(sizes("majority", 7), (4, 4));
        assert_eq!(sizes("majority", 8), (5, 5));
        assert_eq!(sizes("tree", 127), (7, 7));
        assert_eq!(sizes("wall:1,2,3", 6), (3, 3));
    }

    #[test]
    fn the_tree_leads_past_those_that_are_down() {
        let mut setup = setup(15);
        setup.down = vec![ProcessId(0), ProcessId(2), ProcessId(3)];
        let coterie = Coterie::named("tree", &setup).unwrap();
        let down = |set: &Arc<[ProcessId]>| setup.down.iter().any(|p| set.contains(p));
        assert!(!coterie.sets.iter().any(down));
        setup.down = [0, 1, 3, 7].map(ProcessId).to_vec();
        let error = Coterie::named("tree", &setup).unwrap_err();
        assert_eq!(error.0, "quorums=tree: too many are down: no path leads through the tree");
    }

    #[test]
    fn sets_that_do_not_meet_are_named() {
        let error = named("0:1,2;1:2,3;2:0,1;3:0,3", 4).unwrap_err();
        let why = "the quorums of p0 = {p1, p2} and of p3 = {p0, p3} have nobody in common";
        assert_eq!(error.0, format!("quorums=0:1,2;1:2,3;2:0,1;3:0,3: {why}"));
    }

    #[test]
    fn a_text_gives_each_id_its_quorum_and_the_rest_all_of_them() {
        let group = Group::new([10, 20, 30].map(ProcessId).to_vec()).unwrap();
        let setup = Setup::new(group, Topology::complete(3));
        let coterie = Coterie::named("10:30;20:30,10", &setup).unwrap();
        assert_eq!(coterie, Coterie::named("10:30+20:30,10", &setup).unwrap());
        assert_eq!(**coterie.quorum(ProcessId(10)), [30].map(ProcessId));
        assert_eq!(**coterie.quorum(ProcessId(20)), [10, 30].map(ProcessId));
        assert_eq!(**coterie.quorum(ProcessId(30)), [10, 30].map(ProcessId));
        assert_eq!((coterie.others(ProcessId(10)), coterie.others(ProcessId(30))), (1, 1));
    }

    #[test]
    fn bad_texts_say_what_would_be_right() {
        for (text, why) in [
            ("grind", "`grind` is unknown; possible are grid, plane"),
            ("0:7", "p7 is no member"),
            ("0:1;0:2", "p0 is there twice"),
            ("0:", "`` is no number"),
            ("weighted:1,1", "it takes the votes of 3 nodes"),
            ("weighted:0,0,0", "not all 0"),
            ("weighted:18446744073709551615,1,1", "`18446744073709551615` is too large"),
            ("wall:18446744073709551615,3,1", "the rows of a wall hold its 3 nodes"),
            ("wall:1,1", "the rows of a wall hold its 3 nodes"),
            ("13", "these quorums are for 13 nodes, not 3"),
        ] {
            let error = named(text, 3).unwrap_err();
            assert!(error.0.contains(why), "{error}");
        }
    }

    #[test]
    fn a_coterie_is_built_once_for_all_processes() {
        let mut setup = setup(13);
        let first = Coterie::named("plane", &setup).unwrap();
        assert!(Arc::ptr_eq(&first, &Coterie::named("plane", &setup).unwrap()));
        assert_ne!(first, Coterie::named("13", &setup).unwrap());
        setup.group = Group::of(7);
        assert_eq!(Coterie::named("plane", &setup).unwrap().figures().most, 3);
    }

    #[test]
    fn large_groups_are_built_and_verified_quickly() {
        for (kind, n, k) in [("grid", 10_000, 199), ("plane", 9507, 98), ("plane", 10_303, 102)] {
            let figures = named(kind, n).unwrap().figures();
            assert_eq!((figures.most, figures.heaviest_load), (k, k), "{kind}, n = {n}");
        }
        assert_eq!(named("plane", 16_513).unwrap().figures().heaviest_load, 129);
    }
}
