//! Faults strike when and where they should.

use konklave_sim::{Config, Ending, Fault, Pace, What, When};

use crate::node::{P0, P1, P2, Request, World, numbers, run, with_faults};

/// One number every T, from 0 to 1.
fn slowly(count: usize) -> (Vec<Vec<Request>>, Pace) {
    (vec![vec![Request::Send(P1, 1); count], vec![]], Pace::Constant(1.0))
}

#[test]
fn what_arrives_at_a_crashed_process_is_lost() {
    let (scripts, think) = slowly(6);
    // Sent at 1, 2, …, 6; arriving at 2, 3, …, 7.
    let (sim, ending) = run(&Config { think, ..with_faults(&["crash:1@3.5"]) }, scripts);
    assert_eq!(ending, Ending::Quiet);
    assert_eq!(numbers(&sim, 1).len(), 2);
    assert_eq!((sim.counts().sent, sim.counts().delivered, sim.counts().lost), (6, 2, 4));
    assert!(sim.faulty() && sim.down().contains(P1));
}

#[test]
fn a_fault_strikes_before_all_else_of_its_time() {
    let (scripts, think) = slowly(6);
    // The message that arrives at 3 finds nobody.
    let (sim, _) = run(&Config { think, ..with_faults(&["crash:1@3"]) }, scripts);
    assert_eq!(numbers(&sim, 1).len(), 1);
}

#[test]
fn faults_of_one_time_strike_in_the_order_they_were_given() {
    let (scripts, think) = slowly(4);
    let config = Config { think, ..with_faults(&["crash:1@3", "restart:1@3"]) };
    let (sim, _) = run(&config, scripts.clone());
    assert!(sim.down().is_empty());
    assert_eq!(sim.counts().lost, 0, "it is up again when the message arrives");
    let config = Config { think, ..with_faults(&["restart:1@3", "crash:1@3"]) };
    let (sim, _) = run(&config, scripts);
    assert!(sim.down().contains(P1), "one who is up cannot be restarted");
    assert_eq!(sim.processes()[1].recovered, None);
}

#[test]
fn a_restarted_process_remembers_what_it_should() {
    let scripts = || vec![vec![Request::Send(P1, 1)], vec![Request::Save(7), Request::Save(8)]];
    let memory = |memory: &str| {
        let (sim, _) =
            run(&with_faults(&["crash:1@2", &format!("restart:1@3:{memory}")]), scripts());
        let node = &sim.processes()[1];
        (node.got.len(), node.recovered)
    };
    assert_eq!(memory("saved"), (0, Some(Some(8))));
    assert_eq!(memory("nothing"), (0, Some(None)));
    assert_eq!(memory("everything"), (1, Some(Some(8))));
}

#[test]
fn to_restart_or_to_crash_twice_changes_nothing() {
    let (sim, _) = run(&with_faults(&["restart:1@1"]), vec![vec![], vec![]]);
    assert_eq!(sim.processes()[1].recovered, None);
    assert!(!sim.faulty());
    let (sim, _) = run(&with_faults(&["crash:1@1", "crash:1@2"]), vec![vec![], vec![]]);
    let transcript = sim.into_observer().0;
    assert_eq!(transcript.iter().filter(|line| line.contains("! Crash")).count(), 1);
}

#[test]
fn a_timer_and_a_wish_of_an_earlier_life_are_void() {
    let scripts = vec![vec![Request::Wait(10), Request::Wait(10)]];
    let config =
        Config { think: Pace::Constant(2.0), ..with_faults(&["crash:0@3", "restart:0@3.5"]) };
    // The wish of time 2 sets a timer for 12 that dies; the one due at 4 comes at 5.5 instead.
    let (sim, _) = run(&config, scripts);
    assert_eq!(sim.processes()[0].rings, 1);
    assert_eq!(sim.now(), 15_500);
}

#[test]
fn the_client_of_a_process_that_is_down_asks_when_it_comes_up() {
    let config = with_faults(&["crash:0@0", "restart:0@5"]);
    let (sim, _) = run(&config, vec![vec![Request::Send(P1, 1)], vec![]]);
    assert_eq!((numbers(&sim, 1).len(), sim.now()), (1, 6000));
}

#[test]
fn what_comes_for_a_sleeper_waits_in_order() {
    let (scripts, think) = slowly(6);
    let (sim, ending) = run(&Config { think, ..with_faults(&["pause:1@1.5-5.5"]) }, scripts);
    assert_eq!(ending, Ending::Quiet);
    assert_eq!(sim.counts().delivered, 6);
    assert!(!sim.faulty(), "to be slow is no fault");
    let lines = sim.into_observer().0;
    let received = |line: &&String| line.contains("p1 < Message");
    let times: Vec<&str> = lines.iter().filter(received).map(|l| &l[..4]).collect();
    assert_eq!(times, ["5500", "5500", "5500", "5500", "6000", "7000"]);
}

#[test]
fn pauses_may_overlap_and_a_crash_ends_them() {
    let (scripts, think) = slowly(4);
    let config = Config { think, ..with_faults(&["pause:1@1-4", "pause:1@2-8"]) };
    let (sim, _) = run(&config, scripts.clone());
    assert_eq!((sim.counts().delivered, sim.now()), (4, 8000));
    let config = Config { think, ..with_faults(&["pause:1@1-9", "crash:1@3.5"]) };
    let (sim, _) = run(&config, scripts);
    assert_eq!((sim.counts().delivered, sim.counts().lost), (0, 4));
    let lines = sim.into_observer().0;
    assert!(!lines.iter().any(|line| line.contains("Resume")), "{lines:?}");
}

#[test]
fn a_run_with_something_waiting_for_a_sleeper_is_not_quiet() {
    let config = Config { time_limit: 5.0, ..with_faults(&["pause:1@0-9"]) };
    let (_, ending) = run(&config, vec![vec![Request::Send(P1, 1)], vec![]]);
    assert_eq!(ending, Ending::CutOff);
}

#[test]
fn a_cut_loses_messages_one_way_until_it_heals() {
    let scripts = vec![vec![Request::Send(P1, 1); 6], vec![Request::Send(P0, 1); 6]];
    let think = Pace::Constant(1.0);
    let (sim, _) = run(&Config { think, ..with_faults(&["cut:0>1@2.5-4.5"]) }, scripts);
    assert_eq!((numbers(&sim, 1).len(), numbers(&sim, 0).len()), (4, 6));
    assert_eq!(sim.counts().lost, 2);
    assert!(sim.faulty());
}

#[test]
fn overlapping_cuts_heal_one_by_one() {
    let (scripts, think) = slowly(6);
    let config = Config { think, ..with_faults(&["cut:0>1@1.5-3.5", "cut:0>1@2.5-5.5"]) };
    let (sim, _) = run(&config, scripts);
    assert_eq!(sim.counts().lost, 4, "those of times 2 to 5");
}

#[test]
fn a_broken_link_loses_messages_both_ways_and_both_ends_know_it() {
    let scripts = || vec![vec![Request::Send(P1, 1); 6], vec![Request::Send(P0, 1); 6], vec![]];
    let think = Pace::Constant(1.0);
    let during = |faults: &[&str], after| {
        let config = Config { think, detect_after: Some(after), ..with_faults(faults) };
        run(&config, scripts()).0
    };
    let sim = during(&["break:0-1@2.5-4.5"], 1.0);
    assert_eq!((numbers(&sim, 1).len(), numbers(&sim, 0).len()), (4, 4));
    assert_eq!(sim.counts().lost, 4);
    let suspects = |sim: &World, p: usize| sim.processes()[p].suspects.clone();
    assert!((0..3).all(|p| suspects(&sim, p).is_empty()), "all is well again");
    let sim = during(&["break:1-0@2.5"], 1.0);
    assert_eq!([0, 1, 2].map(|p| suspects(&sim, p)), [vec![P1], vec![P0], vec![]]);
    assert!(sim.faulty() && sim.down().is_empty());
}

#[test]
fn a_broken_link_and_a_crash_are_told_apart() {
    let with = |faults: &[&str]| {
        let config = Config { detect_after: Some(1.0), ..with_faults(faults) };
        let (sim, _) = run(&config, vec![vec![], vec![], vec![]]);
        [0, 1, 2].map(|p| sim.processes()[p].suspects.clone())
    };
    // A restarted process finds its link still broken: the process at the other end of that link still suspects it.
    let back = with(&["break:0-1@1", "crash:1@3", "restart:1@5"]);
    assert!(back[0].contains(&P1) && back[1] == [P0] && back[2].is_empty(), "{back:?}");
    // A link that is mended brings nobody back to life.
    let dead = with(&["break:0-1@1-6", "crash:1@3"]);
    assert!(dead[0].contains(&P1) && dead[2] == [P1], "{dead:?}");
    // A link that broke twice is whole after two repairs.
    let twice = with(&["break:0-1@1-6", "break:1-0@2"]);
    assert_eq!(twice[..2], [vec![P1, P1], vec![P0, P0]]);
}

#[test]
fn a_partition_parts_the_sides_until_it_heals() {
    let to = |p| vec![Request::Send(p, 1); 4];
    let think = Pace::Constant(1.0);
    let config = Config { think, ..with_faults(&["partition:0,1|2@1.5-3.5"]) };
    let (sim, _) = run(&config, vec![to(P1), to(P2), to(P0)]);
    let got: Vec<usize> = (0..3).map(|node| numbers(&sim, node).len()).collect();
    assert_eq!(got, [2, 4, 2]);
    assert_eq!(sim.counts().lost, 4);
}

#[test]
fn who_is_on_no_side_is_on_a_last_one() {
    let scripts = vec![vec![Request::Send(P1, 1)], vec![Request::Send(P2, 1)], vec![]];
    let (sim, _) = run(&with_faults(&["partition:0@0"]), scripts);
    assert_eq!((numbers(&sim, 1).len(), numbers(&sim, 2).len()), (0, 1));
}

#[test]
fn selectors_hit_the_message_they_name() {
    let scripts =
        || vec![vec![Request::Send(P1, 4), Request::SendOther(P1)], vec![Request::Send(P0, 4)]];
    let (sim, _) = run(&with_faults(&["lose:0>1#2"]), scripts());
    assert_eq!((numbers(&sim, 1), numbers(&sim, 0)), (vec![0, 2, 3], vec![0, 1, 2, 3]));
    assert!(sim.faulty());
    let (sim, _) = run(&with_faults(&["lose:/other"]), scripts());
    assert_eq!(sim.counts().lost, 1);
    assert_eq!(numbers(&sim, 1), [0, 1, 2, 3]);
    let (sim, _) = run(&with_faults(&["duplicate:>1/Data#3"]), scripts());
    assert_eq!(numbers(&sim, 1), [0, 1, 2, 2, 3]);
    assert_eq!((sim.counts().duplicated, sim.counts().delivered), (1, 10));
}

#[test]
fn a_late_message_holds_up_a_channel_that_keeps_order() {
    let scripts = || vec![vec![Request::Send(P1, 4)], vec![]];
    let config = with_faults(&["delay:#2+5"]);
    let (sim, _) = run(&Config { fifo: false, ..config.clone() }, scripts());
    assert_eq!((numbers(&sim, 1), sim.now()), (vec![0, 2, 3, 1], 6000));
    let (sim, _) = run(&config, scripts());
    assert_eq!((numbers(&sim, 1), sim.now()), (vec![0, 1, 2, 3], 6000));
    assert!(!sim.faulty(), "to be late is no fault");
}

#[test]
fn timers_drift_with_their_rate() {
    let ends = |faults: &[&str]| run(&with_faults(faults), vec![vec![Request::Wait(10)]]).0.now();
    assert_eq!(ends(&[]), 10_000);
    assert_eq!(ends(&["rate:0*2"]), 5_000);
    assert_eq!(ends(&["rate:0*0.5"]), 20_000);
}

#[test]
fn a_detector_errs_when_told_to() {
    let (sim, _) = run(&with_faults(&["suspect:0>1@2"]), vec![vec![], vec![]]);
    assert_eq!(sim.processes()[0].suspects, [P1]);
    assert!(sim.faulty());
    let what = What::Suspect(P0, P1);
    let fault = Fault { what, when: When::Time(2.0), until: Some(3.0) };
    let (sim, _) = run(&Config { faults: vec![fault], ..Config::default() }, vec![vec![], vec![]]);
    assert!(sim.processes()[0].suspects.is_empty());
}

#[test]
fn a_perfect_detector_tells_all_after_its_time() {
    let config = Config { detect_after: Some(2.0), ..with_faults(&["crash:1@1", "crash:2@1.5"]) };
    let (sim, _) = run(&config, vec![vec![], vec![], vec![]]);
    assert_eq!((&sim.processes()[0].suspects[..], sim.now()), (&[P1, P2][..], 3500));
    let config = Config { detect_after: Some(2.0), ..with_faults(&["crash:1@1", "restart:1@9"]) };
    let (sim, _) = run(&config, vec![vec![], vec![], vec![]]);
    assert!(sim.processes()[0].suspects.is_empty());
}

#[test]
fn faults_by_step_strike_right_after_it() {
    // Two starts, then the wish, then four messages: after the fifth step two have arrived.
    let (sim, _) = run(&with_faults(&["crash:1@#5"]), vec![vec![Request::Send(P1, 4)], vec![]]);
    assert_eq!((numbers(&sim, 1), sim.counts().lost), (vec![0, 1], 2));
    // A step that never comes.
    let (sim, _) = run(&with_faults(&["crash:1@#50"]), vec![vec![Request::Send(P1, 4)], vec![]]);
    assert!(sim.down().is_empty());
    // Steps of the start are over when the run begins.
    let (sim, _) = run(&with_faults(&["crash:1@#0"]), vec![vec![Request::Send(P1, 4)], vec![]]);
    assert_eq!(sim.counts().lost, 4);
}

#[test]
fn a_fault_by_step_may_strike_among_what_waited_for_a_sleeper() {
    let faults = ["pause:1@0-5", "crash:1@#5"];
    let (sim, _) = run(&with_faults(&faults), vec![vec![Request::Send(P1, 4)], vec![]]);
    assert_eq!((numbers(&sim, 1), sim.counts().lost), (vec![0, 1], 2));
}
