//! Results: one line for each election, and a summary.

use std::io::{self, Write};

use serde::Serialize;

use crate::{Options, RingError};

/// The result of an election.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Election {
    /// Its number, from 1.
    pub election: u64,
    /// The initiator; the last one if the election was started again.
    pub initiator: Option<u32>,
    /// The winner.
    pub leader: Option<u32>,
    /// Hops, also those to failed neighbours.
    pub messages: u64,
    /// Hops that no worker took.
    pub timed_out: u64,
    /// The number of starts.
    pub attempts: u32,
    /// The time from the first start until the winner's announcement returned.
    pub duration_ms: f64,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict on an election.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// There is one leader, and every live worker knows it.
    Ok,
    /// There were two leaders at once, or a live worker does not know the leader.
    Violated,
    /// The election did not end.
    Unfinished,
    /// The user stopped the election.
    Interrupted,
}

/// The result of the whole run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// The ids of the workers in ring order.
    pub ids: Vec<u32>,
    /// The seed that repeats ids and initiators.
    pub seed: u64,
    /// Finished elections.
    pub elections: u64,
    /// Elections that did not end, without interrupted ones.
    pub unfinished: u64,
    /// Elections with two leaders at once, or after which a live worker did not know the leader.
    pub violated: u64,
    /// Hops in all elections.
    pub messages: u64,
    /// The leader at the end.
    pub leader: Option<u32>,
    /// The failed workers.
    pub failed: Vec<u32>,
    /// Whether the user ended the run.
    pub interrupted: bool,
    /// Whether writing to the log file failed.
    #[serde(skip)]
    pub log_cut_short: bool,
}

impl Outcome {
    /// Nothing has happened yet.
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            ids: options.ids(),
            seed: options.seed,
            elections: 0,
            unfinished: 0,
            violated: 0,
            messages: 0,
            leader: None,
            failed: Vec::new(),
            interrupted: false,
            log_cut_short: false,
        }
    }

    /// Adds an election.
    pub(crate) fn account(&mut self, election: &Election) {
        self.messages += election.messages;
        self.leader = election.leader.or(self.leader);
        match election.verdict {
            Verdict::Ok => self.elections += 1,
            Verdict::Violated => {
                self.elections += 1;
                self.violated += 1;
            }
            Verdict::Unfinished => self.unfinished += 1,
            Verdict::Interrupted => {}
        }
    }

    /// The exit code: 0 if all elections were correct, 74 if only the log file failed, else 1.
    pub fn exit_code(&self) -> u8 {
        match (self.unfinished + self.violated > 0, self.log_cut_short) {
            (true, _) => 1,
            (false, true) => 74,
            (false, false) => 0,
        }
    }

    fn verdict(&self) -> Verdict {
        if self.violated > 0 {
            Verdict::Violated
        } else if self.unfinished > 0 {
            Verdict::Unfinished
        } else {
            Verdict::Ok
        }
    }
}

/// Prints results.
pub(crate) struct Reporter<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) style: Style,
}

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    Silent,
    Text,
    Json,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Election(&'a Election),
    Summary {
        schema: &'static str,
        size: usize,
        #[serde(flatten)]
        outcome: &'a Outcome,
        verdict: Verdict,
    },
}

impl Reporter<'_> {
    pub(crate) fn election(&mut self, election: &Election) -> io::Result<()> {
        match self.style {
            Style::Silent => return Ok(()),
            Style::Text => {
                writeln!(self.out, "election {}: {}", election.election, sentence(election))?
            }
            Style::Json => self.json(&Line::Election(election))?,
        }
        self.out.flush()
    }

    /// Prints the summary. A closed pipe is no error.
    pub(crate) fn close(&mut self, outcome: &Outcome) -> Result<(), RingError> {
        match self.summary(outcome) {
            Err(reason) if reason.kind() != io::ErrorKind::BrokenPipe => {
                Err(RingError::Output(reason))
            }
            _ => Ok(()),
        }
    }

    fn summary(&mut self, outcome: &Outcome) -> io::Result<()> {
        if self.style != Style::Json {
            return Ok(());
        }
        self.json(&Line::Summary {
            schema: "konklave.ring/1",
            size: outcome.ids.len(),
            outcome,
            verdict: outcome.verdict(),
        })?;
        self.out.flush()
    }

    fn json(&mut self, line: &Line<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        writeln!(self.out)
    }
}

/// The result for people.
pub(crate) fn sentence(election: &Election) -> String {
    let Election { initiator, leader, messages, timed_out, attempts, duration_ms, verdict, .. } =
        election;
    let start = initiator.map_or("no worker could start".into(), |i| format!("worker {i} started"));
    let end = match (verdict, leader) {
        (Verdict::Ok, Some(leader)) => format!("worker {leader} leads"),
        (Verdict::Violated, Some(leader)) => {
            format!("VIOLATION: two leaders, or a worker does not know leader {leader}")
        }
        (Verdict::Interrupted, _) => "interrupted".into(),
        (Verdict::Unfinished, _) | (_, None) => "NOT finished".into(),
    };
    let mut text = format!("{start}, {end}, {}", count(*messages, "message"));
    if *timed_out > 0 {
        text += &format!(" ({timed_out} to failed workers)");
    }
    if *attempts > 1 {
        text += &format!(", {attempts} attempts");
    }
    text + &format!(", {duration_ms:.1} ms")
}

/// `1 message`, `2 messages`.
pub(crate) fn count(number: u64, of: &str) -> String {
    format!("{number} {of}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn election() -> Election {
        Election {
            election: 2,
            initiator: Some(17),
            leader: Some(99),
            messages: 21,
            timed_out: 0,
            attempts: 1,
            duration_ms: 12.345,
            verdict: Verdict::Ok,
        }
    }

    fn printed(style: Style, print: impl FnOnce(&mut Reporter<'_>)) -> String {
        let mut out = Vec::new();
        print(&mut Reporter { out: &mut out, style });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_election_is_one_line_of_text() {
        let line = printed(Style::Text, |r| r.election(&election()).unwrap());
        assert_eq!(line, "election 2: worker 17 started, worker 99 leads, 21 messages, 12.3 ms\n");
        let mended = Election { timed_out: 1, attempts: 2, messages: 1, ..election() };
        assert_eq!(
            sentence(&mended),
            "worker 17 started, worker 99 leads, 1 message (1 to failed workers), 2 attempts, 12.3 ms"
        );
    }

    #[test]
    fn an_election_is_one_object_of_json() {
        let line = printed(Style::Json, |r| r.election(&election()).unwrap());
        assert_eq!(
            line,
            "{\"type\":\"election\",\"election\":2,\"initiator\":17,\"leader\":99,\"messages\":21,\
             \"timed_out\":0,\"attempts\":1,\"duration_ms\":12.345,\"verdict\":\"ok\"}\n"
        );
    }

    #[test]
    fn the_exit_code_tells_whether_all_went_well() {
        let fine = Outcome {
            ids: vec![3, 9],
            seed: 7,
            elections: 1,
            unfinished: 0,
            violated: 0,
            messages: 5,
            leader: Some(9),
            failed: vec![],
            interrupted: true,
            log_cut_short: false,
        };
        assert_eq!(fine.exit_code(), 0);
        assert_eq!(Outcome { violated: 1, ..fine.clone() }.exit_code(), 1);
        assert_eq!(Outcome { log_cut_short: true, ..fine.clone() }.exit_code(), 74);
        assert_eq!(Outcome { unfinished: 1, ..fine.clone() }.exit_code(), 1);
        let line = printed(Style::Json, |r| r.summary(&fine).unwrap());
        assert!(
            line.starts_with("{\"type\":\"summary\",\"schema\":\"konklave.ring/1\",\"size\":2,")
        );
        assert!(line.ends_with("\"interrupted\":true,\"verdict\":\"ok\"}\n"));
    }
}
