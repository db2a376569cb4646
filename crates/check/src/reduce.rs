//! Which deliveries commute with all that may happen before them.
//!
//! A delivery that does need not wait: it may be taken alone, and the states in which it is put off
//! need not be visited. Whether it does is found out for each local and message, by trying: if the
//! message is put off at this local, then whatever the process was seen to meet after it may come
//! first, and both orders must lead to the same local, send the same and show the same; and the same
//! must hold again one step later. Nothing is taken for granted of what was not visited: a step that
//! would have come first in a run left out is tried here, and then counts as seen.
//!
//! docs/checking.md says why this is sound.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::semantics::{Cause, Observation, Semantics, VisibleEffect};
use crate::tables::{OTHER, Reaction, StepOutcome, Tables};

/// Nothing is reduced if so many times more steps would have to be tried than were met: finding out
/// would take longer than visiting all states.
const MOST: usize = 4;
/// But so many may always be tried.
const FREE: usize = 200_000;

/// What is known of commutation. Grows only: what is dependent once stays so.
#[derive(Default)]
pub(crate) struct Commutation {
    /// How much of what a local met was looked at for each pair of a local and a message.
    pairs: FxHashMap<(u32, u32), usize>,
    /// The pairs in the order found.
    order: Vec<(u32, u32)>,
    /// Up to where the book of each local was searched for pairs.
    books: Vec<usize>,
    /// Which pairs are dependent if this one is.
    after: FxHashMap<(u32, u32), Vec<(u32, u32)>>,
    dependent: FxHashSet<(u32, u32)>,
    /// Pairs in which what shows comes about by either of two steps, or by the message itself.
    showing: Vec<(u32, u32)>,
    /// Whether what shows at one place was found not to commute with what shows at another.
    entangled: bool,
    /// For each observation: 0 if nothing shows, or a number for what does.
    shows: Vec<u32>,
    /// Signs without show that a judge noticed all the same.
    noisy: FxHashSet<u32>,
    /// How much of what followed was looked at, for an environment and a observation that shows.
    shown: FxHashMap<(u32, u32), usize>,
    shown_books: Vec<usize>,
    shown_order: Vec<(u32, u32)>,
    /// How many steps count as met only since runs left out would meet them.
    implied: usize,
    gave_up: bool,
}

/// One outcome of each of two steps at one local, in both orders.
struct Diamond {
    /// The message first, then the other.
    message: StepOutcome,
    other_after: StepOutcome,
    /// The other first.
    other: StepOutcome,
    message_after: StepOutcome,
}

impl Commutation {
    /// Which deliveries must not be taken alone; none if nothing may be reduced.
    pub(crate) fn dependent(&self) -> Option<FxHashSet<(u32, u32)>> {
        (!self.gave_up).then(|| self.dependent.clone())
    }

    /// Bars a pair and all that rely on it.
    fn mark_dependent(&mut self, pair: (u32, u32)) {
        let mut open = vec![pair];
        while let Some(pair) = open.pop() {
            if self.dependent.insert(pair) {
                open.extend(self.after.remove(&pair).unwrap_or_default());
            }
        }
    }

    /// Bars all that dependent pairs can be renamed to, so that what is taken alone in one state may be
    /// in all that it stands for.
    fn mark_renamed_dependent(&mut self, tables: &Tables) -> bool {
        let Some(symmetry) = tables.symmetry.as_ref().filter(|symmetry| !symmetry.is_refuted())
        else {
            return false;
        };
        let before = self.dependent.len();
        for (local, message) in self.dependent.clone() {
            for by in 1..symmetry.len() {
                self.mark_dependent((
                    symmetry.locals.get(local, by),
                    symmetry.messages.get(message, by),
                ));
            }
        }
        self.dependent.len() > before
    }

    /// What shows of `observation`; 0 if nothing does.
    fn show(&self, observation: u32) -> u32 {
        if self.noisy.contains(&observation) {
            u32::MAX - observation
        } else {
            self.shows[observation as usize]
        }
    }
}

impl Semantics<'_> {
    /// Finds out what commutes, of all that was met so far. Says whether more is dependent than before.
    pub(crate) fn compare_all(&mut self, known: &mut Commutation, tables: &mut Tables) -> bool {
        let before = (known.dependent.len(), known.gave_up);
        loop {
            self.see_shows(known);
            let mut grown = self.see_noise(known, tables);
            grown |= self.compare_shows(known, tables);
            grown |= self.compare_steps(known, tables);
            grown |= known.mark_renamed_dependent(tables);
            if !grown || known.gave_up {
                return before != (known.dependent.len(), known.gave_up);
            }
        }
    }

    /// Numbers what shows of the observations that are new.
    fn see_shows(&mut self, known: &mut Commutation) {
        for number in known.shows.len() as u32..self.observations() {
            let observation = self.observation_of(number).clone();
            let show = match &observation {
                Observation::Step { place, cause, shown, .. } => {
                    let request = match cause {
                        Cause::Request(request) => Some(request.clone()),
                        Cause::Receipt(_) | Cause::Restart | Cause::Inner => None,
                    };
                    let is_sent = |s: &&VisibleEffect| matches!(s, VisibleEffect::Send(..));
                    let rest: Vec<_> = shown.iter().filter(|s| !is_sent(s)).cloned().collect();
                    let quiet = request.is_none() && rest.is_empty();
                    if quiet { 0 } else { self.show_of(*place, request, rest) }
                }
                // Faults are not reduced, and are no steps that anything is compared with.
                Observation::Crash(_)
                | Observation::Lost { .. }
                | Observation::Duplicated(_)
                | Observation::AppMessage { .. }
                | Observation::Cut(_)
                | Observation::Break(_)
                | Observation::Early
                | Observation::Pass { .. } => u32::MAX / 2,
            };
            known.shows.push(show);
        }
    }

    /// Looks for judges who noticed what does not show. Such a step is never put off.
    fn see_noise(&mut self, known: &mut Commutation, tables: &Tables) -> bool {
        let (mut grown, before) = (false, known.noisy.len());
        known.shown_books.resize(self.observations_met.len().max(known.shown_books.len()), 0);
        for (environment, book) in self.observations_met.iter().enumerate() {
            let from = std::mem::replace(&mut known.shown_books[environment], book.len());
            for &observation in &book[from..] {
                let reaction = reaction(tables, environment as u32, observation);
                let same = reaction.environment == environment as u32 && !reaction.violated;
                if known.shows[observation as usize] == 0 && !same {
                    grown |= known.noisy.insert(observation);
                }
                let by_message = matches!(
                    self.observation_of(observation),
                    Observation::Step { cause: Cause::Receipt(_), .. }
                );
                if known.shows[observation as usize] != 0 && by_message {
                    known.shown.insert((environment as u32, observation), 0);
                    known.shown_order.push((environment as u32, observation));
                    grown = true;
                }
            }
        }
        if known.noisy.len() > before {
            // What was compared with it must be compared again.
            known.shown.values_mut().chain(known.pairs.values_mut()).for_each(|seen| *seen = 0);
        }
        grown
    }

    /// What shows when a message arrives may show later in a run left out: then whatever shows at
    /// other places comes first, and that must make no difference in the end.
    fn compare_shows(&mut self, known: &mut Commutation, tables: &mut Tables) -> bool {
        let (mut grown, mut at) = (false, 0);
        while !known.entangled && at < known.shown_order.len() {
            let (environment, observation) = known.shown_order[at];
            at += 1;
            let first = reaction(tables, environment, observation);
            let mut cursor = known.shown[&(environment, observation)];
            if cursor == 0
                && !self.leaves_others_alone(environment, first.environment, observation, tables)
            {
                known.entangled = true;
                break;
            }
            cursor = cursor.max(1);
            while let Some(&other) = self
                .observations_met
                .get(first.environment as usize)
                .and_then(|book| book.get(cursor - 1))
            {
                cursor += 1;
                let shows = known.shows.get(other as usize).is_none_or(|show| *show != 0);
                if !shows && !known.noisy.contains(&other)
                    || self.place(observation) == self.place(other)
                {
                    continue;
                }
                grown = true;
                let then = reaction(tables, first.environment, other);
                let early = self.reaction_to(environment, other, tables);
                let late = self.reaction_to(early.environment, observation, tables);
                let same = then.environment == late.environment;
                let told = first.violated || then.violated || !(early.violated || late.violated);
                if !(same && told) {
                    known.entangled = true;
                    break;
                }
            }
            known.shown.insert((environment, observation), cursor);
        }
        if known.entangled {
            for pair in std::mem::take(&mut known.showing) {
                grown |= !known.dependent.contains(&pair);
                known.mark_dependent(pair);
            }
        }
        grown
    }

    /// Whether nobody at the place of `observation` may ask before it, and all others may ask the same before
    /// and after.
    fn leaves_others_alone(
        &self,
        before: u32,
        after: u32,
        observation: u32,
        tables: &Tables,
    ) -> bool {
        let place = self.place(observation);
        let asks = |environment: u32| {
            let (begin, end) = tables.environments[environment as usize].asks;
            tables.asks[begin as usize..end as usize].iter()
        };
        let others = |environment| asks(environment).filter(|(at, _)| Some(*at) != place);
        asks(before).all(|(at, _)| Some(*at) != place) && others(before).eq(others(after))
    }

    /// Tries all pairs of a local and a message with what the local meets afterwards.
    fn compare_steps(&mut self, known: &mut Commutation, tables: &mut Tables) -> bool {
        let mut grown = false;
        known.books.resize(self.inputs_met.len().max(known.books.len()), 0);
        for (local, book) in self.inputs_met.iter().enumerate() {
            let from = std::mem::replace(&mut known.books[local], book.len());
            for &message in book[from..].iter().filter(|input| **input < OTHER) {
                known.pairs.insert((local as u32, message), 0);
                known.order.push((local as u32, message));
                grown = true;
            }
        }
        for at in 0..known.order.len() {
            let pair = known.order[at];
            let met = tables.acts.len() - known.implied;
            if known.implied > FREE + MOST * met {
                known.gave_up = true;
                return false;
            }
            if !known.dependent.contains(&pair) {
                grown |= self.compare(pair, known, tables);
            }
        }
        grown
    }

    /// Tries one pair with what was not yet tried with it.
    fn compare(
        &mut self,
        pair @ (local, message): (u32, u32),
        known: &mut Commutation,
        tables: &mut Tables,
    ) -> bool {
        let first = self.outcome_of(local, message, 0, tables);
        self.see_shows(known);
        let mut cursor = known.pairs[&pair];
        let shows = known.show(first.observation) != 0;
        if cursor == 0 {
            let idle =
                [local, first.local].iter().all(|l| !tables.locals[*l as usize].has_timers());
            let noisy = known.noisy.contains(&first.observation);
            if !first.last || !idle || noisy || shows && known.entangled {
                known.mark_dependent(pair);
                return true;
            }
            if shows {
                known.showing.push(pair);
            }
        } else if known.noisy.contains(&first.observation) {
            known.mark_dependent(pair);
            return true;
        }
        let begin = cursor;
        cursor = cursor.max(1);
        while let Some(&input) =
            self.inputs_met.get(first.local as usize).and_then(|book| book.get(cursor - 1))
        {
            cursor += 1;
            if !self.may_come_first(input, message, shows) {
                continue;
            }
            if !self.commutes(pair, input, known, tables) {
                known.mark_dependent(pair);
                return true;
            }
        }
        known.pairs.insert(pair, cursor);
        cursor > begin.max(1)
    }

    /// Whether `input`, met after `message`, could have been met before it.
    fn may_come_first(&self, input: u32, message: u32, shows: bool) -> bool {
        if input >= OTHER {
            // If the message shows, clients know of it, and this one may not ask before.
            return !shows;
        }
        let channel = |message: u32| self.in_flight(message).channel;
        let in_line = self.is_fifo() && channel(input) == channel(message);
        input != message && !in_line
    }

    /// Whether `message` and `input` lead to the same in both orders, and still do if `message` is put
    /// off further.
    fn commutes(
        &mut self,
        pair @ (local, message): (u32, u32),
        input: u32,
        known: &mut Commutation,
        tables: &mut Tables,
    ) -> bool {
        let first = self.outcome_of(local, message, 0, tables);
        let mut put_offs = Vec::new();
        for draw in 0.. {
            let other_after = self.outcome_of(first.local, input, draw, tables);
            let other = self.outcome_of(local, input, draw, tables);
            let message_after = self.outcome_of(other.local, message, 0, tables);
            let diamond = Diamond { message: first, other_after, other, message_after };
            let put_off = (other.local, message);
            if other.last != other_after.last
                || !message_after.last
                || message_after.local != other_after.local
                || known.dependent.contains(&put_off)
                || !self.sends_alike(&diamond)
                || !self.shows_alike(&diamond, pair, known)
            {
                return false;
            }
            put_offs.push(put_off);
            if other.last {
                break;
            }
        }
        // Only now it is known that it may happen so.
        self.happens(local, input, known, tables);
        for put_off in put_offs.into_iter().filter(|put_off| *put_off != pair) {
            self.happens(put_off.0, message, known, tables);
            known.after.entry(put_off).or_default().push(pair);
        }
        true
    }

    /// Whether both orders send the same: in any order, or where channels are FIFO, each channel in
    /// the same order.
    fn sends_alike(&self, diamond: &Diamond) -> bool {
        let sends = |first: StepOutcome, second: StepOutcome| {
            let shown = [first.observation, second.observation].map(|observation| {
                match self.observation_of(observation) {
                    Observation::Step { shown, .. } => &**shown,
                    _ => &[],
                }
            });
            let sent = |s: &'_ VisibleEffect| match s {
                VisibleEffect::Send(to, message) => Some((*to, message.clone())),
                VisibleEffect::SendOutsideGroup(_)
                | VisibleEffect::Indicate(_)
                | VisibleEffect::Unexpected(_)
                | VisibleEffect::OffClock(_) => None,
            };
            let mut sends: Vec<_> = shown.into_iter().flatten().filter_map(sent).collect();
            sends.sort_by_key(|(to, _)| *to);
            sends
        };
        let one = sends(diamond.message, diamond.other_after);
        let mut two = sends(diamond.other, diamond.message_after);
        if self.is_fifo() {
            return one == two;
        }
        one.len() == two.len()
            && one.iter().all(|sent| {
                let found = two.iter().position(|other| other == sent);
                found.map(|i| two.swap_remove(i)).is_some()
            })
    }

    /// Whether both orders show the same, at most one of the steps showing anything.
    fn shows_alike(
        &mut self,
        diamond: &Diamond,
        pair: (u32, u32),
        known: &mut Commutation,
    ) -> bool {
        self.see_shows(known);
        let show = |outcome: StepOutcome| known.show(outcome.observation);
        let (message, message_after) = (show(diamond.message), show(diamond.message_after));
        let (other, other_after) = (show(diamond.other), show(diamond.other_after));
        if message == message_after && other == other_after {
            return message == 0 || other == 0;
        }
        // What shows comes about by whichever of the two is the later.
        let swapped =
            message == other && message_after == other_after && (message == 0 || other_after == 0);
        if swapped && !known.entangled {
            known.showing.push(pair);
        }
        swapped && !known.entangled
    }

    fn outcome_of(
        &mut self,
        local: u32,
        input: u32,
        draw: u32,
        tables: &mut Tables,
    ) -> StepOutcome {
        let begin = self.outcomes_of(local, input, tables);
        tables.outcomes[(begin + draw) as usize]
    }

    /// This local meets this input, if only in runs left out.
    fn happens(&mut self, local: u32, input: u32, known: &mut Commutation, tables: &mut Tables) {
        if let Err(query) = tables.act(local, input) {
            let before = tables.acts.len();
            self.resolve(query, tables);
            known.implied += tables.acts.len() - before;
        }
    }

    fn reaction_to(&mut self, environment: u32, observation: u32, tables: &mut Tables) -> Reaction {
        if let Err(query) = tables.react(environment, observation) {
            self.resolve(query, tables);
        }
        reaction(tables, environment, observation)
    }

    fn place(&self, observation: u32) -> Option<u32> {
        match self.observation_of(observation) {
            Observation::Step { place, .. } => Some(*place),
            _ => None,
        }
    }
}

fn reaction(tables: &Tables, environment: u32, observation: u32) -> Reaction {
    let number = tables.react(environment, observation).expect("it was worked out before");
    tables.reactions[number as usize]
}
