//! The search, on a lock whose states and witnesses can be counted by hand.

use konklave_check::{Bounded, Options, Outcome, Report, Swarm};
use konklave_process::ProcessId;

use crate::lock::model;

fn explore(n: usize, left: Option<u8>, fair: bool, options: Options) -> Report {
    model(n, left, fair, options).explore(|_| true)
}

#[test]
fn any_number_of_threads_finds_the_same_states_and_witness() {
    let run = |threads| {
        let options = Options { threads, fifo: false, ..Options::default() };
        let found = explore(5, Some(3), true, options);
        assert!(matches!(found.outcome, Outcome::Exhausted), "{:?}", found.outcome);
        (found.states, found.transitions, found.depth, found.ends)
    };
    let alone = run(1);
    assert!(alone.0 > 50_000, "large enough for all threads to be called: {alone:?}");
    assert_eq!(run(2), alone);
    assert_eq!(run(5), alone);
    let story = |threads| {
        let options = Options { threads, duplicates: 1, fifo: false, ..Options::default() };
        match explore(5, Some(3), false, options).outcome {
            Outcome::Violated(witness) => format!("{:?}", witness.moments),
            other => panic!("a doubled message lets two in: {other:?}"),
        }
    };
    assert_eq!(story(1), story(3));
}

#[test]
fn compact_search_finds_as_many_states_in_less_memory() {
    let properties = vec!["mutual exclusion".to_owned(), "deadlock".to_owned()];
    let run = |compact| {
        let options = Options { compact, properties: properties.clone(), ..Options::default() };
        explore(5, Some(2), true, options)
    };
    let (exact, compact) = (run(false), run(true));
    assert_eq!((exact.states, exact.transitions), (compact.states, compact.transitions));
    assert!(
        exact.miss_probability == 0.0
            && compact.miss_probability > 0.0
            && compact.miss_probability < 1e-8
    );
    assert!(compact.peak_bytes < exact.peak_bytes);
}

#[test]
fn compact_search_notices_cycles_but_does_not_judge_their_fairness() {
    let compact = Options { compact: true, ..Options::default() };
    let found = explore(3, None, false, compact.clone());
    assert!(matches!(found.outcome, Outcome::Bounded(Bounded::Compact)), "{:?}", found.outcome);
    for threads in [1, 2] {
        let found = explore(5, Some(2), true, Options { threads, ..compact.clone() });
        assert!(matches!(found.outcome, Outcome::Exhausted), "it ends: {:?}", found.outcome);
    }
}

#[test]
fn symmetry_is_dropped_if_runs_go_on_forever() {
    let symmetry = Options { symmetry: true, ..Options::default() };
    let few = explore(4, Some(1), true, symmetry.clone());
    let found = few.symmetry.expect("it was asked for");
    assert_eq!(found.permutations, 6, "{found:?}");
    assert!(few.states < explore(4, Some(1), true, Options::default()).states);
    let found = explore(4, None, true, symmetry);
    assert!(matches!(found.outcome, Outcome::Exhausted), "{:?}", found.outcome);
    let found = found.symmetry.expect("it was asked for");
    assert_eq!(found.permutations, 1);
}

#[test]
fn unfair_lock_starves_a_visitor_in_a_fair_lasso() {
    let Outcome::Violated(witness) = explore(4, None, false, Options::default()).outcome else {
        panic!("the lowest are always served first");
    };
    assert_eq!(witness.violation.property, "starvation");
    assert!(witness.loops_from.is_some_and(|from| from < witness.moments.len()));
    let found = explore(4, None, true, Options::default());
    assert!(matches!(found.outcome, Outcome::Exhausted), "first come, first served: {found:?}");
}

#[test]
fn one_of_two_visitors_starves_only_if_requests_overtake_releases() {
    let fifo = explore(3, None, false, Options::default());
    assert!(matches!(fifo.outcome, Outcome::Exhausted), "{:?}", fifo.outcome);
    let unordered = explore(3, None, false, Options { fifo: false, ..Options::default() });
    let Outcome::Violated(witness) = unordered.outcome else {
        panic!("one visitor is overtaken forever")
    };
    assert_eq!(witness.violation.property, "starvation");
}

#[test]
fn costliest_run_has_the_most_messages() {
    let found = explore(3, Some(2), true, Options { count_messages: true, ..Options::default() });
    assert_eq!(found.messages, Some((12, 12)));
    let costliest = found.costliest.expect("all is well");
    let sent: usize = costliest
        .moments
        .iter()
        .map(|moment| match moment {
            konklave_check::Moment::Step { effects, .. } => {
                effects.iter().filter(|(_, id)| *id > 0).count()
            }
            _ => 0,
        })
        .sum();
    assert_eq!(sent, 12);
}

#[test]
fn cut_channel_loses_its_messages() {
    let options = Options { cuts: 1, properties: vec!["deadlock".into()], ..Options::default() };
    match explore(2, Some(1), true, options).outcome {
        Outcome::Violated(witness) => assert_eq!(witness.len(), 3),
        other => panic!("a visitor that is cut off waits forever: {other:?}"),
    }
}

#[test]
fn broken_link_loses_messages_in_both_directions_and_on_no_other_link() {
    let deadlock = vec!["deadlock".to_owned()];
    let options = Options { breaks: 1, properties: deadlock, ..Options::default() };
    // With a detector, its news must reach both ends before the run ends: two more steps.
    for (detector, steps) in [(false, 3), (true, 5)] {
        let options = Options { detector, ..options.clone() };
        match explore(2, Some(1), true, options).outcome {
            Outcome::Violated(witness) => assert_eq!(witness.len(), steps),
            other => panic!("a visitor that is cut off waits forever: {other:?}"),
        }
    }
    // The visitors have no link, so nothing that breaks between them matters.
    let links = vec![(ProcessId(1), ProcessId(2))];
    let apart = Options { links, ..options };
    assert!(matches!(explore(3, Some(1), true, apart).outcome, Outcome::Exhausted));
}

#[test]
fn schedule_has_no_loss_of_its_own_for_messages_lost_by_a_crash_or_cut() {
    let deadlock = vec!["deadlock".to_owned()];
    let crash = Options { crashes: 1, properties: deadlock, ..Options::default() };
    let cut = Options { crashes: 0, cuts: 1, ..crash.clone() };
    let snap = Options { crashes: 0, breaks: 1, ..crash.clone() };
    for (fault, options) in [("crash", crash), ("cut", cut), ("break", snap)] {
        let model = model(3, Some(1), true, options);
        let Outcome::Violated(witness) = model.explore(|_| true).outcome else {
            panic!("{fault}: a visitor that the keeper does not hear waits forever");
        };
        let schedule = witness.schedule();
        let least = model.shrink(&schedule, "deadlock").expect("it breaks again");
        let words: Vec<String> = least.iter().map(ToString::to_string).collect();
        assert!(words.iter().any(|step| step.starts_with(fault)), "{fault}: {words:?}");
        assert!(!words.iter().any(|step| step.starts_with("lose")), "{fault}: {words:?}");
    }
}

#[test]
fn random_runs_find_an_easy_violation_and_never_claim_exhaustion() {
    let swarm = Swarm { shard: 0, of: 2, seed: 7, runs: 200 };
    let options = Options { swarm: Some(swarm), ..Options::default() };
    let well = explore(5, Some(2), true, options.clone());
    assert!(matches!(well.outcome, Outcome::Bounded(Bounded::Sample)));
    let again = explore(5, Some(2), true, options.clone());
    assert_eq!((well.states, well.transitions), (again.states, again.transitions));
    let found = explore(5, Some(2), true, Options { duplicates: 1, ..options });
    assert!(matches!(found.outcome, Outcome::Violated(_)), "{:?}", found.outcome);
}

#[test]
fn search_that_gives_up_reports_the_bound() {
    let bounded = |options| match explore(5, Some(3), true, options).outcome {
        Outcome::Bounded(bound) => bound,
        other => panic!("it gives up: {other:?}"),
    };
    assert_eq!(bounded(Options { max_states: 1000, ..Options::default() }), Bounded::States);
    assert_eq!(bounded(Options { max_depth: 5, ..Options::default() }), Bounded::Depth);
    assert_eq!(bounded(Options { max_bytes: 1 << 16, ..Options::default() }), Bounded::Memory);
}
