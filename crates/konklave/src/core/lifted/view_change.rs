//! Lifted locks across view changes: a member's summary at the end of a view, and the start of the next one.
//!
//! All members that continue start from the same summaries, which the group has decided on. A token that was
//! in flight is dropped, so no two members have it. An excluded member may still use its lock. If it held the
//! lock with [`Fast`](crate::Handover::Fast), the next request is granted at once, with a higher token. If it
//! announced itself as lease-safe, the lock is fenced until its lease has expired.

use std::collections::{BTreeMap, BTreeSet};

use konklave_algorithms::group::lifted::{Homes, Instance};
use konklave_algorithms::group::{Member, View};
use konklave_process::{ProcessId, ProcessSet};

use super::locks::Locks;
use super::{Core, Lock, Phase};
use crate::status::Loss;
use crate::table::{Batch, Name, Op, Report, Summary};

/// The decided facts about one lock.
#[derive(Default)]
struct Facts {
    holder: Option<(ProcessId, bool)>,
    waiters: Vec<(u64, ProcessId)>,
    /// Whether a continuing member had the token, so that no excluded member can hold the lock.
    sure: bool,
    safe: BTreeSet<Member>,
    fenced: BTreeSet<Member>,
}

impl Facts {
    /// Collects the facts. From a member that does not continue, only its knowledge of possible holders
    /// counts.
    fn of(summaries: &[(Member, Summary)], view: &View) -> BTreeMap<Name, Self> {
        let mut names: BTreeMap<Name, Self> = BTreeMap::new();
        for (member, summary) in summaries {
            let goes_on = view.includes(*member);
            for (name, report) in summary {
                let facts = names.entry(name.clone()).or_default();
                match report {
                    Report::Safe(member) => facts.safe.extend([*member]),
                    Report::Fenced(member) => facts.fenced.extend([*member]),
                    Report::Holding { safe, .. } if goes_on => {
                        facts.holder = Some((member.id, *safe));
                    }
                    Report::Waiting(since) if goes_on => facts.waiters.push((*since, member.id)),
                    Report::Parked if goes_on => facts.sure = true,
                    Report::Holding { .. } | Report::Waiting(_) | Report::Parked => {}
                }
            }
        }
        names.values_mut().for_each(|facts| facts.waiters.sort_unstable());
        names
    }
}

impl Core {
    /// The summary of this node's locks, as an operation of the group.
    pub(in crate::core) fn summary_of_locks(&self) -> Batch {
        Batch::of(vec![Op::Summary(self.summary())])
    }

    fn summary(&self) -> Summary {
        let mut summary = Summary::new();
        for lock in self.lifted.locks.iter() {
            let mut report = |report| summary.push((lock.name.clone(), report));
            if let Some(user) = &lock.user {
                report(Report::Holding { token: user.token, safe: user.safe });
                if user.safe {
                    report(Report::Safe(self.own_member()));
                }
            }
            if !lock.queue.is_empty() {
                report(Report::Waiting(lock.count()));
            }
            let here = lock.instance.as_ref().is_some_and(Instance::has_token);
            let others = lock.safe_holders.others();
            if lock.user.is_none() && !others.is_empty() && (here || lock.phase == Phase::Held) {
                report(Report::Parked);
            }
            others.iter().for_each(|member| report(Report::Safe(*member)));
        }
        summary.sort_unstable();
        for (name, members) in &self.lifted.fenced_until {
            let fenced = members.keys().map(|member| (name.clone(), Report::Fenced(*member)));
            summary.extend(fenced);
        }
        summary
    }

    /// Starts the next view from the summaries of the last one.
    pub(in crate::core) fn install_locks(
        &mut self,
        view: &View,
        left: &ProcessSet,
        summaries: Vec<(Member, Batch)>,
    ) {
        self.end_lifted_revocations();
        let mut summaries: Vec<(Member, Summary)> =
            summaries.into_iter().map(|(member, batch)| (member, summary_in(&batch))).collect();
        let was_there = summaries.iter().any(|(m, _)| m.id == self.me && view.includes(*m));
        if summaries.is_empty() && !self.lifted.locks.is_empty() {
            // A group of one, founded by an operator: no other member was asked for a summary.
            summaries.push((self.own_member(), self.summary()));
        }
        let facts = Facts::of(&summaries, view);
        self.fence(view, left, &facts, was_there);
        self.lifted.view = view.id;
        self.lifted.homes = Homes::of(view, &self.lifted.setup);
        self.lifted.sent.clear();
        self.lifted.received.clear();
        self.lifted.forget_notes(|_| false);
        self.lifted.notes_complete_at = self.now + self.config.timings.heartbeat * 3;
        self.lifted.needs_reform = false;
        // Indices must not outlive the locks.
        self.lifted.outdated_notes.clear();
        let before = std::mem::take(&mut self.lifted.locks);
        let lost = self.resume(view, before, &facts);
        let (late, lost): (Vec<u64>, Vec<u64>) =
            lost.into_iter().partition(|number| self.claims.cancel_undelivered(*number));
        for number in lost {
            self.lose(number, Loss::Excluded);
        }
        for (from, inside) in std::mem::take(&mut self.lifted.future_frames) {
            self.on_lifted_frame(from, inside);
        }
        self.advance_all_locks();
        late.into_iter().for_each(|number| self.ask(number));
    }

    /// Fences the locks that excluded members may still use.
    fn fence(
        &mut self,
        view: &View,
        left: &ProcessSet,
        facts: &BTreeMap<Name, Facts>,
        was_there: bool,
    ) {
        let until = self.now + self.config.timings.lease_expiry();
        // A restarted process does not know what its earlier incarnation did, and its leaving does not show when those
        // grants end.
        let gone = |m: &Member| !view.includes(*m);
        let mut fenced = std::mem::take(&mut self.lifted.fenced_until);
        for (name, facts) in facts {
            if facts.holder.is_some() {
                fenced.remove(name);
                continue;
            }
            let fresh = facts.safe.iter().filter(|m| !facts.sure && !left.contains(m.id));
            // A member of the last view has its own deadlines for fences that existed before.
            let older = facts.fenced.iter().filter(|_| !was_there);
            for member in fresh.chain(older) {
                fenced.entry(name.clone()).or_default().entry(*member).or_insert(until);
            }
        }
        fenced.retain(|_, members| {
            members.retain(|member, _| gone(member));
            !members.is_empty()
        });
        self.lifted.fenced_until = fenced;
    }

    /// Starts the algorithm for every lock that is held or wanted. Returns the numbers of local grants that
    /// the decided facts do not confirm.
    fn resume(&mut self, view: &View, before: Locks, facts: &BTreeMap<Name, Facts>) -> Vec<u64> {
        let me = self.me;
        let mut lost = Vec::new();
        for Lock { name, user, queue, .. } in before.into_iter().filter(Lock::is_used) {
            let ours = facts.get(&name).and_then(|f| f.holder).is_some_and(|(id, _)| id == me);
            if !ours && let Some(user) = &user {
                lost.push(user.number);
            }
            let index = self.lifted.locks.find_or_begin(&name);
            let lock = &mut self.lifted.locks[index];
            (lock.user, lock.queue) = (user.filter(|_| ours), queue);
        }
        for (name, Facts { holder, waiters, .. }) in facts {
            if holder.is_none() && waiters.is_empty() {
                continue;
            }
            let index = self.lifted.locks.find_or_begin(name);
            let lock = &mut self.lifted.locks[index];
            if let Some((id, true)) = holder {
                if *id == me {
                    lock.safe_holders.decided(view);
                } else if let Some(member) = view.find(*id) {
                    lock.safe_holders.note(member);
                }
            }
            if !view.has_member(me) {
                continue;
            }
            let votes = |id: &ProcessId| view.has_member(*id);
            let holder = holder.map(|(id, _)| id).filter(votes);
            // Local requests behind the holder's own are requested when it releases the lock.
            let waiters = waiters.iter().map(|(_, id)| *id);
            let waiters: Vec<ProcessId> =
                waiters.filter(|id| votes(id) && holder != Some(*id)).collect();
            lock.instance = Instance::resumed(me, holder, &waiters, view, &self.lifted.setup);
            let first = holder.is_none() && waiters.first() == Some(&me);
            if holder == Some(me) || first {
                lock.phase = Phase::Held;
            } else if waiters.contains(&me) {
                lock.phase = Phase::Wanting;
            }
            if first {
                lock.local_turns = lock.queue.len();
            }
        }
        lost
    }

    /// Advances all locks, as if every waiting request had just been made.
    fn advance_all_locks(&mut self) {
        for index in self.lifted.locks.sorted(|_| true) {
            let lock = &self.lifted.locks[index];
            let waiting: Vec<u64> = lock.queue.iter().map(|(number, _)| *number).collect();
            if lock.is_used() {
                self.lifted.mark_unreported(index);
            }
            for number in waiting {
                if let Some((wait, safe)) = self.claims.request(number).map(|w| (w.wait, w.safe)) {
                    self.prepare(number, index, wait, safe);
                }
            }
            self.advance(index);
            self.announce_safe(index);
        }
    }
}

fn summary_in(batch: &Batch) -> Summary {
    let summary = |op: &Op| match op {
        Op::Summary(summary) => summary.clone(),
        _ => Summary::new(),
    };
    batch.ops.iter().flat_map(summary).collect()
}
