//! The options of an exploration: what may happen, and how far to go.

use std::time::Duration;

use konklave_process::{Group, ProcessId};

use crate::swarm::Swarm;

/// Budgets of faults, options of the search, and its limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether messages of one channel keep their order.
    pub fifo: bool,
    /// When timers may fire.
    pub timing: Timing,
    /// In the synchronous model: how many timers may fire too early nevertheless.
    pub early: u8,
    /// Whether timers run out after their duration and not before; none: whenever `timing` allows.
    pub clock: Option<Clock>,
    /// The processes that are down from the start; the detector does not report them.
    pub down: Vec<ProcessId>,
    /// How many crashes there may be.
    pub crashes: u8,
    /// Which processes may crash, by their role at that moment.
    pub victims: Victim,
    /// The process that every message goes from or to, if there is one: a role of its own.
    pub coordinator: Option<ProcessId>,
    /// How many restarts there may be.
    pub restarts: u8,
    /// Whether a restarted process gets the record it saved.
    pub stable_storage: bool,
    /// How many messages may be lost.
    pub losses: u8,
    /// How many messages may be duplicated.
    pub duplicates: u8,
    /// How many channels may be cut, each in one direction and forever. A cut channel loses all messages,
    /// also those in flight.
    pub cuts: u8,
    /// How many links may break, in both directions and forever. A broken link loses all messages, also those
    /// in flight. With a detector, each end comes to suspect the other, after any delay.
    pub breaks: u8,
    /// The links that may break; empty: one between any two processes.
    pub links: Vec<(ProcessId, ProcessId)>,
    /// Whether a failure detector reports every crash to every survivor, after any delay.
    pub detector: bool,
    /// How many messages the application may send past the algorithm.
    pub app_messages: u8,
    /// Whether to find the fewest and the most messages of all runs. States reached with different numbers
    /// of messages are then different states.
    pub count_messages: bool,
    /// How many messages a run may have; more violate the property `bound`. Messages are then counted.
    pub most_messages: Option<u32>,
    /// The properties to judge; empty: all.
    pub properties: Vec<String>,
    /// How many threads search; 0: as many as there are cores. The report does not depend on it.
    pub threads: usize,
    /// Whether only a 64-bit hash of each state is kept. That takes a sixth of the memory; a state may be
    /// missed, with the probability in the report.
    pub compact: bool,
    /// Whether one order of commuting deliveries stands for all orders, where that is found to be sound.
    /// The verdict is the same; a witness need not be a shortest one.
    pub reduce: bool,
    /// Whether one state stands for all states that differ only by a permutation of interchangeable
    /// processes.
    pub symmetry: bool,
    /// Try random runs in place of all runs.
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
            coordinator: None,
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
    /// Whether the model is synchronous: timers fire only if nothing is in flight, so a timeout is right.
    pub(crate) fn is_synchronous(&self) -> bool {
        self.timing == Timing::WhenQuiet
    }

    /// Whether `property` is judged.
    pub fn judges(&self, property: &str) -> bool {
        self.properties.is_empty() || self.properties.iter().any(|p| p == property)
    }

    /// Whether messages are counted, so that their number is part of the state.
    pub(crate) fn counts(&self) -> bool {
        self.count_messages || self.most_messages.is_some()
    }
}

/// The links that may break, in order, as pairs of places, the lower place first.
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
    /// At any time: the asynchronous model, in which nothing is known about delays.
    Anytime,
    /// Only if no message and no news are in flight: the synchronous model, in which a timeout is right.
    /// A crash is reported only after all messages of the crashed process have arrived.
    WhenQuiet,
}

/// Perfect clocks: time passes in steps, equally for all processes, and a timer fires exactly on time.
///
/// Message delays are independent of it. With [`Timing::Anytime`] a message may take any time. With
/// [`Timing::WhenQuiet`] it takes none, except during the steps that may be `early`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// The length of a step. Every timer must be set to a whole number of steps.
    pub step: Duration,
    /// How many steps of time a run may take; none: any number. A run stopped by the limit has not ended.
    pub limit: Option<u16>,
    /// Whether runs must be settled at the limit: if it stops a run with nothing in flight, the run is
    /// judged as if it had ended.
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
            return Err(format!(
                "`--clock {step}` must be the positive length of a step, such as 0.5"
            ));
        };
        let steps = limit.map(|limit| (limit / step).round());
        if let (Some(limit), Some(steps)) = (limit, steps)
            && !(1.0..=f64::from(u16::MAX)).contains(&steps)
        {
            return Err(format!(
                "`--time-limit {limit}` must be 1 to {} steps of the clock",
                u16::MAX
            ));
        }
        Ok(Self { step: length, limit: steps.map(|steps| steps as u16), settled })
    }

    /// Whether a run that the limit stops after this many steps is judged as an end.
    pub(crate) fn settles(self, steps: u16) -> bool {
        self.settled && self.limit == Some(steps)
    }
}

/// Which processes may crash, by their role. All but [`Anyone`](Self::Anyone) are disjoint and cover all
/// processes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Victim {
    /// Every process that is up.
    #[default]
    Anyone,
    /// A process whose client neither waits nor holds, and which has no work for others, no token and no
    /// office.
    Idle,
    /// A process whose client waits.
    Waiting,
    /// A process whose client has been granted something and has not released it.
    Holder,
    /// A process whose client neither waits nor holds, but which has work for others: a vote given, a queue,
    /// or a message on its way to it.
    Arbiter,
    /// The [coordinator](Options::coordinator), whatever its client does.
    Coordinator,
    /// A process whose client neither waits nor holds, but which has the token.
    IdleTokenHolder,
}

/// The facts that decide the role of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// Its client waits.
    pub(crate) waits: bool,
    /// Its client holds.
    pub(crate) holds: bool,
    /// It is at rest, and no message is on its way to it.
    pub(crate) at_rest: bool,
    pub(crate) has_token: bool,
    pub(crate) coordinates: bool,
}

impl Victim {
    /// Whether a process in this situation may crash.
    pub(crate) fn includes(self, situation: Situation) -> bool {
        self == Self::Anyone || self == Self::role(situation)
    }

    fn role(situation: Situation) -> Self {
        match situation {
            Situation { coordinates: true, .. } => Self::Coordinator,
            Situation { waits: true, .. } => Self::Waiting,
            Situation { holds: true, .. } => Self::Holder,
            Situation { has_token: true, .. } => Self::IdleTokenHolder,
            Situation { at_rest: true, .. } => Self::Idle,
            _ => Self::Arbiter,
        }
    }
}
