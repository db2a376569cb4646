//! The properties: one leader at a time, one per epoch, agreement, termination, a live leader, the
//! right winner;
//! and the shape of the tree, where an algorithm builds one.

mod reach;

use konklave_process::{
    End, Inspect, Monitor, ProcessId, ProcessMap, ProcessSet, Verdict, Violation,
};
use smallvec::SmallVec;

use self::reach::Reach;
use super::{Indication, Request};
use crate::{Assumption, DataSheet, Guarantee, Setup, Winner};

/// The judges of elections.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Properties {
    /// The leader in the view of each process.
    views: ProcessMap<View>,
    leading: ProcessSet,
    /// The leader of each epoch.
    reigns: SmallVec<[(u32, ProcessId); 1]>,
    /// The candidates that do not know the outcome yet.
    candidates: ProcessSet,
    /// A wrong winner, and the candidate that should have won.
    upset: Option<(ProcessId, ProcessId)>,
    /// The parent of each process, if the algorithm guarantees a tree.
    parents: Option<ProcessMap<Option<ProcessId>>>,
    /// Whether any process was asked to start.
    begun: bool,
    /// The processes that were asked to start and do not know the outcome.
    asked: ProcessSet,
    /// The processes that can reach each other, if messages go along links of a graph only.
    reach: Option<Reach>,
    /// Whether a process crashed or restarted, or a link broke or was mended, where that ends a guarantee.
    changed: bool,
    /// Whether the step that is judged takes in a message; false between steps.
    hears: bool,
    rules: konklave_process::Fixed<Rules>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum View {
    Unknown,
    Anonymous(u32),
    Known(ProcessId),
    Loop,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    winner: Option<Winner>,
    one_at_a_time: bool,
    /// One leader at a time and per epoch, until the topology changes.
    while_unchanged: bool,
    one_per_epoch: bool,
    epochs_grow: bool,
    must_agree: bool,
    must_live: bool,
    must_end: bool,
    survives_crashes: bool,
    no_parent_cycle: bool,
    spanning_tree: bool,
    stable: bool,
}

impl Properties {
    /// The judges of what `sheet` claims.
    pub fn new(sheet: &DataSheet, setup: &Setup) -> Self {
        let claims = |guarantee| sheet.guarantees.contains(&guarantee);
        // To follow the parents at every step would be too dear in large groups.
        let no_parent_cycle = claims(Guarantee::AcyclicParents) && setup.group.len() <= 1000;
        let spanning_tree = claims(Guarantee::SpanningTree);
        let builds_tree = no_parent_cycle || spanning_tree;
        Self {
            views: ProcessMap::new(&setup.group, View::Unknown),
            leading: ProcessSet::new(),
            reigns: SmallVec::new(),
            candidates: ProcessSet::new(),
            upset: None,
            parents: builds_tree.then(|| ProcessMap::new(&setup.group, None)),
            begun: false,
            asked: ProcessSet::new(),
            hears: false,
            reach: Reach::new(sheet, setup),
            changed: false,
            rules: konklave_process::Fixed(Rules {
                winner: sheet.winner,
                one_at_a_time: claims(Guarantee::UniqueLeader),
                while_unchanged: claims(Guarantee::UniqueWhileUnchanged),
                one_per_epoch: claims(Guarantee::UniquePerEpoch),
                epochs_grow: claims(Guarantee::GrowingEpochs),
                must_agree: claims(Guarantee::Agreement),
                must_live: claims(Guarantee::LiveLeader),
                must_end: claims(Guarantee::Termination)
                    || claims(Guarantee::TerminationWithProbabilityOne),
                survives_crashes: !sheet.assumes.contains(&Assumption::NoCrash),
                no_parent_cycle,
                spanning_tree,
                stable: false,
            }),
        }
    }

    /// Judges also, if `stable`, that no message of another process deposes a leader.
    pub fn watching(mut self, stable: bool) -> Self {
        self.rules.0.stable = stable;
        self
    }

    /// The leader of the latest epoch, and the epoch.
    pub fn leader(&self) -> Option<(ProcessId, u32)> {
        let (epoch, last) = self.reigns.iter().max_by_key(|(epoch, _)| *epoch).copied()?;
        let now = self.leading.lowest().filter(|_| self.leading.len() == 1);
        let leader = now.filter(|_| self.rules.while_unchanged).unwrap_or(last);
        Some((leader, epoch))
    }

    /// How many processes know of a leader.
    pub fn informed(&self) -> usize {
        self.views.values().filter(|v| matches!(v, View::Known(_) | View::Anonymous(_))).count()
    }

    /// The number of processes that name the leader, itself included; 0 unless exactly one leads.
    pub fn agreeing(&self) -> usize {
        let leader = self.leading.lowest().filter(|_| self.leading.len() == 1);
        let names = |view: &&View| match view {
            View::Known(p) => Some(*p) == leader,
            View::Anonymous(_) => leader.is_some(),
            View::Unknown | View::Loop => false,
        };
        self.views.values().filter(names).count()
    }

    /// The processes that lead now.
    pub fn leading(&self) -> &ProcessSet {
        &self.leading
    }

    /// Whether `at` knows of a leader.
    pub fn is_informed(&self, at: ProcessId) -> bool {
        matches!(self.views[at], View::Known(_) | View::Anonymous(_))
    }

    /// The leader that `at` knows of, if leaders have names.
    pub fn leader_of(&self, at: ProcessId) -> Option<ProcessId> {
        match self.views[at] {
            View::Known(leader) => Some(leader),
            View::Unknown | View::Anonymous(_) | View::Loop => None,
        }
    }

    /// Whether a process found that the topology has a loop.
    pub fn found_loop(&self) -> bool {
        self.looped() > 0
    }

    /// How many processes found that the topology has a loop, and know of no leader since.
    pub fn looped(&self) -> usize {
        self.views.values().filter(|v| **v == View::Loop).count()
    }

    fn on_leading(&mut self, at: ProcessId, epoch: u32) -> Verdict {
        self.begun = true;
        self.views[at] = View::Known(at);
        let in_office = self.leading.contains(at);
        self.leading.insert(at);
        let undivided = self.rules.while_unchanged && !self.changed;
        if (self.rules.one_at_a_time || undivided) && self.leading.len() > 1 {
            let rivals: ProcessSet =
                self.leading.iter().filter(|p| !self.are_apart(*p, at)).collect();
            if rivals.len() > 1 {
                let detail = format!("{rivals:?} lead at the same time");
                return Err(Violation::new("one leader at a time", detail));
            }
        }
        let earlier = self.reigns.iter().filter(|(_, p)| *p == at).map(|(e, _)| *e).max();
        if self.rules.epochs_grow && !in_office && earlier.is_some_and(|e| e >= epoch) {
            return Err(Violation::new(
                "growing epochs",
                format!("{at} leads in epoch {epoch}, and did so before"),
            ));
        }
        let of_epoch = |(e, p): &&(u32, ProcessId)| *e == epoch && !self.are_apart(*p, at);
        let reign = self.reigns.iter().find(of_epoch).copied();
        match reign {
            Some((_, before)) if before == at => {}
            // Each part of a divided topology counts epochs by itself: after that they tell nothing.
            Some(_) if self.rules.while_unchanged && self.changed => {}
            // Textbook algorithms know no epochs: a new election may have a new winner.
            Some(_) if !self.has_one_per_epoch() => {
                self.reigns.retain(|(e, _)| *e != epoch);
                self.reigns.push((epoch, at));
            }
            Some((_, before)) => {
                return Err(Violation::new(
                    "one leader per epoch",
                    format!("{before} and {at} both led in epoch {epoch}"),
                ));
            }
            None => {
                self.reigns.push((epoch, at));
                self.reigns.sort_unstable();
            }
        }
        Ok(())
    }

    /// Whether an epoch may have one leader only.
    fn has_one_per_epoch(&self) -> bool {
        self.rules.one_per_epoch || self.rules.while_unchanged && !self.changed
    }

    /// The topology changes.
    fn on_change(&mut self) {
        self.changed |= self.rules.while_unchanged;
    }

    /// Whether both are up, but the graph between them is split.
    fn are_apart(&self, one: ProcessId, other: ProcessId) -> bool {
        self.reach.as_ref().is_some_and(|reach| reach.are_apart(one, other))
    }

    /// The wrong winner, the process that should have won, and why.
    fn wrong_winner(&self, end: &End) -> Option<(ProcessId, ProcessId, &'static str)> {
        match self.rules.winner? {
            Winner::MaxAll => {
                let right = end.alive.highest()?;
                let (leader, _) = self.leader()?;
                (leader != right).then_some((leader, right, "highest live id"))
            }
            Winner::MaxInitiator => {
                let (leader, right) = self.upset?;
                Some((leader, right, "highest id among the initiators"))
            }
            Winner::Any => None,
        }
    }

    /// `at` learns that its election is over. There may be several in one run, each with initiators
    /// of its own, so the winner is held against every candidate when that candidate hears of it.
    fn is_over(&mut self, at: ProcessId, leader: Option<ProcessId>) {
        self.asked.remove(at);
        let ran = self.candidates.remove(at);
        let Some(leader) = leader.filter(|_| self.rules.winner == Some(Winner::MaxInitiator))
        else {
            return;
        };
        let usurped = leader == at && !ran && !self.leading.contains(at);
        let highest = self.upset.is_none_or(|(_, right)| right < at);
        if (ran && leader < at || usurped) && highest {
            let right = if usurped { self.candidates.highest().unwrap_or(at) } else { at };
            self.upset = Some((leader, right));
        }
    }

    /// A loop means that there is no leader: a run must not have both.
    fn loop_or_leader(&self, end: &End) -> Verdict {
        match self.leading.lowest() {
            Some(leader) if !end.faulty => Err(Violation::new(
                "agreement",
                format!("{leader} leads, but someone found that the topology has a loop"),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether all that asked for an election crashed before anyone won. No live process need know of it.
    fn was_forgotten(&self, end: &End) -> bool {
        let knows = |(p, view): (ProcessId, &View)| end.alive.contains(p) && *view != View::Unknown;
        self.rules.survives_crashes
            && end.faulty
            && self.asked.is_empty()
            && self.reigns.is_empty()
            && !self.views.iter().any(knows)
    }

    /// Whether the processes of a part know a leader, agree on it, and follow a live one.
    fn judge_part(&self, part: &ProcessSet, end: &End) -> Verdict {
        let views = || self.views.iter().filter(|(p, _)| part.contains(*p));
        if self.rules.must_end
            && let Some((p, _)) = views().find(|(_, v)| **v == View::Unknown)
        {
            return Err(Violation::new("termination", format!("{p} never learns who leads")));
        }
        if self.rules.must_agree {
            let mut named = views().filter_map(|(p, v)| match v {
                View::Known(leader) => Some((p, *leader)),
                View::Unknown | View::Anonymous(_) | View::Loop => None,
            });
            if let Some((p, leader)) = named.next()
                && let Some((q, other)) = named.find(|(_, other)| *other != leader)
            {
                return Err(Violation::new(
                    "agreement",
                    format!("{p} takes {leader} for the leader, {q} takes {other}"),
                ));
            }
        }
        if self.rules.must_live {
            let dead = |v: &View| matches!(v, View::Known(leader) if !end.alive.contains(*leader));
            if let Some((p, _)) = views().find(|(_, v)| dead(v)) {
                let detail = format!("{p} follows a leader who is down");
                return Err(Violation::new("live leader", detail));
            }
        }
        let leading: ProcessSet = self.leading.intersection(part);
        if self.rules.while_unchanged && leading.len() > 1 {
            let detail = format!("in the end {leading:?} lead, with links between them");
            return Err(Violation::new("one leader at a time", detail));
        }
        Ok(())
    }

    /// A process whose parents do not lead to `leader`, if there is one.
    fn astray(&self, leader: ProcessId, end: &End) -> Option<ProcessId> {
        let parents = self.parents.as_ref()?;
        let n = end.alive.len();
        let mut rooted: ProcessSet = [leader].into_iter().collect();
        for p in end.alive.iter() {
            let mut way: SmallVec<[ProcessId; 16]> = SmallVec::new();
            let mut at = p;
            while !rooted.contains(at) {
                way.push(at);
                match parents[at] {
                    Some(parent) if way.len() < n => at = parent,
                    Some(_) | None => return Some(p),
                }
            }
            rooted.extend(way);
        }
        parents[leader].is_some().then_some(leader)
    }
}

impl<P: Inspect<Request = Request, Indication = Indication>> Monitor<P> for Properties {
    type Tag = ();

    fn view(&self, process: &P) -> Option<u64> {
        Some(process.parent().map_or(0, |parent| u64::from(parent.0) + 1))
    }

    fn remembers_messages(&self) -> bool {
        self.parents.is_some()
    }

    fn on_request(&mut self, at: ProcessId, Request::Elect: &Request) -> Verdict {
        self.begun = true;
        self.asked.insert(at);
        Ok(())
    }

    fn on_receive(&mut self, _at: ProcessId, _message: Option<&P::Message>, _tag: &()) -> Verdict {
        self.hears = self.rules.stable;
        Ok(())
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) -> Verdict {
        match *indication {
            Indication::Leading { .. } => self.is_over(at, Some(at)),
            Indication::Following { leader, .. } => self.is_over(at, leader),
            Indication::Loop => self.is_over(at, None),
            Indication::Candidate | Indication::Deposed => {}
        }
        if !matches!(indication, Indication::Leading { .. })
            && self.leading.remove(at)
            && self.hears
        {
            let detail = format!("{at} led, and goes by what another says");
            return Err(Violation::new("stability", detail));
        }
        match *indication {
            Indication::Candidate => {
                self.candidates.insert(at);
            }
            Indication::Leading { epoch } => return self.on_leading(at, epoch),
            Indication::Following { leader, epoch } => {
                let of_epoch = |(e, p): &&(u32, ProcessId)| *e == epoch && !self.are_apart(*p, at);
                if self.has_one_per_epoch()
                    && let Some(leader) = leader
                    && let Some(&(_, before)) = self.reigns.iter().find(of_epoch)
                    && before != leader
                {
                    return Err(Violation::new(
                        "one leader per epoch",
                        format!("{at} follows {leader} in epoch {epoch}, in which {before} led"),
                    ));
                }
                self.views[at] = leader.map_or(View::Anonymous(epoch), View::Known);
            }
            Indication::Deposed => self.views[at] = View::Unknown,
            Indication::Loop => self.views[at] = View::Loop,
        }
        Ok(())
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.leading.remove(at);
        self.asked.remove(at);
        self.views[at] = View::Unknown;
        if let Some(parents) = &mut self.parents {
            parents[at] = None;
        }
        if let Some(reach) = &mut self.reach
            && reach.on_crash(at)
        {
            self.on_change();
        }
    }

    fn on_restart(&mut self, at: ProcessId) {
        if let Some(reach) = &mut self.reach {
            reach.on_restart(at);
        }
        self.on_change();
    }

    fn on_break(&mut self, one: ProcessId, other: ProcessId) {
        if let Some(reach) = &mut self.reach {
            reach.on_break(one, other);
        }
        self.on_change();
    }

    fn on_mend(&mut self, one: ProcessId, other: ProcessId) {
        if let Some(reach) = &mut self.reach {
            reach.on_mend(one, other);
        }
        self.on_change();
    }

    fn after_step(&mut self, at: ProcessId, process: &P) -> Verdict {
        self.hears = false;
        let Some(parents) = &mut self.parents else { return Ok(()) };
        let parent = process.parent();
        let before = std::mem::replace(&mut parents[at], parent);
        if before == parent || !self.rules.no_parent_cycle {
            return Ok(());
        }
        // Only the new parent can have closed a cycle, and then it leads back to us.
        let n = parents.values().count();
        let mut ancestors = std::iter::successors(parent, |p| parents[*p]).take(n);
        if !ancestors.any(|p| p == at) {
            return Ok(());
        }
        let detail = format!("{at} took its own descendant for its parent: {parents:?}");
        Err(Violation::new("acyclic parents", detail))
    }

    /// A tree is judged in the end; a cycle may come and go.
    fn judges_every_step(&self) -> bool {
        self.rules.no_parent_cycle
    }

    #[inline]
    fn prefetch(&self, at: ProcessId, told: bool) {
        if told {
            self.views.prefetch(at);
        }
    }

    fn at_end(&self, end: &End) -> Verdict {
        // A run that was cut off after a fault may be in the middle of getting over it.
        let unsettled = !end.quiet && end.faulty;
        if !self.begun || unsettled || self.was_forgotten(end) {
            return Ok(());
        }
        if self.found_loop() {
            return self.loop_or_leader(end);
        }
        match self.reach.as_ref().and_then(|reach| reach.parts(&end.alive)) {
            None => self.judge_part(&end.alive, end)?,
            Some(parts) => {
                let crashed = end.alive.len() < self.views.iter().count();
                let led = |part: &&ProcessSet| self.leading.iter().any(|p| part.contains(p));
                // A part that a crash has cut off need not have a leader.
                for part in parts.iter().filter(|part| led(part) || !crashed) {
                    self.judge_part(part, end)?;
                }
            }
        }
        if !end.faulty
            && let Some((leader, right, rule)) = self.wrong_winner(end)
        {
            return Err(Violation::new(
                "right winner",
                format!("{leader} won, but {right} has the {rule}"),
            ));
        }
        if self.rules.must_end && self.leading.is_empty() && !end.faulty {
            return Err(Violation::new("termination", "in the end nobody leads"));
        }
        if self.rules.spanning_tree
            && !end.faulty
            && let Some(leader) = self.leading.lowest()
            && let Some(p) = self.astray(leader, end)
        {
            let detail = format!("the parents of {p} do not lead to {leader}");
            return Err(Violation::new("spanning tree", detail));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;
    use crate::election::chang_roberts::ChangRoberts;
    use konklave_process::{Group, Topology};

    const P0: ProcessId = ProcessId(0);
    const P1: ProcessId = ProcessId(1);

    fn judges() -> Properties {
        let setup = Setup::new(Group::of(2), Topology::directed_ring(2));
        let mut judges = Properties::new(&ChangRoberts::SHEET, &setup);
        Monitor::<ChangRoberts>::on_request(&mut judges, P0, &Request::Elect).unwrap();
        judges
    }

    fn tell(judges: &mut Properties, at: ProcessId, indication: Indication) -> Verdict {
        Monitor::<ChangRoberts>::on_indication(judges, at, &indication)
    }

    fn end(judges: &Properties) -> Verdict {
        let end = End { alive: [P0, P1].into_iter().collect(), faulty: false, quiet: true };
        Monitor::<ChangRoberts>::at_end(judges, &end)
    }

    fn broken(verdict: Verdict) -> &'static str {
        verdict.expect_err("a violation").property
    }

    #[test]
    fn two_leaders_at_a_time_are_one_too_many() {
        let mut judges = judges();
        tell(&mut judges, P0, Indication::Leading { epoch: 0 }).unwrap();
        let second = tell(&mut judges, P1, Indication::Leading { epoch: 0 });
        assert_eq!(broken(second), "one leader at a time");
    }

    #[test]
    fn a_leader_who_stepped_down_makes_room() {
        let mut judges = judges();
        tell(&mut judges, P0, Indication::Leading { epoch: 0 }).unwrap();
        tell(&mut judges, P0, Indication::Deposed).unwrap();
        assert_eq!(tell(&mut judges, P1, Indication::Leading { epoch: 0 }), Ok(()));
    }

    #[test]
    fn everyone_must_learn_who_leads() {
        let mut judges = judges();
        tell(&mut judges, P1, Indication::Leading { epoch: 0 }).unwrap();
        assert_eq!(broken(end(&judges)), "termination");
    }

    #[test]
    fn all_must_name_the_same() {
        let mut judges = judges();
        tell(&mut judges, P1, Indication::Leading { epoch: 0 }).unwrap();
        tell(&mut judges, P0, Indication::Following { leader: Some(P0), epoch: 0 }).unwrap();
        assert_eq!(broken(end(&judges)), "agreement");
    }

    #[test]
    fn the_highest_must_win() {
        let mut judges = judges();
        tell(&mut judges, P0, Indication::Leading { epoch: 0 }).unwrap();
        tell(&mut judges, P1, Indication::Following { leader: Some(P0), epoch: 0 }).unwrap();
        assert_eq!(broken(end(&judges)), "right winner");
    }

    #[test]
    fn each_election_has_initiators_of_its_own() {
        let setup = Setup::new(Group::of(2), Topology::directed_ring(2));
        let sheet = DataSheet { winner: Some(Winner::MaxInitiator), ..ChangRoberts::SHEET };
        let elect = |rounds: &[(ProcessId, ProcessId)]| {
            let mut judges = Properties::new(&sheet, &setup);
            for &(candidate, leader) in rounds {
                tell(&mut judges, candidate, Indication::Candidate).unwrap();
                for p in [P0, P1] {
                    tell(&mut judges, p, Indication::Deposed).unwrap();
                }
                tell(&mut judges, leader, Indication::Leading { epoch: 0 }).unwrap();
                let other = if leader == P0 { P1 } else { P0 };
                let following = Indication::Following { leader: Some(leader), epoch: 0 };
                tell(&mut judges, other, following).unwrap();
            }
            end(&judges)
        };
        assert_eq!(elect(&[(P1, P1), (P0, P0)]), Ok(()), "p1 was no candidate the second time");
        assert_eq!(broken(elect(&[(P1, P0)])), "right winner", "the candidate lost");
        assert_eq!(broken(elect(&[(P0, P1)])), "right winner", "who won was no candidate");
        assert_eq!(broken(elect(&[(P1, P0), (P1, P1)])), "right winner", "and once is enough");
    }

    #[test]
    fn a_leader_who_is_gone_leads_nobody() {
        let mut judges = judges();
        for p in [P0, P1] {
            tell(&mut judges, p, Indication::Following { leader: Some(P1), epoch: 0 }).unwrap();
        }
        assert_eq!(broken(end(&judges)), "termination");
    }
}
