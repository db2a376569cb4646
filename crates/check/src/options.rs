//! How far the exploration goes.

use std::time::Duration;

use konklave_process::{Group, ProcessId};

use crate::swarm::Swarm;

/// What may happen besides the protocol itself, and where the search gives up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether messages of one channel keep their order.
    pub fifo: bool,
    /// When timers may fire.
    pub timing: Timing,
    /// In the synchronous model: how many timers may fire too early all the same.
    pub early: u8,
    /// Whether timers run out when their time is up, and not before; none: whenever `timing` says.
    pub clock: Option<Clock>,
    /// Who is down from the start; nobody is told.
    pub down: Vec<ProcessId>,
    /// How many processes may crash.
    pub crashes: u8,
    /// Who may crash, by what they are doing.
    pub victims: Victim,
    /// How many crashed processes may come up again.
    pub restarts: u8,
    /// Whether a restarted process has what it saved.
    pub stable_storage: bool,
    /// How many messages may be lost.
    pub losses: u8,
    /// How many messages may be doubled.
    pub duplicates: u8,
    /// How many channels may be cut, each in one direction and for ever: what was or will be sent
    /// over it is lost.
    pub cuts: u8,
    /// How many links may break, both ways and for ever: what was or will be sent over it is lost, and
    /// where there is a detector, each end comes to suspect the other, in its own time.
    pub breaks: u8,
    /// Which links there are to break; empty: one between any two.
    pub links: Vec<(ProcessId, ProcessId)>,
    /// Whether every crash is made known to every survivor, in its own time.
    pub detector: bool,
    /// How many messages the application may send past the algorithm.
    pub app_messages: u8,
    /// Whether to find the fewest and the most messages of all runs. States that differ only in
    /// how many messages led to them are then different states.
    pub count_messages: bool,
    /// How many messages a run may have at most; more break the bound. They are counted, then.
    pub most_messages: Option<u32>,
    /// The properties to judge; empty: all.
    pub properties: Vec<String>,
    /// How many threads search; 0: as many as there are cores. What is found does not depend on it.
    pub threads: usize,
    /// Whether only 64 bits of each state are kept: a sixth of the memory, and a state may be missed
    /// with the probability that the report states.
    pub compact: bool,
    /// Whether one order of commuting deliveries stands for all, where that was found to be sound.
    /// The verdict is the same; a witness need not be a shortest one.
    pub reduce: bool,
    /// Whether one state stands for all that differ only in which process is which, where processes
    /// were found to be interchangeable.
    pub symmetry: bool,
    /// Random runs in place of all runs.
    pub swarm: Option<Swarm>,
    /// The search gives up beyond this many states.
    pub max_states: u64,
    /// The search gives up beyond this depth.
    pub max_depth: u32,
    /// The search gives up beyond about this many bytes.
    pub max_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fifo: true,
            timing: Timing::Anytime,
            early: 0,
            clock: None,
            down: Vec::new(),
            crashes: 0,
            victims: Victim::Anyone,
            restarts: 0,
            stable_storage: true,
            losses: 0,
            duplicates: 0,
            cuts: 0,
            breaks: 0,
            links: Vec::new(),
            detector: true,
            app_messages: 0,
            count_messages: false,
            most_messages: None,
            properties: Vec::new(),
            threads: 0,
            compact: false,
            reduce: false,
            symmetry: false,
            swarm: None,
            max_states: 20_000_000,
            max_depth: u32::MAX,
            max_bytes: 8 << 30,
        }
    }
}

impl Options {
    /// Whether timers fire when nothing is on its way, and crashes are told from delays.
    pub(crate) fn is_synchronous(&self) -> bool {
        self.timing == Timing::WhenQuiet
    }

    /// Whether `property` is judged.
    pub fn judges(&self, property: &str) -> bool {
        self.properties.is_empty() || self.properties.iter().any(|p| p == property)
    }

    /// Whether a state knows how many messages led to it.
    pub(crate) fn counts(&self) -> bool {
        self.count_messages || self.most_messages.is_some()
    }
}

/// The links that may break, by places, the lesser first, in order.
pub(crate) fn links(options: &Options, group: &Group) -> impl Iterator<Item = (u32, u32)> {
    let n = group.len() as u32;
    let place = |id: ProcessId| group.place(id).map(|place| place as u32);
    let known = options.links.iter().filter_map(|&(one, other)| Some((place(one)?, place(other)?)));
    let known: Vec<(u32, u32)> = known.map(|(a, b)| (a.min(b), a.max(b))).collect();
    let pairs = (0..n).flat_map(move |one| (one + 1..n).map(move |other| (one, other)));
    let all = options.links.is_empty();
    pairs.filter(move |pair| all || known.contains(pair))
}

/// When timers may fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// Whenever they run: nothing is known about delays.
    Anytime,
    /// Only when no message is on its way and no crash is unknown: the synchronous model, in which
    /// a timeout is right. A crash becomes known when what the crashed process sent has arrived.
    WhenQuiet,
}

/// All clocks run alike, and time passes in steps: no timer runs out before its time, and none is late.
/// How long messages take is another matter: any time at all, or, with [`Timing::WhenQuiet`], none, but for
/// as many steps as may be early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// How long a step is. All that timers are set to must be whole numbers of it.
    pub step: Duration,
    /// How many steps are looked at; none: as many as there are. Where it stops a run, that is no end of it.
    pub limit: Option<u16>,
    /// Whether all must be settled by then: where the limit stops a run with nothing on its way, nobody may
    /// wait, and what must hold in the end must hold.
    pub settled: bool,
}

impl Clock {
    /// A step and a limit in units of `unit`, or what is wrong with them.
    pub fn in_units(
        step: f64,
        limit: Option<f64>,
        settled: bool,
        unit: Duration,
    ) -> Result<Self, String> {
        let length = Duration::try_from_secs_f64(step * unit.as_secs_f64()).ok();
        let Some(length) = length.filter(|length| !length.is_zero()) else {
            return Err(format!("--clock {step}: say how long a step is, as in 0.5"));
        };
        let steps = limit.map(|limit| (limit / step).round());
        if let (Some(limit), Some(steps)) = (limit, steps)
            && !(1.0..=f64::from(u16::MAX)).contains(&steps)
        {
            return Err(format!("--time-limit {limit}: that is not 1 to {} steps", u16::MAX));
        }
        Ok(Self { step: length, limit: steps.map(|steps| steps as u16), settled })
    }

    /// Whether a run that the limit stops after `steps` is judged.
    pub(crate) fn settles(self, steps: u16) -> bool {
        self.settled && self.limit == Some(steps)
    }
}

/// Who may crash, by what a process does at that moment: a process is exactly one of the last four.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Victim {
    /// Whoever is up.
    #[default]
    Anyone,
    /// Its client wants nothing, and it is at rest.
    Idle,
    /// Its client waits.
    Waiting,
    /// Its client has been granted something that it has not given back.
    Holder,
    /// Its client wants nothing, but it has work for others in hand: a vote given, a queue.
    Arbiter,
}

impl Victim {
    /// Whether a process may crash whose client waits or holds, and which is at rest or not.
    pub(crate) fn includes(self, waits: bool, holds: bool, at_rest: bool) -> bool {
        match self {
            Self::Anyone => true,
            Self::Waiting => waits,
            Self::Holder => holds && !waits,
            Self::Idle => !waits && !holds && at_rest,
            Self::Arbiter => !waits && !holds && !at_rest,
        }
    }
}
