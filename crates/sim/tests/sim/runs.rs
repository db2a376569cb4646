//! Limits, chance and load.

use konklave_sim::{Config, Delay, Ending, Pace};

use crate::node::{P0, P1, Request, run, with_faults};

fn busy() -> Vec<Vec<Request>> {
    vec![vec![Request::Send(P1, 3); 20], vec![Request::Send(P0, 2); 20], vec![Request::Wait(3); 5]]
}

fn chancy(seed: u64) -> Config {
    Config {
        seed,
        delay: Delay::Exponential(1.0),
        loss: 0.1,
        duplicate: 0.1,
        think: Pace::Exponential(1.0),
        app_messages: 1,
        detect_after: Some(1.0),
        ..with_faults(&["crash:1@5", "restart:1@9", "pause:0@3-6", "cut:0>1@10-12", "crash:2@#40"])
    }
}

#[test]
fn one_seed_gives_one_history() {
    let transcript = |seed| run(&chancy(seed), busy()).0.into_observer().0;
    let first = transcript(7);
    assert!(first.len() > 200, "{}", first.len());
    assert_eq!(first, transcript(7));
    assert_ne!(first, transcript(8));
}

#[test]
fn time_never_goes_back() {
    for seed in 0..20 {
        let lines = run(&chancy(seed), busy()).0.into_observer().0;
        let time = |line: &String| line.split(' ').next().and_then(|t| t.parse::<u64>().ok());
        let times: Vec<u64> = lines.iter().filter_map(time).collect();
        assert!(times.is_sorted());
        assert_eq!(times.len(), lines.len());
    }
}

#[test]
fn the_time_limit_itself_is_within() {
    let scripts = || vec![vec![Request::Send(P1, 1); 9], vec![]];
    let config = Config { think: Pace::Constant(1.0), time_limit: 3.0, ..Config::default() };
    let (sim, ending) = run(&config, scripts());
    assert_eq!((ending, sim.now()), (Ending::CutOff, 3000));
    assert_eq!((sim.counts().sent, sim.counts().delivered), (3, 2));
    let config = Config { time_limit: 10.0, ..config };
    assert_eq!(run(&config, scripts()).1, Ending::Quiet);
}

/// A timer that was started again leaves its first start in the queue, far beyond the time limit.
#[test]
fn a_run_in_which_only_void_events_are_left_is_quiet() {
    let long_then_short = || vec![vec![Request::Wait(500), Request::Wait(2)], vec![]];
    let config = Config { time_limit: 10.0, ..Config::default() };
    let (sim, ending) = run(&config, long_then_short());
    assert_eq!((ending, sim.now(), sim.processes()[0].rings), (Ending::Quiet, 2000, 1));
    let (_, ending) = run(&config, vec![vec![Request::Wait(500)], vec![]]);
    assert_eq!(ending, Ending::CutOff, "the timer would expire");
    let crashed = Config { time_limit: 10.0, ..with_faults(&["crash:0@3"]) };
    let (sim, ending) = run(&crashed, vec![vec![Request::Wait(500)], vec![]]);
    assert_eq!((ending, sim.now()), (Ending::Quiet, 3000), "a crashed process has no timers");
}

#[test]
fn the_step_limit_is_exact() {
    let config = Config { step_limit: 5, ..Config::default() };
    let (sim, ending) = run(&config, vec![vec![Request::Send(P1, 9)], vec![]]);
    assert_eq!((ending, sim.counts().steps), (Ending::CutOff, 5));
}

#[test]
fn faults_come_even_when_nothing_else_does() {
    let (sim, ending) = run(&with_faults(&["crash:1@5", "restart:1@50"]), vec![vec![], vec![]]);
    assert_eq!((ending, sim.now()), (Ending::Quiet, 50_000));
    assert_eq!(sim.processes()[1].recovered, Some(None));
}

#[test]
fn open_load_arrives_at_its_rate() {
    let config = Config { think: Pace::Arrivals(2.0), ..Config::default() };
    let (sim, _) = run(&config, vec![vec![Request::Send(P1, 1); 2000], vec![]]);
    let mean = sim.now() as f64 / 1000.0 / 2000.0;
    assert!((mean - 2.0).abs() < 0.15, "{mean}");
    // A client that was paused catches up: new requests do not wait for the ones before.
    let config = Config { time_limit: 5000.0, ..with_faults(&["pause:0@0-3000"]) };
    let config = Config { think: Pace::Arrivals(2.0), ..config };
    let (late, _) = run(&config, vec![vec![Request::Send(P1, 1); 2000], vec![]]);
    assert!((late.now() as f64 - sim.now() as f64).abs() < 0.05 * sim.now() as f64);
    assert_eq!(late.counts().delivered, 2000);
}
