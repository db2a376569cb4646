//! The log: on stderr, for people or for machines, as loud as one likes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::config::{Level, Settings};

/// How loud it is; can be changed while it runs.
#[derive(Clone, Debug)]
pub(super) struct Log(Arc<AtomicU8>);

impl Log {
    /// As loud as `settings` say from now on.
    pub(super) fn level(&self, settings: &Settings) {
        self.0.store(settings.log.unwrap_or(Level::Info) as u8, Ordering::Relaxed);
    }
}

impl<S> Filter<S> for Log {
    fn enabled(&self, what: &tracing::Metadata<'_>, _: &Context<'_, S>) -> bool {
        let loudness = match *what.level() {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warn,
            tracing::Level::INFO => Level::Info,
            tracing::Level::DEBUG => Level::Debug,
            tracing::Level::TRACE => Level::Trace,
        };
        loudness as u8 <= self.0.load(Ordering::Relaxed)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // It may become as loud as it can.
        Some(LevelFilter::TRACE)
    }
}

/// Starts to log.
pub(super) fn start(settings: &Settings) -> Log {
    let log = Log(Arc::default());
    log.level(settings);
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match settings.log_json {
        Some(true) => lines.json().boxed(),
        Some(false) | None => lines.with_ansi(colours()).with_target(false).boxed(),
    };
    // Whoever embeds us may have a log of its own.
    let _ = tracing_subscriber::registry().with(lines.with_filter(log.clone())).try_init();
    log
}

fn colours() -> bool {
    use std::io::IsTerminal;
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::io::stderr().is_terminal()
}
