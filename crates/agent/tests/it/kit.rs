//! Helpers: temporary folders, the command under test, and waiting for a condition.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A folder that is gone after the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Paths of sockets are short.
        let path = std::env::temp_dir().join(format!("konk-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The command with a socket.
pub(crate) fn konklave(socket: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_konklave-agent"));
    command.env("KONKLAVE_SOCKET", socket).env_remove("SHELL").stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn output(socket: &Path, arguments: &[&str]) -> Output {
    konklave(socket).args(arguments).output().expect("it starts")
}

/// Starts it, with pipes.
pub(crate) fn start(socket: &Path, arguments: &[&str]) -> Running {
    start_with(socket, arguments, &[])
}

/// Starts it with more variables in its environment.
pub(crate) fn start_with(socket: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
    Running::of(
        konklave(socket)
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    )
}

/// A process that is killed when the test ends early.
pub(crate) struct Running(Option<Child>);

impl Running {
    /// Starts any command.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self(Some(command.spawn().expect("it starts")))
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child().id()).expect("a pid")
    }

    fn child(&self) -> &Child {
        self.0.as_ref().expect("running")
    }

    pub(crate) fn child_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("running")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("it is there");
    }

    /// Waits for the end.
    pub(crate) fn output(mut self) -> Output {
        self.0.take().expect("running").wait_with_output().expect("output")
    }

    /// Waits for the end with its input open: a command that reads it ends when it is made to, not before.
    pub(crate) fn stopped(mut self) -> i32 {
        let input = self.child_mut().stdin.take();
        let end = self.end();
        drop(input);
        end.0
    }

    /// Waits for the end; the exit code, 128+n for a signal. Its input ends at once.
    pub(crate) fn end(self) -> (i32, String) {
        let output = self.output();
        (code(&output), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn code(output: &Output) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let status = output.status;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Waits until `happened`, and returns the time that took.
pub(crate) fn until(what: &str, mut happened: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
    start.elapsed()
}

/// Whether a process runs, and is not a zombie.
pub(crate) fn alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The child of a wrapper that runs a hidden command.
pub(crate) fn child_of(wrapper: i32, command: &str) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{wrapper}/task/{wrapper}/children")).ok()?;
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(|pid: &i32| {
        alive(*pid)
            && fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(command))
    })
}

/// The number in a file that a command wrote.
pub(crate) fn number(file: &str) -> i32 {
    let mut number = 0;
    until(file, || {
        let text = fs::read_to_string(file).unwrap_or_default();
        number = text.strip_suffix('\n').and_then(|text| text.parse().ok()).unwrap_or(0);
        number > 0
    });
    number
}
