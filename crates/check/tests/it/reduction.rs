//! Reduction and symmetry preserve verdicts: random processes, explored with and without them.

use std::sync::Arc;

use konklave_check::{Model, Options, Outcome, Report};
use konklave_process::{
    AnyApplication, AnyMonitor, AnyProcess, Application, Context, Fixed, Group, Inspect, Monitor,
    NoRecord, NoTimer, Process, ProcessId, Rng, Verdict, Violation,
};
use serde::{Deserialize, Serialize};

/// A state is a set of kinds.
const STATES: u8 = 1 << KINDS;
const KINDS: u8 = 3;

/// The reaction of a process in one state to one kind of message.
#[derive(Clone, Debug)]
struct Rule {
    next: u8,
    sends: Vec<(u32, u8)>,
    says: Option<u8>,
    /// How many answers `choose` has; answer 1 resets the state.
    draws: u32,
}

/// A process whose steps are looked up in a table. A message sent on receipt of another has one life less,
/// so that every run ends.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Machine {
    state: u8,
    /// Whether receivers are relative to the sender's own id.
    #[serde(skip)]
    turned: Fixed<bool>,
    #[serde(skip)]
    rules: Fixed<Arc<Vec<Rule>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
struct Message {
    kind: u8,
    lives: u8,
}

impl Machine {
    fn step(&mut self, kind: u8, lives: u8, ctx: &mut Context<'_, Self>) {
        let rule = self.rules[usize::from(self.state * (KINDS + 1) + kind)].clone();
        self.state = rule.next;
        if rule.draws > 1 && ctx.choose(rule.draws) == 1 {
            self.state = 0;
        }
        for (to, kind) in rule.sends {
            let by = if *self.turned { ctx.me().0 } else { 0 };
            let to = ProcessId((to + by) % ctx.group_size() as u32);
            if lives > 0 && to != ctx.me() {
                ctx.send(to, Message { kind, lives: lives - 1 });
            }
        }
        if let Some(word) = rule.says {
            ctx.indicate(word);
        }
    }
}

impl Process for Machine {
    type Message = Message;
    type Timer = NoTimer;
    type Request = ();
    type Indication = u8;
    type Record = NoRecord;

    fn on_request(&mut self, (): (), ctx: &mut Context<'_, Self>) {
        self.step(KINDS, 3, ctx);
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        self.step(message.kind, message.lives, ctx);
    }
}

impl Inspect for Machine {}

/// Clients that ask once, some of them once more after an indication of 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Clients(Vec<u8>);

impl Application<Machine> for Clients {
    fn next(&self, at: ProcessId) -> Option<()> {
        (self.0[at.0 as usize] % 2 == 1).then_some(())
    }
    fn on_request(&mut self, at: ProcessId, (): &()) {
        self.0[at.0 as usize] -= 1;
    }
    fn on_indication(&mut self, at: ProcessId, word: &u8) {
        if self.0[at.0 as usize] == 2 && *word == 1 {
            self.0[at.0 as usize] = 1;
        }
    }
    fn waiting(&self) -> Vec<ProcessId> {
        Vec::new()
    }
}

/// Remembers the indications of each process: as a set, or as a sequence.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Judge {
    words: Vec<(ProcessId, u8)>,
    in_order: Fixed<bool>,
}

impl Monitor<Machine> for Judge {
    type Tag = ();

    fn on_indication(&mut self, at: ProcessId, word: &u8) -> Verdict {
        if *self.in_order {
            self.words.push((at, *word));
            self.words.truncate(3);
        } else if let Err(i) = self.words.binary_search(&(at, *word)) {
            self.words.insert(i, (at, *word));
        }
        let broken = if *self.in_order {
            self.words.windows(2).any(|w| w[0].1 != w[1].1 && w[0].0 > w[1].0)
        } else {
            self.words.len() > 2
        };
        if broken { Err(Violation::new("words", format!("{:?}", self.words))) } else { Ok(()) }
    }

    fn view(&self, _process: &Machine) -> Option<u64> {
        Some(0)
    }

    fn remembers_messages(&self) -> bool {
        false
    }
}

/// A rule: usually it adds to the set, which commutes until the set is full; sometimes it is random.
fn rule(state: u8, kind: u8, n: u32, habit: &[(u32, u8)], rng: &mut Rng) -> Rule {
    if rng.chance(0.08) {
        let next = rng.below(STATES.into()) as u8;
        let many = rng.below(3);
        let sends = (0..many).map(|_| (rng.below(n), rng.below(KINDS.into()) as u8)).collect();
        let says = rng.chance(0.3).then(|| rng.below(2) as u8);
        return Rule { next, sends, says, draws: 1 + u32::from(rng.chance(0.2)) };
    }
    let next = if kind < KINDS { state | 1 << kind } else { state };
    let full = next == STATES - 1 && state != next;
    Rule { next, sends: habit.to_vec(), says: full.then_some(kind % 2), draws: 1 }
}

fn model(seed: u64, alike: bool, options: Options) -> Model {
    let mut rng = Rng::new(seed);
    let n = 2 + rng.below(3);
    let machine = |rng: &mut Rng| {
        let habits: Vec<Vec<(u32, u8)>> = (0..=KINDS)
            .map(|kind| {
                let many = if kind == KINDS { 1 + rng.below(3) } else { rng.below(2) };
                (0..many).map(|_| (rng.below(n), rng.below(KINDS.into()) as u8)).collect()
            })
            .collect();
        let mut rules = Vec::new();
        for state in 0..STATES {
            let of_kind = |kind: u8| rule(state, kind, n, &habits[usize::from(kind)], rng);
            rules.extend((0..=KINDS).map(of_kind));
        }
        Machine { state: 0, turned: Fixed(alike), rules: Fixed(Arc::new(rules)) }
    };
    let mut processes: Vec<_> = (0..n).map(|_| AnyProcess::new(machine(&mut rng))).collect();
    let mut asks: Vec<u8> = (0..n).map(|_| [1, 1, 3, 0][rng.below(4) as usize]).collect();
    if alike {
        processes = vec![processes[0].clone(); n as usize];
        asks = vec![asks[0].max(1); n as usize];
    }
    let in_order = Fixed(rng.chance(0.4));
    Model {
        group: Group::of(n as usize),
        processes,
        application: AnyApplication::new::<Machine>(Clients(asks)),
        monitor: AnyMonitor::new::<Machine>(Judge { words: Vec::new(), in_order }),
        options,
    }
}

fn kind(report: &Report) -> &'static str {
    match report.outcome {
        Outcome::Exhausted => "exhausted",
        Outcome::Violated(_) => "violated",
        Outcome::Bounded(_) => "bounded",
    }
}

#[test]
fn reduction_preserves_verdicts_and_ends_of_random_processes() {
    let (mut smaller, mut violated) = (0, 0);
    for seed in 0..3000 {
        let fifo = seed % 2 == 0;
        let options = Options { fifo, threads: 1, max_states: 30_000, ..Options::default() };
        let full = model(seed, false, options.clone()).explore(|_| true);
        if kind(&full) == "bounded" {
            continue;
        }
        let reduced = model(seed, false, Options { reduce: true, ..options }).explore(|_| true);
        assert_eq!(kind(&full), kind(&reduced), "seed {seed}");
        if kind(&full) == "violated" {
            violated += 1;
            continue;
        }
        assert_eq!(full.ends, reduced.ends, "seed {seed}: the same ends");
        assert!(reduced.states <= full.states, "seed {seed}");
        smaller += u32::from(reduced.states < full.states);
    }
    assert!(smaller > 1000 && violated > 100, "{smaller} {violated}: both happen often");
}

#[test]
fn reduction_and_symmetry_together_preserve_verdicts_of_random_processes() {
    let (mut smaller, mut violated) = (0, 0);
    for seed in 0..1500 {
        let fifo = seed % 2 == 0;
        let options = Options { fifo, threads: 1, max_states: 20_000, ..Options::default() };
        let explore = |symmetry, reduce, threads| {
            let options = Options { symmetry, reduce, threads, ..options.clone() };
            model(seed, true, options).explore(|_| true)
        };
        let full = explore(false, false, 1);
        if kind(&full) == "bounded" {
            continue;
        }
        let both = explore(true, true, 1);
        if kind(&full) == "violated" && kind(&both) == "bounded" {
            // The runs left over are longer, so the bound may come first.
            continue;
        }
        assert_eq!(kind(&full), kind(&both), "seed {seed}");
        let (renamed, reduced) = (explore(true, false, 1), explore(false, true, 1));
        if let (Outcome::Violated(shown), Outcome::Violated(shortest)) =
            (&both.outcome, &renamed.outcome)
        {
            violated += 1;
            assert_eq!(shown.violation.property, shortest.violation.property, "seed {seed}");
            assert!(shown.len() >= shortest.len(), "seed {seed}: none is shorter");
            continue;
        }
        assert_eq!(both.ends, renamed.ends, "seed {seed}: as many kinds of ends");
        assert!(both.states <= renamed.states, "seed {seed}");
        smaller += u32::from(both.states < renamed.states.min(reduced.states));
        if seed % 8 == 0 {
            let two = explore(true, true, 2);
            let counts = |report: &Report| (report.states, report.transitions);
            assert_eq!(counts(&two), counts(&both), "seed {seed}: on two threads");
        }
    }
    assert!(smaller > 200 && violated > 100, "{smaller} {violated}: both happen often");
}
