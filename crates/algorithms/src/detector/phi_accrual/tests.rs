//! Single steps of the φ accrual failure detector.

use konklave_process::{Group, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn process(n: usize) -> Bench<PhiAccrual> {
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    let process = PhiAccrual::new(ProcessId(0), &setup);
    Bench::new(process, ProcessId(0), &setup.group)
}

#[test]
fn suspicion_follows_the_tail_of_the_normal_distribution() {
    // One in two, then the well-known tails of 1, 2 and 3 standard deviations.
    for (y, tail) in [(0.0, 0.5), (1.0, 0.1587), (2.0, 0.0228), (3.0, 0.00135)] {
        assert!((phi(y) + f64::log10(tail)).abs() < 0.05, "{y}: {}", phi(y));
    }
    assert!(phi(50.0) > 1000.0 && phi(50.0).is_finite());
    for threshold in 1..=16 {
        assert!((phi(reach(threshold) / 1.25) - f64::from(threshold)).abs() < 1e-9);
    }
}

#[test]
fn a_heartbeat_is_sent_once_in_a_period() {
    let mut p = process(2);
    let tick = Duration::from_micros(500);
    assert_eq!(p.start(), [send(1, Alive), set(Timer::Tick, tick)]);
    for _ in 0..3 {
        assert_eq!(p.fire(Timer::Tick), [set(Timer::Tick, tick)]);
    }
    assert_eq!(p.fire(Timer::Tick), [send(1, Alive), set(Timer::Tick, tick)]);
}

#[test]
fn suspicion_grows_with_silence_until_the_threshold() {
    let mut p = process(2);
    let mut last = 0.0;
    let ticks = (1..).find(|_| {
        let suspects = p.fire(Timer::Tick).contains(&tell(Indication::Suspect(ProcessId(1))));
        let phi = p.process.phi(ProcessId(1));
        assert!(phi > last && suspects == (phi >= 8.0), "{phi}");
        last = phi;
        suspects
    });
    // A period of 4 ticks, and 5.6 standard deviations of 1.25 ticks.
    assert_eq!(ticks, Some(11));
    assert_eq!(p.hear(1, Alive), [tell(Indication::Restore(ProcessId(1)))]);
    assert_eq!(p.process.rhythms[ProcessId(1)].slack, 1);
}

#[test]
fn it_learns_another_rhythm() {
    let mut p = process(2);
    for _ in 0..200 {
        for _ in 0..9 {
            p.fire(Timer::Tick);
        }
        p.hear(1, Alive);
    }
    let Rhythm { mean, deviation, slack, .. } = p.process.rhythms[ProcessId(1)];
    assert_eq!((mean.div_ceil(TICK), slack), (9, 0));
    assert!(deviation < TICK, "{deviation}");
}
