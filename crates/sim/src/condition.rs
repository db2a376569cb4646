//! Which processes are down or paused, and their stable storage.

use konklave_process::{Group, Process, ProcessId, ProcessSet};

use crate::event::Backlog;
use crate::{Fault, What};

/// The condition of all processes. Nothing is stored while all are up and none is paused.
pub(crate) struct Condition<P: Process, MT, OT> {
    /// Whether all processes are up, none is paused, and none needs time for its messages.
    pub(crate) all_well: bool,
    takes_time: bool,
    down: ProcessSet,
    /// The places of paused processes, each with its waiting events. A process in two pauses is here twice.
    asleep: Vec<(usize, Backlog<P, MT, OT>)>,
    incarnations: Vec<u32>,
    saved: Vec<Option<P::Record>>,
    /// The clock rate of each process; empty if all have the same.
    rates: Vec<f64>,
}

impl<P: Process, MT, OT> Condition<P, MT, OT> {
    /// All processes up; clock rates as in `faults`. `takes_time` if processes need time for their messages.
    pub(crate) fn new(faults: &[Fault], group: &Group, takes_time: bool) -> Self {
        let mut rates = Vec::new();
        for fault in faults {
            if let What::Rate(p, rate) = fault.what {
                rates.resize(group.len(), 1.0);
                rates[group.place(p).expect("faults name members")] = rate;
            }
        }
        Self {
            all_well: !takes_time,
            takes_time,
            down: ProcessSet::new(),
            asleep: Vec::new(),
            incarnations: Vec::new(),
            saved: Vec::new(),
            rates,
        }
    }

    fn update(&mut self) {
        self.all_well = self.down.is_empty() && self.asleep.is_empty() && !self.takes_time;
    }

    /// The processes that are down.
    pub(crate) fn down(&self) -> &ProcessSet {
        &self.down
    }

    /// Crashes a process; returns the events that waited for it, or none if it was down already.
    pub(crate) fn crash(
        &mut self,
        id: ProcessId,
        place: usize,
        n: usize,
    ) -> Option<Backlog<P, MT, OT>> {
        if !self.down.insert(id) {
            return None;
        }
        self.incarnations.resize(n, 0);
        self.incarnations[place] += 1;
        let backlogs = self.asleep.extract_if(.., |(p, _)| *p == place);
        let waited = backlogs.flat_map(|(_, backlog)| backlog).collect();
        self.update();
        Some(waited)
    }

    /// Restarts a process; returns false if it was not down.
    pub(crate) fn restart(&mut self, id: ProcessId) -> bool {
        let was_down = self.down.remove(id);
        self.update();
        was_down
    }

    /// Pauses a process; returns false if it is down.
    pub(crate) fn pause(&mut self, id: ProcessId, place: usize) -> bool {
        if self.down.contains(id) {
            return false;
        }
        self.asleep.push((place, Vec::new()));
        self.update();
        true
    }

    /// Ends a pause; returns the events that waited, or none if there was no pause.
    pub(crate) fn wake(&mut self, place: usize) -> Option<Backlog<P, MT, OT>> {
        let i = self.asleep.iter().position(|(p, _)| *p == place)?;
        let (_, backlog) = self.asleep.remove(i);
        self.update();
        Some(backlog)
    }

    /// The events waiting for the process at `place`, if it is paused.
    pub(crate) fn backlog(&mut self, place: usize) -> Option<&mut Backlog<P, MT, OT>> {
        self.asleep.iter_mut().find(|(p, _)| *p == place).map(|(_, backlog)| backlog)
    }

    /// Whether an event waits for a paused process.
    pub(crate) fn is_awaited(&self) -> bool {
        self.asleep.iter().any(|(_, backlog)| !backlog.is_empty())
    }

    /// How often the process crashed. Events scheduled for an earlier incarnation are void.
    pub(crate) fn incarnation(&self, place: usize) -> u32 {
        self.incarnations.get(place).copied().unwrap_or(0)
    }

    /// The clock rate of a process: 2 is twice as fast.
    pub(crate) fn rate(&self, place: usize) -> f64 {
        self.rates.get(place).copied().unwrap_or(1.0)
    }

    /// Writes to the stable storage of a process.
    pub(crate) fn save(&mut self, place: usize, n: usize, record: P::Record) {
        self.saved.resize(n, None);
        self.saved[place] = Some(record);
    }

    /// The record in the stable storage of a process.
    pub(crate) fn saved(&self, place: usize) -> Option<P::Record> {
        self.saved.get(place).cloned().flatten()
    }

    /// Empties the stable storage of a process.
    pub(crate) fn forget(&mut self, place: usize) {
        if let Some(saved) = self.saved.get_mut(place) {
            *saved = None;
        }
    }
}
