//! Order, loss and duplication on channels.

use konklave_sim::{Config, Delay, Ending};

use crate::node::{P1, Request, numbers, run};

fn stream(config: &Config, count: u32) -> (Vec<u32>, crate::node::World) {
    let (sim, ending) = run(config, vec![vec![Request::Send(P1, count)], vec![]]);
    assert_eq!(ending, Ending::Quiet);
    (numbers(&sim, 1), sim)
}

#[test]
fn fifo_channels_keep_their_order_whatever_the_delays() {
    for delay in ["uniform:0.001..5", "exponential:1", "log-normal:1,2", "constant:1"] {
        let delay = delay.parse().expect("the test's delays are right");
        let (got, _) = stream(&Config { delay, fifo: true, ..Config::default() }, 1000);
        assert_eq!(got, (0..1000).collect::<Vec<_>>());
    }
}

#[test]
fn other_channels_reorder_but_lose_nothing() {
    let config = Config { delay: Delay::Uniform(0.001, 5.0), fifo: false, ..Config::default() };
    let (mut got, _) = stream(&config, 1000);
    assert!(!got.is_sorted());
    got.sort_unstable();
    assert_eq!(got, (0..1000).collect::<Vec<_>>());
}

#[test]
fn losses_and_duplicates_come_at_their_rates() {
    let (got, sim) = stream(&Config { loss: 0.1, ..Config::default() }, 10_000);
    assert!((900..1100).contains(&sim.counts().lost), "{:?}", sim.counts());
    assert_eq!(got.len() as u64, 10_000 - sim.counts().lost);
    assert!(sim.faulty());
    let (got, sim) = stream(&Config { duplicate: 0.2, ..Config::default() }, 10_000);
    assert!((1850..2150).contains(&sim.counts().duplicated), "{:?}", sim.counts());
    assert_eq!(got.len() as u64, 10_000 + sim.counts().duplicated);
    assert!(sim.faulty());
}

#[test]
fn kinds_are_counted() {
    let (sim, _) =
        run(&Config::default(), vec![vec![Request::SendOther(P1), Request::Send(P1, 3)], vec![]]);
    assert_eq!(sim.kinds().collect::<Vec<_>>(), [("Data", 3), ("Other", 1)]);
}
