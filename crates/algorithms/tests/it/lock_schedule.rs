//! A small group of a lock in which the test decides every step: the adversarial schedules of the
//! sources.

use std::collections::{BTreeMap, VecDeque};

use konklave_algorithms::Algorithm;
use konklave_algorithms::mutex::{Indication, Request};
use konklave_process::{Effect, Input, Process, ProcessId, ProcessSet};
use konklave_testkit::{Bench, Case};

/// The processes, and the messages under way between them.
pub(crate) struct LockSchedule<P: Process> {
    members: BTreeMap<u32, Bench<P>>,
    flight: BTreeMap<(u32, u32), VecDeque<P::Message>>,
    /// The processes in the critical section.
    pub(crate) inside: ProcessSet,
    /// The waiting processes.
    pub(crate) waiting: ProcessSet,
    /// The most processes that were in the critical section together.
    pub(crate) most_inside: usize,
    /// How many messages were sent.
    pub(crate) sent: usize,
}

impl<P> LockSchedule<P>
where
    P: Algorithm + Process<Request = Request, Indication = Indication>,
{
    /// The group of `case`.
    pub(crate) fn new(case: &Case<P>) -> Self {
        let group = &case.setup.group;
        let member = |&p: &ProcessId| (p.0, Bench::new(P::new(p, &case.setup), p, group));
        Self {
            members: group.members().iter().map(member).collect(),
            flight: BTreeMap::new(),
            inside: ProcessSet::new(),
            waiting: ProcessSet::new(),
            most_inside: 0,
            sent: 0,
        }
    }

    /// Plays a schedule: `ask:0` and `leave:0`, `0>3` for the next message from 0 to 3, and
    /// `0>3/Inquire` for the next one of that kind, ahead of others.
    #[track_caller]
    pub(crate) fn play(&mut self, schedule: &str) -> &mut Self {
        for word in schedule.split_whitespace() {
            let number = |text: &str| text.parse::<u32>().unwrap_or_else(|_| panic!("{word}"));
            if let Some((what, who)) = word.split_once(':') {
                match what {
                    "ask" => self.ask(number(who)),
                    "leave" => self.leave(number(who)),
                    _ => panic!("{word} is no step"),
                }
                continue;
            }
            let (link, kind) = word.split_once('/').unwrap_or((word, ""));
            let (from, to) = link.split_once('>').unwrap_or_else(|| panic!("{word} is no step"));
            self.deliver(number(from), number(to), kind);
        }
        self
    }

    /// The application at `p` asks.
    pub(crate) fn ask(&mut self, p: u32) {
        self.waiting.insert(ProcessId(p));
        self.step(p, Input::Request(Request::Acquire));
    }

    /// The application at `p` leaves.
    #[track_caller]
    pub(crate) fn leave(&mut self, p: u32) {
        assert!(self.inside.remove(ProcessId(p)), "{p} is not inside");
        self.step(p, Input::Request(Request::Release));
    }

    #[track_caller]
    fn deliver(&mut self, from: u32, to: u32, kind: &str) {
        let channel = self.flight.entry((from, to)).or_default();
        let fits = |m: &P::Message| format!("{m:?}").starts_with(kind);
        let next = channel.iter().position(fits);
        let next = next.unwrap_or_else(|| panic!("no {kind} from {from} to {to}: {channel:?}"));
        let message = channel.remove(next).expect("it was found");
        self.step(to, Input::Message { from: ProcessId(from), message });
    }

    fn step(&mut self, p: u32, input: Input<P>) {
        for effect in self.members.get_mut(&p).expect("a member").step(input) {
            match effect {
                Effect::Send { to, message } => {
                    self.sent += 1;
                    self.flight.entry((p, to.0)).or_default().push_back(message);
                }
                Effect::Indicate(Indication::Granted { .. }) => {
                    self.inside.insert(ProcessId(p));
                    self.waiting.remove(ProcessId(p));
                    self.most_inside = self.most_inside.max(self.inside.len());
                }
                other => panic!("{p} does {other:?}"),
            }
        }
    }

    /// Delivers all messages under way, but not the answers to them; false if there are none.
    pub(crate) fn round(&mut self) -> bool {
        let flight = std::mem::take(&mut self.flight);
        let mut some = false;
        for ((from, to), messages) in flight {
            for message in messages {
                some = true;
                self.step(to, Input::Message { from: ProcessId(from), message });
            }
        }
        some
    }

    /// Delivers messages until none is under way; each process that enters leaves again.
    pub(crate) fn finish(&mut self) -> &mut Self {
        loop {
            if self.round() {
                continue;
            }
            let Some(p) = self.inside.lowest() else { return self };
            self.leave(p.0);
        }
    }

    /// No two processes were inside together, none waits, and all are at rest.
    #[track_caller]
    pub(crate) fn all_well(&self) {
        assert_eq!((self.most_inside, self.waiting_ids()), (1, vec![]));
        assert_eq!(self.restless_ids(), Vec::<u32>::new());
    }

    /// The ids of processes that are not at rest.
    pub(crate) fn restless_ids(&self) -> Vec<u32> {
        let restless = self.members.iter().filter(|(_, bench)| !bench.process.at_rest());
        restless.map(|(p, _)| *p).collect()
    }

    /// The ids of waiting processes.
    pub(crate) fn waiting_ids(&self) -> Vec<u32> {
        self.waiting.iter().map(|p| p.0).collect()
    }
}
