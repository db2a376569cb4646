//! Converts a recording into a `.run`, so that `draw`, `replay` and `export` can open a real incident.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Line, parse};

/// The name in the place of an algorithm in such a run.
pub const ALGORITHM: &str = "group/agents";

/// Ticks per second: a tick is a nanosecond.
const UNIT: f64 = 1e9;

/// Converts a merged recording into a `.run`, with all names or `only` one. Nodes are numbered in the order of
/// their names. The scenario in the header contains the names, and the `missing` parts as text.
pub fn as_run(merged: &str, only: Option<&str>, missing: &[String]) -> Result<String, String> {
    let lines = parse(merged)?;
    let mut ids: BTreeMap<String, u32> = lines
        .iter()
        .flat_map(|line| [Some(line.node.clone()), line.peer()])
        .flatten()
        .map(|n| (n, 0))
        .collect();
    for (id, number) in ids.values_mut().zip(0..) {
        *id = number;
    }
    let begin = lines.iter().map(|line| line.at).fold(f64::INFINITY, f64::min);
    let names: BTreeMap<String, &str> =
        ids.iter().map(|(name, id)| (id.to_string(), name.as_str())).collect();
    let mut text = line(&json!({
        "konklave": 1,
        "algorithm": ALGORITHM,
        "nodes": ids.values().collect::<Vec<_>>(),
        "topology": "complete",
        "world": "tcp",
        "unit": UNIT,
        "time": "s",
        "scenario": { "names": names, "missing": missing },
    }));
    let mut messages = BTreeMap::new();
    let mut held = BTreeMap::<(u32, String), u32>::new();
    let mut last = 0;
    for event in &lines {
        let node = ids[&event.node];
        // The clocks of machines differ and may be set back, but times of a run never decrease.
        last = (((event.at - begin) * UNIT) as u64).max(last);
        if let Some(step) = step(event, node, &ids, &mut messages, &mut held, only) {
            let (why, done) = step;
            let mut step = json!({ "at": last, "node": node, "in": why });
            if !done.is_empty() {
                step["do"] = done.into();
            }
            text += &line(&step);
        }
    }
    text += &line(&json!({ "end": "unfinished", "summary": { "steps": lines.len() } }));
    Ok(text)
}

fn line(value: &Value) -> String {
    value.to_string() + "\n"
}

type Messages = BTreeMap<(u32, u32, u64), u64>;

/// The input and the effects of a step.
fn step(
    line: &Line,
    node: u32,
    ids: &BTreeMap<String, u32>,
    messages: &mut Messages,
    held: &mut BTreeMap<(u32, String), u32>,
    only: Option<&str>,
) -> Option<(Value, Vec<Value>)> {
    let what = &line.what;
    if let Some(name) = what["name"].as_str()
        && only.is_some_and(|only| only != name)
    {
        return None;
    }
    let (number, kind) = (what["number"].as_u64().unwrap_or_default(), &what["what"]);
    let other = line.peer().and_then(|name| ids.get(&name).copied());
    let key = || (node, what["name"].as_str().unwrap_or_default().to_owned());
    Some(match (line.kind.as_str(), other) {
        ("sent", Some(to)) => {
            let fresh = messages.len() as u64 + 1;
            let id = *messages.entry((node, to, number)).or_insert(fresh);
            (
                json!({ "timer": "send" }),
                vec![json!({ "send": { "to": to, "id": id, "body": kind } })],
            )
        }
        ("received", Some(from)) => {
            // Left out if the recording does not contain the send of this message.
            let id = messages.get(&(from, node, number))?;
            (json!({ "message": { "from": from, "id": id, "body": kind } }), Vec::new())
        }
        ("asked", _) => (json!({ "request": { "Acquire": what } }), Vec::new()),
        ("granted", _) => {
            *held.entry(key()).or_default() += 1;
            (json!({ "timer": "grant" }), vec![json!({ "indicate": { "Granted": what } })])
        }
        ("released" | "lost", _) => {
            let holds = held.get_mut(&key()).filter(|holds| **holds > 0)?;
            *holds -= 1;
            (json!({ "request": { "Release": what } }), Vec::new())
        }
        ("suspected", _) => {
            (json!({ "timer": "silence" }), vec![json!({ "indicate": { "Suspected": what } })])
        }
        (other, _) => (json!({ "timer": other }), vec![json!({ "indicate": what })]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(node: &str, at: f64, kind: &str, what: Value) -> String {
        let line = Line { node: node.into(), life: 1, number: 1, at, kind: kind.into(), what };
        serde_json::to_string(&line).expect("plain") + "\n"
    }

    #[test]
    fn messages_and_grants_become_steps() {
        let text = [
            recorded("b", 10.0, "asked", json!({ "name": "x" })),
            recorded("b", 10.1, "sent", json!({ "to": "a", "number": 7, "what": "data" })),
            recorded("a", 10.2, "received", json!({ "from": "b", "number": 7, "what": "data" })),
            recorded(
                "a",
                10.2,
                "received",
                json!({ "from": "b", "number": 8, "what": "lost trail" }),
            ),
            recorded("b", 10.3, "granted", json!({ "name": "x", "token": "1.0.1" })),
            recorded("b", 10.4, "granted", json!({ "name": "y", "token": "1.0.2" })),
            recorded("b", 10.2, "released", json!({ "name": "x" })),
        ];
        let missing = ["c: away".to_owned()];
        let run = as_run(&text.concat(), Some("x"), &missing).expect("well formed");
        let lines: Vec<Value> =
            run.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 7, "{run}");
        assert_eq!(lines[0]["scenario"]["names"], json!({ "0": "a", "1": "b" }));
        assert_eq!(lines[0]["scenario"]["missing"], json!(["c: away"]));
        assert_eq!(lines[2]["do"][0]["send"], json!({ "to": 0, "id": 1, "body": "data" }));
        assert_eq!(lines[3]["in"]["message"], json!({ "from": 1, "id": 1, "body": "data" }));
        assert_eq!(lines[4]["do"][0]["indicate"]["Granted"]["token"], "1.0.1");
        assert!(lines[5]["at"].as_u64() >= lines[4]["at"].as_u64(), "time goes forward");
        assert!(as_run("nonsense", None, &[]).is_err());
    }
}
