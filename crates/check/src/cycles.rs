//! Runs that never end: livelock and starvation.
//!
//! Both are read off the strongly connected components of the graph of steps that need neither faults nor
//! time. Most models have no cycle of such steps: the search notes whether such a step ever led back to an
//! earlier or the current level. If none did, there is nothing to do here.

use std::collections::VecDeque;

use konklave_process::Violation;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::expand::{Expander, NumberedAction, NumberedState};
use crate::replay::for_each_successor;
use crate::report::Bounded;
use crate::search::{Search, SearchVerdict, StatePath};
use crate::shared::read;
use crate::store::{FIRST, SHARD_BITS, fingerprint};
use crate::tables::Tables;

/// Progress is reported each time this many states are expanded.
const PROGRESS_EVERY: usize = 1 << 16;

/// All states and the steps between them that need neither faults nor time.
struct Graph {
    /// For each state, the index of its first step in `steps`.
    first: Vec<u32>,
    /// The state a step leads to, and the index of the step among all successors of its state.
    steps: Vec<(u32, u32)>,
    /// The steps (by index) that differ from the step before only in the answers of `choose`.
    other_answers: FxHashSet<u32>,
    /// For each state, whether a timer runs: time may help there.
    timed: Vec<bool>,
    /// For each state, whether a client must make a request.
    asked: Vec<bool>,
    /// The steps (by index) that are requests which clients need not make.
    voluntary: FxHashSet<u32>,
    /// For each state, the places whose clients wait, as a bit set.
    waiting: Vec<u64>,
    /// For each shard, the addresses of its states, in their order.
    places: Vec<Vec<u32>>,
}

impl Graph {
    /// The graph of `n` states before any of them is expanded.
    fn without_steps(n: usize) -> Self {
        Self {
            first: vec![0],
            steps: Vec::new(),
            other_answers: FxHashSet::default(),
            timed: vec![false; n],
            asked: vec![false; n],
            voluntary: FxHashSet::default(),
            waiting: vec![0; n],
            places: Vec::new(),
        }
    }

    fn steps(&self, state: u32) -> &[(u32, u32)] {
        let (begin, end) = (self.first[state as usize], self.first[state as usize + 1]);
        &self.steps[begin as usize..end as usize]
    }

    /// The strongly connected components that have a cycle, of the states in which `is_in` and the
    /// steps that are not `excluded`. Each in order, the one with the first state first.
    fn components(&self, is_in: &dyn Fn(u32) -> bool, excluded: &FxHashSet<u32>) -> Vec<Vec<u32>> {
        const NEW: u32 = u32::MAX;
        let n = self.timed.len();
        let (mut index, mut low) = (vec![NEW; n], vec![0; n]);
        let mut on_stack = vec![false; n];
        let (mut stack, mut calls, mut count) = (Vec::new(), Vec::new(), 0);
        let mut found = Vec::new();
        for root in (0..n as u32).filter(|&s| is_in(s)) {
            if index[root as usize] != NEW {
                continue;
            }
            calls.push((root, self.first[root as usize]));
            while let Some((state, at)) = calls.pop() {
                let this = state as usize;
                if index[this] == NEW {
                    (index[this], low[this]) = (count, count);
                    count += 1;
                    stack.push(state);
                    on_stack[this] = true;
                }
                let rest = &self.steps[at as usize..self.first[this + 1] as usize];
                let unseen = (at..).zip(rest).position(|(i, &(to, _))| {
                    if !is_in(to) || excluded.contains(&i) {
                        return false;
                    }
                    if index[to as usize] == NEW {
                        return true;
                    }
                    if on_stack[to as usize] {
                        low[this] = low[this].min(index[to as usize]);
                    }
                    false
                });
                if let Some(i) = unseen {
                    calls.push((state, at + i as u32));
                    let to = rest[i].0;
                    calls.push((to, self.first[to as usize]));
                    continue;
                }
                if let Some((above, _)) = calls.last() {
                    low[*above as usize] = low[*above as usize].min(low[this]);
                }
                if low[this] == index[this] {
                    let begin =
                        stack.iter().rposition(|s| *s == state).expect("it is on the stack");
                    let mut component = stack.split_off(begin);
                    component.iter().for_each(|s| on_stack[*s as usize] = false);
                    component.sort_unstable();
                    let mut own = self.open_steps(state, excluded);
                    if component.len() > 1 || own.any(|(_, (to, _))| to == state) {
                        found.push(component);
                    }
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// The steps of a state that are not `excluded`, each with its place among all steps.
    fn open_steps<'a>(
        &'a self,
        state: u32,
        excluded: &'a FxHashSet<u32>,
    ) -> impl Iterator<Item = (u32, (u32, u32))> + 'a {
        let begin = self.first[state as usize];
        (begin..).zip(self.steps(state).iter().copied()).filter(|(i, _)| !excluded.contains(i))
    }

    /// As [`Graph::components`], but only components that chance cannot leave. If one answer of `choose`
    /// leads out of a component, a run that repeats this step leaves it some day. Such steps are
    /// excluded, and the components of the rest are computed again.
    fn closed_to_chance(&self, is_in: &dyn Fn(u32) -> bool) -> (Vec<Vec<u32>>, FxHashSet<u32>) {
        let mut excluded = FxHashSet::default();
        let (mut found, mut open) = (Vec::new(), self.components(is_in, &excluded));
        while let Some(component) = open.pop() {
            let inside: FxHashSet<u32> = component.iter().copied().collect();
            let before = excluded.len();
            for &state in &component {
                self.exclude_chance(state, &inside, &mut excluded);
            }
            if excluded.len() == before {
                found.push(component);
            } else {
                open.extend(self.components(&|s| inside.contains(&s), &excluded));
            }
        }
        found.sort_unstable();
        (found, excluded)
    }

    /// Excludes the steps of `state` if some of their answers lead out of `inside`.
    fn exclude_chance(&self, state: u32, inside: &FxHashSet<u32>, excluded: &mut FxHashSet<u32>) {
        let (mut begin, end) = (self.first[state as usize], self.first[state as usize + 1]);
        while begin < end {
            let mut after = begin + 1;
            while after < end && self.other_answers.contains(&after) {
                after += 1;
            }
            let leads_out = |i: u32| !inside.contains(&self.steps[i as usize].0);
            if after > begin + 1 && (begin..after).any(leads_out) {
                excluded.extend(begin..after);
            }
            begin = after;
        }
    }

    /// The shortest path within `component` from state `from` up to and including a `wanted` step. It has
    /// at least one step. Returns the steps and the last state.
    fn path(
        &self,
        (component, excluded): (&FxHashSet<u32>, &FxHashSet<u32>),
        from: u32,
        wanted: &mut dyn FnMut(u32, u32, u32) -> bool,
    ) -> Option<(Vec<u32>, u32)> {
        let mut before: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
        let mut queue = VecDeque::from([from]);
        while let Some(state) = queue.pop_front() {
            for (_, (to, step)) in self.open_steps(state, excluded) {
                if !component.contains(&to) {
                    continue;
                }
                if wanted(state, step, to) {
                    let (mut path, mut at) = (vec![step], state);
                    while at != from {
                        let (earlier, step) = before[&at];
                        path.push(step);
                        at = earlier;
                    }
                    path.reverse();
                    return Some((path, to));
                }
                if to != from && !before.contains_key(&to) {
                    before.insert(to, (state, step));
                    queue.push_back(to);
                }
            }
        }
        None
    }
}

impl Search<'_, '_> {
    /// Judges runs that never end. All states must be known.
    pub(crate) fn judge_cycles(&mut self) -> SearchVerdict {
        let options = self.options;
        let (livelock, starvation) = (options.judges("livelock"), options.judges("starvation"));
        if !livelock && !starvation {
            return SearchVerdict::Exhausted;
        }
        if !self.shared.shards.iter().any(|shard| read(shard).cycles) {
            return SearchVerdict::Exhausted;
        }
        if options.compact {
            return SearchVerdict::Bounded(Bounded::Compact);
        }
        let graph = match self.graph() {
            Ok(graph) => graph,
            Err(bound) => return SearchVerdict::Bounded(bound),
        };
        if livelock && let Some(path) = self.livelock(&graph) {
            return SearchVerdict::Violated(path);
        }
        if starvation {
            match self.starvation(&graph) {
                Ok(Some(path)) => return SearchVerdict::Violated(path),
                Ok(None) => {}
                Err(bound) => return SearchVerdict::Bounded(bound),
            }
        }
        SearchVerdict::Exhausted
    }

    /// Expands all states once more and keeps their steps, unless that takes too much memory or the caller
    /// interrupts it.
    fn graph(&mut self) -> Result<Graph, Bounded> {
        let shared = self.shared;
        let (tables, rules) = (read(&shared.tables), &shared.rules);
        let shards: Vec<_> = shared.shards.iter().map(read).collect();
        let places: Vec<Vec<u32>> = shards
            .iter()
            .map(|shard| {
                let after = |at: &u32| Some(shard.rows.after(*at));
                std::iter::successors(Some(FIRST), after).take(shard.len as usize).collect()
            })
            .collect();
        let n = self.states as usize;
        let mut graph = Graph::without_steps(n);
        let (mut numbered, mut expander, mut packed) =
            (NumberedState::default(), Expander::default(), Vec::new());
        for number in 0..n {
            if number % PROGRESS_EVERY == 0 && !self.report_progress() {
                return Err(Bounded::Interrupted);
            }
            let (shard, index) = self.place(number as u64);
            numbered.unpack(&tables, rules, shards[shard].rows.get(places[shard][index as usize]));
            let locals = numbered.locals.iter().map(|l| tables.locals[*l as usize]);
            graph.timed[number] = locals.into_iter().any(|facts| facts.has_timers());
            graph.waiting[number] = tables.environments[numbered.environment as usize].waiting;
            let mut step = 0;
            let known = expander.expand(&numbered, &tables, rules, &mut |next| {
                if next.untimed_progress {
                    let own = rules.inputs.first_model_input();
                    let asks = matches!(
                        next.action,
                        NumberedAction::HandleInput(_, input) if input >= own
                    );
                    graph.asked[number] |= asks && !next.voluntary;
                    if next.voluntary {
                        graph.voluntary.insert(graph.steps.len() as u32);
                    }
                    packed.clear();
                    next.pack(rules, &mut packed);
                    let hash = fingerprint(&packed);
                    let shard = (hash >> (64 - SHARD_BITS)) as usize;
                    let at = shards[shard].find(hash, &packed).expect("all states are known");
                    let index = places[shard].binary_search(&at).expect("a state has a place");
                    if next.draw > 0 {
                        graph.other_answers.insert(graph.steps.len() as u32);
                    }
                    graph.steps.push((self.number(shard, index as u64) as u32, step));
                }
                step += 1;
            });
            debug_assert!(known.is_ok(), "everything was worked out in the search");
            graph.first.push(graph.steps.len() as u32);
            if graph.steps.len() as u64 * 8 > self.options.max_bytes {
                return Err(Bounded::Memory);
            }
        }
        graph.places = places;
        drop(shards);
        drop(tables);
        let bytes = graph.steps.capacity() * 8 + n * (4 + 4 + 2 + 8 + 17);
        self.count_bytes(bytes as u64);
        Ok(graph)
    }

    /// A run into a component with a cycle and no way out, in which no timer runs and no client owes a request.
    /// From there, a run ends only after a fault or a voluntary request.
    fn livelock(&mut self, graph: &Graph) -> Option<StatePath> {
        let unasked = &graph.voluntary;
        let closed = graph.components(&|_| true, unasked).into_iter().find(|component| {
            let inside: FxHashSet<u32> = component.iter().copied().collect();
            component.iter().all(|&s| {
                let (timed, asked) = (graph.timed[s as usize], graph.asked[s as usize]);
                let mut steps = graph.open_steps(s, unasked);
                !timed && !asked && steps.all(|(_, (to, _))| inside.contains(&to))
            })
        })?;
        let inside = closed.iter().copied().collect();
        let home = closed[0];
        let (cycle, _) = graph.path((&inside, unasked), home, &mut |_, _, to| to == home)?;
        let violation =
            Violation::new("livelock", "messages go round for ever, and nothing ends it");
        Some(self.lasso(home, cycle, violation))
    }

    /// A fair run in which a client waits forever. Fair means: a kind of step that is possible in every state
    /// of the repeated part is taken there, unless it is a request that its client need not make. And chance
    /// is fair, too: a draw that is repeated forever gives every answer.
    fn starvation(&mut self, graph: &Graph) -> Result<Option<StatePath>, Bounded> {
        for place in 0..self.group.len() {
            let waits = |s: u32| graph.waiting[s as usize] >> place & 1 == 1;
            let (components, excluded) = graph.closed_to_chance(&waits);
            for component in components {
                if !self.report_progress() {
                    return Err(Bounded::Interrupted);
                }
                if component.iter().any(|s| graph.timed[*s as usize]) {
                    continue;
                }
                if let Some(cycle) = self.fair_cycle(graph, &component, &excluded) {
                    let id = self.group.id(place);
                    let detail = format!("{id} waits for ever, though nothing is held up for ever");
                    let violation = Violation::new("starvation", detail);
                    return Ok(Some(self.lasso(component[0], cycle, violation)));
                }
            }
        }
        Ok(None)
    }

    /// A cycle through `component` that takes every kind of step possible in all of its states; none if
    /// such a kind always leads out of the component.
    fn fair_cycle(
        &mut self,
        graph: &Graph,
        component: &[u32],
        excluded: &FxHashSet<u32>,
    ) -> Option<Vec<u32>> {
        let inside: FxHashSet<u32> = component.iter().copied().collect();
        let mut kinds: FxHashMap<(u32, u32), u64> = FxHashMap::default();
        let mut always: Option<FxHashSet<u64>> = None;
        for &state in component {
            let all = self.kinds(graph, state);
            for &(_, step) in graph.steps(state) {
                kinds.insert((state, step), all[step as usize]);
            }
            let necessary = graph.open_steps(state, &graph.voluntary);
            let here: FxHashSet<u64> = necessary.map(|(_, (_, step))| all[step as usize]).collect();
            always = Some(match always {
                None => here,
                Some(always) => always.intersection(&here).copied().collect(),
            });
        }
        let mut due: Vec<u64> = always?.into_iter().collect();
        due.sort_unstable();
        let home = component[0];
        let (mut cycle, mut at) = (Vec::new(), home);
        for kind in due {
            let (path, to) = graph
                .path((&inside, excluded), at, &mut |from, step, _| kinds[&(from, step)] == kind)?;
            cycle.extend(path);
            at = to;
        }
        if at != home || cycle.is_empty() {
            let (path, _) = graph.path((&inside, excluded), at, &mut |_, _, to| to == home)?;
            cycle.extend(path);
        }
        Some(cycle)
    }

    /// The kind of each step of a state: with FIFO the channel of the delivery, else its message; or the
    /// place and the input that it handles.
    fn kinds(&mut self, graph: &Graph, state: u32) -> Vec<u64> {
        let (shard, index) = self.place(u64::from(state));
        let at = graph.places[shard][index as usize];
        let mut numbered = NumberedState::default();
        let packed = read(&self.shared.shards[shard]).rows.get(at).to_vec();
        numbered.unpack(&read(&self.shared.tables), &self.shared.rules, &packed);
        let fifo = self.options.fifo;
        let mut kinds = Vec::new();
        for_each_successor(
            &numbered,
            self.shared,
            self.semantics,
            &mut |next, tables: &Tables, _| {
                kinds.push(match next.action {
                    NumberedAction::Deliver(m) if fifo => {
                        u64::from(tables.messages[m as usize].channel)
                    }
                    NumberedAction::Deliver(m) => u64::from(m),
                    NumberedAction::HandleInput(place, input) => {
                        1 << 63 | u64::from(place) << 32 | u64::from(input)
                    }
                    NumberedAction::Pass
                    | NumberedAction::AppMessage(..)
                    | NumberedAction::Crash(_)
                    | NumberedAction::Restart(_)
                    | NumberedAction::Cut(_)
                    | NumberedAction::Break(_)
                    | NumberedAction::Lose(..)
                    | NumberedAction::Duplicate(..) => u64::MAX,
                });
            },
        );
        kinds
    }

    /// The run that reaches state `home` and repeats `cycle` from there.
    fn lasso(&self, home: u32, cycle: Vec<u32>, violation: Violation) -> StatePath {
        StatePath { cycle: Some(cycle), ..self.path_to(Some(u64::from(home)), violation) }
    }
}
