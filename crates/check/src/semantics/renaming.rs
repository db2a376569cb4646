//! The image of each value under each permutation of the places.
//!
//! A query and all its renamed forms (its *orbit*) are computed together, so the tables are closed under
//! renaming at any time. If the answers are not renamed in the same way, the permutation is refuted.

use konklave_process::Violation;

use super::{EndSituation, Semantics};
use crate::symmetry::{CLIENTS, JUDGES, SENDS, STARTS, STEPS, Symmetry};
use crate::tables::{
    BREAK, CUT, DUPLICATED, EARLY, LOST, Query, StepOutcome, TIME_STEP, Tables, UNDELIVERED,
    UNOBSERVED,
};

/// The numbers of a start state: locals, environment, messages in the order in which they were sent.
pub(super) type Row = (Vec<u32>, u32, Vec<u32>);

impl Semantics<'_> {
    /// Computes the answer to `query` and to all its renamed forms.
    pub(super) fn resolve_alike(
        &mut self,
        query: Query,
        symmetry: &mut Symmetry,
        tables: &mut Tables,
    ) {
        match query {
            Query::Act(actor, input) => self.act_alike(actor, input, symmetry, tables),
            Query::React(environment, observation) => {
                self.react_alike(environment, observation, symmetry, tables)
            }
        }
    }

    fn act_alike(&mut self, actor: u32, input: u32, symmetry: &mut Symmetry, tables: &mut Tables) {
        let begins: Vec<u32> = (0..symmetry.len())
            .map(|by| {
                let (actor, input) = match actor {
                    LOST | UNDELIVERED | DUPLICATED => (actor, symmetry.messages.get(input, by)),
                    CUT => (CUT, symmetry.channel(input, by)),
                    BREAK => (BREAK, symmetry.link(input, by)),
                    EARLY | TIME_STEP => (actor, input),
                    local => (symmetry.locals.get(local, by), symmetry.input(input, by)),
                };
                if tables.acts.get(actor, input).is_none() {
                    self.act(actor, input, tables);
                }
                tables.acts.get(actor, input).expect("it was worked out just now")
            })
            .collect();
        let is_local =
            ![LOST, UNDELIVERED, DUPLICATED, CUT, BREAK, EARLY, TIME_STEP].contains(&actor);
        for draw in 0.. {
            let outcomes = begins.iter().map(|begin| tables.outcomes[(begin + draw) as usize]);
            let outcomes: Vec<StepOutcome> = outcomes.collect();
            let first = outcomes[0];
            let others = outcomes.iter().enumerate();
            let unlike = others.filter(|(_, o)| {
                (o.last, o.observation == UNOBSERVED)
                    != (first.last, first.observation == UNOBSERVED)
            });
            symmetry.refute(unlike.map(|(by, _)| by), STEPS);
            if symmetry.is_refuted() {
                return;
            }
            if is_local {
                let orbit: Vec<u32> = outcomes.iter().map(|outcome| outcome.local).collect();
                learn_local(&orbit, STEPS, symmetry, tables);
            }
            if first.observation != UNOBSERVED {
                let orbit: Vec<u32> = outcomes.iter().map(|outcome| outcome.observation).collect();
                let refuted = symmetry.observations.learn(&orbit, &symmetry.products);
                symmetry.refute(refuted, STEPS);
            }
            if first.last || symmetry.is_refuted() {
                return;
            }
        }
    }

    fn react_alike(
        &mut self,
        environment: u32,
        observation: u32,
        symmetry: &mut Symmetry,
        tables: &mut Tables,
    ) {
        let numbers: Vec<u32> = (0..symmetry.len())
            .map(|by| {
                let environment = symmetry.environments.get(environment, by);
                let observation = symmetry.observations.get(observation, by);
                if tables.reacts.get(environment, observation).is_none() {
                    self.react(environment, observation, tables);
                }
                tables.reacts.get(environment, observation).expect("it was worked out just now")
            })
            .collect();
        let broken = |number: &u32| self.violations.get(number).map(|v| v.property);
        let judged = numbers.iter().enumerate();
        let unlike = judged.filter(|(_, number)| broken(number) != broken(&numbers[0]));
        symmetry.refute(unlike.map(|(by, _)| by), JUDGES);
        let of = |number: &u32| tables.reactions[*number as usize].environment;
        let orbit: Vec<u32> = numbers.iter().map(of).collect();
        learn_environment(&orbit, symmetry, tables);
        let sent: Vec<&[u32]> = numbers.iter().map(|number| &*self.sent[number]).collect();
        learn_messages(&sent, symmetry, tables);
    }

    /// Finds the start state that each permutation makes of each start state.
    pub(super) fn name_starts(&self, rows: &[Row], symmetry: &mut Symmetry, tables: &Tables) {
        for row in rows {
            let mut orbit = Vec::new();
            for by in 0..symmetry.len() {
                let found =
                    rows.iter().find(|other| self.starts_alike(rows, row, other, by, symmetry));
                match found {
                    Some(other) => orbit.push(other),
                    None => symmetry.refute([by], STARTS),
                }
            }
            if symmetry.is_refuted() {
                return;
            }
            for place in 0..row.0.len() as u32 {
                let at = |(by, row): (usize, &&Row)| row.0[symmetry.place(place, by) as usize];
                let locals: Vec<u32> = orbit.iter().enumerate().map(at).collect();
                learn_local(&locals, STARTS, symmetry, tables);
            }
            let environments: Vec<u32> =
                orbit.iter().map(|(_, environment, _)| *environment).collect();
            learn_environment(&environments, symmetry, tables);
            let flights: Vec<&[u32]> = orbit.iter().map(|(.., flight)| &**flight).collect();
            learn_messages(&flights, symmetry, tables);
        }
    }

    /// Whether `other` may be `row` renamed. If draws lead to several start states, values are compared.
    fn starts_alike(
        &self,
        rows: &[Row],
        row: &Row,
        other: &Row,
        by: usize,
        symmetry: &Symmetry,
    ) -> bool {
        let alike = |place: u32| {
            let one = self.locals.get(row.0[place as usize]);
            let two = self.locals.get(other.0[symmetry.place(place, by) as usize]);
            (&one.process, &one.timers, &one.saved) == (&two.process, &two.timers, &two.saved)
        };
        rows.len() == 1 || (0..row.0.len() as u32).all(alike)
    }

    /// Judges an end and all its renamed forms.
    pub(super) fn judge_ends_alike(
        &mut self,
        environment: u32,
        ended: EndSituation,
        symmetry: &mut Symmetry,
    ) {
        let property = |found: Option<Violation>| found.map(|violation| violation.property);
        let judged: Vec<_> = (0..symmetry.len())
            .map(|by| {
                let environment = symmetry.environments.get(environment, by);
                let alive = symmetry.alive(ended.alive, by);
                property(self.judged_end(environment, EndSituation { alive, ..ended }))
            })
            .collect();
        let unlike = (0..judged.len()).filter(|by| judged[*by] != judged[0]);
        symmetry.refute(unlike, JUDGES);
    }
}

fn learn_local(orbit: &[u32], why: &'static str, symmetry: &mut Symmetry, tables: &Tables) {
    let facts = |local: u32| tables.locals[local as usize];
    let fits = |by: &usize| symmetry.fits_local((facts(orbit[0]), facts(orbit[*by])), *by, tables);
    let unlike: Vec<usize> = (0..orbit.len()).filter(|by| !fits(by)).collect();
    symmetry.refute(unlike, why);
    if !symmetry.is_refuted() {
        let refuted = symmetry.locals.learn(orbit, &symmetry.products);
        symmetry.refute(refuted, why);
    }
}

fn learn_environment(orbit: &[u32], symmetry: &mut Symmetry, tables: &Tables) {
    let facts = |environment: u32| tables.environments[environment as usize];
    let fits =
        |by: &usize| symmetry.fits_environment((facts(orbit[0]), facts(orbit[*by])), *by, tables);
    let unlike: Vec<usize> = (0..orbit.len()).filter(|by| !fits(by)).collect();
    symmetry.refute(unlike, CLIENTS);
    if !symmetry.is_refuted() {
        let refuted = symmetry.environments.learn(orbit, &symmetry.products);
        symmetry.refute(refuted, CLIENTS);
    }
}

/// The k-th message of a channel is renamed to the k-th message of the renamed channel.
fn learn_messages(sent: &[&[u32]], symmetry: &mut Symmetry, tables: &Tables) {
    let channel = |message: &u32| tables.messages[*message as usize].channel;
    let unlike = (0..sent.len()).filter(|by| sent[*by].len() != sent[0].len());
    let unlike: Vec<usize> = unlike.collect();
    symmetry.refute(unlike, SENDS);
    for (i, message) in sent[0].iter().enumerate() {
        let before = sent[0][..i].iter().filter(|other| channel(other) == channel(message)).count();
        let mut orbit = Vec::new();
        for (by, row) in sent.iter().enumerate() {
            let renamed = symmetry.channel(channel(message), by);
            match row.iter().filter(|other| channel(other) == renamed).nth(before) {
                Some(other) => orbit.push(*other),
                None => symmetry.refute([by], SENDS),
            }
        }
        if symmetry.is_refuted() {
            return;
        }
        let refuted = symmetry.messages.learn(&orbit, &symmetry.products);
        symmetry.refute(refuted, SENDS);
    }
}
