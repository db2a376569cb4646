//! The interface of the search: it asks, and the answers go to the tables.

use std::hash::{Hash, Hasher};

use konklave_process::Violation;
use rustc_hash::FxHasher;

use super::{EndSituation, Semantics};
use crate::draws::Draws;
use crate::expand::{NumberedState, Rules};
use crate::reduce::Commutation;
use crate::tables::{
    BREAK, CUT, DUPLICATED, EARLY, LOST, OTHER, OVER_BOUND, Query, TIME_STEP, Tables, UNDELIVERED,
};

impl Semantics<'_> {
    /// The states in which all members have started, one for each series of draws, each with its
    /// violation if it has one.
    pub(crate) fn starts(
        &mut self,
        tables: &mut Tables,
        rules: &Rules,
    ) -> Vec<(NumberedState, Option<Violation>)> {
        let (mut draws, mut starts, mut rows) = (Draws::default(), Vec::new(), Vec::new());
        loop {
            let (state, verdict) = self.model.initial(&mut draws, &mut None);
            let violation = self.model.filter(verdict).err();
            starts.push((self.number_state(&state, tables, rules), violation));
            rows.push(self.numbers(&state, tables));
            if !draws.advance() {
                break;
            }
        }
        if let Some(mut symmetry) = tables.symmetry.take() {
            self.name_starts(&rows, &mut symmetry, tables);
            tables.symmetry = Some(symmetry);
        }
        starts
    }

    /// Forgets all numbers.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.model);
    }

    /// Compares the deliveries that were taken to commute; returns whether some of them do not.
    pub(crate) fn commute(&mut self, known: &mut Commutation, tables: &mut Tables) -> bool {
        self.compare_all(known, tables)
    }

    /// Computes the table entry that `query` asks for.
    pub(crate) fn resolve(&mut self, query: Query, tables: &mut Tables) {
        // After a refutation the search restarts with new numbers, so images are no longer needed.
        if let Some(mut symmetry) = tables.symmetry.take_if(|symmetry| !symmetry.is_refuted()) {
            self.resolve_alike(query, &mut symmetry, tables);
            tables.symmetry = Some(symmetry);
            return;
        }
        match query {
            Query::Act(actor, input) => self.act(actor, input, tables),
            Query::React(environment, observation) => self.react(environment, observation, tables),
        }
    }

    /// Whether every number in `query` exists. It does, unless the query is from another model.
    pub(crate) fn knows(&self, query: Query) -> bool {
        let has = |number: u32, many: usize| (number as usize) < many;
        match query {
            Query::Act(actor, input) => {
                let is_message = has(input, self.messages.values.len());
                let is_own = input.checked_sub(self.inputs.first_model_input());
                let is_input =
                    is_own.map_or(input >= OTHER, |own| has(own, self.model_inputs.values.len()));
                match actor {
                    LOST | UNDELIVERED | DUPLICATED => is_message,
                    CUT | BREAK => has(input, (self.inputs.n * self.inputs.n) as usize),
                    EARLY | TIME_STEP => true,
                    local => has(local, self.locals.values.len()) && (is_message || is_input),
                }
            }
            Query::React(environment, observation) => {
                has(environment, self.environments.values.len())
                    && has(observation, self.observations.values.len())
            }
        }
    }

    /// A hash of all numbered values, in their order.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.locals.values.hash(&mut hasher);
        self.messages.values.hash(&mut hasher);
        self.environments.values.hash(&mut hasher);
        self.model_inputs.values.hash(&mut hasher);
        self.observations.values.hash(&mut hasher);
        hasher.finish()
    }

    /// The violation of a reaction that has one.
    pub(crate) fn violation(&self, reaction: u32) -> Violation {
        if reaction == OVER_BOUND {
            let most = self.model.options.most_messages.unwrap_or_default();
            return Violation::new("bound", format!("more than {most} messages"));
        }
        self.violations[&reaction].clone()
    }

    /// Judges an end: a state with these locals, in which nothing more can happen.
    pub(crate) fn judge_end(
        &mut self,
        locals: &[u32],
        environment: u32,
        tables: &mut Tables,
    ) -> Option<Violation> {
        let mut symmetry = tables.symmetry.take();
        let facts = |local: &u32| tables.locals[*local as usize];
        let up = locals.iter().filter(|l| facts(l).up);
        let alive = up.clone().fold(0, |set, l| set | 1u64 << facts(l).place);
        let stopped = locals.iter().any(|l| facts(l).waits);
        let ended = EndSituation { alive, stopped };
        if let Some(symmetry) = &mut symmetry {
            self.judge_ends_alike(environment, ended, symmetry);
        }
        let violation = self.judged_end(environment, ended);
        let restless = up.map(facts).find(|facts| !facts.at_rest);
        tables.symmetry = symmetry;
        let restless = restless.map(|facts| facts.place);
        violation.or_else(|| self.model.judge_rest(!stopped, restless).err())
    }

    /// About how many bytes all values take, without the heap memory they own.
    pub(crate) fn bytes(&self) -> usize {
        self.locals.bytes()
            + self.messages.bytes()
            + self.environments.bytes()
            + self.observations.bytes()
    }
}
