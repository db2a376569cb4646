use konklave_algorithms::election::chang_roberts::ChangRoberts;
use konklave_process::{ProcessId, Rng};
use konklave_testkit::Case;

/// Every arrangement of 0 to n − 1 on a ring, the first fixed: (n − 1)! of them.
fn arrangements(n: u32) -> Vec<Vec<u32>> {
    let mut all = vec![vec![0]];
    for id in 1..n {
        all = all
            .iter()
            .flat_map(|ring| {
                (1..=ring.len()).map(move |at| {
                    let mut longer = ring.clone();
                    longer.insert(at, id);
                    longer
                })
            })
            .collect();
    }
    all
}

#[test]
fn one_initiator_costs_its_way_to_the_maximum_and_two_rounds() {
    for n in 2..=5 {
        for ring in arrangements(n) {
            for (place, &starter) in ring.iter().enumerate() {
                let highest = ring.iter().position(|&id| id == n - 1).unwrap();
                let way = (highest + n as usize - place) % n as usize;
                let case = Case::<ChangRoberts>::directed_ring(n as usize).ids(&ring);
                let found = case.initiators(&[starter]).counting().check();
                let exact = way as u32 + 2 * n;
                assert_eq!((found.verdict, found.messages), ("exhausted", Some((exact, exact))));
            }
        }
    }
}

#[test]
fn when_all_start_the_averages_are_those_of_the_formula() {
    // n · H_n proposals on average over all arrangements, and n to tell the ring.
    for (n, average) in [(2, 3.0), (3, 5.5), (4, 8.0 + 1.0 / 3.0), (5, 11.0 + 5.0 / 12.0)] {
        let rings = arrangements(n);
        let counts = rings.iter().map(|ring| {
            let seen = Case::<ChangRoberts>::directed_ring(n as usize).ids(ring).simulate();
            seen.well().kind("Propose")
        });
        let counts: Vec<u64> = counts.collect();
        let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        assert!((mean - average).abs() < 1e-9, "n = {n}: {mean}");
        assert_eq!(counts.iter().min(), Some(&(2 * u64::from(n) - 1)));
        assert_eq!(counts.iter().max(), Some(&(u64::from(n) * (u64::from(n) + 1) / 2)));
    }
}

#[test]
fn a_ring_of_one_needs_no_message() {
    let seen = Case::<ChangRoberts>::directed_ring(1).simulate();
    assert_eq!((seen.well().sent, seen.summary.leader), (0, Some(ProcessId(0))));
    Case::<ChangRoberts>::directed_ring(1).requests(&[2]).check().exhausted(3);
}

#[test]
fn a_thousand_random_rings_elect_their_maximum() {
    for seed in 0..1000 {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(20);
        let mut ids: Vec<u32> = (0..n).map(|i| 7 * i + rng.below(7)).collect();
        rng.shuffle(&mut ids);
        let case = Case::<ChangRoberts>::directed_ring(n as usize).ids(&ids).requests(&vec![2; n as usize]);
        let case = case.config(|c| {
            c.seed = seed;
            c.delay = konklave_sim::Delay::Exponential(1.0);
            c.think = konklave_sim::Pace::Exponential(5.0);
        });
        let seen = case.simulate();
        assert_eq!(seen.well().summary.leader.map(|p| p.0), ids.iter().copied().max(), "seed {seed}");
    }
}

#[test]
fn every_run_of_small_rings_is_right() {
    Case::<ChangRoberts>::directed_ring(4).check().exhausted(195);
    Case::<ChangRoberts>::directed_ring(4).ids(&[3, 2, 1, 0]).check().exhausted(311);
    Case::<ChangRoberts>::directed_ring(3).requests(&[2, 2, 2]).check().exhausted(146);
}

#[test]
fn without_fifo_a_process_may_keep_its_flag_for_ever() {
    let case = Case::<ChangRoberts>::directed_ring(4).no_fifo();
    case.check().violated("quiescence", 12);
}

#[test]
fn without_the_hop_limit_a_message_outlives_its_owner() {
    let case = Case::<ChangRoberts>::directed_ring(3).crashes(1, 0).judge(&["livelock"]);
    case.check().exhausted(1239);
    case.mistake("no-hop-limit").check().violated("livelock", 9);
}

#[test]
fn without_stepping_down_there_are_two_leaders() {
    let case = Case::<ChangRoberts>::directed_ring(2).requests(&[2, 0]).crashes(1, 1);
    let case = case.judge(&["one leader at a time"]);
    case.check().exhausted(304);
    case.mistake("no-step-down").check().violated("one leader at a time", 10);
}
