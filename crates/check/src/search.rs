//! Breadth first through all states.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use konklave_process::{Application, Monitor, Process, Violation};
use rustc_hash::FxHashMap;

use crate::draws::Draws;
use crate::livelock;
use crate::model::{Action, Model};
use crate::state::State;
use crate::witness::{Log, Witness};

/// What was found.
#[derive(Clone, Debug)]
pub struct Report<P: Process> {
    /// The verdict.
    pub outcome: Outcome<P>,
    /// How many different states were reached.
    pub states: u64,
    /// How many steps lead from one to another.
    pub transitions: u64,
    /// The length of the longest shortest way to a state.
    pub depth: u32,
    /// How long it took.
    pub elapsed: Duration,
    /// The most memory the states took, about.
    pub peak_bytes: u64,
    /// How many of the states are ends.
    pub ends: u64,
    /// The fewest and the most messages of a run that ends, where they were counted.
    pub messages: Option<(u32, u32)>,
}

/// The verdict.
#[derive(Clone, Debug)]
pub enum Outcome<P: Process> {
    /// Every state was seen, and all is well.
    Exhausted,
    /// A property breaks, and this is how.
    Violated(Witness<P>),
    /// Nothing was found before the search had to give up.
    Bounded(Bounded),
}

/// Why the search gave up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bounded {
    /// Too many states.
    States,
    /// Too deep.
    Depth,
    /// Too much memory.
    Memory,
    /// It was told to.
    Interrupted,
}

/// How far the search has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// States reached.
    pub states: u64,
    /// Steps tried.
    pub transitions: u64,
    /// How deep.
    pub depth: u32,
    /// How many states wait to be looked at.
    pub frontier: u64,
}

/// How a state was first reached: from which, by which of its steps.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    from: u32,
    step: u32,
}

const START: u32 = u32::MAX;

/// All that the search remembers of the states it has seen.
pub(crate) struct Seen {
    /// From fingerprints to numbers.
    pub(crate) numbers: FxHashMap<u128, u32>,
    ways: Vec<Way>,
    /// Which steps lead where, if livelocks are looked for: steps without faults and timers.
    pub(crate) edges: Option<Vec<(u32, u32)>>,
    /// States in which a timer runs: time may help there.
    pub(crate) timed: Vec<u32>,
}

impl<P: Process, A: Application<P>, M: Monitor<P>> Model<P, A, M> {
    /// Goes through all states. `watch` is told from time to time how far it has come, and says
    /// whether to go on.
    pub fn explore(&self, mut watch: impl FnMut(Progress) -> bool) -> Report<P> {
        assert!(self.n() <= 64, "only small groups are explored");
        let begun = Instant::now();
        let mut search = Search {
            seen: Seen {
                numbers: FxHashMap::default(),
                ways: Vec::new(),
                edges: self.options.judges("livelock").then(Vec::new),
                timed: Vec::new(),
            },
            frontier: VecDeque::new(),
            frontier_bytes: 0,
            transitions: 0,
            depth: 0,
            ends: 0,
            messages: None,
            peak_bytes: 0,
        };
        let outcome = self.search(&mut search, &mut watch);
        let outcome = match outcome {
            Outcome::Exhausted => match livelock::find(&search.seen) {
                Some(number) => self.lasso(&search.seen, number).map_or(outcome, Outcome::Violated),
                None => outcome,
            },
            Outcome::Violated(_) | Outcome::Bounded(_) => outcome,
        };
        Report {
            outcome,
            states: search.seen.ways.len() as u64,
            transitions: search.transitions,
            depth: search.depth,
            elapsed: begun.elapsed(),
            peak_bytes: search.peak_bytes,
            ends: search.ends,
            messages: search.messages.filter(|_| self.options.count_messages),
        }
    }

    fn search(
        &self,
        search: &mut Search<P, A, M>,
        watch: &mut impl FnMut(Progress) -> bool,
    ) -> Outcome<P> {
        let (first, verdict) = self.initial(&mut None);
        search.seen.numbers.insert(first.fingerprint(self.options.fifo), 0);
        search.seen.ways.push(Way { from: START, step: 0 });
        if let Err(violation) = self.filter(verdict) {
            return Outcome::Violated(self.witness(&search.seen, 0, None, violation));
        }
        search.push(0, 0, first);
        let mut actions = Vec::new();
        while let Some((number, depth, state)) = search.pop() {
            search.depth = depth;
            if number % 4096 == 0 && !watch(search.progress()) {
                return Outcome::Bounded(Bounded::Interrupted);
            }
            self.actions(&state, &mut actions);
            if !actions.iter().any(|a| a.is_progress()) {
                search.ends += 1;
                let (least, most) = search.messages.unwrap_or((u32::MAX, 0));
                search.messages = Some((least.min(state.sent), most.max(state.sent)));
                if let Err(violation) = self.judge_end(&state) {
                    let witness = self.witness(&search.seen, number, None, violation);
                    return Outcome::Violated(witness);
                }
            }
            if depth == self.options.max_depth && !actions.is_empty() {
                return Outcome::Bounded(Bounded::Depth);
            }
            let mut step = 0;
            for &action in &actions {
                let mut draws = Draws::default();
                loop {
                    let mut next = state.clone();
                    let verdict = self.apply(&mut next, action, &mut draws, &mut None);
                    search.transitions += 1;
                    if let Err(violation) = self.filter(verdict) {
                        let last = Some(step);
                        let witness = self.witness(&search.seen, number, last, violation);
                        return Outcome::Violated(witness);
                    }
                    search.reach(self, number, step, depth + 1, next, !action.needs_time());
                    step += 1;
                    if !draws.advance() {
                        break;
                    }
                }
            }
            if search.seen.ways.len() as u64 > self.options.max_states {
                return Outcome::Bounded(Bounded::States);
            }
            if search.bytes() > self.options.max_bytes {
                return Outcome::Bounded(Bounded::Memory);
            }
        }
        Outcome::Exhausted
    }

    /// The steps that lead to state `number`.
    fn way(&self, seen: &Seen, number: u32) -> Vec<u32> {
        let (mut steps, mut at) = (Vec::new(), number);
        while seen.ways[at as usize].from != START {
            steps.push(seen.ways[at as usize].step);
            at = seen.ways[at as usize].from;
        }
        steps.reverse();
        steps
    }

    /// Makes these steps from the start and writes them down.
    fn redo(&self, steps: &[u32]) -> (State<P, A, M>, Log<P>, usize) {
        let mut log = Log::default();
        let (mut state, _) = self.initial(&mut Some(&mut log));
        let starts = log.moments.len();
        for step in steps {
            self.repeat(&mut state, *step, &mut Some(&mut log));
        }
        (state, log, starts)
    }

    /// The run that leads to state `number`, and one step further, written down.
    fn witness(
        &self,
        seen: &Seen,
        number: u32,
        last: Option<u32>,
        violation: Violation,
    ) -> Witness<P> {
        let mut steps = self.way(seen, number);
        steps.extend(last);
        let (_, log, starts) = self.redo(&steps);
        Witness { violation, moments: log.moments, starts, loops_from: None }
    }

    /// Makes the step with this number once more.
    pub(crate) fn repeat(
        &self,
        state: &mut State<P, A, M>,
        step: u32,
        log: &mut Option<&mut Log<P>>,
    ) -> Option<Action> {
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        let mut count = 0;
        for action in actions {
            let mut draws = Draws::default();
            loop {
                if count == step {
                    // The draws are known only when the step was made with them.
                    let _ = self.apply(state, action, &mut draws, log);
                    return Some(action);
                }
                let mut next = state.clone();
                let _ = self.apply(&mut next, action, &mut draws, &mut None);
                count += 1;
                if !draws.advance() {
                    break;
                }
            }
        }
        None
    }

    /// The run that comes to state `number` and from there goes round for ever.
    fn lasso(&self, seen: &Seen, number: u32) -> Option<Witness<P>> {
        let (mut state, mut log, starts) = self.redo(&self.way(seen, number));
        let round = self.way_back(&state)?;
        let begins = log.moments.len();
        for step in round {
            self.repeat(&mut state, step, &mut Some(&mut log));
        }
        let violation =
            Violation::new("livelock", "messages go round for ever, and nothing ends it");
        Some(Witness { violation, moments: log.moments, starts, loops_from: Some(begins) })
    }

    /// The shortest way from `home` back to itself, without faults.
    fn way_back(&self, home: &State<P, A, M>) -> Option<Vec<u32>> {
        let target = home.fingerprint(self.options.fifo);
        let mut seen: FxHashMap<u128, ()> = FxHashMap::default();
        let mut frontier = VecDeque::from([(home.clone(), Vec::new())]);
        let mut actions = Vec::new();
        while let Some((state, way)) = frontier.pop_front() {
            self.actions(&state, &mut actions);
            let mut step = 0;
            for &action in &actions {
                let mut draws = Draws::default();
                loop {
                    let mut next = state.clone();
                    let _ = self.apply(&mut next, action, &mut draws, &mut None);
                    if !action.needs_time() {
                        let mut way = way.clone();
                        way.push(step);
                        let print = next.fingerprint(self.options.fifo);
                        if print == target {
                            return Some(way);
                        }
                        if seen.insert(print, ()).is_none() {
                            frontier.push_back((next, way));
                        }
                    }
                    step += 1;
                    if !draws.advance() {
                        break;
                    }
                }
            }
        }
        None
    }
}

struct Search<P: Process, A, M: Monitor<P>> {
    seen: Seen,
    frontier: VecDeque<(u32, u32, State<P, A, M>)>,
    frontier_bytes: u64,
    transitions: u64,
    depth: u32,
    ends: u64,
    messages: Option<(u32, u32)>,
    peak_bytes: u64,
}

impl<P: Process, A: Application<P>, M: Monitor<P>> Search<P, A, M> {
    fn reach(
        &mut self,
        model: &Model<P, A, M>,
        from: u32,
        step: u32,
        depth: u32,
        state: State<P, A, M>,
        goes_on: bool,
    ) {
        let new = self.seen.ways.len() as u32;
        let number = *self.seen.numbers.entry(state.fingerprint(model.options.fifo)).or_insert(new);
        if let Some(edges) = &mut self.seen.edges
            && goes_on
        {
            edges.push((from, number));
        }
        if number == new {
            if !state.timers.is_empty() && self.seen.edges.is_some() {
                self.seen.timed.push(number);
            }
            self.seen.ways.push(Way { from, step });
            self.push(number, depth, state);
        }
    }

    fn push(&mut self, number: u32, depth: u32, state: State<P, A, M>) {
        self.frontier_bytes += state.bytes() as u64;
        self.frontier.push_back((number, depth, state));
        self.peak_bytes = self.peak_bytes.max(self.bytes());
    }

    fn pop(&mut self) -> Option<(u32, u32, State<P, A, M>)> {
        let popped = self.frontier.pop_front()?;
        self.frontier_bytes -= (popped.2.bytes() as u64).min(self.frontier_bytes);
        Some(popped)
    }

    fn bytes(&self) -> u64 {
        let numbers = self.seen.numbers.capacity() * (size_of::<(u128, u32)>() + 1);
        let ways = self.seen.ways.capacity() * size_of::<Way>();
        let edges = self.seen.edges.as_ref().map_or(0, |e| e.capacity() * 8);
        (numbers + ways + edges) as u64 + self.frontier_bytes
    }

    fn progress(&self) -> Progress {
        Progress {
            states: self.seen.ways.len() as u64,
            transitions: self.transitions,
            depth: self.depth,
            frontier: self.frontier.len() as u64,
        }
    }
}
