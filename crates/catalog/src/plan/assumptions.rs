//! The assumptions that a world breaks, and the causes.

use konklave_algorithms::{Assumption, DataSheet, Setup};
use konklave_sim::{Config, Delay, Fault, Mishap, What};

use super::queues;

/// The assumptions that the world breaks, each with its cause.
pub(super) fn broken_assumptions(
    sheet: &DataSheet,
    config: &Config,
    setup: &Setup,
    longest_delay: Option<f64>,
) -> Vec<(Assumption, String)> {
    let broken_by = |&assumption: &Assumption| {
        Some((assumption, cause(assumption, config, setup, longest_delay)?))
    };
    sheet.assumes.iter().filter_map(broken_by).collect()
}

/// The cause that breaks an assumption, if any does.
fn cause(
    assumption: Assumption,
    config: &Config,
    setup: &Setup,
    longest_delay: Option<f64>,
) -> Option<String> {
    let struck = |fits: fn(&What) -> bool| first_fault(&config.faults, fits);
    match assumption {
        Assumption::Reliable => loss(config, true),
        Assumption::ReliableLinks => loss(config, false),
        Assumption::AccurateDetector => {
            struck(|w| matches!(w, What::Suspect(..))).or_else(|| unreported(config, setup))
        }
        Assumption::NoDuplicates if config.duplicate > 0.0 => {
            Some(format!("messages arrive twice with probability {}", config.duplicate))
        }
        Assumption::NoDuplicates => struck(|w| matches!(w, What::Message(_, Mishap::Duplicate))),
        Assumption::Fifo if !config.fifo && !config.delay.is_constant() => {
            Some("messages may overtake each other".into())
        }
        Assumption::Fifo if !config.fifo => {
            struck(|w| matches!(w, What::Message(_, Mishap::Delay(_))))
        }
        Assumption::NoCrash => struck(|w| matches!(w, What::Crash(_)))
            .filter(|_| config.faults.len() > setup.down.len()),
        Assumption::BoundedDelays if matches!(config.delay, Delay::Hops(_)) && !queues(config) => {
            None
        }
        Assumption::BoundedDelays => unbounded(config),
        Assumption::Synchronous => {
            unbounded(config).or_else(|| late(config, longest_delay)).or_else(|| {
                struck(|w| {
                    matches!(
                        w,
                        What::Pause(_) | What::Suspect(..) | What::Message(_, Mishap::Delay(_))
                    )
                })
            })
        }
        Assumption::NoRestart => struck(|w| matches!(w, What::Restart(..))),
        Assumption::SteadyClocks => struck(|w| match w {
            What::Pause(_) => true,
            What::Rate(_, rate) => !(0.95..1.05).contains(rate),
            _ => false,
        }),
        Assumption::StableStorage => {
            struck(|w| matches!(w, What::Restart(_, konklave_sim::Memory::Nothing)))
        }
        Assumption::Fifo | Assumption::KnownMembership | Assumption::UniqueIds => None,
    }
}

/// The first fault of a kind, in words.
fn first_fault(faults: &[Fault], fits: impl Fn(&What) -> bool) -> Option<String> {
    faults.iter().find(|f| fits(&f.what)).map(Fault::to_string)
}

/// The cause if messages may be lost; broken links count only if `links_break`.
fn loss(config: &Config, links_break: bool) -> Option<String> {
    if config.loss > 0.0 {
        return Some(format!("messages are lost with probability {}", config.loss));
    }
    first_fault(&config.faults, |w| match w {
        What::Cut(..) | What::Partition(_) | What::Message(_, Mishap::Lose) => true,
        What::Break(..) => links_break,
        _ => false,
    })
}

/// The cause if the failure detector never reports a crash or a broken link.
fn unreported(config: &Config, setup: &Setup) -> Option<String> {
    let faults = &config.faults[setup.down.len()..];
    let fault = first_fault(faults, |w| matches!(w, What::Crash(_) | What::Break(..)));
    let fault = fault.filter(|_| config.detect_after.is_none())?;
    Some(format!("no process learns of {fault}"))
}

/// The cause if delays have no bound.
fn unbounded(config: &Config) -> Option<String> {
    if queues(config) {
        return Some("messages wait at busy nodes".into());
    }
    config.delay.longest().is_none().then(|| "delays have no bound".into())
}

/// The cause if delays may exceed the timeouts.
fn late(config: &Config, most: Option<f64>) -> Option<String> {
    let (longest, most) = (config.delay.longest()?, most?);
    (longest > most)
        .then(|| format!("a message may take {longest} T but the timeouts allow for {most} T"))
}
