//! The checker's verdicts on every lock, as tables: the right ones and their mistakes.

use konklave_catalog::Catalog;
use serde_json::Value;

use super::konklave_line;

/// Each lock in the configurations that were explored when it was specified.
const CONFIGURATIONS: &[(&str, &str)] = &[
    ("central", "-n 3 --requests 1,2,1"),
    ("central", "-n 3 --requests 0,2,2"),
    ("lamport", "-n 3"),
    ("lamport", "-n 2 --requests 2,2"),
    ("lamport", "-n 3 --set acks=suppressed"),
    ("ricart-agrawala", "-n 3 --requests 2,2,1"),
    ("ricart-agrawala-acknowledged", "-n 3 --synchronous --no-detector"),
    ("carvalho-roucairol", "-n 3 --requests 2,2,2"),
    ("voting", "-n 3 --requests 1,1,0"),
    ("voting", "-n 3 --requests 1,1,0 --set failing=eager"),
    ("maekawa", "-n 3 --requests 2,2,2 --set quorums=plane"),
    ("maekawa", "-n 3 --set quorums=0:0,1,2+1:0,1,2+2:0,1,2"),
    ("maekawa", "-n 5 --requests 1,1,2,0,0 --set quorums=0:3,4+1:3,4+2:3"),
    ("maekawa", "-n 5 --requests 1,1,1,0,0 --set quorums=0:3,4+1:3,4+2:3,4"),
    ("sanders", "-n 4"),
    ("sanders", "-n 3 --requests 2,1,1 --set structure=ricart-agrawala"),
    ("sanders", "-n 3 --requests 1,1,1 --set structure=central"),
    ("cao-singhal", "-n 3 --set quorums=plane"),
    ("cao-singhal", "-n 5 --requests 1,1,1,0,0 --set quorums=0:3,4+1:3,4+2:3"),
    ("token-ring", "-n 3 --requests 2,1,1"),
    ("suzuki-kasami", "-n 3 --requests 2,2,2"),
    ("ricart-agrawala-token", "-n 3 --requests 2,2,2"),
    ("raymond", "-n 4 --topology path --requests 1,1,2,1"),
    ("raymond", "-n 4 --topology star --requests 2,2,1,1 --set greedy=1"),
    ("naimi-trehel", "-n 3 --requests 2,2,2"),
    ("naimi-trehel", "-n 4 --requests 1,2,1,1"),
    ("neilsen-mizuno", "-n 4 --topology path --requests 1,1,2,1"),
    ("singhal", "-n 3 --requests 2,2,2"),
    ("singhal", "-n 3 --requests 2,2,2 --set arbitration=smallest"),
    ("singhal", "-n 3 --requests 2,2,2 --set arbitration=nearest"),
];

fn check(line: &str) -> Value {
    let said = konklave_line(&format!("check {line} --format json"));
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{line}: {e}: {}", said.err))
}

/// Does `work` for all, on two threads, and keeps their order.
fn each<T: Sync>(all: &[T], work: impl Fn(&T) -> String + Sync) -> String {
    let half = |odd: usize| {
        let work = &work;
        move || all.iter().skip(odd).step_by(2).map(work).collect::<Vec<String>>()
    };
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(half(1));
        (half(0)(), odd.join().expect("the other half is done"))
    });
    let mut lines = String::new();
    for i in 0..all.len() {
        lines += if i % 2 == 0 { &even[i / 2] } else { &odd[i / 2] };
        lines.push('\n');
    }
    lines
}

fn outcome(found: &Value) -> String {
    match found["verdict"].as_str() {
        Some("exhausted") => found["states"].to_string(),
        Some("violated") => {
            let property = found["property"].as_str().unwrap_or_default();
            format!("**{property}** breaks in {} steps", found["witness_length"])
        }
        _ => "a bound was reached".to_owned(),
    }
}

/// The fewest and the most messages of any run with FIFO channels.
fn messages(lock: &str, arguments: &str) -> String {
    // A process that probes while it waits may do so any number of times.
    if arguments.contains("--synchronous") {
        return "–".to_owned();
    }
    let counted = check(&format!("{lock} {arguments} --count-messages"));
    match (counted["messages"][0].as_u64(), counted["messages"][1].as_u64()) {
        (Some(least), Some(most)) if least == most => most.to_string(),
        (Some(least), Some(most)) => format!("{least}–{most}"),
        _ => "–".to_owned(),
    }
}

/// Every lock in its configurations: states with and without FIFO channels, and what runs cost.
pub(crate) fn verdicts() -> String {
    for entry in Catalog::builtin().entries().iter().filter(|entry| entry.problem.name == "mutex") {
        let name = entry.sheet.name;
        assert!(CONFIGURATIONS.iter().any(|(lock, _)| *lock == name), "{name} is not explored");
    }
    let rows = each(CONFIGURATIONS, |(lock, arguments)| {
        let fifo = check(&format!("{lock} {arguments}"));
        let any_order = check(&format!("{lock} {arguments} --no-fifo"));
        let messages = messages(lock, arguments);
        let (fifo, any_order) = (outcome(&fifo), outcome(&any_order));
        format!("| {lock} | `{arguments}` | {fifo} | {any_order} | {messages} |")
    });
    format!(
        "| lock | configuration | states, FIFO | states, any order | messages |\n|---|---|---:|---:|---:|\n{rows}"
    )
}

/// Every mistake: what it breaks, and in how few steps.
pub(crate) fn mistakes() -> String {
    let catalog = Catalog::builtin();
    let locks = catalog.of_problem("mutex").into_iter();
    let all: Vec<_> = locks
        .flat_map(|entry| entry.sheet.mistakes.iter().map(move |mistake| (entry, mistake)))
        .collect();
    let rows = each(&all, |(entry, mistake)| {
        let (lock, name, arguments) = (entry.sheet.name, mistake.name, mistake.caught_by);
        let found = check(&format!("{lock} --mistake {name} {arguments}"));
        assert_eq!(found["property"], mistake.breaks, "{lock} --mistake {name} {arguments}");
        let (breaks, steps) = (mistake.breaks, &found["witness_length"]);
        format!("| {lock} | {name} | `{arguments}` | {breaks} | {steps} |")
    });
    format!("| lock | mistake | configuration | breaks | steps |\n|---|---|---|---|---:|\n{rows}")
}
