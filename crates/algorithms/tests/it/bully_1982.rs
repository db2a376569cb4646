use konklave_algorithms::election::bully_1982::Bully1982;
use konklave_testkit::Case;

#[test]
fn probe() {
    let run = |name: String, mut case: Case<Bully1982>| {
        case.options.max_states = 2_000_000;
        case.options.detector = false;
        let t = std::time::Instant::now();
        let f = format!("{:?}", case.check());
        println!("{name} {:?} {}", t.elapsed(), f.lines().next().unwrap());
    };
    for n in 2..4 {
    for early in 0..2 {
    for (c,r) in [(0,0),(1,0),(1,1),(2,2)] {
    for m in [None, Some("any-coordinator")] {
    let case = Case::<Bully1982>::complete(n).crashes(c, r).almost_synchronous(early);
    let case = if let Some(m) = m { case.mistake(m) } else { case };
    run(format!("{n} {early} {c}{r} {m:?}"), case);
    }
    }
    }
    }
    for n in 1..6 {
        let seen = Case::<Bully1982>::complete(n).initiators(&[0]).config(|c| c.time_limit = 100.0).simulate();
        println!("{n} {:?} {:?} {:?} {:?}", seen.violations, seen.summary, seen.kinds, seen.processes.iter().map(|p| p.coordinator()).collect::<Vec<_>>());
    }
}
