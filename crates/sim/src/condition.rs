//! What faults do to processes.

use konklave_process::{Group, Process, ProcessId, ProcessSet};

use crate::event::Backlog;
use crate::{Fault, What};

/// How the processes are; nothing is kept while all are well.
pub(crate) struct Condition<P: Process, MT, OT> {
    /// Whether all are up and awake.
    pub(crate) all_well: bool,
    down: ProcessSet,
    /// Who sleeps, and what waits for it. Whom two pauses hold is here twice.
    asleep: Vec<(usize, Backlog<P, MT, OT>)>,
    incarnations: Vec<u32>,
    saved: Vec<Option<P::Record>>,
    /// How fast timers run; empty while all run at the same rate.
    rates: Vec<f64>,
}

impl<P: Process, MT, OT> Condition<P, MT, OT> {
    /// All are well; their timers run as `faults` say.
    pub(crate) fn new(faults: &[Fault], group: &Group) -> Self {
        let mut rates = Vec::new();
        for fault in faults {
            if let What::Rate(p, rate) = fault.what {
                rates.resize(group.len(), 1.0);
                rates[group.place(p).expect("faults name members")] = rate;
            }
        }
        Self {
            all_well: true,
            down: ProcessSet::new(),
            asleep: Vec::new(),
            incarnations: Vec::new(),
            saved: Vec::new(),
            rates,
        }
    }

    fn look(&mut self) {
        self.all_well = self.down.is_empty() && self.asleep.is_empty();
    }

    /// Who is down.
    pub(crate) fn down(&self) -> &ProcessSet {
        &self.down
    }

    /// Takes a process down; none if it was. What waited for it is returned.
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
        self.look();
        Some(waited)
    }

    /// Takes a process up; false if it was not down.
    pub(crate) fn restart(&mut self, id: ProcessId) -> bool {
        let was_down = self.down.remove(id);
        self.look();
        was_down
    }

    /// Puts a process to sleep; false if it is down.
    pub(crate) fn pause(&mut self, id: ProcessId, place: usize) -> bool {
        if self.down.contains(id) {
            return false;
        }
        self.asleep.push((place, Vec::new()));
        self.look();
        true
    }

    /// Ends a pause, if there is one. What waited is returned.
    pub(crate) fn wake(&mut self, place: usize) -> Option<Backlog<P, MT, OT>> {
        let i = self.asleep.iter().position(|(p, _)| *p == place)?;
        let (_, backlog) = self.asleep.remove(i);
        self.look();
        Some(backlog)
    }

    /// What waits for the process at `place`, if it sleeps.
    pub(crate) fn backlog(&mut self, place: usize) -> Option<&mut Backlog<P, MT, OT>> {
        self.asleep.iter_mut().find(|(p, _)| *p == place).map(|(_, backlog)| backlog)
    }

    /// Whether something waits for a sleeper.
    pub(crate) fn is_awaited(&self) -> bool {
        self.asleep.iter().any(|(_, backlog)| !backlog.is_empty())
    }

    /// How often the process crashed: what was scheduled for an earlier life is void.
    pub(crate) fn incarnation(&self, place: usize) -> u32 {
        self.incarnations.get(place).copied().unwrap_or(0)
    }

    /// How fast the timers of a process run.
    pub(crate) fn rate(&self, place: usize) -> f64 {
        self.rates.get(place).copied().unwrap_or(1.0)
    }

    /// Writes to the stable storage of a process.
    pub(crate) fn save(&mut self, place: usize, n: usize, record: P::Record) {
        self.saved.resize(n, None);
        self.saved[place] = Some(record);
    }

    /// What a process has in stable storage.
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
