//! Forming a group: for the first time, and after all members were down.
//!
//! Hazard: a restarted process may have forgotten a promise it gave in an old view, so it must not count for
//! that view. Rule: a group is founded only if all founders are present and none is in a view. The founder
//! with the lowest id then proposes the first view, in a generation above all known ones. The founders enter
//! it once all have promised to: see `founding`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use konklave_algorithms::group::{Member, Request, View, ViewId};
use konklave_process::{Group, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Core, GroupProcess, Output, setup, summing_up};
use crate::status::{Event, Loss, Outsider, Remedy};
use crate::table::Table;
use crate::wire::Frame;

/// For how many silence timeouts half of a view waits for the other half before it dissolves.
const DISSOLVE_TIMEOUTS: u32 = 10;

/// The state of a process, as it reports it to its peers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct PeerStatus {
    pub(crate) incarnation: u32,
    pub(crate) generation: u32,
    /// The view it is in, if any.
    pub(crate) view: Option<ViewId>,
    /// Whether it has a data directory.
    pub(crate) has_data_dir: bool,
    /// Whether grants of its earlier incarnations can no longer be in use.
    pub(crate) earlier_grants_over: bool,
}

/// A known process.
pub(super) struct Peer {
    pub(super) name: Arc<str>,
    pub(super) connected: bool,
    pub(super) peer_status: Option<PeerStatus>,
    /// When it last reported its state. A node without a view, or of another group, does so with every heartbeat.
    heard: Duration,
}

impl Peer {
    /// Whether it is in a view, according to its last report.
    fn is_inside(&self) -> bool {
        self.connected && self.peer_status.as_ref().is_some_and(|s| s.view.is_some())
    }
}

/// The knowledge about the founders while a group forms.
pub(super) struct Forming {
    /// For each founder address, the process that answered there.
    seeds: Vec<Option<ProcessId>>,
    /// All processes that ever answered at one; an address may stand for several.
    answered: BTreeSet<ProcessId>,
    /// A name that stands for several addresses, although the number of founders is not given.
    shared_name: Option<String>,
}

impl Forming {
    pub(super) fn new(seeds: usize) -> Self {
        Self { seeds: vec![None; seeds], answered: BTreeSet::new(), shared_name: None }
    }
}

impl Core {
    /// A founder's name resolves to several addresses. One founder per name would be too few: each process
    /// might found a group of its own. So without a given number of founders, this node founds none.
    pub(crate) fn seed_is_several(&mut self, name: &str) {
        if self.config.founders.is_none() && !self.config.alone {
            self.config.founders = Some(usize::MAX);
            self.forming.shared_name = Some(name.to_owned());
        }
    }

    /// A process, perhaps this one, answered at a founder's address.
    pub(crate) fn seed_is(&mut self, seed: usize, id: ProcessId) {
        if let Some(known) = self.forming.seeds.get_mut(seed) {
            *known = Some(id);
            self.forming.answered.insert(id);
        }
        self.form();
        self.pump();
    }

    /// A connection to a peer is established.
    pub(crate) fn peer_up(&mut self, id: ProcessId, name: Arc<str>, now: Duration) {
        self.now = self.now.max(now);
        let peer = Peer { name, connected: true, peer_status: None, heard: self.now };
        self.refusals.on_peer();
        self.peers.insert(id, peer);
        if !self.known.contains(id) {
            let members = self.known.members().iter().copied().chain([id]).collect();
            self.known = Group::new(members).unwrap_or_else(|_| self.known.clone());
        }
        self.step(|group, ctx| group.on_trust(id, ctx));
        let peer_status = self.peer_status();
        self.send(id, Frame::PeerStatus(peer_status));
        self.publish(Event::Connected { node: id.0, name: self.name_of(id) });
        self.pump();
    }

    /// A peer is gone: its address refuses connections.
    pub(crate) fn peer_down(&mut self, id: ProcessId, now: Duration) {
        self.now = self.now.max(now);
        if let Some(peer) = self.peers.get_mut(&id) {
            (peer.connected, peer.peer_status) = (false, None);
        }
        self.publish(Event::Suspected { node: id.0, name: self.name_of(id) });
        self.step(|group, ctx| group.on_suspect(id, ctx));
        self.pump();
    }

    fn peer_status(&self) -> PeerStatus {
        PeerStatus {
            incarnation: self.record.incarnation,
            generation: self.record.generation,
            view: self.is_inside().then(|| self.group.view().id),
            has_data_dir: self.config.record.is_some(),
            earlier_grants_over: self.now >= self.earlier_grants_until,
        }
    }

    /// Reports the own state to all connected peers.
    pub(super) fn announce(&mut self) {
        let peer_status = self.peer_status();
        let to: Vec<ProcessId> =
            self.peers.iter().filter(|(_, p)| p.connected).map(|(id, _)| *id).collect();
        for to in to {
            self.send(to, Frame::PeerStatus(peer_status.clone()));
        }
    }

    /// Reports the own state to peers that are in a view of their own, so that both see that it lasts.
    pub(super) fn announce_to_other_groups(&mut self) {
        let elsewhere = |(id, peer): &(&ProcessId, &Peer)| {
            peer.is_inside() && self.group.view().everyone().all(|m| m.id != **id)
        };
        let to: Vec<ProcessId> = self.peers.iter().filter(elsewhere).map(|(id, _)| *id).collect();
        for to in to {
            let peer_status = self.peer_status();
            self.send(to, Frame::PeerStatus(peer_status));
        }
    }

    pub(super) fn on_peer_status(&mut self, from: ProcessId, peer_status: PeerStatus) {
        let news = peer_status.view.is_some();
        let member = Member { id: from, incarnation: peer_status.incarnation };
        let view = self.group.view();
        let elsewhere = |theirs: ViewId| theirs.generation != view.id.generation;
        let in_other_group = peer_status.view.is_some_and(elsewhere) && !view.has_member(from);
        if self.is_inside() && !news && view.id.epoch == 0 && view.members.contains(&member) {
            // It has not received the first view yet.
            let view = view.clone();
            self.send(from, Frame::Found(view));
        }
        if let Some(peer) = self.peers.get_mut(&from) {
            (peer.peer_status, peer.heard) = (Some(peer_status), self.now);
        }
        if in_other_group && self.is_member() {
            let reason = "it is in another group: stop it, and let it join this one";
            self.refused(self.name_of(from), reason.into(), self.now);
        }
        self.check_promise(member);
        if self.is_inside() && !news {
            let ours = self.peer_status();
            self.send(from, Frame::PeerStatus(ours));
        }
        self.form();
    }

    /// Outside a view: joins a group that a peer is in, or founds one with the others.
    pub(super) fn form(&mut self) {
        if self.is_inside() || self.leaving {
            return;
        }
        if self.peers.values().any(Peer::is_inside) {
            self.withdraw_proposal();
            return self.step(|group, ctx| group.on_request(Request::Join, ctx));
        }
        self.propose();
    }

    /// The founders that are present. If their number is given instead of their addresses, every connected
    /// process counts.
    fn founders(&self) -> Vec<ProcessId> {
        let found: BTreeSet<ProcessId> = match self.config.founders {
            // Before anyone has answered, this node included, nothing is known.
            Some(_) if self.forming.answered.is_empty() => BTreeSet::new(),
            // Connections in both directions count.
            Some(_) => {
                let here = self.peers.iter().filter(|(_, peer)| peer.connected);
                here.map(|(id, _)| *id).chain([self.me]).collect()
            }
            None => self.forming.seeds.iter().flatten().copied().collect(),
        };
        found.into_iter().collect()
    }

    /// The first view, if all founders are present and this node is the one to propose it.
    pub(super) fn first_view(&self) -> Option<View> {
        let founders = self.founders();
        let all = match self.config.founders {
            Some(n) => founders.len() >= n,
            None => self.forming.seeds.iter().all(Option::is_some),
        };
        // Members of the last known view may have gone on without the founders.
        let mut asked = founders.clone();
        asked.extend(self.record.members.iter().map(|m| ProcessId(m.0)));
        let mut statuses = Vec::new();
        for id in asked.into_iter().filter(|id| *id != self.me) {
            let peer = self.peers.get(&id).filter(|p| p.connected)?;
            statuses.push((id, peer.peer_status.clone()?));
        }
        if !all || founders.first() != Some(&self.me) {
            return None;
        }
        statuses.push((self.me, self.peer_status()));
        // A new table knows no earlier grants, so they must be over.
        if statuses.iter().any(|(_, s)| !s.earlier_grants_over) {
            return None;
        }
        let generation = statuses.iter().map(|(_, s)| s.generation).max().unwrap_or(0) + 1;
        let forgetful = statuses.iter().any(|(_, s)| !s.has_data_dir);
        let calendar = if forgetful { self.config.calendar } else { 0 };
        let life = |id: &ProcessId| {
            let (_, peer_status) = statuses.iter().find(|(s, _)| s == id)?;
            Some(Member { id: *id, incarnation: peer_status.incarnation })
        };
        let members: Option<Vec<Member>> = founders.iter().map(life).collect();
        let id = ViewId { generation: generation.max(calendar), epoch: 0, coordinator: self.me };
        Some(View { id, members: members?, observers: Vec::new() })
    }

    /// Enters a first view that it has promised, in the present incarnation, if it is in none.
    pub(super) fn on_found(&mut self, view: &View) {
        let us = Member { id: self.me, incarnation: self.record.incarnation };
        let newer = view.id.generation > self.record.generation;
        let promised = self.promises.covers(view);
        if self.is_inside() || self.leaving || !newer || !view.members.contains(&us) || !promised {
            return;
        }
        self.promises.clear();
        let setup = setup(self.me, &self.config.timings);
        let below = GroupProcess::found(self.me, &setup, view.clone());
        self.enter_first(summing_up(below, &self.config));
        self.step(|group, ctx| group.on_start(ctx));
    }

    /// Leaves a view that cannot decide anything any more, to found a group anew with all.
    ///
    /// A view is over when more than half of its members have restarted (a restarted process may have
    /// forgotten its promises), or have gone on in another generation. If exactly half is left, it can
    /// continue, provided the other half has restarted and knows it. A process that forgot its incarnations
    /// may report a lower number, which proves nothing. Such a half gets a while to appear; so does a voter
    /// that this node waits for while it has no vote itself.
    pub(super) fn dissolve_if_stalled(&mut self) {
        if !self.is_inside() {
            return;
        }
        let view = self.group.view();
        let (mut lost, mut unsure, mut silent) = (0, false, 0);
        for member in view.members.iter().filter(|m| m.id != self.me) {
            let Some(now) = self.status_of(member.id) else {
                silent += 1;
                continue;
            };
            let elsewhere = self.has_seen_later(now)
                || now.view.is_some_and(|v| v.generation != view.id.generation);
            lost += usize::from(now.incarnation != member.incarnation || elsewhere);
            unsure |= elsewhere || now.incarnation < member.incarnation;
        }
        let (all, outside) = (view.members.len(), !view.has_member(self.me));
        let left = all - lost;
        let tie = 2 * left == all && all > 0;
        if 2 * left < all || (tie && unsure) {
            return self.dissolve();
        }
        if !(tie || outside && silent == all) {
            self.stalled_since = None;
            return;
        }
        let since = *self.stalled_since.get_or_insert(self.now);
        if self.now >= since + self.config.timings.silence * DISSOLVE_TIMEOUTS {
            self.dissolve();
        }
    }

    fn dissolve(&mut self) {
        self.stalled_since = None;
        self.begin_incarnation();
        self.publish(Event::Dissolved);
        self.go_outside(Loss::Dissolved);
    }

    /// The last report of a connected peer.
    fn status_of(&self, id: ProcessId) -> Option<&PeerStatus> {
        let peer = self.peers.get(&id).filter(|peer| peer.connected)?;
        peer.peer_status.as_ref()
    }

    /// Whether the process has been in a later generation than the present view's.
    fn has_seen_later(&self, peer_status: &PeerStatus) -> bool {
        peer_status.generation > self.group.view().id.generation
    }

    /// Whether to ignore a join request as proof that its sender left the present view.
    ///
    /// Scenario: the sender has gone on in a later generation, and this node no longer sees a majority of its
    /// own view. Hazard: that generation may have replaced this view, so nothing follows for its other
    /// members. Rule: ignore the join until this is clear, and also until the peer has reported its
    /// generation. The peer repeats it.
    pub(super) fn is_superseded_by(&self, from: ProcessId) -> bool {
        let members = &self.group.view().members;
        let lives = |m: &&Member| {
            let same = |now: &PeerStatus| now.incarnation == m.incarnation && now.view.is_some();
            m.id == self.me || self.status_of(m.id).is_some_and(same)
        };
        self.is_inside()
            && self.status_of(from).is_none_or(|now| self.has_seen_later(now))
            && 2 * members.iter().filter(lives).count() <= members.len()
    }

    /// Whether all members of the last known view are connected and in no view.
    pub(super) fn is_last_view_over(&self) -> bool {
        let others = self.record.members.iter().filter(|m| m.0 != self.me.0);
        let outside =
            |m: &(u32, String)| self.status_of(ProcessId(m.0)).is_some_and(|s| s.view.is_none());
        others.into_iter().all(outside)
    }

    fn enter_first(&mut self, below: GroupProcess) {
        self.timers.clear();
        self.group = below;
        self.table = Table::default();
        self.has_table = true;
    }

    /// Founds a group of one in a new generation, for the others to join: an operator's last resort.
    pub(crate) fn found_alone(&mut self) {
        if self.has_table {
            return self.refound();
        }
        self.found_alone_at = Some(self.earlier_grants_until.max(self.now));
        self.found_alone_if_due();
    }

    /// Founds a group of one if that was requested, its time has come, and no peer is in a group.
    pub(super) fn found_alone_if_due(&mut self) {
        if self.found_alone_at.is_none_or(|at| self.now < at) {
            return;
        }
        self.found_alone_at = None;
        if let Some((id, _)) = self.peers.iter().find(|(_, peer)| peer.is_inside()) {
            let reason = "it is in a group, which this node joins instead of founding one";
            let address = self.name_of(*id);
            return self.refused(address, reason.into(), self.now);
        }
        if !self.is_inside() {
            self.refound();
        }
    }

    fn refound(&mut self) {
        if !self.has_table {
            self.table = Table::default();
            self.has_table = true;
        }
        let calendar = if self.config.record.is_none() { self.config.calendar } else { 0 };
        self.record.generation = self.record.generation.max(calendar);
        self.step(|group, ctx| group.on_request(Request::Refound, ctx));
        self.pump();
    }

    /// Records the members of the present view.
    pub(super) fn remember(&mut self, view: &View) {
        let name = |id: ProcessId| {
            if id == self.me {
                return self.config.name.to_string();
            }
            self.peers.get(&id).map_or(String::new(), |p| p.name.to_string())
        };
        let members: Vec<(u32, String)> =
            view.members.iter().map(|m| (m.id.0, name(m.id))).collect();
        if members != self.record.members {
            self.record.members = members;
            self.out.push(Output::Note(self.record.clone()));
        }
    }

    /// Whether only the list of founders counts, all of them have answered, and this node is not among them.
    pub(crate) fn is_unlisted(&self) -> bool {
        let other = |seed: &Option<ProcessId>| seed.is_some_and(|id| id != self.me);
        !self.is_member()
            && self.config.founders.is_none()
            && self.config.own.is_none()
            && self.forming.seeds.iter().all(other)
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
        let here = self.founders().len().max(1);
        match self.config.founders {
            Some(usize::MAX) => {
                let why = match &self.forming.shared_name {
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
        if let Some(to) = self.promises.promised_to(self.me)
            && !self.peers.get(&to).is_some_and(|peer| peer.connected)
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
        let gone = |m: &&(u32, String)| {
            m.0 != self.me.0 && !self.peers.get(&ProcessId(m.0)).is_some_and(|p| p.connected)
        };
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
        let without_report =
            |(_, peer): &(&ProcessId, &Peer)| peer.connected && peer.peer_status.is_none();
        let without_report: Vec<String> =
            self.peers.iter().filter(without_report).map(|(id, _)| self.name_of(*id)).collect();
        if !without_report.is_empty() {
            return format!(
                "connected to {}, but without a report of its state: its disk may fail \
                 (see its log)",
                without_report.join(", ")
            );
        }
        let silent: Vec<String> =
            self.not_yet_promised().into_iter().map(|id| self.name_of(id)).collect();
        let waits = |peer: &Peer| {
            let status = peer.peer_status.as_ref().filter(|_| peer.connected);
            status.is_some_and(|status| !status.earlier_grants_over)
        };
        if self.now < self.earlier_grants_until || self.peers.values().any(waits) {
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
        let inside =
            self.peers.iter().find(|(_, peer)| peer.is_inside() && self.has_reported(peer))?;
        let away = |m: &&(u32, String)| {
            let peer = self.peers.get(&ProcessId(m.0));
            m.0 != self.me.0 && !peer.is_some_and(|peer| self.has_reported(peer))
        };
        let away: Vec<&str> =
            self.record.members.iter().filter(away).map(|m| m.1.as_str()).collect();
        (!away.is_empty()).then(|| {
            format!(
                "{} is in a group and answers, but {} does not: a partial partition, if it is in the group, too",
                self.name_of(*inside.0),
                away.join(", ")
            )
        })
    }

    /// Whether a peer has reported its state lately, so that packets pass in both directions.
    fn has_reported(&self, peer: &Peer) -> bool {
        peer.connected && self.now < peer.heard + self.config.timings.silence
    }

    /// The connected peers that are not in the view of this node.
    pub(super) fn outsiders(&self) -> Vec<Outsider> {
        let view = self.group.view();
        let out = |(id, peer): &(&ProcessId, &Peer)| {
            self.has_reported(peer) && view.everyone().all(|m| m.id != **id)
        };
        let peers = self.peers.iter().filter(out).filter(|_| self.is_member());
        let outsider = |(id, peer): (&ProcessId, &Peer)| {
            let elsewhere = peer.peer_status.as_ref().and_then(|status| status.view);
            let generation = elsewhere.map(|theirs| theirs.generation);
            Outsider { node: id.0, name: peer.name.to_string(), generation }
        };
        peers.map(outsider).collect()
    }

    /// Explains that founders do not answer; none if all have answered.
    fn silent_founders(&self) -> Option<String> {
        let own = |(i, s): &(usize, &Option<ProcessId>)| {
            Some(*i) == self.config.own || **s == Some(self.me)
        };
        let others: Vec<_> = self.forming.seeds.iter().enumerate().filter(|s| !own(s)).collect();
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
