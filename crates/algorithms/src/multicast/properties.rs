//! The properties: no creation, no duplication, validity, agreement, and the orders.

mod orders;

use std::collections::BTreeMap;

use konklave_process::{
    End, Fixed, Group, Monitor, Process, ProcessId, ProcessMap, ProcessSet, Verdict, Violation,
};

use self::orders::{Causes, Log};
use super::sender_map::SenderMap;
use super::{Indication, Note, Numbers, Request, Unit};
use crate::{Assumption, DataSheet, Guarantee, Order, Watch};

/// The monitor of multicast. An order that the algorithm does not claim is judged only on request
/// (`Watch::order`), so that the checker's states hold no history without need.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Properties {
    /// How many messages each member has multicast.
    sent: ProcessMap<u32>,
    /// How many messages it had multicast when it crashed. Later ones must be delivered.
    before: ProcessMap<u32>,
    /// The messages that each member has delivered, by sender.
    delivered: ProcessMap<SenderMap<Numbers>>,
    /// The messages that were reported to each member as gone.
    gone: Vec<(ProcessId, Unit)>,
    log: Option<Log>,
    causes: Option<Causes>,
    /// With a uniformity rule: the holders of each message, and how many members delivered it. A
    /// message that all members have delivered is forgotten.
    holders: Option<BTreeMap<Unit, (ProcessSet, u32)>>,
    /// The members that another one gave up.
    suspected: ProcessSet,
    /// The members that have ever crashed.
    crashed: ProcessSet,
    lost: bool,
    doubled: bool,
    violations: u64,
    rules: Fixed<Rules>,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    n: usize,
    fifo: bool,
    count: bool,
    validity: bool,
    agreement: bool,
    accuracy: bool,
    /// How many members must hold a message before any delivers it.
    holders: usize,
    needs_reliable: bool,
    needs_once: bool,
    needs_no_crash: bool,
}

impl Properties {
    /// The monitor of the guarantees of `sheet`, and of all orders if `watch` asks for them.
    pub fn new(watch: &Watch, sheet: &DataSheet, group: &Group) -> Self {
        let all = watch.order == Order::Judge;
        let claims = |guarantee| sheet.guarantees.contains(&guarantee);
        let assumes = |assumption| sheet.assumes.contains(&assumption);
        let n = group.len();
        let holders = match (claims(Guarantee::SafeDelivery), claims(Guarantee::UniformDelivery)) {
            (true, _) => n,
            (false, uniform) if uniform || all => n / 2 + 1,
            (false, _) => 0,
        };
        Self {
            sent: ProcessMap::new(group, 0),
            before: ProcessMap::new(group, 0),
            delivered: ProcessMap::new(group, SenderMap::default()),
            gone: Vec::new(),
            log: (all || claims(Guarantee::TotalOrder)).then(|| Log::new(group)),
            causes: (all || claims(Guarantee::CausalOrder)).then(Causes::default),
            holders: (holders > 0).then(BTreeMap::new),
            suspected: ProcessSet::new(),
            crashed: ProcessSet::new(),
            lost: false,
            doubled: false,
            violations: 0,
            rules: Fixed(Rules {
                n,
                fifo: all || claims(Guarantee::FifoOrder),
                count: watch.order == Order::Count,
                validity: claims(Guarantee::Validity),
                accuracy: all,
                agreement: all || claims(Guarantee::Agreement),
                holders,
                needs_reliable: assumes(Assumption::Reliable),
                needs_once: assumes(Assumption::NoDuplicates),
                needs_no_crash: assumes(Assumption::NoCrash),
            }),
        }
    }

    /// How many deliveries broke a watched order.
    pub fn order_violations(&self) -> u64 {
        self.violations
    }

    /// How many deliveries are missing at members that were up all the time. It counts messages whose
    /// sender was up all the time, or that one of these members delivered. Unlike the verdict, it counts
    /// deliveries that the algorithm does not guarantee, too.
    pub fn undelivered(&self) -> u64 {
        let up = || self.delivered.iter().filter(|(p, _)| !self.crashed.contains(*p));
        let mut missing = 0;
        for (from, &sent) in self.sent.iter() {
            let upto = |own: &SenderMap<Numbers>| own.get(from).map_or(0, Numbers::upto);
            let all_have = up().map(|(_, own)| upto(own)).min().unwrap_or(sent);
            for number in all_have + 1..=sent {
                let unit = Unit { from, number };
                let members = up().count() as u64;
                let have = up().filter(|(p, _)| self.has(*p, unit)).count() as u64;
                let owed = have > 0 || !self.crashed.contains(from);
                missing += if owed { members - have } else { 0 };
            }
        }
        missing
    }

    fn has(&self, at: ProcessId, unit: Unit) -> bool {
        self.delivered[at].get(unit.from).is_some_and(|numbers| numbers.contains(unit.number))
    }

    fn deliver(&mut self, at: ProcessId, unit: Unit) -> Verdict {
        let known = self.sent.get(unit.from).is_some_and(|&sent| (1..=sent).contains(&unit.number));
        if !known {
            let detail = format!("{at} delivered {unit}, which nobody multicast");
            return Err(Violation::new("no creation", detail));
        }
        let numbers = self.delivered[at].of(unit.from);
        let (next, highest) = (numbers.upto() + 1, numbers.highest());
        let holes: Vec<u32> = match self.rules.fifo && unit.number > next {
            true => numbers.missing(unit.number - 1).collect(),
            false => Vec::new(),
        };
        if !numbers.insert(unit.number) {
            let detail = format!("{at} delivered {unit} twice");
            return Err(Violation::new("no duplication", detail));
        }
        let mut verdict = Ok(());
        // A gap that was reported as gone is no inversion.
        let skipped = |x| self.gone.contains(&(at, Unit { from: unit.from, number: x }));
        // After a restart of `at` or of the sender, the stream may begin at any number.
        let anew = self.crashed.contains(at) || self.crashed.contains(unit.from);
        let in_row = unit.number == next
            || anew && unit.number > highest
            || unit.number > next && holes.into_iter().all(skipped);
        if self.rules.fifo && !in_row {
            let detail = format!("{at} delivered {unit}, but not those before it");
            verdict = Err(Violation::new("fifo order", detail));
        } else if self.rules.count && unit.number < highest {
            self.violations += 1;
        }
        // A delivery that breaks several orders is reported under the weakest of them.
        if let Some(causes) = &mut self.causes {
            let own = &self.delivered[at];
            let has = |u: Unit| own.get(u.from).is_some_and(|numbers| numbers.contains(u.number));
            let repeats = self.log.as_ref().is_some_and(|log| log.repeats(at, unit));
            verdict = verdict.and(causes.deliver(at, unit, self.rules.n, repeats, has));
        }
        if let Some(log) = &mut self.log {
            verdict = verdict.and(log.deliver(at, unit));
        }
        if verdict.is_err() {
            self.violations += 1;
        }
        if let Some(holders) = &mut self.holders {
            let (held, delivered) = holders.entry(unit).or_default();
            *delivered += 1;
            if held.len() < self.rules.holders {
                let (few, need) = (held.len(), self.rules.holders);
                let detail = format!("{at} delivered {unit} while {few} held it, not {need}");
                verdict = verdict.and(Err(Violation::new("uniform delivery", detail)));
            }
            if *delivered as usize == self.rules.n {
                holders.remove(&unit);
            }
        }
        verdict
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Monitor<P> for Properties {
    type Tag = ();

    fn on_request(&mut self, at: ProcessId, request: &Request) -> Verdict {
        let Request::Multicast(number) = *request;
        self.sent[at] = number;
        if let Some(causes) = &mut self.causes {
            let known = self.delivered[at].iter().map(|(p, numbers)| (p, numbers.highest()));
            causes.send(Unit { from: at, number }, known);
        }
        Ok(())
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) -> Verdict {
        match *indication {
            Indication::Delivered(unit) => return self.deliver(at, unit),
            Indication::Gone(unit) => self.gone.push((at, unit)),
            Indication::Note(Note::Held(unit)) => {
                if let Some(holders) = &mut self.holders
                    && self.rules.holders > 0
                {
                    holders.entry(unit).or_default().0.insert(at);
                }
            }
            Indication::Suspected(p) => {
                self.suspected.insert(p);
                if self.rules.accuracy && !self.crashed.contains(p) {
                    let detail = format!("{at} gives up {p}, which is up");
                    return Err(Violation::new("accuracy", detail));
                }
            }
            Indication::Note(
                Note::Missing(_) | Note::Asked(_) | Note::Repaired(_) | Note::Unwanted(_),
            ) => {}
        }
        Ok(())
    }

    fn on_lost(&mut self, _: &P::Message) {
        // A message to a crashed process does not count as lost.
        self.lost |= self.crashed.is_empty();
    }

    fn on_duplicated(&mut self, _: &P::Message) {
        self.doubled = true;
    }

    fn prefetch(&self, at: ProcessId, told: bool) {
        if told {
            self.delivered.prefetch(at);
        }
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.crashed.insert(at);
        self.before[at] = self.sent[at];
    }

    fn on_restart(&mut self, at: ProcessId) {
        self.delivered[at].clear();
        if let Some(log) = &mut self.log {
            log.forget(at);
        }
    }

    fn at_end(&self, end: &End) -> Verdict {
        let rules = &self.rules;
        let excused = rules.needs_reliable && self.lost
            || rules.needs_once && self.doubled
            || rules.needs_no_crash && !self.crashed.is_empty();
        if excused || !end.quiet {
            return Ok(());
        }
        // Members that were up from the beginning to the end, and that no sender gave up.
        let correct = end.alive.difference(&self.crashed).difference(&self.suspected);
        let lacks = |unit: Unit| {
            correct.iter().find(|&p| !self.has(p, unit) && !self.gone.contains(&(p, unit)))
        };
        for (from, &sent) in self.sent.iter().filter(|(_, sent)| **sent > 0) {
            let upto = |p| self.delivered[p].get(from).map_or(0, Numbers::upto);
            let all_have = correct.iter().map(upto).min().unwrap_or(sent);
            for number in all_have + 1..=sent {
                let unit = Unit { from, number };
                let Some(p) = lacks(unit) else { continue };
                if rules.validity && end.alive.contains(from) && number > self.before[from] {
                    let detail = format!("{p} never delivers {unit}, which is up");
                    return Err(Violation::new("validity", detail));
                }
                if let Some(q) = correct.iter().find(|&q| rules.agreement && self.has(q, unit)) {
                    let detail = format!("{q} delivered {unit}, {p} never does");
                    return Err(Violation::new("agreement", detail));
                }
            }
        }
        Ok(())
    }
}
