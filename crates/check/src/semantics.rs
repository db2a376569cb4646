//! Runs the handlers for the search and numbers their results.
//!
//! A handler runs once for each local and input. A judge runs once for each environment and observation.
//! Both results go to the [`Tables`], which are all that the search sees.

mod queries;
mod renaming;
mod values;

pub(crate) use values::{Cause, ModelInput, Observation, VisibleEffect};

use konklave_process::{
    AnyData, AnyProcess, Application, Context, Effect, Host, Input, Inspect, Monitor, Verdict,
    Violation,
};
use rustc_hash::FxHashMap;

use self::values::{Environment, Interner, Local, Message, View, VisibleStep};
use crate::Model;
use crate::draws::Draws;
use crate::expand::{NumberedState, Rules};
use crate::state::{Content, NO_TIME, Running, State};
use crate::tables::{
    BREAK, CUT, DUPLICATED, EARLY, EnvironmentFacts, Inputs, LOST, LocalFacts, Memo, MessageFacts,
    OTHER, Reaction, Sent, StepOutcome, TIME_STEP, Tables, UNDELIVERED, UNOBSERVED,
};
use crate::verdicts::{off_clock, outside_group, steps, unexpected};

/// The facts that decide the verdict on an end state, besides the environment.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct EndSituation {
    /// The places of the processes that are up, as a bit set.
    alive: u64,
    /// Whether the run stopped only because the clock reached its limit.
    stopped: bool,
}

/// Computes the table entries that are missing, with the values behind the numbers.
pub(crate) struct Semantics<'m> {
    model: &'m Model,
    inputs: Inputs,
    locals: Interner<Local>,
    messages: Interner<Message>,
    environments: Interner<Environment>,
    model_inputs: Interner<ModelInput>,
    observations: Interner<Observation>,
    visible_steps: Interner<VisibleStep>,
    /// For each observation, a local with the view that the judge has of the process.
    examples: Vec<u32>,
    /// The violation of each reaction that has one.
    violations: FxHashMap<u32, Violation>,
    /// The ends already judged.
    ends: FxHashMap<(u32, EndSituation), Option<Violation>>,
    /// For each local, the inputs it handled, in the order found.
    pub(crate) inputs_met: Vec<Vec<u32>>,
    /// The steps that were tried for the reduction, whether or not they happen in a run.
    tried: Memo,
    /// For each environment, the observations it reacted to, in the order found.
    pub(crate) observations_met: Vec<Vec<u32>>,
    /// With symmetry: for each reaction, the messages in the order in which they were sent.
    sent: FxHashMap<u32, Vec<u32>>,
}

impl<'m> Semantics<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        Self {
            model,
            inputs: Inputs { n: model.n() },
            locals: Interner::default(),
            messages: Interner::default(),
            environments: Interner::default(),
            model_inputs: Interner::default(),
            observations: Interner::default(),
            visible_steps: Interner::default(),
            examples: Vec::new(),
            violations: FxHashMap::default(),
            ends: FxHashMap::default(),
            inputs_met: Vec::new(),
            tried: Memo::default(),
            observations_met: Vec::new(),
            sent: FxHashMap::default(),
        }
    }

    pub(crate) fn in_flight(&self, message: u32) -> &Message {
        self.messages.get(message)
    }

    pub(crate) fn observation_of(&self, number: u32) -> &Observation {
        self.observations.get(number)
    }

    /// The number of the visible part of a step; never 0.
    pub(crate) fn visible_number(
        &mut self,
        place: u32,
        request: Option<AnyData>,
        effects: Vec<VisibleEffect>,
    ) -> u32 {
        self.visible_steps.intern((place, request, effects)).0 + 1
    }

    pub(crate) fn is_fifo(&self) -> bool {
        self.model.options.fifo
    }

    /// How many observations have a number.
    pub(crate) fn observations(&self) -> u32 {
        self.observations.values.len() as u32
    }

    pub(crate) fn model_input(&self, input: u32) -> &ModelInput {
        self.model_inputs.get(input - self.inputs.first_model_input())
    }

    /// The numbers of a state: its locals, its environment, its messages in flight.
    fn numbers(&mut self, state: &State, tables: &mut Tables) -> (Vec<u32>, u32, Vec<u32>) {
        let locals = (0..self.model.n()).map(|place| {
            let of_place = |(p, ..): &&Running| *p == place;
            let local = Local {
                place,
                up: state.is_up(place),
                process: state.processes[place as usize].clone(),
                timers: state.timers.iter().filter(of_place).map(|t| (t.1.clone(), t.2)).collect(),
                saved: state.saved.get(place as usize).cloned().flatten(),
                news: state.news_of(place),
            };
            self.intern_local(local, tables)
        });
        let locals = locals.collect();
        let environment = Environment {
            ledger: state.ledger.clone(),
            spent: state.spent,
            cut: state.cut,
            broken: state.broken,
        };
        let environment = self.intern_environment(environment, tables);
        let flight = state.flight.iter().map(|f| {
            let (channel, content, tag) = (f.channel, f.content.clone(), f.tag.clone());
            self.intern_message(Message { channel, content, tag }, tables)
        });
        (locals, environment, flight.collect())
    }

    /// The state in numbers.
    pub(crate) fn number_state(
        &mut self,
        state: &State,
        tables: &mut Tables,
        rules: &Rules,
    ) -> NumberedState {
        let (locals, environment, mut flight) = self.numbers(state, tables);
        if !self.is_fifo() {
            flight.sort_unstable();
        }
        let mut numbered = NumberedState {
            locals,
            environment,
            sent: state.sent,
            flight,
            ..NumberedState::default()
        };
        numbered.find_keys(tables, rules);
        numbered
    }

    fn intern_local(&mut self, local: Local, tables: &mut Tables) -> u32 {
        let (place, up, at_rest) = (local.place, local.up, local.process.at_rest());
        let has_token = local.process.tokens() > 0;
        let (number, new) = self.locals.intern(local);
        if new {
            let local = self.locals.get(number).clone();
            let first = |i: &usize| *i == 0 || local.news[i - 1].0 != local.news[*i].0;
            let news = list(
                (0..local.news.len()).filter(first).map(|i| {
                    let (peer, up) = &local.news[i];
                    let peer = self.model.group.place(*peer).expect("news are of members");
                    self.inputs.learn(peer as u32, *up)
                }),
                tables,
            );
            let due = local.timers.iter().filter(|(_, left)| *left == 0);
            let due = due.map(|(timer, _)| {
                self.model_inputs.intern(ModelInput::Timer(timer.clone())).0
                    + self.inputs.first_model_input()
            });
            let timers = list(due, tables);
            let waits = local.timers.iter().any(|(_, left)| *left > 0);
            tables.locals.push(LocalFacts { place, up, at_rest, has_token, news, timers, waits });
        }
        number
    }

    fn intern_message(&mut self, in_flight: Message, tables: &mut Tables) -> u32 {
        let (from, to) = in_flight.channel;
        let (number, new) = self.messages.intern(in_flight);
        if new {
            tables.messages.push(MessageFacts { to, channel: from * self.model.n() + to });
        }
        number
    }

    fn intern_environment(&mut self, environment: Environment, tables: &mut Tables) -> u32 {
        let (spent, cut, broken) = (environment.spent, environment.cut, environment.broken);
        let (number, new) = self.environments.intern(environment);
        if new {
            let environment = self.environments.get(number).clone();
            let begin = tables.asks.len() as u32;
            for (place, &id) in self.model.group.members().iter().enumerate() {
                if let Some(request) = environment.ledger.application.next(id) {
                    let input = self.model_inputs.intern(ModelInput::Request(request)).0
                        + self.inputs.first_model_input();
                    tables.asks.push((place as u32, input));
                }
            }
            let asks = (begin, tables.asks.len() as u32);
            let waiting = environment.ledger.application.waiting();
            let places = waiting.iter().filter_map(|p| self.model.group.place(*p));
            let waiting = places.fold(0, |set, place| set | 1 << place);
            let members = self.model.group.members().iter().enumerate();
            let holds = members.filter(|(_, id)| environment.ledger.application.holds(**id));
            let holding = holds.fold(0, |set, (place, _)| set | 1 << place);
            let members = self.model.group.members().iter().enumerate();
            let obliged =
                members.filter(|(_, id)| environment.ledger.application.must_request(**id));
            let obliged = obliged.fold(0, |set, (place, _)| set | 1 << place);
            tables.environments.push(EnvironmentFacts {
                asks,
                waiting,
                holding,
                obliged,
                spent,
                cut,
                broken,
            });
        }
        number
    }

    fn intern_observation(&mut self, observation: Observation, example: u32) -> u32 {
        let (number, new) = self.observations.intern(observation);
        if new {
            self.examples.push(example);
        }
        number
    }

    /// Adds what `actor` does on `input` to the tables, for every answer of `choose`.
    fn act(&mut self, actor: u32, input: u32, tables: &mut Tables) {
        let begin = self.outcomes_of(actor, input, tables);
        tables.acts.insert(actor, input, begin);
        note(&mut self.inputs_met, actor, input, self.locals.values.len());
    }

    /// The index of the first outcome of `actor` on `input`. A step that was only tried need not happen
    /// in any run.
    pub(crate) fn outcomes_of(&mut self, actor: u32, input: u32, tables: &mut Tables) -> u32 {
        let known = tables.acts.get(actor, input).or_else(|| self.tried.get(actor, input));
        if let Some(begin) = known {
            return begin;
        }
        // The outcomes of one step must be adjacent, so no other step is computed in between.
        let begin = tables.outcomes.len() as u32;
        let fault = match actor {
            LOST => Some(Observation::Lost { message: input, by_fault: true }),
            UNDELIVERED => Some(Observation::Lost { message: input, by_fault: false }),
            DUPLICATED => Some(Observation::Duplicated(input)),
            CUT => Some(Observation::Cut(input)),
            BREAK => Some(Observation::Break(input)),
            EARLY => Some(Observation::Early),
            TIME_STEP => Some(Observation::Pass { early: input == 1 }),
            _ => None,
        };
        if let Some(fault) = fault {
            let observation = self.intern_observation(fault, 0);
            tables.outcomes.push(StepOutcome { local: 0, observation, last: true });
        } else {
            let before = self.locals.get(actor).clone();
            let mut draws = Draws::default();
            loop {
                let (local, observation) = self.outcome(&before, actor, input, &mut draws, tables);
                let more = draws.advance();
                tables.outcomes.push(StepOutcome { local, observation, last: !more });
                if !more {
                    break;
                }
            }
        }
        self.tried.insert(actor, input, begin);
        begin
    }

    fn outcome(
        &mut self,
        before: &Local,
        actor: u32,
        input: u32,
        draws: &mut Draws,
        tables: &mut Tables,
    ) -> (u32, u32) {
        let mut local = before.clone();
        let (n, place) = (self.model.n(), local.place);
        let id = |place: u32| self.model.group.id(place as usize);
        if input < OTHER {
            let in_flight = self.messages.get(input).clone();
            let from = id(in_flight.channel.0);
            let given = match &in_flight.content {
                Content::Message(message) => Input::Message { from, message: message.clone() },
                Content::Stamp(stamp) => Input::Stamp { from, stamp: *stamp },
            };
            return self.step(local, given, Cause::Receipt(input), draws, tables);
        }
        let known = input.wrapping_sub(Inputs::NEWS);
        if input == Inputs::CRASH {
            local.up = false;
            local.timers.clear();
            local.news.clear();
            local.process = self.model.processes[place as usize].clone();
            let observation = self.intern_observation(Observation::Crash(place), 0);
            (self.intern_local(local, tables), observation)
        } else if input == Inputs::RECOVER {
            local.up = true;
            let saved = local.saved.clone().filter(|_| self.model.options.stable_storage);
            self.step(local, Input::Recover(saved), Cause::Restart, draws, tables)
        } else if input == Inputs::PASS {
            local.timers.iter_mut().for_each(|(_, left)| *left = left.saturating_sub(1));
            (self.intern_local(local, tables), UNOBSERVED)
        } else if known < 2 * n {
            local.enqueue_news(id(known / 2), known % 2 == 1, self.model.options.is_synchronous());
            (self.intern_local(local, tables), UNOBSERVED)
        } else if known < 4 * n {
            let known = known - 2 * n;
            let (peer, up) = (id(known / 2), known % 2 == 1);
            if let Some(first) = local.news.iter().position(|news| *news == (peer, up)) {
                local.news.remove(first);
            }
            let given = if up { Input::Trust(peer) } else { Input::Suspect(peer) };
            self.step(local, given, Cause::Inner, draws, tables)
        } else if known < 5 * n {
            let to = known - 4 * n;
            let stamp = local.process.stamp();
            (actor, self.intern_observation(Observation::AppMessage { from: place, to, stamp }, 0))
        } else {
            let own = self.model_input(input).clone();
            match own {
                ModelInput::Timer(timer) => {
                    local.timers.retain(|(t, _)| *t != timer);
                    self.step(local, Input::Timer(timer), Cause::Inner, draws, tables)
                }
                ModelInput::Request(request) => {
                    let cause = Cause::Request(request.clone());
                    self.step(local, Input::Request(request), cause, draws, tables)
                }
            }
        }
    }

    fn step(
        &mut self,
        mut local: Local,
        input: Input<AnyProcess>,
        cause: Cause,
        draws: &mut Draws,
        tables: &mut Tables,
    ) -> (u32, u32) {
        let place = local.place;
        let me = self.model.group.id(place as usize);
        let mut host =
            EffectCollector { model: self.model, local: &mut local, effects: Vec::new(), draws };
        let mut process = host.local.process.clone();
        process.handle(input, &mut Context::new(me, &self.model.group, &mut host));
        let effects = host.effects;
        local.process = process;
        let seen = self.model.monitor.view(&local.process);
        let local = self.intern_local(local, tables);
        let view = seen.map_or(View::Whole(local), View::Number);
        (local, self.intern_observation(Observation::Step { place, cause, effects, view }, local))
    }

    /// Adds the reaction of this environment to this observation to the tables.
    fn react(&mut self, number: u32, observation: u32, tables: &mut Tables) {
        let mut environment = Environment::clone(self.environments.get(number));
        let begin = tables.sends.len() as u32;
        let verdict = self.observe(&mut environment, observation, tables);
        let reaction = tables.reactions.len() as u32;
        let sends = (begin, tables.sends.len() as u32);
        if self.model.options.symmetry {
            let sent = tables.sends[begin as usize..].iter().map(|sent| sent.message);
            self.sent.insert(reaction, sent.collect());
        }
        // The sort is stable, so messages of one channel stay in the order in which they were sent.
        tables.sends[begin as usize..].sort_by_key(|sent| sent.key);
        let environment = self.intern_environment(environment, tables);
        tables.reactions.push(Reaction { environment, sends, violated: verdict.is_err() });
        tables.reacts.insert(number, observation, reaction);
        note(&mut self.observations_met, number, observation, self.environments.values.len());
        if let Err(violation) = verdict {
            self.violations.insert(reaction, violation);
        }
    }

    /// Shows an observation to budgets, clients and judges. Returns the verdict of the judges.
    fn observe(
        &mut self,
        environment: &mut Environment,
        observation: u32,
        tables: &mut Tables,
    ) -> Verdict {
        let what = self.observations.get(observation).clone();
        let id = |place: u32| self.model.group.id(place as usize);
        match &*what {
            Observation::Step { place, cause, effects, view: _ } => {
                let process = self.locals.get(self.examples[observation as usize]).clone();
                let step = (*place, cause, &**effects);
                return self.judge_step(environment, step, &process.process, tables);
            }
            Observation::Crash(place) => {
                environment.spent.crashes += 1;
                environment.ledger.on_crash(NO_TIME, id(*place));
            }
            Observation::Lost { message, by_fault } => {
                environment.spent.losses += u8::from(*by_fault);
                if let Content::Message(message) = &self.messages.get(*message).content {
                    environment.ledger.on_lost(message);
                }
            }
            Observation::Duplicated(message) => {
                environment.spent.duplicates += 1;
                if let Content::Message(message) = &self.messages.get(*message).content {
                    environment.ledger.on_duplicated(message);
                }
            }
            Observation::AppMessage { from, to, stamp } => {
                environment.spent.app_messages += 1;
                let tag = environment.ledger.on_send(id(*from), None);
                let content = Content::Stamp(*stamp);
                let message =
                    self.intern_message(Message { channel: (*from, *to), content, tag }, tables);
                send(message, self.model.options.fifo, tables);
            }
            Observation::Cut(channel) => {
                environment.spent.cuts += 1;
                environment.cut |= 1 << channel;
            }
            Observation::Break(link) => {
                let (one, other) = (link / self.model.n(), link % self.model.n());
                let both = 1 << link | 1 << (other * self.model.n() + one);
                environment.spent.breaks += 1;
                let [one_id, other_id] = [one, other].map(|p| self.model.group.id(p as usize));
                environment.ledger.on_break(one_id, other_id);
                (environment.cut, environment.broken) =
                    (environment.cut | both, environment.broken | both);
            }
            Observation::Early => environment.spent.early += 1,
            Observation::Pass { early } => {
                let limit = self.model.options.clock.and_then(|clock| clock.limit);
                environment.spent.early += u8::from(*early);
                environment.spent.time += u16::from(limit.is_some());
            }
        }
        Ok(())
    }

    fn judge_step(
        &mut self,
        environment: &mut Environment,
        (place, cause, effects): (u32, &Cause, &[VisibleEffect]),
        process: &AnyProcess,
        tables: &mut Tables,
    ) -> Verdict {
        let me = self.model.group.id(place as usize);
        let mut verdict = Ok(());
        let mut judge = |said: Verdict| {
            if verdict.is_ok() {
                verdict = self.model.filter(said);
            }
        };
        match cause {
            Cause::Receipt(message) => {
                let in_flight = self.messages.get(*message);
                let message = match &in_flight.content {
                    Content::Message(message) => Some(message),
                    Content::Stamp(_) => None,
                };
                judge(environment.ledger.on_receive(me, message, &in_flight.tag));
            }
            Cause::Request(request) => {
                judge(environment.ledger.on_request(NO_TIME, me, request));
            }
            Cause::Restart => {
                environment.spent.restarts += 1;
                environment.ledger.on_restart(me);
            }
            Cause::Inner => {}
        }
        for effect in effects {
            match effect {
                VisibleEffect::Send(to, message) => {
                    let tag = environment.ledger.on_send(me, Some(message));
                    let content = Content::Message(message.clone());
                    let (number, new) =
                        self.messages.intern(Message { channel: (place, *to), content, tag });
                    if new {
                        let channel = place * self.model.n() + to;
                        tables.messages.push(MessageFacts { to: *to, channel });
                    }
                    send(number, self.model.options.fifo, tables);
                }
                VisibleEffect::SendOutsideGroup(to) => judge(outside_group(me, *to)),
                VisibleEffect::Indicate(indication) => {
                    judge(environment.ledger.on_indication(NO_TIME, me, indication));
                }
                VisibleEffect::Unexpected(what) => judge(unexpected(me, what)),
                VisibleEffect::OffClock(after) => judge(off_clock(me, *after)),
            }
        }
        judge(environment.ledger.after_step(me, process));
        verdict
    }

    /// The violation of an end with this environment, if any. Each end is judged once.
    fn judged_end(&mut self, environment: u32, ended: EndSituation) -> Option<Violation> {
        if let Some(known) = self.ends.get(&(environment, ended)) {
            return known.clone();
        }
        let violation = self.judge_environment(environment, ended).err();
        self.ends.insert((environment, ended), violation.clone());
        violation
    }

    fn judge_environment(&self, environment: u32, ended: EndSituation) -> Verdict {
        let environment = self.environments.get(environment);
        let up = (0..self.model.n()).filter(|p| ended.alive >> p & 1 == 1);
        let faulty = environment.spent.is_faulty();
        self.model.judge_clients(&environment.ledger, up, faulty, !ended.stopped)
    }
}

/// Appends `item` to the list of `owner`, which is below `owners` unless it is a pseudo-local.
fn note(lists: &mut Vec<Vec<u32>>, owner: u32, item: u32, owners: usize) {
    if (owner as usize) < owners {
        lists.resize_with(owners.max(lists.len()), Vec::new);
        lists[owner as usize].push(item);
    }
}

fn send(message: u32, fifo: bool, tables: &mut Tables) {
    let key = if fifo { tables.messages[message as usize].channel } else { message };
    tables.sends.push(Sent { key, message });
}

/// Appends a list to the tables; returns its range.
fn list(items: impl Iterator<Item = u32>, tables: &mut Tables) -> (u32, u32) {
    let begin = tables.lists.len() as u32;
    tables.lists.extend(items);
    (begin, tables.lists.len() as u32)
}

/// The host of one step: carries out the effects on the local, collects those that others see.
struct EffectCollector<'a> {
    model: &'a Model,
    local: &'a mut Local,
    effects: Vec<VisibleEffect>,
    draws: &'a mut Draws,
}

impl Host<AnyProcess> for EffectCollector<'_> {
    fn perform(&mut self, effect: Effect<AnyProcess>) {
        match effect {
            Effect::Send { to, message } => {
                self.effects.push(match self.model.group.place(to) {
                    Some(place) => VisibleEffect::Send(place as u32, message),
                    None => VisibleEffect::SendOutsideGroup(to),
                });
            }
            Effect::SetTimer { timer, after } => {
                let (left, whole) = steps(after, &self.model.options);
                match self.local.timers.binary_search_by(|t| t.0.cmp(&timer)) {
                    Ok(i) => self.local.timers[i].1 = left,
                    Err(i) => self.local.timers.insert(i, (timer, left)),
                }
                if !whole {
                    self.effects.push(VisibleEffect::OffClock(after));
                }
            }
            Effect::CancelTimer { timer } => self.local.timers.retain(|(t, _)| *t != timer),
            Effect::Indicate(indication) => self.effects.push(VisibleEffect::Indicate(indication)),
            Effect::Save(record) => self.local.saved = Some(record),
            Effect::Unexpected(what) => self.effects.push(VisibleEffect::Unexpected(what)),
        }
    }
    fn choose(&mut self, bound: u32) -> u32 {
        self.draws.draw(bound)
    }
}
