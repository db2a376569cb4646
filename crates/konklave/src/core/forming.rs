//! Forming a group, at the node: connections, founders' addresses, and why there is no group yet. The rules are those of
//! [`konklave_algorithms::group::forming`].

use std::sync::Arc;
use std::time::Duration;

use konklave_algorithms::group::forming::{PeerStatus, Request};
use konklave_process::{Group, Process, ProcessId};

use super::Core;
use crate::status::{Event, Outsider, Remedy};

/// A known process.
pub(super) struct Peer {
    pub(super) name: Arc<str>,
    /// When it last reported its state. A node without a view, or of another group, does so with every heartbeat.
    pub(super) heard: Duration,
}

impl Core {
    /// A founder's name resolves to several addresses. One founder per name would be too few: each process
    /// might found a group of its own. So without a given number of founders, this node founds none.
    pub(crate) fn seed_is_several(&mut self, name: &str) {
        if self.forming.needed().is_none() && !self.config.alone {
            self.forming.forget_founders();
            self.shared_name = Some(name.to_owned());
        }
    }

    /// A process, perhaps this one, answered at a founder's address.
    pub(crate) fn seed_is(&mut self, seed: usize, id: ProcessId) {
        self.step(|forming, ctx| forming.on_seed(seed, id, ctx));
        self.pump();
    }

    /// A connection to a peer is established.
    pub(crate) fn peer_up(&mut self, id: ProcessId, name: Arc<str>, now: Duration) {
        self.now = self.now.max(now);
        self.refusals.on_peer();
        self.peers.insert(id, Peer { name, heard: self.now });
        if !self.known.contains(id) {
            let members = self.known.members().iter().copied().chain([id]).collect();
            self.known = Group::new(members).unwrap_or_else(|_| self.known.clone());
        }
        self.step(|forming, ctx| forming.on_trust(id, ctx));
        self.publish(Event::Connected { node: id.0, name: self.name_of(id) });
        self.pump();
    }

    /// A peer is gone: its address refuses connections.
    pub(crate) fn peer_down(&mut self, id: ProcessId, now: Duration) {
        self.now = self.now.max(now);
        self.publish(Event::Suspected { node: id.0, name: self.name_of(id) });
        self.step(|forming, ctx| forming.on_suspect(id, ctx));
        self.pump();
    }

    /// Founds a group of one in a new generation, for the others to join: an operator's last resort.
    pub(crate) fn found_alone(&mut self) {
        self.step(|forming, ctx| forming.on_request(Request::FoundAlone, ctx));
        self.pump();
    }

    /// Whether only the list of founders counts, all of them have answered, and this node is not among them.
    pub(crate) fn is_unlisted(&self) -> bool {
        let other = |seed: &Option<ProcessId>| seed.is_some_and(|id| id != self.me);
        !self.is_member()
            && self.forming.needed().is_none()
            && self.config.own.is_none()
            && self.forming.seeds().iter().all(other)
    }

    /// Explains to people why there is no group yet.
    pub(crate) fn what_is_missing(&self) -> String {
        self.missing().0
    }

    /// The same, and what helps.
    pub(super) fn missing(&self) -> (String, Option<Remedy>) {
        if self.is_member() {
            return (String::new(), None);
        }
        if self.is_inside() {
            return ("joining: waiting for the state of the group".into(), None);
        }
        if let Some(partial) = self.partial_partition() {
            return (partial, Some(Remedy::Reconnect));
        }
        // This node is present, even if it has not answered itself yet.
        let here = self.forming.founders(self.me).len().max(1);
        match self.forming.needed() {
            Some(usize::MAX) => {
                let why = match &self.shared_name {
                    Some(name) => format!("{name} stands for several addresses, and "),
                    None => String::new(),
                };
                let what = format!(
                    "no group answers yet, and this node founds none: {why}it does not know \
                     how many founders there are"
                );
                return (what, Some(Remedy::NameFounders));
            }
            Some(n) if here < n => {
                let what = format!(
                    "{here} of {n} founders are here, this node included; all of them are needed to found \
                     a group"
                );
                return (what, Some(Remedy::StartFounders));
            }
            Some(_) | None => {}
        }
        if let Some(to) = self.forming.promised_to(self.me)
            && !self.forming.is_connected(to)
        {
            let what = format!(
                "this node promised to enter the group that {} proposed, but {0} is gone: restart \
                 {0} or this node",
                self.name_of(to)
            );
            return (what, None);
        }
        if let Some(silent) = self.silent_founders() {
            return (silent, Some(Remedy::StartFounders));
        }
        let gone =
            |m: &&(u32, String)| m.0 != self.me.0 && !self.forming.is_connected(ProcessId(m.0));
        let gone: Vec<String> =
            self.record.members.iter().filter(gone).map(|m| format!("{} ({})", m.1, m.0)).collect();
        if !gone.is_empty() {
            let gone = gone.join(", ");
            let what = format!("{gone} of the last view may have gone on without this node");
            return (what, Some(Remedy::StartMembers));
        }
        (self.what_delays_founding(), None)
    }

    /// Why all founders are here, and yet there is no group.
    fn what_delays_founding(&self) -> String {
        let without_report = self.forming.peers().filter(|(_, status)| status.is_none());
        let without_report: Vec<String> = without_report.map(|(id, _)| self.name_of(id)).collect();
        if !without_report.is_empty() {
            return format!(
                "connected to {}, but without a report of its state: its disk may fail \
                 (see its log)",
                without_report.join(", ")
            );
        }
        let silent: Vec<String> =
            self.forming.not_yet_promised(self.me).into_iter().map(|id| self.name_of(id)).collect();
        let waits = |status: Option<&PeerStatus>| status.is_some_and(|s| !s.earlier_grants_over);
        if !self.forming.are_grants_over() || self.forming.peers().any(|(_, s)| waits(s)) {
            return "all founders are here; the group is founded when the leases of locks from before the \
                    restart are over"
                .into();
        }
        match silent.is_empty() {
            true => "agreeing on the first view".into(),
            false => {
                format!("agreeing on the first view; no answer from {} yet", silent.join(", "))
            }
        }
    }

    /// This node reaches a member of a group, but not all of them. Every member must reach every other one, so it
    /// does not enter.
    fn partial_partition(&self) -> Option<String> {
        let is_inside = |status: Option<&PeerStatus>| status.is_some_and(|s| s.view.is_some());
        let mut peers = self.forming.peers();
        let (inside, _) = peers.find(|(id, s)| is_inside(*s) && self.has_reported(*id))?;
        let away = |m: &&(u32, String)| m.0 != self.me.0 && !self.has_reported(ProcessId(m.0));
        let away: Vec<&str> =
            self.record.members.iter().filter(away).map(|m| m.1.as_str()).collect();
        (!away.is_empty()).then(|| {
            format!(
                "{} is in a group and answers, but {} does not: a partial partition, if it is in the group, too",
                self.name_of(inside),
                away.join(", ")
            )
        })
    }

    /// Whether a peer has reported its state lately, so that packets pass in both directions.
    fn has_reported(&self, id: ProcessId) -> bool {
        let lately = |peer: &Peer| self.now < peer.heard + self.config.timings.silence;
        self.forming.is_connected(id) && self.peers.get(&id).is_some_and(lately)
    }

    /// The connected peers that are not in the view of this node.
    pub(super) fn outsiders(&self) -> Vec<Outsider> {
        let view = self.forming.group().view();
        let out = |(id, _): &(ProcessId, Option<&PeerStatus>)| {
            self.has_reported(*id) && view.everyone().all(|m| m.id != *id)
        };
        let peers = self.forming.peers().filter(out).filter(|_| self.is_member());
        let outsider = |(id, status): (ProcessId, Option<&PeerStatus>)| {
            let generation = status.and_then(|status| status.view).map(|view| view.generation);
            Outsider { node: id.0, name: self.name_of(id), generation }
        };
        peers.map(outsider).collect()
    }

    /// Explains that founders do not answer; none if all have answered.
    fn silent_founders(&self) -> Option<String> {
        let own = |(i, s): &(usize, &Option<ProcessId>)| {
            Some(*i) == self.config.own || **s == Some(self.me)
        };
        let others: Vec<_> = self.forming.seeds().iter().enumerate().filter(|s| !own(s)).collect();
        let silent = others.iter().filter(|(_, seed)| seed.is_none()).count();
        if silent == 0 {
            return None;
        }
        let refusal = self.refusals.last().map_or(String::new(), |why| format!(" ({why})"));
        let silent = match others.len() {
            1 => "the other founder does not answer".to_owned(),
            n => format!("{silent} of {n} other founders do not answer"),
        };
        Some(format!("{silent}{refusal}; all of them are needed to found a group"))
    }
}

#[cfg(test)]
mod tests;
