//! Groups, views and total order: the same measurements for our members and for a peer's clients, which take
//! the same commands.

use std::io;
use std::time::Duration;

use crate::member::now;
use crate::report::{OURS, Report, measures};
use crate::worker::{Worker, number};

/// All workers join a new group; returns when the last has seen the view with all of them.
pub(crate) fn join(workers: &mut [Worker], group: &str) -> io::Result<u64> {
    for worker in workers.iter_mut() {
        worker.order(&format!("join {group}"))?;
    }
    for worker in workers.iter() {
        worker.answer()?;
    }
    wanted(workers, workers.len())?;
    seen(workers)
}

/// Makes all workers wait for a view with this many members.
fn wanted(workers: &mut [Worker], members: usize) -> io::Result<()> {
    workers.iter_mut().try_for_each(|worker| worker.order(&format!("views {members}")))
}

/// When the last worker saw it.
fn seen(workers: &[Worker]) -> io::Result<u64> {
    let mut times = workers.iter().map(|worker| Ok(number(&worker.answer()?, "at") as u64));
    times.try_fold(0, |last, time: io::Result<u64>| Ok(last.max(time?)))
}

/// Processes started at `start` form their first group.
pub(crate) fn first_view(
    report: &mut Report,
    system: &str,
    workers: &mut [Worker],
    start: u64,
) -> io::Result<()> {
    let took = join(workers, "first")?.saturating_sub(start);
    report.add_time(system, measures::FIRST_VIEW, Duration::from_nanos(took), None);
    part(workers)
}

fn part(workers: &mut [Worker]) -> io::Result<()> {
    workers.iter_mut().try_for_each(|worker| worker.ask("part").map(drop))
}

/// One member sends to all: as many messages as it can, then one at a time.
pub(crate) fn total_order(
    report: &mut Report,
    system: &str,
    workers: &mut [Worker],
    row: &measures::Order,
    count: u64,
) -> io::Result<()> {
    let ours = |target: f64| (system == OURS).then_some(target);
    let bytes = row.bytes;
    join(workers, &format!("g{bytes}"))?;
    for (order, count) in [("send", count), ("latency", 2000)] {
        let Some((first, others)) = workers.split_first_mut() else { return Ok(()) };
        for other in others.iter_mut() {
            other.order(&format!("receive {count}"))?;
        }
        let sent = first.ask(&format!("{order} {bytes} {count}"))?;
        let mut end = number(&sent, "end");
        for other in others.iter() {
            end = end.max(number(&other.answer()?, "end"));
        }
        if order == "send" {
            let rate = count as f64 / ((end - number(&sent, "start")) / 1e9);
            report.add_rate(system, row.rate, rate, ours(row.least));
        } else {
            report.add_nanos(system, row.time, number(&sent, "p50"), ours(4.0));
        }
    }
    if system == OURS {
        agreed(report, workers, row)?;
    }
    part(workers)
}

/// The same for a follower with agreed delivery: the leader would have its own messages at once.
fn agreed(report: &mut Report, workers: &mut [Worker], row: &measures::Order) -> io::Result<()> {
    let count = 2000;
    for (i, worker) in workers.iter_mut().enumerate() {
        worker.ask("agreed")?;
        if i != 1 {
            worker.order(&format!("receive {count}"))?;
        }
    }
    let sent = workers[1].ask(&format!("latency {} {count}", row.bytes))?;
    for (_, other) in workers.iter().enumerate().filter(|(i, _)| *i != 1) {
        other.answer()?;
    }
    report.add_nanos(OURS, row.agreed, number(&sent, "p50"), Some(3.0));
    Ok(())
}

/// A member of a group is killed: how long until the others have seen the view without it.
pub(crate) fn killed(
    report: &mut Report,
    system: &str,
    measure: &str,
    others: &mut [Worker],
    kill: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    wanted(others, others.len())?;
    // So that they wait for it.
    std::thread::sleep(Duration::from_millis(200));
    let start = now();
    kill()?;
    let took = Duration::from_nanos(seen(others)?.saturating_sub(start));
    let most = (system == OURS).then_some(Duration::from_millis(100));
    report.add_time(system, measure, took, most);
    Ok(())
}
