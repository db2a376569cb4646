//! What the search asks.

use std::hash::{Hash, Hasher};

use konklave_process::{Violation, judge_rest};
use rustc_hash::FxHasher;

use super::{Ended, Workshop};
use crate::craft::Craft;
use crate::draws::Draws;
use crate::expand::{Node, Rules};
use crate::reduce::Commutation;
use crate::tables::{BREAK, CUT, DOUBLED, EARLY, LOST, Miss, OTHER, OVER, PASSED, Tables, UNHEARD};

impl Craft for Workshop<'_> {
    fn starts(&mut self, tables: &mut Tables, rules: &Rules) -> Vec<(Node, Option<Violation>)> {
        let (mut draws, mut starts, mut rows) = (Draws::default(), Vec::new(), Vec::new());
        loop {
            let (state, verdict) = self.model.initial(&mut draws, &mut None);
            let violation = self.model.filter(verdict).err();
            starts.push((self.node_of(&state, tables, rules), violation));
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

    fn forget(&mut self) {
        *self = Self::new(self.model);
    }

    fn commute(&mut self, known: &mut Commutation, tables: &mut Tables) -> bool {
        self.compare_all(known, tables)
    }

    fn resolve(&mut self, miss: Miss, tables: &mut Tables) {
        // Once it is refuted all begins again, and names are of no more use.
        if let Some(mut symmetry) = tables.symmetry.take_if(|symmetry| !symmetry.is_refuted()) {
            self.resolve_alike(miss, &mut symmetry, tables);
            tables.symmetry = Some(symmetry);
            return;
        }
        match miss {
            Miss::Act(actor, input) => self.act(actor, input, tables),
            Miss::React(ambient, sign) => self.react(ambient, sign, tables),
        }
    }

    fn knows(&self, miss: Miss) -> bool {
        let has = |number: u32, many: usize| (number as usize) < many;
        match miss {
            Miss::Act(actor, input) => {
                let is_message = has(input, self.letters.things.len());
                let is_own = input.checked_sub(self.inputs.own());
                let is_input = is_own.map_or(input >= OTHER, |own| has(own, self.own.things.len()));
                match actor {
                    LOST | UNHEARD | DOUBLED => is_message,
                    CUT | BREAK => has(input, (self.inputs.n * self.inputs.n) as usize),
                    EARLY | PASSED => true,
                    local => has(local, self.locals.things.len()) && (is_message || is_input),
                }
            }
            Miss::React(ambient, sign) => {
                has(ambient, self.ambients.things.len()) && has(sign, self.signs.things.len())
            }
        }
    }

    fn digest(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.locals.things.hash(&mut hasher);
        self.letters.things.hash(&mut hasher);
        self.ambients.things.hash(&mut hasher);
        self.own.things.hash(&mut hasher);
        self.signs.things.hash(&mut hasher);
        hasher.finish()
    }

    fn violation(&self, reaction: u32) -> Violation {
        if reaction == OVER {
            let most = self.model.options.most_messages.unwrap_or_default();
            return Violation::new("bound", format!("more than {most} messages"));
        }
        self.violations[&reaction].clone()
    }

    fn judge_end(
        &mut self,
        locals: &[u32],
        ambient: u32,
        tables: &mut Tables,
    ) -> Option<Violation> {
        let mut symmetry = tables.symmetry.take();
        let facts = |local: &u32| tables.locals[*local as usize];
        let up = locals.iter().filter(|l| facts(l).up);
        let alive = up.clone().fold(0, |set, l| set | 1u64 << facts(l).place);
        let stopped = locals.iter().any(|l| facts(l).waits);
        let ended = Ended { alive, stopped };
        if let Some(symmetry) = &mut symmetry {
            self.judge_ends_alike(ambient, ended, symmetry);
        }
        let violation = self.judged_end(ambient, ended);
        let restless = up.map(facts).find(|facts| !facts.at_rest);
        tables.symmetry = symmetry;
        let restless = restless.map(|facts| self.model.group.id(facts.place as usize));
        violation.or_else(|| self.model.filter(judge_rest(!stopped, restless)).err())
    }

    fn bytes(&self) -> usize {
        self.locals.bytes() + self.letters.bytes() + self.ambients.bytes() + self.signs.bytes()
    }
}
