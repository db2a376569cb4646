//! Whole runs of the program, with real threads.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use konklave_ring::{Flags, Outcome, RingError, Stop, run};
use serde_json::Value;

#[test]
fn one_initiator_costs_exactly_d_plus_2n_messages() {
    for (size, seeds) in [(1, 0..2), (2, 0..4), (3, 0..5), (8, 0..5), (31, 0..3)] {
        for seed in seeds {
            let flags = Flags { size: Some(size), seed: Some(seed), ..quick(4) };
            let ran = ring(&flags);
            assert_eq!(ran.outcome.exit_code(), 0);
            assert_eq!(ran.elections.len(), 4);
            let highest = *ran.outcome.ids.iter().max().unwrap();
            for election in &ran.elections {
                assert_eq!(election["leader"], highest);
                assert_eq!(election["messages"], expected_messages(&ran.outcome.ids, election));
                assert_eq!(election["verdict"], "ok");
                assert_eq!((&election["timed_out"], &election["attempts"]), (&0.into(), &1.into()));
            }
        }
    }
}

#[test]
fn the_report_s_worst_case_is_3n_minus_1() {
    let flags = Flags { ids: Some(vec![9, 1, 2, 3, 4]), initiator: Some(1), ..quick(2) };
    let ran = ring(&flags);
    assert_eq!(ran.column("messages"), [14, 14]);
    assert_eq!(ran.column("initiator"), [1, 1]);
}

#[test]
fn a_ring_of_one_elects_itself_without_messages() {
    let ran = ring(&Flags { ids: Some(vec![5]), ..quick(3) });
    assert_eq!(ran.column("leader"), [5, 5, 5]);
    assert_eq!(ran.column("messages"), [0, 0, 0]);
}

#[test]
fn two_hundred_workers_elect() {
    let ran = ring(&Flags { size: Some(200), seed: Some(3), ..quick(2) });
    assert_eq!(ran.outcome.exit_code(), 0);
    for election in &ran.elections {
        assert_eq!(election["messages"], expected_messages(&ran.outcome.ids, election));
    }
}

#[test]
fn the_same_seed_gives_the_same_elections() {
    let flags = Flags { size: Some(6), seed: Some(11), ..quick(5) };
    let (a, b) = (ring(&flags), ring(&flags));
    assert_eq!(a.column("initiator"), b.column("initiator"));
    assert_eq!(a.outcome, b.outcome);
}

#[test]
fn a_worker_that_is_dead_from_the_start_is_skipped_from_then_on() {
    let flags = Flags { initiator: Some(5), ..failing(&[3, 9, 5, 7], &["9@start"]) };
    let ran = ring(&Flags { number_of_elections: Some(2), ..flags });
    assert_eq!(ran.outcome.exit_code(), 0);
    assert_eq!(ran.outcome.failed, [9]);
    assert_eq!(ran.column("leader"), [7, 7]);
    // Three live workers: 1 + 2·3, and once the message that 9 did not take.
    assert_eq!(ran.column("messages"), [8, 7]);
    assert_eq!(ran.column("timed_out"), [1, 0]);
}

#[test]
fn neighbours_that_failed_side_by_side_are_skipped_together() {
    let ran = ring(&failing(&[3, 9, 8, 5], &["9@start", "8@start"]));
    assert_eq!(ran.column("leader"), [5]);
    assert_eq!(ran.column("timed_out"), [2]);
}

#[test]
fn the_word_of_a_leader_that_failed_is_stopped_and_the_next_highest_is_elected() {
    let flags = failing(&[3, 1, 2], &["3@elected"]);
    let ran = ring(&Flags { number_of_elections: Some(2), ..flags });
    assert_eq!(ran.outcome.exit_code(), 0);
    assert_eq!(ran.column("leader"), [2, 2]);
    assert_eq!(ran.column("attempts"), [2, 1]);
    assert_eq!(ran.outcome.failed, [3]);
    assert!(ran.err.contains("WARN  [worker 3] fails"), "{}", ran.err);
    let hop_limit = "drops ELECTED 3 after 4 hops: its sender has failed";
    assert!(ran.err.contains(hop_limit), "{}", ran.err);
}

#[test]
fn the_number_of_a_candidate_that_failed_is_stopped_and_the_next_highest_is_elected() {
    // 9 proposes itself when it handles its first message, and then fails.
    let flags = failing(&[3, 1, 9, 2], &["9@message:1"]);
    let ran = ring(&Flags { initiator: Some(3), number_of_elections: Some(3), ..flags });
    assert_eq!(ran.outcome.exit_code(), 0);
    assert_eq!(ran.column("leader"), [3, 3, 3]);
    assert_eq!(ran.column("attempts"), [2, 1, 1]);
    assert!(ran.err.contains("drops PROPOSE 9 after 5 hops"), "{}", ran.err);
}

#[test]
fn leaders_may_fail_one_after_the_other() {
    let flags = failing(&[5, 1, 7, 3, 9], &["9@elected", "7@elected", "5@elected"]);
    let ran = ring(&flags);
    assert_eq!(ran.outcome.exit_code(), 0);
    assert_eq!(ran.column("leader"), [3]);
    assert_eq!(ran.column("attempts"), [4]);
}

#[test]
fn the_last_worker_finds_itself_alone_and_elects_itself() {
    let flags = failing(&[3, 9, 5], &["9@start", "5@start"]);
    let ran = ring(&Flags { number_of_elections: Some(2), ..flags });
    assert_eq!(ran.outcome.exit_code(), 0);
    assert_eq!(ran.column("leader"), [3, 3]);
    assert_eq!(ran.column("messages"), [2, 0]);
    assert!(ran.err.contains("ERROR [worker 3] is alone"), "{}", ran.err);
}

#[test]
fn where_nobody_is_left_the_run_is_unfinished() {
    let ran = ring(&failing(&[3, 9], &["9@start", "3@start"]));
    assert_eq!(ran.outcome.exit_code(), 1);
    assert_eq!((ran.outcome.unfinished, ran.outcome.elections), (1, 0));
    assert_eq!(ran.elections[0]["verdict"], "unfinished");
    assert!(ran.err.contains("ERROR [ring] no live worker is left"), "{}", ran.err);
}

#[test]
fn a_failed_initiator_is_replaced() {
    let flags = failing(&[3, 9, 5], &["5@start"]);
    let ran = ring(&Flags { initiator: Some(5), ..flags });
    assert_eq!(ran.outcome.exit_code(), 0);
    assert_ne!(ran.column("initiator"), [5]);
    assert!(ran.err.contains("worker 5 has failed: another one starts"), "{}", ran.err);
}

#[test]
fn sleeping_workers_are_not_taken_for_failed() {
    // The pause is nearly as long as the send timeout, but a worker also takes messages during its pause.
    let flags = Flags { worker_sleep: Some(140), send_timeout: Some(150), ..quick(2) };
    let ran = ring(&Flags { ids: Some(vec![2, 9]), ..flags });
    assert_eq!(ran.outcome.exit_code(), 0);
    assert_eq!(ran.column("timed_out"), [0, 0]);
}

#[test]
fn the_pause_counts_from_the_end_of_an_election() {
    let flags = Flags { sleep: Some(60), worker_sleep: Some(5), ..quick(2) };
    let began = Instant::now();
    let ran = ring(&Flags { ids: Some(vec![4, 7, 5]), ..flags });
    let elections: f64 = ran.elections.iter().map(|e| e["duration_ms"].as_f64().unwrap()).sum();
    // The winner pauses before its number returns and again before its announcement returns.
    assert!(elections >= 2.0 * 2.0 * 5.0, "workers rest: {elections}");
    assert!(began.elapsed().as_secs_f64() * 1000.0 >= elections + 60.0);
}

#[test]
fn results_are_lines_of_text() {
    let flags = Flags { ids: Some(vec![17, 4, 99]), initiator: Some(17), ..quick(2) };
    let ran = raw(&Flags { json: false, seed: Some(5), ..flags }, &Stop::new());
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].starts_with("election 2: worker 17 started, worker 99 leads, 8 messages, "));
    assert_eq!(ran.err, "3 workers: 17 → 4 → 99 → 17 (seed 5)\n");
}

#[test]
fn quiet_prints_nothing() {
    let ran = raw(&Flags { size: Some(3), quiet: true, ..quick(1) }, &Stop::new());
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
}

#[test]
fn the_log_tells_the_story() {
    let flags = Flags { ids: Some(vec![17, 4, 99]), initiator: Some(17), ..quick(2) };
    let ran = raw(&Flags { json: false, log: true, seed: Some(5), ..flags }, &Stop::new());
    assert_eq!(ran.out, "", "the log says it all");
    let story: Vec<_> = ran.err.lines().map(|line| &line[13..]).collect();
    let untimed = |line: &str| line.rsplit_once(", ").map_or(String::new(), |(a, _)| a.into());
    assert_eq!(
        story[..6],
        [
            "INFO  [ring] 3 workers: 17 → 4 → 99 → 17 (seed 5)",
            "INFO  [ring] election 1 starts at worker 17",
            "INFO  [worker 17] calls an election and proposes itself",
            "INFO  [worker 99] proposes itself instead of 17: 99 > 17",
            "INFO  [worker 99] leads: its own number returned, so no worker has a higher one",
            "INFO  [worker 99] its announcement returned: all workers know the leader",
        ]
    );
    assert_eq!(
        untimed(story[6]),
        "INFO  [ring] election 1 is over: worker 17 started, worker 99 leads, 8 messages"
    );
    assert!(story.contains(&"INFO  [worker 99] steps down: a new election runs"));
    assert_eq!(story.last(), Some(&"INFO  [ring] stopped after 2 elections, 16 messages"));
}

#[test]
fn levels_below_info_show_configuration_messages_and_slots() {
    let logged = |level: &str, no_config_log| {
        let flags = Flags { log_level: Some(level.into()), log: true, no_config_log, ..quick(1) };
        raw(&Flags { ids: Some(vec![2, 6]), initiator: Some(2), ..flags }, &Stop::new()).err
    };
    let debug = logged("DEBUG", false);
    assert!(debug.contains("DEBUG [ring] configuration: size = 2, ids = [2, 6], "));
    assert!(debug.contains("DEBUG [worker 2] sends PROPOSE 2 to 6\n"));
    assert!(debug.contains("DEBUG [worker 6] receives PROPOSE 2 from 2\n"));
    assert!(debug.contains("DEBUG [worker 2] follows 6\n"));
    assert!(!debug.contains("TRACE"));
    assert!(!logged("1", true).contains("configuration"));
    let trace = logged("0", false);
    assert!(trace.contains("TRACE [worker 6] takes PROPOSE 2 of 2 from its slot\n"));
    assert!(trace.contains("TRACE [worker 2] handed PROPOSE 2 over to 6 in "));
}

#[test]
fn the_log_file_is_appended_to_and_may_have_the_date() {
    let file = temporary("append.log");
    std::fs::write(&file, "before\n").unwrap();
    let flags = Flags { log_file: Some(file.clone()), log_date: true, ..quick(1) };
    let ran = raw(&Flags { size: Some(2), ..flags }, &Stop::new());
    let log = std::fs::read_to_string(&file).unwrap();
    assert_eq!(ran.err, "", "the file is enough");
    let (first, rest) = log.split_once('\n').unwrap();
    assert_eq!(first, "before");
    for line in rest.lines() {
        let (date, time) = (&line[..10], &line[11..23]);
        assert!(date.matches('-').count() == 2 && time.matches(':').count() == 2, "{line}");
    }
    assert!(rest.contains("INFO  [ring] election 1 is over"));
}

#[test]
fn a_log_file_that_cannot_be_written_is_refused_before_anything_starts() {
    let flags = Flags { log_file: Some("/nowhere/at/all.log".into()), size: Some(2), ..quick(1) };
    let error = refused(&flags);
    assert_eq!(error.exit_code(), 73);
    assert!(error.to_string().starts_with("--log-file /nowhere/at/all.log: cannot write it: "));
}

#[test]
fn the_command_line_goes_before_the_config_file() {
    let file = temporary("precedence.toml");
    let text = "size = 5\nnumber_of_elections = 2\nworker-sleep = 0\nsleep = 0\njson = true\n";
    std::fs::write(&file, text).unwrap();
    let flags = Flags { config: Some(file.clone()), ..Flags::default() };
    let ran = ring(&flags);
    assert_eq!((ran.outcome.ids.len(), ran.elections.len()), (5, 2));
    let ran = ring(&Flags { size: Some(3), number_of_elections: Some(1), ..flags });
    assert_eq!((ran.outcome.ids.len(), ran.elections.len()), (3, 1));
}

#[test]
fn mistakes_in_the_config_file_are_bad_data_with_file_and_line() {
    let file = temporary("mistake.toml");
    let flags = Flags { config: Some(file.clone()), ..Flags::default() };
    let refusal = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let error = refused(&flags);
        assert_eq!(error.exit_code(), 65);
        let shown = error.to_string();
        shown.strip_prefix(&format!("{}:", file.display())).unwrap_or(&shown).to_string()
    };
    assert_eq!(refusal("\nsize = 0"), "2: size = 0: a ring needs at least 1 worker");
    assert_eq!(refusal("sise = 4"), "1: there is no key sise; did you mean size?");
    assert!(refusal("size = 3\nlog-level = 'loud'").starts_with("2: log-level = loud: expected 0"));
    let missing = Flags { config: Some("/nowhere.toml".into()), ..Flags::default() };
    assert_eq!(refused(&missing).exit_code(), 66);
}

#[test]
fn a_mistake_of_the_command_line_is_not_blamed_on_the_file() {
    let file = temporary("blame.toml");
    std::fs::write(&file, "size = 3\n").unwrap();
    let error = refused(&Flags { size: Some(0), config: Some(file), ..Flags::default() });
    assert_eq!(error.to_string(), "SIZE 0: a ring needs at least 1 worker");
    assert_eq!(error.exit_code(), 64);
}

#[test]
fn options_that_do_not_log_by_themselves_are_warned_of_once() {
    let flags = Flags { size: Some(1), log_level: Some("0".into()), quiet: true, ..quick(1) };
    let ran = raw(&flags, &Stop::new());
    let warning = "warning: --log-level alone does not log anything: add --log or --log-file\n";
    assert_eq!(ran.err, warning);
}

#[test]
fn a_signal_in_the_pause_ends_an_endless_run_at_once() {
    let stop = Stop::new();
    let flags = Flags { size: Some(3), sleep: Some(60_000), ..quick(0) };
    let began = Instant::now();
    let ran = interrupted_after(Duration::from_millis(100), 1, &flags, &stop).unwrap();
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(ran.interrupted);
    assert_eq!((ran.elections, ran.exit_code()), (1, 0));
}

#[test]
fn a_signal_in_an_election_lets_it_finish() {
    let stop = Stop::new();
    let flags = Flags { ids: Some(vec![4, 9, 2, 6]), worker_sleep: Some(150), ..quick(0) };
    let ran = interrupted_after(Duration::from_millis(150), 1, &flags, &stop).unwrap();
    assert_eq!((ran.elections, ran.unfinished, ran.exit_code()), (1, 0, 0));
}

#[test]
fn an_interrupted_election_gets_its_time_and_no_more() {
    let stop = Stop::new();
    // Three leaders fail one after the other: that takes longer than 5 workers × 150 ms.
    let flags = failing(&[5, 1, 7, 3, 9], &["9@elected", "7@elected", "5@elected"]);
    let flags = Flags { worker_sleep: Some(140), ..flags };
    let began = Instant::now();
    let ran = interrupted_after(Duration::from_millis(20), 1, &flags, &stop).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(750), "{:?}", began.elapsed());
    assert_eq!((ran.elections, ran.unfinished, ran.exit_code()), (0, 0, 0));
}

#[test]
fn a_second_signal_ends_the_run_at_once() {
    let stop = Stop::new();
    let flags = Flags { size: Some(4), worker_sleep: Some(10_000), ..quick(0) };
    let began = Instant::now();
    let error = interrupted_after(Duration::from_millis(50), 2, &flags, &stop).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(error.exit_code(), 130);
}

#[test]
fn a_closed_pipe_is_no_error() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    for json in [false, true] {
        let flags = Flags { size: Some(3), json, ..quick(0) };
        let outcome = run(&flags, &mut Closed, &mut Vec::new(), &Stop::new()).unwrap();
        assert_eq!(outcome.exit_code(), 0);
    }
}

/// The output of a run, and its outcome.
struct Raw {
    outcome: Outcome,
    out: String,
    err: String,
}

/// A run with its elections.
struct Ran {
    outcome: Outcome,
    elections: Vec<Value>,
    err: String,
}

impl Ran {
    fn column(&self, key: &str) -> Vec<u64> {
        self.elections.iter().map(|e| e[key].as_u64().unwrap()).collect()
    }
}

fn raw(flags: &Flags, stop: &Stop) -> Raw {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome = run(flags, &mut out, &mut err, stop).unwrap();
    Raw { outcome, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

fn ring(flags: &Flags) -> Ran {
    let Raw { outcome, out, err } = raw(flags, &Stop::new());
    let mut lines: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let summary = lines.pop().unwrap();
    assert_eq!(summary["type"], "summary");
    assert_eq!(summary["seed"], outcome.seed);
    assert!(lines.iter().all(|l| l["type"] == "election"));
    Ran { outcome, elections: lines, err }
}

fn refused(flags: &Flags) -> RingError {
    run(flags, &mut Vec::new(), &mut Vec::new(), &Stop::new()).unwrap_err()
}

/// A run that gets `signals` signals after `delay`.
fn interrupted_after(
    delay: Duration,
    signals: u32,
    flags: &Flags,
    stop: &Stop,
) -> Result<Outcome, RingError> {
    thread::scope(|s| {
        s.spawn(move || {
            thread::sleep(delay);
            (0..signals).for_each(|_| stop.signal());
        });
        run(flags, &mut Vec::new(), &mut Vec::new(), stop)
    })
}

/// `elections` elections without pauses, as JSON.
fn quick(elections: u64) -> Flags {
    Flags {
        number_of_elections: Some(elections),
        sleep: Some(0),
        worker_sleep: Some(0),
        json: true,
        ..Flags::default()
    }
}

/// One election in a ring where some workers fail, with a log.
fn failing(ids: &[u32], fail: &[&str]) -> Flags {
    Flags {
        ids: Some(ids.to_vec()),
        seed: Some(1),
        send_timeout: Some(150),
        fail: fail.iter().map(ToString::to_string).collect(),
        log: true,
        ..quick(1)
    }
}

/// d + 2n messages, where d is the way from the initiator to the highest id; none in a ring of one.
fn expected_messages(ids: &[u32], election: &Value) -> usize {
    let n = ids.len();
    let place = |id: u64| ids.iter().position(|i| u64::from(*i) == id).unwrap();
    let from = place(election["initiator"].as_u64().unwrap());
    let to = place(u64::from(*ids.iter().max().unwrap()));
    if n == 1 { 0 } else { (to + n - from) % n + 2 * n }
}

fn temporary(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("konklave-ring-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn a_log_file_that_takes_no_more_is_told_and_shows_in_the_status() {
    // `/dev/full` is a device that is always full.
    let flags = Flags { log: true, log_file: Some("/dev/full".into()), size: Some(3), ..quick(1) };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome = run(&flags, &mut out, &mut err, &Stop::new()).unwrap();
    assert_eq!((outcome.elections, outcome.exit_code()), (1, 74));
    let err = String::from_utf8(err).unwrap();
    assert!(err.contains("cannot write to the log file any more"), "{err}");
}
