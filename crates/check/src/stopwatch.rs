//! Measures how long a search takes. This is the only clock that the checker reads.

use std::time::Duration;

/// Measures time from its start. A browser's `wasm32-unknown-unknown` has no clock: there it stays at zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    #[cfg(not(target_family = "wasm"))]
    started: std::time::Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self {
            #[cfg(not(target_family = "wasm"))]
            started: std::time::Instant::now(),
        }
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn elapsed(self) -> Duration {
        self.started.elapsed()
    }

    #[cfg(target_family = "wasm")]
    pub(crate) fn elapsed(self) -> Duration {
        Duration::ZERO
    }
}
