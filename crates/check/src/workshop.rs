//! Where handlers run: once for each local and input, once for each ambient and sign.

mod answers;
mod renaming;
mod things;

pub(crate) use things::{Cause, Own, Shown, Sign};

use konklave_process::{
    AnyData, AnyProcess, Application, Context, Effect, End, Host, Input, Inspect, Monitor, Verdict,
    Violation,
};
use rustc_hash::FxHashMap;

use self::things::{Ambient, Letter, Local, Numbered, Show, View};
use crate::Model;
use crate::draws::Draws;
use crate::expand::{Node, Rules};
use crate::state::{Content, NO_TIME, Running, State};
use crate::tables::{
    AmbientFacts, BREAK, CUT, DOUBLED, EARLY, Inputs, LOST, LocalFacts, Memo, MessageFacts, OTHER,
    Outcome, PASSED, Reaction, Sent, Tables, UNHEARD, UNSEEN,
};
use crate::verdicts::{astray, deadlock, steps, unexpected, untimely};

/// Who is up at an end, by place, and whether only the clock has stopped there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Ended {
    alive: u64,
    stopped: bool,
}

/// Works out what the tables do not know yet.
pub(crate) struct Workshop<'m> {
    model: &'m Model,
    inputs: Inputs,
    locals: Numbered<Local>,
    letters: Numbered<Letter>,
    ambients: Numbered<Ambient>,
    own: Numbered<Own>,
    signs: Numbered<Sign>,
    shows: Numbered<Show>,
    /// For each sign a local that looks as the judge sees it.
    examples: Vec<u32>,
    violations: FxHashMap<u32, Violation>,
    ends: FxHashMap<(u32, Ended), Option<Violation>>,
    /// What every local was found to meet, and every ambient to notice, in that order.
    pub(crate) met: Vec<Vec<u32>>,
    tried: Memo,
    pub(crate) noticed: Vec<Vec<u32>>,
    /// For each reaction the messages in the order in which they were sent, where places may be renamed.
    sent: FxHashMap<u32, Vec<u32>>,
}

impl<'m> Workshop<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        Self {
            model,
            inputs: Inputs { n: model.n() },
            locals: Numbered::default(),
            letters: Numbered::default(),
            ambients: Numbered::default(),
            own: Numbered::default(),
            signs: Numbered::default(),
            shows: Numbered::default(),
            examples: Vec::new(),
            violations: FxHashMap::default(),
            ends: FxHashMap::default(),
            met: Vec::new(),
            tried: Memo::default(),
            noticed: Vec::new(),
            sent: FxHashMap::default(),
        }
    }

    pub(crate) fn letter(&self, message: u32) -> &Letter {
        self.letters.get(message)
    }

    pub(crate) fn sign_of(&self, number: u32) -> &Sign {
        self.signs.get(number)
    }

    /// A number, not 0, for what shows of a step.
    pub(crate) fn show_of(
        &mut self,
        place: u32,
        request: Option<AnyData>,
        shown: Vec<Shown>,
    ) -> u32 {
        self.shows.number((place, request, shown)).0 + 1
    }

    pub(crate) fn is_fifo(&self) -> bool {
        self.model.options.fifo
    }

    pub(crate) fn signs(&self) -> u32 {
        self.signs.things.len() as u32
    }

    pub(crate) fn own(&self, input: u32) -> &Own {
        self.own.get(input - self.inputs.own())
    }

    /// The numbers of a state: locals, ambient, messages in their order.
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
            self.local(local, tables)
        });
        let locals = locals.collect();
        let ambient = Ambient {
            ledger: state.ledger.clone(),
            spent: state.spent,
            cut: state.cut,
            broken: state.broken,
        };
        let ambient = self.ambient(ambient, tables);
        let flight = state.flight.iter().map(|f| {
            let (channel, content, tag) = (f.channel, f.content.clone(), f.tag.clone());
            self.message(Letter { channel, content, tag }, tables)
        });
        (locals, ambient, flight.collect())
    }

    /// A state in numbers.
    pub(crate) fn node_of(&mut self, state: &State, tables: &mut Tables, rules: &Rules) -> Node {
        let (locals, ambient, mut flight) = self.numbers(state, tables);
        if !self.is_fifo() {
            flight.sort_unstable();
        }
        let mut node = Node { locals, ambient, sent: state.sent, flight, ..Node::default() };
        node.find_keys(tables, rules);
        node
    }

    fn local(&mut self, local: Local, tables: &mut Tables) -> u32 {
        let (place, up, at_rest) = (local.place, local.up, local.process.at_rest());
        let (number, new) = self.locals.number(local);
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
            let due = due
                .map(|(timer, _)| self.own.number(Own::Timer(timer.clone())).0 + self.inputs.own());
            let timers = list(due, tables);
            let waits = local.timers.iter().any(|(_, left)| *left > 0);
            tables.locals.push(LocalFacts { place, up, at_rest, news, timers, waits });
        }
        number
    }

    fn message(&mut self, letter: Letter, tables: &mut Tables) -> u32 {
        let (from, to) = letter.channel;
        let (number, new) = self.letters.number(letter);
        if new {
            tables.messages.push(MessageFacts { to, channel: from * self.model.n() + to });
        }
        number
    }

    fn ambient(&mut self, ambient: Ambient, tables: &mut Tables) -> u32 {
        let (spent, cut, broken) = (ambient.spent, ambient.cut, ambient.broken);
        let (number, new) = self.ambients.number(ambient);
        if new {
            let ambient = self.ambients.get(number).clone();
            let begin = tables.asks.len() as u32;
            for (place, &id) in self.model.group.members().iter().enumerate() {
                if let Some(request) = ambient.ledger.application.next(id) {
                    let input = self.own.number(Own::Request(request)).0 + self.inputs.own();
                    tables.asks.push((place as u32, input));
                }
            }
            let asks = (begin, tables.asks.len() as u32);
            let waiting = ambient.ledger.application.waiting();
            let places = waiting.iter().filter_map(|p| self.model.group.place(*p));
            let waiting = places.fold(0, |set, place| set | 1 << place);
            let members = self.model.group.members().iter().enumerate();
            let holds = members.filter(|(_, id)| ambient.ledger.application.holds(**id));
            let holding = holds.fold(0, |set, (place, _)| set | 1 << place);
            tables.ambients.push(AmbientFacts { asks, waiting, holding, spent, cut, broken });
        }
        number
    }

    fn sign(&mut self, sign: Sign, example: u32) -> u32 {
        let (number, new) = self.signs.number(sign);
        if new {
            self.examples.push(example);
        }
        number
    }

    /// Tries what `actor` does on `input`, with every answer of `choose`.
    fn act(&mut self, actor: u32, input: u32, tables: &mut Tables) {
        let begin = self.try_out(actor, input, tables);
        tables.acts.insert(actor, input, begin);
        note(&mut self.met, actor, input, self.locals.things.len());
    }

    /// Where the outcomes are of what `actor` does on `input`. That it was tried does not mean that it
    /// happens.
    pub(crate) fn try_out(&mut self, actor: u32, input: u32, tables: &mut Tables) -> u32 {
        let known = tables.acts.get(actor, input).or_else(|| self.tried.get(actor, input));
        if let Some(begin) = known {
            return begin;
        }
        // The outcomes lie together, so none may be found while these are.
        let begin = tables.outcomes.len() as u32;
        let fault = match actor {
            LOST => Some(Sign::Lost { message: input, by_fault: true }),
            UNHEARD => Some(Sign::Lost { message: input, by_fault: false }),
            DOUBLED => Some(Sign::Doubled(input)),
            CUT => Some(Sign::Cut(input)),
            BREAK => Some(Sign::Break(input)),
            EARLY => Some(Sign::Early),
            PASSED => Some(Sign::Pass { early: input == 1 }),
            _ => None,
        };
        if let Some(fault) = fault {
            let sign = self.sign(fault, 0);
            tables.outcomes.push(Outcome { local: 0, sign, last: true });
        } else {
            let before = self.locals.get(actor).clone();
            let mut draws = Draws::default();
            loop {
                let (local, sign) = self.outcome(&before, actor, input, &mut draws, tables);
                let more = draws.advance();
                tables.outcomes.push(Outcome { local, sign, last: !more });
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
            let letter = self.letters.get(input).clone();
            let from = id(letter.channel.0);
            let given = match &letter.content {
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
            let sign = self.sign(Sign::Crash(place), 0);
            (self.local(local, tables), sign)
        } else if input == Inputs::RECOVER {
            local.up = true;
            let saved = local.saved.clone().filter(|_| self.model.options.stable_storage);
            self.step(local, Input::Recover(saved), Cause::Restart, draws, tables)
        } else if input == Inputs::PASS {
            local.timers.iter_mut().for_each(|(_, left)| *left = left.saturating_sub(1));
            (self.local(local, tables), UNSEEN)
        } else if known < 2 * n {
            let (peer, up) = (id(known / 2), known % 2 == 1);
            let older = local.news.iter().position(|(p, _)| *p == peer);
            match older.filter(|_| self.model.options.is_synchronous()) {
                Some(older) => _ = local.news.remove(older),
                None => {
                    let end = local.news.partition_point(|(p, _)| *p <= peer);
                    local.news.insert(end, (peer, up));
                }
            }
            (self.local(local, tables), UNSEEN)
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
            (actor, self.sign(Sign::Tell { from: place, to, stamp }, 0))
        } else {
            let own = self.own(input).clone();
            match own {
                Own::Timer(timer) => {
                    local.timers.retain(|(t, _)| *t != timer);
                    self.step(local, Input::Timer(timer), Cause::Inner, draws, tables)
                }
                Own::Request(request) => {
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
        let mut host = Shows { model: self.model, local: &mut local, shown: Vec::new(), draws };
        let mut process = host.local.process.clone();
        process.handle(input, &mut Context::new(me, &self.model.group, &mut host));
        let shown = host.shown;
        local.process = process;
        let seen = self.model.monitor.view(&local.process);
        let local = self.local(local, tables);
        let view = seen.map_or(View::Whole(local), View::Number);
        (local, self.sign(Sign::Step { place, cause, shown, view }, local))
    }

    /// Tries what `sign` means to `ambient`.
    fn react(&mut self, number: u32, sign: u32, tables: &mut Tables) {
        let mut ambient = Ambient::clone(self.ambients.get(number));
        let begin = tables.sends.len() as u32;
        let what = self.signs.get(sign).clone();
        let id = |place: u32| self.model.group.id(place as usize);
        let mut verdict = Ok(());
        match &*what {
            Sign::Step { place, cause, shown, view: _ } => {
                let process = self.locals.get(self.examples[sign as usize]).clone();
                let step = (*place, cause, &**shown);
                verdict = self.judge_step(&mut ambient, step, &process.process, tables);
            }
            Sign::Crash(place) => {
                ambient.spent.crashes += 1;
                ambient.ledger.on_crash(NO_TIME, id(*place));
            }
            Sign::Lost { message, by_fault } => {
                ambient.spent.losses += u8::from(*by_fault);
                if let Content::Message(message) = &self.letters.get(*message).content {
                    ambient.ledger.monitor.on_lost(message);
                }
            }
            Sign::Doubled(message) => {
                ambient.spent.duplicates += 1;
                if let Content::Message(message) = &self.letters.get(*message).content {
                    ambient.ledger.monitor.on_duplicated(message);
                }
            }
            Sign::Tell { from, to, stamp } => {
                ambient.spent.app_messages += 1;
                let tag = ambient.ledger.monitor.on_send(id(*from), None);
                let content = Content::Stamp(*stamp);
                let message = self.message(Letter { channel: (*from, *to), content, tag }, tables);
                send(message, self.model.options.fifo, tables);
            }
            Sign::Cut(channel) => {
                ambient.spent.cuts += 1;
                ambient.cut |= 1 << channel;
            }
            Sign::Break(link) => {
                let (one, other) = (link / self.model.n(), link % self.model.n());
                let both = 1 << link | 1 << (other * self.model.n() + one);
                ambient.spent.breaks += 1;
                (ambient.cut, ambient.broken) = (ambient.cut | both, ambient.broken | both);
            }
            Sign::Early => ambient.spent.early += 1,
            Sign::Pass { early } => {
                let limit = self.model.options.clock.and_then(|clock| clock.limit);
                ambient.spent.early += u8::from(*early);
                ambient.spent.time += u16::from(limit.is_some());
            }
        }
        let reaction = tables.reactions.len() as u32;
        let sends = (begin, tables.sends.len() as u32);
        if self.model.options.symmetry {
            let sent = tables.sends[begin as usize..].iter().map(|sent| sent.message);
            self.sent.insert(reaction, sent.collect());
        }
        // Where equal keys keep their order, a row keeps that of sending.
        tables.sends[begin as usize..].sort_by_key(|sent| sent.key);
        let ambient = self.ambient(ambient, tables);
        tables.reactions.push(Reaction { ambient, sends, violated: verdict.is_err() });
        tables.reacts.insert(number, sign, reaction);
        note(&mut self.noticed, number, sign, self.ambients.things.len());
        if let Err(violation) = verdict {
            self.violations.insert(reaction, violation);
        }
    }

    fn judge_step(
        &mut self,
        ambient: &mut Ambient,
        (place, cause, shown): (u32, &Cause, &[Shown]),
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
                let letter = self.letters.get(*message);
                let message = match &letter.content {
                    Content::Message(message) => Some(message),
                    Content::Stamp(_) => None,
                };
                judge(ambient.ledger.monitor.on_receive(me, message, &letter.tag));
            }
            Cause::Request(request) => {
                judge(ambient.ledger.on_request(NO_TIME, me, request));
            }
            Cause::Restart => {
                ambient.spent.restarts += 1;
                ambient.ledger.on_restart(me);
            }
            Cause::Inner => {}
        }
        for shown in shown {
            match shown {
                Shown::Send(to, message) => {
                    let tag = ambient.ledger.monitor.on_send(me, Some(message));
                    let content = Content::Message(message.clone());
                    let (number, new) =
                        self.letters.number(Letter { channel: (place, *to), content, tag });
                    if new {
                        let channel = place * self.model.n() + to;
                        tables.messages.push(MessageFacts { to: *to, channel });
                    }
                    send(number, self.model.options.fifo, tables);
                }
                Shown::Astray(to) => judge(astray(me, *to)),
                Shown::Indicate(indication) => {
                    judge(ambient.ledger.on_indication(NO_TIME, me, indication));
                }
                Shown::Unexpected(what) => judge(unexpected(me, what)),
                Shown::Untimely(after) => judge(untimely(me, *after)),
            }
        }
        judge(ambient.ledger.monitor.after_step(me, process));
        verdict
    }

    /// What is wrong with an end of which this is the ambient; remembers it.
    fn judged_end(&mut self, ambient: u32, ended: Ended) -> Option<Violation> {
        if let Some(known) = self.ends.get(&(ambient, ended)) {
            return known.clone();
        }
        let violation = self.judge_ambient(ambient, ended).err();
        self.ends.insert((ambient, ended), violation.clone());
        violation
    }

    fn judge_ambient(&self, ambient: u32, ended: Ended) -> Verdict {
        let ambient = self.ambients.get(ambient);
        deadlock(&ambient.ledger.application.waiting(), &self.model.options)?;
        let up = (0..self.model.n()).filter(|p| ended.alive >> p & 1 == 1);
        let alive = up.map(|p| self.model.group.id(p as usize)).collect();
        let end = End { alive, faulty: ambient.spent.is_faulty(), quiet: !ended.stopped };
        self.model.filter(ambient.ledger.monitor.at_end(&end))
    }
}

/// Writes down that `who`, one of so many, has to do with `what`.
fn note(book: &mut Vec<Vec<u32>>, who: u32, what: u32, many: usize) {
    if (who as usize) < many {
        book.resize_with(many.max(book.len()), Vec::new);
        book[who as usize].push(what);
    }
}

fn send(message: u32, fifo: bool, tables: &mut Tables) {
    let key = if fifo { tables.messages[message as usize].channel } else { message };
    tables.sends.push(Sent { key, message });
}

fn list(items: impl Iterator<Item = u32>, tables: &mut Tables) -> (u32, u32) {
    let begin = tables.lists.len() as u32;
    tables.lists.extend(items);
    (begin, tables.lists.len() as u32)
}

/// Carries out what stays with the process, and keeps what shows.
struct Shows<'a> {
    model: &'a Model,
    local: &'a mut Local,
    shown: Vec<Shown>,
    draws: &'a mut Draws,
}

impl Host<AnyProcess> for Shows<'_> {
    fn perform(&mut self, effect: Effect<AnyProcess>) {
        match effect {
            Effect::Send { to, message } => {
                self.shown.push(match self.model.group.place(to) {
                    Some(place) => Shown::Send(place as u32, message),
                    None => Shown::Astray(to),
                });
            }
            Effect::SetTimer { timer, after } => {
                let (left, whole) = steps(after, &self.model.options);
                match self.local.timers.binary_search_by(|t| t.0.cmp(&timer)) {
                    Ok(i) => self.local.timers[i].1 = left,
                    Err(i) => self.local.timers.insert(i, (timer, left)),
                }
                if !whole {
                    self.shown.push(Shown::Untimely(after));
                }
            }
            Effect::CancelTimer { timer } => self.local.timers.retain(|(t, _)| *t != timer),
            Effect::Indicate(indication) => self.shown.push(Shown::Indicate(indication)),
            Effect::Save(record) => self.local.saved = Some(record),
            Effect::Unexpected(what) => self.shown.push(Shown::Unexpected(what)),
        }
    }
    fn choose(&mut self, bound: u32) -> u32 {
        self.draws.draw(bound)
    }
}
