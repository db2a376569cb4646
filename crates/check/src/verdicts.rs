//! Violations that the plain rules and the numbered rules report alike.

use std::time::Duration;

use konklave_process::{ProcessId, Verdict, Violation};

use crate::Options;

/// The property violated by a timer that does not fit the clock. It is judged even if the options do not
/// name it, since no other verdict of such a run could be trusted.
pub(crate) const OFF_CLOCK: &str = "clock";

pub(crate) fn outside_group(me: ProcessId, to: ProcessId) -> Verdict {
    Err(Violation::stranger(me, to))
}

pub(crate) fn unexpected(me: ProcessId, what: &str) -> Verdict {
    Err(Violation::unexpected(me, what))
}

pub(crate) fn deadlock(waiting: &[ProcessId], options: &Options) -> Verdict {
    if waiting.is_empty() || !options.judges("deadlock") {
        return Ok(());
    }
    Err(Violation::new("deadlock", format!("{waiting:?} wait for ever")))
}

/// The steps of time until a timer that is set now runs out (0 without a clock), and whether its duration is
/// a whole number of steps.
pub(crate) fn steps(after: Duration, options: &Options) -> (u32, bool) {
    let Some(step) = options.clock.map(|clock| clock.step.as_nanos().max(1)) else {
        return (0, true);
    };
    let steps = u32::try_from(after.as_nanos().div_ceil(step)).unwrap_or(u32::MAX);
    (steps, after.as_nanos().is_multiple_of(step))
}

pub(crate) fn off_clock(me: ProcessId, after: Duration) -> Verdict {
    let detail =
        format!("{me} sets a timer to {after:?}, which is not a whole number of clock steps");
    Err(Violation::new(OFF_CLOCK, detail))
}

/// Judges the number of messages sent against `most_messages`.
pub(crate) fn over(sent: u32, options: &Options) -> Verdict {
    match options.most_messages {
        Some(most) if sent > most && options.judges("bound") => {
            Err(Violation::new("bound", format!("{sent} messages, more than {most}")))
        }
        _ => Ok(()),
    }
}
