//! Views as barriers: what they cost, what is explored, histories with faults.

mod schedules;

use std::sync::Arc;

use konklave_algorithms::group::virtual_synchrony::{Membership, Timer, VirtualSynchrony};
use konklave_algorithms::group::{Bytes, Indication, Request};
use konklave_process::{Inspect, ProcessId, Rng};
use konklave_sim::{Delay, Ending, Pace};
use konklave_testkit::{Case, Found, Seen};

use crate::long;
use crate::play::Play;

/// The properties that no crash, delay or wrong suspicion may break.
const SAFETY: &[&str] = &[
    "view agreement",
    "virtual synchrony",
    "total order",
    "uniform agreement",
    "self-delivery",
    "no gaps",
    "integrity",
    "sending view",
    "growing views",
    "self-inclusion",
    "expected inputs",
    "usage",
];

type Group = Case<VirtualSynchrony>;

/// n processes that do not repeat their attempts; none sends, none asks for a view.
fn calm(n: usize) -> Group {
    Case::complete(n).requests(&vec![0; n]).set("retry", "off")
}

/// n processes with heartbeats and without an oracle, cut off after so many T.
fn lively(n: usize, time: f64) -> Group {
    let case = Case::complete(n).requests(&vec![0; n]).set("heartbeat", 2).set("rejoin", "on");
    case.config(|c| (c.time_limit, c.detect_after) = (time, None))
}

/// The members in the view of each process except these.
fn views(seen: &Seen<VirtualSynchrony>, but: &[u32]) -> Vec<Vec<u32>> {
    let counts = |(p, _): &(usize, _)| !but.contains(&(*p as u32));
    let all = seen.processes.iter().enumerate().filter(counts);
    all.map(|(_, p)| p.view().members.iter().map(|m| m.id.0).collect()).collect()
}

/// Everything was explored, and there were so many states each time.
#[track_caller]
fn all_exhausted(cases: &[(&str, Group, u64)]) {
    let found: Vec<(&str, Found, u64)> =
        cases.iter().map(|(name, case, states)| (*name, case.check(), *states)).collect();
    let wrong =
        |(_, f, states): &&(&str, Found, u64)| f.verdict != "exhausted" || f.states != *states;
    let wrong: Vec<String> = found
        .iter()
        .filter(wrong)
        .map(|(name, f, _)| {
            format!(
                "{name}: {} {:?} {} steps, {} states\n",
                f.verdict, f.property, f.length, f.states
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

#[test]
fn a_view_change_takes_four_delays_and_the_stated_packets() {
    for n in 1..=12u64 {
        let seen = calm(n as usize).set("reform", "0").simulate();
        let changed = if n == 1 { 0.0 } else { 4.0 };
        assert_eq!(seen.well().summary.change_max, Some(changed), "n = {n}");
        // The proposer's acceptance travels inside its proposal: n − 1 fewer than with one of its own.
        assert_eq!(seen.sent, 3 * (n - 1) + (n - 1) * (n - 1), "n = {n}");
        assert_eq!(seen.summary.views, 2);
    }
}

#[test]
fn half_of_a_view_goes_on_when_all_others_have_restarted() {
    for (n, reborn) in [(2, &[0][..]), (2, &[1]), (4, &[0, 1]), (4, &[1, 3])] {
        let mut case = Case::<VirtualSynchrony>::complete(n).requests(&vec![1; n]);
        case = case.set("rejoin", "on");
        for p in reborn {
            case = case.fault(&format!("crash:{p}@0.5")).fault(&format!("restart:{p}@20"));
        }
        let seen = case.simulate();
        assert!(seen.violations.is_empty(), "{reborn:?} of {n}: {:?}", seen.violations);
        for (p, mut view) in views(&seen, &[]).into_iter().enumerate() {
            view.sort_unstable();
            assert_eq!(view, (0..n as u32).collect::<Vec<_>>(), "{reborn:?} of {n}: p{p}");
        }
    }
    // Before the others are back, they may be alive and go on themselves.
    let seen = calm(4).fault("crash:1@0.5").fault("crash:3@0.5").simulate();
    assert_eq!(views(&seen, &[1, 3]), [[0, 1, 2, 3], [0, 1, 2, 3]]);
}

/// Timers wait for messages under way, except one: an excluded process joins again, and could be
/// excluded forever.
#[test]
fn every_order_of_a_restart_among_two_is_explored() {
    let two = |requests: &[u32]| {
        calm(2).requests(requests).set("rejoin", "on").judge(SAFETY).almost_synchronous(1)
    };
    all_exhausted(&[
        ("one restarts", two(&[1, 1]).crashes(1, 1), 7_833),
        ("in any order", two(&[0, 0]).crashes(1, 1).no_fifo(), 24_629),
        ("one asks for a view", two(&[0, 0]).set("reform", "0").crashes(1, 1), 2_625),
        ("both, one after the other", two(&[0, 0]).crashes(2, 2), 15_053),
    ]);
    let half = two(&[0, 0]).set("reform", "0").crashes(1, 1).set("tie-break", "on").no_fifo();
    half.mistake("two-halves").check().violated("view agreement", 9);
}

#[test]
fn any_member_may_be_the_candidate() {
    let seen = calm(5).set("reform", "4").simulate();
    let kinds = ["Prepare", "Promise", "Accept", "Accepted"].map(|k| seen.well().kind(k));
    assert_eq!(kinds, [4, 4, 4, 16]);
    assert_eq!(seen.summary.last_view.map(|v| v.coordinator), Some(ProcessId(4)));
}

#[test]
fn uniform_delivery_takes_three_delays_and_agreed_two() {
    for n in 2..=9u64 {
        let one = |at: usize| {
            let requests: Vec<u32> = (0..n as usize).map(|p| u32::from(p == at)).collect();
            calm(n as usize).requests(&requests)
        };
        let far = one(1).simulate();
        assert_eq!(far.well().summary.latency_max, Some(3.0), "n = {n}");
        assert_eq!(far.sent, n + (n - 1) * (n - 1), "n = {n}");
        let near = one(0).simulate();
        assert_eq!(near.well().summary.latency_max, Some(2.0), "n = {n}");
        assert_eq!(near.sent, n - 1 + (n - 1) * (n - 1), "n = {n}");
        let agreed = one(1).set("delivery", "agreed").simulate();
        assert_eq!(agreed.well().summary.latency_max, Some(2.0), "n = {n}");
    }
}

#[test]
fn a_group_of_one_decides_alone() {
    let seen = calm(1).requests(&[5]).set("reform", "0").simulate();
    assert_eq!((seen.well().sent, seen.summary.deliveries, seen.summary.views), (0, 5, 2));
}

#[test]
fn after_a_crash_the_next_view_comes_four_delays_after_the_suspicion() {
    for crashed in [0, 2, 4] {
        let seen = calm(5).fault(&format!("crash:{crashed}@1")).simulate();
        assert_eq!(seen.well().summary.change_max, Some(4.0));
        assert!(views(&seen, &[crashed]).iter().all(|view| view.len() == 4));
    }
}

#[test]
fn every_run_of_a_small_group_is_right() {
    all_exhausted(&[
        ("two candidates of two", calm(2).set("reform", "0,1"), 103),
        ("one candidate", calm(3).set("reform", "0"), 128),
        ("two candidates", calm(3).set("reform", "0,2"), 6568),
        ("the leader sends", calm(3).requests(&[1, 0, 0]).set("reform", "2"), 1814),
        ("another sends", calm(3).requests(&[0, 0, 1]).set("reform", "0"), 2848),
        ("a crash", calm(3).requests(&[1, 0, 0]).crashes(1, 0), 12_153),
        ("the leader leaves", calm(3).requests(&[1, 0, 0]).set("leavers", "0"), 1904),
        ("everyone leaves", calm(3).set("leavers", "0,1,2"), 58_944),
        ("a second joins", calm(2).requests(&[1, 0]).set("joiners", "1"), 81),
        ("a third joins", calm(3).requests(&[1, 0, 0]).set("joiners", "2"), 27_135),
        ("agreed", calm(3).requests(&[0, 1, 0]).set("reform", "2").set("delivery", "agreed"), 1861),
    ]);
}

#[test]
fn two_messages_two_candidates_and_a_crash_are_safe() {
    let two = calm(3).requests(&[1, 0, 1]).judge(SAFETY);
    let mut all = two.clone().set("reform", "0,2").crashes(1, 0);
    if long() {
        return all_exhausted(&[
            ("two candidates", calm(3).set("reform", "0,2").crashes(1, 0).judge(SAFETY), 579_991),
            ("two messages", two.clone().crashes(1, 0), 321_368),
            ("two messages, two candidates", two.set("reform", "0,2"), 90_618),
            ("all of it", all, 18_426_806),
        ]);
    }
    // All of it at once takes minutes: nothing breaks as far as this goes.
    all.options.max_states = 60_000;
    assert_eq!(all.check().verdict, "bounded");
}

#[test]
fn every_mistake_is_caught_where_the_right_rules_hold() {
    let sends = calm(3).requests(&[1, 0, 0]).set("reform", "2");
    let two = calm(3).set("reform", "0,2");
    let third_sends = calm(3).requests(&[0, 0, 1]).set("reform", "0");
    let crash = calm(3).requests(&[1, 0, 0]).crashes(1, 0);
    for (mistake, case, property, length) in [
        ("keep-delivering", &sends, "uniform agreement", 7),
        ("keep-acknowledging", &sends, "uniform agreement", 8),
        ("no-majority", &two, "view agreement", 4),
        ("non-promisers", &third_sends, "self-delivery", 7),
        ("two-phases", &two, "view agreement", 8),
        ("ignore-accepted", &two, "view agreement", 12),
        ("agreed-delivery", &crash, "uniform agreement", 6),
    ] {
        assert_eq!(case.check().verdict, "exhausted", "{mistake}");
        case.clone().mistake(mistake).check().violated(property, length);
    }
}

/// The views of the processes that are up: whether they share one that is alive, or none can be.
#[track_caller]
fn has_converged(seen: &Seen<VirtualSynchrony>, up: &[u32], why: &str) -> bool {
    let inside: Vec<(u32, &VirtualSynchrony)> = up
        .iter()
        .map(|p| (*p, &seen.processes[*p as usize]))
        .filter(|(_, p)| p.membership() == Membership::Inside)
        .collect();
    let Some(newest) = inside.iter().map(|(_, p)| p.view()).max_by_key(|v| v.id) else {
        return false;
    };
    let there =
        inside.iter().filter(|(_, p)| p.view().id == newest.id).map(|(id, _)| ProcessId(*id));
    if !newest.is_quorum(&there.collect(), false) {
        // A majority of the last view is lost for good: no process may go on.
        return false;
    }
    for p in up {
        let process = &seen.processes[*p as usize];
        assert_eq!(process.view(), newest, "{why}: p{p}");
        assert!(process.view().has_member(ProcessId(*p)), "{why}: p{p} is no member");
        assert!(
            !process.is_wedged() && process.at_rest(),
            "{why}: p{p} is not at rest: {:?}",
            (process.buffered(), process.is_wedged())
        );
    }
    true
}

/// A run with faults drawn from `seed`; they end at 150 T.
fn history(seed: u64) -> (Group, Vec<u32>) {
    let mut rng = Rng::new(seed);
    let n = 3 + rng.below(3) as usize;
    let mut case = lively(n, 420.0).config(|c| {
        c.seed = seed;
        c.delay = Delay::Uniform(0.2, 1.8);
        c.think = Pace::Exponential(5.0);
    });
    case.workload.requests = (0..n).map(|_| rng.below(12)).collect();
    let mut up: Vec<u32> = (0..n as u32).collect();
    if rng.below(3) == 0 {
        case = case.set("joiners", n - 1);
    }
    if rng.below(4) == 0 {
        case = case.set("leavers", 1);
        up.retain(|p| *p != 1);
    }
    if rng.below(4) == 0 {
        case = case.set("transfer", "streaming");
    }
    let node = |rng: &mut Rng| rng.below(n as u32);
    for _ in 0..1 + rng.below(4) {
        let at = 5 + rng.below(100);
        let until = at + 5 + rng.below(45);
        let (a, b) = (node(&mut rng), node(&mut rng));
        let fault = match rng.below(6) {
            0 => {
                // A crash, for good or not.
                if rng.below(2) == 0 {
                    case = case.fault(&format!("restart:{a}@{until}"));
                } else {
                    up.retain(|p| *p != a);
                }
                format!("crash:{a}@{at}")
            }
            1 if a != b => format!("cut:{a}>{b}@{at}-{until}"),
            2 => format!("partition:{a}@{at}-{until}"),
            3 if a != b => format!("partition:{a},{b}@{at}-{until}"),
            4 if a != b => format!("suspect:{a}>{b}@{at}"),
            _ => format!("pause:{a}@{at}-{until}"),
        };
        case = case.fault(&fault);
    }
    (case, up)
}

#[test]
fn no_history_with_faults_breaks_anything() {
    let runs = if long() { 10_000 } else { 200 };
    let (mut converged, mut views, mut excluded) = (0, 0, 0);
    for seed in 0..runs {
        let (case, up) = history(seed);
        let seen = case.simulate();
        let why = format!("seed {seed}: {:?}", case.config.faults);
        assert!(seen.violations.is_empty(), "{why}: {:?}", seen.violations);
        converged += u64::from(has_converged(&seen, &up, &why));
        views += seen.summary.views;
        excluded += seen.summary.excluded;
    }
    // Some lose a majority for good; most do not.
    assert!(10 * converged >= 8 * runs, "{converged} of {runs}");
    assert!(views > 3 * runs && excluded > runs / 4, "{views} views, {excluded} exclusions");
}
