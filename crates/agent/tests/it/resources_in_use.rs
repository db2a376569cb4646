//! Resources that another process uses (socket, ports, data directory): reported alike, and left unchanged.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::kit::{Folder, Running, code, output, start, until};

#[test]
fn resource_in_use_has_one_exit_code_and_failed_start_leaves_nothing() {
    let folder = Folder::new();
    let (ours, theirs) = (folder.path().join("ours.sock"), folder.path().join("theirs.sock"));
    let (data, other) = (folder.file("data"), folder.file("other"));
    let member = ["agent", "--listen", "127.0.0.1:0", "--data-dir"];
    let agent = start(&theirs, &[&member[..], &[&data]].concat());
    until("there", || output(&theirs, &["status"]).status.success());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").to_string();
    let multicast = UdpSocket::bind("0.0.0.0:0").expect("a free port");
    let beacon = format!("--beacon=239.255.74.0:{}", multicast.local_addr().expect("bound").port());
    let check = |arguments: &[&str], words: [&str; 2]| {
        let output = output(&ours, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), 69, "{arguments:?}: {said}");
        for words in words {
            assert!(said.contains(words), "{arguments:?}: {words}: {said}");
        }
        assert!(!ours.exists(), "{arguments:?}: a socket is left over");
    };
    check(&["agent", "--listen", &port, "--data-dir", &other], [&port, "--listen ADDRESS"]);
    check(&[&member[..], &[&other, "--metrics", &port]].concat(), [&port, "--metrics ADDRESS"]);
    check(&["agent", "--dev", "--metrics", &port], [&port, "--metrics ADDRESS"]);
    check(&[&member[..], &[&data]].concat(), [&data, "--data-dir FOLDER"]);
    check(
        &[&member[..], &[&other, &beacon, "--founders", "1"]].concat(),
        ["239.255.74.0", "--beacon"],
    );
    let place = theirs.display().to_string();
    check(&[&member[..], &[&other, "--socket", &place]].concat(), [&place, "--socket PATH"]);
    // The other one did not notice.
    assert!(output(&theirs, &["status"]).status.success());
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.end().0, 0);
    assert!(!theirs.exists());
}

#[test]
fn socket_of_another_program_is_left_alone() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let _other = UnixDatagram::bind(&socket).expect("bound");
    let output = output(&socket, &["agent", "--dev"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 69, "{said}");
    assert!(said.contains("--socket PATH"), "{said}");
    assert!(socket.exists(), "it was another's");
}

/// A stopped agent accepts no connections. Even with a full queue of connections, its socket counts as in use.
#[test]
fn socket_of_stopped_agent_is_in_use() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let frozen = start(&socket, &["agent", "--dev"]);
    until("there", || output(&socket, &["status"]).status.success());
    frozen.signal(Signal::SIGSTOP);
    // Calls that do not wait, until there is no room for more.
    let call = || {
        let caller = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None);
        let caller = caller.expect("a socket");
        caller.set_nonblocking(true).expect("set");
        let address = socket2::SockAddr::unix(&socket).expect("short");
        caller.connect(&address).ok().map(|()| caller)
    };
    let callers: Vec<_> = std::iter::repeat_with(call).take(100_000).map_while(|c| c).collect();
    let second = output(&socket, &["agent", "--dev"]);
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(code(&second) == 69 && said.contains("another agent listens"), "{said}");
    drop(callers);
    frozen.signal(Signal::SIGCONT);
    until("there", || output(&socket, &["status"]).status.success());
}

#[test]
fn stale_socket_goes_to_one_of_agents_that_start_at_once() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    for round in 0..5 {
        drop(std::os::unix::net::UnixListener::bind(&socket).expect("bound"));
        let mut agents: Vec<_> = (0..4).map(|_| start(&socket, &["agent", "--dev"])).collect();
        let refused = |agents: &mut Vec<Running>| {
            let ends = agents.iter_mut().map(|agent| agent.child_mut().try_wait().expect("ours"));
            ends.flatten().inspect(|end| assert_eq!(end.code(), Some(69), "round {round}")).count()
        };
        until("three are refused", || refused(&mut agents) >= 3);
        until("one serves", || output(&socket, &["status"]).status.success());
        assert_eq!(refused(&mut agents), 3, "round {round}");
        drop(agents);
        fs::remove_file(&socket).expect("killed, it left it");
    }
}

#[test]
fn replaced_socket_is_not_removed_at_the_end() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let first = start(&socket, &["agent", "--dev"]);
    until("there", || output(&socket, &["status"]).status.success());
    fs::remove_file(&socket).expect("there");
    let second = start(&socket, &["agent", "--dev"]);
    until("there", || output(&socket, &["status"]).status.success());
    first.signal(Signal::SIGTERM);
    assert_eq!(first.end().0, 0);
    assert!(output(&socket, &["status"]).status.success(), "it was the second one's");
    second.signal(Signal::SIGTERM);
    assert_eq!(second.end().0, 0);
    assert!(!socket.exists());
}

#[test]
fn agent_out_of_file_descriptors_logs_it_rarely_and_recovers() {
    let folder = Folder::new();
    let (socket, log) = (folder.path().join("agent.sock"), folder.file("log"));
    let script = format!(
        "ulimit -n 24; exec {} agent --listen 127.0.0.1:0 --data-dir {} 2> {log}",
        env!("CARGO_BIN_EXE_konklave-agent"),
        folder.file("data")
    );
    let mut agent = Command::new("sh")
        .args(["-c", &script])
        .env("KONKLAVE_SOCKET", &socket)
        .spawn()
        .expect("it starts");
    until("there", || output(&socket, &["status"]).status.success());
    let told = || {
        let log = fs::read_to_string(&log).expect("written");
        log.matches("cannot accept a client").count()
    };
    let clients: Vec<_> =
        (0..60).map(|_| UnixStream::connect(&socket).expect("it listens")).collect();
    until("told", || told() > 0);
    std::thread::sleep(Duration::from_secs(1));
    let times = told();
    drop(clients);
    until("served again", || output(&socket, &["status"]).status.success());
    agent.kill().expect("ours");
    agent.wait().expect("dead");
    assert_eq!(times, 1);
}
