//! Judges a recorded incident by its fencing tokens.

use std::collections::{BTreeMap, BTreeSet};

use konklave::Token;
use serde_json::Value;

/// The result of a judgement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// How many grants were recorded.
    pub grants: usize,
    /// How many locks, semaphores and elections had grants.
    pub names: usize,
    /// How many grants have no recorded end: they are still held, or their agent was killed.
    pub open: usize,
    /// Violations, as sentences.
    pub violations: Vec<String>,
}

/// The kind of a name. A lock, a semaphore and an election may have the same name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Lock,
    Semaphore,
    Election,
}

struct Grant {
    node: u32,
    from: u64,
    to: Option<u64>,
    /// Whether the grant is exclusive: not a shared lock or a slot.
    alone: bool,
}

/// Judges the steps of a run that [`as_run`](super::as_run) wrote, as JSON objects. `names` are the names of
/// the nodes in the scenario.
///
/// No token may be granted twice. On each agent, the tokens of a name must grow. No exclusive grant may begin
/// before the previous one, by token, has ended; between agents, their wall clocks decide that.
#[must_use]
pub fn judge(names: &Value, steps: impl IntoIterator<Item = Value>) -> Verdict {
    let called = |node: u32| match names[node.to_string()].as_str() {
        Some(name) => name.to_owned(),
        None => format!("node {node}"),
    };
    let mut verdict = Verdict::default();
    let mut grants = BTreeMap::<(String, Kind, Token), Grant>::new();
    let mut last = BTreeMap::<(String, Kind, u32), Token>::new();
    for step in steps {
        let (Some(at), Some(node)) = (step["at"].as_u64(), step["node"].as_u64()) else { continue };
        let node = u32::try_from(node).unwrap_or(u32::MAX);
        for effect in step["do"].as_array().into_iter().flatten() {
            let what = &effect["indicate"]["Granted"];
            let Some((name, token)) = named(what) else { continue };
            verdict.grants += 1;
            let (kind, alone) = kind_of(what["mode"].as_str().unwrap_or_default());
            let key = (name.clone(), kind, token);
            if let Some(first) = grants.get(&key) {
                let (first, node) = (called(first.node), called(node));
                verdict.violations.push(format!(
                    "{name}: token {token} was granted twice, at {first} and {node}"
                ));
                continue;
            }
            // Shared grants may be recorded out of order, so only exclusive ones are compared.
            let before = if alone { last.insert((name.clone(), kind, node), token) } else { None };
            if let Some(before) = before.filter(|before| *before > token) {
                verdict.violations.push(format!(
                    "{name}: {} was granted token {token} after {before}, but tokens must grow",
                    called(node)
                ));
            }
            grants.insert(key, Grant { node, from: at, to: None, alone });
        }
        let Some((name, token)) = named(&step["in"]["request"]["Release"]) else { continue };
        for kind in [Kind::Lock, Kind::Semaphore, Kind::Election] {
            let grant = grants.get_mut(&(name.clone(), kind, token));
            if let Some(grant) = grant.filter(|grant| grant.node == node) {
                grant.to.get_or_insert(at);
            }
        }
    }
    verdict.open = grants.values().filter(|grant| grant.to.is_none()).count();
    let of: BTreeSet<_> = grants.keys().map(|(name, kind, _)| (name, kind)).collect();
    verdict.names = of.len();
    let mut held: Option<((&str, Kind), Token, u64, u32)> = None;
    for ((name, kind, token), grant) in &grants {
        held = held.filter(|(before, ..)| *before == (name.as_str(), *kind));
        if !grant.alone {
            continue;
        }
        if let Some((_, before, until, other)) = held
            && until > grant.from
        {
            let by = if other == grant.node { "" } else { ", by the clocks of both machines" };
            verdict.violations.push(format!(
                "{name}: {} was granted token {token} {:.3} s before {} released token {before}{by}",
                called(grant.node),
                (until - grant.from) as f64 / 1e9,
                called(other)
            ));
        }
        // A grant without a recorded end is not compared: its lease may have ended it.
        let until = grant.to.unwrap_or(grant.from);
        held = Some(((name, *kind), *token, until, grant.node));
    }
    verdict
}

/// The kind of name that is held in this mode, and whether the grant is exclusive.
fn kind_of(mode: &str) -> (Kind, bool) {
    match mode {
        "leadership" => (Kind::Election, true),
        "exclusive" => (Kind::Lock, true),
        "shared" => (Kind::Lock, false),
        _ => (Kind::Semaphore, false),
    }
}

fn named(what: &Value) -> Option<(String, Token)> {
    Some((what["name"].as_str()?.to_owned(), what["token"].as_str()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Judges with nodes that have no names.
    fn judge(steps: impl IntoIterator<Item = Value>) -> Verdict {
        super::judge(&Value::Null, steps)
    }

    fn granted(at: u64, node: u32, token: &str, mode: &str) -> Value {
        let what = json!({ "name": "a", "token": token, "mode": mode });
        json!({ "at": at, "node": node, "in": { "timer": "grant" },
                "do": [{ "indicate": { "Granted": what } }] })
    }

    fn released(at: u64, node: u32, token: &str) -> Value {
        let what = json!({ "name": "a", "token": token });
        json!({ "at": at, "node": node, "in": { "request": { "Release": what } } })
    }

    #[test]
    fn correct_run_has_no_violations() {
        let verdict = judge([
            granted(1, 0, "1.0.1", "exclusive"),
            released(2, 0, "1.0.1"),
            granted(3, 1, "1.0.2", "exclusive"),
            // Its agent was killed, so its end is not recorded.
            granted(9, 0, "1.0.3", "exclusive"),
            granted(10, 2, "1.0.4", "shared"),
            granted(11, 1, "1.0.5", "shared"),
        ]);
        assert_eq!(verdict.violations, [""; 0]);
        assert_eq!((verdict.grants, verdict.names, verdict.open), (5, 1, 4));
        assert_eq!(judge([json!({}), json!(null), json!({ "at": 1 })]), Verdict::default());
    }

    #[test]
    fn a_lock_a_semaphore_and_an_election_may_have_one_name() {
        let verdict = judge([
            granted(1, 0, "1.0.7", "leadership"),
            granted(2, 0, "1.0.2", "exclusive"),
            granted(3, 0, "1.0.3", "slot"),
            released(4, 0, "1.0.2"),
            released(5, 0, "1.0.7"),
        ]);
        assert_eq!(verdict.violations, [""; 0]);
        assert_eq!((verdict.grants, verdict.names, verdict.open), (3, 3, 1));
    }

    #[test]
    fn two_holders_at_a_time_are_a_violation() {
        let overlap = [
            granted(1_000_000_000, 0, "1.0.1", "exclusive"),
            granted(2_000_000_000, 1, "1.0.2", "exclusive"),
            released(2_500_000_000, 0, "1.0.1"),
        ];
        let said = judge(overlap).violations.concat();
        assert!(said.contains("0.500 s before node 0") && said.contains("clocks"), "{said}");
        let twice = [granted(1, 0, "1.0.1", "exclusive"), granted(2, 1, "1.0.1", "exclusive")];
        assert!(judge(twice).violations.concat().contains("granted twice, at node 0 and node 1"));
        let twice = [granted(1, 0, "1.0.1", "exclusive"), granted(2, 1, "1.0.1", "exclusive")];
        let said = super::judge(&json!({ "0": "n0", "1": "n1" }), twice).violations.concat();
        assert!(said.contains("granted twice, at n0 and n1"), "{said}");
        let back = [granted(1, 0, "1.0.2", "leadership"), granted(2, 0, "1.0.1", "leadership")];
        assert!(judge(back).violations.concat().contains("tokens must grow"));
    }
}
