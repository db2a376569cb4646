//! Bounds of the synchronisation delay for algorithms whose requesters collect locks from arbiters.
//!
//! The literature assumes that all requests have arrived: the leaving process releases its arbiters, and they
//! lock themselves for the next process. While requests are on their way, a process may have to give locks back.
//! This takes longer, but not for ever.

use crate::{Bound, Cost, Facts, Metric};

/// The condition under which a run has the delay of the literature.
pub(super) const SETTLED: &str = "all messages take the same time, and each process requests again at \
                                  once and stays for (2n + 2)T, so that all requests arrive before an exit";

/// At most `hops` messages one after the other, if [`SETTLED`].
pub(super) fn settled(facts: &Facts<'_>, hops: f64) -> Option<Bound> {
    let t = facts.delay_max.filter(|_| facts.undisturbed && facts.steady && facts.at_once)?;
    (facts.hold >= (2.0 * facts.n() + 2.0) * t).then_some(Bound::AtMost(hops * t))
}

/// The bound while requests are on their way. Let a process leave at time 0, and let all other requests be sent by
/// then. Until T, these requests and the releases arrive. Until 2T, each FAILED and each INQUIRE arrives. The
/// oldest request gets no FAILED. Of the requests without a FAILED, the youngest waits only for locks of younger
/// requests. These got a FAILED and an INQUIRE, so they relinquish until 2T. So that request has all locks at 4T,
/// if no other process enters before.
///
/// A process that requests meanwhile may have an older timestamp. Then the count begins anew, at most once for each
/// other process.
pub(super) const UNSETTLED: Cost = Cost {
    metric: Metric::SyncDelay,
    formula: "4T, and 4T more for each other process that requests meanwhile",
    when: "no fault strikes a message, and delays have a limit",
    bound: |f| {
        let t = f.delay_max.filter(|_| f.undisturbed)?;
        Some(Bound::AtMost(4.0 * t * if f.at_once { 1.0 } else { f.n() }))
    },
};
