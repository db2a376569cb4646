//! Small groups of the exemplars, explored whole.

use konklave_algorithms::election::{chang_roberts::ChangRoberts, tree_wave::TreeWave};
use konklave_algorithms::mutex::{
    central::Central, ricart_agrawala::RicartAgrawala, suzuki_kasami::SuzukiKasami,
};
use konklave_algorithms::{Algorithm, Order, Problem, Setup, Watch, Workload};
use konklave_check::{Model, Options, Outcome, Report};
use konklave_process::{Group, ProcessId, Topology};

fn check<P: Algorithm>(
    setup: &Setup,
    workload: &Workload,
    watch: &Watch,
    options: Options,
) -> Report<P> {
    let model = Model {
        group: setup.group.clone(),
        processes: setup.group.members().iter().map(|&p| P::new(p, setup)).collect::<Vec<P>>(),
        application: <P::Problem as Problem<P>>::application(workload, setup),
        monitor: <P::Problem as Problem<P>>::monitor(watch, setup),
        options,
    };
    let report = model.explore(|_| true);
    let verdict = match &report.outcome {
        Outcome::Exhausted => "exhausted".to_string(),
        Outcome::Violated(w) => format!("{:?} in {} steps", w.violation, w.len()),
        Outcome::Bounded(b) => format!("{b:?}"),
    };
    println!(
        "{} n={} {:?} {}: {} states {} transitions depth {} {:?} {} MB",
        P::SHEET.name,
        setup.group.len(),
        workload.requests,
        verdict,
        report.states,
        report.transitions,
        report.depth,
        report.elapsed,
        report.peak_bytes >> 20
    );
    report
}

#[test]
fn look() {
    let w = Watch::default();
    let complete =
        |n, mistake| Setup { mistake, ..Setup::new(Group::of(n), Topology::complete(n)) };
    let req = |r: &[u32]| Workload { initiators: vec![], requests: r.to_vec() };
    for fifo in [true, false] {
        let o = Options { fifo, ..Options::default() };
        check::<Central>(&complete(3, None), &req(&[1, 2, 1]), &w, o.clone());
        check::<RicartAgrawala>(&complete(3, None), &req(&[2, 2, 1]), &w, o.clone());
        check::<RicartAgrawala>(
            &complete(3, None),
            &req(&[2, 1, 1]),
            &Watch { order: Order::Judge, ..w.clone() },
            o.clone(),
        );
        check::<RicartAgrawala>(
            &complete(3, Some("request-clock")),
            &req(&[2, 1, 1]),
            &Watch { order: Order::Judge, ..w.clone() },
            o.clone(),
        );
        check::<RicartAgrawala>(&complete(2, Some("no-tie-break")), &req(&[1, 1]), &w, o.clone());
        check::<SuzukiKasami>(&complete(3, None), &req(&[2, 2, 2]), &w, o.clone());
        check::<SuzukiKasami>(&complete(3, Some("stale-request")), &req(&[1, 1, 1]), &w, o.clone());
        check::<SuzukiKasami>(&complete(3, Some("stale-request")), &req(&[2, 1, 1]), &w, o.clone());
        check::<SuzukiKasami>(&complete(3, Some("stale-request")), &req(&[2, 2, 1]), &w, o.clone());
    }
    check::<Central>(
        &complete(4, Some("unnumbered-release")),
        &req(&[0, 1, 1, 1]),
        &w,
        Options { duplicates: 1, ..Options::default() },
    );
    check::<Central>(
        &complete(4, None),
        &req(&[0, 1, 1, 1]),
        &w,
        Options { duplicates: 1, ..Options::default() },
    );
    let all = |n: u32| Workload { initiators: (0..n).map(ProcessId).collect(), requests: vec![] };
    let ring = |n: usize, mistake| Setup {
        mistake,
        ..Setup::new(Group::of(n), Topology::directed_ring(n))
    };
    check::<ChangRoberts>(&ring(4, None), &all(4), &w, Options::default());
    check::<ChangRoberts>(
        &ring(4, None),
        &all(4),
        &w,
        Options { fifo: false, ..Options::default() },
    );
    check::<ChangRoberts>(
        &ring(3, None),
        &Workload { initiators: all(3).initiators, requests: vec![2, 2, 2] },
        &w,
        Options { ..Options::default() },
    );
    check::<ChangRoberts>(
        &ring(3, None),
        &Workload { initiators: all(3).initiators, requests: vec![2, 2, 2] },
        &w,
        Options { fifo: false, ..Options::default() },
    );
    check::<ChangRoberts>(
        &ring(3, Some("no-hop-limit")),
        &all(3),
        &w,
        Options { crashes: 1, properties: vec!["livelock".into()], ..Options::default() },
    );
    check::<ChangRoberts>(
        &ring(3, None),
        &all(3),
        &w,
        Options { crashes: 1, properties: vec!["livelock".into()], ..Options::default() },
    );
    for m in [Some("no-step-down"), None] {
        check::<ChangRoberts>(
            &ring(2, m),
            &Workload { initiators: all(2).initiators, requests: vec![2, 0] },
            &w,
            Options {
                crashes: 1,
                restarts: 1,
                properties: vec!["one leader at a time".into()],
                ..Options::default()
            },
        );
        check::<ChangRoberts>(
            &ring(3, m),
            &Workload { initiators: all(3).initiators, requests: vec![1, 1, 1] },
            &w,
            Options {
                crashes: 1,
                restarts: 1,
                properties: vec!["one leader at a time".into()],
                ..Options::default()
            },
        );
    }
    let path = |n: usize, mistake| Setup { mistake, ..Setup::new(Group::of(n), Topology::path(n)) };
    check::<TreeWave>(&path(4, None), &all(4), &w, Options::default());
    check::<TreeWave>(
        &path(4, Some("leaf-rule")),
        &Workload { initiators: vec![ProcessId(0), ProcessId(3)], requests: vec![] },
        &w,
        Options::default(),
    );
}
