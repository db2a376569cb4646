//! Who knew of whose request, and entered before it all the same.

use std::sync::Arc;

use konklave_process::{Group, ProcessId, ProcessMap, Verdict, Violation};

use crate::{Order, Watch};

/// What a process knows of all requests: how many of each process, own ones included. It travels
/// with every message; none where order is not watched.
pub type Knowledge = Option<Arc<ProcessMap<u32>>>;

/// If one request happened before another, it is granted before the other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct HappenedBefore {
    order: Order,
    inversions: u64,
    overtaken: Option<Overtaken>,
    /// What each process knows.
    pub(super) known: ProcessMap<Arc<ProcessMap<u32>>>,
    /// What each waiting process knew when it asked.
    past: ProcessMap<Option<Arc<ProcessMap<u32>>>>,
    /// How many requests of each process were granted, or given up by a crash.
    granted: ProcessMap<u32>,
}

/// How often those who knew of a request when they asked have gone before it. Not at all would be
/// happened-before order; a limit means that nobody starves once the others know.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Overtaken {
    most: u32,
    times: ProcessMap<u32>,
}

impl HappenedBefore {
    /// The judge that `watch` asks for, if it does.
    pub(super) fn new(watch: &Watch, group: &Group) -> Option<Self> {
        if watch.order == Order::Ignore && watch.overtaking.is_none() {
            return None;
        }
        let nothing = ProcessMap::new(group, 0);
        let overtaken = watch.overtaking.map(|most| Overtaken { most, times: nothing.clone() });
        Some(Self {
            order: watch.order,
            inversions: 0,
            overtaken,
            known: ProcessMap::new(group, Arc::new(nothing.clone())),
            past: ProcessMap::new(group, None),
            granted: nothing,
        })
    }

    /// How many entries broke the order, where that is asked for.
    pub(super) fn inversions(&self) -> Option<u64> {
        (self.order != Order::Ignore).then_some(self.inversions)
    }

    pub(super) fn on_acquire(&mut self, at: ProcessId) {
        self.past[at] = Some(self.known[at].clone());
        Arc::make_mut(&mut self.known[at])[at] += 1;
    }

    pub(super) fn learn(&mut self, at: ProcessId, known: &Arc<ProcessMap<u32>>) {
        let mine = &mut self.known[at];
        if Arc::ptr_eq(mine, known) || known.values().zip(mine.values()).all(|(a, b)| a <= b) {
            return;
        }
        for (mine, theirs) in Arc::make_mut(mine).values_mut().zip(known.values()) {
            *mine = (*mine).max(*theirs);
        }
    }

    pub(super) fn on_entry(&mut self, at: ProcessId) -> Verdict {
        self.granted[at] += 1;
        if let Some(overtaken) = &mut self.overtaken {
            overtaken.times[at] = 0;
        }
        let Some(past) = self.past[at].take() else { return Ok(()) };
        let mut first = None;
        for (p, asked) in past.iter().filter(|(p, _)| *p != at) {
            if self.granted[p] >= *asked {
                continue;
            }
            first = first.or(Some(p));
            if let Some(overtaken) = &mut self.overtaken {
                overtaken.by_one_who_knew(p)?;
            }
        }
        let Some(first) = first else { return Ok(()) };
        match self.order {
            Order::Ignore => Ok(()),
            Order::Count => {
                self.inversions += 1;
                Ok(())
            }
            Order::Judge => Err(Violation::new(
                "happened-before order",
                format!("{at} knew that {first} had asked before, but entered first"),
            )),
        }
    }

    /// What it wanted is void, and what it knew is lost with its memory; only its requests go on
    /// being counted.
    pub(super) fn forget(&mut self, at: ProcessId) {
        let asked = self.known[at][at];
        let known = Arc::make_mut(&mut self.known[at]);
        known.values_mut().for_each(|times| *times = 0);
        known[at] = asked;
        self.granted[at] = asked;
        self.past[at] = None;
        if let Some(overtaken) = &mut self.overtaken {
            overtaken.times[at] = 0;
        }
    }
}

impl Overtaken {
    fn by_one_who_knew(&mut self, p: ProcessId) -> Verdict {
        self.times[p] += 1;
        if self.times[p] <= self.most {
            return Ok(());
        }
        let most = self.most;
        let detail = format!(
            "{p} waits, and more than {most} entries were of those who knew when they asked"
        );
        Err(Violation::new("bounded overtaking", detail))
    }
}
