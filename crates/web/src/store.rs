//! The runs that were made last, for exports.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use konklave_trace::Run;

/// So many are kept.
const KEPT: usize = 12;
/// So many entries are kept, all together.
const ENTRIES: usize = 1_000_000;

/// The runs that were made last.
#[derive(Default)]
pub(crate) struct Store(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    last: u64,
    runs: VecDeque<(u64, Arc<Vec<Run>>)>,
}

impl Store {
    /// Keeps `runs`, perhaps in place of old ones: their number.
    pub(crate) fn keep(&self, runs: Vec<Run>) -> u64 {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let number = kept.last;
        kept.runs.push_back((number, Arc::new(runs)));
        let size = |kept: &Kept| -> usize {
            kept.runs.iter().flat_map(|(_, runs)| runs.iter()).map(|run| run.entries.len()).sum()
        };
        while kept.runs.len() > KEPT || (kept.runs.len() > 1 && size(&kept) > ENTRIES) {
            kept.runs.pop_front();
        }
        number
    }

    /// The runs of this number, if they are still here.
    pub(crate) fn find(&self, number: u64) -> Option<Arc<Vec<Run>>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.runs.iter().find(|(n, _)| *n == number).map(|(_, runs)| Arc::clone(runs))
    }
}
