//! The project report's program `ring_voting`, as a library for `konklave ring`.
//!
//! A ring of workers, each with threads of its own, elects a leader again and again by Chang and
//! Roberts's algorithm. The algorithm inside each worker is the project's pure state machine
//! ([`konklave_algorithms::election::chang_roberts`]); the code around it here is really concurrent:
//!
//! - Neighbours communicate through a [`Buffer`] of one slot. A sender waits until its message was *taken*. If
//!   that does not happen within the send timeout, it withdraws the message, regards its neighbour as
//!   failed for ever, and sends to the next worker. A worker that skips all others is alone.
//! - A worker has two threads. One always accepts messages; the other runs the state machine, hands messages
//!   over and sleeps. So workers that all send at once, or sleep, do not regard each other as failed.
//! - The controller calls elections, one at a time. An election is complete when the winner's
//!   announcement has returned to it; the pause before the next election starts then. If a failure
//!   makes an election fail (its messages are dropped after a round), the live workers start it again.
//! - A watchdog observes which workers lead and step down: two leaders at once are CRITICAL.
//!
//! Messages are counted at the sender, hop by hop, also those that a failed neighbour never took.
//! If nobody fails, an election costs exactly d + 2n, where d is the way from the initiator to the
//! highest id.
//!
//! ```
//! use konklave_ring::{Flags, Stop, run};
//!
//! let flags = Flags {
//!     ids: Some(vec![17, 4, 99]),
//!     initiator: Some(17),
//!     number_of_elections: Some(1),
//!     worker_sleep: Some(0),
//!     ..Flags::default()
//! };
//! let (mut out, mut err) = (Vec::new(), Vec::new());
//! let outcome = run(&flags, &mut out, &mut err, &Stop::new())?;
//! assert_eq!((outcome.leader, outcome.messages, outcome.exit_code()), (Some(99), 2 + 6, 0));
//! # Ok::<_, konklave_ring::RingError>(())
//! ```

mod buffer;
mod config;
mod controller;
mod error;
mod external;
mod flags;
mod ledger;
mod log;
mod options;
mod printed;
mod queue;
mod rendezvous;
mod report;
mod worker;

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

pub use buffer::{Buffer, HandOver};
pub use error::RingError;
pub use external::{ExternalElection, ExternalResult, run_external};
pub use flags::Flags;
pub use log::{Level, Target};
pub use options::{External, FailAt, Options, World};
pub use printed::{Code, Fault, Findings, explore};
pub use rendezvous::{Met, Rendezvous};
pub use report::{Election, Outcome, Verdict};

use controller::Controller;
use log::Journal;
use report::{Reporter, Style, count};

/// The number of received termination signals.
///
/// After the first, the current election may finish; the second ends the program at once.
#[derive(Debug, Default)]
pub struct Stop(AtomicU32);

impl Stop {
    /// No signal yet.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Counts a further signal.
    pub fn signal(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of signals.
    pub fn signals(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Runs the program: results go to `out`; warnings and the console's log go to `err`.
///
/// Returns when all elections were held or the ring was stopped. The error is not printed.
pub fn run(
    flags: &Flags,
    out: &mut dyn Write,
    err: &mut dyn Write,
    stop: &Stop,
) -> Result<Outcome, RingError> {
    let options = Options::resolve(flags)?;
    let mut journal = Journal::new(err);
    let style = style(&options, &mut journal)?;
    Controller::new(&options, journal, Reporter { out, style }, stop)?.run()
}

/// Prints warnings, starts the log, and returns the printer of results.
fn style(options: &Options, journal: &mut Journal<'_>) -> Result<Style, RingError> {
    for warning in &options.warnings {
        journal.talk(&format!("warning: {warning}"));
    }
    if let Some(target) = &options.log {
        journal.open(target)?;
    }
    Ok(match (options.quiet, options.json) {
        (true, _) => Style::Silent,
        (false, true) => Style::Json,
        // The log on the console tells the same, and more.
        (false, false) if journal.on_console() => Style::Silent,
        (false, false) => Style::Text,
    })
}

/// Logs the workers of the ring.
fn introduce(options: &Options, journal: &mut Journal<'_>) {
    if options.config_log {
        journal.write(Level::Debug, || options.describe());
    }
    let ids = options.ids();
    let mut ring: Vec<_> = ids.iter().take(20).map(u32::to_string).collect();
    ring.push(if ids.len() > 20 { "…".into() } else { ids[0].to_string() });
    let workers = count(ids.len() as u64, "worker");
    let text = format!("{workers}: {} (seed {})", ring.join(" → "), options.seed);
    journal.write(Level::Info, || text.clone());
    if !options.quiet && !options.json && !journal.on_console() {
        journal.talk(&text);
    }
}
