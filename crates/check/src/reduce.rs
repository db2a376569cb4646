//! Partial-order reduction: which deliveries commute with every step that may come before them.
//!
//! If a delivery commutes with all of them, the search takes it alone and skips the states in which it
//! is postponed. A delivery that does not is *dependent*.
//!
//! Scenario: a message waits at a local. In a run left out, any input that the process was seen to
//! handle after the message may be handled before it instead.
//! Hazard: the two orders might differ in what clients and judges see, or in what happens later.
//! Rule: both orders are tried. They must lead to the same local, send the same messages and have the
//! same visible effects; and the postponed delivery must commute again one step later. A step that only
//! a run left out would make is tried here as well, and then counts as met.
//!
//! book/en/learn/checking.md says why this is sound.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::semantics::{Cause, Observation, Semantics, VisibleEffect};
use crate::tables::{OTHER, Reaction, StepOutcome, Tables};

/// The reduction gives up beyond this many tried steps for each step met: trying would take longer than
/// visiting all states.
const MOST_TRIED_PER_MET: usize = 4;
/// This many steps may be tried in any case.
const ALWAYS_TRIED: usize = 200_000;

/// Facts about commuting deliveries. They only grow: a dependent delivery stays dependent.
///
/// A *pair* is a local and a message that waits there. A *cursor* counts how much of a growing list has
/// been compared.
#[derive(Default)]
pub(crate) struct Commutation {
    /// For each pair, the cursor into the inputs that the local met after the message.
    pair_cursors: FxHashMap<(u32, u32), usize>,
    /// The pairs, in the order found.
    pair_order: Vec<(u32, u32)>,
    /// For each local, the cursor into its inputs up to which pairs were collected.
    local_cursors: Vec<usize>,
    /// For each pair, the pairs that become dependent with it.
    implied_dependent: FxHashMap<(u32, u32), Vec<(u32, u32)>>,
    dependent: FxHashSet<(u32, u32)>,
    /// Pairs with a visible effect: of the message itself, or of whichever of two steps comes second.
    visible_pairs: Vec<(u32, u32)>,
    /// Whether visible effects at two places were found not to commute.
    visible_order_matters: bool,
    /// For each observation, the number of its visible part; 0 if it has none.
    visible: Vec<u32>,
    /// Observations without a visible part to which a judge reacted all the same.
    judged: FxHashSet<u32>,
    /// For each environment and visible observation, the cursor into the observations that followed.
    reaction_cursors: FxHashMap<(u32, u32), usize>,
    environment_cursors: Vec<usize>,
    visible_reactions: Vec<(u32, u32)>,
    /// How many steps count as met only because runs left out would make them.
    implied: usize,
    gave_up: bool,
}

/// One outcome of each of two steps at one local, in both orders.
struct Diamond {
    /// The message first, then the other input.
    message: StepOutcome,
    other_after: StepOutcome,
    /// The other input first, then the message.
    other: StepOutcome,
    message_after: StepOutcome,
}

impl Commutation {
    /// The dependent deliveries, which must not be taken alone; none if the reduction gave up.
    pub(crate) fn dependent(&self) -> Option<FxHashSet<(u32, u32)>> {
        (!self.gave_up).then(|| self.dependent.clone())
    }

    /// Marks a pair as dependent, and all pairs that rely on it.
    fn mark_dependent(&mut self, pair: (u32, u32)) {
        let mut open = vec![pair];
        while let Some(pair) = open.pop() {
            if self.dependent.insert(pair) {
                open.extend(self.implied_dependent.remove(&pair).unwrap_or_default());
            }
        }
    }

    /// Marks all renamed forms of dependent pairs as dependent. So a delivery taken alone in one state may
    /// be taken alone in every state that it stands for.
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

    /// The visible part of an observation, as a number; 0 if it has none.
    fn visible_part(&self, observation: u32) -> u32 {
        if self.judged.contains(&observation) {
            u32::MAX - observation
        } else {
            self.visible[observation as usize]
        }
    }
}

impl Semantics<'_> {
    /// Compares all steps met so far; returns whether more deliveries are dependent than before.
    pub(crate) fn compare_all(&mut self, known: &mut Commutation, tables: &mut Tables) -> bool {
        let before = (known.dependent.len(), known.gave_up);
        loop {
            self.number_visible(known);
            let mut grown = self.find_judged(known, tables);
            grown |= self.compare_visible(known, tables);
            grown |= self.compare_steps(known, tables);
            grown |= known.mark_renamed_dependent(tables);
            if !grown || known.gave_up {
                return before != (known.dependent.len(), known.gave_up);
            }
        }
    }

    /// Numbers the visible parts of new observations.
    fn number_visible(&mut self, known: &mut Commutation) {
        for number in known.visible.len() as u32..self.observations() {
            let observation = self.observation_of(number).clone();
            let visible = match &observation {
                Observation::Step { place, cause, effects, .. } => {
                    let request = match cause {
                        Cause::Request(request) => Some(request.clone()),
                        Cause::Receipt(_) | Cause::Restart | Cause::Inner => None,
                    };
                    let is_sent = |s: &&VisibleEffect| matches!(s, VisibleEffect::Send(..));
                    let rest: Vec<_> = effects.iter().filter(|s| !is_sent(s)).cloned().collect();
                    let quiet = request.is_none() && rest.is_empty();
                    if quiet { 0 } else { self.visible_number(*place, request, rest) }
                }
                // With faults nothing is reduced, so these are never compared.
                Observation::Crash(_)
                | Observation::Lost { .. }
                | Observation::Duplicated(_)
                | Observation::AppMessage { .. }
                | Observation::Cut(_)
                | Observation::Break(_)
                | Observation::Early
                | Observation::Pass { .. } => u32::MAX / 2,
            };
            known.visible.push(visible);
        }
    }

    /// Looks for judges that reacted to an observation without a visible part. Such a step is never
    /// postponed.
    fn find_judged(&mut self, known: &mut Commutation, tables: &Tables) -> bool {
        let (mut grown, before) = (false, known.judged.len());
        known
            .environment_cursors
            .resize(self.observations_met.len().max(known.environment_cursors.len()), 0);
        for (environment, list) in self.observations_met.iter().enumerate() {
            let from = std::mem::replace(&mut known.environment_cursors[environment], list.len());
            for &observation in &list[from..] {
                let reaction = reaction(tables, environment as u32, observation);
                let same = reaction.environment == environment as u32 && !reaction.violated;
                if known.visible[observation as usize] == 0 && !same {
                    grown |= known.judged.insert(observation);
                }
                let by_message = matches!(
                    self.observation_of(observation),
                    Observation::Step { cause: Cause::Receipt(_), .. }
                );
                if known.visible[observation as usize] != 0 && by_message {
                    known.reaction_cursors.insert((environment as u32, observation), 0);
                    known.visible_reactions.push((environment as u32, observation));
                    grown = true;
                }
            }
        }
        if known.judged.len() > before {
            // Everything compared with these observations must be compared again.
            known
                .reaction_cursors
                .values_mut()
                .chain(known.pair_cursors.values_mut())
                .for_each(|seen| *seen = 0);
        }
        grown
    }

    /// In a run left out, the visible effects of a delivery come later, after visible effects at other
    /// places. Both orders must lead to the same environment.
    fn compare_visible(&mut self, known: &mut Commutation, tables: &mut Tables) -> bool {
        let (mut grown, mut at) = (false, 0);
        while !known.visible_order_matters && at < known.visible_reactions.len() {
            let (environment, observation) = known.visible_reactions[at];
            at += 1;
            let first = reaction(tables, environment, observation);
            let mut cursor = known.reaction_cursors[&(environment, observation)];
            if cursor == 0
                && !self.leaves_others_alone(environment, first.environment, observation, tables)
            {
                known.visible_order_matters = true;
                break;
            }
            cursor = cursor.max(1);
            while let Some(&other) = self
                .observations_met
                .get(first.environment as usize)
                .and_then(|list| list.get(cursor - 1))
            {
                cursor += 1;
                let is_visible =
                    known.visible.get(other as usize).is_none_or(|visible| *visible != 0);
                if !is_visible && !known.judged.contains(&other)
                    || self.place(observation) == self.place(other)
                {
                    continue;
                }
                grown = true;
                let then = reaction(tables, first.environment, other);
                let early = self.reaction_to(environment, other, tables);
                let late = self.reaction_to(early.environment, observation, tables);
                let same = then.environment == late.environment;
                let same_verdict =
                    first.violated || then.violated || !(early.violated || late.violated);
                if !(same && same_verdict) {
                    known.visible_order_matters = true;
                    break;
                }
            }
            known.reaction_cursors.insert((environment, observation), cursor);
        }
        if known.visible_order_matters {
            for pair in std::mem::take(&mut known.visible_pairs) {
                grown |= !known.dependent.contains(&pair);
                known.mark_dependent(pair);
            }
        }
        grown
    }

    /// Whether the client at the place of `observation` may not ask before it, and all other clients may
    /// ask the same before and after.
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

    /// Tries each pair with the inputs that its local meets afterwards.
    fn compare_steps(&mut self, known: &mut Commutation, tables: &mut Tables) -> bool {
        let mut grown = false;
        known.local_cursors.resize(self.inputs_met.len().max(known.local_cursors.len()), 0);
        for (local, list) in self.inputs_met.iter().enumerate() {
            let from = std::mem::replace(&mut known.local_cursors[local], list.len());
            for &message in list[from..].iter().filter(|input| **input < OTHER) {
                known.pair_cursors.insert((local as u32, message), 0);
                known.pair_order.push((local as u32, message));
                grown = true;
            }
        }
        for at in 0..known.pair_order.len() {
            let pair = known.pair_order[at];
            let met = tables.acts.len() - known.implied;
            if known.implied > ALWAYS_TRIED + MOST_TRIED_PER_MET * met {
                known.gave_up = true;
                return false;
            }
            if !known.dependent.contains(&pair) {
                grown |= self.compare(pair, known, tables);
            }
        }
        grown
    }

    /// Tries one pair with the inputs that are new since the last time.
    fn compare(
        &mut self,
        pair @ (local, message): (u32, u32),
        known: &mut Commutation,
        tables: &mut Tables,
    ) -> bool {
        let first = self.outcome_of(local, message, 0, tables);
        self.number_visible(known);
        let mut cursor = known.pair_cursors[&pair];
        let is_visible = known.visible_part(first.observation) != 0;
        if cursor == 0 {
            let idle =
                [local, first.local].iter().all(|l| !tables.locals[*l as usize].has_timers());
            let judged = known.judged.contains(&first.observation);
            if !first.last || !idle || judged || is_visible && known.visible_order_matters {
                known.mark_dependent(pair);
                return true;
            }
            if is_visible {
                known.visible_pairs.push(pair);
            }
        } else if known.judged.contains(&first.observation) {
            known.mark_dependent(pair);
            return true;
        }
        let begin = cursor;
        cursor = cursor.max(1);
        while let Some(&input) =
            self.inputs_met.get(first.local as usize).and_then(|list| list.get(cursor - 1))
        {
            cursor += 1;
            if !self.may_come_first(input, message, is_visible) {
                continue;
            }
            if !self.commutes(pair, input, known, tables) {
                known.mark_dependent(pair);
                return true;
            }
        }
        known.pair_cursors.insert(pair, cursor);
        cursor > begin.max(1)
    }

    /// Whether `input`, handled after `message`, could have been handled before it.
    fn may_come_first(&self, input: u32, message: u32, is_visible: bool) -> bool {
        if input >= OTHER {
            // After a visible delivery the client may ask because of it; before, it may not.
            return !is_visible;
        }
        let channel = |message: u32| self.in_flight(message).channel;
        let in_line = self.is_fifo() && channel(input) == channel(message);
        input != message && !in_line
    }

    /// Whether `message` and `input` have the same result in both orders, and `message` still commutes
    /// when it is postponed further.
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
                || !self.visible_alike(&diamond, pair, known)
            {
                return false;
            }
            put_offs.push(put_off);
            if other.last {
                break;
            }
        }
        // Only now is it certain that a run left out may take these steps.
        self.happens(local, input, known, tables);
        for put_off in put_offs.into_iter().filter(|put_off| *put_off != pair) {
            self.happens(put_off.0, message, known, tables);
            known.implied_dependent.entry(put_off).or_default().push(pair);
        }
        true
    }

    /// Whether both orders send the same messages; with FIFO, in the same order on each channel.
    fn sends_alike(&self, diamond: &Diamond) -> bool {
        let sends = |first: StepOutcome, second: StepOutcome| {
            let effects = [first.observation, second.observation].map(|observation| {
                match self.observation_of(observation) {
                    Observation::Step { effects, .. } => &**effects,
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
            let mut sends: Vec<_> = effects.into_iter().flatten().filter_map(sent).collect();
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

    /// Whether both orders have the same visible effects, at most one of the steps having any.
    fn visible_alike(
        &mut self,
        diamond: &Diamond,
        pair: (u32, u32),
        known: &mut Commutation,
    ) -> bool {
        self.number_visible(known);
        let visible = |outcome: StepOutcome| known.visible_part(outcome.observation);
        let (message, message_after) = (visible(diamond.message), visible(diamond.message_after));
        let (other, other_after) = (visible(diamond.other), visible(diamond.other_after));
        if message == message_after && other == other_after {
            return message == 0 || other == 0;
        }
        // The visible effect belongs to whichever of the two steps comes second.
        let swapped =
            message == other && message_after == other_after && (message == 0 || other_after == 0);
        if swapped && !known.visible_order_matters {
            known.visible_pairs.push(pair);
        }
        swapped && !known.visible_order_matters
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

    /// Counts this step as met, even if only runs left out make it.
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
