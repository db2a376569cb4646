//! Maekawa's mutual exclusion by quorums.
//!
//! To enter, a process needs the locks of its quorum, some √n processes; any two quorums share an arbiter, which locks
//! itself for one request at a time. Against deadlocks, an arbiter inquires for its lock when an older request arrives,
//! and a requester that has to wait anyway relinquishes it: this is the protocol as Sanders corrected it.
//!
//! [Sanders's](super::sanders) and the [voting](super::voting) algorithm have the same handlers and other `rules`.

mod answers;
mod detour;
mod returns;
mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, Timestamp,
};
use serde::{Deserialize, Serialize};

use self::answers::Answers;
use self::detour::Detour;
use self::returns::Returns;
use self::rules::Governed;
pub(super) use self::rules::{Enough, Flaw, Rules};
pub use self::rules::{Quorums, Variant};
use super::locking::{Few, Members, Outbox, Queue};
use super::{Indication, Request};

/// One process of the algorithm.
pub type Maekawa = Node<Quorums>;

/// One process: a requester and an arbiter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Node<V> {
    clock: LamportClock,
    /// The highest known fence. Any two entries have an arbiter in common, which learns of the first
    /// before it locks itself for the second; so fences grow.
    entries: u32,
    requester: Requester,
    arbiter: Arbiter,
    #[serde(skip)]
    rules: Fixed<Governed<V>>,
}

#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
struct Requester {
    state: State,
    /// The arbiters that want their lock back. An inquiry may overtake the lock it asks about.
    inquired: Members,
    suspected: Members,
    /// The arbiters that are asked in place of suspected ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    detour: Option<Box<Detour>>,
}

/// Outside; waiting since this timestamp, with these answers; or inside.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
enum State {
    #[default]
    Released,
    Wanted {
        since: u32,
        #[serde(flatten)]
        answers: Answers,
    },
    Held {
        since: u32,
    },
}

#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
struct Arbiter {
    /// The request for which the arbiter is locked.
    holder: Option<Timestamp>,
    /// Whether the arbiter has asked the holder to relinquish the lock.
    inquired: bool,
    queue: Queue,
    /// How often each request has relinquished the lock.
    #[serde(skip_serializing_if = "Returns::is_empty")]
    returned: Returns,
    /// The latest released request of each process, if a release may overtake its request.
    #[serde(skip_serializing_if = "Few::is_empty")]
    released: Few<u32>,
}

/// Every message names the timestamp of the request it is about, so messages may overtake each other. `turn` counts how
/// often this request relinquished this lock before, `entries` is the highest fence that the sender knows, and `clock`
/// its clock, or 0 if only requests move clocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the messages of the paper")]
pub enum Message {
    Request { time: u32 },
    Locked { request: u32, turn: u16, entries: u32, clock: u32 },
    Failed { request: u32, clock: u32 },
    Inquire { request: u32, clock: u32 },
    Relinquish { request: u32, turn: u16, clock: u32 },
    Release { request: u32, entries: u32, clock: u32 },
}

impl<V: Variant> Process for Node<V> {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                let since = self.clock.tick();
                self.step(ctx, |node, out| node.acquire(since, out));
            }
            Request::Release => self.step(ctx, |node, out| node.release(out)),
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        self.clock.witness(message.clock());
        self.step(ctx, |node, out| node.receive(from, message, out));
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.step(ctx, |node, out| node.avoid(peer, out));
    }

    fn on_trust(&mut self, peer: ProcessId, _ctx: &mut Context<'_, Self>) {
        self.requester.suspected.remove(peer);
    }
}

/// The requester.
impl<V: Variant> Node<V> {
    fn acquire(&mut self, since: u32, out: &mut Outbox<Self>) {
        let asked = self.requester.choose_quorum(&self.rules, out.me());
        for &arbiter in &*asked {
            out.send(arbiter, Message::Request { time: since });
        }
        self.requester.state = State::Wanted { since, answers: Answers::of(asked) };
    }

    fn release(&mut self, out: &mut Outbox<Self>) {
        let State::Held { since } = self.requester.state else { return };
        self.requester.state = State::Released;
        let (entries, clock) = (out.entries, out.clock);
        for &arbiter in &*self.requester.leave_quorum(&self.rules) {
            out.send(arbiter, Message::Release { request: since, entries, clock });
        }
    }

    fn receive(&mut self, from: ProcessId, message: Message, out: &mut Outbox<Self>) {
        let of = |time: u32| Timestamp { time, process: from };
        out.entries = out.entries.max(message.entries());
        match message {
            Message::Request { time } => self.on_requested(of(time), out),
            Message::Locked { request, turn, .. } => self.on_locked(from, request, turn, out),
            Message::Failed { request, .. } => self.on_failed(from, request, out),
            Message::Inquire { request, .. } => self.on_inquire(from, request, out),
            Message::Relinquish { request, turn, .. } => self.on_relinquish(of(request), turn, out),
            Message::Release { request, .. } => self.on_released(of(request), out),
        }
    }

    fn on_locked(&mut self, from: ProcessId, request: u32, turn: u16, out: &mut Outbox<Self>) {
        let Some(answers) = self.requester.answers_to(request, &self.rules) else {
            return self.release_stray_lock(from, request, out);
        };
        let Some(place) = answers.place(from) else { return out.unasked() };
        if self.rules.is_due(turn, answers.turn(place)) {
            answers.lock(place, self.rules.sticky);
            self.enter_or_relinquish(out);
        }
    }

    fn enter_or_relinquish(&mut self, out: &mut Outbox<Self>) {
        let State::Wanted { since, answers } = &self.requester.state else { return };
        if !self.rules.enough.is_reached(answers, self.requester.needed()) {
            return self.relinquish_if_failing(out);
        }
        self.requester.state = State::Held { since: *since };
        self.rules.forget_inquiries(&mut self.requester.inquired);
        out.enter();
    }

    fn on_failed(&mut self, from: ProcessId, request: u32, out: &mut Outbox<Self>) {
        let Some(answers) = self.requester.answers_to(request, &self.rules) else { return };
        let Some(place) = answers.place(from) else { return out.unasked() };
        answers.fail(place);
        self.relinquish_if_failing(out);
    }

    fn on_inquire(&mut self, from: ProcessId, request: u32, out: &mut Outbox<Self>) {
        if self.notes_inquiry(from, request, out) {
            self.requester.inquired.insert(from);
            self.relinquish_if_failing(out);
        }
    }

    /// While the process has to wait anyway, it relinquishes the locks that arbiters want back.
    fn relinquish_if_failing(&mut self, out: &mut Outbox<Self>) {
        if self.requester.inquired.is_empty() || !self.requester.is_failing(&self.rules) {
            return;
        }
        let State::Wanted { since: request, .. } = self.requester.state else { return };
        for (arbiter, turn) in self.requester.take_inquired_locks(&self.rules) {
            out.send(arbiter, Message::Relinquish { request, turn, clock: out.clock });
        }
    }
}

/// The arbiter.
impl<V: Variant> Node<V> {
    fn on_requested(&mut self, request: Timestamp, out: &mut Outbox<Self>) {
        let Some(place) = self.arbiter.enqueue(request) else { return };
        match self.arbiter.holder {
            None => self.lock_for_next(out),
            Some(holder) if place == 0 && request < holder => self.inquire(holder, out),
            Some(_) => self.fail(place, out),
        }
    }

    /// Locks itself for the oldest request, and for the next if the process of that one will not inform this arbiter.
    fn lock_for_next(&mut self, out: &mut Outbox<Self>) {
        self.arbiter.holder = None;
        while self.arbiter.holder.is_none()
            && let Some(next) = self.arbiter.queue.pop()
        {
            let turn = self.arbiter.returned.of(next);
            let (request, entries, clock) = (next.time, out.entries, out.clock);
            out.send(next.process, Message::Locked { request, turn, entries, clock });
            if self.rules.is_informed_by(next.process) {
                self.arbiter.holder = Some(next);
                self.arbiter.inquired = false;
            }
        }
    }

    fn inquire(&mut self, holder: Timestamp, out: &mut Outbox<Self>) {
        if self.rules.permits_inquiry(self.arbiter.inquired) {
            self.arbiter.inquired = true;
            out.send(holder.process, Message::Inquire { request: holder.time, clock: out.clock });
        }
        self.fail_displaced(out);
    }

    fn fail(&mut self, place: usize, out: &mut Outbox<Self>) {
        if let Some(request) = self.rules.failing(&mut self.arbiter.queue, place) {
            out.send(request.process, Message::Failed { request: request.time, clock: out.clock });
        }
    }

    fn on_relinquish(&mut self, lock: Timestamp, turn: u16, out: &mut Outbox<Self>) {
        let Some(holder) = self.rules.held_by(self.arbiter.holder, lock) else { return };
        if self.arbiter.returned.count(holder, turn, &self.rules) {
            // The requester knows that it has to wait: it needs no failure.
            self.arbiter.queue.insert(holder, true);
            self.lock_for_next(out);
        }
    }

    fn on_released(&mut self, lock: Timestamp, out: &mut Outbox<Self>) {
        self.arbiter.returned.forget(lock);
        self.rules.remember_release(lock, &mut self.arbiter.released);
        if self.rules.held_by(self.arbiter.holder, lock).is_some() {
            self.lock_for_next(out);
        } else {
            self.arbiter.queue.remove(lock);
        }
    }
}
