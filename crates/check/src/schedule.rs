//! A schedule in words: which actions happen, and in which order.
//!
//! Its steps name processes and channels, not indices of a search. So a schedule can be pasted into a test,
//! and keeps its meaning when some steps are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use konklave_process::{AnyProcess, Application, Input, ProcessId, Violation};

use crate::draws::Draws;
use crate::enabled::is_first_news;
use crate::model::{Action, Model};
use crate::state::{Running, State};
use crate::witness::{Moment, Witness, WitnessRecorder, WorldEvent};

/// A schedule of at most this many steps is shrunk by leaving out every run of adjacent steps, not only
/// halves, quarters and so on. That matters for a client's request and release, which must go together.
const EXHAUSTIVE_LIMIT: usize = 200;

/// One step of a schedule, in words: `ask 0`, `deliver 0>1`, `crash 2`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleStep {
    words: String,
    /// The answers of `choose`; after them, 0.
    draws: Vec<u32>,
}

impl fmt::Display for ScheduleStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)?;
        for (i, draw) in self.draws.iter().enumerate() {
            write!(f, "{}{draw}", if i == 0 { " drawing " } else { "," })?;
        }
        Ok(())
    }
}

impl ScheduleStep {
    /// The step with these words; none if the draws are not numbers.
    pub fn new(text: &str) -> Option<Self> {
        let (words, draws) = text.split_once(" drawing ").unwrap_or((text, ""));
        let draws = draws.split(',').filter(|d| !d.is_empty()).map(str::parse);
        Some(Self { words: words.to_owned(), draws: draws.collect::<Result<_, _>>().ok()? })
    }
}

/// Records the schedule of a run while its moments are read.
#[derive(Debug, Default)]
pub struct ScheduleRecorder {
    schedule: Vec<ScheduleStep>,
    /// The messages in flight, by channel.
    flight: BTreeMap<(ProcessId, ProcessId), Vec<u64>>,
    channels: BTreeMap<u64, (ProcessId, ProcessId)>,
    /// The processes that are down and the channels that are cut: messages there are lost by themselves.
    down: BTreeSet<ProcessId>,
    cut: BTreeSet<(ProcessId, ProcessId)>,
}

impl ScheduleRecorder {
    /// Records a step of a process; `id` is the number of the message if the input was one.
    pub fn step(&mut self, at: ProcessId, input: &Input<AnyProcess>, id: u64, draws: &[u32]) {
        let words = match input {
            Input::Start => format!("start {}", at.0),
            // The restart was recorded just before.
            Input::Recover(_) => {
                if let Some(step) = self.schedule.last_mut() {
                    step.draws = draws.to_vec();
                }
                return;
            }
            Input::Request(_) => format!("ask {}", at.0),
            Input::Message { .. } | Input::Stamp { .. } => self.name_message("deliver", id, true),
            Input::Timer(timer) => format!("fire {} {timer:?}", at.0),
            Input::Suspect(peer) => format!("learn {} down {}", at.0, peer.0),
            Input::Trust(peer) => format!("learn {} up {}", at.0, peer.0),
        };
        self.schedule.push(ScheduleStep { words, draws: draws.to_vec() });
    }

    /// Records a message sent.
    pub fn sent(&mut self, from: ProcessId, to: ProcessId, id: u64) {
        self.flight.entry((from, to)).or_default().push(id);
        self.channels.insert(id, (from, to));
    }

    /// Records a lost message. If its receiver is down or its channel is cut, the step is a delivery: without
    /// that crash or cut, the message arrives.
    pub fn lost(&mut self, id: u64) {
        let unheard = self
            .channels
            .get(&id)
            .is_some_and(|channel| self.down.contains(&channel.1) || self.cut.contains(channel));
        let words = self.name_message(if unheard { "deliver" } else { "lose" }, id, true);
        self.push(words);
    }

    /// Records a duplicated message.
    pub fn duplicated(&mut self, id: u64) {
        let words = self.name_message("duplicate", id, false);
        self.push(words);
        let channel = self.channels.get(&id).and_then(|channel| self.flight.get_mut(channel));
        if let Some(row) = channel
            && let Some(i) = row.iter().position(|m| *m == id)
        {
            row.insert(i + 1, id);
        }
    }

    /// Records an event outside all handlers; `id` is the number of the message if it sent one.
    pub fn happened(&mut self, happened: WorldEvent, id: u64) {
        let words = match happened {
            WorldEvent::Crash(p) => format!("crash {}", p.0),
            WorldEvent::Restart(p) => format!("restart {}", p.0),
            WorldEvent::Cut(from, to) => format!("cut {}>{}", from.0, to.0),
            WorldEvent::Break(one, other) => format!("break {}-{}", one.0, other.0),
            WorldEvent::AppMessage(from, to) => format!("tell {}>{}", from.0, to.0),
            WorldEvent::Pass => "pass".to_owned(),
        };
        self.push(words);
        match happened {
            WorldEvent::Crash(p) => drop(self.down.insert(p)),
            WorldEvent::Restart(p) => drop(self.down.remove(&p)),
            WorldEvent::Cut(from, to) => drop(self.cut.insert((from, to))),
            WorldEvent::Break(one, other) => self.cut.extend([(one, other), (other, one)]),
            WorldEvent::AppMessage(from, to) => self.sent(from, to, id),
            WorldEvent::Pass => {}
        }
    }

    /// The schedule recorded.
    pub fn finish(self) -> Vec<ScheduleStep> {
        self.schedule
    }

    fn push(&mut self, words: String) {
        self.schedule.push(ScheduleStep { words, draws: Vec::new() });
    }

    /// Names message `id` by its channel and its position there; removes it from the channel if `gone`.
    fn name_message(&mut self, verb: &str, id: u64, gone: bool) -> String {
        let Some(&(from, to)) = self.channels.get(&id) else { return format!("{verb} ?") };
        let row = self.flight.entry((from, to)).or_default();
        let Some(at) = row.iter().position(|m| *m == id) else { return format!("{verb} ?") };
        if gone {
            row.remove(at);
        }
        let place = if at == 0 { String::new() } else { format!(" #{at}") };
        format!("{verb} {}>{}{place}", from.0, to.0)
    }
}

impl Witness {
    /// The schedule of this run.
    pub fn schedule(&self) -> Vec<ScheduleStep> {
        let mut recorder = ScheduleRecorder::default();
        for moment in &self.moments {
            match moment {
                Moment::Step { at, input, message, draws, effects, .. } => {
                    recorder.step(*at, input, *message, draws);
                    for (effect, id) in effects {
                        if let konklave_process::Effect::Send { to, .. } = effect {
                            recorder.sent(*at, *to, *id);
                        }
                    }
                }
                Moment::Lost(id) => recorder.lost(*id),
                Moment::Duplicated(id) => recorder.duplicated(*id),
                Moment::World(happened, id) => recorder.happened(*happened, *id),
            }
        }
        recorder.finish()
    }
}

/// The result of playing a schedule.
#[derive(Clone, Debug)]
pub struct Playback {
    /// All steps and events.
    pub moments: Vec<Moment>,
    /// How many of the first moments are the members starting.
    pub starts: usize,
    /// The violation, and how many steps of the schedule led to it.
    pub broken: Option<(Violation, usize)>,
    /// The steps that were not possible, by index.
    pub skipped: Vec<usize>,
}

impl Model {
    /// Plays a schedule by the plain rules, without regard to fault budgets. Skips steps that are not
    /// possible. Stops at the first violation; otherwise, if the last state is an end, judges it.
    pub fn play(&self, schedule: &[ScheduleStep]) -> Playback {
        let starts = schedule.iter().take_while(|step| step.words.starts_with("start ")).count();
        let drawn = schedule[..starts].iter().flat_map(|step| step.draws.iter().copied());
        let mut log = WitnessRecorder::default();
        let (mut state, verdict) =
            self.initial(&mut Draws::of(drawn.collect()), &mut Some(&mut log));
        let came_up = log.moments.len();
        let mut broken = self.filter(verdict).err().map(|violation| (violation, starts));
        let mut skipped = Vec::new();
        for (i, step) in schedule.iter().enumerate().skip(starts) {
            if broken.is_some() {
                break;
            }
            let Some(action) = self.action_for(&state, &step.words) else {
                skipped.push(i);
                continue;
            };
            let mut draws = Draws::of(step.draws.clone());
            let verdict = self.apply(&mut state, action, &mut draws, &mut Some(&mut log));
            broken = self.filter(verdict).err().map(|violation| (violation, i + 1));
        }
        let mut actions = Vec::new();
        self.actions(&state, &mut actions);
        if broken.is_none() && self.is_over(&state, &actions) {
            broken = self.judge_end(&state).err().map(|violation| (violation, schedule.len()));
        }
        Playback { moments: log.moments, starts: came_up, broken, skipped }
    }

    /// The action that these words name, if it is possible in this state.
    fn action_for(&self, state: &State, words: &str) -> Option<Action> {
        if words == "pass" {
            return self.may_pass(state).then_some(Action::Pass);
        }
        let mut parts = words.splitn(3, ' ');
        let (verb, whom) = (parts.next()?, parts.next()?);
        let rest = parts.next();
        let place = |id: &str| self.group.place(ProcessId(id.parse().ok()?)).map(|p| p as u32);
        if let Some((from, to)) = whom.split_once('>') {
            let channel = (place(from)?, place(to)?);
            let (from, to) = channel;
            let nth = match rest {
                None => 0,
                Some(nth) => nth.strip_prefix('#')?.parse().ok()?,
            };
            let row = state.flight.iter().enumerate().filter(|(_, f)| f.channel == channel);
            let message = row.map(|(i, _)| i as u32).nth(nth);
            let in_order = !self.options.fifo || nth == 0;
            let heard = state.is_up(to) && !self.is_cut(state, from, to);
            return match verb {
                "deliver" => message.filter(|_| in_order).map(Action::Deliver),
                // A message to a process that is down, or on a cut channel, is lost by its delivery.
                "lose" if !heard => message.filter(|_| in_order).map(Action::Deliver),
                "lose" => message.map(Action::Lose),
                "duplicate" => message.map(Action::Duplicate),
                "tell" => state.is_up(from).then_some(Action::AppMessage(from, to)),
                "cut" => {
                    (from != to && !self.is_cut(state, from, to)).then_some(Action::Cut(from, to))
                }
                _ => None,
            };
        }
        if let Some((one, other)) = whom.split_once('-') {
            let (one, other) = (place(one)?, place(other)?);
            let whole = one != other && !self.is_broken(state, one, other);
            return (verb == "break" && whole).then_some(Action::Break(one, other));
        }
        let at = place(whom)?;
        let up = state.is_up(at);
        match verb {
            "ask" => {
                let asks = state.ledger.application.next(self.group.id(at as usize)).is_some();
                (up && asks).then_some(Action::Ask(at))
            }
            "fire" => {
                let runs = |(p, timer, left): &Running| {
                    *p == at && *left == 0 && rest.is_some_and(|name| format!("{timer:?}") == name)
                };
                state.timers.iter().position(runs).map(|i| Action::Fire(i as u32))
            }
            "learn" => {
                let (way, peer) = rest?.split_once(' ')?;
                let news = (at, ProcessId(peer.parse().ok()?), way == "up");
                let at = state.news.iter().position(|n| *n == news);
                let at = at.filter(|i| is_first_news(&state.news, *i));
                at.map(|i| Action::Learn(i as u32))
            }
            "crash" => up.then_some(Action::Crash(at)),
            "restart" => (!up).then_some(Action::Restart(at)),
            _ => None,
        }
    }

    /// Shrinks a schedule that violates `property`: leaves out steps until no single step can be left out.
    /// None if the schedule does not violate it.
    pub fn shrink(&self, schedule: &[ScheduleStep], property: &str) -> Option<Vec<ScheduleStep>> {
        let breaks = |schedule: &[ScheduleStep]| -> Option<Vec<ScheduleStep>> {
            let played = self.play(schedule);
            let (violation, end) = played.broken?;
            let used =
                (0..end).filter(|i| !played.skipped.contains(i)).map(|i| schedule[i].clone());
            (violation.property == property).then(|| used.collect())
        };
        let mut least = breaks(schedule)?;
        // The members' starts stay.
        let starts = least.iter().take_while(|step| step.words.starts_with("start ")).count();
        let mut size = least.len().saturating_sub(starts).div_ceil(2);
        while size > 0 {
            let (mut at, mut smaller) = (starts, false);
            while at + size <= least.len() {
                let fewer = [&least[..at], &least[at + size..]].concat();
                match breaks(&fewer) {
                    Some(found) => (least, smaller) = (found, true),
                    None if least.len() <= EXHAUSTIVE_LIMIT => at += 1,
                    None => at += size,
                }
            }
            size = match size {
                1 if smaller => 1,
                _ if least.len() <= EXHAUSTIVE_LIMIT => size - 1,
                _ => size / 2,
            };
        }
        Some(least)
    }
}
