//! Whole groups of every algorithm: exact costs in the simulator, every run in the checker.

mod adoption;
mod bully;
mod bully_1982;
mod cao_singhal;
mod carvalho_roucairol;
mod central;
mod chang_roberts;
mod channel_orders;
mod costs;
mod dolev_klawe_rodeh;
mod extinction;
mod faults;
mod firewire;
mod forming;
mod franklin;
mod graphs;
mod heartbeat;
mod hirschberg_sinclair;
mod invitation;
mod itai_rodeh;
mod lamport;
mod leader;
mod lifted;
mod links;
mod lock_schedule;
mod lock_table;
mod maekawa;
mod monotone;
mod multicast;
mod naimi_trehel;
mod neilsen_mizuno;
mod overtaking;
mod parameters;
mod phi_accrual;
mod play;
mod quorum;
mod raymond;
mod ricart_agrawala;
mod ricart_agrawala_acknowledged;
mod ricart_agrawala_token;
mod ring_list;
mod rings;
mod sanders;
mod schedules;
mod script;
mod singhal;
mod sources;
mod suzuki_kasami;
mod token_ring;
mod tree_wave;
mod trees;
mod virtual_synchrony;
mod virtual_tree;
mod virtual_tree_wave;
mod voting;

// Code that these crates have compiled already is not compiled once more for the tests.
use konklave_algorithms::mutex::Summary;
use konklave_algorithms::{Algorithm, Facts, Metric, Problem};
use konklave_builtin_election as _;
use konklave_builtin_group as _;
use konklave_builtin_multicast as _;
use konklave_builtin_mutex as _;
use konklave_process::Portable;
use konklave_sim::{Config, Delay, Pace};
use konklave_testkit::{Case, Seen};

/// Whether there is time for spaces of millions of states: KONKLAVE_LONG=1.
fn long() -> bool {
    std::env::var_os("KONKLAVE_LONG").is_some_and(|value| value == "1")
}

/// Three of ten messages come twice, all of them in any order.
fn copies(config: &mut Config, seed: u64) {
    config.seed = seed;
    config.duplicate = 0.3;
    config.delay = Delay::Exponential(1.0);
    config.hold = Pace::Exponential(1.0);
}

/// Runs each case with 200 seeds and many copies of messages: each client is served three times.
#[track_caller]
fn many_copies_do_no_harm<P>(cases: impl IntoIterator<Item = Case<P>>)
where
    P: Algorithm<Problem: Problem<P, Summary = Summary>> + Portable,
{
    for case in cases {
        let n = case.setup.group.len();
        let case = case.requests(&vec![3; n]).no_fifo().fenced();
        for seed in 0..200 {
            let seen = case.clone().config(|config| copies(config, seed)).simulate();
            let entries = seen.well().summary.entries;
            assert_eq!(entries, 3 * n as u64, "{:?}, seed {seed}", case.setup.chosen);
        }
    }
}

/// Judges the messages of a run of mutual exclusion by the formulas of the data sheet.
#[track_caller]
fn messages_are_within_bounds<P>(case: &Case<P>, seen: &Seen<P>)
where
    P: Algorithm<Problem: Problem<P, Summary = Summary>>,
{
    let facts = Facts {
        setup: &case.setup,
        initiators: &[],
        served: &seen.summary.entries_per_node,
        delay_max: case.config.delay.longest(),
        assumptions_hold: true,
        uncontended: false,
        at_once: true,
        elapsed: seen.time,
        undisturbed: true,
        steady: case.config.delay.is_constant(),
        hold: case.config.hold.least(),
    };
    for cost in P::SHEET.costs.iter().filter(|c| c.metric == Metric::Messages) {
        let bound = (cost.bound)(&facts).expect("it always applies");
        assert!(bound.holds(seen.sent as f64), "{} is not within {bound:?}", seen.sent);
    }
}
