//! A small group in which the test decides every step: for schedules that random runs do not find.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use konklave_process::{Effect, Group, Input, Inspect, Process, ProcessId, Rng};
use konklave_testkit::Bench;

/// The processes, the messages under way between them, their timers and their indications.
pub(crate) struct Play<P: Process> {
    members: BTreeMap<u32, Bench<P>>,
    flight: BTreeMap<(u32, u32), VecDeque<P::Message>>,
    timers: BTreeSet<(u32, P::Timer)>,
    down: BTreeSet<u32>,
    /// The indications with their processes, in order.
    pub(crate) told: Vec<(u32, P::Indication)>,
    pub(crate) sent: usize,
}

impl<P: Inspect> Play<P> {
    /// These processes, all started.
    pub(crate) fn new(group: &Group, build: impl Fn(ProcessId) -> P) -> Self {
        let member = |&p: &ProcessId| (p.0, Bench::new(build(p), p, group));
        let mut play = Self {
            members: group.members().iter().map(member).collect(),
            flight: BTreeMap::new(),
            timers: BTreeSet::new(),
            down: BTreeSet::new(),
            told: Vec::new(),
            sent: 0,
        };
        for p in group.members() {
            play.step(p.0, Input::Start);
        }
        play
    }

    pub(crate) fn process(&self, p: u32) -> &P {
        &self.members[&p].process
    }

    pub(crate) fn step(&mut self, p: u32, input: Input<P>) -> &mut Self {
        if self.down.contains(&p) {
            return self;
        }
        let bench = self.members.get_mut(&p).expect("a test names members");
        for effect in bench.step(input) {
            match effect {
                Effect::Send { to, message } => {
                    self.sent += 1;
                    self.flight.entry((p, to.0)).or_default().push_back(message);
                }
                Effect::Indicate(indication) => self.told.push((p, indication)),
                Effect::SetTimer { timer, .. } => {
                    self.timers.insert((p, timer));
                }
                Effect::CancelTimer { timer } => {
                    self.timers.remove(&(p, timer));
                }
                Effect::Save(_) => {}
                Effect::Unexpected(what) => panic!("p{p} met {what}"),
            }
        }
        self
    }

    pub(crate) fn ask(&mut self, p: u32, request: P::Request) -> &mut Self {
        self.step(p, Input::Request(request))
    }

    pub(crate) fn suspect(&mut self, p: u32, whom: u32) -> &mut Self {
        self.step(p, Input::Suspect(ProcessId(whom)))
    }

    /// Fires the timer at `p`, if it runs.
    pub(crate) fn fire(&mut self, p: u32, timer: P::Timer) -> &mut Self {
        if let Some((_, timer)) = self.timers.take(&(p, timer)) {
            self.step(p, Input::Timer(timer));
        }
        self
    }

    pub(crate) fn crash(&mut self, p: u32) -> &mut Self {
        self.down.insert(p);
        self.timers.retain(|(q, _)| *q != p);
        self
    }

    /// All messages under way from `from` to `to` arrive.
    pub(crate) fn hear(&mut self, from: u32, to: u32) -> &mut Self {
        for message in self.flight.remove(&(from, to)).unwrap_or_default() {
            self.step(to, Input::Message { from: ProcessId(from), message });
        }
        self
    }

    /// The first message of this kind from `from` to `to` arrives, ahead of others.
    #[track_caller]
    pub(crate) fn hear_kind(&mut self, from: u32, to: u32, kind: &str) -> &mut Self {
        let channel = self.flight.entry((from, to)).or_default();
        let place = channel.iter().position(|m| format!("{m:?}").starts_with(kind));
        let place = place.unwrap_or_else(|| panic!("no {kind} from {from} to {to}"));
        let message = channel.remove(place).expect("it was found there");
        self.step(to, Input::Message { from: ProcessId(from), message })
    }

    /// All messages under way from `from` to `to` are lost.
    pub(crate) fn lose(&mut self, from: u32, to: u32) -> &mut Self {
        self.flight.remove(&(from, to));
        self
    }

    /// Delivers all messages, until none is under way.
    pub(crate) fn settle(&mut self) -> &mut Self {
        while let Some((from, to)) =
            self.flight.iter().find(|(_, q)| !q.is_empty()).map(|(channel, _)| *channel)
        {
            self.hear(from, to);
        }
        self
    }

    /// Delivers all messages except the ones between these two sets.
    pub(crate) fn settle_apart(&mut self, side: &[u32]) -> &mut Self {
        let apart = |(a, b): (u32, u32)| side.contains(&a) != side.contains(&b);
        loop {
            let ready =
                |(channel, q): &(&(u32, u32), &VecDeque<_>)| !q.is_empty() && !apart(**channel);
            let Some((from, to)) = self.flight.iter().find(ready).map(|(c, _)| *c) else {
                return self;
            };
            self.hear(from, to);
        }
    }
}

/// Faults drawn from `rng` for a group of n: crashes for good or not, cuts, partitions, wrong
/// suspicions, pauses. They end before 150 T. The second result is the processes that are up then.
pub(crate) fn storm(rng: &mut Rng, n: usize) -> (Vec<String>, Vec<u32>) {
    let mut up: Vec<u32> = (0..n as u32).collect();
    let mut faults = Vec::new();
    for _ in 0..1 + rng.below(4) {
        let at = 5 + rng.below(100);
        let until = at + 5 + rng.below(45);
        let (a, b) = (rng.below(n as u32), rng.below(n as u32));
        let fault = match rng.below(6) {
            0 => {
                if rng.below(2) == 0 {
                    faults.push(format!("restart:{a}@{until}"));
                } else {
                    up.retain(|p| *p != a);
                }
                format!("crash:{a}@{at}")
            }
            1 if a != b => format!("cut:{a}>{b}@{at}-{until}"),
            2 => format!("partition:{a}@{at}-{until}"),
            3 if a != b => format!("partition:{a},{b}@{at}-{until}"),
            4 if a != b => format!("suspect:{a}>{b}@{at}"),
            _ => format!("pause:{a}@{at}-{until}"),
        };
        faults.push(fault);
    }
    (faults, up)
}
