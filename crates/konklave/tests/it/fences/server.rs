//! A private PostgreSQL server for a test, on a socket in its own directory.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getuid, kill_process};

/// A server that ends with the test, with its directory.
pub(super) struct Server {
    programs: PathBuf,
    folder: PathBuf,
    process: Option<Child>,
}

/// The newest installed version, and its directory on Debian.
fn newest() -> Option<(u32, PathBuf)> {
    let entries = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let versions = entries.filter_map(|entry| {
        let version = entry.file_name().to_str()?.parse().ok()?;
        Some((version, entry.path().join("bin")))
    });
    versions.filter(|(_, programs)| programs.join("postgres").is_file()).max()
}

/// Debian's user for it: the server refuses to run as root.
fn user() -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut ids = line.split(':').skip(2).map(str::parse);
    Some((ids.next()?.ok()?, ids.next()?.ok()?))
}

impl Server {
    /// A server, whose databases have the given locale; `None`, with a note on stderr, if none is installed.
    pub(super) fn new(language: Option<&str>) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Some((version, programs)) = newest() else {
            eprintln!("skipped: postgresql is not installed");
            return None;
        };
        if version < 15 && language.is_some() {
            eprintln!("skipped: postgresql {version} knows only the languages of the system");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Socket paths are short.
        let name = format!("konk-pg-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let mut server = Self { programs, folder, process: None };
        if getuid().is_root() {
            let (uid, gid) = user().expect("there is a user postgres");
            chown(&server.folder, Some(uid), Some(gid)).expect("its folder");
        }
        let mut initdb = server.program("initdb");
        initdb.args([
            "-A",
            "trust",
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ]);
        if let Some(language) = language {
            initdb.args(["--locale-provider=icu", &format!("--icu-locale={language}")]);
        }
        let made = initdb.arg("-D").arg(server.folder.join("data")).output().expect("initdb");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        server.start();
        Some(server)
    }

    /// One of its programs, run as a user that may; it ends with the test, however that ends.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "QUIT"]).current_dir(&self.folder);
        if let Some((uid, gid)) = user().filter(|_| getuid().is_root()) {
            command.args([&format!("--reuid={uid}"), &format!("--regid={gid}"), "--clear-groups"]);
        }
        command.arg(self.programs.join(name));
        command
    }

    fn start(&mut self) {
        let log = self.folder.join("log");
        let mut postgres = self.program("postgres");
        postgres.arg("-D").arg(self.folder.join("data")).arg("-k").arg(&self.folder);
        postgres.args(["-c", "listen_addresses=", "-c", "fsync=off"]);
        let errors = fs::File::create(&log).expect("a log");
        let started = postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn();
        self.process = Some(started.expect("the server starts"));
        let start = Instant::now();
        while !self.psql().args(["-c", "SELECT 1"]).output().expect("psql").status.success() {
            let log = fs::read_to_string(&log).unwrap_or_default();
            assert!(start.elapsed() < Duration::from_secs(60), "no server: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its client, which prints rows and numbers of changed rows.
    fn psql(&self) -> Command {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-A", "-t", "-U", "postgres", "-d", "postgres", "-h"]).arg(&self.folder);
        psql
    }

    /// A session, until it is dropped.
    pub(super) fn session(&self) -> Session {
        let mut psql = self.psql();
        let started = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = started.expect("psql");
        let input = process.stdin.take().expect("piped");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        Session { process, input, output }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Immediate, but removes its shared memory.
            let _ = kill_process(Pid::from_child(&process), Signal::QUIT);
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A client session.
pub(super) struct Session {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    /// Sends a statement without waiting for the answer.
    pub(super) fn say(&mut self, text: &str) {
        // The marker printed after it shows the end of the answer.
        writeln!(self.input, "{text}\n\\echo ---").expect("psql listens");
    }

    /// The lines of the answer.
    pub(super) fn hear(&mut self) -> Vec<String> {
        let lines = (&mut self.output).lines().map(|line| line.expect("text"));
        lines.take_while(|line| line != "---").collect()
    }

    pub(super) fn ask(&mut self, text: &str) -> Vec<String> {
        self.say(text);
        self.hear()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
