//! Many seeds on one thread and on two: runs share nothing, so two should take half the time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use konklave_sim::Counts;

use crate::measure::cpu_nanos;
use crate::workloads::mutex_run;

/// The times of a sweep, on one thread and on all.
pub(crate) struct Sweep {
    pub(crate) seeds: u64,
    pub(crate) one_millis: f64,
    pub(crate) two_millis: f64,
    /// The processor time of the busier thread: an idle machine would take as long.
    pub(crate) one_cpu_millis: f64,
    pub(crate) two_cpu_millis: f64,
}

struct Finished {
    results: Vec<(u64, Counts)>,
    millis: f64,
    cpu_millis: f64,
}

/// Runs `seeds` seeds on one thread and on two, `runs` times, and keeps the best time of each.
pub(crate) fn sweep(seeds: u64, runs: u32) -> Result<Sweep, String> {
    let mut best = Sweep {
        seeds,
        one_millis: f64::INFINITY,
        two_millis: f64::INFINITY,
        one_cpu_millis: f64::INFINITY,
        two_cpu_millis: f64::INFINITY,
    };
    for _ in 0..runs {
        let (one, two) = (on_threads(1, seeds)?, on_threads(2, seeds)?);
        if one.results != two.results {
            return Err("the sweep gave other results on two threads than on one".into());
        }
        best.one_millis = best.one_millis.min(one.millis);
        best.two_millis = best.two_millis.min(two.millis);
        best.one_cpu_millis = best.one_cpu_millis.min(one.cpu_millis);
        best.two_cpu_millis = best.two_cpu_millis.min(two.cpu_millis);
    }
    Ok(best)
}

/// The results in the order of their seeds, whichever thread computed them.
fn on_threads(threads: usize, seeds: u64) -> Result<Finished, String> {
    let start = Instant::now();
    let next = AtomicU64::new(0);
    let work = || -> Result<(Vec<(u64, Counts)>, u64), String> {
        let (mut results, cpu) = (Vec::new(), cpu_nanos());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return Ok((results, cpu_nanos().saturating_sub(cpu)));
            }
            results.push((seed, mutex_run(40, 20, seed)?.1));
        }
    };
    let (mut results, mut busiest) = (Vec::new(), 0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let finished =
                worker.join().map_err(|_| "a worker of the sweep panicked".to_owned())?;
            let (part, cpu) = finished?;
            results.extend(part);
            busiest = busiest.max(cpu);
        }
        Ok::<_, String>(())
    })?;
    let millis = start.elapsed().as_secs_f64() * 1e3;
    results.sort_unstable_by_key(|(seed, _)| *seed);
    Ok(Finished { results, millis, cpu_millis: busiest as f64 / 1e6 })
}
