//! A renewal that reaches the wrapper after the watchdog has acted.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::fake::Fake;
use crate::kit::{Folder, alive, number, start, until};

/// Stands between a client and its agent, and can keep answers back.
#[derive(Clone, Default)]
struct Between {
    keeps: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Between {
    fn stand(folder: &Path, agent: PathBuf) -> (Self, PathBuf) {
        let (between, path) = (Self::default(), folder.join("between.sock"));
        let listener = UnixListener::bind(&path).expect("a socket");
        let copy = between.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(agent) = UnixStream::connect(&agent) else { return };
                copy.pass(client, agent);
            }
        });
        (between, path)
    }

    fn pass(&self, client: UnixStream, agent: UnixStream) {
        let both = |stream: &UnixStream| stream.try_clone().expect("a handle");
        let (from_client, to_agent, asked) = (both(&client), both(&agent), self.asked.clone());
        std::thread::spawn(move || {
            copy(from_client, to_agent, || {
                asked.fetch_add(1, Ordering::SeqCst);
            });
        });
        let keeps = self.keeps.clone();
        std::thread::spawn(move || {
            copy(agent, client, || {
                while keeps.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        });
    }
}

fn copy(mut from: UnixStream, mut to: UnixStream, mut before: impl FnMut()) {
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        before();
        if to.write_all(&piece[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// The renewal is there, and unread, when the watchdog asks the command to end; the wrapper reads it
/// before the command has ended. That is lost, not a command that happened to end by SIGTERM.
#[test]
fn renewal_after_watchdog_has_acted_is_ignored() {
    let folder = Folder::new();
    let (_fake, agent) = Fake::serve(folder.path());
    let (between, socket) = Between::stand(folder.path(), agent);
    let (ready, asked) = (folder.file("ready"), folder.file("asked"));
    let script = format!(
        "trap 'echo 1 >> {asked}; sleep 0.3; trap - TERM; kill -TERM $$' TERM; echo 1 > {ready}; \
         while :; do sleep 0.02; done"
    );
    let arguments = ["lock", "--ttl", "2", "--grace", "1", "a", "-c", &script];
    let wrapper = start(&socket, &arguments);
    number(&ready);
    between.keeps.store(true, Ordering::SeqCst);
    let before = between.asked.load(Ordering::SeqCst);
    until("a sign of life", || between.asked.load(Ordering::SeqCst) > before);
    wrapper.signal(Signal::SIGSTOP);
    between.keeps.store(false, Ordering::SeqCst);
    number(&asked);
    wrapper.signal(Signal::SIGCONT);
    let (code, said) = wrapper.end();
    assert_eq!(code, 76, "{said}");
    assert_eq!(said.matches("not renewed in time").count(), 1, "{said}");
    assert_eq!(fs::read_to_string(&asked).expect("written"), "1\n", "asked once");
}

#[test]
fn reason_of_loss_is_printed_once() {
    let script = |pid: &str| format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.05; done");
    for kill in [false, true] {
        let folder = Folder::new();
        let (_fake, socket) = Fake::serve(folder.path());
        let pid = folder.file("pid");
        let arguments = ["lock", "--ttl", "1", "--grace", "0.2", "a", "-c", &script(&pid)];
        let wrapper = start(&socket, &arguments);
        let pid = number(&pid);
        wrapper.signal(Signal::SIGSTOP);
        until("dead", || !alive(pid));
        wrapper.signal(if kill { Signal::SIGKILL } else { Signal::SIGCONT });
        let (code, said) = wrapper.end();
        assert_eq!(code, if kill { 137 } else { 76 }, "{said}");
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("konklave:")).collect();
        // A wrapper that is gone can say nothing: then the watchdog does.
        assert!(lines.len() == 1 && lines[0].contains("not renewed in time"), "{said}");
    }
}
