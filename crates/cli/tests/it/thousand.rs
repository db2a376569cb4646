//! A thousand entries of every lock on real sockets, under the judges.

use konklave_algorithms::Assumption;
use konklave_catalog::{Catalog, Entry};
use serde_json::{Value, json};

use super::konklave_line;

/// The first problem of a run with a thousand entries by five processes, if any.
fn trouble(entry: &Entry) -> Option<String> {
    // Where a timeout must tell a crash, T must be longer than a busy machine keeps anyone waiting.
    let unit = if entry.sheet.assumes.contains(&Assumption::Synchronous) { 1000 } else { 5 };
    let line = format!(
        "run {} -n 5 --entries 200 --hold 0 --world tcp --unit {unit} --format json",
        entry.name()
    );
    let said = konklave_line(&line);
    let run: Value = match serde_json::from_str(&said.out) {
        Ok(run) => run,
        Err(why) => return Some(format!("{line}: {why}: {}", said.err)),
    };
    let each: Vec<Value> = (0..5).map(|p| json!([p, 200])).collect();
    let well = run["verdict"] == "ok"
        && run["violations"] == json!([])
        && run["mutex"]["entries"] == 1000
        && run["mutex"]["entries_per_node"] == json!(each)
        && run["mutex"]["fences_monotone"] == true;
    (!well).then(|| format!("{line}: {run}"))
}

#[test]
fn five_processes_on_sockets_enter_a_thousand_times_by_every_lock() {
    let catalog = Catalog::builtin();
    let locks = catalog.of_problem("mutex");
    assert!(locks.len() >= 16);
    let (some, others) = locks.split_at(locks.len() / 2);
    let troubles = std::thread::scope(|scope| {
        let both = [some, others].map(|half| {
            scope.spawn(|| half.iter().filter_map(|entry| trouble(entry)).collect::<Vec<_>>())
        });
        both.map(|half| half.join().expect("a half of the locks was tried")).concat()
    });
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}
