//! Status of lifted locks: exact for this node, for other nodes as of their last notes.

use std::collections::BTreeMap;
use std::time::Duration;

use konklave_algorithms::group::Member;
use konklave_process::ProcessId;

use super::Core;
use crate::lifted::NotedClaim;
use crate::status::Event;
use crate::table::{ClaimId, Grant, Key, Lock, LockMode, Name, QueuedRequest, Space};
use crate::token::Token;

/// A grant in the form of the table. Its lease is 0: that of the group.
fn grant(member: Member, token: Token, party: &NotedClaim, fenced: bool) -> Grant {
    let NotedClaim { session, number, safe, ref label, .. } = *party;
    let claim = ClaimId { member, session, number };
    Grant {
        claim,
        mode: LockMode::Exclusive,
        token,
        safe,
        lease: 0,
        fenced,
        revoked: false,
        label: label.clone(),
    }
}

fn waiting(member: Member, party: &NotedClaim) -> QueuedRequest {
    let NotedClaim { session, number, safe, ref label, .. } = *party;
    let claim = ClaimId { member, session, number };
    let label = label.clone();
    let (mode, wait, lease, priority) = (LockMode::Exclusive, true, 0, 0);
    QueuedRequest { claim, mode, wait, safe, lease, priority, label }
}

impl Core {
    /// Everything that is held or wanted, in the table or lifted.
    pub(in crate::core) fn all_locks(&self) -> BTreeMap<Key, Lock> {
        let table = self.table.locks().map(|(key, lock)| (key.clone(), lock.clone()));
        let mut all: BTreeMap<Key, Lock> = table.collect();
        let names = self.lifted.locks.iter().filter(|lock| lock.is_used()).map(|lock| &lock.name);
        let notes = self.lifted.peer_notes.keys().map(|(name, _)| name);
        let names: std::collections::BTreeSet<&Name> =
            names.chain(notes).chain(self.lifted.fenced_until.keys()).collect();
        for name in names {
            let key = Key { space: Space::Lock, name: name.clone() };
            let lock = self.lifted_lock(name);
            if !lock.holders.is_empty() || !lock.queue.is_empty() {
                all.insert(key, lock);
            }
        }
        all
    }

    /// The lock under `key`, in the table or lifted.
    pub(in crate::core) fn any_lock(&self, key: &Key) -> Option<Lock> {
        if self.lifts(key) {
            let lock = self.lifted_lock(&key.name);
            return (!lock.holders.is_empty() || !lock.queue.is_empty()).then_some(lock);
        }
        self.table.lock(key).cloned()
    }

    fn lifted_lock(&self, name: &Name) -> Lock {
        let mut holders: Vec<Grant> = Vec::new();
        let mut queue: Vec<(Duration, QueuedRequest)> = Vec::new();
        let fenced = self.lifted.fenced_until.get(name);
        for (member, note, at) in self.notes_of(name) {
            let gone = fenced.is_some_and(|members| members.contains_key(&member));
            if let Some((token, party)) = &note.holder {
                let revoked = member == self.own_member() && self.claims.is_revoked(party.number);
                holders.push(Grant { revoked, ..grant(member, *token, party, gone) });
            }
            for party in note.queue.iter().filter(|_| !gone) {
                let since = at.saturating_sub(Duration::from_millis(party.since));
                queue.push((since, waiting(member, party)));
            }
        }
        // Of several reported holders, the one with the highest token is the latest: the others have not
        // reported their release yet.
        let last = holders.iter().filter(|g| !g.fenced).map(|g| g.token).max();
        holders.retain(|g| g.fenced || Some(g.token) == last);
        for member in fenced.into_iter().flat_map(BTreeMap::keys) {
            if holders.iter().all(|g| g.claim.member != *member) {
                // It announced itself as a holder; whether it holds the lock is unknown.
                let (label, since) = ("".into(), 0);
                let party = NotedClaim { session: 0, number: 0, safe: true, label, since };
                holders.push(grant(*member, Token::default(), &party, true));
            }
        }
        queue.sort_by_key(|(since, w)| (*since, w.claim));
        Lock { holders, queue: queue.into_iter().map(|(_, waiting)| waiting).collect() }
    }

    /// The notes of all nodes on a lock, this node's first, with the time of each.
    fn notes_of(&self, name: &Name) -> Vec<(Member, crate::lifted::LockNote, Duration)> {
        let lock = self.lifted.locks.get(name);
        let note = lock.map_or_else(Default::default, |lock| self.note(lock));
        let ours = (self.own_member(), note, self.now);
        let range = (name.clone(), ProcessId(0))..=(name.clone(), ProcessId(u32::MAX));
        let gone = |id| {
            let members = self.lifted.fenced_until.get(name)?;
            members.keys().find(|m| m.id == id).copied()
        };
        let notes = self.lifted.peer_notes.range(range).filter_map(|((_, id), (note, at))| {
            let member = self.forming.group().view().find(*id).or_else(|| gone(*id))?;
            Some((member, note.clone(), *at))
        });
        std::iter::once(ours).chain(notes).collect()
    }

    /// Publishes a change of the holder that another node has reported.
    pub(super) fn publish_remote_holder(
        &mut self,
        name: &Name,
        node: ProcessId,
        holder: Option<&(Token, NotedClaim)>,
    ) {
        let key = (name.clone(), node);
        if self.lifted.published.get(&key).copied() == holder.map(|(token, _)| *token) {
            return;
        }
        let by = self.name_of(node);
        if self.lifted.published.remove(&key).is_some() {
            let (kind, name, by) = ("lock".into(), name.to_string(), by.clone());
            self.publish(Event::Freed { kind, name, node: node.0, by });
        }
        if let Some((token, party)) = holder {
            self.lifted.published.insert(key, *token);
            let (kind, name, label) = ("lock".into(), name.to_string(), party.label.to_string());
            self.publish(Event::Held { kind, name, node: node.0, by, label, token: *token });
        }
    }

    /// Publishes a lock as freed if no note mentions its holder any more. After a view change every node sends each
    /// note once, so wait for those notes.
    pub(super) fn publish_freed(&mut self) {
        if self.now < self.lifted.notes_complete_at {
            return;
        }
        let held = |key: &(Name, ProcessId)| {
            self.lifted.peer_notes.get(key).is_some_and(|(note, _)| note.holder.is_some())
        };
        let freed: Vec<_> =
            self.lifted.published.keys().filter(|key| !held(key)).cloned().collect();
        freed.iter().for_each(|(name, node)| self.publish_remote_holder(name, *node, None));
    }

    /// Since when a claim holds a lock.
    pub(in crate::core) fn held_since(&self, key: &Key, claim: ClaimId) -> Option<Duration> {
        if !self.lifts(key) {
            return self.claims.since(key, claim);
        }
        self.notes_of(&key.name).into_iter().find_map(|(member, note, at)| {
            let (_, party) = note.holder.filter(|_| member == claim.member)?;
            Some(at.saturating_sub(Duration::from_millis(party.since)))
        })
    }
}
