//! Runs that show mistakes that take time to matter.
//!
//! Without a clock the checker lets timers fire in any order, so it cannot tell a lease that is too
//! long, a wait that is too short or a detector that never learns from one that is right. By the clock it
//! can, in the small; a detector that learns takes longer than any check. These runs stand beside the data
//! sheets, not in them: delays and seeds say nothing about an algorithm.

use crate::Mistake;

/// Algorithm, mistake, and the arguments of `run`.
const SHOWN: &[(&str, &str, &str)] = &[
    (
        "quorum",
        "vote-at-once-after-restart",
        "-n 3 --initiators 0 --set election=100 --set jitter=1 --time-limit 200 \
         --fault cut:0>2@50 --fault partition:0@130 --fault crash:1@135 --fault restart:1@140",
    ),
    (
        "heartbeat",
        "impatient",
        "-n 3 --set misses=1 --delay uniform:0.5..6 --no-fifo --time-limit 3000",
    ),
    ("phi-accrual", "skip-late", "-n 3 --time-limit 4000 --fault rate:1*0.2"),
];

impl Mistake {
    /// The arguments of `run` that show this mistake of `algorithm`, where no check catches it. No word
    /// has spaces in it; a shell needs quotes for some.
    pub fn shown_by(&self, algorithm: &str) -> Option<&'static str> {
        let mut shown = SHOWN.iter().filter(|(of, name, _)| (*of, *name) == (algorithm, self.name));
        shown.next().map(|(.., arguments)| *arguments)
    }
}
