//! Finds gaps in a merged recording.

use std::collections::{BTreeMap, BTreeSet};

use super::{Line, parse};
use crate::protocol::counted;

/// The range of lines that one agent recorded in one of its lives.
struct Noted {
    /// The number and the time of the first line.
    first: (u64, f64),
    last: (u64, f64),
    /// Missing numbers in between: how many, and the times before and after.
    holes: Vec<(u64, f64, f64)>,
}

/// By node, whether the lines are messages (counted apart), and life.
type Notes<'a> = BTreeMap<(&'a str, bool, u64), Noted>;

/// The gaps of a merged recording, for people: agents that are mentioned but have no recording, missing numbers,
/// and recordings that begin later than others.
pub fn gaps(merged: &str) -> Result<Vec<String>, String> {
    let lines = parse(merged)?;
    let begin = lines.iter().map(|line| line.at).fold(f64::INFINITY, f64::min);
    let after = |at: f64| format!("{:.3} s", at - begin);
    let notes = notes(&lines);
    let mut told: Vec<String> = silent(&lines)
        .into_iter()
        .map(|node| format!("{node}: no recording, so messages that it sent are not shown"))
        .collect();
    for ((node, message, life), noted) in &notes {
        let what = if *message { "message" } else { "event" };
        for (count, from, to) in &noted.holes {
            let (from, to) = (after(*from), after(*to));
            told.push(format!("{node}: {} between {from} and {to}", counted(*count, what)));
        }
        // Only for the first recorded life: the lines of earlier lives were lost with their processes.
        let is_first = notes.range((*node, *message, 0)..(*node, *message, *life)).next().is_none();
        let (number, at) = noted.first;
        let further = |((other, kind, _), theirs): (&(&str, bool, u64), &Noted)| {
            other != node && kind == message && theirs.first.1 < at
        };
        if is_first && number > 1 && notes.iter().any(further) {
            let (count, at) = (number - 1, after(at));
            let what = counted(count, what);
            told.push(format!("{node}: {what} before {at}, dropped because its recorder was full"));
        }
    }
    Ok(told)
}

fn notes(lines: &[Line]) -> Notes<'_> {
    let mut notes = Notes::new();
    for line in lines {
        let here = (line.number, line.at);
        let key = (line.node.as_str(), line.is_message(), line.life);
        let noted =
            notes.entry(key).or_insert(Noted { first: here, last: here, holes: Vec::new() });
        let (number, at) = noted.last;
        if line.number > number + 1 {
            noted.holes.push((line.number - number - 1, at, line.at));
        }
        noted.last = here;
    }
    notes
}

/// The nodes that are mentioned, but have no lines of their own.
fn silent(lines: &[Line]) -> BTreeSet<String> {
    let mut spoken: BTreeSet<String> = lines.iter().filter_map(Line::peer).collect();
    for line in lines.iter().filter(|line| line.kind == "view") {
        let names = line.what["names"].as_array().into_iter().flatten();
        spoken.extend(names.filter_map(|name| name.as_str()).map(str::to_owned));
    }
    spoken.remove("");
    for line in lines {
        spoken.remove(&line.node);
    }
    spoken
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(node: &str, number: u64, at: f64, kind: &str, what: Value) -> String {
        let line = Line { node: node.into(), life: 1, number, at, kind: kind.into(), what };
        serde_json::to_string(&line).expect("plain") + "\n"
    }

    #[test]
    fn missing_recordings_holes_and_dropped_lines_are_reported() {
        let plain = |node: &str, number, at| line(node, number, at, "asked", json!({}));
        let whole = plain("a", 1, 10.0) + &plain("b", 1, 11.0) + &plain("a", 2, 12.0);
        assert_eq!(gaps(&whole), Ok(Vec::new()));
        // A recording of one begins where it begins.
        assert_eq!(gaps(&plain("a", 7, 10.0)), Ok(Vec::new()));
        let view = json!({ "event": "view", "names": ["a", "b", "c", ""] });
        let sent = json!({ "to": "d", "number": 1, "what": "data" });
        let torn = [
            line("a", 1, 10.0, "view", view),
            plain("b", 41, 11.5),
            line("a", 9, 11.6, "sent", sent),
            plain("b", 44, 12.0),
        ];
        let told = gaps(&torn.concat()).expect("well formed");
        assert_eq!(
            told,
            [
                "c: no recording, so messages that it sent are not shown",
                "d: no recording, so messages that it sent are not shown",
                "b: 2 events between 1.500 s and 2.000 s",
                "b: 40 events before 1.500 s, dropped because its recorder was full",
            ]
        );
        assert!(gaps("nonsense").is_err());
    }
}
