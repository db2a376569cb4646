//! Messages about lifted locks, besides the algorithm's own.

use std::collections::BTreeMap;
use std::time::Duration;

use konklave_algorithms::group::{Member, ViewId};
use konklave_process::{Input, ProcessId, ProcessSet};
use tokio::sync::oneshot;

use super::{Core, Lifted, Lock};
use crate::error::Error;
use crate::lifted::{LiftedFrame, LockMessage, LockNote, NotedClaim};
use crate::table::{Key, Name};
use crate::token::Token;
use crate::wire::Frame;

/// The most frames of later views to keep.
const FUTURE_FRAMES: usize = 4096;
/// The most waiting requests in a note.
const NOTE_WAITERS: usize = 256;

impl Core {
    pub(super) fn send_lifted(&mut self, to: ProcessId, name: Name, message: LockMessage) {
        let number = self.lifted.sent.entry(to).or_default();
        *number += 1;
        let frame = LiftedFrame { view: self.lifted.view, number: *number, name, message };
        self.send(to, Frame::Lifted(frame));
    }

    pub(super) fn send_to_all(&mut self, name: &Name, message: &LockMessage) {
        for to in self.forming.group().view().others(self.me) {
            self.send_lifted(to, name.clone(), message.clone());
        }
    }

    /// The number of lifted frames sent to this peer in this view.
    pub(in crate::core) fn frames_sent_to(&self, to: ProcessId) -> u64 {
        self.lifted.sent.get(&to).copied().unwrap_or(0)
    }

    /// A peer reports the number of frames it has sent. If some are missing, only a new view can replace
    /// them.
    pub(in crate::core) fn check_received(
        &mut self,
        from: ProcessId,
        view: ViewId,
        lifted_sent: u64,
    ) {
        let received = self.lifted.received.get(&from).copied().unwrap_or(0);
        if view == self.lifted.view && lifted_sent > received {
            self.reform();
        }
    }

    pub(in crate::core) fn on_lifted_frame(&mut self, from: ProcessId, frame: LiftedFrame) {
        if frame.view > self.lifted.view {
            if self.lifted.future_frames.len() < FUTURE_FRAMES {
                self.lifted.future_frames.push((from, frame));
            }
            return;
        }
        let Some(member) = self.forming.group().view().find(from) else { return };
        if frame.view < self.lifted.view || self.forming.group().view().id != self.lifted.view {
            return;
        }
        let received = self.lifted.received.entry(from).or_default();
        if frame.number != *received + 1 {
            // A frame is missing. Skipping it would break the algorithm, which trusts its channels. So later
            // frames are dropped, and the sender merely seems slow, until a new view restarts the algorithm.
            self.lifted.needs_reform |= frame.number > *received;
            return;
        }
        *received += 1;
        let LiftedFrame { name, message, .. } = frame;
        if let LockMessage::Note(note) = message {
            return self.on_note(from, name, note);
        }
        // A member that has promised to end the view has sent its summary: nothing may change after that.
        if !self.forming.group().is_wedged() {
            self.on_lock_message(from, member, name, message);
        }
    }

    /// Handles a message about a lock, other than a note.
    fn on_lock_message(
        &mut self,
        from: ProcessId,
        member: Member,
        name: Name,
        message: LockMessage,
    ) {
        match message {
            LockMessage::Step { count, safe, noted, message }
                if self.runs() && self.forming.group().view().has_member(from) =>
            {
                let index = self.lifted.locks.find_or_begin(&name);
                let lock = &mut self.lifted.locks[index];
                if safe {
                    lock.safe_holders.note(member);
                }
                if noted {
                    lock.safe_holders.confirmed(from);
                }
                lock.learn(count, self.me, &self.lifted.homes);
                let receivers = self.run_algorithm(index, Input::Message { from, message });
                if safe && !receivers.is_empty() && !receivers.contains(from) {
                    // The algorithm passes the message on; another member will answer it, and may not know of
                    // the safe holder.
                    self.send_lifted(from, name, LockMessage::Noted);
                }
                self.advance(index);
            }
            LockMessage::Step { .. } | LockMessage::Note(_) => {}
            LockMessage::Safe => {
                let index = self.lifted.locks.find_or_begin(&name);
                self.lifted.locks[index].safe_holders.note(member);
                self.send_lifted(from, name, LockMessage::Noted);
            }
            LockMessage::Noted => {
                if let Some(index) = self.lifted.locks.find(&name) {
                    self.lifted.locks[index].safe_holders.confirmed(from);
                    self.advance(index);
                }
            }
            LockMessage::Try { number } => {
                let index = self.lifted.locks.find_or_begin(&name);
                let lock = &mut self.lifted.locks[index];
                if lock.is_used() {
                    return self.send_lifted(from, name, LockMessage::InUse { number });
                }
                lock.try_requests.retain(|(other, _)| *other != from);
                lock.try_requests.push((from, number));
            }
            LockMessage::InUse { number } => {
                // This refusal may be late: a granted request stays granted.
                let request = self.claims.ungranted_request(number);
                if request.is_some_and(|request| !request.wait && request.key.name == name) {
                    self.refuse_busy(number);
                    self.drop_queued(number, &name);
                }
            }
            LockMessage::Revoke { number, token } => {
                let held = self.take_from_user(&name, token);
                self.send_lifted(from, name, LockMessage::Revoked { number, held });
            }
            LockMessage::Revoked { number, held } => self.on_answer(from, number, held),
        }
    }

    /// Revokes a lock, on whichever node it is held.
    pub(in crate::core) fn revoke_lifted(
        &mut self,
        key: Key,
        token: Option<Token>,
        reply: oneshot::Sender<Result<(), Error>>,
    ) {
        if self.take_from_user(&key.name, token) {
            let _ = reply.send(Ok(()));
            return;
        }
        let number = self.claims.next_number();
        let name = key.name.clone();
        self.claims.expect_revocation(number, key, reply);
        if !self.runs() {
            return self.claims.end_revocation(number, None);
        }
        let others: ProcessSet = self.forming.group().view().others(self.me).into_iter().collect();
        if others.is_empty() {
            return self.claims.end_revocation(number, Some(false));
        }
        self.lifted.revoking.insert(number, others);
        self.send_to_all(&name, &LockMessage::Revoke { number, token });
    }

    fn take_from_user(&mut self, name: &Name, token: Option<Token>) -> bool {
        let user = self.lifted.locks.get(name).and_then(|lock| lock.user.as_ref());
        let matches = |t: Token| token.is_none_or(|token| token == t);
        let Some(user) = user.filter(|user| matches(user.token)) else { return false };
        let (number, safe) = (user.number, user.safe);
        if self.claims.cancel_undelivered(number) {
            // The session never learned of the grant: its request is submitted again, behind the others.
            self.release_lifted(number, name, true);
            self.ask(number);
            return true;
        }
        self.revoke_local_grant(number);
        if !safe {
            self.release(number);
        }
        true
    }

    fn on_answer(&mut self, from: ProcessId, number: u64, held: bool) {
        let Some(others) = self.lifted.revoking.get_mut(&number) else { return };
        others.remove(from);
        if held || others.is_empty() {
            self.lifted.revoking.remove(&number);
            self.claims.end_revocation(number, Some(held));
        }
    }

    /// The view has ended: revocations get no further answers.
    pub(super) fn end_lifted_revocations(&mut self) {
        for (number, _) in std::mem::take(&mut self.lifted.revoking) {
            self.claims.end_revocation(number, None);
        }
    }

    /// Sends the notes on locks that have changed.
    pub(super) fn send_notes(&mut self) {
        if !self.is_inside() || self.forming.group().view().id != self.lifted.view {
            return;
        }
        for index in std::mem::take(&mut self.lifted.outdated_notes) {
            let lock = &mut self.lifted.locks[index];
            lock.outdated_notes = false;
            let name = lock.name.clone();
            let note = self.note(&self.lifted.locks[index]);
            self.send_to_all(&name, &LockMessage::Note(note));
        }
    }

    pub(super) fn note(&self, lock: &Lock) -> LockNote {
        let ms = |since| self.now.saturating_sub(since).as_millis() as u64;
        let holder = lock.user.as_ref().map(|user| {
            let (session, number, safe) = (user.session, user.number, user.safe);
            let label = user.label.clone();
            (user.token, NotedClaim { session, number, safe, label, since: ms(user.since) })
        });
        let queue = lock.queue.iter().take(NOTE_WAITERS).filter_map(|(number, since)| {
            let request = self.claims.request(*number)?;
            let (session, safe, label) = (request.session, request.safe, request.label.clone());
            Some(NotedClaim { session, number: *number, safe, label, since: ms(*since) })
        });
        LockNote { holder, queue: queue.collect() }
    }

    fn on_note(&mut self, from: ProcessId, name: Name, note: LockNote) {
        self.publish_remote_holder(&name, from, note.holder.as_ref());
        let key = (name, from);
        if note == LockNote::default() {
            self.lifted.peer_notes.remove(&key);
        } else {
            self.lifted.peer_notes.insert(key, (note, self.now));
        }
    }
}

impl Lifted {
    /// Drops the notes of peers that do not `stay`, except those of excluded members for locks still fenced
    /// for them.
    pub(super) fn forget_notes(&mut self, stay: impl Fn(ProcessId) -> bool) {
        let fenced = &self.fenced_until;
        self.peer_notes.retain(|(name, from), _| {
            let holds =
                |members: &BTreeMap<Member, Duration>| members.keys().any(|m| m.id == *from);
            stay(*from) || fenced.get(name).is_some_and(holds)
        });
    }
}
