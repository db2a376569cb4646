//! How commands, wrappers and agents end: the grace of a command, the shutdown of an agent, exit codes, and
//! agents that hang.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::cluster::Cluster;
use crate::fake::Fake;
use crate::kit::{Folder, alive, code, number, output, start, until};

fn open_to_all(path: &str, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn command_of_another_user_keeps_lock_until_it_ends() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve_for(folder.path(), &[65_534]);
    let (program, sudo) = (folder.file("konklave"), folder.file("sudo"));
    let pid = folder.file("pid");
    fs::copy(env!("CARGO_BIN_EXE_konklave-agent"), &program).expect("a copy that others may run");
    // Like `sudo`: real and effective user are root.
    let Ok(_) = fs::copy("/usr/bin/setpriv", &sudo) else {
        eprintln!("skipped: it needs setpriv");
        return;
    };
    open_to_all(&folder.path().display().to_string(), 0o755);
    open_to_all(&program, 0o755);
    open_to_all(&sudo, 0o4755);
    let script = format!("echo $$ > {pid}; exec sleep 100");
    let mut wrapper = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", &program])
        .args(["lock", "--ttl", "1", "a", "--", &sudo, "--reuid", "0", "--clear-groups"])
        .args(["sh", "-c", &script])
        .env("KONKLAVE_SOCKET", &socket)
        .stdin(Stdio::null())
        .spawn()
        .expect("setpriv is there");
    std::thread::sleep(Duration::from_secs(1));
    if !fs::exists(&pid).expect("readable") {
        let _ = wrapper.kill();
        let _ = wrapper.wait();
        eprintln!("skipped: nobody can become another here (it needs root, and setuid files)");
        return;
    }
    let pid = number(&pid);
    wrapper.kill().expect("ours");
    wrapper.wait().expect("dead");
    // Twice as long as a session lives without a sign of life.
    std::thread::sleep(Duration::from_secs(2));
    assert!(alive(pid), "nobody may kill it");
    assert_eq!(fake.holders("a").len(), 1, "free, and yet the command runs");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).expect("root may");
    until("free", || fake.holders("a").is_empty());
}

#[test]
fn clients_that_disconnect_unread_are_forgotten() {
    use std::io::Write;
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let frame = |text: &str| {
        let length = u32::try_from(text.len()).expect("short");
        [&length.to_be_bytes()[..], text.as_bytes()].concat()
    };
    let hello = frame(r#"{"id":1,"op":"hello","protocol":1,"label":"x","ttl":1000}"#);
    let status = frame(r#"{"id":2,"op":"status","prefix":"","limit":9}"#);
    for _ in 0..50 {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        stream.write_all(&[&hello[..], &status].concat()).expect("written");
    }
    assert_eq!(code(&output(&socket, &["lock", "-n", "a", "--", "true"])), 0);
    until("all gone", || fake.sessions() == 0);
}

#[test]
fn command_has_whole_grace_when_agent_leaves() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    fake.lease(Duration::from_millis(800));
    let (ready, tidy) = (folder.file("ready"), folder.file("tidy"));
    let script = format!(
        "trap 'sleep 2.5; echo 1 > {tidy}; exit 0' TERM; echo 1 > {ready}; \
         while :; do sleep 0.05; done"
    );
    let wrapper = start(&socket, &["lock", "--grace", "6", "a", "-c", &script]);
    number(&ready);
    fake.close();
    let (code, said) = wrapper.end();
    assert_eq!(code, 76, "{said}");
    assert!(said.contains("the agent is leaving"), "{said}");
    assert_eq!(number(&tidy), 1);
    // And not more than that.
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    fake.lease(Duration::from_millis(800));
    let pid = folder.file("pid");
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.05; done");
    let wrapper = start(&socket, &["lock", "--grace", "1.5", "a", "-c", &script]);
    let pid = number(&pid);
    fake.close();
    let took = until("dead", || !alive(pid));
    assert!(took > Duration::from_millis(1300) && took < Duration::from_secs(3), "{took:?}");
    assert_eq!(wrapper.end().0, 76);
}

#[test]
fn grace_is_limited_to_lease_if_leaving_agent_stops_renewing() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    fake.lease(Duration::from_millis(800));
    let pid = folder.file("pid");
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.05; done");
    let wrapper = start(&socket, &["lock", "--grace", "60", "a", "-c", &script]);
    let pid = number(&pid);
    fake.close();
    std::thread::sleep(Duration::from_millis(1200));
    assert!(alive(pid), "renewed, it has its grace");
    fake.lease(Duration::ZERO);
    let took = until("dead", || !alive(pid));
    assert!(took < Duration::from_millis(800), "{took:?}");
    assert_eq!(wrapper.end().0, 76);
}

#[test]
fn agent_that_leaves_before_its_commands_admits_no_second_holder() {
    let mut cluster = Cluster::with(3, &["--drain", "0.3", "--lease", "2"]);
    let (pid, next) = (cluster.file("pid"), cluster.file("next"));
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.01; done");
    let holder = start(&cluster.socket(0), &["lock", "--grace", "30", "a", "-c", &script]);
    let pid = number(&pid);
    let script = format!("kill -0 {pid} 2>/dev/null && echo ALIVE; echo 1 > {next}");
    let waiter = start(&cluster.socket(1), &["lock", "a", "-c", &script]);
    cluster.until(1, "one waits", |s| s["locks"][0]["waiters"][0]["node"] == "n1");
    assert_eq!(cluster.leave(0), Some(143), "not in order");
    let output = waiter.output();
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b""[..]), "two commands at once");
    assert_eq!(holder.end().0, 76);
}

#[test]
fn second_signal_ends_agent_like_a_crash() {
    let mut cluster = Cluster::with(3, &["--lease", "2"]);
    let pid = cluster.file("pid");
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.01; done");
    let holder = start(&cluster.socket(0), &["lock", "--grace", "30", "a", "-c", &script]);
    let pid = number(&pid);
    let script = format!("kill -0 {pid} 2>/dev/null && echo ALIVE; true");
    let waiter = start(&cluster.socket(1), &["lock", "a", "-c", &script]);
    cluster.until(1, "one waits", |s| s["locks"][0]["waiters"][0]["node"] == "n1");
    cluster.signal(0, Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(cluster.leave(0), Some(143));
    let output = waiter.output();
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b""[..]), "two commands at once");
    assert_eq!(holder.end().0, 76);
}

#[test]
fn client_does_not_wait_for_agent_that_hangs() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let _never_accepts = UnixListener::bind(&socket).expect("bound");
    for arguments in [&["lock", "-n", "a", "--", "true"][..], &["lock", "-w", "0.5", "a", "true"]] {
        let begin = Instant::now();
        let output = output(&socket, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), 69, "{said}");
        assert!(said.contains("does not answer"), "{said}");
        assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    }
    for (signal, expected) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let waiter = start(&socket, &["lock", "a", "--", "true"]);
        std::thread::sleep(Duration::from_millis(500));
        let begin = Instant::now();
        waiter.signal(signal);
        assert_eq!(waiter.end().0, expected);
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    }
}

#[test]
fn command_may_exit_with_76_without_a_loss() {
    let folder = Folder::new();
    let (_fake, socket) = Fake::serve(folder.path());
    let terms = folder.file("terms");
    let script = format!("echo 1 >> {terms}; test $(wc -l < {terms}) -lt 3 || exit 5; exit 76");
    let output = output(&socket, &["elect", "--again", "boss", "-c", &script]);
    assert_eq!(code(&output), 76);
    assert_eq!(fs::read_to_string(&terms).expect("written"), "1\n");
}
