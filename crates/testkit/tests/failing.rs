//! A failing test tells why: the chain of causes, the story, and a file that replays the run.

use std::panic::{AssertUnwindSafe, catch_unwind};

use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_catalog::Catalog;
use konklave_sim::Pace;
use konklave_testkit::Case;
use konklave_trace::Run;

fn two_inside() -> Case<RicartAgrawala> {
    Case::complete(2).ids(&[4, 7]).mistake("no-tie-break")
}

/// The message with which `Seen::well` fails.
fn failure(case: &Case<RicartAgrawala>) -> String {
    let case = case.clone();
    let run = AssertUnwindSafe(move || {
        case.simulate().well();
    });
    let failed = catch_unwind(run).expect_err("it goes wrong");
    *failed.downcast::<String>().expect("a message")
}

fn recorded(message: &str) -> Run {
    let line = message.lines().last().expect("a line");
    let command = line.strip_prefix("the whole run: cargo run -- replay ").expect(line);
    let file = command.strip_suffix(" --story").expect(line);
    let text = std::fs::read(file).expect("the run was kept");
    std::fs::remove_file(file).expect("it is ours");
    Run::read(file, text.as_slice()).expect("a recording")
}

#[test]
fn failing_run_shows_its_causes_and_keeps_a_run_that_replays() {
    let message = failure(&two_inside().config(|config| config.hold = Pace::Constant(3.0)));
    assert!(message.starts_with("mutual exclusion at "), "{message}");
    for part in ["why:\nthe step that decided\n", "critical section\n", "\n  ← ", "story:\n"] {
        assert!(message.contains(part), "{part:?} in {message}");
    }
    let run = recorded(&message);
    let catalog = Catalog::builtin();
    let (entry, plan) = catalog.plan_of(&run).expect("the header is enough");
    assert_eq!(plan.setup.mistake, Some("no-tie-break"));
    let replayed = entry.replay(&plan, &run).expect("the same effects");
    assert!(replayed.steps > 4);
}

#[test]
fn run_that_waits_for_ever_shows_who_waits_and_what_was_lost() {
    let case = Case::complete(2).fault("lose:/Reply#1");
    let message = failure(&case);
    assert!(message.starts_with("p"), "{message}");
    for part in ["wait for ever", ": waits\n", "faults before it\n"] {
        assert!(message.contains(part), "{part:?} in {message}");
    }
    assert_eq!(recorded(&message).footer.expect("an end").verdict, "stuck");
}

#[test]
fn witness_shows_its_causes() {
    let told = format!("{:?}", two_inside().check());
    assert!(told.contains("\nwhy:\nthe step that decided\n"), "{told}");
    assert!(told.contains("critical section\n") && told.contains("  ← "), "{told}");
}
