//! Three processes on loopback, compared with a ping-pong on the same machine in the same run, and with
//! installed peers that grant locks or order messages.
//!
//! `cargo xtask bench net [--peers [NAME,...]] [--only] [--keyed] [--seconds S] [--cores LIST] [--json FILE]`.
//! With `--keyed`, the members share a key. The program starts itself as its members, which take commands on standard input. All times come from one
//! clock, shared by all processes.

mod floor;
mod group;
mod leash;
mod member;
mod order;
mod peers;
mod report;
mod worker;

use std::sync::atomic::Ordering;

use floor::Waiting;
use konklave::LockAlgorithm;
use report::Report;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match args.first().map(String::as_str) {
        Some("member") => member::run(&args[1..]),
        Some("floor") => floor::run(&args[1..]),
        Some("leash") => leash::run(&args[1..]),
        Some("holder") => peers::hold(&args[1..]),
        _ => measure(&args),
    }
}

fn measure(args: &[String]) {
    let given = |name: &str| args.iter().position(|a| a == name);
    let after = |name: &str| given(name).and_then(|i| args.get(i + 1));
    let seconds: f64 = after("--seconds").and_then(|s| s.parse().ok()).unwrap_or(2.0);
    if let Some(list) = after("--cores") {
        let cores: Vec<usize> = list.split(',').filter_map(|core| core.parse().ok()).collect();
        floor::keep_to(&cores);
    }
    group::KEYED.store(given("--keyed").is_some(), Ordering::Relaxed);
    let mut report = Report::default();
    for round in 0..3 {
        add_floors(&mut report);
        if given("--only").is_none() {
            eprintln!("konklave {}/3", round + 1);
            group::one_round(&mut report, seconds, round).expect("members answer");
            for mutex in [LockAlgorithm::NaimiTrehel, LockAlgorithm::SuzukiKasami] {
                let measured = group::lifted_round(&mut report, seconds, round, mutex);
                measured.expect("members answer");
            }
        }
    }
    if given("--peers").is_some() {
        let named = after("--peers").filter(|names| !names.starts_with("--"));
        let only: Vec<&str> = named.map(|names| names.split(',').collect()).unwrap_or_default();
        peers::measure(&mut report, &only, seconds);
        add_floors(&mut report);
    }
    print!("{}", report.text());
    if let Some(file) = after("--json") {
        let written = std::fs::write(file, format!("{:#}\n", report.json()));
        written.unwrap_or_else(|error| eprintln!("{file}: {error}"));
    }
}

fn add_floors(report: &mut Report) {
    let cores = floor::cores();
    let first = cores.first().copied().unwrap_or(0);
    let two = cores.get(1).map(|second| floor::ping_pong(first, *second, Waiting::Thread));
    report.add_floors(two, floor::ping_pong(first, first, Waiting::Task));
}
