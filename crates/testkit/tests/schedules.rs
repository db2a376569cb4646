//! Schedules in words: a witness that is played violates the same property, and shrinks to the steps needed.

use konklave_algorithms::mutex::{central::Central, ricart_agrawala::RicartAgrawala};
use konklave_algorithms::{Algorithm, erased};
use konklave_check::{Model, Options, Outcome, ScheduleStep};
use konklave_process::Portable;
use konklave_testkit::Case;

/// The schedule of a shortest witness, and what it breaks.
fn witness<P: Algorithm + Portable>(case: &Case<P>) -> (Vec<ScheduleStep>, &'static str) {
    let model = model(case);
    let Outcome::Violated(witness) = model.explore(|_| true).outcome else {
        panic!("{}: nothing breaks", P::SHEET.name)
    };
    (witness.schedule(), witness.violation.property)
}

fn model<P: Algorithm + Portable>(case: &Case<P>) -> Model {
    let (algorithm, setup) = (erased::<P>(), &case.setup);
    Model {
        group: setup.group.clone(),
        processes: algorithm.processes(setup),
        application: algorithm.application(&case.workload, setup),
        monitor: algorithm.monitor(&case.watch, setup),
        options: Options { down: setup.down.clone(), ..case.options.clone() },
    }
}

/// Plays the schedule of a witness, as an emitted test does.
fn plays_again<P: Algorithm + Portable>(case: &Case<P>) {
    let (schedule, property) = witness(case);
    let words: Vec<String> = schedule.iter().map(ScheduleStep::to_string).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(case.play(&words), Some(property), "{words:?}");
}

#[test]
fn played_witness_violates_the_same_property() {
    for fifo in [true, false] {
        let group = |case: Case<RicartAgrawala>| if fifo { case } else { case.no_fifo() };
        plays_again(&group(Case::complete(3).mistake("no-tie-break")));
        plays_again(&group(Case::complete(3).mishaps(1, 0)));
        plays_again(&group(Case::complete(3).crashes(1, 0)));
    }
    plays_again(&Case::<RicartAgrawala>::complete(3).crashes(1, 1));
}

#[test]
fn duplicated_message_arrives_twice_and_a_lost_one_never() {
    let case = Case::<Central>::complete(3).requests(&[0, 1, 0]);
    let twice = ["ask 1", "duplicate 1>0", "deliver 1>0", "deliver 1>0"];
    assert_eq!(case.play(&[&["start 0", "start 1", "start 2"][..], &twice].concat()), None);
    let never = ["ask 1", "lose 1>0"];
    let broken = case.play(&[&["start 0", "start 1", "start 2"][..], &never].concat());
    assert_eq!(broken, Some("deadlock"));
}

#[test]
fn long_schedule_shrinks_to_one_without_needless_steps() {
    let case = Case::<RicartAgrawala>::complete(2).mistake("no-tie-break");
    let (shortest, property) = witness(&case);
    // The same with a third process that enters and leaves before, and so is irrelevant.
    let case = Case::<RicartAgrawala>::complete(3).mistake("no-tie-break");
    let alone = ["ask 2", "deliver 2>0", "deliver 2>1", "deliver 0>2", "deliver 1>2", "ask 2"];
    let starts = ["start 0", "start 1", "start 2"];
    let mut long: Vec<ScheduleStep> = Vec::new();
    long.extend(starts.iter().chain(&alone).filter_map(|words| ScheduleStep::new(words)));
    let two_of_three = case.clone().requests(&[1, 1, 0]);
    long.extend(witness(&two_of_three).0.into_iter().skip(3));
    let played = model(&case).play(&long);
    assert_eq!(played.broken.map(|(v, _)| v.property), Some(property));
    let least = model(&case).shrink(&long, property).expect("it breaks");
    assert!(least.len() < long.len() && least.len() >= shortest.len(), "{least:?}");
    assert!(!least.iter().any(|step| step.to_string() == "ask 2"), "{least:?}");
    // No step can be left out.
    for i in 3..least.len() {
        let fewer = [&least[..i], &least[i + 1..]].concat();
        let broken = model(&case).play(&fewer).broken.map(|(v, _)| v.property);
        assert_ne!(broken, Some(property), "{} is not needed", least[i]);
    }
    assert!(model(&case).shrink(&long[..5], property).is_none(), "nothing breaks there");
}

#[test]
#[should_panic(expected = "cannot happen there")]
fn a_schedule_that_cannot_happen_is_refused() {
    Case::<Central>::complete(2).play(&["start 0", "start 1", "deliver 0>1"]);
}
