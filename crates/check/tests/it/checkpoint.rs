//! A search that is interrupted and resumed has the same result as one that is not.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use konklave_check::{
    Bounded, CheckpointError, Checkpoints, Options, Outcome, Progress, Report, Swarm,
};

use crate::lock::model;

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("konklave-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
    fn file(&self) -> PathBuf {
        self.0.join("checkpoint")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A model: the number of processes, how often each visitor enters, whether the lock is fair, the options.
#[derive(Clone)]
struct Case(usize, Option<u8>, bool, Options);

impl Case {
    fn explore(
        &self,
        (write, resume): (Option<&Path>, Option<&Path>),
        every: Duration,
        watch: impl FnMut(Progress) -> bool,
    ) -> Result<Report, CheckpointError> {
        let Self(n, left, fair, options) = self.clone();
        let checkpoints = Checkpoints {
            identity: format!("{n} visitors, {left:?}"),
            write: write.map(Path::to_owned),
            resume: resume.map(Path::to_owned),
            every,
        };
        model(n, left, fair, options).explore_from(&checkpoints, watch)
    }

    fn whole(&self) -> Report {
        self.explore((None, None), Duration::ZERO, |_| true).expect("no file is involved")
    }

    /// Explores with an interruption after each `stride` states or so; returns also how many pieces it took.
    fn in_pieces(&self, file: &Path, stride: u64) -> (Report, u32) {
        let mut pieces = 0;
        loop {
            let resume = (pieces > 0).then_some(file);
            let Self(n, left, fair, options) = self.clone();
            let max_states = stride * u64::from(pieces + 1);
            // The number of threads differs each time, which must not matter.
            let threads = 1 + pieces as usize % 3;
            let piece = Self(n, left, fair, Options { max_states, threads, ..options });
            let found = piece
                .explore((Some(file), resume), Duration::from_secs(3600), |_| true)
                .expect("the file is there");
            pieces += 1;
            assert!(pieces < 1000, "it comes to an end");
            if !matches!(found.outcome, Outcome::Bounded(Bounded::States)) {
                return (found, pieces);
            }
        }
    }
}

fn figures(report: &Report) -> String {
    let verdict = match &report.outcome {
        Outcome::Exhausted => "exhausted".to_owned(),
        Outcome::Bounded(bound) => format!("{bound:?}"),
        Outcome::Violated(w) => {
            format!("{:?} {:?} {:?} {}", w.violation, w.moments, w.loops_from, w.starts)
        }
    };
    let ends = [&report.costliest, &report.cheapest]
        .map(|run| run.as_ref().map(|run| format!("{:?}", run.moments)));
    let Report { states, transitions, depth, ends: count, messages, .. } = report;
    format!("{verdict} {states} {transitions} {depth} {count} {messages:?} {ends:?}")
}

#[test]
fn resumed_search_has_the_same_report() {
    let folder = Folder::new("pieces");
    let unordered = Options { fifo: false, ..Options::default() };
    let cases = [
        Case(5, Some(2), true, Options::default()),
        Case(4, Some(3), true, Options { count_messages: true, ..unordered.clone() }),
        // A violation by a step, a violation at an end, a lasso.
        Case(5, Some(2), false, Options { duplicates: 1, ..unordered.clone() }),
        Case(4, Some(1), true, Options { losses: 1, crashes: 1, ..Options::default() }),
        Case(4, None, false, unordered.clone()),
        // With symmetry; the last of these restarts without it.
        Case(5, Some(2), false, Options { symmetry: true, ..unordered.clone() }),
        Case(5, Some(2), false, Options { symmetry: true, duplicates: 1, ..unordered.clone() }),
        Case(4, None, false, Options { symmetry: true, ..unordered }),
    ];
    let mut verdicts = Vec::new();
    for (i, case) in cases.iter().enumerate() {
        let whole = case.whole();
        let (found, pieces) = case.in_pieces(&folder.file(), (whole.states / 5).max(5));
        assert!(pieces > 2, "case {i} was interrupted: {pieces}");
        assert_eq!(figures(&found), figures(&whole), "case {i}");
        verdicts.push(match whole.outcome {
            Outcome::Exhausted => "exhausted",
            Outcome::Violated(witness) => witness.violation.property,
            Outcome::Bounded(_) => "bounded",
        });
    }
    let expected = [
        "exhausted",
        "exhausted",
        "mutual exclusion",
        "deadlock",
        "starvation",
        "exhausted",
        "mutual exclusion",
        "starvation",
    ];
    assert_eq!(verdicts, expected);
}

#[test]
fn checkpoint_written_during_a_search_can_be_resumed() {
    let folder = Folder::new("way");
    let case = Case(5, Some(2), true, Options { fifo: false, ..Options::default() });
    let whole = case.whole();
    // After every level; the last is still there when all is done.
    let found = case.explore((Some(&folder.file()), None), Duration::ZERO, |_| true);
    assert_eq!(figures(&found.expect("the file can be written")), figures(&whole));
    let again = case.explore((None, Some(&folder.file())), Duration::ZERO, |_| true);
    assert_eq!(figures(&again.expect("the file can be read")), figures(&whole));
    let parts = fs::read_dir(&folder.0).expect("a folder").count();
    assert_eq!(parts, 1, "nothing half written is left");
    let unheard = case.explore((Some(&folder.file()), None), Duration::from_secs(9), |_| false);
    let unheard = unheard.expect("the file can be written");
    assert!(matches!(unheard.outcome, Outcome::Bounded(Bounded::Interrupted)));
    let again = case.explore((None, Some(&folder.file())), Duration::ZERO, |_| true);
    assert_eq!(figures(&again.expect("the file can be read")), figures(&whole));
}

#[test]
fn depth_limit_may_differ_when_a_search_is_resumed() {
    let folder = Folder::new("deep");
    let (n, left, fair, options) = (4, Some(2), true, Options::default());
    let shallow = Case(n, left, fair, Options { max_depth: 7, ..options.clone() });
    let found = shallow.explore((Some(&folder.file()), None), Duration::from_secs(9), |_| true);
    let found = found.expect("the file can be written");
    assert!(matches!(found.outcome, Outcome::Bounded(Bounded::Depth)));
    let case = Case(n, left, fair, options);
    let again = case.explore((None, Some(&folder.file())), Duration::ZERO, |_| true);
    assert_eq!(figures(&again.expect("the file can be read")), figures(&case.whole()));
}

#[test]
fn damaged_checkpoints_and_those_of_other_searches_are_refused() {
    let folder = Folder::new("refused");
    let file = folder.file();
    let few = Options { max_states: 500, ..Options::default() };
    let case = Case(5, Some(2), true, few);
    let resume = |case: &Case| {
        let found = case.explore((None, Some(&file)), Duration::ZERO, |_| true);
        found.map(|report| figures(&report)).map_err(|error| error.to_string())
    };
    assert!(resume(&case).is_err_and(|why| why.starts_with("cannot read")));
    case.explore((Some(&file), None), Duration::ZERO, |_| true).expect("it can be written");
    assert!(resume(&case).is_ok());

    let other = Case(4, Some(2), true, case.3.clone());
    assert!(
        resume(&other).is_err_and(|why| why.contains("another model (in the file: 5 visitors"))
    );
    let other = Case(5, Some(2), true, Options { fifo: false, ..case.3.clone() });
    assert!(resume(&other).is_err_and(|why| why.contains("another choice of options")));
    // Only the processes behave differently.
    let other = Case(5, Some(2), false, case.3.clone());
    assert!(resume(&other).is_err_and(|why| why.contains("have changed since")));
    for unfit in [
        Options { compact: true, ..case.3.clone() },
        Options { reduce: true, ..case.3.clone() },
        Options { swarm: Some(Swarm { shard: 0, of: 1, seed: 1, runs: 1 }), ..case.3.clone() },
    ] {
        let unfit = Case(5, Some(2), true, unfit);
        assert!(resume(&unfit).is_err_and(|why| why.contains("exact search")));
    }

    let good = fs::read(&file).expect("a checkpoint");
    for (i, damage) in [good.len() / 2, 25, good.len() - 1].into_iter().enumerate() {
        let mut bad = good.clone();
        bad[damage] ^= 1 << i;
        fs::write(&file, &bad).expect("a file");
        assert!(resume(&case).is_err_and(|why| why.contains("its checksum is wrong")), "{damage}");
    }
    for (bytes, why) in [
        (&good[..good.len() / 3], "its checksum is wrong"),
        (&b"{\"schema\": 1, \"and\": \"no checkpoint at all\"}"[..], "not a checkpoint"),
        (&b""[..], "not a checkpoint"),
    ] {
        fs::write(&file, bytes).expect("a file");
        assert!(resume(&case).is_err_and(|said| said.contains(why)), "{why}");
    }
    let nowhere = folder.0.join("nowhere/checkpoint");
    let found = case.explore((Some(&nowhere), None), Duration::ZERO, |_| true);
    assert!(matches!(found, Err(CheckpointError::Unwritable(..))));
}
