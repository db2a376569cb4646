//! The bully algorithm as Garcia-Molina's paper has it: calls with timeouts, and a reorganisation.
//!
//! Who finds nobody above it alive does not just announce itself: it first halts everyone below,
//! then becomes the coordinator of those who halted for it, then lets them work again. A process
//! accepts a coordinator only if that one halted it last. So with perfect timeouts no two lead at
//! once, not even when the highest comes back during an election. A coordinator asks everyone from
//! time to time whether they are content, and members ask after their coordinator.
//!
//! The paper halts one process after the other; here all are called at once, the highest first.

use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, DataSheet, Guarantee, Mistake, Setup, SetupError, Switch, Winner,
};

const ANY_COORDINATOR: Mistake = Mistake {
    name: "any-coordinator",
    what: "a halted process accepts any coordinator, not only the one that halted it last",
    breaks: "one leader at a time",
    caught_by: "",
};

const SHEET: DataSheet = DataSheet {
    name: "bully-1982",
    title: "Bully, as in the paper",
    idea: "Who finds nobody above it halts all below, and leads those who halted for it.",
    source: "H. Garcia-Molina, IEEE Trans. Computers 31(1), 1982",
    assumes: &[
        Assumption::Reliable,
        Assumption::Synchronous,
        Assumption::KnownMembership,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Complete],
    winner: Some(Winner::MaxAll),
    costs: &[],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::LiveLeader,
        Guarantee::Termination,
    ],
    fence: None,
    mistakes: &[ANY_COORDINATOR],
    switches: &[Switch {
        name: "timeout",
        values: &["5", "<number>"],
        what: "how long a call may take, in T: two delays at least; all ask after each other four times as seldom",
    }],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Bully1982 {
    status: Status,
    coordinator: Option<ProcessId>,
    /// Who halted us last.
    halted_by: Option<ProcessId>,
    /// Those who halted for us.
    up: ProcessSet,
    call: Call,
    #[serde(skip)]
    timeout: Fixed<Duration>,
    #[serde(skip)]
    any_coordinator: Fixed<bool>,
}

/// What a process is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Status {
    /// It works.
    Normal,
    /// It has stopped working.
    Election,
    /// It knows its coordinator, but does not work yet.
    Reorganization,
}

/// The calls that a process waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Call {
    /// None.
    None,
    /// It asks those above whether they are there.
    Above,
    /// It halts those below.
    Halt,
    /// It makes itself coordinator of these, who have not answered yet.
    Appoint(ProcessSet),
    /// It lets these work, who have not answered yet.
    Ready(ProcessSet),
    /// It asks its members whether they are content.
    Check,
    /// It asks whether its coordinator is there.
    Coordinator,
}

/// Calls and their answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Are you there?
    AreYouThere,
    /// Yes.
    There,
    /// Stop working, I hold an election.
    Halt,
    /// I have.
    Halted,
    /// I am your coordinator.
    NewCoordinator,
    /// You are.
    Appointed,
    /// Work again.
    Ready,
    /// I do.
    Working,
    /// Do you work, and for me?
    AreYouNormal,
    /// Yes or no.
    Normal(bool),
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Who has not answered the call is down.
    Call,
    /// Time to ask after each other.
    Watch,
}

impl Bully1982 {
    /// Whom it works for; itself if it leads.
    pub fn coordinator(&self) -> Option<ProcessId> {
        self.coordinator.filter(|_| self.status == Status::Normal)
    }

    fn begin(&mut self, call: Call, ctx: &mut Context<'_, Self>) {
        self.call = call;
        ctx.cancel_timer(Timer::Watch);
        ctx.set_timer(Timer::Call, *self.timeout);
    }

    fn end(&mut self, ctx: &mut Context<'_, Self>) {
        self.call = Call::None;
        ctx.cancel_timer(Timer::Call);
        ctx.set_timer(Timer::Watch, 4 * *self.timeout);
    }

    /// There is no coordinator any more.
    fn leave(&mut self, ctx: &mut Context<'_, Self>) {
        if self.coordinator().is_some() {
            ctx.indicate(Indication::Deposed);
        }
        self.coordinator = None;
    }

    fn election(&mut self, ctx: &mut Context<'_, Self>) {
        let (me, mut alone) = (ctx.me(), true);
        for p in ctx.others().filter(|p| *p > me) {
            alone = false;
            ctx.send(p, Message::AreYouThere);
        }
        if alone {
            return self.take_over(ctx);
        }
        self.begin(Call::Above, ctx);
    }

    /// Nobody above us is there: halts those below.
    fn take_over(&mut self, ctx: &mut Context<'_, Self>) {
        self.leave(ctx);
        self.status = Status::Election;
        self.halted_by = Some(ctx.me());
        self.up.clear();
        let me = ctx.me();
        let mut below: Vec<ProcessId> = ctx.others().filter(|p| *p < me).collect();
        below.sort_unstable_by(|a, b| b.cmp(a));
        if below.is_empty() {
            return self.work(ctx);
        }
        below.into_iter().for_each(|p| ctx.send(p, Message::Halt));
        self.begin(Call::Halt, ctx);
    }

    /// All who live have halted.
    fn reorganise(&mut self, ctx: &mut Context<'_, Self>) {
        self.status = Status::Reorganization;
        self.coordinator = Some(ctx.me());
        if self.up.is_empty() {
            return self.work(ctx);
        }
        self.up.iter().for_each(|p| ctx.send(p, Message::NewCoordinator));
        self.begin(Call::Appoint(self.up.clone()), ctx);
    }

    /// The election is over, and we lead.
    fn work(&mut self, ctx: &mut Context<'_, Self>) {
        self.status = Status::Normal;
        self.coordinator = Some(ctx.me());
        ctx.indicate(Indication::Leading { epoch: 0 });
        self.end(ctx);
    }

    fn on_halted(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.call != Call::Halt {
            return;
        }
        self.up.insert(from);
        let me = ctx.me();
        if self.up.len() == ctx.others().filter(|p| *p < me).count() {
            self.reorganise(ctx);
        }
    }

    fn on_appointed(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        let Call::Appoint(awaited) = &mut self.call else { return };
        awaited.remove(from);
        if awaited.is_empty() {
            self.up.iter().for_each(|p| ctx.send(p, Message::Ready));
            self.begin(Call::Ready(self.up.clone()), ctx);
        }
    }

    fn on_working(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        let Call::Ready(awaited) = &mut self.call else { return };
        awaited.remove(from);
        if awaited.is_empty() {
            self.work(ctx);
        }
    }

    fn on_halt(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        self.leave(ctx);
        self.status = Status::Election;
        self.halted_by = Some(from);
        self.up.clear();
        ctx.send(from, Message::Halted);
        self.end(ctx);
    }

    /// Asks those who should be content, or after the one who should be there.
    fn watch(&mut self, ctx: &mut Context<'_, Self>) {
        match self.coordinator {
            Some(p) if p == ctx.me() => {
                ctx.send_to_others(Message::AreYouNormal);
                self.begin(Call::Check, ctx);
            }
            Some(p) => {
                ctx.send(p, Message::AreYouThere);
                self.begin(Call::Coordinator, ctx);
            }
            None => self.election(ctx),
        }
    }
}

impl Process for Bully1982 {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.end(ctx);
    }

    fn on_recover(&mut self, _saved: Option<NoRecord>, ctx: &mut Context<'_, Self>) {
        self.status = Status::Election;
        self.election(ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if self.call == Call::None {
            self.election(ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::AreYouThere => ctx.send(from, Message::There),
            Message::There => match self.call {
                // Someone above us is there, or the coordinator is: it is up to them.
                Call::Above | Call::Coordinator => self.end(ctx),
                Call::None | Call::Halt | Call::Appoint(_) | Call::Ready(_) | Call::Check => {}
            },
            Message::Halt if from < ctx.me() => ctx.unexpected("a halt from below"),
            Message::Halt => self.on_halt(from, ctx),
            Message::Halted => self.on_halted(from, ctx),
            Message::NewCoordinator => {
                let halted = self.halted_by == Some(from) || *self.any_coordinator;
                if self.status == Status::Election && halted {
                    self.status = Status::Reorganization;
                    self.coordinator = Some(from);
                    ctx.send(from, Message::Appointed);
                    self.end(ctx);
                }
            }
            Message::Appointed => self.on_appointed(from, ctx),
            Message::Ready => {
                if self.status == Status::Reorganization && self.coordinator == Some(from) {
                    self.status = Status::Normal;
                    let leader = Some(from);
                    ctx.indicate(Indication::Following { leader, epoch: 0 });
                    ctx.send(from, Message::Working);
                    self.end(ctx);
                }
            }
            Message::Working => self.on_working(from, ctx),
            Message::AreYouNormal => {
                ctx.send(from, Message::Normal(self.coordinator() == Some(from)));
            }
            Message::Normal(content) => {
                if self.call == Call::Check && !content {
                    self.election(ctx);
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Watch => self.watch(ctx),
            Timer::Call => match self.call {
                Call::None => {}
                Call::Above => self.take_over(ctx),
                Call::Halt => self.reorganise(ctx),
                // Someone crashed meanwhile.
                Call::Appoint(_) | Call::Ready(_) => self.election(ctx),
                Call::Check => self.end(ctx),
                Call::Coordinator => {
                    self.leave(ctx);
                    self.election(ctx);
                }
            },
        }
    }

    fn at_rest(&self) -> bool {
        self.status == Status::Normal
    }
}

impl Algorithm for Bully1982 {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;
    const ENDLESS: bool = true;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            status: Status::Normal,
            coordinator: None,
            halted_by: None,
            up: ProcessSet::new(),
            call: Call::None,
            timeout: Fixed(setup.unit * setup.chosen(&SHEET, "timeout").number()),
            any_coordinator: setup.makes(&ANY_COORDINATOR),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        if setup.chosen(&SHEET, "timeout").number() == 0 {
            return Err(SetupError("timeout must be at least 1".into()));
        }
        Ok(())
    }
}
