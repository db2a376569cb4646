use konklave_algorithms::election::quorum::Quorum;
use konklave_process::{ProcessId, Rng};
use konklave_sim::{Delay, Pace};
use konklave_testkit::{Case, Seen};

/// Three or so processes whose timers alone start elections, up to a term; leaders remind once.
fn small(n: usize, terms: u32) -> Case<Quorum> {
    let case = Case::complete(n).requests(&vec![0; n]).set("jitter", 1);
    let mut case = case.set("max-term", terms).set("max-beats", 1);
    case.options.detector = false;
    case.judge(&["one leader per epoch"])
}

/// Process 0 gets a request to elect; the run is cut off after so many T.
fn for_time(n: usize, time: f64) -> Case<Quorum> {
    Case::complete(n).initiators(&[0]).config(|c| c.time_limit = time)
}

/// The leader of each process in the end, and its term.
fn followed(seen: &Seen<Quorum>) -> Vec<Option<(u32, u32)>> {
    let leader = |(i, p): (usize, &Quorum)| {
        p.leader(ProcessId(i as u32)).map(|(leader, term)| (leader.0, term))
    };
    seen.processes.iter().enumerate().map(leader).collect()
}

/// All follow the same one, in the same term.
#[track_caller]
fn agreed(seen: &Seen<Quorum>) -> (u32, u32) {
    let all = followed(seen);
    assert!(all[0].is_some() && all.iter().all(|view| *view == all[0]), "{all:?}");
    all[0].unwrap()
}

/// The violated properties, each once.
fn broken(seen: &Seen<Quorum>) -> Vec<&'static str> {
    let known = ["one leader per epoch", "one leader at a time", "agreement"];
    let name = |v: &String| known.into_iter().find(|name| v.starts_with(name)).unwrap_or("other");
    let mut names: Vec<&'static str> = seen.violations.iter().map(name).collect();
    names.dedup();
    names
}

#[test]
fn an_undisputed_election_takes_three_rounds_of_questions_and_answers() {
    for n in [1, 2, 3, 10, 100] {
        let seen = for_time(n, 9.9).simulate();
        let others = n as u64 - 1;
        for kind in ["PreVote", "PreVoteReply", "Vote", "VoteReply"] {
            assert_eq!(seen.well().kind(kind), others, "n = {n}: {kind}");
        }
        assert_eq!(agreed(&seen), (0, 1));
        let led = if n == 1 { 0.0 } else { 6.0 };
        assert_eq!(seen.summary.time_to_leader, Some(led), "n = {n}");
    }
}

#[test]
fn in_office_two_messages_for_each_other_and_period_are_sent() {
    for n in [2, 3, 10] {
        let messages = |time| for_time(n, time).simulate().sent;
        // The period is a fifth of E = 10T.
        assert_eq!(messages(1005.5) - messages(5.5), 500 * 2 * (n as u64 - 1));
    }
}

#[test]
fn every_almost_synchronous_run_of_three_has_one_leader_per_term() {
    small(3, 1).almost_synchronous(2).check().exhausted(306_626);
    small(3, 2).almost_synchronous(1).check().exhausted(115_654);
    small(3, 2).crashes(1, 1).synchronous().check().exhausted(37_538);
    small(3, 1).no_fifo().almost_synchronous(1).check().exhausted(137_191);
    small(3, 1).mishaps(1, 1).synchronous().check().exhausted(4774);
    small(3, 3).synchronous().check().exhausted(17_890);
    small(4, 1).synchronous().check().exhausted(1633);
    small(5, 1).synchronous().check().exhausted(22_466);
}

#[test]
fn q1_a_vote_that_is_not_saved_is_given_twice() {
    let case = small(3, 1).crashes(1, 1).almost_synchronous(1);
    case.check().exhausted(206_334);
    case.clone().mistake("no-persist").check().violated("one leader per epoch", 16);
    let mut amnesia = case;
    amnesia.options.stable_storage = false;
    amnesia.check().violated("one leader per epoch", 16);
}

#[test]
fn q2_who_was_cut_off_deposes_the_leader_unless_it_asks_tentatively_first() {
    let case = for_time(3, 300.0).fault("partition:2@20-200");
    let seen = case.simulate();
    assert_eq!((agreed(seen.well()), seen.summary.elections), ((0, 1), 1));
    let seen = case.mistake("no-pre-vote").simulate();
    assert!(agreed(seen.well()).1 > 5 && seen.summary.elections == 2, "{:?}", seen.summary);
}

#[test]
fn q3_a_leader_that_sleeps_past_its_lease_wakes_up_in_office() {
    let seen = for_time(3, 300.0).fault("pause:0@50-100").simulate();
    // For its clients it leads all the while; only a fence (the term) can reject its late work.
    assert_eq!(broken(&seen), ["one leader at a time"]);
    assert!(agreed(&seen).1 == 2);
}

#[test]
fn q4_a_lease_counts_from_the_question() {
    // All answers to the sixth reminder are late, and the leader is cut off after them.
    let case = |seed| {
        let case = for_time(3, 100.0).set("election", 20).config(|c| c.seed = seed);
        let case = case.fault("delay:1>0/BeatReply#6+13.5").fault("delay:2>0/BeatReply#6+13.5");
        case.fault("partition:0@25.5")
    };
    let overlaps = |mistake: Option<&str>| {
        let cases = (0..100).map(|seed| mistake.map_or(case(seed), |m| case(seed).mistake(m)));
        cases.filter(|case| broken(&case.simulate()) == ["one leader at a time"]).count()
    };
    assert_eq!(overlaps(None), 0);
    assert!(overlaps(Some("lease-from-ack")) > 10);
}

#[test]
fn q5_a_restarted_voter_keeps_the_promise_it_forgot() {
    // Only 1 answers the leader 0, for 2 cannot hear it; then 1 restarts, and 2 asks it.
    let case = for_time(3, 200.0).set("election", 100).set("jitter", 1);
    let case = case.fault("cut:0>2@50").fault("partition:0@130");
    let case = case.fault("crash:1@135").fault("restart:1@140");
    assert_eq!(broken(&case.simulate()), Vec::<&str>::new());
    let seen = case.mistake("vote-at-once-after-restart").simulate();
    assert_eq!(broken(&seen), ["one leader at a time"]);
}

#[test]
fn q6_an_even_split_is_overcome() {
    // 0 and 3 ask at once; each has a friend that it reaches first.
    let mut terms = Vec::new();
    for seed in 0..200 {
        let case = Case::<Quorum>::complete(4).initiators(&[0, 3]).config(|c| {
            c.seed = seed;
            c.delay = Delay::Uniform(0.5, 1.5);
            c.time_limit = 300.0;
        });
        terms.push(agreed(case.simulate().well()).1);
    }
    assert!(terms.contains(&1) && terms.contains(&2), "{terms:?}");
}

#[test]
fn without_leases_two_lead_at_a_time() {
    let case = for_time(3, 100.0).fault("partition:0@20-80");
    let seen = case.simulate();
    assert_eq!((broken(&seen), agreed(&seen).1), (vec![], 2));
    assert_eq!(broken(&case.mistake("no-lease").simulate()), ["one leader at a time"]);
}

/// A leader with a slow clock is cut off from two with fast ones.
fn drifting(slow: f64, fast: f64) -> Case<Quorum> {
    let case = for_time(3, 1000.0).set("election", 100).fault("partition:0@200-800");
    let case = case.fault(&format!("rate:0*{slow}")).fault(&format!("rate:1*{fast}"));
    case.fault(&format!("rate:2*{fast}"))
}

#[test]
fn leases_do_not_overlap_while_clock_rates_differ_by_less_than_the_drift() {
    for seed in 0..200 {
        let case = drifting(0.95, 1.05).set("jitter", 5).config(|c| c.seed = seed);
        assert_eq!(broken(&case.simulate()), Vec::<&str>::new(), "seed {seed}");
    }
    let overlaps = (0..20).filter(|&seed| {
        let case = drifting(0.6, 1.4).set("jitter", 5).config(|c| c.seed = seed);
        broken(&case.simulate()) == ["one leader at a time"]
    });
    assert!(overlaps.count() > 10);
}

#[test]
fn the_leader_is_replaced_when_it_crashes_and_follows_when_it_is_back() {
    for n in [3, 5, 50] {
        let seen = for_time(n, 200.0).fault("crash:0@50").fault("restart:0@100").simulate();
        let (leader, term) = agreed(seen.well());
        assert!(leader != 0 && term >= 2, "n = {n}: {leader} in term {term}");
    }
}

#[test]
fn a_minority_has_no_leader() {
    let seen = for_time(5, 200.0).fault("partition:0,1|2,3,4@50").simulate();
    let all = followed(seen.well());
    assert_eq!(all[..2], [None, None]);
    assert!(all[2].is_some() && all[2] == all[3] && all[3] == all[4]);
    // Two crashes of four leave no majority.
    let seen = for_time(4, 200.0).fault("crash:0@50").fault("crash:1@50").simulate();
    assert_eq!(followed(&seen)[2..], [None, None]);
}

#[test]
fn a_large_group_elects_quickly() {
    let seen = for_time(10_000, 12.0).simulate();
    assert_eq!(agreed(seen.well()), (0, 1));
    let seen = Case::<Quorum>::complete(100).config(|c| c.time_limit = 200.0).simulate();
    agreed(seen.well());
}

#[test]
fn one_leader_at_a_time_under_any_network() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(6);
        let mut case = Case::<Quorum>::complete(n as usize).config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential(20.0);
            c.fifo = false;
            c.loss = 0.1;
            c.duplicate = 0.1;
            c.time_limit = 600.0;
        });
        case = case.fault(&format!("rate:{}*1.05", rng.below(n)));
        for _ in 0..6 {
            let (p, q, at) = (rng.below(n), rng.below(n), rng.below(400));
            case = match rng.below(4) {
                0 => case.fault(&format!("partition:{p}@{at}-{}", at + 50)),
                1 => case.fault(&format!("cut:{p}>{q}@{at}-{}", at + 70)),
                2 => case
                    .fault(&format!("crash:{p}@{at}"))
                    .fault(&format!("restart:{p}@{}.5", at + rng.below(30))),
                _ => case.fault(&format!("partition:{p},{q}@{at}-{}", at + 50)),
            };
        }
        case.simulate().well();
    }
}

#[test]
fn when_the_faults_are_over_all_follow_one() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(6);
        let mut case = Case::<Quorum>::complete(n as usize).config(|c| {
            c.seed = seed;
            c.delay = Delay::Uniform(0.1, 1.9);
            c.time_limit = 800.0;
        });
        for _ in 0..5 {
            let (p, at) = (rng.below(n), rng.below(300));
            case =
                case.fault(&format!("crash:{p}@{at}")).fault(&format!("restart:{p}@{}", at + 40));
        }
        agreed(case.simulate().well());
    }
}
