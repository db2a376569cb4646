//! What is known of steps, in numbers only.
//!
//! Whatever a state is made of is numbered once: each process with its timers (a *local*), each
//! message on its way, and the *environment*, which is the clients, the judges and the spent budgets.
//! A local meets an input and becomes another local; what that means to the environment is a *observation*. Both
//! are looked up here, so that a handler runs once for each local and input, not once for each state.

use rustc_hash::FxHashSet;

use crate::state::Spent;
use crate::symmetry::Symmetry;

/// Inputs from here on are no messages.
pub(crate) const OTHER: u32 = 1 << 31;
/// In place of a local: a message is lost, within the budget.
pub(crate) const LOST: u32 = u32::MAX;
/// In place of a local: a message arrives where nobody is up.
pub(crate) const UNDELIVERED: u32 = u32::MAX - 1;
/// In place of a local: a message is doubled.
pub(crate) const DUPLICATED: u32 = u32::MAX - 2;
/// In place of a local: a channel is cut.
pub(crate) const CUT: u32 = u32::MAX - 3;
/// In place of a local: a timer fires before its time.
pub(crate) const EARLY: u32 = u32::MAX - 4;
/// In place of a local: a link breaks. Its number is that of the channel from the lesser place.
pub(crate) const BREAK: u32 = u32::MAX - 5;
/// In place of a local: a step of time passes; 1 if it does so before its time.
pub(crate) const TIME_STEP: u32 = u32::MAX - 6;
/// In place of a reaction: more messages than there may be.
pub(crate) const OVER_BOUND: u32 = u32::MAX;
/// The observation of what the environment does not notice.
pub(crate) const UNOBSERVED: u32 = u32::MAX;

/// The inputs that every model has, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs {
    pub(crate) n: u32,
}

impl Inputs {
    pub(crate) const CRASH: u32 = OTHER;
    pub(crate) const RECOVER: u32 = OTHER + 1;
    /// A step of time passes.
    pub(crate) const PASS: u32 = OTHER + 2;
    /// Where those begin that are about a process.
    pub(crate) const NEWS: u32 = OTHER + 3;

    /// News of `place` are on their way, or void.
    pub(crate) fn enqueue_news(self, place: u32, up: bool) -> u32 {
        Self::NEWS + 2 * place + u32::from(up)
    }
    /// News of `place` arrive.
    pub(crate) fn learn(self, place: u32, up: bool) -> u32 {
        Self::NEWS + 2 * self.n + 2 * place + u32::from(up)
    }
    /// Whose crash it is that becomes known by this input; none if it is none of these.
    #[inline]
    pub(crate) fn crash_of(self, input: u32) -> Option<u32> {
        let known = input.checked_sub(Self::NEWS + 2 * self.n)?;
        (known < 2 * self.n && known % 2 == 0).then_some(known / 2)
    }
    /// The application sends past the algorithm.
    pub(crate) fn tell(self, to: u32) -> u32 {
        Self::NEWS + 4 * self.n + to
    }
    /// The same input where places have other names.
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
    /// The first that is the model's own.
    pub(crate) fn first_model_input(self) -> u32 {
        Self::NEWS + 5 * self.n
    }
}

/// What must be worked out before the search can go on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Query {
    /// What this local does on this input.
    Act(u32, u32),
    /// What this observation means to this environment.
    React(u32, u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalFacts {
    pub(crate) place: u32,
    pub(crate) up: bool,
    pub(crate) at_rest: bool,
    /// The inputs of its news that may arrive next, and of its timers that may fire, in [`Tables::lists`].
    pub(crate) news: (u32, u32),
    pub(crate) timers: (u32, u32),
    /// Whether a timer runs whose time is not up.
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

#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFacts {
    pub(crate) to: u32,
    /// from · n + to.
    pub(crate) channel: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvironmentFacts {
    /// Who may ask, in [`Tables::asks`].
    pub(crate) asks: (u32, u32),
    /// Who waits, by place.
    pub(crate) waiting: u64,
    /// Who holds something, by place.
    pub(crate) holding: u64,
    pub(crate) spent: Spent,
    /// The channels that are cut, by number.
    pub(crate) cut: u64,
    /// Those of them whose link broke.
    pub(crate) broken: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StepOutcome {
    pub(crate) local: u32,
    pub(crate) observation: u32,
    /// Whether no further answer of `choose` is left.
    pub(crate) last: bool,
}

/// A message that leaves, and its key: its channel where channels are FIFO, else itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) key: u32,
    pub(crate) message: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaction {
    pub(crate) environment: u32,
    /// Which messages leave, in [`Tables::sends`].
    pub(crate) sends: (u32, u32),
    pub(crate) violated: bool,
}

/// All that was worked out so far.
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
    /// Which deliveries must not be taken alone, where the search is reduced: local and message.
    pub(crate) dependent: Option<FxHashSet<(u32, u32)>>,
    /// Which processes stand for each other, where one state of each kind stands for all.
    pub(crate) symmetry: Option<Symmetry>,
}

impl Tables {
    /// The first of what `actor` may do on `input`; the others follow it.
    #[inline]
    pub(crate) fn act(&self, actor: u32, input: u32) -> Result<u32, Query> {
        self.acts.get(actor, input).ok_or(Query::Act(actor, input))
    }

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

/// From two numbers to one: a table of open addresses.
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
    fn what_was_put_in_is_found_again_and_nothing_else() {
        let mut memo = Memo::default();
        for i in 0..10_000u32 {
            memo.insert(i % 100, i / 100, i);
        }
        assert!((0..10_000u32).all(|i| memo.get(i % 100, i / 100) == Some(i)));
        assert_eq!(memo.get(100, 0), None);
    }
}
