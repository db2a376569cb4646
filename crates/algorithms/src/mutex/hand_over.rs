//! From one to the next where locks are collected from arbiters: what the data sheets promise.
//!
//! The books count on everything having been said: the one that leaves tells the arbiters, they lock
//! themselves for the next. While requests are still on their way, locks may have to be given back, and
//! that takes longer, but not for ever.

use crate::{Bound, Cost, Facts, Metric};

/// When the delay of the books is that of a run.
pub(super) const SETTLED: &str = "every message takes as long, everyone asks again at once, and stays \
                                  for (2n + 2)T: all has been said before one leaves";

/// At most `hops` messages one after the other, if [`SETTLED`].
pub(super) fn settled(facts: &Facts<'_>, hops: f64) -> Option<Bound> {
    let t = facts.delay_max.filter(|_| facts.undisturbed && facts.steady && facts.at_once)?;
    (facts.hold >= (2.0 * facts.n() + 2.0) * t).then_some(Bound::AtMost(hops * t))
}

/// The same when much is still on its way. Let all who want in have asked when one leaves, at 0. At T
/// their requests and the releases have arrived, and nobody is told later than at 2T that it fails or
/// is inquired about. At least the oldest does not fail. Of those who do not, the youngest waits only
/// for locks of younger ones; these fail, were inquired about, and have given back at 2T. So at 4T it
/// has all it needs, if nobody was inside before.
///
/// Who asks in the meantime may be older by its clock: then this begins anew, once for each of the others.
pub(super) const UNSETTLED: Cost = Cost {
    metric: Metric::SyncDelay,
    formula: "4T, and 4T more for each of the others who asks in the meantime",
    when: "nothing happens to messages, and delays have a limit",
    bound: |f| {
        let t = f.delay_max.filter(|_| f.undisturbed)?;
        Some(Bound::AtMost(4.0 * t * if f.at_once { 1.0 } else { f.n() }))
    },
};
