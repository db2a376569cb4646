//! Status, `why`, and events of a node.

use std::collections::BTreeMap;
use std::time::Duration;

use konklave_algorithms::group::{Member, View};
use konklave_process::ProcessId;
use tokio::sync::mpsc;

use super::Core;
use crate::NodeId;
use crate::builder::held_for;
use crate::campaign::Leader;
use crate::status::{
    Event, Holder, LockStatus, MemberStatus, Quorum, Status, Waiter, WaitsFor, Why, WhyState,
    wait_cycles,
};
use crate::table::{ClaimId, Grant, Key, Lock, LockMode, Space};

/// A receiver of leader changes.
pub(super) struct LeaderObserver {
    key: Key,
    /// The leader it got last.
    last: Option<Leader>,
    to: mpsc::UnboundedSender<Option<Leader>>,
}

impl LeaderObserver {
    /// Sends the leader, if it has changed; returns whether the receiver still exists.
    fn send(&mut self, leader: &Option<Leader>) -> bool {
        if self.last == *leader {
            return !self.to.is_closed();
        }
        self.last.clone_from(leader);
        self.to.send(leader.clone()).is_ok()
    }
}

/// A session of a node, as holder or waiter.
type SessionId = (ProcessId, u32);

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn mode_name(mode: LockMode) -> String {
    match mode {
        LockMode::Exclusive => "exclusive",
        LockMode::Shared => "shared",
        LockMode::Permit { .. } => "permit",
    }
    .into()
}

fn kind(space: Space) -> &'static str {
    match space {
        Space::Lock => "lock",
        Space::Semaphore => "semaphore",
        Space::Campaign => "campaign",
    }
}

impl Core {
    pub(crate) fn status(&self, now: Duration) -> Status {
        let inside = self.is_inside();
        let view = self.forming.group().view();
        let (missing, remedy) = self.missing();
        let missing = Some(missing).filter(|what| !what.is_empty());
        Status {
            node: self.me.0,
            name: self.config.name.to_string(),
            incarnation: self.record.incarnation,
            member: self.is_member(),
            missing,
            remedy,
            refusals: self.refusals.recent(now),
            outsiders: self.outsiders(),
            trouble: None,
            network: None,
            view: inside.then_some((view.id.generation, view.id.epoch)),
            leader: view.leader().filter(|_| inside).map(|id| id.0),
            members: view.everyone().map(|m| self.member_status(m, now)).collect(),
            quorum: self.quorum(now),
            lease_ms: self
                .lease
                .ends(self.config.timings.lease)
                .map(|until| milliseconds(until.saturating_sub(now))),
            locks: self.all_locks().iter().map(|(k, l)| self.lock_status(k, l, now)).collect(),
        }
    }

    pub(crate) fn name_of(&self, id: ProcessId) -> String {
        if id == self.me {
            return self.config.name.to_string();
        }
        self.peers.get(&id).map_or_else(String::new, |p| p.name.to_string())
    }

    fn member_status(&self, member: Member, now: Duration) -> MemberStatus {
        let id = member.id;
        let heard = self.lease.last_answered(id).map(|at| milliseconds(now.saturating_sub(at)));
        MemberStatus {
            node: id.0,
            name: self.name_of(id),
            incarnation: member.incarnation,
            votes: self.forming.group().view().has_member(id),
            connected: id == self.me || self.forming.is_connected(id),
            suspected: self.forming.group().suspects().contains(id),
            heard_ms: heard,
            identity: None,
        }
    }

    fn quorum(&self, now: Duration) -> Quorum {
        let members = &self.forming.group().view().members;
        let recent = self.config.timings.lease.min(self.config.timings.silence);
        let answers = |m: &&Member| {
            let answered = self.lease.last_answered(m.id).is_some_and(|at| now < at + recent);
            m.id == self.me || answered && !self.forming.group().suspects().contains(m.id)
        };
        let needed = if members.is_empty() { 0 } else { members.len() / 2 + 1 };
        Quorum { of: members.len(), needed, heard: members.iter().filter(answers).count() }
    }

    fn lock_status(&self, key: &Key, lock: &Lock, now: Duration) -> LockStatus {
        let me = self.own_member();
        let holder = |g: &Grant| {
            let ours = g.claim.member == me;
            let cached = self.claims.cached(key, g.claim).filter(|_| ours);
            // Only this node knows which session uses a cached lock.
            let user = cached.and_then(|(.., user)| user);
            let (session, label, since) = match user {
                Some(user) => (user.session, &user.label, user.since),
                None => {
                    let since = self.held_since(key, g.claim).unwrap_or(now);
                    (g.claim.session, &g.label, since)
                }
            };
            let of_table = (g.lease > 0).then(|| Duration::from_millis(g.lease.into()));
            let own = user.map(|user| user.lease).or(of_table);
            let own = own.unwrap_or(self.config.timings.lease);
            let lease = self.lease.ends(own);
            let lease = lease.map_or(held_for(own), |until| until.saturating_sub(now));
            Holder {
                node: g.claim.member.id.0,
                name: self.name_of(g.claim.member.id),
                session,
                label: label.to_string(),
                mode: mode_name(g.mode),
                token: cached.map_or(g.token, |(token, ..)| token),
                since_ms: milliseconds(now.saturating_sub(since)),
                valid_for_ms: ours.then(|| milliseconds(lease)),
                used: ours.then(|| cached.is_none_or(|(_, used, _)| used)),
                frozen: g.fenced,
                revoked: g.revoked,
            }
        };
        let waiter = |w: &crate::table::QueuedRequest| Waiter {
            node: w.claim.member.id.0,
            name: self.name_of(w.claim.member.id),
            session: w.claim.session,
            label: w.label.to_string(),
            mode: mode_name(w.mode),
            priority: w.priority,
        };
        let modes = lock.holders.iter().map(|g| g.mode).chain(lock.queue.iter().map(|w| w.mode));
        let permits = modes.into_iter().find_map(|mode| match mode {
            LockMode::Permit { of } => Some(of),
            LockMode::Exclusive | LockMode::Shared => None,
        });
        LockStatus {
            kind: kind(key.space).into(),
            name: key.name.to_string(),
            permits,
            holders: lock.holders.iter().map(holder).collect(),
            queue: lock.queue.iter().map(waiter).collect(),
        }
    }

    pub(crate) fn why(&self, name: &str, now: Duration) -> Why {
        let key = Key { space: Space::Lock, name: name.into() };
        let lock = self.any_lock(&key);
        let lock = lock.as_ref();
        let quorum = self.quorum(now);
        let cycle = self.cycle(&key);
        let fenced = lock.is_some_and(|l| l.holders.iter().any(|g| g.fenced));
        let state = match lock {
            _ if !self.is_inside() || !self.has_table => WhyState::NoGroup,
            _ if self.blocked || quorum.heard < quorum.needed => WhyState::NoQuorum,
            _ if !cycle.is_empty() => WhyState::Deadlock,
            Some(_) if fenced => WhyState::Frozen,
            Some(lock) if !lock.holders.is_empty() => WhyState::Held,
            Some(_) | None => WhyState::Free,
        };
        let holders = lock.map_or(&[][..], |l| &l.holders);
        Why {
            name: name.into(),
            state,
            lock: lock.map(|lock| self.lock_status(&key, lock, now)),
            holders: holders.iter().map(|g| self.member_status(g.claim.member, now)).collect(),
            quorum,
            cycle,
            missing: Some(self.what_is_missing()).filter(|what| !what.is_empty()),
        }
    }

    /// The wait-for graph: for each waiting session, the locks it waits for and their holders.
    fn waits_for(&self) -> WaitsFor<SessionId, String> {
        let mut edges: WaitsFor<SessionId, String> = BTreeMap::new();
        for (key, lock) in &self.all_locks() {
            for waiting in &lock.queue {
                let party = (waiting.claim.member.id, waiting.claim.session);
                // Only the holder's own node knows which session uses a cached lock.
                let session = |g: &Grant| {
                    let user = self.claims.cached(key, g.claim).and_then(|(.., user)| user);
                    user.map_or(g.claim.session, |user| user.session)
                };
                let others = lock.holders.iter().map(|g| (g.claim.member.id, session(g)));
                let others = others.filter(|other| *other != party);
                let edge = others.map(|other| (key.name.to_string(), other));
                edges.entry(party).or_default().extend(edge);
            }
        }
        edges
    }

    /// A cycle of sessions that wait for each other, reachable from the waiters of `key`.
    fn cycle(&self, key: &Key) -> Vec<(NodeId, u32, String)> {
        let Some(lock) = self.any_lock(key) else { return Vec::new() };
        let waiting = lock.queue.iter().map(|w| (w.claim.member.id, w.claim.session));
        let first = wait_cycles(&self.waits_for(), waiting, 1).pop().unwrap_or_default();
        first.into_iter().map(|((id, session), lock)| (id.0, session, lock)).collect()
    }

    pub(super) fn publish_view(&self, view: &View) {
        self.publish(Event::View {
            generation: view.id.generation,
            epoch: view.id.epoch,
            members: view.members.iter().map(|m| m.id.0).collect(),
            entering: view.observers.iter().map(|m| m.id.0).collect(),
            names: view.everyone().map(|m| self.name_of(m.id)).collect(),
        });
    }

    /// Publishes trouble with the network, or its end.
    #[cfg(feature = "nats")]
    pub(crate) fn network(&self, trouble: Option<String>) {
        self.publish(Event::Network { trouble });
    }

    /// Publishes trouble with the disk, or its end.
    pub(crate) fn disk(&self, trouble: Option<String>) {
        self.publish(Event::Disk { trouble });
    }

    /// Whether nobody has subscribed to events.
    pub(super) fn has_no_receivers(&self) -> bool {
        self.events.receiver_count() == 0
    }

    /// Publishes the new holders of a lock, and its former holders.
    pub(super) fn publish_changes(&self, key: &Key, gone: &[ProcessId], new: &[ClaimId]) {
        if self.has_no_receivers() {
            return;
        }
        let (kind, name) = (kind(key.space), &key.name);
        for id in gone {
            let (kind, name) = (kind.into(), name.to_string());
            self.publish(Event::Freed { kind, name, node: id.0, by: self.name_of(*id) });
        }
        let holders = self.table.lock(key).map_or(&[][..], |lock| &lock.holders);
        for grant in holders.iter().filter(|g| new.contains(&g.claim)) {
            let (id, label, token) = (grant.claim.member.id, grant.label.to_string(), grant.token);
            let (kind, name, by) = (kind.into(), name.to_string(), self.name_of(id));
            self.publish(Event::Held { kind, name, node: id.0, by, label, token });
        }
    }

    fn leader_of(&self, key: &Key) -> Option<Leader> {
        let grant = self.table.lock(key)?.holders.first()?;
        let node = grant.claim.member.id;
        let (name, label) = (self.name_of(node), grant.label.to_string());
        Some(Leader { node: node.0, name, label, token: grant.token })
    }

    pub(crate) fn observe(&mut self, key: Key, to: mpsc::UnboundedSender<Option<Leader>>) {
        let leader = self.leader_of(&key);
        let _ = to.send(leader.clone());
        // Without a leader change, nothing else would remove observers that are gone.
        self.observers.retain(|observer| !observer.to.is_closed());
        if !self.left {
            self.observers.push(LeaderObserver { key, last: leader, to });
        }
    }

    pub(super) fn notify_observers(&mut self, key: &Key) {
        if self.observers.is_empty() || key.space != Space::Campaign {
            return;
        }
        let leader = self.leader_of(key);
        self.observers.retain_mut(|observer| observer.key != *key || observer.send(&leader));
    }

    /// This node is outside the group: as far as it knows, there is no leader.
    pub(super) fn clear_observers(&mut self) {
        self.observers.retain_mut(|observer| observer.send(&None));
    }

    /// This node has the state of a group: sends its leaders to the observers.
    pub(super) fn refresh_observers(&mut self) {
        let mut observers = std::mem::take(&mut self.observers);
        observers.retain_mut(|observer| {
            let leader = self.leader_of(&observer.key);
            observer.send(&leader)
        });
        self.observers = observers;
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Cluster;

    #[test]
    fn dropped_observers_are_forgotten() {
        let cluster = Cluster::new(3);
        let node = cluster.node(0);
        let count = || node.shared().look(|core| core.observers.len());
        cluster.block_on(async {
            let mut stays = node.observe("c").unwrap();
            for _ in 0..1000 {
                assert_eq!(node.observe("c").unwrap().next().await, Some(None));
            }
            assert!(count() <= 2, "{}", count());
            assert_eq!(stays.next().await, Some(None));
            let _leads = cluster.node(1).campaign("c").await.unwrap();
            assert!(matches!(stays.next().await, Some(Some(leader)) if leader.node == 1));
        });
    }
}
