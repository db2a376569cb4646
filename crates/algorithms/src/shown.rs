//! Simulated runs that show mistakes which no check catches.
//!
//! Without a clock, the checker lets timers fire in any order. So it does not see a lease that is too
//! long, a wait that is too short, or a detector that never learns. With a clock it sees the first two
//! in small groups; a detector learns more slowly than any check can follow. An excluded holder of the lock table
//! takes a group of three, of which a check takes too long for a test.
//!
//! These runs are no part of the data sheets: delays and seeds are no property of an algorithm.

use crate::Mistake;

/// Algorithm, mistake, and the arguments of `run`.
const SHOWN: &[(&str, &str, &str)] = &[
    (
        "lock-table",
        "no-wait",
        "-n 3 --requests 0,1,1 --set departed=fenced --hold 100 --fault break:1-0@7 \
         --fault break:1-2@7 --time-limit 400",
    ),
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
    /// The arguments of `run` that show this mistake of `algorithm`, if no check catches it. No argument
    /// contains a space; a shell needs quotes around some.
    pub fn shown_by(&self, algorithm: &str) -> Option<&'static str> {
        let mut shown = SHOWN.iter().filter(|(of, name, _)| (*of, *name) == (algorithm, self.name));
        shown.next().map(|(.., arguments)| *arguments)
    }
}
