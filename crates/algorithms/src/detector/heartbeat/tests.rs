//! Single steps of the heartbeat failure detector.

use konklave_process::{Group, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn bench() -> Bench<Heartbeat> {
    let setup = Setup::new(Group::of(2), Topology::complete(2));
    Bench::new(Heartbeat::new(ProcessId(0), &setup), ProcessId(0), &setup.group)
}

#[test]
fn start_sends_heartbeats_and_sets_the_period() {
    let period = Duration::from_millis(2);
    assert_eq!(bench().start(), [send(1, Alive), set(Timer::Period, period)]);
}

#[test]
fn suspicion_takes_one_whole_silent_period_less_than_misses() {
    let mut p0 = bench();
    let suspicion = tell(Indication::Suspect(ProcessId(1)));
    // The heartbeat arrives within the first period, so only the second and the third are silent.
    p0.hear(1, Alive);
    assert!(!p0.fire(Timer::Period).contains(&suspicion));
    assert!(!p0.fire(Timer::Period).contains(&suspicion));
    assert!(p0.fire(Timer::Period).contains(&suspicion));
    let misses = Heartbeat::SHEET.switches.iter().find(|switch| switch.name == "misses");
    assert!(misses.is_some_and(|switch| switch.what.contains("one whole silent period less")));
}

#[test]
fn third_period_end_suspects_and_heartbeat_restores() {
    let mut p0 = bench();
    let suspects = |p0: &mut Bench<Heartbeat>| {
        p0.fire(Timer::Period).contains(&tell(Indication::Suspect(ProcessId(1))))
    };
    assert!(!suspects(&mut p0) && !suspects(&mut p0));
    assert!(suspects(&mut p0));
    assert!(!suspects(&mut p0), "told once");
    assert_eq!(p0.hear(1, Alive), [tell(Indication::Restore(ProcessId(1)))]);
    // Having been wrong once, it waits one period more.
    assert!(!suspects(&mut p0) && !suspects(&mut p0) && !suspects(&mut p0));
    assert!(suspects(&mut p0));
}
