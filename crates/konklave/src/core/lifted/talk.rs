//! What is said about locks besides the algorithm's own messages.

use std::collections::BTreeMap;
use std::time::Duration;

use konklave_algorithms::group::{Member, ViewId};
use konklave_process::{Input, ProcessId, ProcessSet};
use tokio::sync::oneshot;

use super::{Core, Lifted, Lock};
use crate::error::Error;
use crate::lifted::{Inside, Note, Party, Say};
use crate::table::{Key, Name};
use crate::token::Token;
use crate::wire::Frame;

/// How many messages of views to come are kept.
const AHEAD: usize = 4096;
/// How many of those who wait are told of.
const TOLD: usize = 256;

impl Core {
    pub(super) fn send_inside(&mut self, to: ProcessId, name: Name, say: Say) {
        let number = self.lifted.sent.entry(to).or_default();
        *number += 1;
        let inside = Inside { view: self.lifted.view, number: *number, name, say };
        self.send(to, Frame::Inside(inside));
    }

    pub(super) fn send_to_all(&mut self, name: &Name, say: &Say) {
        for to in self.below.view().others(self.me) {
            self.send_inside(to, name.clone(), say.clone());
        }
    }

    /// How many frames about locks went to this one in this view.
    pub(in crate::core) fn said_to(&self, to: ProcessId) -> u64 {
        self.lifted.sent.get(&to).copied().unwrap_or(0)
    }

    /// Someone says how many frames it has sent us: if some are missing, only a new view can tell
    /// what they said.
    pub(in crate::core) fn check_received(&mut self, from: ProcessId, view: ViewId, said: u64) {
        let received = self.lifted.received.get(&from).copied().unwrap_or(0);
        if view == self.lifted.view && said > received {
            self.reform();
        }
    }

    pub(in crate::core) fn on_inside(&mut self, from: ProcessId, inside: Inside) {
        if inside.view > self.lifted.view {
            if self.lifted.ahead.len() < AHEAD {
                self.lifted.ahead.push((from, inside));
            }
            return;
        }
        let Some(member) = self.below.view().find(from) else { return };
        if inside.view < self.lifted.view || self.below.view().id != self.lifted.view {
            return;
        }
        let received = self.lifted.received.entry(from).or_default();
        if inside.number != *received + 1 {
            // Some are missing. To go on without them would be wrong: to an algorithm this one must
            // seem slow, until a new view lets it begin anew.
            self.lifted.worn |= inside.number > *received;
            return;
        }
        *received += 1;
        let Inside { name, say, .. } = inside;
        if let Say::Note(note) = say {
            return self.on_note(from, name, note);
        }
        // Who has promised to end the view has said all it had to say.
        if self.below.is_wedged() {
            return;
        }
        match say {
            Say::Step { count, safe, noted, message }
                if self.runs() && self.below.view().has_member(from) =>
            {
                let place = self.lifted.locks.find_or_begin(&name);
                let lock = &mut self.lifted.locks[place];
                if safe {
                    lock.safety.note(member);
                }
                if noted {
                    lock.safety.confirmed(from);
                }
                lock.learn(count, self.me, &self.lifted.homes);
                let receivers = self.drive(place, Input::Message { from, message });
                if safe && !receivers.is_empty() && !receivers.contains(from) {
                    // What we pass on will be answered by another, who may not know.
                    self.send_inside(from, name, Say::Noted);
                }
                self.advance(place);
            }
            Say::Step { .. } | Say::Note(_) => {}
            Say::Safe => {
                let place = self.lifted.locks.find_or_begin(&name);
                self.lifted.locks[place].safety.note(member);
                self.send_inside(from, name, Say::Noted);
            }
            Say::Noted => {
                if let Some(place) = self.lifted.locks.find(&name) {
                    self.lifted.locks[place].safety.confirmed(from);
                    self.advance(place);
                }
            }
            Say::Try { number } => {
                let place = self.lifted.locks.find_or_begin(&name);
                let lock = &mut self.lifted.locks[place];
                if lock.is_used() {
                    return self.send_inside(from, name, Say::Used { number });
                }
                lock.tries.retain(|(other, _)| *other != from);
                lock.tries.push((from, number));
            }
            Say::Used { number } => {
                // It may be late: what was granted meanwhile is ours.
                let wish = self.desk.open_wish(number);
                if wish.is_some_and(|wish| !wish.wait && wish.key.name == name) {
                    self.refuse_busy(number);
                    self.give_up(number, &name);
                }
            }
            Say::Revoke { number, token } => {
                let held = self.take_from_user(&name, token);
                self.send_inside(from, name, Say::Revoked { number, held });
            }
            Say::Revoked { number, held } => self.on_answer(from, number, held),
        }
    }

    /// An operator takes a lock from whoever holds it, wherever that is.
    pub(in crate::core) fn revoke_inside(
        &mut self,
        key: Key,
        token: Option<Token>,
        reply: oneshot::Sender<Result<(), Error>>,
    ) {
        if self.take_from_user(&key.name, token) {
            let _ = reply.send(Ok(()));
            return;
        }
        let number = self.desk.next_number();
        let name = key.name.clone();
        self.desk.expect_revocation(number, key, reply);
        if !self.runs() {
            return self.desk.end_revocation(number, None);
        }
        let others: ProcessSet = self.below.view().others(self.me).into_iter().collect();
        if others.is_empty() {
            return self.desk.end_revocation(number, Some(false));
        }
        self.lifted.revoking.insert(number, others);
        self.send_to_all(&name, &Say::Revoke { number, token });
    }

    fn take_from_user(&mut self, name: &Name, token: Option<Token>) -> bool {
        let user = self.lifted.locks.get(name).and_then(|lock| lock.user.as_ref());
        let meant = |t: Token| token.is_none_or(|token| token == t);
        let Some(user) = user.filter(|user| meant(user.token)) else { return false };
        let (number, safe) = (user.number, user.safe);
        if self.desk.take_back(number) {
            // Nobody was told: it is asked for again, behind those who wait.
            self.let_go(number, name, true);
            self.ask(number);
            return true;
        }
        self.take_away(number);
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
            self.desk.end_revocation(number, Some(held));
        }
    }

    /// The view is over: nobody will answer any more.
    pub(super) fn end_questions(&mut self) {
        for (number, _) in std::mem::take(&mut self.lifted.revoking) {
            self.desk.end_revocation(number, None);
        }
    }

    /// Tells the others how our locks stand, where that has changed.
    pub(super) fn tell_news(&mut self) {
        if !self.is_inside() || self.below.view().id != self.lifted.view {
            return;
        }
        for place in std::mem::take(&mut self.lifted.news) {
            let lock = &mut self.lifted.locks[place];
            lock.news = false;
            let name = lock.name.clone();
            let note = self.note(&self.lifted.locks[place]);
            self.send_to_all(&name, &Say::Note(note));
        }
    }

    pub(super) fn note(&self, lock: &Lock) -> Note {
        let ms = |since| self.now.saturating_sub(since).as_millis() as u64;
        let holder = lock.user.as_ref().map(|user| {
            let (session, number, safe) = (user.session, user.number, user.safe);
            let label = user.label.clone();
            (user.token, Party { session, number, safe, label, since: ms(user.since) })
        });
        let queue = lock.queue.iter().take(TOLD).filter_map(|(number, since)| {
            let wish = self.desk.wish(*number)?;
            let (session, safe, label) = (wish.session, wish.safe, wish.label.clone());
            Some(Party { session, number: *number, safe, label, since: ms(*since) })
        });
        Note { holder, queue: queue.collect() }
    }

    fn on_note(&mut self, from: ProcessId, name: Name, note: Note) {
        self.tell_elsewhere(&name, from, note.holder.as_ref());
        let key = (name, from);
        if note == Note::default() {
            self.lifted.notes.remove(&key);
        } else {
            self.lifted.notes.insert(key, (note, self.now));
        }
    }
}

impl Lifted {
    /// Forgets what others told, but for those who `stay`, and those who are gone and may still hold
    /// what they told of.
    pub(super) fn forget_notes(&mut self, stay: impl Fn(ProcessId) -> bool) {
        let frozen = &self.frozen;
        self.notes.retain(|(name, from), _| {
            let holds =
                |members: &BTreeMap<Member, Duration>| members.keys().any(|m| m.id == *from);
            stay(*from) || frozen.get(name).is_some_and(holds)
        });
    }
}
