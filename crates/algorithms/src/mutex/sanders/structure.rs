//! Information structures: whom each process asks, and whom it tells when it leaves.

use std::sync::Arc;

use konklave_process::{Group, ProcessId};

use crate::mutex::coterie::{self, Coterie, Figures, Places};
use crate::{Setup, SetupError};

/// An information structure. Any two processes either tell a third one when they leave, which both
/// have to ask, or have to ask each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Structure {
    group: Group,
    /// R: whom each must ask, in node order, each with its ids in order.
    ask: Vec<Arc<[ProcessId]>>,
    /// I: whom each must inform when it leaves.
    inform: Vec<Arc<[ProcessId]>>,
    /// St: who informs each.
    informants: Vec<Arc<[ProcessId]>>,
}

/// The sets R and I, in node order.
type Sets = (Vec<Places>, Vec<Places>);

/// The names of structures, for errors.
const FORMS: &str = "new, central, ricart-agrawala, lamport, maekawa, or for each id the processes \
that it asks and those that it informs, as in 0:0,1/0;1:0,1/1;2:0,1,2";

impl Structure {
    /// The structure that `text` names for the group of `setup`. It may be `careless` and have a
    /// process inform one that it does not ask.
    pub(super) fn named(
        text: &str,
        setup: &Setup,
        careless: bool,
    ) -> Result<Arc<Self>, SetupError> {
        let build = || Self::new(text, setup, careless).map(Arc::new);
        (*setup.share(&format!("structure={text}, {careless}"), build)).clone()
    }

    fn new(text: &str, setup: &Setup, careless: bool) -> Result<Self, SetupError> {
        let group = &setup.group;
        let n = group.len();
        let wrong = |why: String| SetupError(format!("structure={text}: {why}"));
        let everyone: Places = (0..n).collect();
        let each = |set: &dyn Fn(usize) -> Vec<usize>| -> Vec<Places> {
            (0..n).map(|i| coterie::tidy(set(i))).collect()
        };
        let (ask, inform): Sets = match text {
            "central" => (each(&|i| vec![0, i]), each(&|i| vec![0, i])),
            "ricart-agrawala" => (vec![everyone; n], each(&|i| vec![i])),
            "lamport" => (vec![everyone.clone(); n], vec![everyone; n]),
            "maekawa" => {
                let grid = Coterie::named("grid", setup)?;
                let place = |p: &ProcessId| group.place(*p).expect("quorums hold members");
                let quorums = each(&|i| grid.quorum(group.id(i)).iter().map(place).collect());
                (quorums.clone(), quorums)
            }
            // The first two ask each other; the others ask and inform both.
            "new" => {
                let hubs = || 0..n.min(2);
                let inform = |i| hubs().filter(|_| i > 1).chain([i]).collect();
                (each(&|i| hubs().chain([i]).collect()), each(&inform))
            }
            _ => explicit(text, group).map_err(wrong)?,
        };
        validate(&ask, &inform, careless, group).map_err(wrong)?;
        let mut informants = vec![Vec::new(); n];
        for (i, informed) in inform.iter().enumerate() {
            informed.iter().for_each(|&j| informants[j].push(i));
        }
        let informants: Vec<Places> = informants.into_iter().map(Into::into).collect();
        let ids = |sets: &[Places]| coterie::ids(sets, group);
        let (ask, inform, informants) = (ids(&ask), ids(&inform), ids(&informants));
        Ok(Self { group: group.clone(), ask, inform, informants })
    }

    fn place(&self, p: ProcessId) -> usize {
        self.group.place(p).expect("only members take part")
    }

    /// R: whom `p` must ask.
    pub fn ask(&self, p: ProcessId) -> &Arc<[ProcessId]> {
        &self.ask[self.place(p)]
    }

    /// I: whom `p` must inform when it leaves.
    pub fn inform(&self, p: ProcessId) -> &Arc<[ProcessId]> {
        &self.inform[self.place(p)]
    }

    /// St: who must inform `p`.
    pub fn informants(&self, p: ProcessId) -> &Arc<[ProcessId]> {
        &self.informants[self.place(p)]
    }

    /// How large R and I are, and in how many of them a process is.
    pub(super) fn figures(&self) -> [(&'static str, Figures); 2] {
        let of = |sets| Figures::of(sets, &self.group);
        [("asked", of(&self.ask)), ("informed", of(&self.inform))]
    }

    /// The fewest messages that an entry of `p` costs: requests, locks, and releases to others.
    pub fn least_messages(&self, p: ProcessId) -> usize {
        (self.inform(p).len() - 1) + 2 * (self.ask(p).len() - 1)
    }

    /// The most: besides, at each arbiter a failure or, if someone else can keep it locked, a lock
    /// taken from another (inquiry, return, second lock) and a failure. What one's own arbiter
    /// tells oneself is free.
    pub fn most_messages(&self, p: ProcessId) -> usize {
        let more = |arbiter: &ProcessId| {
            let informants = self.informants(*arbiter);
            let only_us = informants.iter().all(|q| q == arbiter || *q == p);
            match (*arbiter == p, only_us) {
                (true, true) => 0,
                (true, false) => 3,
                (false, true) => 1,
                (false, false) => 4,
            }
        };
        self.least_messages(p) + self.ask(p).iter().map(more).sum::<usize>()
    }
}

/// The sets R and I of a text like `0:0,1/0;1:0,1/1;2:0,1,2`, by ids. Without I, I is R. A process that the text
/// does not name asks and informs all processes.
fn explicit(text: &str, group: &Group) -> Result<Sets, String> {
    let mut ask: Vec<Places> = vec![(0..group.len()).collect(); group.len()];
    let mut inform = ask.clone();
    for (whose, sets) in coterie::entries(text, group, FORMS)? {
        let (asked, informed) = sets.split_once('/').unwrap_or((sets, sets));
        ask[whose] = coterie::tidy(coterie::places(asked, group)?);
        inform[whose] = coterie::tidy(coterie::places(informed, group)?);
    }
    Ok((ask, inform))
}

fn validate(
    ask: &[Places],
    inform: &[Places],
    careless: bool,
    group: &Group,
) -> Result<(), String> {
    let has = |set: &[usize], i: usize| set.len() == group.len() || set.binary_search(&i).is_ok();
    for i in 0..group.len() {
        let p = group.id(i);
        if !has(&inform[i], i) {
            return Err(format!("{p} must inform itself"));
        }
        let unasked = inform[i].iter().find(|j| !has(&ask[i], **j));
        if let Some(j) = unasked.filter(|_| !careless) {
            return Err(format!("{p} informs {} but does not ask it", group.id(*j)));
        }
    }
    let ask_each_other = |i: usize, j: usize| has(&ask[i], j) && has(&ask[j], i);
    match coterie::strangers(inform, ask_each_other) {
        None => Ok(()),
        Some((i, j)) => {
            let (p, q) = (group.id(i), group.id(j));
            Err(format!("{p} and {q} neither inform someone in common nor ask each other"))
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::Topology;

    use super::*;

    fn named(text: &str, n: usize) -> Result<Arc<Structure>, SetupError> {
        Structure::named(text, &Setup::new(Group::of(n), Topology::complete(n)), false)
    }

    fn ids(set: &[ProcessId]) -> Vec<u32> {
        set.iter().map(|p| p.0).collect()
    }

    #[test]
    fn the_new_structure_is_that_of_the_sources() {
        let new = named("new", 4).unwrap();
        let text = named("0:0,1/0;1:0,1/1;2:0,1,2;3:0,1,3", 4).unwrap();
        assert_eq!(new, text);
        let informants = |p| ids(new.informants(ProcessId(p)));
        assert_eq!([0, 1, 2, 3].map(informants), [vec![0, 2, 3], vec![1, 2, 3], vec![2], vec![3]]);
        let [(_, asked), (_, informed)] = new.figures();
        assert_eq!(asked.to_string(), "of 2 to 3 (mean 2.5), each process in 1 to 4");
        assert_eq!(informed.to_string(), "of 1 to 3 (mean 2.0), each process in 1 to 3");
        let bounds = |p| (new.least_messages(ProcessId(p)), new.most_messages(ProcessId(p)));
        assert_eq!([0, 1, 2, 3].map(bounds), [(2, 9), (2, 9), (6, 14), (6, 14)]);
    }

    #[test]
    fn the_classics_are_instances() {
        for n in [1, 2, 3, 5, 9] {
            let least = |text| named(text, n).unwrap().least_messages(ProcessId(n as u32 - 1));
            let others = n - 1;
            assert_eq!(least("central"), 3 * others.min(1));
            assert_eq!(least("ricart-agrawala"), 2 * others);
            assert_eq!(least("lamport"), 3 * others);
            assert_eq!(least("new"), if n > 2 { 6 } else { 2 * others });
        }
        let ricart_agrawala = named("ricart-agrawala", 3).unwrap();
        assert_eq!(ricart_agrawala.most_messages(ProcessId(0)), 6);
        assert_eq!(named("maekawa", 9).unwrap().least_messages(ProcessId(4)), 12);
    }

    #[test]
    fn invalid_structure_is_refused_with_a_reason() {
        for (text, why) in [
            ("0:0/0,2;1:1/1,2;2:2", "p0 informs p2 but does not ask it"),
            ("0:0,1/1;1:0,1;2:1,2", "p0 must inform itself"),
            ("0:0;1:1;2:0,1,2", "p0 and p1 neither inform someone in common nor ask each other"),
            ("0:0,1/0;1:1,2;2:1,2", "p0 and p1 neither inform"),
            ("star", "`star` is unknown; possible are new, central"),
        ] {
            let error = named(text, 3).unwrap_err();
            assert!(error.0.contains(why), "{error}");
        }
    }
}
