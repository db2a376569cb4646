//! The terminal: given to the command while it runs, and taken back after.

use std::fs::File;
use std::io::{self, IsTerminal};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::group::Group;

/// The controlling terminal, if we were in its foreground when we started.
#[derive(Debug)]
pub(super) struct Terminal(Option<File>);

impl Terminal {
    /// Looks whether there is one. Whoever is one of a pipeline leaves the terminal to the others.
    pub(super) fn look() -> Self {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Self(None);
        }
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok();
        Self(terminal.filter(|terminal| tcgetpgrp(terminal) == Ok(getpgrp())))
    }

    /// Whether we have one to give.
    pub(super) fn is_ours(&self) -> bool {
        self.0.is_some()
    }

    /// Whether we are in its foreground now.
    pub(super) fn in_front(&self) -> bool {
        self.0.as_ref().is_some_and(|terminal| tcgetpgrp(terminal) == Ok(getpgrp()))
    }

    /// Puts `group` into the foreground.
    pub(super) fn give(&self, group: Group) {
        self.put(Pid::from_raw(group.0));
    }

    /// Puts us into the foreground.
    pub(super) fn take(&self) {
        self.put(getpgrp());
    }

    fn put(&self, group: Pid) {
        let Some(terminal) = &self.0 else { return };
        // From the background this signal would stop us, unless it is blocked.
        let mut stop = SigSet::empty();
        stop.add(Signal::SIGTTOU);
        let _ = stop.thread_block();
        let _ = tcsetpgrp(terminal, group);
        let _ = stop.thread_unblock();
    }
}
