//! Doing the work: cases go to all cores, results come out in order.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::results::Row;
use crate::seal;
use crate::study::Case;

/// How far the work has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Cases done.
    pub done: usize,
    /// Cases to do.
    pub of: usize,
}

/// Runs `cases` of `study` (its hash) on `threads` threads and writes their rows to `out`, in order,
/// each as soon as all before it are there. `stop` ends the work after the cases under way; what is written stays.
pub fn work(
    cases: &[Case],
    study: &str,
    threads: usize,
    stop: &AtomicBool,
    out: &mut impl Write,
    mut watch: impl FnMut(Progress),
) -> io::Result<Vec<Row>> {
    let mut rows = Vec::with_capacity(cases.len());
    let mut keep = |row: Result<Row, String>| {
        // A case that cannot be run is no fault of `out`.
        let row = row.map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        seal::write(out, study, &row)?;
        rows.push(row);
        watch(Progress { done: rows.len(), of: cases.len() });
        Ok::<_, io::Error>(rows.len())
    };
    if threads <= 1 {
        // On this thread: a browser has no other.
        for case in cases.iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
            keep(run(case))?;
        }
    } else {
        in_parallel(cases, threads, stop, &mut keep)?;
    }
    out.flush()?;
    Ok(rows)
}

/// Runs `cases` on `threads` threads and passes their rows to `keep`, in order; `keep` says how many it has.
fn in_parallel(
    cases: &[Case],
    threads: usize,
    stop: &AtomicBool,
    keep: &mut impl FnMut(Result<Row, String>) -> io::Result<usize>,
) -> io::Result<()> {
    let next = AtomicUsize::new(0);
    // Short, so that the loop notices a stop soon and results do not pile up.
    let (sender, receiver) = mpsc::sync_channel(2 * threads);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(cases.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(i) else { break };
                    if sender.send((i, run(case))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let (mut waiting, mut kept) = (BTreeMap::new(), 0);
        for (i, row) in receiver {
            waiting.insert(i, row);
            while let Some(row) = waiting.remove(&kept) {
                kept = keep(row)?;
            }
        }
        Ok(())
    })
}

fn run(case: &Case) -> Result<Row, String> {
    let plan = case.entry.plan(case.scenario.clone()).map_err(|e| e.to_string())?;
    let outcome = case.entry.simulate(&plan, false).map_err(|e| e.to_string())?;
    Ok(Row::new(case, &outcome.report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Heading, Results, Shard, Study, merge};

    fn study() -> Study {
        let text = "algorithms = [\"central\", \"suzuki-kasami\"]\nnodes = [3, 5]\nseeds = 6\n[base]\nentries = 3\ndelay = \"exponential\"\n";
        Study::parse(text, "study").unwrap()
    }

    fn results(study: &Study, shard: Shard, threads: usize) -> Vec<u8> {
        let (cases, _) = study.cases(crate::builtin()).unwrap();
        let mut out = Vec::new();
        Heading::new(study.hash(), cases.len() as u64, shard).write(&mut out).unwrap();
        let ours: Vec<Case> = cases.into_iter().filter(|c| shard.has(c.number)).collect();
        work(&ours, &study.hash(), threads, &AtomicBool::new(false), &mut out, |_| {}).unwrap();
        out
    }

    #[test]
    fn one_thread_and_four_give_the_same_bytes() {
        let study = study();
        assert_eq!(results(&study, Shard::ALL, 1), results(&study, Shard::ALL, 4));
    }

    #[test]
    fn shards_merged_are_the_same_bytes_as_one_piece() {
        let study = study();
        let parts = (0..3).map(|index| {
            let bytes = results(&study, Shard { index, of: 3 }, 2);
            (format!("part {index}"), Results::read(&bytes[..], "part").unwrap())
        });
        let mut merged = Vec::new();
        merge(parts.collect()).unwrap().write(&mut merged).unwrap();
        assert!(merged == results(&study, Shard::ALL, 2));
    }

    #[test]
    fn a_missing_shard_is_noticed() {
        let study = study();
        let bytes = results(&study, Shard { index: 0, of: 2 }, 1);
        let part = Results::read(&bytes[..], "part").unwrap();
        let error = merge(vec![("part".into(), part)]).unwrap_err().to_string();
        assert!(error.contains("12 of 24 cases") && error.contains("case 1 is missing"), "{error}");
    }

    #[test]
    fn a_line_that_was_cut_off_is_left_out_and_said() {
        let bytes = results(&study(), Shard::ALL, 1);
        let cut = Results::read(&bytes[..bytes.len() - 20], "r").unwrap();
        assert!(cut.cut && cut.rows.len() == 23);
        let text = String::from_utf8(bytes).unwrap();
        let broken = text.replacen("{\"case\":3,", "{\"case\":?,", 1);
        let error = Results::read(broken.as_bytes(), "r").unwrap_err().to_string();
        assert!(error.starts_with("r:5: not a row"), "{error}");
    }

    #[test]
    fn a_row_that_was_altered_is_named_wherever_it_is() {
        let text = String::from_utf8(results(&study(), Shard::ALL, 1)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for at in [1, 12, 24] {
            let mut altered: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            altered[at] = altered[at].replacen("\"verdict\":\"ok\"", "\"verdict\":\"no\"", 1);
            let error = Results::read(altered.join("\n").as_bytes(), "r").unwrap_err().to_string();
            let place = format!("r:{}: case {} was altered", at + 1, at - 1);
            assert!(error.starts_with(&place), "{error}");
        }
        let fewer = text.replacen("\"cases\":24", "\"cases\":23", 1);
        let error = Results::read(fewer.as_bytes(), "r").unwrap_err().to_string();
        assert!(error.starts_with("r:1: the heading was altered"), "{error}");
    }

    #[test]
    fn a_row_of_another_study_does_not_fit() {
        let ours = String::from_utf8(results(&study(), Shard::ALL, 1)).unwrap();
        let other = Study { base: BTreeMap::new(), ..study() };
        let theirs = String::from_utf8(results(&other, Shard::ALL, 1)).unwrap();
        let mut mixed: Vec<&str> = ours.lines().collect();
        mixed[3] = theirs.lines().nth(3).unwrap();
        let error = Results::read(mixed.join("\n").as_bytes(), "r").unwrap_err().to_string();
        assert!(error.starts_with("r:4: case 2"), "{error}");
    }

    #[test]
    fn stopping_keeps_what_is_done() {
        let (cases, _) = study().cases(crate::builtin()).unwrap();
        let stop = AtomicBool::new(false);
        let mut out = Vec::new();
        let enough = |p: Progress| stop.store(p.done >= 5, Ordering::Relaxed);
        let rows = work(&cases, "", 1, &stop, &mut out, enough);
        let rows = rows.unwrap();
        assert!((5..24).contains(&rows.len()), "{}", rows.len());
        assert_eq!(out.iter().filter(|b| **b == b'\n').count(), rows.len());
    }
}
