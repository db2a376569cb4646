//! The algorithms that come with Konklave, by problem.

use konklave_builtin_election as election;
use konklave_builtin_group as group;
use konklave_builtin_multicast as multicast;
use konklave_builtin_mutex as mutex;

use crate::Entry;

/// All of them, each problem's in the order of their names.
pub(crate) fn entries() -> Vec<Entry> {
    let problems = [
        election::ALGORITHMS,
        group::ALGORITHMS,
        multicast::ALGORITHMS,
        mutex::ALGORITHMS,
        group::DETECTORS,
    ];
    let entry = |algorithm| {
        let entry = Entry::of(algorithm);
        match entry.sheet.name {
            "bully" => entry.hardened(election::BULLY_HARDENED),
            "chang-roberts" => entry.hardened(election::CHANG_ROBERTS_HARDENED),
            "ring-list" => entry.hardened(election::RING_LIST_HARDENED),
            _ => entry,
        }
    };
    problems.concat().into_iter().map(entry).collect()
}
