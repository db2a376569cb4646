//! Replay: makes the steps of a path again, by the plain rules, to turn numbers back into a run.

use konklave_process::Violation;
use rustc_hash::FxHashSet;

use crate::draws::Draws;
use crate::expand::{Expander, NumberedAction, NumberedState, Rules, Successor};
use crate::model::{Action, Model};
use crate::search::StatePath;
use crate::semantics::{ModelInput, Semantics};
use crate::shared::{Shared, read, write};
use crate::state::State;
use crate::symmetry::Scratch;
use crate::tables::{Inputs, Tables};
use crate::witness::{Witness, WitnessRecorder};

/// Is called with each successor.
pub(crate) type Visitor<'a> = dyn FnMut(Successor<'_>, &Tables, &Rules) + 'a;

/// A run in replay: its current state by both rules, and all that happened.
struct ReplayedRun {
    state: State,
    numbered: NumberedState,
    log: WitnessRecorder,
    starts: usize,
    /// The violation by the last step, if any.
    broken: Option<Violation>,
}

/// Calls `each` with every successor, after computing the missing table entries.
pub(crate) fn for_each_successor(
    numbered: &NumberedState,
    shared: &Shared,
    semantics: &mut Semantics<'_>,
    each: &mut Visitor<'_>,
) {
    let rules = &shared.rules;
    let mut tables = write(&shared.tables);
    let mut expander = Expander::default();
    while let Err(query) = expander.expand(numbered, &tables, rules, &mut |_| {}) {
        semantics.resolve(query, &mut tables);
    }
    let known = expander.expand(numbered, &tables, rules, &mut |next| each(next, &tables, rules));
    debug_assert!(known.is_ok(), "everything was worked out just now");
}

/// Replays paths of a finished search.
pub(crate) struct Replay<'a, 'm> {
    model: &'m Model,
    shared: &'a Shared,
    semantics: &'a mut Semantics<'m>,
    /// With symmetry: the dependent deliveries, in effect only while a canonical state is expanded. The states
    /// it stands for are expanded without reduction, since another message may come first there.
    dependent: Option<FxHashSet<(u32, u32)>>,
}

impl<'a, 'm> Replay<'a, 'm> {
    pub(crate) fn new(
        model: &'m Model,
        shared: &'a Shared,
        semantics: &'a mut Semantics<'m>,
    ) -> Self {
        let mut tables = write(&shared.tables);
        let dependent = if tables.symmetry.is_some() { tables.dependent.take() } else { None };
        Self { model, shared, semantics, dependent }
    }

    /// The run along this path.
    pub(crate) fn witness(&mut self, path: StatePath) -> Witness {
        let StatePath { mut violation, start, steps, cycle } = path;
        let mut run = self.redo(start, &steps);
        if self.is_renamed() {
            // The violation was found in a renamed run: find it again in the run that is shown.
            let mut tables = write(&self.shared.tables);
            let (locals, environment) = (&run.numbered.locals, run.numbered.environment);
            let end = self.semantics.judge_end(locals, environment, &mut tables);
            let same = |found: &Violation| found.property == violation.property;
            violation = run.broken.take().or(end).filter(same).unwrap_or(violation);
        }
        let mut loops_from = None;
        if let Some(cycle) = cycle {
            loops_from = Some(run.log.moments.len());
            let before = run.numbered.clone();
            for step in cycle {
                self.make_step(&mut run, step);
            }
            assert_eq!(run.numbered, before, "the cycle leads back to the state where it began");
        }
        Witness { violation, moments: run.log.moments, starts: run.starts, loops_from }
    }

    /// Makes these steps from the start and records them.
    fn redo(&mut self, start: u32, steps: &[u32]) -> ReplayedRun {
        let mut draws = Draws::default();
        for _ in 0..start {
            let _ = self.model.initial(&mut draws, &mut None);
            draws.advance();
        }
        let mut log = WitnessRecorder::default();
        let (state, _) = self.model.initial(&mut draws, &mut Some(&mut log));
        let starts = log.moments.len();
        let numbered = self.semantics.number_state(
            &state,
            &mut write(&self.shared.tables),
            &self.shared.rules,
        );
        let mut redone = ReplayedRun { state, numbered, log, starts, broken: None };
        for step in steps {
            let step =
                if self.is_renamed() { self.renamed(&redone.numbered, *step) } else { *step };
            self.make_step(&mut redone, step);
        }
        redone
    }

    fn is_renamed(&self) -> bool {
        read(&self.shared.tables).symmetry.is_some()
    }

    /// The index of the step of `numbered` that corresponds to `step` of its canonical form.
    fn renamed(&mut self, numbered: &NumberedState, step: u32) -> u32 {
        let mut scratch = Scratch::of(numbered.clone());
        let rules = &self.shared.rules;
        let canonical = |tables: &Tables, scratch: &mut Scratch| {
            let symmetry = tables.symmetry.as_ref().expect("some stand for others");
            symmetry.canonical(tables, rules, scratch)
        };
        let by = canonical(&read(&self.shared.tables), &mut scratch);
        let (mut count, mut wanted) = (0, None);
        write(&self.shared.tables).dependent = self.dependent.take();
        for_each_successor(
            &scratch.best,
            self.shared,
            self.semantics,
            &mut |next, tables, rules| {
                if count == step {
                    wanted = Some((next.numbered(tables, rules), next.draw, next.violated));
                }
                count += 1;
            },
        );
        self.dependent = write(&self.shared.tables).dependent.take();
        let (mut count, mut found) = (0, None);
        for_each_successor(numbered, self.shared, self.semantics, &mut |next, tables, rules| {
            let symmetry = tables.symmetry.as_ref().expect("some stand for others");
            let there = symmetry.rename(&next.numbered(tables, rules), by, tables, rules);
            let there = there.map(|there| (there, next.draw, next.violated));
            if found.is_none() && wanted.is_some() && wanted == there {
                found = Some(count);
            }
            count += 1;
        });
        found
            .expect("every step of a canonical state has a counterpart in the states it stands for")
    }

    /// Makes one more step, by both rules, and compares the states.
    fn make_step(&mut self, run: &mut ReplayedRun, step: u32) {
        let (mut count, mut made) = (0, None);
        for_each_successor(
            &run.numbered,
            self.shared,
            self.semantics,
            &mut |next, tables, rules| {
                if count == step {
                    let broken = next.violated.then_some(next.reaction);
                    made = Some((next.action, next.draw, next.numbered(tables, rules), broken));
                }
                count += 1;
            },
        );
        let (action, draw, numbered, broken) =
            made.expect("a step that was made can be made again");
        run.broken = broken.map(|reaction| self.semantics.violation(reaction));
        let plain = self.action(&run.state, action);
        let mut draws = Draws::default();
        for _ in 0..draw {
            let mut other = run.state.clone();
            let _ = self.model.apply(&mut other, plain, &mut draws, &mut None);
            draws.advance();
        }
        let _ = self.model.apply(&mut run.state, plain, &mut draws, &mut Some(&mut run.log));
        let found = self.semantics.number_state(
            &run.state,
            &mut write(&self.shared.tables),
            &self.shared.rules,
        );
        assert_eq!(found, numbered, "both ways to make a step lead to the same state");
        run.numbered = numbered;
    }

    /// The same action for the plain rules.
    fn action(&self, state: &State, action: NumberedAction) -> Action {
        let found = |message: u32| {
            let in_flight = self.semantics.in_flight(message);
            let same = state.flight.iter().position(|f| {
                (f.channel, &f.content, &f.tag)
                    == (in_flight.channel, &in_flight.content, &in_flight.tag)
            });
            same.expect("the message is in flight") as u32
        };
        let exact = |message: u32, i: u32| if self.model.options.fifo { i } else { found(message) };
        let n = self.model.n();
        match action {
            NumberedAction::Deliver(message) => Action::Deliver(found(message)),
            NumberedAction::HandleInput(place, input)
                if input < self.shared.rules.inputs.first_model_input() =>
            {
                let known = input - Inputs::NEWS - 2 * n;
                let peer = self.model.group.id(known as usize / 2);
                let news = (place, peer, known % 2 == 1);
                let at = state.news.iter().position(|n| *n == news);
                Action::Learn(at.expect("the news are in flight") as u32)
            }
            NumberedAction::HandleInput(place, input) => match self.semantics.model_input(input) {
                ModelInput::Request(_) => Action::Ask(place),
                ModelInput::Timer(timer) => {
                    let at = state.timers.iter().position(|t| (t.0, &t.1) == (place, timer));
                    Action::Fire(at.expect("the timer runs") as u32)
                }
            },
            NumberedAction::Pass => Action::Pass,
            NumberedAction::AppMessage(from, to) => Action::AppMessage(from, to),
            NumberedAction::Crash(place) => Action::Crash(place),
            NumberedAction::Restart(place) => Action::Restart(place),
            NumberedAction::Cut(channel) => Action::Cut(channel / n, channel % n),
            NumberedAction::Break(link) => Action::Break(link / n, link % n),
            NumberedAction::Lose(message, i) => Action::Lose(exact(message, i)),
            NumberedAction::Duplicate(message, i) => Action::Duplicate(exact(message, i)),
        }
    }
}
