//! The clients: each wants a lock a number of times; some join, leave, or ask for a new view.

use konklave_process::{Application, Process, ProcessId, ProcessMap};

use super::{Indication, Mode, Name, Request};
use crate::group::Plan;
use crate::{Setup, Workload};

/// One client for each process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lockers(ProcessMap<Locker>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Locker {
    name: Name,
    phase: Phase,
    /// How often it still wants in.
    left: u32,
    inside_group: bool,
    asked_to_join: bool,
    reforms: bool,
    leaves: bool,
    rejoins: bool,
    up: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Outside,
    Waiting,
    Inside,
}

impl Lockers {
    /// The clients that `workload` and the plan of `setup` describe. With `names` names, neighbours
    /// in node order want different ones.
    pub fn new(workload: &Workload, setup: &Setup) -> Self {
        let plan = Plan::of(setup);
        let names = setup.chosen.get("names").and_then(|n| n.parse().ok()).unwrap_or(1usize).max(1);
        let nobody = Locker {
            name: Name::from("a"),
            phase: Phase::Outside,
            left: 0,
            inside_group: true,
            asked_to_join: false,
            reforms: false,
            leaves: false,
            rejoins: plan.rejoin,
            up: true,
        };
        let mut lockers = ProcessMap::new(&setup.group, nobody);
        for (place, &p) in setup.group.members().iter().enumerate() {
            let locker = &mut lockers[p];
            if names > 1 {
                locker.name = Name::from(format!("a{}", place % names));
            }
            locker.left = workload.requests.get(place).copied().unwrap_or(0);
            locker.inside_group = !plan.joiners.contains(p);
            locker.rejoins |= plan.joiners.contains(p);
            locker.reforms = plan.reformers.contains(p);
            locker.leaves = plan.leavers.contains(p);
        }
        Self(lockers)
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Application<P> for Lockers {
    fn next(&self, at: ProcessId) -> Option<Request> {
        let locker = &self.0[at];
        if !locker.up {
            return None;
        }
        let name = locker.name.clone();
        if !locker.inside_group {
            return (!locker.asked_to_join && locker.rejoins).then_some(Request::Join);
        }
        match locker.phase {
            _ if locker.reforms => Some(Request::Reform),
            Phase::Outside if locker.left > 0 => {
                Some(Request::Acquire { name, mode: Mode::Exclusive })
            }
            Phase::Outside if locker.leaves => Some(Request::Leave),
            Phase::Inside => Some(Request::Release { name }),
            Phase::Outside | Phase::Waiting => None,
        }
    }

    fn on_request(&mut self, at: ProcessId, request: &Request) {
        let locker = &mut self.0[at];
        match request {
            Request::Acquire { .. } => {
                locker.phase = Phase::Waiting;
                locker.left = locker.left.saturating_sub(1);
            }
            Request::Release { .. } => locker.phase = Phase::Outside,
            Request::Join => locker.asked_to_join = true,
            Request::Leave => locker.leaves = false,
            Request::Reform | Request::Refound => locker.reforms = false,
            Request::Operate(_) => {}
        }
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) {
        let locker = &mut self.0[at];
        match indication {
            Indication::Granted { .. } => locker.phase = Phase::Inside,
            Indication::Lost { .. } => locker.phase = Phase::Outside,
            Indication::Installed(view) => {
                if view.has_member(at) {
                    (locker.inside_group, locker.asked_to_join) = (true, false);
                }
            }
            Indication::Excluded => {
                locker.phase = Phase::Outside;
                (locker.inside_group, locker.asked_to_join) = (false, false);
            }
            Indication::Left => {
                locker.phase = Phase::Outside;
                (locker.inside_group, locker.rejoins) = (false, false);
            }
            Indication::Blocked | Indication::Replied(_) => {}
        }
    }

    fn on_crash(&mut self, at: ProcessId) {
        let locker = &mut self.0[at];
        (locker.up, locker.phase, locker.reforms) = (false, Phase::Outside, false);
    }

    fn on_restart(&mut self, at: ProcessId) {
        let locker = &mut self.0[at];
        (locker.up, locker.inside_group, locker.asked_to_join) = (true, false, false);
    }

    fn waiting(&self) -> Vec<ProcessId> {
        let waiting = self.0.iter().filter(|(_, locker)| locker.phase == Phase::Waiting);
        waiting.map(|(p, _)| p).collect()
    }
}
