//! The flight recorder: the last things that happened at an agent, as JSON lines, and the recordings
//! of several agents as one.
//!
//! Each line is an object with `node`, `number` (the agent's own count), `at` (seconds of the wall
//! clock), `kind` and `what`. docs/agent.md describes it.

mod incident;

pub use incident::as_run;

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// How many lines are remembered.
const LINES: usize = 16_384;

/// One line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Whose.
    pub node: String,
    /// The agent's own count: never repeated, never out of order.
    pub number: u64,
    /// When, by the agent's wall clock.
    pub at: f64,
    /// What kind of thing.
    pub kind: String,
    /// What happened.
    pub what: serde_json::Value,
}

/// A bounded memory.
#[derive(Debug)]
pub struct Recorder {
    node: String,
    lines: Mutex<(u64, VecDeque<Line>)>,
}

impl Recorder {
    /// An empty one.
    #[must_use]
    pub fn new(node: &str) -> Self {
        Self { node: node.to_owned(), lines: Mutex::default() }
    }

    /// Remembers something, and forgets the oldest if there is too much.
    pub fn note(&self, kind: &str, what: serde_json::Value) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let mut guard = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, lines) = &mut *guard;
        *number += 1;
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(Line {
            node: self.node.clone(),
            number: *number,
            at,
            kind: kind.to_owned(),
            what,
        });
    }

    /// All that is remembered, and `passed`, one line each in the order of time, at most `bytes` of the
    /// newest.
    #[must_use]
    pub fn text(&self, passed: Vec<Line>, bytes: usize) -> String {
        let guard = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Line> = guard.1.iter().cloned().chain(passed).collect();
        drop(guard);
        all.sort_by(|a, b| a.at.total_cmp(&b.at));
        let mut lines = Vec::new();
        let mut left = bytes;
        for line in all.iter().rev() {
            let Ok(text) = serde_json::to_string(line) else { continue };
            match left.checked_sub(text.len() + 1) {
                Some(rest) => left = rest,
                None => break,
            }
            lines.push(text + "\n");
        }
        lines.reverse();
        lines.concat()
    }
}

/// Recordings as one: ordered by time, but never against the order in which an agent counted.
pub fn merge(texts: &[String]) -> Result<String, String> {
    let mut queues: Vec<VecDeque<Line>> = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        let parse = |(j, line)| {
            serde_json::from_str(line)
                .map_err(|error| format!("recording {}, line {}: {error}", i + 1, j + 1))
        };
        let lines: Result<Vec<Line>, String> = text.lines().enumerate().map(parse).collect();
        // A recording may be merged before: its agents are told apart again.
        // Messages are counted apart.
        let mut by_node = std::collections::BTreeMap::<(String, bool), Vec<Line>>::new();
        for line in lines? {
            let message = matches!(line.kind.as_str(), "sent" | "received");
            by_node.entry((line.node.clone(), message)).or_default().push(line);
        }
        for (_, mut lines) in by_node {
            lines.sort_by_key(|line| line.number);
            queues.push(lines.into());
        }
    }
    let mut merged = String::new();
    let mut last: Option<Line> = None;
    while let Some(next) = queues
        .iter_mut()
        .filter(|queue| !queue.is_empty())
        .min_by(|a, b| a[0].at.total_cmp(&b[0].at).then_with(|| a[0].node.cmp(&b[0].node)))
    {
        let Some(line) = next.pop_front() else { break };
        // The same recording twice says nothing new.
        if last.as_ref() != Some(&line) {
            merged.push_str(&serde_json::to_string(&line).map_err(|error| error.to_string())?);
            merged.push('\n');
        }
        last = Some(line);
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_forgets_the_oldest() {
        let recorder = Recorder::new("a");
        for i in 0..LINES + 5 {
            recorder.note("test", i.into());
        }
        let text = recorder.text(Vec::new(), usize::MAX);
        assert_eq!(text.lines().count(), LINES);
        assert!(text.starts_with("{\"node\":\"a\",\"number\":6,"), "{}", &text[..60]);
        assert!(recorder.text(Vec::new(), 1000).len() <= 1000);
        let last = recorder.text(Vec::new(), 1000).lines().last().map(str::to_owned);
        assert_eq!(last.as_deref(), text.lines().last());
    }

    #[test]
    fn merged_by_time_but_never_against_an_agents_own_order() {
        let line = |node: &str, number, at| {
            let line = Line { node: node.into(), number, at, kind: "k".into(), what: 0.into() };
            serde_json::to_string(&line).expect("plain") + "\n"
        };
        // The clock of `a` was set back between its two lines.
        let a = line("a", 1, 5.0) + &line("a", 2, 1.0);
        let b = line("b", 1, 2.0) + &line("b", 2, 6.0);
        let merged = merge(&[a.clone(), b.clone()]).expect("well formed");
        let order: Vec<Line> =
            merged.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
        let order: Vec<_> = order.iter().map(|line| (line.node.as_str(), line.number)).collect();
        assert_eq!(order, [("b", 1), ("a", 1), ("a", 2), ("b", 2)]);
        assert_eq!(merge(&[merged.clone(), b]).expect("well formed").lines().count(), 4);
        assert_eq!(merge(&[merged.clone(), merged.clone()]), Ok(merged));
        assert!(merge(&["nonsense".into()]).is_err());
    }
}
