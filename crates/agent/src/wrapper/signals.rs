//! The signals that a wrapper handles.

use std::fs;
use std::io;
use std::task::Poll;

use nix::sys::signal::Signal;
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

use crate::failure::Failure;

/// The signals that the wrapper passes on to the command.
const PASSED: [Signal; 9] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGALRM,
];

/// The signals that the wrapper handles.
pub(super) struct Signals {
    listeners: Vec<(Signal, Listener)>,
}

impl Signals {
    /// Registers the handlers. Signals that were ignored at the start (`nohup`) stay ignored.
    pub(super) fn listen() -> Result<Self, Failure> {
        let ignored = ignored();
        let listen = |number: Signal| {
            let listener = signal(SignalKind::from_raw(number as i32))?;
            Ok((number, listener))
        };
        let listeners = PASSED
            .into_iter()
            .filter(|&number| ignored & (1 << (number as u32 - 1)) == 0)
            .chain([Signal::SIGCHLD, Signal::SIGCONT])
            .map(listen)
            .collect::<io::Result<_>>()
            .map_err(Failure::system("cannot handle signals"))?;
        Ok(Self { listeners })
    }

    /// The next signal.
    pub(super) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|cx| {
            for (number, listener) in &mut self.listeners {
                if listener.poll_recv(cx).is_ready() {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The signals that this process ignores, one bit each.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default()
}
