//! The echo algorithm (PIF): a wave goes out along all edges and comes back. It belongs to the bench,
//! so that changes of the catalog do not change the workload.

use konklave_process::{
    Application, Context, End, Inspect, Meter, Monitor, NoRecord, NoTimer, Process, ProcessId,
    Verdict, Violation,
};

/// One process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Echo {
    neighbours: Box<[ProcessId]>,
    parent: Option<ProcessId>,
    reached: bool,
    heard: u32,
}

/// The wave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Wave;

/// Start a wave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Start;

/// The messages of the echo algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Told {
    /// The wave has reached this process.
    Reached,
    /// The wave has come back from all processes.
    Decided,
}

impl Echo {
    pub(crate) fn new(neighbours: Vec<ProcessId>) -> Self {
        Self { neighbours: neighbours.into(), parent: None, reached: false, heard: 0 }
    }
}

impl Process for Echo {
    type Message = Wave;
    type Timer = NoTimer;
    type Request = Start;
    type Indication = Told;
    type Record = NoRecord;

    fn on_request(&mut self, Start: Start, ctx: &mut Context<'_, Self>) {
        self.reached = true;
        ctx.indicate(Told::Reached);
        for &p in &self.neighbours {
            ctx.send(p, Wave);
        }
    }

    fn on_message(&mut self, from: ProcessId, Wave: Wave, ctx: &mut Context<'_, Self>) {
        self.heard += 1;
        if !self.reached {
            self.reached = true;
            self.parent = Some(from);
            ctx.indicate(Told::Reached);
            for &p in self.neighbours.iter().filter(|p| **p != from) {
                ctx.send(p, Wave);
            }
        }
        if self.heard as usize == self.neighbours.len() {
            match self.parent {
                Some(parent) => ctx.send(parent, Wave),
                None => ctx.indicate(Told::Decided),
            }
        }
    }
}

impl Inspect for Echo {}

/// The client of process 0 starts one wave; no other client acts.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Once {
    asked: bool,
    done: bool,
}

impl Application<Echo> for Once {
    fn next(&self, at: ProcessId) -> Option<Start> {
        (at == ProcessId(0) && !self.asked).then_some(Start)
    }
    fn on_request(&mut self, _at: ProcessId, _request: &Start) {
        self.asked = true;
    }
    fn on_indication(&mut self, _at: ProcessId, told: &Told) {
        self.done |= *told == Told::Decided;
    }
    fn waiting(&self) -> Vec<ProcessId> {
        if self.asked && !self.done { vec![ProcessId(0)] } else { Vec::new() }
    }
}

/// Judges the wave: there is one decision, after the wave has reached every process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Everywhere {
    pub(crate) unreached: usize,
    pub(crate) decided: bool,
}

impl Monitor<Echo> for Everywhere {
    type Tag = ();

    fn on_indication(&mut self, at: ProcessId, told: &Told) -> Verdict {
        match told {
            Told::Reached => self.unreached -= 1,
            Told::Decided if self.unreached > 0 || self.decided => {
                return Err(Violation::new("dependence", format!("{at} decided too early")));
            }
            Told::Decided => self.decided = true,
        }
        Ok(())
    }

    fn at_end(&self, _end: &End) -> Verdict {
        if self.decided {
            return Ok(());
        }
        Err(Violation::new("termination", "the wave never came back"))
    }
}

/// The time at which the wave was decided.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    decided: Option<u64>,
}

impl Meter<Echo> for Span {
    fn on_request(&mut self, _now: u64, _at: ProcessId, _request: &Start) {}
    fn on_indication(&mut self, now: u64, _at: ProcessId, told: &Told) {
        if *told == Told::Decided {
            self.decided = Some(now);
        }
    }
}
