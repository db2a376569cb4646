//! The adversarial schedules of the sources, by their names: views (V), state transfer (X), and those
//! of causal order and rings that concern views.

use super::*;

fn bytes(text: &str) -> Bytes {
    Arc::from(text.as_bytes())
}

fn play(case: &Group) -> Play<VirtualSynchrony> {
    Play::new(&case.setup.group, |p| VirtualSynchrony::build(p, &case.setup))
}

/// The deliveries of `p`, in order.
fn delivered(play: &Play<VirtualSynchrony>, p: u32) -> Vec<String> {
    let of = |(at, told): &(u32, Indication<Bytes>)| match told {
        Indication::Delivered { command, .. } if *at == p => {
            Some(String::from_utf8_lossy(command).into_owned())
        }
        _ => None,
    };
    play.told.iter().filter_map(of).collect()
}

fn members(play: &Play<VirtualSynchrony>, p: u32) -> (u64, Vec<u32>) {
    let view = play.process(p).view();
    (view.id.epoch, view.members.iter().map(|m| m.id.0).collect())
}

#[test]
fn v1_an_install_that_reaches_one_member_binds_all() {
    // Every crash at every step: also when one member knows the decision and the candidate dies.
    let case = calm(3).set("reform", "0").crashes(1, 0).judge(SAFETY);
    assert_eq!(case.check().verdict, "exhausted");
    let found = case.mistake("two-phases").check();
    assert_eq!((found.verdict, found.property), ("violated", Some("view agreement")));
}

/// Candidate 0 has its view accepted by 0, 1 and 2 and installs it; then 4 tries, with 1 and 3.
fn rival_candidates(case: &Group) -> Play<VirtualSynchrony> {
    let mut play = play(case);
    play.ask(0, Request::Reform);
    for p in [1, 2] {
        play.hear(0, p).hear(p, 0);
    }
    play.fire(0, Timer::Collect);
    for p in [1, 2] {
        play.hear(0, p).hear(p, 0);
    }
    assert_eq!(members(&play, 0), (1, vec![0, 1, 2]));
    // All other messages are delayed.
    for from in 0..3 {
        for to in 0..5 {
            play.lose(from, to);
        }
    }
    play.ask(4, Request::Reform);
    for p in [1, 3] {
        play.hear(4, p).hear(p, 4);
    }
    play.fire(4, Timer::Collect).settle_apart(&[0, 2]);
    play
}

#[test]
fn v2_a_rival_adopts_a_proposal_that_may_be_decided() {
    let play = rival_candidates(&calm(5));
    assert_eq!(members(&play, 1), (1, vec![0, 1, 2]));
    assert_eq!(play.process(1).view(), play.process(0).view());
    assert!(play.told.contains(&(3, Indication::Excluded)));
    assert!(play.told.contains(&(4, Indication::Excluded)));
    // Derecho's bug: the rival proposes its own, and epoch 1 exists twice.
    let play = rival_candidates(&calm(5).mistake("ignore-accepted"));
    assert_eq!((members(&play, 0), members(&play, 1)), ((1, vec![0, 1, 2]), (1, vec![1, 3, 4])));
}

#[test]
fn v3_a_process_that_has_promised_delivers_nothing_more() {
    for (case, expected) in [(calm(3), 0), (calm(3).mistake("keep-delivering"), 1)] {
        let mut play = play(&case);
        play.ask(2, Request::Reform).hear(2, 1);
        play.ask(0, Request::Multicast(bytes("late"))).hear(0, 1);
        assert_eq!(delivered(&play, 1).len(), expected);
    }
}

#[test]
fn v4_messages_travel_with_the_promise_so_their_only_holder_may_die() {
    let mut play = play(&calm(3));
    play.ask(0, Request::Multicast(bytes("m"))).hear(0, 1).lose(0, 2).lose(1, 2);
    play.crash(0).suspect(1, 0);
    play.hear(1, 2).hear(2, 1);
    // Of the survivors 1 alone has it; now it is in the proposal, and 1 dies as well.
    play.hear_kind(1, 2, "Accept");
    play.crash(1);
    assert_eq!(delivered(&play, 2), ["m"]);
}

#[test]
fn v5_a_message_that_only_the_cut_off_leader_has_is_not_delivered() {
    for (case, expected) in [(calm(3), 0), (calm(3).mistake("agreed-delivery"), 1)] {
        let mut play = play(&case);
        play.ask(0, Request::Multicast(bytes("m"))).lose(0, 1).lose(0, 2);
        assert_eq!(delivered(&play, 0).len(), expected);
    }
}

#[test]
fn v6_no_half_goes_on_or_with_tie_break_the_senior_one() {
    let split = lively(4, 60.0).fault("partition:0,1|2,3@5");
    let seen = split.simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!((seen.summary.views, seen.summary.excluded), (1, 0));
    assert!(seen.summary.blocked >= 2);
    let seen = split.clone().set("tie-break", "on").simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(views(&seen, &[2, 3]), [[0, 1], [0, 1]]);
    assert!(views(&seen, &[0, 1]).iter().all(|v| v.len() == 4), "the others wait");
    let healed = lively(4, 200.0).fault("partition:0,1|2,3@5-60").simulate();
    assert!(healed.violations.is_empty(), "{:?}", healed.violations);
    assert!(has_converged(&healed, &[0, 1, 2, 3], "healed"));
}

#[test]
fn v7_a_majority_is_one_of_the_last_view_that_was_decided() {
    // 3-2, and before the three have a view they split 2-1: no part has a majority of five.
    let seen = lively(5, 60.0)
        .fault("partition:0,1,2|3,4@5-12")
        .fault("partition:0,1|2|3,4@11")
        .simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(seen.summary.views, 1);
    // Later, and the two are a majority of the three.
    let seen =
        lively(5, 90.0).fault("partition:0,1,2|3,4@5").fault("partition:0,1|2|3,4@40").simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(views(&seen, &[2, 3, 4]), [[0, 1], [0, 1]]);
}

#[test]
fn v8_a_slow_member_is_excluded_learns_it_and_joins_again() {
    let seen = lively(3, 200.0).requests(&[5, 5, 5]).fault("pause:2@10-40").simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(seen.summary.excluded, 1);
    assert!(has_converged(&seen, &[0, 1, 2], "awake again"));
}

#[test]
fn v9_a_dead_direction_costs_few_views() {
    for (a, b) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
        let seen = lively(3, 400.0).fault(&format!("cut:{a}>{b}@5")).simulate();
        assert!(seen.violations.is_empty(), "{:?}", seen.violations);
        assert!(seen.summary.views <= 3, "{a}>{b}: {:?}", seen.summary);
    }
}

#[test]
fn v9_a_suspicion_that_nobody_takes_back_costs_few_views() {
    for (a, b) in [(2, 1), (1, 2), (0, 4), (4, 0)] {
        let case = Case::<VirtualSynchrony>::complete(5).requests(&[4; 5]).set("rejoin", "on");
        let case = case.fault(&format!("suspect:{a}>{b}@8.5")).config(|c| c.time_limit = 1500.0);
        let seen = case.simulate();
        assert!(seen.violations.is_empty(), "{:?}", seen.violations);
        assert!(seen.summary.views <= 5, "{a}>{b}: {:?}", seen.summary);
        assert!(has_converged(&seen, &[0, 1, 2, 3, 4], "all are back"), "{a}>{b}");
    }
}

#[test]
fn v10_a_joiner_that_dies_on_the_way_leaves_no_ghost() {
    for step in 0..60 {
        let crash = 1.0 + f64::from(step) * 0.5;
        let case = lively(3, 150.0).set("joiners", 2).fault(&format!("crash:2@{crash}"));
        let seen = case.simulate();
        assert!(seen.violations.is_empty(), "{:?}", seen.violations);
        assert!(has_converged(&seen, &[0, 1], "without the joiner"), "crash at {crash}");
        assert_eq!(seen.processes[0].view().observers.len(), 0);
    }
}

#[test]
fn v11_no_effect_is_delivered_without_its_cause_after_any_crash() {
    // 2 sends after it delivered what 1 sent; 1 and 2 crash, at every step until all is delivered.
    for step in 0..50 {
        let mut case = calm(5).set("retry", "on").requests(&[0, 1, 1, 0, 0]);
        case.config.script = vec![(ProcessId(1), 0.0), (ProcessId(2), 3.0)];
        let case = case.fault(&format!("crash:1@#{step}")).fault(&format!("crash:2@#{}", step + 1));
        let seen = case.simulate();
        assert!(seen.violations.is_empty(), "step {step}: {:?}", seen.violations);
        assert!(views(&seen, &[1, 2]).iter().all(|view| *view == [0, 3, 4]), "step {step}");
    }
}

#[test]
fn c3_the_numbers_of_a_restarted_member_start_in_its_new_view() {
    // 1 crashes with messages under way and comes again: same id, same numbers, another view.
    let mut case = lively(4, 900.0).config(|c| c.think = Pace::Exponential(4.0));
    case.workload.requests = vec![10, 40, 10, 0];
    let case = case.fault("crash:1@30").fault("restart:1@70");
    for seed in 0..20 {
        let seen = case.clone().config(|c| c.seed = seed).simulate();
        assert!(seen.violations.is_empty(), "seed {seed}: {:?}", seen.violations);
        assert!(has_converged(&seen, &[0, 1, 2, 3], "all came again"), "seed {seed}");
    }
}

#[test]
fn c5_the_window_of_unstable_messages_bounds_the_queues() {
    // 2 receives nothing: messages that it lacks are not stable, so 1 stops, and no queue grows.
    let case = calm(3).set("window", 4);
    let mut play = play(&case);
    for i in 0..200 {
        play.ask(1, Request::Multicast(bytes(&i.to_string())));
        play.settle_apart(&[2]);
    }
    let window = 4;
    for p in [0, 1] {
        let waiting = if p == 1 { 16 * window } else { 0 };
        let buffered = play.process(p).buffered();
        assert!(buffered <= 2 * window + waiting, "p{p} keeps {buffered}");
    }
    play.settle();
    assert_eq!((0..3).map(|p| play.process(p).buffered()).sum::<usize>(), 0);
}

#[test]
fn r5_two_rings_that_meet_become_one_and_mix_nothing() {
    // A message of another view is never delivered: the smaller part drops its messages and joins.
    let mut case = lively(5, 400.0).config(|c| c.think = Pace::Exponential(3.0));
    case.workload.requests = vec![20; 5];
    let case = case.fault("partition:0,1|2,3,4@20-120");
    for seed in 0..20 {
        let seen = case.clone().config(|c| c.seed = seed).simulate();
        assert!(seen.violations.is_empty(), "seed {seed}: {:?}", seen.violations);
        assert!(has_converged(&seen, &[0, 1, 2, 3, 4], "they met"), "seed {seed}");
        assert!(seen.summary.excluded >= 2, "seed {seed}: {:?}", seen.summary);
    }
}

#[test]
fn v12_a_message_whose_predecessor_is_lost_is_dropped_by_all() {
    let mut play = play(&calm(3));
    play.ask(1, Request::Multicast(bytes("1"))).hear(1, 0).settle();
    play.ask(1, Request::Multicast(bytes("2"))).lose(1, 0);
    play.ask(1, Request::Multicast(bytes("3"))).hear(1, 0).settle();
    play.crash(1).suspect(0, 1).suspect(2, 1).settle();
    assert_eq!(members(&play, 2), (1, vec![0, 2]));
    assert_eq!((delivered(&play, 0), delivered(&play, 2)), (vec!["1".into()], vec!["1".into()]));
}

#[test]
fn v13_a_place_whose_message_is_lost_is_skipped() {
    let mut play = play(&calm(5));
    play.ask(0, Request::Multicast(bytes("lost"))).lose(0, 1).lose(0, 2).lose(0, 3).lose(0, 4);
    play.ask(1, Request::Multicast(bytes("known"))).hear(1, 0).hear(0, 3);
    play.crash(0);
    for p in 1..5 {
        play.suspect(p, 0);
    }
    play.settle();
    for p in 1..5 {
        assert_eq!((members(&play, p).0, delivered(&play, p)), (1, vec!["known".to_owned()]));
    }
}

#[test]
fn v14_a_multicast_during_a_change_is_sent_in_the_next_view() {
    let mut play = play(&calm(3));
    play.ask(0, Request::Reform).hear(0, 1);
    play.ask(1, Request::Multicast(bytes("later")));
    assert!(!play.told.iter().any(|(_, told)| matches!(told, Indication::Sent { .. })));
    play.settle();
    let epoch = |told: &(u32, Indication<Bytes>)| match &told.1 {
        Indication::Delivered { view, .. } => Some(view.epoch),
        _ => None,
    };
    assert_eq!(play.told.iter().filter_map(epoch).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn v15_a_message_of_an_old_view_is_refused_in_the_new_one() {
    let mut play = play(&calm(3));
    play.ask(2, Request::Multicast(bytes("old")));
    play.suspect(0, 2).settle_apart(&[2]);
    assert_eq!(members(&play, 0), (1, vec![0, 1]));
    play.settle();
    assert_eq!((delivered(&play, 0).len(), delivered(&play, 1).len()), (0, 0));
    assert!(play.told.contains(&(2, Indication::Excluded)));
}

#[test]
fn v16_v17_one_event_reports_joins_exits_and_the_coordinator() {
    let case = calm(4).set("joiners", 3);
    let mut play = play(&case);
    // One leaves while another joins: the members see one change, not two.
    play.ask(3, Request::Join).hear(3, 0).hear(0, 3);
    play.ask(2, Request::Leave).hear(2, 0);
    play.told.clear();
    play.settle();
    let events = |p: u32| {
        let views = play
            .told
            .iter()
            .filter(move |(at, told)| *at == p && matches!(told, Indication::Installed { .. }));
        views.count()
    };
    // The joiner's way from observer to member is the second.
    assert!(events(0) <= 3, "{}", events(0));
    assert!(play.told.contains(&(2, Indication::Left)));
}

#[test]
fn v18_rival_candidates_come_to_an_end() {
    for seed in 0..200 {
        let case =
            Case::<VirtualSynchrony>::complete(5).requests(&[1; 5]).set("reform", "0,1,2,3,4");
        let case = case.config(|c| (c.seed, c.delay) = (seed, Delay::Exponential(1.0)));
        let seen = case.simulate();
        assert!(seen.violations.is_empty(), "{:?}", seen.violations);
        assert_eq!(seen.ending, Ending::Quiet);
        assert!(seen.time < 200.0, "seed {seed}: {}", seen.time);
    }
}

#[test]
fn v19_a_restarted_process_is_another_member() {
    let seen =
        lively(3, 200.0).requests(&[3, 3, 3]).fault("crash:2@4").fault("restart:2@5").simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert!(has_converged(&seen, &[0, 1, 2], "with the new life"));
    let again = seen.processes[0].view().find(ProcessId(2)).map(|m| m.incarnation);
    assert_eq!(again, Some(2));
    // Also without a memory of its own.
    let seen = lively(3, 200.0).fault("crash:2@4").fault("restart:2@5:nothing").simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert!(has_converged(&seen, &[0, 1, 2], "with a new life"));
    assert!(seen.processes[0].view().find(ProcessId(2)).is_some_and(|m| m.incarnation > 1));
}

#[test]
fn v20_after_a_thousand_changes_nothing_is_left_over() {
    let mut play = play(&calm(3));
    let before: Vec<usize> = (0..3).map(|p| play.process(p).buffered()).collect();
    for change in 0..1000u32 {
        for p in 0..3 {
            play.ask(p, Request::Multicast(bytes("m")));
        }
        play.hear(change % 3, (change + 1) % 3);
        play.ask(change % 3, Request::Reform).settle();
        play.told.clear();
    }
    assert_eq!(members(&play, 0), (1000, vec![0, 1, 2]));
    let after: Vec<usize> = (0..3).map(|p| play.process(p).buffered()).collect();
    assert_eq!(before, after);
}

#[test]
fn v21_a_process_that_has_promised_acknowledges_nothing_more() {
    for (case, expected) in [(calm(3), 0), (calm(3).mistake("keep-acknowledging"), 1)] {
        let mut play = play(&case);
        play.ask(2, Request::Reform).hear(2, 1);
        play.ask(0, Request::Multicast(bytes("m"))).hear(0, 1).hear(1, 0);
        assert_eq!(delivered(&play, 0).len(), expected);
    }
}

/// Three members with some deliveries, and a joiner that has been taken in but has no state.
fn with_observer(mode: &str) -> Play<VirtualSynchrony> {
    let case = calm(4).set("joiners", 3).set("transfer", mode);
    let mut play = play(&case);
    play.ask(0, Request::Multicast(bytes("before"))).settle();
    play.ask(3, Request::Join).settle();
    assert!(play.told.contains(&(2, Indication::StateWanted)));
    play
}

fn parts(count: usize) -> Vec<Bytes> {
    (0..count).map(|i| bytes(&format!("part {i}"))).collect()
}

#[test]
fn x1_when_the_donor_dies_another_gives_the_state_from_the_start() {
    let mut play = with_observer("blocking");
    play.ask(2, Request::State(parts(10)));
    play.hear(2, 3).hear(3, 2).hear(2, 3);
    play.crash(2).told.clear();
    for p in [0, 1, 3] {
        play.suspect(p, 2);
    }
    play.settle();
    assert!(play.told.contains(&(1, Indication::StateWanted)));
    play.ask(1, Request::State(parts(3))).settle();
    let state = Indication::State { position: 0, parts: parts(3) };
    assert!(play.told.contains(&(3, state)));
    assert_eq!(members(&play, 3).1, [0, 1, 3]);
}

#[test]
fn x2_a_view_change_during_the_transfer_starts_it_anew() {
    let mut play = with_observer("streaming");
    play.ask(2, Request::State(parts(10)));
    play.hear(2, 3);
    play.ask(0, Request::Reform).settle();
    play.ask(2, Request::State(parts(2))).settle();
    assert!(play.told.contains(&(3, Indication::State { position: 0, parts: parts(2) })));
    assert_eq!(members(&play, 3).1, [0, 1, 2, 3]);
}

#[test]
fn x3_no_delivery_is_applied_twice_or_left_out() {
    let mut play = with_observer("streaming");
    play.ask(0, Request::Multicast(bytes("included"))).settle();
    play.ask(2, Request::State(parts(6)));
    play.ask(0, Request::Multicast(bytes("replayed"))).settle();
    assert!(play.told.contains(&(3, Indication::State { position: 1, parts: parts(6) })));
    assert_eq!(delivered(&play, 3), ["replayed"]);
    // Blocking: the donor delivers nothing until it has given its state.
    let mut play = with_observer("blocking");
    play.ask(0, Request::Multicast(bytes("after"))).settle();
    assert_eq!((delivered(&play, 2).len(), delivered(&play, 1).len()), (1, 2));
    play.ask(2, Request::State(parts(1))).settle();
    assert_eq!((delivered(&play, 2).len(), delivered(&play, 3)), (2, vec!["after".to_owned()]));
}

#[test]
fn x4_a_large_state_leaves_room_for_heartbeats() {
    let mut play = with_observer("streaming");
    let sent = play.sent;
    play.ask(2, Request::State(parts(100_000)));
    assert_eq!(play.sent - sent, 4, "only a window of parts is under way");
}

#[test]
fn x5_no_observer_votes_before_it_has_the_state() {
    let mut play = with_observer("blocking");
    play.ask(0, Request::Reform).settle();
    let view = play.process(0).view();
    assert_eq!((view.members.len(), view.observers.len()), (3, 1));
    play.ask(2, Request::State(vec![])).settle();
    assert_eq!(play.process(0).view().members.len(), 4);
}

#[test]
fn eight_processes_join_at_once_in_few_views() {
    let mut case = lively(9, 300.0).set("joiners", "1,2,3,4,5,6,7,8");
    case.workload.requests = vec![1; 9];
    for seed in 0..20 {
        let seen = case
            .clone()
            .config(|c| (c.seed, c.delay) = (seed, Delay::Uniform(0.5, 1.5)))
            .simulate();
        assert!(seen.violations.is_empty(), "{:?}", seen.violations);
        assert!(has_converged(&seen, &(0..9).collect::<Vec<_>>(), "all of them"));
        assert!(seen.summary.views <= 16, "{:?}", seen.summary);
    }
}

#[test]
fn after_a_total_failure_an_operator_founds_the_next_generation() {
    let mut play = play(&calm(3));
    play.ask(0, Request::Reform).settle();
    play.crash(1).crash(2).suspect(0, 1).suspect(0, 2).settle();
    assert!(play.process(0).is_wedged(), "no majority, no view");
    play.ask(0, Request::Refound);
    let id = play.process(0).view().id;
    assert_eq!((id.generation, members(&play, 0).1), (1, vec![0]));
    play.ask(0, Request::Multicast(bytes("again")));
    assert_eq!(delivered(&play, 0), ["again"]);
}

/// No other process can deliver these messages any more: without it their senders would wait forever.
#[test]
fn the_founder_of_the_next_generation_sends_its_own_messages_again() {
    for p in [0, 4] {
        let mut play = play(&calm(5));
        play.ask(p, Request::Multicast(bytes("placed")));
        play.ask(1, Request::Multicast(bytes("another's")));
        // It has both messages, and neither is stable.
        play.hear(1, 0).hear(p, 0).hear(0, p);
        play.ask(p, Request::Multicast(bytes("on its way")));
        play.ask(p, Request::Reform);
        play.ask(p, Request::Multicast(bytes("to be sent")));
        assert_eq!(delivered(&play, p), [""; 0]);
        play.ask(p, Request::Refound);
        assert_eq!(delivered(&play, p), ["placed", "on its way", "to be sent"], "{p}");
        assert_eq!(play.process(p).buffered(), 0);
        play.ask(p, Request::Refound);
        assert_eq!(delivered(&play, p).len(), 3, "each once");
    }
}

#[test]
fn a_full_window_makes_the_rest_wait_and_then_refuses() {
    let case = calm(3).set("window", 2);
    let mut play = play(&case);
    for i in 0..40 {
        play.ask(1, Request::Multicast(bytes(&i.to_string())));
    }
    let count = |play: &Play<VirtualSynchrony>, fits: fn(&Indication<Bytes>) -> bool| {
        play.told.iter().filter(|(_, told)| fits(told)).count()
    };
    assert_eq!(count(&play, |t| matches!(t, Indication::Sent { .. })), 2);
    assert_eq!(count(&play, |t| matches!(t, Indication::Refused(_))), 40 - 2 - 32);
    play.settle();
    assert_eq!(delivered(&play, 2).len(), 34);
    assert_eq!(play.process(1).buffered(), 0);
}
