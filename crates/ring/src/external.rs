//! External elections: run by other algorithms, or in the simulator or on sockets.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use konklave_process::{ProcessId, Rng};

use crate::log::{Journal, Level};
use crate::report::{Election, Outcome, Reporter, Verdict, sentence};
use crate::{Flags, Options, RingError, Stop, World, introduce, style};

/// How often signals are looked for.
const GLANCE: Duration = Duration::from_millis(20);

/// An election to run.
#[derive(Clone, PartialEq, Debug)]
pub struct ExternalElection {
    /// Its number, from 1.
    pub number: u64,
    /// The workers' ids in ring order.
    pub ids: Vec<u32>,
    /// The initiator.
    pub initiator: u32,
    /// The seed of random choices.
    pub seed: u64,
    /// The time of a worker's task: one unit.
    pub unit: Duration,
}

/// The result of an external election.
#[derive(Clone, PartialEq, Debug)]
pub struct ExternalResult {
    /// The winner.
    pub leader: Option<u32>,
    /// Messages sent.
    pub messages: u64,
    /// Its duration.
    pub duration: Duration,
    /// The verdict.
    pub verdict: Verdict,
}

impl ExternalResult {
    /// The result in the form of the ring's own elections.
    fn of(self, round: &ExternalElection) -> Election {
        Election {
            election: round.number,
            initiator: Some(round.initiator),
            leader: self.leader,
            messages: self.messages,
            timed_out: 0,
            attempts: 1,
            duration_ms: self.duration.as_secs_f64() * 1e3,
            verdict: self.verdict,
        }
    }
}

/// Runs the program as [`run`](crate::run) does, but lets `hold` run the elections.
pub fn run_external(
    flags: &Flags,
    hold: &mut dyn FnMut(&ExternalElection) -> Result<ExternalResult, RingError>,
    out: &mut dyn Write,
    err: &mut dyn Write,
    stop: &Stop,
) -> Result<Outcome, RingError> {
    let options = Options::resolve(flags)?;
    if !options.failures.is_empty() {
        return Err(RingError::Usage(
            "--fail works only with the workers of the ring; in other worlds, let nodes crash with \
             the command `run … --fault crash:ID@TIME`"
                .into(),
        ));
    }
    // Where time does not pass, there are no pauses.
    let real = options.external.as_ref().is_none_or(|e| e.world != World::Simulated);
    let mut journal = Journal::new(err);
    let style = style(&options, &mut journal)?;
    introduce(&options, &mut journal);
    let mut reporter = Reporter { out, style };
    let mut rng = Rng::new(options.seed).fork(1);
    let mut outcome = Outcome::new(&options);
    let mut live = options.group.members().to_vec();
    live.sort_unstable();
    for number in 1.. {
        if is_stopped(stop, &mut outcome)? {
            break;
        }
        let ProcessId(initiator) =
            options.initiator.unwrap_or_else(|| live[rng.below(live.len() as u32) as usize]);
        journal.write(Level::Info, || format!("election {number} is started by {initiator}"));
        let round = ExternalElection {
            number,
            ids: options.ids(),
            initiator,
            seed: options.seed.wrapping_add(number - 1),
            unit: options.worker_sleep.max(Duration::from_millis(1)),
        };
        let election = hold(&round)?.of(&round);
        let ok = election.verdict == Verdict::Ok;
        let level = if ok { Level::Info } else { Level::Error };
        journal.write(level, || format!("election {number} is over: {}", sentence(&election)));
        outcome.account(&election);
        match reporter.election(&election) {
            Ok(()) => {}
            // The reader of our results has closed the pipe: it has read enough.
            Err(reason) if reason.kind() == io::ErrorKind::BrokenPipe => break,
            Err(reason) => return Err(RingError::Output(reason)),
        }
        if election.leader.is_none() || number == options.number_of_elections {
            break;
        }
        let began = Instant::now();
        while real && began.elapsed() < options.sleep && stop.signals() == 0 {
            std::thread::sleep(GLANCE.min(options.sleep.saturating_sub(began.elapsed())));
        }
    }
    outcome.log_cut_short = journal.is_cut_short;
    reporter.close(&outcome)?;
    Ok(outcome)
}

fn is_stopped(stop: &Stop, outcome: &mut Outcome) -> Result<bool, RingError> {
    match stop.signals() {
        0 => Ok(false),
        1 => {
            outcome.interrupted = true;
            Ok(true)
        }
        _ => Err(RingError::Interrupted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> Flags {
        Flags {
            ids: Some(vec![17, 4, 99]),
            number_of_elections: Some(3),
            seed: Some(7),
            sleep: Some(0),
            worker_sleep: Some(0),
            ..Flags::default()
        }
    }

    fn held(
        flags: &Flags,
        verdict: Verdict,
    ) -> (Result<Outcome, RingError>, String, Vec<ExternalElection>) {
        let (mut out, mut err, mut rounds) = (Vec::new(), Vec::new(), Vec::new());
        let mut hold = |round: &ExternalElection| {
            rounds.push(round.clone());
            let leader = (verdict != Verdict::Unfinished).then_some(99);
            Ok(ExternalResult { leader, messages: 8, duration: Duration::from_millis(2), verdict })
        };
        let outcome = run_external(flags, &mut hold, &mut out, &mut err, &Stop::new());
        (outcome, String::from_utf8(out).unwrap(), rounds)
    }

    #[test]
    fn elections_are_counted_and_told_like_those_of_the_workers() {
        let (outcome, out, rounds) = held(&flags(), Verdict::Ok);
        let outcome = outcome.unwrap();
        assert_eq!((outcome.elections, outcome.messages, outcome.exit_code()), (3, 24, 0));
        assert_eq!(rounds.iter().map(|r| r.seed).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(out.lines().count(), 3);
        let first = out.lines().next().unwrap();
        assert!(first.ends_with("worker 99 leads, 8 messages, 2.0 ms"), "{first}");
    }

    #[test]
    fn without_a_leader_the_program_ends_with_1() {
        let (outcome, out, _) = held(&flags(), Verdict::Unfinished);
        assert_eq!((outcome.unwrap().exit_code(), out.lines().count()), (1, 1));
    }

    #[test]
    fn failures_are_for_the_rings_own_workers() {
        let flags = Flags { fail: vec!["4@start".into()], ..flags() };
        let (outcome, _, rounds) = held(&flags, Verdict::Ok);
        let error = outcome.unwrap_err();
        assert!(
            error.to_string().starts_with("--fail works only with the workers of the ring"),
            "{error}"
        );
        assert!(rounds.is_empty());
    }
}
