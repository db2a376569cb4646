//! Wait cycles over all names: `doctor` finds every deadlock, `why` explains the one of a name.

use konklave::{Status, Waiter};

use crate::program::program;
use crate::protocol::Finding;

/// How many wait cycles are shown, and how many are searched for.
const SHOWN: usize = 5;
const SOUGHT: usize = 100;

/// Checks that no clients wait for each other in a cycle.
pub(super) fn examine(status: &Status) -> Finding {
    let cycles = status.wait_cycles(SOUGHT);
    let well = cycles.is_empty();
    let detail = match cycles.len() {
        0 => "no deadlock: no clients wait for each other".to_owned(),
        n => {
            let shown = cycles.iter().take(SHOWN).map(|cycle| in_words(cycle));
            let mut shown = shown.collect::<Vec<_>>().join("; ");
            if n > SHOWN {
                let least = if n == SOUGHT { "at least " } else { "" };
                shown.push_str(&format!("; and {least}{} more", n - SHOWN));
            }
            let program = program();
            format!("{shown}: end one of these commands (`{program} why NAME` explains more)")
        }
    };
    Finding { what: "cycles".into(), well, detail }
}

fn in_words(cycle: &[(&str, &Waiter)]) -> String {
    let words = cycle.iter().map(|(name, waiter)| {
        let node = if waiter.name.is_empty() { "?" } else { &waiter.name };
        format!("{node} ({}) waits for {name}", waiter.label)
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    /// A status with locks, each with a holding and a waiting session.
    fn status(locks: &[(&str, u32, u32)]) -> Status {
        let locks: Vec<_> = locks
            .iter()
            .map(|(name, holder, waiter)| {
                let party = |session: u32| {
                    json!({ "node": 0, "name": "n", "session": session,
                        "label": format!("s{session}"), "mode": "exclusive" })
                };
                let (mut holder, mut waiter) = (party(*holder), party(*waiter));
                holder["token"] = json!("0.0.0");
                holder["since_ms"] = json!(0);
                holder["frozen"] = json!(false);
                waiter["priority"] = json!(0);
                json!({ "kind": "lock", "name": name, "holders": [holder], "queue": [waiter] })
            })
            .collect();
        from_value(json!({ "node": 0, "name": "n", "incarnation": 1, "member": true, "members": [],
            "quorum": { "of": 1, "needed": 1, "heard": 1 }, "locks": locks }))
        .expect("a status")
    }

    #[test]
    fn cycle_is_reported_and_queue_is_not() {
        let finding = |locks: &[(&str, u32, u32)]| examine(&status(locks));
        assert!(finding(&[("a", 1, 2), ("b", 2, 3)]).well);
        let two = finding(&[("a", 1, 2), ("b", 2, 1)]);
        assert!(!two.well);
        let told = "n (s1) waits for b, n (s2) waits for a: end one";
        assert!(two.detail.starts_with(told), "{}", two.detail);
        let names: Vec<String> = (0..150).map(|i| format!("m{i}")).collect();
        let own = |n: usize| -> Vec<(&str, u32, u32)> {
            names.iter().take(n).zip(0..).map(|(name, i)| (name.as_str(), i, i)).collect()
        };
        assert!(finding(&own(9)).detail.contains("; and 4 more"));
        assert!(finding(&own(150)).detail.contains("; and at least 95 more"));
    }
}
