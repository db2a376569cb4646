//! The clients: each multicasts a number of messages; some join, leave, or ask for a new view.

use std::sync::Arc;

use konklave_process::{Application, Process, ProcessId, ProcessMap, ProcessSet};

use super::{Bytes, Indication, Request};
use crate::{Setup, SetupError, Workload};

/// One client for each process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Clients(ProcessMap<Client>);

/// What the clients do besides sending, from the switches of a data sheet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// Who is no member from the start, and asks to become one.
    pub joiners: ProcessSet,
    /// Who leaves when it has sent its messages.
    pub leavers: ProcessSet,
    /// Who asks once for a new view.
    pub reformers: ProcessSet,
    /// Whether who was excluded asks to become a member again.
    pub rejoin: bool,
    /// Whose application is a client of the group, with a session of its own.
    pub clients: ProcessSet,
}

impl Plan {
    /// Refuses a plan that names strangers, or that leaves nobody to begin with.
    pub fn check(setup: &Setup) -> Result<(), SetupError> {
        for name in ["joiners", "leavers", "reform", "clients"] {
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
            rejoin: setup.chosen.get("rejoin").is_some_and(|v| v == "on"),
            clients: known("clients"),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Client {
    standing: Standing,
    /// How many messages it still wants to send.
    left: u32,
    /// Whether its last message has not come back.
    awaits: bool,
    reforms: bool,
    leaves: bool,
    rejoins: bool,
    /// Whether it was asked for the state.
    asked_for_state: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Standing {
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
            standing: Standing::Inside,
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
                client.standing = Standing::Outside;
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
        match client.standing {
            Standing::Outside => Some(Request::Join),
            Standing::Inside if client.reforms => Some(Request::Reform),
            Standing::Inside if client.left > 0 && !client.awaits => {
                Some(Request::Multicast(Arc::from([at.0 as u8, client.left as u8])))
            }
            Standing::Inside if client.leaves && !client.awaits => Some(Request::Leave),
            Standing::Inside | Standing::Joining | Standing::Leaving | Standing::Gone => None,
        }
    }

    fn on_request(&mut self, at: ProcessId, request: &Request<Bytes>) {
        let client = &mut self.0[at];
        match request {
            Request::Multicast(_) => {
                client.left = client.left.saturating_sub(1);
                client.awaits = true;
            }
            Request::Join => client.standing = Standing::Joining,
            Request::Leave => client.standing = Standing::Leaving,
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
                if client.standing == Standing::Joining && view.has_member(at) {
                    client.standing = Standing::Inside;
                }
            }
            Indication::Excluded => {
                client.awaits = false;
                client.asked_for_state = false;
                client.standing = if client.rejoins { Standing::Outside } else { Standing::Gone };
            }
            Indication::Left => client.standing = Standing::Gone,
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
        (client.standing, client.awaits, client.asked_for_state) = (Standing::Gone, false, false);
        client.reforms = false;
    }

    fn on_restart(&mut self, at: ProcessId) {
        self.0[at].standing = Standing::Outside;
    }

    fn waiting(&self) -> Vec<ProcessId> {
        let waits = |client: &Client| {
            client.awaits || matches!(client.standing, Standing::Joining | Standing::Leaving)
        };
        self.0.iter().filter(|(_, client)| waits(client)).map(|(p, _)| p).collect()
    }
}
