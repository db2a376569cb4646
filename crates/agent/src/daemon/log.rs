//! The log on stderr: as text or JSON, with a level that can change while the agent runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::config::{Level, Settings};

/// The current log level.
#[derive(Clone, Debug)]
pub(super) struct Log(Arc<AtomicU8>);

impl Log {
    /// Sets the level to that of `settings`.
    pub(super) fn level(&self, settings: &Settings) {
        self.0.store(settings.log.unwrap_or(Level::Info) as u8, Ordering::Relaxed);
    }
}

impl<S> Filter<S> for Log {
    fn enabled(&self, what: &tracing::Metadata<'_>, _: &Context<'_, S>) -> bool {
        let level = match *what.level() {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warn,
            tracing::Level::INFO => Level::Info,
            tracing::Level::DEBUG => Level::Debug,
            tracing::Level::TRACE => Level::Trace,
        };
        level as u8 <= self.0.load(Ordering::Relaxed)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // A reload may raise the level to any value.
        Some(LevelFilter::TRACE)
    }
}

/// Starts the log.
pub(super) fn start(settings: &Settings) -> Log {
    let log = Log(Arc::default());
    log.level(settings);
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match settings.log_json {
        Some(true) => lines.json().boxed(),
        Some(false) | None => lines.with_ansi(colours()).with_target(false).boxed(),
    };
    // Fails if the program that embeds the agent has installed a log of its own, which stays.
    let _ = tracing_subscriber::registry().with(lines.with_filter(log.clone())).try_init();
    log
}

fn colours() -> bool {
    use std::io::IsTerminal;
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::io::stderr().is_terminal()
}
