//! The properties: mutual exclusion, one token, growing fences, happened-before order, bounded
//! bypass and overtaking.

mod order;

pub use order::Knowledge;

use konklave_process::{
    Group, Inspect, Monitor, ProcessId, ProcessMap, ProcessSet, Verdict, Violation,
};
use smallvec::SmallVec;

use self::order::HappenedBefore;
use super::{Fence, Indication, Request};
use crate::Watch;

/// The judges of mutual exclusion.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Properties {
    inside: Few,
    tokens: Tokens,
    fences: Option<Fences>,
    order: Option<HappenedBefore>,
    bypass: Option<Bypass>,
}

impl Properties {
    /// The judges that `watch` names.
    pub fn new(watch: &Watch, group: &Group) -> Self {
        Self {
            inside: Few::default(),
            tokens: Tokens::default(),
            fences: watch.fence.then(Fences::default),
            order: HappenedBefore::new(watch, group),
            bypass: watch
                .bypass
                .map(|most| Bypass { most, overtaken: ProcessMap::new(group, None) }),
        }
    }

    /// How many entries broke happened-before order, where that is counted.
    pub fn inversions(&self) -> Option<u64> {
        self.order.as_ref().and_then(HappenedBefore::inversions)
    }

    /// Whether fences grew, where that is judged.
    pub fn fences_monotone(&self) -> Option<bool> {
        self.fences.as_ref().map(|fences| !fences.broken)
    }
}

impl<P: Inspect<Request = Request, Indication = Indication>> Monitor<P> for Properties {
    type Tag = Knowledge;

    fn on_request(&mut self, at: ProcessId, request: &Request) -> Verdict {
        match request {
            Request::Acquire => {
                if let Some(order) = &mut self.order {
                    order.on_acquire(at);
                }
                if let Some(bypass) = &mut self.bypass {
                    bypass.overtaken[at] = Some(0);
                }
                Ok(())
            }
            Request::Release if !self.inside.remove(at) => {
                Err(Violation::new("usage", format!("{at} released from outside")))
            }
            Request::Release => Ok(()),
        }
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) -> Verdict {
        let Indication::Granted { fence } = indication;
        self.inside.insert(at);
        if self.inside.len() > 1 {
            return Err(Violation::new(
                "mutual exclusion",
                format!("{:?} are in the critical section together", self.inside.all()),
            ));
        }
        if let Some(fences) = &mut self.fences {
            fences.on_entry(at, *fence)?;
        }
        if let Some(bypass) = &mut self.bypass {
            bypass.on_entry(at)?;
        }
        self.order.as_mut().map_or(Ok(()), |order| order.on_entry(at))
    }

    fn on_send(&mut self, from: ProcessId, message: Option<&P::Message>) -> Knowledge {
        self.tokens.in_flight += message.map_or(0, P::tokens_in);
        self.order.as_ref().map(|order| order.known[from].clone())
    }

    fn on_receive(
        &mut self,
        at: ProcessId,
        message: Option<&P::Message>,
        tag: &Knowledge,
    ) -> Verdict {
        let tokens = message.map_or(0, P::tokens_in);
        self.tokens.in_flight = self.tokens.in_flight.saturating_sub(tokens);
        if let (Some(order), Some(known)) = (&mut self.order, tag) {
            order.learn(at, known);
        }
        Ok(())
    }

    fn on_lost(&mut self, message: &P::Message) {
        let tokens = P::tokens_in(message);
        self.tokens.in_flight = self.tokens.in_flight.saturating_sub(tokens);
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.inside.remove(at);
        self.tokens.held.remove(at);
        if let Some(order) = &mut self.order {
            order.forget(at);
        }
        if let Some(bypass) = &mut self.bypass {
            bypass.overtaken[at] = None;
        }
    }

    fn after_step(&mut self, at: ProcessId, process: &P) -> Verdict {
        self.tokens.after_step(at, process.tokens())
    }

    fn view(&self, process: &P) -> Option<u64> {
        Some(process.tokens() as u64)
    }

    fn remembers_messages(&self) -> bool {
        self.order.is_some()
    }
}

/// At most one token exists, at a process or on its way. A copy that the network made is a token
/// only once a process takes it for one.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
struct Tokens {
    held: Few,
    in_flight: usize,
}

impl Tokens {
    fn after_step(&mut self, at: ProcessId, tokens: usize) -> Verdict {
        if tokens > 0 {
            self.held.insert(at);
        } else {
            self.held.remove(at);
        }
        let (held, in_flight) = (self.held.len(), self.in_flight);
        if held + in_flight <= 1 {
            return Ok(());
        }
        let holders = self.held.all();
        Err(Violation::new(
            "one token",
            format!("{} tokens: {holders:?} hold one, {in_flight} on the way", held + in_flight),
        ))
    }
}

/// A set that has one member, unless something is wrong: quick in groups of any size.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
struct Few(SmallVec<[ProcessId; 2]>);

impl Few {
    fn insert(&mut self, p: ProcessId) {
        if let Err(i) = self.0.binary_search(&p) {
            self.0.insert(i, p);
        }
    }

    fn remove(&mut self, p: ProcessId) -> bool {
        let found = self.0.binary_search(&p);
        found.map(|i| self.0.remove(i)).is_ok()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn all(&self) -> ProcessSet {
        self.0.iter().copied().collect()
    }
}

/// Each entry has a higher fence number than all before it.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
struct Fences {
    last: Option<Fence>,
    broken: bool,
}

impl Fences {
    fn on_entry(&mut self, at: ProcessId, fence: Option<Fence>) -> Verdict {
        let Some(fence) = fence else {
            self.broken = true;
            return Err(Violation::new("growing fences", format!("{at} entered without a fence")));
        };
        let last = self.last.replace(fence);
        if last < Some(fence) {
            return Ok(());
        }
        self.broken = true;
        let before = last.map_or("none".to_owned(), |last| last.to_string());
        let detail = format!("{at} entered with {fence} after an entry with {before}");
        Err(Violation::new("growing fences", detail))
    }
}

/// Nobody is overtaken more than a number of times between asking and entering.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Bypass {
    most: u32,
    overtaken: ProcessMap<Option<u32>>,
}

impl Bypass {
    fn on_entry(&mut self, at: ProcessId) -> Verdict {
        self.overtaken[at] = None;
        self.overtaken.values_mut().flatten().for_each(|times| *times += 1);
        let most = self.most;
        let starved = self.overtaken.iter().find(|(_, times)| times.is_some_and(|t| t > most));
        match starved {
            None => Ok(()),
            Some((p, _)) => Err(Violation::new(
                "bounded bypass",
                format!("{p} waits and was overtaken more than {most} times"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutex::central::{Central, Message};
    use crate::mutex::suzuki_kasami::SuzukiKasami;
    use crate::{Algorithm, Order, Setup};
    use konklave_process::Topology;

    const P0: ProcessId = ProcessId(0);
    const P1: ProcessId = ProcessId(1);

    fn judges(watch: &Watch) -> Properties {
        Properties::new(watch, &Group::of(2))
    }

    fn ask(judges: &mut Properties, at: ProcessId, request: Request) -> Verdict {
        Monitor::<Central>::on_request(judges, at, &request)
    }

    fn grant(judges: &mut Properties, at: ProcessId, fence: u64) -> Verdict {
        let granted = Indication::Granted { fence: Some(Fence(0, fence)) };
        Monitor::<Central>::on_indication(judges, at, &granted)
    }

    fn broken(verdict: Verdict) -> &'static str {
        verdict.expect_err("a violation").property
    }

    #[test]
    fn two_inside_are_one_too_many() {
        let mut judges = judges(&Watch::default());
        assert_eq!(grant(&mut judges, P0, 1), Ok(()));
        assert_eq!(broken(grant(&mut judges, P1, 2)), "mutual exclusion");
    }

    #[test]
    fn process_outside_cannot_leave() {
        assert_eq!(broken(ask(&mut judges(&Watch::default()), P0, Request::Release)), "usage");
    }

    #[test]
    fn a_fence_that_does_not_grow_is_none() {
        let mut judges = judges(&Watch { fence: true, ..Watch::default() });
        assert_eq!(grant(&mut judges, P0, 5), Ok(()));
        assert_eq!(ask(&mut judges, P0, Request::Release), Ok(()));
        assert_eq!(broken(grant(&mut judges, P1, 5)), "growing fences");
        assert_eq!(judges.fences_monotone(), Some(false));
    }

    #[test]
    fn an_entry_without_a_fence_has_none_that_grows() {
        let mut judges = judges(&Watch { fence: true, ..Watch::default() });
        let granted = Indication::Granted { fence: None };
        let verdict = Monitor::<Central>::on_indication(&mut judges, P0, &granted);
        assert_eq!(broken(verdict), "growing fences");
    }

    #[test]
    fn only_those_who_knew_of_a_request_overtake_it() {
        let mut judges = judges(&Watch { overtaking: Some(1), ..Watch::default() });
        let enters = |judges: &mut Properties, fence| {
            ask(judges, P1, Request::Acquire)?;
            grant(judges, P1, fence)?;
            ask(judges, P1, Request::Release)
        };
        ask(&mut judges, P0, Request::Acquire).unwrap();
        let tag = Monitor::<Central>::on_send(&mut judges, P0, None);
        assert_eq!([1, 2].map(|fence| enters(&mut judges, fence)), [Ok(()), Ok(())]);
        Monitor::<Central>::on_receive(&mut judges, P1, None, &tag).unwrap();
        assert_eq!(enters(&mut judges, 3), Ok(()));
        assert_eq!(broken(enters(&mut judges, 4)), "bounded overtaking");
        assert_eq!(judges.inversions(), None);
    }

    #[test]
    fn process_must_not_enter_before_a_request_it_knew() {
        let mut judges = judges(&Watch { order: Order::Judge, ..Watch::default() });
        ask(&mut judges, P0, Request::Acquire).unwrap();
        let message = Message::Request(1);
        let tag = Monitor::<Central>::on_send(&mut judges, P0, Some(&message));
        Monitor::<Central>::on_receive(&mut judges, P1, Some(&message), &tag).unwrap();
        ask(&mut judges, P1, Request::Acquire).unwrap();
        assert_eq!(broken(grant(&mut judges, P1, 1)), "happened-before order");
    }

    #[test]
    fn of_two_who_know_nothing_of_each_other_either_may_be_first() {
        let mut judges = judges(&Watch { order: Order::Judge, ..Watch::default() });
        ask(&mut judges, P0, Request::Acquire).unwrap();
        ask(&mut judges, P1, Request::Acquire).unwrap();
        assert_eq!(grant(&mut judges, P1, 1), Ok(()));
    }

    #[test]
    fn an_inversion_that_is_only_counted_is_counted() {
        let mut judges = judges(&Watch { order: Order::Count, ..Watch::default() });
        ask(&mut judges, P0, Request::Acquire).unwrap();
        let tag = Monitor::<Central>::on_send(&mut judges, P0, None);
        Monitor::<Central>::on_receive(&mut judges, P1, None, &tag).unwrap();
        ask(&mut judges, P1, Request::Acquire).unwrap();
        assert_eq!(grant(&mut judges, P1, 1), Ok(()));
        assert_eq!(judges.inversions(), Some(1));
    }

    #[test]
    fn process_overtaken_too_often_starves() {
        let mut judges = judges(&Watch { bypass: Some(1), ..Watch::default() });
        ask(&mut judges, P1, Request::Acquire).unwrap();
        for _ in 0..1 {
            assert_eq!(grant(&mut judges, P0, 1), Ok(()));
            ask(&mut judges, P0, Request::Release).unwrap();
        }
        assert_eq!(broken(grant(&mut judges, P0, 2)), "bounded bypass");
    }

    #[test]
    fn two_tokens_are_one_too_many() {
        let setup = Setup::new(Group::of(2), Topology::complete(2));
        let owner = SuzukiKasami::new(P0, &setup);
        let mut judges = judges(&Watch::default());
        assert_eq!(Monitor::<SuzukiKasami>::after_step(&mut judges, P0, &owner), Ok(()));
        let second = Monitor::<SuzukiKasami>::after_step(&mut judges, P1, &owner);
        assert_eq!(broken(second), "one token");
    }
}
