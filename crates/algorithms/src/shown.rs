//! Runs that show mistakes that take time to matter.
//!
//! Without a clock the checker lets timers fire in any order, so it cannot tell a lease that is too
//! long, a wait that is too short or a detector that never learns from one that is right. By the clock it
//! can, in the small; a detector that learns takes longer than any check. These runs stand beside the data
//! sheets, not in them: delays and seeds say nothing about an algorithm.

use crate::Mistake;

/// Algorithm, mistake, and the arguments of `run`.
const SHOWN: &[(&str, &str, &str)] = &[
    ("bully", "no-guard", "-n 6 --down 5 --initiators 0"),
    ("invitation", "equal-waits", "-n 2 --time-limit 10000"),
    (
        "quorum",
        "lease-from-ack",
        "-n 3 --initiators 0 --set election=20 --time-limit 100 --seed 2 \
         --fault delay:1>0/BeatReply#6+13.5 --fault delay:2>0/BeatReply#6+13.5 \
         --fault partition:0@25.5",
    ),
    ("quorum", "no-lease", "-n 3 --initiators 0 --time-limit 100 --fault partition:0@20-80"),
    (
        "quorum",
        "vote-at-once-after-restart",
        "-n 3 --initiators 0 --set election=100 --set jitter=1 --time-limit 200 \
         --fault cut:0>2@50 --fault partition:0@130 --fault crash:1@135 --fault restart:1@140",
    ),
    (
        "leader",
        "no-delay",
        "-n 3 --requests 0,0,0 --set lease=60 --time-limit 300 --detect-after never \
         --fault cut:1>0@9 --fault cut:2>0@9 --fault suspect:1>0@10 --fault suspect:2>0@10",
    ),
    (
        "lifted",
        "no-wait",
        "-n 3 --set safety=lease --set lease=40 --set heartbeat=2 --set rejoin=on \
         --set mutex=naimi-trehel --detect-after never --delay uniform:0.2..1.8 --hold 150 \
         --script 2@5,0@25 --time-limit 200 --fault partition:2|0,1@30",
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
