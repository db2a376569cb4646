//! The transition tables: all that is known of steps, in numbers only.
//!
//! Each part of a state has a number: each *local* (a process with its timers), each message in flight, and
//! the *environment* (clients, judges, spent budgets). A step is two lookups:
//! - [`Tables::act`]: a local handles an input and becomes another local, with an *observation*.
//! - [`Tables::react`]: an environment learns of the observation and becomes another environment.
//!
//! So a handler runs once for each local and input, not once for each state.

use rustc_hash::FxHashSet;

use crate::state::Spent;
use crate::symmetry::Symmetry;

/// Inputs below this number are messages, by number; inputs from here on are not.
pub(crate) const OTHER: u32 = 1 << 31;

// Pseudo-locals: they stand in place of a local in `Tables::act`, for events that no process handles.

/// A message is lost, within the budget.
pub(crate) const LOST: u32 = u32::MAX;
/// A message is lost because its receiver is down or its channel is cut.
pub(crate) const UNDELIVERED: u32 = u32::MAX - 1;
/// A message is duplicated.
pub(crate) const DUPLICATED: u32 = u32::MAX - 2;
/// A channel is cut.
pub(crate) const CUT: u32 = u32::MAX - 3;
/// A timer fires early.
pub(crate) const EARLY: u32 = u32::MAX - 4;
/// A link breaks. A link has the number of its channel from the lower place.
pub(crate) const BREAK: u32 = u32::MAX - 5;
/// A step of time passes; the input is 1 if it passes early, else 0.
pub(crate) const TIME_STEP: u32 = u32::MAX - 6;

/// In place of a reaction: the run has more messages than `most_messages` allows.
pub(crate) const OVER_BOUND: u32 = u32::MAX;
/// In place of an observation: the event has no effect on clients, judges or budgets.
pub(crate) const UNOBSERVED: u32 = u32::MAX;

/// The numbers of the inputs that every model has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs {
    pub(crate) n: u32,
}

impl Inputs {
    pub(crate) const CRASH: u32 = OTHER;
    pub(crate) const RECOVER: u32 = OTHER + 1;
    /// A step of time passes.
    pub(crate) const PASS: u32 = OTHER + 2;
    /// The first input about a process.
    pub(crate) const NEWS: u32 = OTHER + 3;

    /// News of `place` are sent to this process; in the synchronous model they cancel older news of it.
    pub(crate) fn enqueue_news(self, place: u32, up: bool) -> u32 {
        Self::NEWS + 2 * place + u32::from(up)
    }
    /// News of `place` reach this process.
    pub(crate) fn learn(self, place: u32, up: bool) -> u32 {
        Self::NEWS + 2 * self.n + 2 * place + u32::from(up)
    }
    /// The place whose crash this input reports, if it reports a crash.
    #[inline]
    pub(crate) fn crash_of(self, input: u32) -> Option<u32> {
        let known = input.checked_sub(Self::NEWS + 2 * self.n)?;
        (known < 2 * self.n && known % 2 == 0).then_some(known / 2)
    }
    /// The application sends a message past the algorithm.
    pub(crate) fn app_message(self, to: u32) -> u32 {
        Self::NEWS + 4 * self.n + to
    }
    /// The same input under a permutation of the places.
    pub(crate) fn renamed(self, input: u32, place: impl Fn(u32) -> u32) -> u32 {
        let n = self.n;
        let Some(known) = input.checked_sub(Self::NEWS).filter(|known| *known < 5 * n) else {
            return input;
        };
        let rename = |begin: u32, each: u32| {
            let at = known - begin;
            Self::NEWS + begin + each * place(at / each) + at % each
        };
        match known {
            _ if known < 2 * n => rename(0, 2),
            _ if known < 4 * n => rename(2 * n, 2),
            _ => rename(4 * n, 1),
        }
    }
    /// The first input whose number depends on the model: a timer or a request.
    pub(crate) fn first_model_input(self) -> u32 {
        Self::NEWS + 5 * self.n
    }
}

/// A missing table entry, which must be computed before the search can go on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Query {
    /// The outcomes of this input in this local state.
    Act(u32, u32),
    /// How this environment reacts to this observation.
    React(u32, u32),
}

/// The facts about a local state that the search needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalFacts {
    pub(crate) place: u32,
    pub(crate) up: bool,
    pub(crate) at_rest: bool,
    pub(crate) has_token: bool,
    /// The news that may reach the process next, as a range of [`Tables::lists`].
    pub(crate) news: (u32, u32),
    /// The timers that may fire, as a range of [`Tables::lists`].
    pub(crate) timers: (u32, u32),
    /// Whether a timer runs that has steps of time left.
    pub(crate) waits: bool,
}

impl LocalFacts {
    pub(crate) fn has_timers(self) -> bool {
        self.is_due() || self.waits
    }
    /// Whether a timer may fire.
    pub(crate) fn is_due(self) -> bool {
        self.timers.0 < self.timers.1
    }
}

/// The facts about a message that the search needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFacts {
    pub(crate) to: u32,
    /// The channel by number: from · n + to.
    pub(crate) channel: u32,
}

/// The facts about an environment that the search needs. Sets of places and of channels are bit sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvironmentFacts {
    /// The clients that may ask, as a range of [`Tables::asks`].
    pub(crate) asks: (u32, u32),
    /// The places whose clients wait.
    pub(crate) waiting: u64,
    /// The places whose clients hold something.
    pub(crate) holding: u64,
    /// The places whose clients must make their next request.
    pub(crate) obliged: u64,
    pub(crate) spent: Spent,
    /// The channels that are cut.
    pub(crate) cut: u64,
    /// The cut channels whose link broke.
    pub(crate) broken: u64,
}

/// One outcome of a step: the local state after it, for one series of answers of `choose`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepOutcome {
    pub(crate) local: u32,
    pub(crate) observation: u32,
    /// Whether this is the last outcome of the step.
    pub(crate) last: bool,
}

/// A message sent. The key orders messages in flight: with FIFO it is the channel, else the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) key: u32,
    pub(crate) message: u32,
}

/// The environment after an observation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaction {
    pub(crate) environment: u32,
    /// The messages sent, as a range of [`Tables::sends`].
    pub(crate) sends: (u32, u32),
    /// Whether a judge finds a violation.
    pub(crate) violated: bool,
}

/// All facts and transitions computed so far.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) locals: Vec<LocalFacts>,
    pub(crate) lists: Vec<u32>,
    pub(crate) messages: Vec<MessageFacts>,
    pub(crate) environments: Vec<EnvironmentFacts>,
    pub(crate) asks: Vec<(u32, u32)>,
    pub(crate) acts: Memo,
    pub(crate) outcomes: Vec<StepOutcome>,
    pub(crate) reacts: Memo,
    pub(crate) reactions: Vec<Reaction>,
    pub(crate) sends: Vec<Sent>,
    /// With reduction: the deliveries (local, message) that must not be taken alone.
    pub(crate) dependent: Option<FxHashSet<(u32, u32)>>,
    /// With symmetry: which processes are interchangeable.
    pub(crate) symmetry: Option<Symmetry>,
}

impl Tables {
    /// The index of the first outcome of `actor` on `input`; its other outcomes follow.
    #[inline]
    pub(crate) fn act(&self, actor: u32, input: u32) -> Result<u32, Query> {
        self.acts.get(actor, input).ok_or(Query::Act(actor, input))
    }

    /// The index of the reaction of `environment` to `observation`.
    #[inline]
    pub(crate) fn react(&self, environment: u32, observation: u32) -> Result<u32, Query> {
        self.reacts.get(environment, observation).ok_or(Query::React(environment, observation))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.locals.capacity() * size_of::<LocalFacts>()
            + self.lists.capacity() * 4
            + self.messages.capacity() * size_of::<MessageFacts>()
            + self.environments.capacity() * size_of::<EnvironmentFacts>()
            + self.asks.capacity() * 8
            + self.acts.bytes()
            + self.outcomes.capacity() * size_of::<StepOutcome>()
            + self.reacts.bytes()
            + self.reactions.capacity() * size_of::<Reaction>()
            + self.sends.capacity() * 8
            + self.symmetry.as_ref().map_or(0, Symmetry::bytes)
    }
}

/// A hash table from two numbers to one, with open addressing.
#[derive(Debug)]
pub(crate) struct Memo {
    slots: Vec<(u64, u32)>,
    len: usize,
    shift: u32,
}

const EMPTY: u64 = u64::MAX;

impl Default for Memo {
    fn default() -> Self {
        Self { slots: vec![(EMPTY, 0); 64], len: 0, shift: 58 }
    }
}

impl Memo {
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let product = u128::from(key) * 0x9e37_79b9_7f4a_7c15;
        ((product as u64 ^ (product >> 64) as u64) >> self.shift) as usize
    }

    #[inline]
    pub(crate) fn get(&self, a: u32, b: u32) -> Option<u32> {
        let key = u64::from(a) << 32 | u64::from(b);
        let mut slot = self.slot(key);
        loop {
            let (found, value) = self.slots[slot];
            if found == key {
                return Some(value);
            }
            if found == EMPTY {
                return None;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    pub(crate) fn insert(&mut self, a: u32, b: u32, value: u32) {
        if self.len * 2 >= self.slots.len() {
            let larger = vec![(EMPTY, 0); self.slots.len() * 2];
            let old = std::mem::replace(&mut self.slots, larger);
            self.shift -= 1;
            for (key, value) in old.into_iter().filter(|(key, _)| *key != EMPTY) {
                self.put(key, value);
            }
        }
        self.put(u64::from(a) << 32 | u64::from(b), value);
        self.len += 1;
    }

    fn put(&mut self, key: u64, value: u32) {
        let mut slot = self.slot(key);
        while self.slots[slot].0 != EMPTY {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = (key, value);
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<(u64, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memo_finds_all_inserted_entries_and_no_others() {
        let mut memo = Memo::default();
        for i in 0..10_000u32 {
            memo.insert(i % 100, i / 100, i);
        }
        assert!((0..10_000u32).all(|i| memo.get(i % 100, i / 100) == Some(i)));
        assert_eq!(memo.get(100, 0), None);
    }
}
