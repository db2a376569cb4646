//! The socket: allowed and rejected users, invalid frames, and sessions without keep-alives.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use konklave::Token;
use konklave::fence::FencedFile;
use konklave_agent::client::Client;
use konklave_agent::protocol::{Answer, ClaimKind, Event, Reply, Request};
use nix::sys::signal::Signal;

use crate::cluster::Cluster;
use crate::fake::Fake;
use crate::kit::{Folder, code, output, start, until};

fn frame(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("short");
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}

/// Says `bytes` to the socket; what comes back until it is closed.
fn say(socket: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn invalid_frames_are_refused_and_agent_continues() {
    let folder = Folder::new();
    let (_fake, socket) = Fake::serve(folder.path());
    let hello = r#"{"id":1,"op":"hello","protocol":1,"label":"x","ttl":1000}"#;
    assert!(say(&socket, &frame(hello)).contains("welcome"));
    let other = hello.replace("\"protocol\":1", "\"protocol\":9");
    assert!(
        say(&socket, &frame(&other)).contains("version 1 of the protocol, the client version 9")
    );
    assert!(say(&socket, &frame(r#"{"id":1,"op":"watch"}"#)).contains("hello"));
    let twice = [frame(hello), frame(&hello.replace("\"id\":1", "\"id\":2"))].concat();
    assert!(say(&socket, &twice).contains("`hello` is allowed once"));
    // Invalid frames of all kinds, then a valid one.
    assert_eq!(say(&socket, &[]), "");
    for nonsense in [&u32::MAX.to_be_bytes()[..], &frame("{"), &frame("\u{0}\u{1}")] {
        let said = say(&socket, nonsense);
        assert!(
            said.contains(r#"{"answer":"failed","kind":"usage","message":"the frame"#),
            "{said}"
        );
    }
    assert!(say(&socket, b"GET / HTTP/1.1\r\n\r\n").contains("4194304 at most"));
    let mut noise = 1_u32;
    for length in 0..200 {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                noise.to_be_bytes()[0]
            })
            .collect();
        say(&socket, &[&[0, 0, 0, length][..], &bytes].concat());
    }
    let bad = [
        r#"{"id":2,"op":"acquire","name":"","claim":{"kind":"exclusive"},"wait":0}"#,
        r#"{"id":3,"op":"release","claim":77}"#,
        r#"{"id":4,"op":"acquire","name":"a","claim":{"kind":"exclusive"},"wait":0}"#,
        r#"{"id":4,"op":"acquire","name":"b","claim":{"kind":"exclusive"},"wait":0}"#,
    ];
    let all: Vec<u8> = std::iter::once(hello).chain(bad).flat_map(frame).collect();
    let said = say(&socket, &all);
    for words in ["the name is empty", "call 77 has no claim"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(code(&output(&socket, &["lock", "-n", "a", "--", "true"])), 0);
}

#[test]
fn invalid_request_is_answered_and_session_continues() {
    let folder = Folder::new();
    let (_fake, socket) = Fake::serve(folder.path());
    let words = [
        r#"{"id":1,"op":"hello","protocol":1,"label":"x","ttl":1000}"#,
        r#"{"id":2,"op":"dance"}"#,
        r#"{"id":3,"op":"acquire","name":"a","claim":"exclusive","wait":0}"#,
        r#"{"id":4,"op":"acquire","name":"a","claim":{"kind":"slot"},"wait":0}"#,
        r#"{"id":5,"op":"why"}"#,
        r#"{"id":"six","op":"metrics"}"#,
        r#"{"id":7,"#,
        r#"{"id":8,"op":"acquire","name":"a","claim":{"kind":"exclusive"},"wait":0}"#,
    ];
    let all: Vec<u8> = words.into_iter().flat_map(frame).collect();
    let said = say(&socket, &all);
    for (id, word) in [(2, "dance"), (3, "claim"), (4, "of"), (5, "name")] {
        let start = format!(r#"{{"id":{id},"answer":"failed","kind":"usage","message":""#);
        let (_, rest) = said.split_once(&start).unwrap_or_else(|| panic!("{id}: {said}"));
        let (message, _) = rest.split_once("\"}").expect("its end");
        assert!(message.to_lowercase().contains(word), "{id}: {message}");
    }
    assert_eq!(said.matches(r#"{"answer":"failed","kind":"usage""#).count(), 2, "{said}");
    assert!(said.contains(r#"{"id":8,"answer":"granted""#), "{said}");
    // Where a frame ends is not known after a length that cannot be.
    let lost = [frame(words[0]), u32::MAX.to_be_bytes().to_vec(), frame(words[7])].concat();
    let said = say(&socket, &lost);
    assert!(said.contains("welcome") && said.contains("4194304 at most"), "{said}");
    assert!(!said.contains("granted"), "{said}");
}

#[test]
fn users_outside_the_policy_are_rejected() {
    let folder = Folder::new();
    let (_fake, socket) = Fake::serve(folder.path());
    let program = folder.file("konklave");
    fs::copy(env!("CARGO_BIN_EXE_konklave-agent"), &program).expect("a copy that others may run");
    let open = |path: &str, mode: &str| {
        assert!(Command::new("chmod").args([mode, path]).status().expect("chmod").success());
    };
    open(&folder.path().display().to_string(), "755");
    open(&program, "755");
    let as_stranger = |socket: &Path| {
        let stranger = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .args([&program, "lock", "-n", "a", "--", "true"])
            .env("KONKLAVE_SOCKET", socket)
            .output();
        stranger.ok().filter(|output| !String::from_utf8_lossy(&output.stderr).contains("setpriv"))
    };
    let Some(output) = as_stranger(&socket) else {
        eprintln!("skipped: nobody else to be here (it needs root and setpriv)");
        return;
    };
    assert_eq!(code(&output), 77, "{}", String::from_utf8_lossy(&output.stderr));
    // The mode of the socket is not enough: the agent checks the credentials from the kernel.
    open(&socket.display().to_string(), "666");
    let output = as_stranger(&socket).expect("as before");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 77, "{said}");
    assert!(said.contains("65534") && said.contains("--allow-users"), "{said}");
}

#[test]
fn repeated_rejection_is_logged_once() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let program = folder.file("konklave");
    fs::copy(env!("CARGO_BIN_EXE_konklave-agent"), &program).expect("a copy that others may run");
    Command::new("chmod").args(["755", &program, &folder.file("")]).status().expect("chmod");
    let agent = start(&socket, &["agent", "--dev", "--allow-users", "65533"]);
    until("there", || output(&socket, &["status"]).status.success());
    for _ in 0..20 {
        let stranger = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .args([&program, "status"])
            .env("KONKLAVE_SOCKET", &socket)
            .output();
        let Ok(stranger) = stranger else { return };
        if String::from_utf8_lossy(&stranger.stderr).contains("setpriv") {
            eprintln!("skipped: nobody else to be here (it needs root and setpriv)");
            return;
        }
        assert_eq!(code(&stranger), 77, "{}", String::from_utf8_lossy(&stranger.stderr));
    }
    let metrics = output(&socket, &["status", "--metrics"]);
    let metrics = String::from_utf8_lossy(&metrics.stdout).into_owned();
    agent.signal(Signal::SIGTERM);
    let (_, log) = agent.end();
    assert_eq!(log.matches("rejected a client").count(), 1, "{log}");
    assert!(
        metrics.lines().any(|line| line.contains("strangers_total") && line.ends_with(" 20")),
        "{metrics}"
    );
}

#[test]
fn client_without_keep_alives_loses_lock_and_fence_refuses_its_write() {
    let cluster = Cluster::new(3);
    let file = cluster.file("file");
    let watch = start(&cluster.socket(0), &["watch"]);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let wish = || Request::Acquire {
            name: "a".into(),
            claim: ClaimKind::Exclusive,
            wait: None,
            lease: None,
        };
        let token = |answer: Answer| match answer {
            Answer::Granted { token, until } => (token.parse::<Token>().expect("a token"), until),
            other => panic!("{other:?}"),
        };
        let ttl = Duration::from_millis(600);
        let mut paused = Client::connect(&cluster.socket(0), "paused", ttl).await.expect("there");
        let (old, until) = token(paused.call(wish()).await.expect("granted"));
        let start = Instant::now();
        let ttl = Duration::from_secs(30);
        let mut next = Client::connect(&cluster.socket(1), "next", ttl).await.expect("there");
        let (new, _) = token(next.call(wish()).await.expect("granted"));
        // Not before the deadline of the first client, and not long after it.
        assert!(until.passed(), "granted while the first was safe");
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
        assert!(new > old);
        let file = FencedFile::new(&file);
        file.write(new, b"new").expect("written").expect("the newer one");
        // It wakes, and does not know yet.
        file.write(old, b"old").expect("readable").expect_err("a write of the past");
        assert!(matches!(paused.next().await, Ok(Reply::Event(Event::Lost { .. })) | Err(_)));
    });
    // `watch`, the metrics and the log report the loss.
    let why = "its client sent no keep-alive for 0.6 s";
    let logged = format!("lost its grant: {why}");
    assert!(cluster.logged(0).contains(&logged), "{}", cluster.logged(0));
    let metrics = cluster.ask(0, &["status", "--metrics"]);
    assert!(metrics.contains("konklave_lost_total 1"), "{metrics}");
    watch.signal(Signal::SIGTERM);
    let seen = String::from_utf8_lossy(&watch.output().stdout).into_owned();
    let lost: Vec<&str> = seen.lines().filter(|line| line.contains("lost")).collect();
    assert!(matches!(lost[..], [line] if line.contains(why)), "{seen}");
}

#[test]
fn reload_changes_allowed_users_and_invalid_one_changes_nothing() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let config = folder.file("agent.toml");
    fs::write(&config, "log = 'info'\n").expect("written");
    let data = folder.file("data");
    let log = folder.file("log");
    let mut agent = Command::new(env!("CARGO_BIN_EXE_konklave-agent"))
        .args(["agent", "--config", &config, "--data-dir", &data, "--listen", "127.0.0.1:0"])
        .arg("--socket")
        .arg(&socket)
        .stderr(fs::File::create(&log).expect("a log"))
        .spawn()
        .expect("it starts");
    until("there", || output(&socket, &["status"]).status.success());
    let hang_up = |expected: &str| {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(agent.id()).expect("a pid"));
        nix::sys::signal::kill(pid, Signal::SIGHUP).expect("there");
        until(expected, || fs::read_to_string(&log).is_ok_and(|log| log.contains(expected)));
    };
    let mode = || {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(&socket).expect("there").permissions().mode() & 0o777
    };
    assert_eq!(mode(), 0o600);
    fs::write(&config, "log = 'debug'\nallow-users = ['daemon']\n").expect("written");
    hang_up("reloaded");
    // Users that the policy allows can reach the socket.
    assert_eq!(mode(), 0o666);
    fs::write(&config, "lock = 'debug'\n").expect("written");
    hang_up("reload failed");
    let doctor = || String::from_utf8_lossy(&output(&socket, &["doctor"]).stdout).into_owned();
    until("the doctor knows", || doctor().contains("FAIL reload: "));
    assert!(doctor().contains("unknown field `lock`"), "{}", doctor());
    fs::write(&config, "lease = 2\n").expect("written");
    hang_up("need a restart");
    until("the doctor is content", || !doctor().contains("reload"));
    assert_eq!(mode(), 0o600, "nobody else is named any more");
    assert!(output(&socket, &["status"]).status.success());
    agent.kill().expect("ours");
    agent.wait().expect("dead");
}

#[test]
fn folder_of_earlier_start_is_opened_for_allowed_users() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let run = folder.path().join("run");
    let socket = run.join("agent.sock");
    let config = folder.file("agent.toml");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let words = ["agent", "--dev", "--config", &config];
    let served = || until("there", || output(&socket, &["status"]).status.success());
    fs::write(&config, "").expect("written");
    let agent = start(&socket, &words);
    served();
    assert_eq!(mode(&run), 0o700);
    agent.signal(Signal::SIGTERM);
    agent.end();
    // The second run opens the folder at a reload, and the third one at its start.
    let agent = start(&socket, &words);
    served();
    assert_eq!((mode(&run), mode(&socket)), (0o700, 0o600));
    fs::write(&config, "allow-users = ['daemon']\n").expect("written");
    agent.signal(Signal::SIGHUP);
    until("opened", || (mode(&run), mode(&socket)) == (0o711, 0o666));
    agent.signal(Signal::SIGTERM);
    agent.end();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).expect("ours");
    let agent = start(&socket, &words);
    served();
    assert_eq!((mode(&run), mode(&socket)), (0o711, 0o666));
    let doctor = output(&socket, &["doctor"]);
    assert!(!String::from_utf8_lossy(&doctor.stdout).contains("way to the socket"));
    // The folder above is not the agent's to change.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("ours");
    let shut = format!("{}: only its owner can enter", folder.path().display());
    let doctor = output(&socket, &["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains(&format!("FAIL way to the socket: {shut}")), "{said}");
    agent.signal(Signal::SIGHUP);
    std::thread::sleep(Duration::from_millis(200));
    agent.signal(Signal::SIGTERM);
    let (_, log) = agent.end();
    assert!(log.contains(&shut), "{log}");
}

#[test]
fn watch_reports_changes_and_recordings_are_merged() {
    let cluster = Cluster::new(3);
    let mut watcher = start(&cluster.socket(0), &["watch", "--format", "json"]);
    let mut out = std::io::BufReader::new(watcher.child_mut().stdout.take().expect("a pipe"));
    // It is there when it is counted.
    cluster.until(0, "watched", |s| s["sessions"].as_u64() >= Some(2));
    std::thread::sleep(Duration::from_millis(100));
    cluster.ask(0, &["lock", "a", "--", "true"]);
    let mut line = String::new();
    while !line.contains("\"kind\":\"granted\"") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut out, &mut line).expect("a line") > 0);
    }
    assert!(line.contains("\"name\":\"a\""), "{line}");
    cluster.ask(1, &["lock", "b", "--", "true"]);
    let other = cluster.file("other.jsonl");
    cluster.ask(2, &["record", "-o", &other]);
    let second = cluster.socket(1).display().to_string();
    let merged = cluster.ask(0, &["record", "--also", &second, "--merge", &other]);
    for node in ["n0", "n1", "n2"] {
        assert!(merged.contains(&format!("\"node\":\"{node}\"")), "{node}: {merged}");
    }
    let times: Vec<f64> = merged
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("json")["at"].as_f64())
        .map(|at| at.expect("a time"))
        .collect();
    assert!(times.is_sorted(), "on one machine there is one clock");
    // The same as a run, judged by its tokens.
    assert_eq!(konklave_agent::recorder::gaps(&merged), Ok(Vec::new()));
    let run = konklave_agent::recorder::as_run(&merged, None, &[]).expect("well formed");
    let steps = run.lines().filter_map(|line| serde_json::from_str(line).ok());
    let verdict = konklave_agent::recorder::judge(&serde_json::Value::Null, steps);
    assert_eq!((verdict.grants, verdict.names, verdict.open), (2, 2, 0), "{run}");
    assert_eq!(verdict.violations, [""; 0]);
}

#[test]
fn recording_names_its_gaps() {
    let mut cluster = Cluster::new(3);
    for i in 0..3 {
        cluster.ask(i, &["lock", "a", "--", "true"]);
    }
    let (run, also) = (cluster.file("incident.run"), cluster.socket(1).display().to_string());
    cluster.kill(2);
    let dead = cluster.socket(2).display().to_string();
    let arguments = ["record", "--also", &also, "--also", &dead, "-o", &run];
    let output = output(&cluster.socket(0), &arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 69, "one agent did not answer: {said}");
    assert!(said.contains(&format!("missing: {dead}: no recording: no agent")), "{said}");
    assert!(said.contains("missing: n2: no recording"), "{said}");
    assert!(!said.contains("missing: n0") && !said.contains("missing: n1"), "{said}");
    // The same in the recording itself.
    let text = fs::read_to_string(&run).expect("what there is, is written");
    let header: serde_json::Value =
        serde_json::from_str(text.lines().next().expect("a header")).expect("json");
    let missing = header["scenario"]["missing"].to_string();
    assert!(missing.contains(&dead) && missing.contains("n2: no recording"), "{missing}");
    // To be merged later: nothing is expected to be whole.
    let alone = crate::kit::output(&cluster.socket(0), &["record"]);
    assert_eq!((code(&alone), alone.stderr.as_slice()), (0, &b""[..]));
    assert!(!alone.stdout.is_empty());
}

#[test]
fn founders_find_each_other_by_multicast_or_a_file() {
    let group = format!(
        "239.255.74.{}:{}",
        1 + std::process::id() % 250,
        20_000 + std::process::id() % 20_000
    );
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let multicast = probe.send_to(b"?", &group).is_ok();
    let folder = Folder::new();
    let addresses = crate::cluster::free_addresses(3);
    let list = folder.file("founders");
    let lines: Vec<String> = addresses.iter().map(|a| format!("{a} # one of them\n")).collect();
    fs::write(&list, lines.concat()).expect("written");
    let beacon = format!("--beacon={group}");
    for (way, flags) in
        [("file", vec!["--peers-file", &list]), ("beacon", vec![&beacon, "--founders", "3"])]
    {
        if way == "beacon" && !multicast {
            eprintln!("skipped: no multicast here");
            continue;
        }
        let agents: Vec<_> = (0..3)
            .map(|i| {
                let socket = folder.path().join(format!("{way}{i}.sock"));
                let (data, listen) = (folder.file(&format!("{way}{i}")), addresses[i].to_string());
                let mut arguments = vec!["agent", "--listen", &listen, "--data-dir", &data];
                arguments.extend(&flags);
                (start(&socket, &arguments), socket)
            })
            .collect();
        for (_, socket) in &agents {
            until(way, || {
                let output = output(socket, &["status", "--format", "json"]);
                let status: serde_json::Value =
                    serde_json::from_slice(&output.stdout).unwrap_or_default();
                status["view"]["heard"] == 3
            });
        }
        for (agent, _) in agents {
            agent.signal(Signal::SIGTERM);
            assert_eq!(agent.end().0, 0);
        }
    }
}

#[test]
fn process_that_is_no_descendant_is_refused_at_the_resource() {
    let cluster = Cluster::new(3);
    let (file, token) = (cluster.file("file"), cluster.file("token"));
    let program = env!("CARGO_BIN_EXE_konklave-agent");
    // As if another process (`systemctl`, `docker`, `at`) worked for the command: the wrapper cannot stop it.
    cluster.ask(0, &["lock", "a", "-c", &format!("echo $KONKLAVE_TOKEN > {token}")]);
    let token = fs::read_to_string(&token).expect("written");
    cluster.ask(1, &["lock", "a", "-c", &format!("echo new | {program} fence {file}")]);
    let late = output(&cluster.socket(0), &["fence", "--token", token.trim_end(), &file]);
    assert_eq!(code(&late), 76);
    assert_eq!(fs::read_to_string(&file).expect("written"), "new\n");
    // Without a token nothing is written, and a wrong one is not understood.
    assert_eq!(code(&output(&cluster.socket(0), &["fence", &file])), 64);
    assert_eq!(code(&output(&cluster.socket(0), &["fence", "--token", "x", &file])), 64);
}
