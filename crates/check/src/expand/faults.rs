//! The faults that may follow a state, the passing of time, and the news of a failure detector.

use super::{Expansion, NONE, NumberedAction, NumberedState, Rules, Successor, may_arrive};
use crate::options::Situation;
use crate::tables::{BREAK, CUT, DUPLICATED, Inputs, LOST, Query, TIME_STEP, Tables, UNOBSERVED};

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

impl<F: FnMut(Successor<'_>)> Expansion<'_, F> {
    /// Enumerates the faults that the budgets still allow.
    pub(super) fn faults(&mut self) -> Result<(), Query> {
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
    pub(super) fn pass(&mut self, early: bool) -> Result<(), Query> {
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

    pub(super) fn is_broken(&self, one: u32, other: u32) -> bool {
        let broken = self.tables.environments[self.numbered.environment as usize].broken;
        broken != 0 && broken >> (one * self.rules.inputs.n + other) & 1 == 1
    }

    /// Sends news of `place` to every process that is up and linked with it.
    pub(super) fn broadcast_news(&mut self, place: u32, up: bool) -> Result<(), Query> {
        for to in (0..self.rules.inputs.n).filter(|&to| to != place) {
            let is_up = self.tables.locals[self.locals[to as usize] as usize].up;
            if is_up && !self.is_broken(place, to) {
                self.enqueue_news(to, self.rules.inputs.enqueue_news(place, up))?;
            }
        }
        Ok(())
    }

    pub(super) fn enqueue_news(&mut self, place: u32, news: u32) -> Result<(), Query> {
        let at = self.tables.act(self.locals[place as usize], news)?;
        let outcome = self.tables.outcomes[at as usize];
        debug_assert_eq!(outcome.observation, UNOBSERVED, "news on their way are not observed");
        self.locals[place as usize] = outcome.local;
        Ok(())
    }
}
