//! `lock` and `elect` as real processes, against a service in memory.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use konklave_agent::clock::Moment;
use nix::sys::signal::Signal;

use crate::fake::Fake;
use crate::kit::{Folder, alive, child_of, code, konklave, number, output, start, until};

#[test]
fn exit_code_is_that_of_the_command() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    for (arguments, expected) in [
        (&["lock", "a", "--", "true"][..], 0),
        (&["lock", "a", "true"], 0),
        (&["lock", "a", "--", "sh", "-c", "exit 7"], 7),
        (&["lock", "a", "-c", "exit 8"], 8),
        (&["lock", "a", "--", "sh", "-c", "kill -9 $$"], 137),
        (&["lock", "a", "--", "no-such-command-anywhere"], 127),
        (&["lock", "a", "--", "/etc/passwd"], 126),
        (&["elect", "a", "--", "sh", "-c", "exit 9"], 9),
        (&["lock", "", "--", "true"], 64),
        (&["lock", "a", "-E", "600", "--", "true"], 64),
        (&["lock", "a", "-n", "-w", "1", "--", "true"], 64),
        (&["lock", "a", "-w", "soon", "--", "true"], 64),
    ] {
        let output = output(&socket, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), expected, "{arguments:?}: {said}");
    }
    assert_eq!(fake.holders("a"), [0; 0]);
}

#[test]
fn nested_command_finds_only_its_own_grant() {
    let folder = Folder::new();
    let (_fake, socket) = Fake::serve(folder.path());
    let program = env!("CARGO_BIN_EXE_konklave-agent");
    let tell = "echo lock=$KONKLAVE_LOCK election=$KONKLAVE_ELECTION token=$KONKLAVE_TOKEN";
    for (arguments, expected) in [
        (["lock", "out", "--", program, "elect", "in", "-c", tell], "lock= election=in token="),
        (["elect", "out", "--", program, "lock", "in", "-c", tell], "lock=in election= token="),
    ] {
        let output = output(&socket, &arguments);
        let said = String::from_utf8_lossy(&output.stdout);
        let token = said.trim_end().strip_prefix(expected);
        assert!(token.is_some_and(|token| token.parse::<u64>().is_ok()), "{arguments:?}: {said}");
    }
}

#[test]
fn later_flag_overrides_earlier_one_as_with_flock() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let reader = start(&socket, &["lock", "-s", "a", "--", "cat"]);
    until("it reads", || fake.holders("a").len() == 1);
    for (arguments, expected) in [
        (&["lock", "-x", "-x", "b", "--", "true"][..], 0),
        (&["lock", "-x", "-e", "--exclusive", "b", "--", "true"], 0),
        (&["lock", "-n", "-n", "b", "--", "true"], 0),
        (&["lock", "-w", "9", "-w", "0.1", "-E", "3", "-E", "4", "a", "--", "true"], 4),
        (&["lock", "-n", "-s", "-s", "a", "--", "true"], 0),
        (&["lock", "-n", "-x", "-s", "a", "--", "true"], 0),
        (&["lock", "-n", "-s", "-x", "a", "--", "true"], 75),
        (&["lock", "-n", "b", "--", "sh", "-c", "exit $#", "sh", "-n", "-n"], 2),
        (&["lock", "-x", "--slots", "2", "b", "--", "true"], 64),
        (&["lock", "-s", "--slots", "2", "b", "--", "true"], 64),
    ] {
        let output = output(&socket, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), expected, "{arguments:?}: {said}");
    }
    drop(reader);
}

#[test]
fn standby_without_an_agent_reports_it_once() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let standby = start(&socket, &["elect", "--again", "a", "--", "true"]);
    std::thread::sleep(Duration::from_millis(3500));
    let (_fake, _) = Fake::serve(folder.path());
    let (code, said) = standby.end();
    assert_eq!(code, 0, "{said}");
    assert_eq!(said.matches("no agent listens").count(), 1, "{said}");
}

#[test]
fn command_gets_its_flags_stdin_and_environment() {
    let folder = Folder::new();
    let (_fake, socket) = Fake::serve(folder.path());
    let script = "cat; echo \"$KONKLAVE_LOCK/$KONKLAVE_NODE/$1 $2\"; test -n \"$KONKLAVE_DEADLINE\" && test \"$KONKLAVE_TOKEN\" -gt 0";
    let mut child = konklave(&socket)
        .args(["lock", "a name", "sh", "-c", script, "x", "-n", "--timeout"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("a pipe").write_all(b"given\n").expect("written");
    let output = child.wait_with_output().expect("output");
    assert_eq!(code(&output), 0);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "given\na name/fake/-n --timeout\n");
}

#[test]
fn command_inherits_no_descriptor_of_the_wrapper() {
    let folder = Folder::new();
    let (_fake, socket) = Fake::serve(folder.path());
    let output = output(&socket, &["lock", "a", "--", "ls", "/proc/self/fd"]);
    // As many as without the wrapper: stdin, stdout, stderr, the folder it reads, and those the test inherited.
    let plain = std::process::Command::new("ls").arg("/proc/self/fd").output().expect("ls");
    assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&plain.stdout));
}

#[test]
fn missing_agent_is_reported_with_the_command_that_starts_one() {
    let folder = Folder::new();
    let output = output(&folder.path().join("none.sock"), &["lock", "a", "--", "true"]);
    assert_eq!(code(&output), 69);
    assert!(String::from_utf8_lossy(&output.stderr).contains("konklave agent --dev"));
}

#[test]
fn lock_waits_and_with_n_fails_at_once() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let mut first = start(&socket, &["lock", "a", "--", "cat"]);
    until("held", || fake.holders("a").len() == 1);
    assert_eq!(code(&output(&socket, &["lock", "-n", "a", "--", "true"])), 75);
    assert_eq!(code(&output(&socket, &["lock", "-n", "-E", "3", "a", "--", "true"])), 3);
    assert_eq!(code(&output(&socket, &["lock", "-n", "-E", "0", "a", "--", "false"])), 0);
    let begin = Instant::now();
    let waited = output(&socket, &["lock", "-w", "0.3", "a", "--", "true"]);
    assert_eq!(code(&waited), 75);
    assert!(begin.elapsed() >= Duration::from_millis(300), "{:?}", begin.elapsed());
    assert!(String::from_utf8_lossy(&waited.stderr).contains("not obtained within 0.3 s"));
    let second = start(&socket, &["lock", "a", "--", "true"]);
    until("in the queue", || fake.waiting("a") == 1);
    drop(first.child_mut().stdin.take());
    assert_eq!(first.end().0, 0);
    assert_eq!(second.end().0, 0);
}

#[test]
fn readers_share() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let mut readers: Vec<_> =
        (0..3).map(|_| start(&socket, &["lock", "-s", "a", "--", "cat"])).collect();
    until("all three", || fake.holders("a").len() == 3);
    assert_eq!(code(&output(&socket, &["lock", "-n", "-x", "a", "--", "true"])), 75);
    for reader in &mut readers {
        drop(reader.child_mut().stdin.take());
    }
    for reader in readers {
        assert_eq!(reader.end().0, 0);
    }
}

#[test]
fn a_killed_wrapper_takes_its_whole_group_along_before_the_lock_is_free() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let (shell, grandchild) = (folder.file("shell"), folder.file("grandchild"));
    // Both refuse to end when asked.
    let script = format!(
        "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > {grandchild}; while :; do sleep 1; done' & \
         echo $$ > {shell}; while :; do sleep 1; done"
    );
    let wrapper = start(&socket, &["lock", "a", "-c", &script]);
    let (shell, grandchild) = (number(&shell), number(&grandchild));
    wrapper.signal(Signal::SIGKILL);
    let killed = Moment::now();
    until("free", || fake.holders("a").is_empty());
    let took = fake.ended("a").expect("it ended").since(killed);
    // Dead before it was free, not a little later.
    assert!(!alive(shell) && !alive(grandchild));
    eprintln!("kill -9 of the wrapper to free: {took:?}");
    assert!(took < Duration::from_millis(500), "{took:?}");
}

#[test]
fn killed_wrapper_leaves_the_queue() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let mut first = start(&socket, &["lock", "a", "--", "cat"]);
    until("held", || fake.holders("a").len() == 1);
    let second = start(&socket, &["lock", "a", "--", "touch", &folder.file("never")]);
    until("in the queue", || fake.waiting("a") == 1);
    second.signal(Signal::SIGKILL);
    until("gone from the queue", || fake.waiting("a") == 0);
    drop(first.child_mut().stdin.take());
    assert_eq!(first.end().0, 0);
    assert!(!folder.path().join("never").exists());
}

#[test]
fn a_stopped_wrapper_loses_the_lock_and_the_command_is_dead_before_the_deadline() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let pid = folder.file("pid");
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.05; done");
    let arguments = ["lock", "--ttl", "1", "--grace", "0.2", "a", "-c", &script];
    let wrapper = start(&socket, &arguments);
    let pid = number(&pid);
    std::thread::sleep(Duration::from_millis(400));
    wrapper.signal(Signal::SIGSTOP);
    let stopped = Moment::now();
    until("dead", || !alive(pid));
    let died = Moment::now();
    // The session has not ended yet, so the lock is still held.
    assert_eq!(fake.holders("a").len(), 1);
    until("free", || fake.holders("a").is_empty());
    let free = fake.ended("a").expect("it ended");
    assert!(died < free, "the command outlived the lock");
    assert!(free.since(stopped) < Duration::from_secs(2), "{:?}", free.since(stopped));
    wrapper.signal(Signal::SIGCONT);
    let (code, said) = wrapper.end();
    assert_eq!(code, 76, "{said}");
    // The agent was reachable: the wrapper was stopped.
    assert!(said.contains("not renewed in time"), "{said}");
}

#[test]
fn command_that_handles_sigterm_ends_in_order() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let (ready, tidy) = (folder.file("ready"), folder.file("tidy"));
    let script = format!(
        "trap 'echo tidy >> {tidy}; exit 0' TERM; echo 1 > {ready}; while :; do sleep 0.05; done"
    );
    let wrapper = start(&socket, &["lock", "a", "-c", &script]);
    number(&ready);
    fake.take_away("a", "an operator took it");
    let (code, said) = wrapper.end();
    assert_eq!(code, 76);
    assert!(said.contains("an operator took it"), "{said}");
    // Asked once: a second request is for the impatient.
    assert_eq!(fs::read_to_string(tidy).expect("written"), "tidy\n");
}

#[test]
fn command_that_ignores_sigterm_is_killed_after_the_grace() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let pid = folder.file("pid");
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.05; done");
    let wrapper = start(&socket, &["lock", "--grace", "0.3", "a", "-c", &script]);
    let pid = number(&pid);
    fake.take_away("a", "revoked");
    let took = until("dead", || !alive(pid));
    assert!(took >= Duration::from_millis(250) && took < Duration::from_secs(3), "{took:?}");
    assert_eq!(wrapper.end().0, 76);
}

#[test]
fn a_lease_that_is_not_renewed_ends_the_command_in_time() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let pid = folder.file("pid");
    fake.lease(Duration::from_millis(800));
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.05; done");
    let wrapper = start(&socket, &["lock", "a", "-c", &script]);
    let pid = number(&pid);
    std::thread::sleep(Duration::from_millis(1500));
    assert!(alive(pid), "renewed, it goes on");
    // As if the member had lost its majority: what was promised last stays, nothing is added.
    fake.lease(Duration::ZERO);
    let took = until("dead", || !alive(pid));
    assert!(took < Duration::from_millis(800), "{took:?}");
    assert_eq!(wrapper.end().0, 76);
}

#[test]
fn signals_reach_the_command_and_end_the_wait() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let (ready, got) = (folder.file("ready"), folder.file("got"));
    let script = format!(
        "trap 'echo usr1 >> {got}' USR1; trap 'exit 5' TERM; echo 1 > {ready}; \
         while :; do sleep 0.05; done"
    );
    let holder = start(&socket, &["lock", "a", "-c", &script]);
    number(&ready);
    holder.signal(Signal::SIGUSR1);
    until("passed on", || fs::read_to_string(&got).is_ok_and(|text| text == "usr1\n"));
    for (signal, expected) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
        (Signal::SIGUSR1, 138),
        (Signal::SIGUSR2, 140),
        (Signal::SIGALRM, 142),
    ] {
        let waiter = start(&socket, &["lock", "a", "--", "true"]);
        until("in the queue", || fake.waiting("a") == 1);
        waiter.signal(signal);
        assert_eq!(waiter.end().0, expected);
        until("gone from the queue", || fake.waiting("a") == 0);
    }
    holder.signal(Signal::SIGTERM);
    assert_eq!(holder.end().0, 5);
}

#[test]
fn descendants_left_running_end_before_the_lock_is_free() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let pid = folder.file("pid");
    let script =
        format!("sh -c 'echo $$ > {pid}; exec sleep 100' & while ! test -s {pid}; do :; done");
    let output = output(&socket, &["lock", "a", "-c", &script]);
    assert_eq!(code(&output), 0);
    assert!(!alive(number(&pid)));
    assert!(fake.holders("a").is_empty());
}

#[test]
fn daemon_that_the_command_leaves_behind_ends_before_the_lock_is_free() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let (pid, tidy) = (folder.file("pid"), folder.file("tidy"));
    let daemon = format!(
        "trap \"echo 1 > {tidy}; exit\" TERM; echo $$ > {pid}; while :; do sleep 0.01; done"
    );
    let script = format!(
        "(setsid sh -c '{daemon}' >/dev/null 2>&1 &); while ! test -s {pid}; do sleep 0.01; done; exit 3"
    );
    let output = output(&socket, &["lock", "a", "-c", &script]);
    assert_eq!(code(&output), 3);
    assert!(!alive(number(&pid)));
    // It was asked first.
    assert_eq!(number(&tidy), 1);
    assert!(fake.holders("a").is_empty());
}

#[test]
fn killed_keeper_ends_the_command_and_the_wrapper() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let pid = folder.file("pid");
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.05; done");
    let wrapper = start(&socket, &["lock", "a", "-c", &script]);
    let pid = number(&pid);
    let keeper = child_of(wrapper.pid(), "lock-keeper").expect("a keeper");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(keeper), Signal::SIGKILL).expect("there");
    let (code, said) = wrapper.end();
    assert_eq!(code, 137, "{said}");
    assert!(said.contains("(lock-keeper) was killed"), "{said}");
    assert!(!alive(pid) && fake.holders("a").is_empty());
}

#[test]
fn a_killed_watchdog_is_replaced() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let pid = folder.file("pid");
    let script = format!("echo $$ > {pid}; while :; do sleep 0.05; done");
    let wrapper = start(&socket, &["lock", "a", "-c", &script]);
    let pid = number(&pid);
    let old = watchdog_of(wrapper.pid()).expect("a watchdog");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(old), Signal::SIGKILL).expect("there");
    until("a new one", || watchdog_of(wrapper.pid()).is_some_and(|new| new != old));
    wrapper.signal(Signal::SIGKILL);
    until("dead", || !alive(pid));
    until("free", || fake.holders("a").is_empty());
}

#[test]
fn a_watchdog_that_is_killed_while_its_wrapper_waits_is_replaced() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let mut holder = start(&socket, &["lock", "a", "--", "cat"]);
    until("held", || fake.holders("a").len() == 1);
    let pid = folder.file("pid");
    let script = format!("echo $$ > {pid}; while :; do sleep 0.05; done");
    let waiter = start(&socket, &["lock", "a", "-c", &script]);
    until("waits", || fake.waiting("a") == 1);
    let old = watchdog_of(waiter.pid()).expect("a watchdog");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(old), Signal::SIGKILL).expect("there");
    until("gone", || !alive(old));
    drop(holder.child_mut().stdin.take());
    assert_eq!(holder.end().0, 0);
    // It has the lock, and a new watchdog.
    let pid = number(&pid);
    assert!(watchdog_of(waiter.pid()).is_some_and(|new| new != old));
    waiter.signal(Signal::SIGKILL);
    until("dead", || !alive(pid));
    until("free", || fake.holders("a").is_empty());
}

/// The watchdog among the children of a wrapper.
fn watchdog_of(wrapper: i32) -> Option<i32> {
    child_of(wrapper, "lock-watchdog")
}

#[test]
fn command_dies_if_wrapper_and_watchdog_are_killed_at_once() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let pid = folder.file("pid");
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.05; done");
    let wrapper = start(&socket, &["lock", "a", "-c", &script]);
    let pid = number(&pid);
    let watchdog = watchdog_of(wrapper.pid()).expect("a watchdog");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(watchdog), Signal::SIGSTOP).expect("there");
    wrapper.signal(Signal::SIGKILL);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(watchdog), Signal::SIGKILL).expect("there");
    until("dead", || !alive(pid));
    until("free", || fake.holders("a").is_empty());
}

#[test]
fn without_a_command_the_token_is_printed_and_held_until_a_signal() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let wrapper = start(&socket, &["lock", "a"]);
    until("held", || fake.holders("a").len() == 1);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(fake.holders("a").len(), 1);
    wrapper.signal(Signal::SIGTERM);
    assert_eq!(wrapper.end().0, 143);
    until("free", || fake.holders("a").is_empty());
}

#[test]
fn elect_again_stands_by_when_it_lost() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let terms = folder.file("terms");
    let script = format!("echo $KONKLAVE_ELECTION $KONKLAVE_TOKEN >> {terms}; exec sleep 100");
    let leader = start(&socket, &["elect", "--again", "boss", "-c", &script]);
    let count = || fs::read_to_string(&terms).map_or(0, |text| text.lines().count());
    until("first term", || count() == 1);
    fake.take_away("boss", "step down");
    until("second term", || count() == 2);
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.end().0, 143);
    let text = fs::read_to_string(&terms).expect("written");
    let tokens: Vec<u64> =
        text.lines().filter_map(|l| l.strip_prefix("boss ")?.parse().ok()).collect();
    assert!(tokens.len() == 2 && tokens[0] < tokens[1], "{text}");
}

#[test]
fn elect_again_waits_for_an_agent_that_is_not_there() {
    let folder = Folder::new();
    let term = folder.file("term");
    let script = format!("echo 1 > {term}; exec sleep 100");
    let socket = folder.path().join("agent.sock");
    let leader = start(&socket, &["elect", "--again", "boss", "-c", &script]);
    let impatient = start(&socket, &["elect", "--again", "boss", "-c", &script]);
    std::thread::sleep(Duration::from_millis(300));
    impatient.signal(Signal::SIGTERM);
    assert_eq!(impatient.end().0, 143);
    let (_fake, _) = Fake::serve(folder.path());
    number(&term);
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.end().0, 143);
}

/// Runs a command line on a terminal of its own, where `typed` is typed; what it shows, and the exit code.
fn on_a_terminal(socket: &std::path::Path, line: &str, typed: &[u8]) -> Option<(String, i32)> {
    let child = std::process::Command::new("script")
        .args(["-qec", line, "/dev/null"])
        .env("KONKLAVE_SOCKET", socket)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: no terminal here (it needs script of util-linux)");
        return None;
    };
    let mut keys = child.stdin.take().expect("a pipe");
    // Input before the command has started would go to the shell.
    std::thread::sleep(Duration::from_millis(700));
    keys.write_all(typed).expect("typed");
    std::thread::sleep(Duration::from_millis(300));
    drop(keys);
    let output = child.wait_with_output().expect("output");
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), code(&output)))
}

#[test]
fn command_on_a_terminal_gets_input_and_control_c() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let program = env!("CARGO_BIN_EXE_konklave-agent");
    let line = format!("{program} lock a -- sh -c 'read word; echo got $word; exit 3'");
    let Some((shown, code)) = on_a_terminal(&socket, &line, b"hello\n") else { return };
    assert!(shown.contains("got hello"), "{shown}");
    assert_eq!(code, 3, "{shown}");
    let line = format!("{program} lock a -- sleep 100");
    let (shown, code) = on_a_terminal(&socket, &line, b"\x03").expect("as before");
    assert_eq!(code, 130, "{shown}");
    until("free", || fake.holders("a").is_empty());
}

#[test]
fn changed_time_to_live_is_reported() {
    let folder = Folder::new();
    let (_fake, socket) = Fake::serve(folder.path());
    for (ttl, told) in [
        ("50ms", "--ttl is 0.2 s instead of 0.05 s, the agent's minimum"),
        ("2h", "--ttl is 600 s instead of 7200 s, the agent's maximum"),
        ("1", ""),
    ] {
        let output = output(&socket, &["lock", "--ttl", ttl, "a", "--", "true"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), 0, "{ttl}: {said}");
        assert!(said.contains(told), "{ttl}: {said}");
        assert_eq!(said.is_empty(), told.is_empty(), "{ttl}: {said}");
    }
}
