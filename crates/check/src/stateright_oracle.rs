//! Tests the search against stateright: that engine, searching the plain rules of a model, must find the same
//! states and the same verdicts.

use std::fmt;
use std::hash::{Hash, Hasher};

use konklave_algorithms::election::{
    bully::Bully, chang_roberts::ChangRoberts, franklin::Franklin, tree_wave::TreeWave,
};
use konklave_algorithms::mutex::{
    central::Central, lamport::Lamport, ricart_agrawala::RicartAgrawala,
    suzuki_kasami::SuzukiKasami,
};
use konklave_algorithms::{Algorithm, Setup, Watch, Workload, erased};
use konklave_process::{Group, Portable, Topology};
use stateright::{Checker, Property};

use crate::draws::Draws;
use crate::model::Action;
use crate::state::State;
use crate::{Clock, Model, Options, Outcome};

struct Plain(Model);

#[derive(Clone)]
struct Seen {
    state: State,
    broken: bool,
    print: u128,
}

impl Plain {
    fn seen(&self, state: State, mut broken: bool) -> Seen {
        let mut actions = Vec::new();
        self.0.actions(&state, &mut actions);
        if self.0.is_over(&state, &actions) {
            broken |= self.0.judge_end(&state).is_err();
        }
        let print = state.fingerprint(self.0.options.fifo);
        Seen { state, broken, print }
    }
}

impl stateright::Model for Plain {
    type State = Seen;
    type Action = (Action, u32);

    fn init_states(&self) -> Vec<Self::State> {
        let (state, verdict) = self.0.initial(&mut Draws::default(), &mut None);
        vec![self.seen(state, self.0.filter(verdict).is_err())]
    }

    fn actions(&self, seen: &Self::State, found: &mut Vec<Self::Action>) {
        let mut actions = Vec::new();
        self.0.actions(&seen.state, &mut actions);
        for action in actions {
            let mut draws = Draws::default();
            for draw in 0.. {
                let _ = self.0.apply(&mut seen.state.clone(), action, &mut draws, &mut None);
                found.push((action, draw));
                if !draws.advance() {
                    break;
                }
            }
        }
    }

    fn next_state(&self, seen: &Self::State, (action, draw): Self::Action) -> Option<Self::State> {
        let mut draws = Draws::default();
        for _ in 0..draw {
            let _ = self.0.apply(&mut seen.state.clone(), action, &mut draws, &mut None);
            draws.advance();
        }
        let mut state = seen.state.clone();
        let verdict = self.0.apply(&mut state, action, &mut draws, &mut None);
        Some(self.seen(state, self.0.filter(verdict).is_err()))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("all is well", |_, seen: &Seen| !seen.broken)]
    }
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        self.print == other.print
    }
}

impl Hash for Seen {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.print.hash(state);
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.print)
    }
}

/// A model of algorithm `P`, with the judges of its problem.
pub(crate) fn model<P>(setup: &Setup, workload: &Workload, options: Options) -> Model
where
    P: Algorithm + Portable,
{
    let algorithm = erased::<P>();
    Model {
        group: setup.group.clone(),
        processes: algorithm.processes(setup),
        application: algorithm.application(workload, setup),
        monitor: algorithm.monitor(&Watch::default(), setup),
        options,
    }
}

/// Explores with both engines; returns the number of states, or none if a property is violated.
fn both<P>(setup: &Setup, workload: &Workload, options: Options) -> Option<u64>
where
    P: Algorithm + Portable,
{
    let model = || model::<P>(setup, workload, options.clone());
    let ours = model().explore(|_| true);
    let well = matches!(ours.outcome, Outcome::Exhausted);
    let theirs = stateright::Model::checker(Plain(model())).spawn_bfs().join();
    assert_eq!(theirs.discoveries().is_empty(), well, "{}: the same verdict", P::SHEET.name);
    if !well {
        return None;
    }
    assert_eq!(theirs.unique_state_count() as u64, ours.states, "{}", P::SHEET.name);
    // stateright counts the start as a transition, too.
    assert_eq!(theirs.state_count() as u64 - 1, ours.transitions, "{}", P::SHEET.name);
    Some(ours.states)
}

pub(crate) fn everyone(setup: &Setup, requests: &[u32]) -> Workload {
    Workload { initiators: setup.group.members().to_vec(), requests: requests.to_vec() }
}

fn setup(topology: Topology, mistake: Option<&'static str>) -> Setup {
    Setup { mistake, ..Setup::new(Group::of(topology.len()), topology) }
}

#[test]
fn stateright_finds_the_same_states_with_and_without_fifo() {
    let three = setup(Topology::complete(3), None);
    for fifo in [true, false] {
        let options = Options { fifo, ..Options::default() };
        let some = everyone(&three, &[1, 1, 1]);
        both::<RicartAgrawala>(&three, &some, options.clone()).expect("all is well");
        both::<SuzukiKasami>(&three, &some, options.clone()).expect("all is well");
        both::<Central>(&three, &some, options.clone()).expect("all is well");
        let path = setup(Topology::path(4), None);
        both::<TreeWave>(&path, &everyone(&path, &[]), options).expect("all is well");
    }
}

#[test]
fn stateright_finds_the_same_states_under_every_fault() {
    let ring = setup(Topology::directed_ring(3), None);
    let all = everyone(&ring, &[1, 1, 1]);
    let unjudged = vec!["nothing".to_owned()];
    let plain = Options { properties: unjudged, ..Options::default() };
    for options in [
        Options { crashes: 1, restarts: 1, ..plain.clone() },
        Options { crashes: 2, restarts: 2, ..plain.clone() },
        Options { crashes: 1, restarts: 1, timing: crate::Timing::WhenQuiet, ..plain.clone() },
        Options { crashes: 1, detector: false, fifo: false, ..plain.clone() },
        Options { losses: 1, duplicates: 1, ..plain.clone() },
        Options { losses: 1, duplicates: 1, fifo: false, ..plain.clone() },
        Options { cuts: 1, ..plain.clone() },
        Options { breaks: 2, ..plain.clone() },
        Options { breaks: 1, crashes: 1, restarts: 1, ..plain.clone() },
        Options { breaks: 1, crashes: 1, timing: crate::Timing::WhenQuiet, ..plain.clone() },
        Options {
            breaks: 1,
            links: vec![(konklave_process::ProcessId(2), konklave_process::ProcessId(0))],
            cuts: 1,
            detector: false,
            fifo: false,
            ..plain.clone()
        },
        Options { app_messages: 1, count_messages: true, ..plain.clone() },
        Options { crashes: 1, timing: crate::Timing::WhenQuiet, ..plain.clone() },
        Options { down: vec![konklave_process::ProcessId(1)], ..plain.clone() },
    ] {
        both::<ChangRoberts>(&ring, &all, options).expect("nothing is judged");
    }
}

#[test]
fn another_engine_finds_the_same_states_by_the_clock() {
    let step = std::time::Duration::from_millis(1);
    let three = setup(Topology::complete(3), None);
    let one = Workload { initiators: vec![konklave_process::ProcessId(0)], requests: vec![] };
    let unjudged = Options { properties: vec!["nothing".to_owned()], ..Options::default() };
    let clock = |limit| Some(Clock { step, limit, settled: false });
    let timed = |limit| Options { clock: clock(limit), ..unjudged.clone() };
    let quiet = |limit| Options { timing: crate::Timing::WhenQuiet, ..timed(limit) };
    for options in [
        quiet(None),
        Options { crashes: 1, restarts: 1, ..quiet(None) },
        Options { early: 2, losses: 1, ..quiet(Some(12)) },
        Options { detector: false, crashes: 1, ..timed(Some(3)) },
        Options { most_messages: Some(4), ..quiet(None) },
    ] {
        both::<Bully>(&three, &one, options).expect("nothing is judged");
    }
    // Nobody has been elected when the first has waited for one step.
    let soon =
        Options { clock: Some(Clock { step, limit: Some(1), settled: true }), ..quiet(None) };
    let down = Setup { down: vec![konklave_process::ProcessId(2)], ..three.clone() };
    let soon = Options { down: down.down.clone(), properties: vec![], ..soon };
    assert_eq!(both::<Bully>(&down, &one, soon.clone()), None, "not settled by then");
    let later = Options { clock: clock(Some(1)), ..soon };
    both::<Bully>(&down, &one, later).expect("there is more time than was looked at");
    let bounded = Options {
        properties: vec!["bound".to_owned()],
        most_messages: Some(3),
        timing: crate::Timing::WhenQuiet,
        ..Options::default()
    };
    assert_eq!(both::<Bully>(&three, &one, bounded), None, "more messages than that");
}

#[test]
fn stateright_finds_the_same_states_for_every_choice_of_victims() {
    use crate::Victim::{Anyone, Arbiter, Coordinator, Holder, Idle, IdleTokenHolder, Waiting};
    let three = setup(Topology::complete(3), None);
    let all = everyone(&three, &[1, 1, 1]);
    for victims in [Anyone, Idle, Waiting, Holder, Arbiter, Coordinator, IdleTokenHolder] {
        let properties = vec!["nothing".to_owned()];
        let options = Options { crashes: 1, victims, properties, ..Options::default() };
        let coordinator = Some(three.group.id(0));
        let central = Options { coordinator, ..options.clone() };
        both::<Central>(&three, &all, central).expect("nothing is judged");
        both::<SuzukiKasami>(&three, &all, options).expect("nothing is judged");
    }
}

#[test]
fn stateright_refutes_the_same_mistakes() {
    let two = setup(Topology::complete(2), Some("no-tie-break"));
    let options = Options::default();
    assert_eq!(both::<RicartAgrawala>(&two, &everyone(&two, &[1, 1]), options.clone()), None);
    let path = setup(Topology::path(4), Some("leaf-rule"));
    let ends = Workload {
        initiators: vec![konklave_process::ProcessId(0), konklave_process::ProcessId(3)],
        requests: vec![],
    };
    assert_eq!(both::<TreeWave>(&path, &ends, options.clone()), None);
    let three = setup(Topology::complete(3), None);
    let lossy = Options { losses: 1, ..options };
    assert_eq!(both::<Central>(&three, &everyone(&three, &[1, 1, 1]), lossy), None);
}

/// Explores with and without reduction: verdict, ends and messages must be the same. Returns whether the
/// reduction saved states.
fn reduced<P: Algorithm + Portable>(setup: &Setup, requests: &[u32], fifo: bool) -> bool {
    let workload = everyone(setup, requests);
    let explore = |reduce| {
        let options = Options { fifo, reduce, count_messages: true, ..Options::default() };
        model::<P>(setup, &workload, options).explore(|_| true)
    };
    let (full, few) = (explore(false), explore(true));
    let name = P::SHEET.name;
    let well = matches!(full.outcome, Outcome::Exhausted);
    assert_eq!(matches!(few.outcome, Outcome::Exhausted), well, "{name}: the same verdict");
    if well {
        assert_eq!((few.ends, few.messages), (full.ends, full.messages), "{name}: the same ends");
    }
    well && few.states < full.states
}

#[test]
fn reduction_preserves_verdicts_and_ends() {
    let three = setup(Topology::complete(3), None);
    let ring = setup(Topology::ring(3), None);
    for fifo in [true, false] {
        assert!(reduced::<RicartAgrawala>(&three, &[1, 1, 1], fifo), "it is reduced");
        reduced::<RicartAgrawala>(&three, &[2, 1, 1], fifo);
        reduced::<SuzukiKasami>(&three, &[1, 1, 1], fifo);
        reduced::<Central>(&three, &[1, 2, 1], fifo);
        reduced::<Lamport>(&three, &[1, 1, 1], fifo);
        reduced::<ChangRoberts>(&setup(Topology::directed_ring(4), None), &[1; 4], fifo);
        reduced::<Franklin>(&ring, &[1, 1, 1], fifo);
        for mistake in RicartAgrawala::SHEET.mistakes {
            let wrong = setup(Topology::complete(3), Some(mistake.name));
            reduced::<RicartAgrawala>(&wrong, &[1, 1, 1], fifo);
        }
        for mistake in SuzukiKasami::SHEET.mistakes {
            let wrong = setup(Topology::complete(3), Some(mistake.name));
            reduced::<SuzukiKasami>(&wrong, &[2, 1, 1], fifo);
        }
    }
}
