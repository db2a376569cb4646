//! The clients: each multicasts a number of messages; some join, leave, or ask for a new view.

use std::sync::Arc;

use konklave_process::{Application, Process, ProcessId, ProcessMap, ProcessSet};

use super::{Bytes, Indication, Request};
use crate::{Setup, SetupError, Workload};

/// One client for each process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Clients(ProcessMap<Client>);

/// The actions of clients besides sending, from the switches of a data sheet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The processes that are no members at first, and ask to join.
    pub joiners: ProcessSet,
    /// The processes that leave after their last message.
    pub leavers: ProcessSet,
    /// The processes that ask once for a new view.
    pub reformers: ProcessSet,
    /// The processes whose operator revokes a lock once.
    pub revokers: ProcessSet,
    /// Whether an excluded process asks to join again.
    pub rejoin: bool,
    /// The processes whose application is a client of the group, with a session of its own.
    pub clients: ProcessSet,
}

impl Plan {
    /// Refuses a plan that names processes outside the group, or that leaves no first member.
    pub fn check(setup: &Setup) -> Result<(), SetupError> {
        for name in ["joiners", "leavers", "reform", "revoke", "clients"] {
            let text = setup.chosen.get(name).map_or("none", String::as_str);
            let wrong = |word: &&str| {
                let id = word.trim().trim_start_matches('p').parse();
                !id.is_ok_and(|id| setup.group.contains(ProcessId(id)))
            };
            if let Some(word) = text.split(',').filter(|_| text != "none").find(wrong) {
                return Err(SetupError(format!("{name}: `{}` is no member", word.trim())));
            }
        }
        let joiners = Self::of(setup).joiners;
        if setup.group.members().iter().all(|p| joiners.contains(*p)) {
            return Err(SetupError("joiners: someone must be a member from the start".into()));
        }
        Ok(())
    }

    /// The plan that `setup` chose.
    pub fn of(setup: &Setup) -> Self {
        let ids = |name| {
            let words = setup.chosen.get(name).map_or("", String::as_str).split(',');
            words.filter_map(|w| w.trim().trim_start_matches('p').parse().ok()).map(ProcessId)
        };
        let known = |name| ids(name).filter(|p| setup.group.contains(*p)).collect();
        Self {
            joiners: known("joiners"),
            leavers: known("leavers"),
            reformers: known("reform"),
            revokers: known("revoke"),
            rejoin: setup.chosen.get("rejoin").is_some_and(|v| v == "on"),
            clients: known("clients"),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Client {
    phase: Phase,
    /// How many messages it still wants to send.
    left: u32,
    /// Whether its last message was not delivered to it yet.
    awaits: bool,
    reforms: bool,
    leaves: bool,
    rejoins: bool,
    /// Whether it was asked for the state.
    asked_for_state: bool,
}

/// The relation of a client to the group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Outside,
    Joining,
    Inside,
    Leaving,
    Gone,
}

impl Clients {
    /// The clients that `workload` and the plan of `setup` describe.
    pub fn new(workload: &Workload, setup: &Setup) -> Self {
        let plan = Plan::of(setup);
        let nobody = Client {
            phase: Phase::Inside,
            left: 0,
            awaits: false,
            reforms: false,
            leaves: false,
            rejoins: plan.rejoin,
            asked_for_state: false,
        };
        let mut clients = ProcessMap::new(&setup.group, nobody);
        for (place, &p) in setup.group.members().iter().enumerate() {
            let client = &mut clients[p];
            client.left = workload.requests.get(place).copied().unwrap_or(0);
            client.reforms = plan.reformers.contains(p);
            client.leaves = plan.leavers.contains(p);
            if plan.joiners.contains(p) {
                client.phase = Phase::Outside;
            }
        }
        Self(clients)
    }
}

impl<P> Application<P> for Clients
where
    P: Process<Request = Request<Bytes>, Indication = Indication<Bytes>>,
{
    fn next(&self, at: ProcessId) -> Option<Request<Bytes>> {
        let client = &self.0[at];
        if client.asked_for_state {
            return Some(Request::State(vec![Arc::from([at.0 as u8]), Arc::from([])]));
        }
        match client.phase {
            Phase::Outside => Some(Request::Join),
            Phase::Inside if client.reforms => Some(Request::Reform),
            Phase::Inside if client.left > 0 && !client.awaits => {
                Some(Request::Multicast(Arc::from([at.0 as u8, client.left as u8])))
            }
            Phase::Inside if client.leaves && !client.awaits => Some(Request::Leave),
            Phase::Inside | Phase::Joining | Phase::Leaving | Phase::Gone => None,
        }
    }

    fn on_request(&mut self, at: ProcessId, request: &Request<Bytes>) {
        let client = &mut self.0[at];
        match request {
            Request::Multicast(_) => {
                client.left = client.left.saturating_sub(1);
                client.awaits = true;
            }
            Request::Join => client.phase = Phase::Joining,
            Request::Leave => client.phase = Phase::Leaving,
            Request::Reform | Request::Refound => client.reforms = false,
            Request::State(_) => client.asked_for_state = false,
            Request::Freeze(_) => {}
        }
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication<Bytes>) {
        let client = &mut self.0[at];
        match indication {
            Indication::Delivered { sender, .. } if *sender == at => client.awaits = false,
            Indication::Refused(_) => {
                client.awaits = false;
                client.left += 1;
            }
            Indication::Installed { view, .. } => {
                client.asked_for_state = false;
                if client.phase == Phase::Joining && view.has_member(at) {
                    client.phase = Phase::Inside;
                }
            }
            Indication::Excluded => {
                client.awaits = false;
                client.asked_for_state = false;
                client.phase = if client.rejoins { Phase::Outside } else { Phase::Gone };
            }
            Indication::Left => client.phase = Phase::Gone,
            Indication::StateWanted => client.asked_for_state = true,
            Indication::Sent { .. }
            | Indication::Delivered { .. }
            | Indication::Wedged
            | Indication::Blocked
            | Indication::State { .. } => {}
        }
    }

    fn on_crash(&mut self, at: ProcessId) {
        let client = &mut self.0[at];
        (client.phase, client.awaits, client.asked_for_state) = (Phase::Gone, false, false);
        client.reforms = false;
    }

    fn on_restart(&mut self, at: ProcessId) {
        self.0[at].phase = Phase::Outside;
    }

    /// A member that is asked for the state answers.
    fn must_request(&self, at: ProcessId) -> bool {
        self.0[at].asked_for_state
    }

    fn waiting(&self) -> Vec<ProcessId> {
        let waits = |client: &Client| {
            client.awaits || matches!(client.phase, Phase::Joining | Phase::Leaving)
        };
        self.0.iter().filter(|(_, client)| waits(client)).map(|(p, _)| p).collect()
    }
}
