//! The effects of faults in real worlds: counted while the run goes on, and counted again by its replay.

use konklave_process::ProcessId;
use konklave_sim::{Config, Fault, Mishap, Struck, What, When};

/// The faults of a run, each with the number of messages that it may strike so far.
#[derive(Clone, Debug)]
pub(crate) struct FaultEffects(Vec<(Fault, u64)>);

impl FaultEffects {
    pub(crate) fn new(config: &Config) -> Self {
        Self(config.faults.iter().map(|fault| (fault.clone(), 0)).collect())
    }

    /// A message is sent. Returns whether a fault loses it, and whether one duplicates it.
    pub(crate) fn on_send(&mut self, from: ProcessId, to: ProcessId, kind: &str) -> (bool, bool) {
        let (mut lost, mut doubled) = (false, false);
        for (fault, seen) in &mut self.0 {
            let What::Message(selector, mishap) = &fault.what else { continue };
            if selector.fits(from, to, kind) {
                *seen += 1;
                lost |= *seen == selector.nth && *mishap == Mishap::Lose;
                doubled |= *seen == selector.nth && *mishap == Mishap::Duplicate;
            }
        }
        (lost, doubled)
    }

    /// The effect of each fault in a run that ended at this time, in T.
    pub(crate) fn struck(&self, end: f64) -> Vec<Struck> {
        let effect = |(fault, seen): &(Fault, u64)| match (&fault.what, fault.when) {
            (What::Message(selector, _), _) if *seen < selector.nth => Struck::TooFew(*seen),
            (What::Message(..), _) => Struck::Yes,
            (_, When::Time(t)) if t > end => Struck::TooLate,
            _ => Struck::Yes,
        };
        self.0.iter().map(effect).collect()
    }
}
