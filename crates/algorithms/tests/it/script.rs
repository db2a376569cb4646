//! Runs of mutual exclusion, step by step: the adversarial schedules of the books.

use konklave_algorithms::mutex::{Indication, Mutex, Request};
use konklave_algorithms::{Algorithm, Setup};
use konklave_process::{Effect, Group, Process, Topology};
use konklave_testkit::Bench;

/// A group 0 to n − 1 in which nothing happens but what the test says.
pub(crate) struct Script<P: Process> {
    members: Vec<Bench<P>>,
    /// The messages on their way: from, to, message.
    flight: Vec<(u32, u32, P::Message)>,
    /// The processes in the critical section.
    pub(crate) inside: Vec<u32>,
}

impl<P: Algorithm<Problem = Mutex> + Process<Request = Request, Indication = Indication>>
    Script<P>
{
    pub(crate) fn new(n: usize) -> Self {
        Self::with(&Setup::new(Group::of(n), Topology::complete(n)))
    }

    /// With the mistake `name`.
    pub(crate) fn mistaken(n: usize, name: &str) -> Self {
        let known = P::SHEET.mistakes.iter().find(|m| m.name == name);
        let mut setup = Setup::new(Group::of(n), Topology::complete(n));
        setup.mistake = Some(known.expect("a test names a known mistake").name);
        Self::with(&setup)
    }

    fn with(setup: &Setup) -> Self {
        let members = setup.group.members().iter();
        let members = members.map(|&p| Bench::new(P::new(p, setup), p, &setup.group)).collect();
        Self { members, flight: Vec::new(), inside: Vec::new() }
    }

    fn note(&mut self, at: u32, effects: Vec<Effect<P>>) {
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.flight.push((at, to.0, message)),
                Effect::Indicate(Indication::Granted { .. }) => self.inside.push(at),
                Effect::SetTimer { .. } | Effect::CancelTimer { .. } | Effect::Save(_) => {}
                Effect::Unexpected(what) => panic!("{at} met {what}"),
            }
        }
    }

    pub(crate) fn acquire(&mut self, at: u32) -> &mut Self {
        let effects = self.members[at as usize].ask(Request::Acquire);
        self.note(at, effects);
        self
    }

    pub(crate) fn leave(&mut self, at: u32) -> &mut Self {
        assert!(self.inside.contains(&at), "{at} is not inside");
        self.inside.retain(|p| *p != at);
        let effects = self.members[at as usize].ask(Request::Release);
        self.note(at, effects);
        self
    }

    /// The first message from one to the other arrives.
    pub(crate) fn deliver(&mut self, from: u32, to: u32) -> &mut Self {
        self.deliver_after(from, to, 0)
    }

    /// A message from one to the other arrives before `skipped` earlier ones.
    pub(crate) fn deliver_after(&mut self, from: u32, to: u32, skipped: usize) -> &mut Self {
        let on_channel = |(f, t, _): &(u32, u32, P::Message)| (*f, *t) == (from, to);
        let found = (0..self.flight.len()).filter(|&i| on_channel(&self.flight[i])).nth(skipped);
        let (_, _, message) = self.flight.remove(found.expect("a message is on its way"));
        let effects = self.members[to as usize].hear(from, message);
        self.note(to, effects);
        self
    }

    /// Delivers all messages on their way, and all that follow; a process that is inside stays there.
    pub(crate) fn settle(&mut self) -> &mut Self {
        while !self.flight.is_empty() {
            let (from, to, _) = self.flight[0];
            self.deliver(from, to);
        }
        self
    }

    /// How many messages are on their way from one to the other.
    pub(crate) fn on_the_way(&self, from: u32, to: u32) -> usize {
        self.flight.iter().filter(|(f, t, _)| (*f, *t) == (from, to)).count()
    }
}
