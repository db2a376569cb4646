//! The terminal: its foreground is the command while it runs, and the wrapper before and after.

use std::fs::File;
use std::io::{self, IsTerminal};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::process_group::ProcessGroup;

/// The controlling terminal, if the wrapper was in its foreground at the start.
#[derive(Debug)]
pub(super) struct Terminal(Option<File>);

impl Terminal {
    /// Finds the terminal. In a pipeline, where stdin or stdout is no terminal, the other programs keep it.
    pub(super) fn look() -> Self {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Self(None);
        }
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok();
        Self(terminal.filter(|terminal| tcgetpgrp(terminal) == Ok(getpgrp())))
    }

    /// Whether there is a terminal to give to the command.
    pub(super) fn is_ours(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the wrapper is in its foreground now.
    pub(super) fn in_front(&self) -> bool {
        self.0.as_ref().is_some_and(|terminal| tcgetpgrp(terminal) == Ok(getpgrp()))
    }

    /// Puts `group` into the foreground.
    pub(super) fn give(&self, group: ProcessGroup) {
        self.put(Pid::from_raw(group.0));
    }

    /// Puts the wrapper into the foreground.
    pub(super) fn take(&self) {
        self.put(getpgrp());
    }

    fn put(&self, group: Pid) {
        let Some(terminal) = &self.0 else { return };
        // The call below raises SIGTTOU in a background process, which would stop it.
        let mut stop = SigSet::empty();
        stop.add(Signal::SIGTTOU);
        let _ = stop.thread_block();
        let _ = tcsetpgrp(terminal, group);
        let _ = stop.thread_unblock();
    }
}
