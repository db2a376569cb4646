//! A ring of workers with the hand-over that the report prints, in virtual time. A worker that hands over waits until
//! its message is taken, and takes no message while it waits or sleeps. In our code a worker takes messages at any time.
//!
//! The times are exact, so this is a calculation, not a race. No worker fails, so each suspicion is wrong.

use std::collections::VecDeque;

use serde::Serialize;

use crate::printed::Code;

/// The question: which code, how many workers, how long each step takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Rendezvous {
    /// The code of the hand-over.
    pub code: Code,
    /// The number of workers.
    pub workers: usize,
    /// The number of workers that start an election: the first ones, all at once.
    pub initiators: usize,
    /// The longest time that a worker waits until its message is taken, in milliseconds.
    pub timeout: u64,
    /// The time that a worker sleeps after each task, in milliseconds.
    pub worker_sleep: u64,
}

/// The result of one election.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Met {
    /// The number of timeouts: each time, a live worker was taken for failed.
    pub wrongly_failed: u64,
    /// The number of messages that were taken.
    pub taken: u64,
    /// The time at which the election ended, in milliseconds.
    pub took: u64,
}

/// The activity of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    /// It waits for a message.
    Idle,
    /// It waits until its message is taken, or until this time.
    HandsOver { until: u64 },
    /// It sleeps until this time.
    Sleeps { until: u64 },
}

#[derive(Clone, Debug)]
struct Worker {
    id: usize,
    doing: Doing,
    participates: bool,
    /// Messages that it took while it was busy: ours only.
    queue: VecDeque<Message>,
    /// The only slot: the message, and the worker that put it there.
    slot: Option<(usize, Message)>,
}

/// Chang and Roberts's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Message {
    Start,
    Propose(usize),
    Elected(usize),
}

struct Ring {
    asked: Rendezvous,
    workers: Vec<Worker>,
    now: u64,
    met: Met,
}

impl Rendezvous {
    /// Lets the workers hold their election; ids fall along the ring, so that each message has the
    /// longest way.
    pub fn hold(self) -> Met {
        let worker = |place: usize| Worker {
            id: self.workers - place,
            doing: Doing::Idle,
            participates: false,
            queue: VecDeque::new(),
            slot: None,
        };
        let workers = (0..self.workers).map(worker).collect();
        let mut ring = Ring { asked: self, workers, now: 0, met: Met::default() };
        for place in 0..self.initiators.min(self.workers) {
            ring.workers[place].queue.push_back(Message::Start);
        }
        ring.run();
        ring.met
    }

    /// The shortest timeout with which no live worker is taken for failed, up to `most`.
    pub fn shortest_timeout(self, most: u64) -> Option<u64> {
        let fits = |timeout| Self { timeout, ..self }.hold().wrongly_failed == 0;
        // A worker that waits longer gives up less often, so a binary search finds the shortest sufficient wait.
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = u64::midpoint(low, high);
            (low, high) = if fits(middle) { (low, middle) } else { (middle + 1, high) };
        }
        fits(low).then_some(low)
    }
}

impl Ring {
    fn run(&mut self) {
        // An election of n workers takes at most n² messages. Each one is taken or times out.
        for _ in 0..8 * (self.asked.workers + 1).pow(2) {
            while (0..self.workers.len()).any(|place| self.step(place)) {}
            let ends = self.workers.iter().filter_map(|worker| match worker.doing {
                Doing::Idle => None,
                Doing::HandsOver { until } | Doing::Sleeps { until } => Some(until),
            });
            let Some(next) = ends.min() else { break };
            self.now = next;
            (0..self.workers.len()).for_each(|place| self.wake(place));
        }
        self.met.took = self.now;
    }

    /// Lets the worker at `place` take its next step; false if it can do nothing now.
    fn step(&mut self, place: usize) -> bool {
        let ours = self.asked.code == Code::Ticket;
        let worker = &mut self.workers[place];
        let idle = worker.doing == Doing::Idle;
        // An idle worker handles the messages in its queue first. All elections start at the same moment.
        if idle && let Some(message) = worker.queue.pop_front() {
            self.handle(place, message);
            return true;
        }
        if (idle || ours)
            && let Some((from, message)) = worker.slot.take()
        {
            worker.queue.push_back(message);
            self.met.taken += 1;
            // The sender may have given up before.
            if matches!(self.workers[from].doing, Doing::HandsOver { .. }) {
                self.told(from);
            }
            return true;
        }
        false
    }

    /// The worker at `place` is done with its task: it sleeps.
    fn told(&mut self, place: usize) {
        let until = self.now + self.asked.worker_sleep;
        self.workers[place].doing = Doing::Sleeps { until };
    }

    /// Ends the worker's sleep or hand-over if it lasted until now.
    fn wake(&mut self, place: usize) {
        match self.workers[place].doing {
            Doing::Sleeps { until } if until <= self.now => self.workers[place].doing = Doing::Idle,
            Doing::HandsOver { until } if until <= self.now => {
                self.met.wrongly_failed += 1;
                let next = (place + 1) % self.workers.len();
                // Printed: the message stays in the slot. Ours: it is withdrawn.
                if self.asked.code == Code::Ticket {
                    self.workers[next].slot = None;
                }
                self.told(place);
            }
            _ => {}
        }
    }

    /// Chang and Roberts's rules.
    fn handle(&mut self, place: usize, message: Message) {
        let Worker { id, participates, .. } = self.workers[place];
        let answer = match message {
            Message::Start if !participates => Some(Message::Propose(id)),
            Message::Propose(other) if other > id => Some(message),
            Message::Propose(other) if other == id => Some(Message::Elected(id)),
            Message::Propose(_) if !participates => Some(Message::Propose(id)),
            Message::Elected(other) if other != id => Some(message),
            Message::Start | Message::Propose(_) | Message::Elected(_) => None,
        };
        let next = (place + 1) % self.workers.len();
        if answer.is_some() && self.workers[next].slot.is_some() {
            // There is no room, and nobody knows for how long: it is tried again in a moment.
            self.workers[place].queue.push_front(message);
            self.workers[place].doing = Doing::Sleeps { until: self.now + 1 };
            return;
        }
        let ends = matches!(message, Message::Elected(_));
        let leads = matches!(answer, Some(Message::Elected(_)));
        self.workers[place].participates = !ends && !leads;
        let Some(answer) = answer else { return self.told(place) };
        self.workers[next].slot = Some((place, answer));
        self.workers[place].doing = Doing::HandsOver { until: self.now + self.asked.timeout };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(code: Code, workers: usize, initiators: usize) -> Rendezvous {
        Rendezvous { code, workers, initiators, timeout: 2000, worker_sleep: 500 }
    }

    #[test]
    fn two_who_hand_over_to_each_other_wait_for_each_other() {
        let met = ring(Code::Printed, 2, 2).hold();
        assert!(met.wrongly_failed >= 2, "{met:?}");
        let ours = ring(Code::Ticket, 2, 2).hold();
        assert_eq!(ours.wrongly_failed, 0, "{ours:?}");
        assert!(ours.taken >= 4);
    }

    #[test]
    fn short_timeout_takes_a_sleeping_worker_for_failed() {
        let one = |timeout| Rendezvous { timeout, ..ring(Code::Printed, 3, 1) };
        assert!(one(400).hold().wrongly_failed > 0);
        assert_eq!(one(2000).hold().wrongly_failed, 0);
        let least = one(0).shortest_timeout(10_000).unwrap();
        assert!((500..=1000).contains(&least), "{least}");
        assert_eq!(ring(Code::Ticket, 3, 1).shortest_timeout(10_000), Some(0));
    }

    #[test]
    fn one_worker_elects_itself() {
        assert_eq!(ring(Code::Ticket, 1, 1).hold().wrongly_failed, 0);
    }
}
