//! The successors of a state, in numbers.

mod faults;
mod packed;

use rustc_hash::FxHashSet;

pub(crate) use self::packed::{NumberedState, Successor, WORD, put, take};
use crate::Timing;
use crate::options::Options;
use crate::tables::{EARLY, Inputs, MessageFacts, OVER_BOUND, Query, Tables, UNDELIVERED};

/// The facts of the model that the search needs.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) inputs: Inputs,
    pub(crate) options: Options,
    /// The links that may break, as pairs of places, the lower place first.
    pub(crate) links: Vec<(u32, u32)>,
    /// The place of the coordinator, if there is one.
    pub(crate) coordinator: Option<u32>,
}

/// An `Action` in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum NumberedAction {
    /// This message is delivered.
    Deliver(u32),
    /// The process at this place handles this input.
    HandleInput(u32, u32),
    /// The application at this place sends past the algorithm to that place.
    AppMessage(u32, u32),
    Crash(u32),
    Restart(u32),
    /// This channel is cut.
    Cut(u32),
    /// This link breaks.
    Break(u32),
    /// This message is lost, or duplicated: its number and its index in `flight`.
    Lose(u32, u32),
    Duplicate(u32, u32),
    /// A step of time passes.
    Pass,
}

/// The steps that may follow a state without a fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Continuation {
    /// Nothing: every run that comes here ends here.
    Nothing,
    /// Only requests that clients need not make: a run may end here.
    Voluntary,
    /// Something must happen.
    Necessary,
}

const NONE: usize = usize::MAX;

/// Enumerates the successors of a state; keeps its memory between calls.
#[derive(Debug, Default)]
pub(crate) struct Expander {
    locals: Vec<u32>,
}

impl Expander {
    /// Calls `each` with every successor, in a fixed order. Returns what may happen without a fault, or the
    /// table entry that is missing.
    pub(crate) fn expand(
        &mut self,
        numbered: &NumberedState,
        tables: &Tables,
        rules: &Rules,
        each: &mut impl FnMut(Successor<'_>),
    ) -> Result<Continuation, Query> {
        self.locals.clone_from(&numbered.locals);
        let mut expansion = Expansion {
            locals: &mut self.locals,
            numbered,
            environment: numbered.environment,
            voluntary: false,
            tables,
            rules,
            each,
        };
        if let Some(dependent) = &tables.dependent
            && expansion.take_commuting_delivery(dependent)?
        {
            return Ok(Continuation::Necessary);
        }
        expansion.deliveries()?;
        let quiet = !expansion.news()? && numbered.flight.is_empty();
        let early = rules.options.timing == Timing::WhenQuiet && !quiet;
        let mut progress = !quiet;
        progress |= expansion.timers(early)?;
        progress |= expansion.time(early)?;
        let (necessary, voluntary) = expansion.requests()?;
        progress |= necessary;
        expansion.faults()?;
        Ok(match (progress, voluntary) {
            (true, _) => Continuation::Necessary,
            (false, true) => Continuation::Voluntary,
            (false, false) => Continuation::Nothing,
        })
    }
}

/// Whether the message at `i` may be delivered next: the first of its channel, or the first of equal ones.
#[inline]
fn may_arrive(numbered: &NumberedState, i: usize) -> bool {
    i == 0 || numbered.keys[i - 1] != numbered.keys[i]
}

/// Whether the crash that `input` reports to `place` cannot be told from a delay yet: messages of the
/// crashed process are still in flight; or, if a link broke, messages sent over it.
fn is_too_soon(
    numbered: &NumberedState,
    tables: &Tables,
    rules: &Rules,
    place: usize,
    input: u32,
) -> bool {
    let Some(peer) = rules.inputs.crash_of(input) else { return false };
    let is_up = tables.locals[numbered.locals[peer as usize] as usize].up;
    numbered.flight.iter().any(|message| {
        let MessageFacts { to, channel } = tables.messages[*message as usize];
        channel / rules.inputs.n == peer && (to as usize == place || !is_up)
    })
}

struct Expansion<'a, F> {
    /// The locals of the state, changed by the step in hand.
    locals: &'a mut Vec<u32>,
    numbered: &'a NumberedState,
    /// The environment of the state, changed while early timers are enumerated.
    environment: u32,
    /// Whether the step in hand is a request that the client need not make.
    voluntary: bool,
    tables: &'a Tables,
    rules: &'a Rules,
    each: &'a mut F,
}

impl<F: FnMut(Successor<'_>)> Expansion<'_, F> {
    /// Every message that may arrive is delivered.
    fn deliveries(&mut self) -> Result<(), Query> {
        let (numbered, tables) = (self.numbered, self.tables);
        let cut = tables.environments[numbered.environment as usize].cut;
        for (i, &message) in numbered.flight.iter().enumerate() {
            if !may_arrive(numbered, i) {
                continue;
            }
            let facts = tables.messages[message as usize];
            let local = numbered.locals[facts.to as usize];
            let action = NumberedAction::Deliver(message);
            if !tables.locals[local as usize].up || cut >> facts.channel & 1 == 1 && cut != 0 {
                self.fault(UNDELIVERED, message, action, i, NONE, true)?;
            } else {
                self.step(local, facts.to, message, action, i, true)?;
            }
        }
        Ok(())
    }

    /// Every process learns the news that may reach it. Returns whether any news are on their way.
    fn news(&mut self) -> Result<bool, Query> {
        let (numbered, tables, rules) = (self.numbered, self.tables, self.rules);
        let mut any = false;
        for (place, &local) in numbered.locals.iter().enumerate() {
            let (begin, end) = tables.locals[local as usize].news;
            for &input in &tables.lists[begin as usize..end as usize] {
                any = true;
                if rules.options.timing == Timing::WhenQuiet
                    && is_too_soon(numbered, tables, rules, place, input)
                {
                    continue;
                }
                let action = NumberedAction::HandleInput(place as u32, input);
                self.step(local, place as u32, input, action, NONE, true)?;
            }
        }
        Ok(any)
    }

    /// Every timer that may fire does, `early` if it should still wait. Returns whether there is any.
    #[inline]
    fn timers(&mut self, early: bool) -> Result<bool, Query> {
        let (numbered, tables, options) = (self.numbered, self.tables, &self.rules.options);
        let spent = tables.environments[numbered.environment as usize].spent;
        let counts_as_early = early && options.clock.is_none();
        if counts_as_early && spent.early >= options.early {
            return Ok(false);
        }
        if counts_as_early
            && numbered.locals.iter().any(|l| tables.locals[*l as usize].has_timers())
        {
            let outcome = tables.outcomes[tables.act(EARLY, 0)? as usize];
            let reaction = tables.react(numbered.environment, outcome.observation)?;
            self.environment = tables.reactions[reaction as usize].environment;
        }
        let mut any = false;
        for (place, &local) in numbered.locals.iter().enumerate() {
            let (begin, end) = tables.locals[local as usize].timers;
            for &input in &tables.lists[begin as usize..end as usize] {
                any = true;
                let action = NumberedAction::HandleInput(place as u32, input);
                self.step(local, place as u32, input, action, NONE, false)?;
            }
        }
        self.environment = numbered.environment;
        Ok(any)
    }

    /// With a clock, time passes if it may. Returns whether a timer waits for it, unsettled by the limit.
    #[inline]
    fn time(&mut self, early: bool) -> Result<bool, Query> {
        let (numbered, tables, options) = (self.numbered, self.tables, &self.rules.options);
        let Some(clock) = options.clock else { return Ok(false) };
        let spent = tables.environments[numbered.environment as usize].spent;
        let facts = |local: &u32| tables.locals[*local as usize];
        let waits = numbered.locals.iter().any(|local| facts(local).waits);
        let due = numbered.locals.iter().any(|local| facts(local).is_due());
        let in_time = clock.limit.is_none_or(|limit| spent.time < limit);
        if waits && !due && in_time && (!early || spent.early < options.early) {
            self.pass(early)?;
        }
        Ok(waits && !clock.settles(spent.time))
    }

    /// Takes the next permitted request of each client. Returns whether one of them is owed, and whether one is
    /// voluntary.
    #[inline]
    fn requests(&mut self) -> Result<(bool, bool), Query> {
        let (numbered, tables) = (self.numbered, self.tables);
        let facts = tables.environments[numbered.environment as usize];
        let (begin, end) = facts.asks;
        let (mut necessary, mut voluntary) = (false, false);
        for &(place, input) in &tables.asks[begin as usize..end as usize] {
            let local = numbered.locals[place as usize];
            if tables.locals[local as usize].up {
                self.voluntary = facts.obliged >> place & 1 == 0;
                necessary |= !self.voluntary;
                voluntary |= self.voluntary;
                let action = NumberedAction::HandleInput(place, input);
                self.step(local, place, input, action, NONE, true)?;
            }
        }
        self.voluntary = false;
        Ok((necessary, voluntary))
    }

    /// The process at `place` handles `input`; the message at `taken` leaves `flight`.
    #[inline]
    fn step(
        &mut self,
        local: u32,
        place: u32,
        input: u32,
        action: NumberedAction,
        taken: usize,
        untimed_progress: bool,
    ) -> Result<(), Query> {
        let mut at = self.tables.act(local, input)?;
        let mut draw = 0;
        loop {
            let outcome = self.tables.outcomes[at as usize];
            let reaction = self.tables.react(self.environment, outcome.observation)?;
            self.locals[place as usize] = outcome.local;
            let restart = matches!(action, NumberedAction::Restart(_));
            if restart && self.rules.options.detector {
                self.broadcast_news(place, true)?;
                for peer in 0..self.rules.inputs.n {
                    let up = self.tables.locals[self.locals[peer as usize] as usize].up;
                    if !up || self.is_broken(place, peer) {
                        self.enqueue_news(place, self.rules.inputs.enqueue_news(peer, false))?;
                    }
                }
            }
            self.arrive(reaction, action, draw, (taken, NONE), untimed_progress);
            if restart {
                self.locals.clone_from(&self.numbered.locals);
            }
            self.locals[place as usize] = local;
            if outcome.last {
                return Ok(());
            }
            at += 1;
            draw += 1;
        }
    }

    /// An event that no process handles, by its pseudo-local.
    fn fault(
        &mut self,
        actor: u32,
        input: u32,
        action: NumberedAction,
        taken: usize,
        doubled: usize,
        untimed_progress: bool,
    ) -> Result<(), Query> {
        let at = self.tables.act(actor, input)?;
        let outcome = self.tables.outcomes[at as usize];
        let reaction = self.tables.react(self.numbered.environment, outcome.observation)?;
        self.arrive(reaction, action, 0, (taken, doubled), untimed_progress);
        Ok(())
    }

    #[inline]
    fn arrive(
        &mut self,
        number: u32,
        action: NumberedAction,
        draw: u32,
        (taken, doubled): (usize, usize),
        untimed_progress: bool,
    ) {
        let reaction = &self.tables.reactions[number as usize];
        let sends = &self.tables.sends[reaction.sends.0 as usize..reaction.sends.1 as usize];
        let options = &self.rules.options;
        let counted = options.counts() && !matches!(action, NumberedAction::AppMessage(..));
        let sent = self.numbered.sent + if counted { sends.len() as u32 } else { 0 };
        let over = options.most_messages.is_some_and(|most| sent > most && options.judges("bound"));
        (self.each)(Successor {
            before: self.numbered,
            locals: self.locals,
            environment: reaction.environment,
            sent,
            taken,
            doubled,
            sends,
            action,
            draw,
            reaction: if over && !reaction.violated { OVER_BOUND } else { number },
            violated: reaction.violated || over,
            untimed_progress,
            voluntary: self.voluntary,
        });
    }

    /// Takes a single delivery in place of all steps, if one commutes with every step that may come before
    /// it. Returns whether there is one.
    fn take_commuting_delivery(
        &mut self,
        dependent: &FxHashSet<(u32, u32)>,
    ) -> Result<bool, Query> {
        for (i, &message) in self.numbered.flight.iter().enumerate() {
            let to = self.tables.messages[message as usize].to;
            let local = self.numbered.locals[to as usize];
            if !may_arrive(self.numbered, i)
                || dependent.contains(&(local, message))
                || !self.tables.locals[local as usize].up
            {
                continue;
            }
            let at = self.tables.act(local, message)?;
            if self.tables.outcomes[at as usize].last {
                self.step(local, to, message, NumberedAction::Deliver(message), i, true)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}
