//! Overtaking: a process knows of another process's request, requests later, and enters first.

use std::sync::Arc;

use konklave_process::{Group, ProcessId, ProcessMap, Verdict, Violation};

use crate::{Order, Watch};

/// The number of requests of each process that a process knows of, own ones included. Every message carries it.
/// It is none if no judge watches the order.
pub type Knowledge = Option<Arc<ProcessMap<u32>>>;

/// If one request happened before another, it is granted before the other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct HappenedBefore {
    order: Order,
    inversions: u64,
    overtaken: Option<Overtaken>,
    /// The knowledge of each process.
    pub(super) known: ProcessMap<Arc<ProcessMap<u32>>>,
    /// The knowledge of each waiting process at the time of its request.
    past: ProcessMap<Option<Arc<ProcessMap<u32>>>>,
    /// The number of requests of each process that were granted, or ended by a crash.
    granted: ProcessMap<u32>,
}

/// The number of times that processes overtook a waiting request which they knew of. With none, entries follow
/// the happened-before order. With a limit, no process starves once the others know of its request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Overtaken {
    most: u32,
    times: ProcessMap<u32>,
}

impl HappenedBefore {
    /// The judge that `watch` asks for, if any.
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

    /// The number of entries that broke the order, if `watch` asks for the order.
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
                overtaken.count(p)?;
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

    /// A crash of `at` ends its request, and erases its knowledge. Other processes know the number of its
    /// requests, so this count goes on.
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
    /// A process that knew of the request of `p` enters before it.
    fn count(&mut self, p: ProcessId) -> Verdict {
        self.times[p] += 1;
        if self.times[p] <= self.most {
            return Ok(());
        }
        let most = self.most;
        let detail = format!(
            "{p} waits, and more than {most} entries were of processes that knew of its request when they asked"
        );
        Err(Violation::new("bounded overtaking", detail))
    }
}
