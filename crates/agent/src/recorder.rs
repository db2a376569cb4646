//! The flight recorder: the last events of an agent as JSON lines, and the merge of several recordings.
//!
//! Each line is an object with `node`, `life` and `number` (the agent's own count), `at` (seconds of the wall
//! clock), `kind` and `what`. book/en/operate/inspect.md describes the format.

mod gaps;
mod incident;
mod judge;

pub use gaps::gaps;
pub use incident::{ALGORITHM, as_run};
pub use judge::{Verdict, judge};

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// How many lines the recorder keeps.
const LINES: usize = 16_384;

/// A line of a recording.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The node that recorded it.
    pub node: String,
    /// The start of the agent, in ms of its wall clock. It identifies the run of the agent.
    pub life: u64,
    /// The agent's own count in this life, strictly increasing. Messages are counted apart.
    pub number: u64,
    /// The time by the agent's wall clock.
    pub at: f64,
    /// The kind of event.
    pub kind: String,
    /// The details of the event.
    pub what: serde_json::Value,
}

impl Line {
    /// Whether it records a message. Messages are counted apart from other events.
    fn is_message(&self) -> bool {
        matches!(self.kind.as_str(), "sent" | "received")
    }

    /// The node at the other end of a message.
    fn peer(&self) -> Option<String> {
        let side = self.what.get("to").or_else(|| self.what.get("from"))?;
        self.is_message().then(|| side.as_str().map(str::to_owned))?
    }
}

/// The lines of a merged recording.
fn parse(merged: &str) -> Result<Vec<Line>, String> {
    (1..)
        .zip(merged.lines())
        .map(|(i, line)| serde_json::from_str(line).map_err(|e| format!("line {i}: {e}")))
        .collect()
}

/// The recorder: keeps the last lines in memory.
#[derive(Debug)]
pub struct Recorder {
    node: String,
    life: u64,
    lines: Mutex<(u64, VecDeque<Line>)>,
}

impl Recorder {
    /// An empty recorder.
    #[must_use]
    pub fn new(node: &str) -> Self {
        let life = u64::try_from(wall().as_millis()).unwrap_or_default();
        Self { node: node.to_owned(), life, lines: Mutex::default() }
    }

    /// The start of the agent, as in [`Line::life`].
    #[must_use]
    pub fn life(&self) -> u64 {
        self.life
    }

    /// Adds a line. If the recorder is full, the oldest line is dropped.
    pub fn note(&self, kind: &str, what: serde_json::Value) {
        let at = wall().as_secs_f64();
        let mut guard = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, lines) = &mut *guard;
        *number += 1;
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(Line {
            node: self.node.clone(),
            life: self.life,
            number: *number,
            at,
            kind: kind.to_owned(),
            what,
        });
    }

    /// The recording, merged with `messages` in order of time. If it is longer than `bytes`, the oldest lines are
    /// left out.
    #[must_use]
    pub fn text(&self, messages: Vec<Line>, bytes: usize) -> String {
        let guard = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Line> = guard.1.iter().cloned().chain(messages).collect();
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

pub(crate) fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A recording and its source.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The path of the file or the socket.
    pub source: String,
    /// The lines.
    pub text: String,
}

/// Merges recordings in order of time, but never against the order in which an agent counted. A line that occurs
/// in several recordings occurs once in the result.
pub fn merge(recordings: &[Recording]) -> Result<String, String> {
    let mut lives = BTreeMap::<(String, u64, bool), BTreeMap<u64, Line>>::new();
    for Recording { source, text } in recordings {
        for (i, line) in text.lines().enumerate() {
            let wrong = |error: serde_json::Error| {
                let what = error.to_string();
                // serde_json adds its own position, which is always line 1.
                let what = what.rsplit_once(" at line ").map_or(what.as_str(), |(what, _)| what);
                format!("{source}:{}: not a line of a recording: {what}", i + 1)
            };
            let line: Line = serde_json::from_str(line).map_err(wrong)?;
            let life = lives.entry((line.node.clone(), line.life, line.is_message())).or_default();
            life.insert(line.number, line);
        }
    }
    let mut merged = String::new();
    let mut queues: Vec<VecDeque<Line>> =
        lives.into_values().map(|lines| lines.into_values().collect()).collect();
    while let Some(next) = queues
        .iter_mut()
        .filter(|queue| !queue.is_empty())
        .min_by(|a, b| a[0].at.total_cmp(&b[0].at).then_with(|| a[0].node.cmp(&b[0].node)))
    {
        let Some(line) = next.pop_front() else { break };
        merged.push_str(&serde_json::to_string(&line).map_err(|error| error.to_string())?);
        merged.push('\n');
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_recorder_drops_the_oldest_line() {
        let recorder = Recorder::new("a");
        for i in 0..LINES + 5 {
            recorder.note("test", i.into());
        }
        let text = recorder.text(Vec::new(), usize::MAX);
        assert_eq!(text.lines().count(), LINES);
        assert!(
            text.contains("\"number\":6,") && !text.contains("\"number\":5,"),
            "{}",
            &text[..80]
        );
        assert!(recorder.text(Vec::new(), 1000).len() <= 1000);
        let last = recorder.text(Vec::new(), 1000).lines().last().map(str::to_owned);
        assert_eq!(last.as_deref(), text.lines().last());
    }

    #[test]
    fn merge_keeps_the_order_of_each_agent() {
        let line = |node: &str, number, at| {
            let (node, kind) = (node.into(), "k".into());
            let line = Line { node, life: 1, number, at, kind, what: 0.into() };
            serde_json::to_string(&line).expect("plain") + "\n"
        };
        // The clock of `a` was set back between its two lines.
        let a = line("a", 1, 5.0) + &line("a", 2, 1.0);
        let b = line("b", 1, 2.0) + &line("b", 2, 6.0);
        let from = |text: &String| Recording { source: "s".into(), text: text.clone() };
        let merged = merge(&[from(&a), from(&b)]).expect("well formed");
        let order: Vec<Line> =
            merged.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
        let order: Vec<_> = order.iter().map(|line| (line.node.as_str(), line.number)).collect();
        assert_eq!(order, [("b", 1), ("a", 1), ("a", 2), ("b", 2)]);
        assert_eq!(merge(&[from(&merged), from(&b)]).expect("well formed").lines().count(), 4);
        assert_eq!(merge(&[from(&merged), from(&merged)]), Ok(merged.clone()));
        let error = merge(&[from(&a), from(&(merged + "nonsense"))]).expect_err("no recording");
        assert!(error.starts_with("s:5: ") && !error.contains("line 1"), "{error}");
    }
}
