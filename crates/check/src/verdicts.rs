//! What both rules say of the same faults.

use konklave_process::{ProcessId, Verdict, Violation};

use crate::Options;

pub(crate) fn astray(me: ProcessId, to: ProcessId) -> Verdict {
    Err(Violation::new("usage", format!("{me} sent to {to}, who is no member")))
}

pub(crate) fn unexpected(me: ProcessId, what: &str) -> Verdict {
    Err(Violation::new("expected inputs", format!("{me} met {what}")))
}

pub(crate) fn unquiet(id: ProcessId) -> Violation {
    Violation::unquiet(id)
}

pub(crate) fn deadlock(waiting: &[ProcessId], options: &Options) -> Verdict {
    if waiting.is_empty() || !options.judges("deadlock") {
        return Ok(());
    }
    Err(Violation::new("deadlock", format!("{waiting:?} wait for ever")))
}
