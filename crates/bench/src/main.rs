//! Quick look.
use konklave_algorithms::{Algorithm, Problem, Setup, Watch, Workload, election::chang_roberts::ChangRoberts, mutex::ricart_agrawala::RicartAgrawala};
use konklave_process::{Group, ProcessId, Rng, Topology};
use konklave_sim::{Config, Delay, Parts, Sim, Pace};
use std::time::Instant;

fn run<P: Algorithm>(setup: &Setup, workload: &Workload, config: &Config, hold: fn(&P::Request)->bool) {
    let watch = Watch { order: Default::default(), ..Watch::all(&P::SHEET) };
    let t = Instant::now();
    let parts = Parts {
        processes: setup.group.members().iter().map(|&p| P::new(p, setup)).collect(),
        application: <P::Problem as Problem<P>>::application(workload, setup),
        monitor: <P::Problem as Problem<P>>::monitor(&watch, setup),
        meter: <P::Problem as Problem<P>>::meter(setup),
        observer: (),
    };
    let build = t.elapsed();
    let t = Instant::now();
    let mut sim = Sim::new(setup.group.clone(), parts, config, hold);
    let e = sim.run();
    let d = t.elapsed();
    sim.judge(e);
    let sent = sim.counts().sent;
    let rss = std::fs::read_to_string("/proc/self/status").unwrap().lines().find(|l| l.starts_with("VmHWM")).unwrap().to_owned();
    println!("{} n={} sent={} {:?} {:.1} ns/msg build {:?} state {} B {rss} {:?} violations {:?}", P::SHEET.name, setup.group.len(), sent, d, d.as_nanos() as f64 / sent as f64, build, size_of::<P>(), e, sim.violations().first());
}

fn main() {
    let arg = std::env::args().nth(1).unwrap_or_default();
    if arg == "w1" {
    for n in [std::env::args().nth(2).map_or(1_000_000usize, |a| a.parse().unwrap())] {
        let mut ids: Vec<ProcessId> = (0..n as u32).map(ProcessId).collect();
        Rng::new(42).shuffle(&mut ids);
        let setup = Setup::new(Group::new(ids.clone()).unwrap(), Topology::directed_ring(n));
        let workload = Workload { initiators: ids, requests: vec![] };
        run::<ChangRoberts>(&setup, &workload, &Config::default(), |_| false);
    }
    }
    if arg != "w2" { return }
    let setup = Setup::new(Group::of(100), Topology::complete(100));
    let workload = Workload { initiators: vec![], requests: vec![100; 100] };
    let config = Config { fifo: false, delay: Delay::Uniform(0.001, 1.0), hold: Pace::Constant(0.01), ..Config::default() };
    run::<RicartAgrawala>(&setup, &workload, &config, |r| matches!(r, konklave_algorithms::mutex::Request::Release));
}
