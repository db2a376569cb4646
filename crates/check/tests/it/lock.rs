//! A lock so small that all its runs are known, and its visitors.

use konklave_check::{Model, Options};
use konklave_process::{
    AnyApplication, AnyMonitor, AnyProcess, Application, Context, Group, Inspect, Monitor,
    NoRecord, NoTimer, Process, ProcessId, Verdict, Violation,
};
use serde::{Deserialize, Serialize};

/// A lock kept by process 0. A fair one grants it in the order of requests, an unfair one to the lowest id.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
struct Keeper {
    held: bool,
    asked: Vec<ProcessId>,
    fair: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Message {
    Want,
    Have,
    Done,
}

impl Keeper {
    fn give(&mut self, ctx: &mut Context<'_, Self>) {
        if self.held || self.asked.is_empty() {
            return;
        }
        self.held = true;
        let lowest = (0..self.asked.len()).min_by_key(|i| self.asked[*i]).expect("someone asked");
        let next = self.asked.remove(if self.fair { 0 } else { lowest });
        ctx.send(next, Message::Have);
    }
}

impl Process for Keeper {
    type Message = Message;
    type Timer = NoTimer;
    type Request = bool;
    type Indication = ();
    type Record = NoRecord;

    fn on_request(&mut self, enter: bool, ctx: &mut Context<'_, Self>) {
        ctx.send(ProcessId(0), if enter { Message::Want } else { Message::Done });
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Want => self.asked.push(from),
            Message::Done => self.held = false,
            Message::Have => return ctx.indicate(()),
        }
        self.give(ctx);
    }
}

impl Inspect for Keeper {}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Outside,
    Waiting,
    Inside,
}

/// All processes but the keeper enter `left` times, or again and again if that is none.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Visitors(Vec<(Phase, Option<u8>)>);

impl Application<Keeper> for Visitors {
    fn next(&self, at: ProcessId) -> Option<bool> {
        match self.0[at.0 as usize] {
            (Phase::Outside, Some(0)) | (Phase::Waiting, _) => None,
            (Phase::Outside, _) => Some(true),
            (Phase::Inside, _) => Some(false),
        }
    }
    fn on_request(&mut self, at: ProcessId, enter: &bool) {
        let (phase, left) = &mut self.0[at.0 as usize];
        *phase = if *enter { Phase::Waiting } else { Phase::Outside };
        *left = left.map(|left| left - u8::from(*enter));
    }
    fn on_indication(&mut self, at: ProcessId, (): &()) {
        self.0[at.0 as usize].0 = Phase::Inside;
    }
    fn holds(&self, at: ProcessId) -> bool {
        self.0[at.0 as usize].0 == Phase::Inside
    }
    fn waiting(&self) -> Vec<ProcessId> {
        let waiting = (0u32..).zip(&self.0).filter(|(_, (phase, _))| *phase == Phase::Waiting);
        waiting.map(|(p, _)| ProcessId(p)).collect()
    }
}

/// How many are inside: at most one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Alone(u8);

impl Monitor<Keeper> for Alone {
    type Tag = ();
    fn on_request(&mut self, _at: ProcessId, enter: &bool) -> Verdict {
        self.0 -= u8::from(!enter);
        Ok(())
    }
    fn on_indication(&mut self, _at: ProcessId, (): &()) -> Verdict {
        self.0 += 1;
        if self.0 > 1 { Err(Violation::new("mutual exclusion", "two are inside")) } else { Ok(()) }
    }
}

/// A keeper and `n` − 1 visitors, who each enter `left` times.
pub(crate) fn model(n: usize, left: Option<u8>, fair: bool, options: Options) -> Model {
    let mut visitors = vec![(Phase::Outside, left); n];
    visitors[0] = (Phase::Outside, Some(0));
    Model {
        group: Group::of(n),
        processes: vec![AnyProcess::new(Keeper { fair, ..Keeper::default() }); n],
        application: AnyApplication::new::<Keeper>(Visitors(visitors)),
        monitor: AnyMonitor::new::<Keeper>(Alone(0)),
        options,
    }
}
