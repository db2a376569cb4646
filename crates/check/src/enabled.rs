//! Which actions are enabled in a state, and what an end is, by the plain rules. Schedules and the
//! stateright test use them.

use konklave_process::{Application, End, Inspect, ProcessId, Verdict, judge_rest};

use crate::Timing;
use crate::model::{Action, Model};
use crate::options::{Situation, links};
use crate::state::{AnyLedger, Flight, State};
use crate::verdicts::deadlock;

impl Action {
    /// Whether it is an action of runs without faults.
    pub(crate) fn is_progress(self) -> bool {
        match self {
            Self::Deliver(_) | Self::Fire(_) | Self::Ask(_) | Self::Learn(_) => true,
            Self::Pass => true,
            Self::AppMessage(..)
            | Self::Crash(_)
            | Self::Cut(..)
            | Self::Break(..)
            | Self::Restart(_)
            | Self::Lose(_)
            | Self::Duplicate(_) => false,
        }
    }
}

impl Model {
    /// All enabled actions, in a fixed order.
    pub(crate) fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.clear();
        let options = &self.options;
        for i in 0..state.flight.len() {
            if self.may_arrive(state, i) {
                actions.push(Action::Deliver(i as u32));
            }
        }
        let known = (0..state.news.len()).filter(|&i| self.may_be_known(state, i));
        actions.extend(known.map(|i| Action::Learn(i as u32)));
        let quiet = self.is_quiet(state);
        let early = options.timing == Timing::WhenQuiet && !quiet;
        if !early || options.clock.is_some() || state.spent.early < options.early {
            let due = (0u32..).zip(&state.timers).filter(|(_, (.., left))| *left == 0);
            actions.extend(due.map(|(i, _)| Action::Fire(i)));
        }
        if self.may_pass(state) {
            actions.push(Action::Pass);
        }
        for place in 0..self.n() {
            let id = self.group.id(place as usize);
            if state.is_up(place) && state.ledger.application.next(id).is_some() {
                actions.push(Action::Ask(place));
            }
        }
        self.add_faults(state, actions);
    }

    /// Adds the faults that the budgets still allow, in a fixed order.
    fn add_faults(&self, state: &State, actions: &mut Vec<Action>) {
        let (options, spent) = (&self.options, &state.spent);
        if spent.app_messages < options.app_messages {
            for from in (0..self.n()).filter(|&p| state.is_up(p)) {
                let others = (0..self.n()).filter(|&to| to != from);
                actions.extend(others.map(|to| Action::AppMessage(from, to)));
            }
        }
        if spent.crashes < options.crashes {
            let waiting = state.ledger.application.waiting();
            let victims = (0..self.n()).filter(|&p| self.may_crash(state, &waiting, p));
            actions.extend(victims.map(Action::Crash));
        }
        if spent.restarts < options.restarts {
            let down = (0..self.n()).filter(|&p| !state.is_up(p));
            actions.extend(down.map(Action::Restart));
        }
        if spent.cuts < options.cuts {
            let channels = (0..self.n()).flat_map(|from| (0..self.n()).map(move |to| (from, to)));
            let whole = channels.filter(|&(from, to)| from != to && !self.is_cut(state, from, to));
            actions.extend(whole.map(|(from, to)| Action::Cut(from, to)));
        }
        if spent.breaks < options.breaks {
            let links = links(options, &self.group);
            let whole = links.filter(|&(one, other)| !self.is_broken(state, one, other));
            actions.extend(whole.map(|(one, other)| Action::Break(one, other)));
        }
        for i in 0..state.flight.len() {
            let first = self.is_first_of_its_kind(state, i);
            if spent.losses < options.losses && first && self.may_arrive(state, i) {
                actions.push(Action::Lose(i as u32));
            }
            if spent.duplicates < options.duplicates && first {
                actions.push(Action::Duplicate(i as u32));
            }
        }
    }

    /// Whether the process at `place` may crash, given the processes whose clients wait.
    fn may_crash(&self, state: &State, waiting: &[ProcessId], place: u32) -> bool {
        let id = self.group.id(place as usize);
        let process = &state.processes[place as usize];
        let is_free = state.flight.iter().all(|message| message.channel.1 != place);
        let situation = Situation {
            waits: waiting.contains(&id),
            holds: state.ledger.application.holds(id),
            at_rest: process.at_rest() && is_free,
            has_token: process.tokens() > 0,
            coordinates: self.options.coordinator == Some(id),
        };
        state.is_up(place) && self.options.victims.includes(situation)
    }

    /// Whether a run may end in this state, given its enabled actions: all of them are faults, or requests that
    /// clients need not make. If the clock has reached its limit with a timer running, the run has not ended,
    /// unless the limit settles it.
    pub(crate) fn is_over(&self, state: &State, actions: &[Action]) -> bool {
        let settles = self.options.clock.is_some_and(|clock| clock.settles(state.spent.time));
        let over = !self.is_stopped(state) || settles;
        over && !actions
            .iter()
            .any(|action| action.is_progress() && !self.is_voluntary(state, action))
    }

    /// Whether an action is a request that its client need not make.
    fn is_voluntary(&self, state: &State, action: &Action) -> bool {
        let &Action::Ask(place) = action else { return false };
        !state.ledger.application.must_request(self.group.id(place as usize))
    }

    /// Whether a timer still runs, so that only the clock's limit has stopped the run.
    fn is_stopped(&self, state: &State) -> bool {
        self.options.clock.is_some() && !state.timers.is_empty()
    }

    /// Whether the message at `i` may be delivered next: the first of its channel, or the first of equal ones.
    fn may_arrive(&self, state: &State, i: usize) -> bool {
        let channel = state.flight[i].channel;
        if self.options.fifo {
            return i == 0 || state.flight[i - 1].channel != channel;
        }
        self.is_first_of_its_kind(state, i)
    }

    /// Whether the news at `i` may reach their process. In the synchronous model, a crash is reported only
    /// after all messages of the crashed process have arrived, so that it cannot be a delay. The same holds
    /// for a broken link and the messages sent over it.
    fn may_be_known(&self, state: &State, i: usize) -> bool {
        let (to, peer, up) = state.news[i];
        if !is_first_news(&state.news, i) {
            return false;
        }
        let sent = |f: &Flight| {
            let from = f.channel.0;
            self.group.id(from as usize) == peer && (f.channel.1 == to || !state.is_up(from))
        };
        up || self.options.timing == Timing::Anytime || !state.flight.iter().any(sent)
    }

    fn is_first_of_its_kind(&self, state: &State, i: usize) -> bool {
        let this = &state.flight[i];
        let earlier = state.flight[..i].iter().rev();
        !earlier.take_while(|f| f.channel == this.channel).any(|f| f.equals(this))
    }

    /// Judges a state in which nothing more can happen.
    pub(crate) fn judge_end(&self, state: &State) -> Verdict {
        let up = (0..self.n()).filter(|&p| state.is_up(p));
        let stopped = self.is_stopped(state);
        self.judge_clients(&state.ledger, up.clone(), state.spent.is_faulty(), !stopped)?;
        let restless = up.into_iter().find(|&p| !state.processes[p as usize].at_rest());
        self.judge_rest(!stopped, restless)
    }

    /// Judges an end, with the processes at the places `up`, by what clients and judges know.
    pub(crate) fn judge_clients(
        &self,
        ledger: &AnyLedger,
        up: impl Iterator<Item = u32>,
        faulty: bool,
        quiet: bool,
    ) -> Verdict {
        deadlock(&ledger.application.waiting(), &self.options)?;
        let alive = up.map(|p| self.group.id(p as usize)).collect();
        self.filter(ledger.judge_clients(&End { quiet, alive, faulty }))
    }

    /// Judges whether the processes rest at an end; the one at the place `restless` does not.
    pub(crate) fn judge_rest(&self, quiet: bool, restless: Option<u32>) -> Verdict {
        let restless = restless.map(|place| self.group.id(place as usize));
        self.filter(judge_rest(quiet, restless))
    }
}

/// Whether no older news of the same peer are on their way to the same process.
pub(crate) fn is_first_news(news: &[(u32, ProcessId, bool)], i: usize) -> bool {
    let of = |i: usize| (news[i].0, news[i].1);
    i == 0 || of(i - 1) != of(i)
}
