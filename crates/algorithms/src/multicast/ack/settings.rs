//! The switches, and the tree that gathers confirmations.

use std::time::Duration;

use konklave_process::{Group, ProcessId};

/// The switches of a process.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) group: Group,
    pub(super) unit: Duration,
    pub(super) window: u32,
    pub(super) every: u32,
    pub(super) jitter: u32,
    pub(super) fanout: usize,
    pub(super) timeout: u32,
    pub(super) backoff: u32,
    pub(super) limit: u32,
    pub(super) share: usize,
    pub(super) mistake: Option<&'static str>,
}

impl Settings {
    /// The parent of `p` in the tree of `source`: the confirmations of `p` go there.
    pub(super) fn parent(&self, source: ProcessId, p: ProcessId) -> Option<ProcessId> {
        let n = self.group.len();
        let (root, place) = (self.group.place(source)?, self.group.place(p)?);
        let rank = (place + n - root) % n;
        (rank > 0).then(|| self.group.id(((rank - 1) / self.fanout + root) % n))
    }

    /// The children of `p` in the tree of `source`: their confirmations go to `p`.
    pub(super) fn children(
        &self,
        source: ProcessId,
        p: ProcessId,
    ) -> impl Iterator<Item = ProcessId> + '_ {
        let n = self.group.len();
        let places = self.group.place(source).zip(self.group.place(p));
        let root = places.map_or(0, |(root, _)| root);
        let rank = places.map_or(n, |(root, place)| (place + n - root) % n);
        let first = rank.saturating_mul(self.fanout).saturating_add(1);
        (first..first.saturating_add(self.fanout).min(n))
            .map(move |r| self.group.id((r + root) % n))
    }
}
