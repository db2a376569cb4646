//! The successors of a state, in numbers.

use rustc_hash::FxHashSet;

use crate::Timing;
use crate::options::{Options, Situation};
use crate::tables::{
    BREAK, CUT, DUPLICATED, EARLY, Inputs, LOST, MessageFacts, OVER_BOUND, Query, Sent, TIME_STEP,
    Tables, UNDELIVERED, UNOBSERVED,
};

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

/// A state in numbers, unpacked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NumberedState {
    pub(crate) locals: Vec<u32>,
    pub(crate) environment: u32,
    pub(crate) sent: u32,
    /// The messages in flight, in the order of their keys; with FIFO, within a channel in the order sent.
    pub(crate) flight: Vec<u32>,
    /// For each message its key: with FIFO its channel, else its number.
    pub(crate) keys: Vec<u32>,
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

/// A step and the state it leads to, as a difference from the state before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Successor<'a> {
    before: &'a NumberedState,
    pub(crate) locals: &'a [u32],
    pub(crate) environment: u32,
    sent: u32,
    /// The index of the message that leaves `flight`, or [`NONE`].
    taken: usize,
    /// The index of the message that is duplicated, or [`NONE`].
    doubled: usize,
    /// The messages sent, in the order of their keys.
    pub(crate) sends: &'a [Sent],
    pub(crate) action: NumberedAction,
    /// The index of the series of draws among those of this step.
    pub(crate) draw: u32,
    pub(crate) reaction: u32,
    pub(crate) violated: bool,
    /// Whether the step needs neither a fault nor the passing of time.
    pub(crate) untimed_progress: bool,
    /// Whether it is a request that the client need not make.
    pub(crate) voluntary: bool,
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

impl Successor<'_> {
    /// Calls `each` with the messages in flight after the step, in the order of their keys.
    #[inline]
    fn flight(&self, mut each: impl FnMut(u32)) {
        let mut sends = self.sends;
        for (i, (&message, &key)) in self.before.flight.iter().zip(&self.before.keys).enumerate() {
            while let Some((first, rest)) = sends.split_first()
                && first.key < key
            {
                each(first.message);
                sends = rest;
            }
            if i != self.taken {
                each(message);
            }
            if i == self.doubled {
                // Right behind the original: a later position results from a later duplication.
                each(message);
            }
        }
        sends.iter().for_each(|sent| each(sent.message));
    }

    /// An upper bound on the bytes that [`Successor::write`] writes, with the padding.
    #[inline]
    pub(crate) fn most(&self) -> usize {
        5 * (self.locals.len() + 2 + self.before.flight.len() + 1 + self.sends.len()) + WORD
    }

    /// Writes the packed state, padded with zeros to a whole word; returns its length without padding.
    #[inline]
    pub(crate) fn write(&self, rules: &Rules, into: &mut [u8]) -> usize {
        let mut writer = Writer { into, len: 0, word: 0, bits: 0 };
        for &local in self.locals {
            writer.put(local);
        }
        writer.put(self.environment);
        if rules.options.counts() {
            writer.put(self.sent);
        }
        if rules.options.fifo {
            self.flight(|message| writer.put(message));
        } else {
            let mut before = 0;
            self.flight(|message| {
                writer.put(message - before);
                before = message;
            });
        }
        writer.finish()
    }

    /// Appends the packed state.
    pub(crate) fn pack(&self, rules: &Rules, into: &mut Vec<u8>) {
        let at = into.len();
        into.resize(at + self.most(), 0);
        let len = self.write(rules, &mut into[at..]);
        into.truncate(at + len);
    }

    pub(crate) fn numbered(&self, tables: &Tables, rules: &Rules) -> NumberedState {
        let mut numbered = NumberedState::default();
        self.write_to(&mut numbered);
        numbered.find_keys(tables, rules);
        numbered
    }

    /// Writes the state without its keys.
    pub(crate) fn write_to(&self, numbered: &mut NumberedState) {
        numbered.locals.clear();
        numbered.locals.extend_from_slice(self.locals);
        (numbered.environment, numbered.sent) = (self.environment, self.sent);
        numbered.flight.clear();
        self.flight(|message| numbered.flight.push(message));
    }
}

/// The bytes of a word: packed states are written and hashed by words.
pub(crate) const WORD: usize = 8;

/// Writes numbers as [`put`] does, but a whole word at a time. A packed state is hashed by words right after
/// it is written, and reading a word that was stored in pieces stalls the processor.
struct Writer<'a> {
    into: &'a mut [u8],
    len: usize,
    /// The bits not written yet, and how many they are.
    word: u64,
    bits: u32,
}

impl Writer<'_> {
    #[inline]
    fn put(&mut self, x: u32) {
        let (mut bytes, mut width) = (u64::from(x), 8);
        if x >= 0x80 {
            (bytes, width) = (0, 0);
            let mut rest = x;
            while rest >= 0x80 {
                bytes |= u64::from(rest as u8 | 0x80) << width;
                (rest, width) = (rest >> 7, width + 8);
            }
            bytes |= u64::from(rest) << width;
            width += 8;
        }
        self.word |= bytes << self.bits;
        self.bits += width;
        if self.bits >= u64::BITS {
            self.flush();
            self.bits -= u64::BITS;
            // The bits that did not fit into the word.
            self.word = if self.bits == 0 { 0 } else { bytes >> (width - self.bits) };
            self.len += WORD;
        }
    }

    #[inline]
    fn flush(&mut self) {
        self.into[self.len..self.len + WORD].copy_from_slice(&self.word.to_le_bytes());
    }

    #[inline]
    fn finish(mut self) -> usize {
        self.flush();
        self.len + self.bits as usize / 8
    }
}

impl NumberedState {
    pub(crate) fn pack(&self, rules: &Rules, into: &mut Vec<u8>) {
        let next = Successor {
            before: self,
            locals: &self.locals,
            environment: self.environment,
            sent: self.sent,
            taken: NONE,
            doubled: NONE,
            sends: &[],
            action: NumberedAction::Deliver(0),
            draw: 0,
            reaction: 0,
            violated: false,
            untimed_progress: false,
            voluntary: false,
        };
        next.pack(rules, into);
    }

    #[inline]
    pub(crate) fn unpack(&mut self, tables: &Tables, rules: &Rules, mut from: &[u8]) {
        self.locals.clear();
        self.flight.clear();
        for _ in 0..rules.inputs.n {
            self.locals.push(take(&mut from));
        }
        self.environment = take(&mut from);
        self.sent = if rules.options.counts() { take(&mut from) } else { 0 };
        let mut before = 0;
        while !from.is_empty() {
            let message = take(&mut from);
            before = if rules.options.fifo { message } else { before + message };
            self.flight.push(before);
        }
        self.find_keys(tables, rules);
    }

    #[inline]
    pub(crate) fn find_keys(&mut self, tables: &Tables, rules: &Rules) {
        if rules.options.fifo {
            self.keys.clear();
            let channels = self.flight.iter().map(|m| tables.messages[*m as usize].channel);
            self.keys.extend(channels);
        } else {
            self.keys.clone_from(&self.flight);
        }
    }
}

/// Appends a number in LEB128: seven bits a byte, the lowest first.
#[inline]
pub(crate) fn put(into: &mut Vec<u8>, mut x: u32) {
    while x >= 0x80 {
        into.push(x as u8 | 0x80);
        x >>= 7;
    }
    into.push(x as u8);
}

/// Reads a number that [`put`] wrote, and advances `from`.
#[inline]
pub(crate) fn take(from: &mut &[u8]) -> u32 {
    let (mut x, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = from.split_first().expect("a packed number is whole");
        *from = rest;
        x |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return x;
        }
        shift += 7;
    }
}

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

/// Whether the process at `place` may crash: it is up, and its role is one of those that may.
#[inline]
fn may_crash(numbered: &NumberedState, tables: &Tables, rules: &Rules, place: u32) -> bool {
    let facts = tables.environments[numbered.environment as usize];
    let local = tables.locals[numbered.locals[place as usize] as usize];
    let is_free = numbered.flight.iter().all(|m| tables.messages[*m as usize].to != place);
    let situation = Situation {
        waits: facts.waiting >> place & 1 == 1,
        holds: facts.holding >> place & 1 == 1,
        at_rest: local.at_rest && is_free,
        has_token: local.has_token,
        coordinates: rules.coordinator == Some(place),
    };
    local.up && rules.options.victims.includes(situation)
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

    /// Enumerates the faults that the budgets still allow.
    fn faults(&mut self) -> Result<(), Query> {
        let (numbered, tables, rules) = (self.numbered, self.tables, self.rules);
        let (options, n) = (&rules.options, rules.inputs.n);
        let spent = tables.environments[numbered.environment as usize].spent;
        let is_up = |place: u32| tables.locals[numbered.locals[place as usize] as usize].up;
        if spent.app_messages < options.app_messages {
            for from in (0..n).filter(|&p| is_up(p)) {
                for to in (0..n).filter(|&to| to != from) {
                    self.without_handler(
                        from,
                        self.rules.inputs.app_message(to),
                        NumberedAction::AppMessage(from, to),
                    )?;
                }
            }
        }
        if spent.crashes < options.crashes {
            for place in (0..n).filter(|&p| may_crash(numbered, tables, rules, p)) {
                self.without_handler(place, Inputs::CRASH, NumberedAction::Crash(place))?;
            }
        }
        if spent.restarts < options.restarts {
            for place in (0..n).filter(|&p| !is_up(p)) {
                let local = numbered.locals[place as usize];
                let action = NumberedAction::Restart(place);
                self.step(local, place, Inputs::RECOVER, action, NONE, false)?;
            }
        }
        if spent.cuts < options.cuts {
            let cut = tables.environments[numbered.environment as usize].cut;
            let channels = (0..n * n).filter(|c| c / n != c % n && cut >> c & 1 == 0);
            for channel in channels {
                self.fault(CUT, channel, NumberedAction::Cut(channel), NONE, NONE, false)?;
            }
        }
        if spent.breaks < options.breaks {
            for &(one, other) in &self.rules.links {
                if !self.is_broken(one, other) {
                    self.break_link(one, other)?;
                }
            }
        }
        let (lose, double) = (spent.losses < options.losses, spent.duplicates < options.duplicates);
        self.lose_or_duplicate(lose, double)
    }

    /// Messages in flight are lost or duplicated, as far as the budgets allow either.
    #[inline]
    fn lose_or_duplicate(&mut self, lose: bool, double: bool) -> Result<(), Query> {
        let (numbered, tables) = (self.numbered, self.tables);
        if !lose && !double {
            return Ok(());
        }
        for (i, &message) in numbered.flight.iter().enumerate() {
            let row = numbered.flight[..i].iter().rev().take_while(|m| {
                tables.messages[**m as usize].channel == tables.messages[message as usize].channel
            });
            if row.into_iter().any(|m| *m == message) {
                continue;
            }
            if lose && may_arrive(numbered, i) {
                self.fault(LOST, message, NumberedAction::Lose(message, i as u32), i, NONE, false)?;
            }
            if double {
                let action = NumberedAction::Duplicate(message, i as u32);
                self.fault(DUPLICATED, message, action, NONE, i, false)?;
            }
        }
        Ok(())
    }

    /// A step of time passes for all processes.
    fn pass(&mut self, early: bool) -> Result<(), Query> {
        for local in self.locals.iter_mut() {
            if self.tables.locals[*local as usize].waits {
                let at = self.tables.act(*local, Inputs::PASS)?;
                *local = self.tables.outcomes[at as usize].local;
            }
        }
        self.fault(TIME_STEP, u32::from(early), NumberedAction::Pass, NONE, NONE, false)?;
        self.locals.clone_from(&self.numbered.locals);
        Ok(())
    }

    /// A local changes without a handler: the process crashes, or its application sends.
    fn without_handler(
        &mut self,
        place: u32,
        input: u32,
        action: NumberedAction,
    ) -> Result<(), Query> {
        let at = self.tables.act(self.numbered.locals[place as usize], input)?;
        let outcome = self.tables.outcomes[at as usize];
        let reaction = self.tables.react(self.numbered.environment, outcome.observation)?;
        self.locals[place as usize] = outcome.local;
        if matches!(action, NumberedAction::Crash(_)) && self.rules.options.detector {
            self.broadcast_news(place, false)?;
        }
        self.arrive(reaction, action, 0, (NONE, NONE), false);
        self.locals.clone_from(&self.numbered.locals);
        Ok(())
    }

    /// The link between two places breaks. If both processes are up, the detector makes each suspect the
    /// other.
    fn break_link(&mut self, one: u32, other: u32) -> Result<(), Query> {
        let is_up =
            |place: u32| self.tables.locals[self.numbered.locals[place as usize] as usize].up;
        if self.rules.options.detector && is_up(one) && is_up(other) {
            self.enqueue_news(one, self.rules.inputs.enqueue_news(other, false))?;
            self.enqueue_news(other, self.rules.inputs.enqueue_news(one, false))?;
        }
        let link = one * self.rules.inputs.n + other;
        self.fault(BREAK, link, NumberedAction::Break(link), NONE, NONE, false)?;
        self.locals.clone_from(&self.numbered.locals);
        Ok(())
    }

    fn is_broken(&self, one: u32, other: u32) -> bool {
        let broken = self.tables.environments[self.numbered.environment as usize].broken;
        broken != 0 && broken >> (one * self.rules.inputs.n + other) & 1 == 1
    }

    /// Sends news of `place` to every process that is up and linked with it.
    fn broadcast_news(&mut self, place: u32, up: bool) -> Result<(), Query> {
        for to in (0..self.rules.inputs.n).filter(|&to| to != place) {
            let is_up = self.tables.locals[self.locals[to as usize] as usize].up;
            if is_up && !self.is_broken(place, to) {
                self.enqueue_news(to, self.rules.inputs.enqueue_news(place, up))?;
            }
        }
        Ok(())
    }

    fn enqueue_news(&mut self, place: u32, news: u32) -> Result<(), Query> {
        let at = self.tables.act(self.locals[place as usize], news)?;
        let outcome = self.tables.outcomes[at as usize];
        debug_assert_eq!(outcome.observation, UNOBSERVED, "news on their way are not observed");
        self.locals[place as usize] = outcome.local;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_writer_writes_the_same_bytes_as_put() {
        let numbers = [0, 1, 127, 128, 300, 16_383, 16_384, 2_097_152, u32::MAX, 5, 0];
        for skip in 0..numbers.len() {
            for many in 0..=3 * numbers.len() {
                let row: Vec<u32> = numbers.iter().cycle().skip(skip).take(many).copied().collect();
                let mut plain = Vec::new();
                row.iter().for_each(|x| put(&mut plain, *x));
                let mut into = vec![0xff; 5 * many + WORD];
                let mut writer = Writer { into: &mut into, len: 0, word: 0, bits: 0 };
                row.iter().for_each(|x| writer.put(*x));
                let len = writer.finish();
                assert_eq!(into[..len], plain, "{row:?}");
                let zeros = len.next_multiple_of(WORD) - len;
                assert!(into[len..len + zeros].iter().all(|byte| *byte == 0), "{row:?}");
            }
        }
    }
}
