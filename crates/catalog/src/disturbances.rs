//! The disturbances of a run: the condition that every cost formula has.
//!
//! Scenario: a data sheet claims "n − 1 messages if the highest starts", of an algorithm that survives crashes.
//! Hazard: in a run with a crash the algorithm may send fewer messages, or more, and no claim is broken.
//! Rule: a formula is compared with a run only if nothing disturbed the whole run. What delays a message or a
//! process is no disturbance: formulas hold for every order of events, and formulas of time ask for a
//! limit of delays.

use konklave_process::ProcessId;
use konklave_sim::{Config, Fault, Mishap, Struck, What};

/// The faults that struck in a run.
pub(crate) struct Disturbances<'a> {
    struck: Vec<&'a Fault>,
    /// Whether messages are lost or doubled at random.
    by_chance: bool,
}

impl<'a> Disturbances<'a> {
    /// The faults of `config` that struck. Processes that are `down` from the start belong to the setup, so
    /// formulas know of them.
    pub(crate) fn new(config: &'a Config, down: &[ProcessId], struck: &[Struck]) -> Self {
        let faults = config.faults.iter().zip(struck).skip(down.len());
        let struck = faults.filter(|(_, struck)| **struck == Struck::Yes).map(|(fault, _)| fault);
        Self { struck: struck.collect(), by_chance: config.loss + config.duplicate > 0.0 }
    }

    /// Whether there are none.
    pub(crate) fn are_none(&self) -> bool {
        self.struck.is_empty() && !self.by_chance
    }

    /// Whether a message or a process was delayed beyond the limit of delays.
    pub(crate) fn delay(&self) -> bool {
        self.struck.iter().any(|fault| is_delay(&fault.what))
    }

    /// The first fault that is more than a delay, in words.
    pub(crate) fn cause(&self) -> Option<String> {
        let fault = self.struck.iter().find(|fault| !is_delay(&fault.what));
        let chance = "messages are lost or doubled at random".to_owned();
        fault.map(|fault| format!("{fault} struck")).or(self.by_chance.then_some(chance))
    }
}

fn is_delay(what: &What) -> bool {
    matches!(what, What::Pause(_) | What::Message(_, Mishap::Delay(_)))
}

/// The faults of `config` that changed nothing, each with the reason.
pub(crate) fn without_effect(config: &Config, struck: &[Struck]) -> Vec<String> {
    let told = |(fault, struck): (&Fault, &Struck)| {
        let why = match struck {
            Struck::Yes => return None,
            Struck::TooLate => "the run ended before".to_owned(),
            Struck::InVain(why) => (*why).to_owned(),
            Struck::TooFew(0) => "no such message was sent".to_owned(),
            Struck::TooFew(1) => "only one such message was sent".to_owned(),
            Struck::TooFew(sent) => format!("only {sent} such messages were sent"),
        };
        Some(format!("{fault}: {why}"))
    };
    config.faults.iter().zip(struck).filter_map(told).collect()
}
