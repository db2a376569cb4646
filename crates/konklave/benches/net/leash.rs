//! Supervised peer servers: whatever happens to the bench, none of them remains.
//!
//! A process of ours starts the server and waits for the end of its standard input. That comes when the bench
//! releases the server, panics, or is interrupted or killed. Then the server is stopped and its directory
//! removed.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::report::{Report, measures};

/// How long a server has to stop in order.
const GRACE: Duration = Duration::from_secs(3);

/// `net leash FOLDER PROGRAM [ARG...]`.
pub(crate) fn run(args: &[String]) {
    let [folder, program, rest @ ..] = args else { panic!("leash FOLDER PROGRAM [ARG...]") };
    let folder = PathBuf::from(folder);
    let log = fs::File::create(folder.join("log")).expect("its folder is there");
    let errors = log.try_clone().expect("a file can be had twice");
    let server = Command::new(program)
        .args(rest)
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .process_group(0)
        .spawn();
    if let Ok(server) = server {
        println!("{}", server.id());
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        stop(server);
    }
    let _ = fs::remove_dir_all(&folder);
    // The last one removes the common directory.
    let _ = folder.parent().map(fs::remove_dir);
}

/// In order if possible, so that it leaves nothing in the kernel; otherwise by force.
fn stop(mut server: Child) {
    let pid = Pid::from_child(&server);
    let _ = kill_process(pid, Signal::INT);
    let end = Instant::now() + GRACE;
    while Instant::now() < end && matches!(server.try_wait(), Ok(None)) {
        sleep(Duration::from_millis(5));
    }
    let _ = kill_process_group(pid, Signal::KILL);
    let _ = server.wait();
}

/// A directory for several servers, in memory if possible: no peer should wait for this disk.
pub(crate) fn folder(name: &str) -> io::Result<PathBuf> {
    let memory = Path::new("/dev/shm");
    let chosen = std::env::var_os("TMPDIR").is_some();
    let base = if memory.is_dir() && !chosen { memory.into() } else { std::env::temp_dir() };
    let folder = base.join(format!("konklave-bench-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A supervised server.
pub(crate) struct Leashed {
    leash: Child,
    pid: Pid,
}

impl Leashed {
    /// Starts `command` with its own directory, which exists already.
    pub(crate) fn start(folder: &Path, command: &Command) -> io::Result<Self> {
        let mut leash = Command::new(std::env::current_exe()?)
            .arg("leash")
            .arg(folder)
            .arg(command.get_program())
            .args(command.get_args())
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // An interrupt of the bench does not reach this process.
            .process_group(0)
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = leash.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let pid = line.trim().parse().ok().and_then(Pid::from_raw);
        let cannot = || format!("cannot start {}", command.get_program().display());
        let pid = pid.ok_or_else(|| io::Error::other(cannot()))?;
        Ok(Self { leash, pid })
    }

    /// kill -9.
    pub(crate) fn kill(&self) {
        let _ = kill_process(self.pid, Signal::KILL);
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        drop(self.leash.stdin.take());
        let _ = self.leash.wait();
    }
}

/// How long idle processes are observed; many times their sleeping period.
const IDLE: Duration = Duration::from_secs(4);

/// The cost of idle processes, each with its children: the highest of them.
pub(crate) fn idle(report: &mut Report, system: &str, pids: &[i32]) {
    // Let earlier work finish.
    sleep(Duration::from_secs(1));
    let before: Vec<f64> = pids.iter().map(|pid| busy(*pid)).collect();
    let start = Instant::now();
    sleep(IDLE);
    let span = start.elapsed().as_nanos() as f64;
    let shares = pids.iter().zip(before).map(|(pid, before)| (busy(*pid) - before) / span);
    let memory = pids.iter().map(|pid| memory(*pid)).fold(0.0, f64::max);
    report.add_cost(system, measures::MEMORY, memory, None);
    report.add_cost(system, measures::BUSY, 100.0 * shares.fold(0.0, f64::max), None);
}

/// Processor time of a process and its children so far, in nanoseconds.
fn busy(pid: i32) -> f64 {
    let all = children(pid).into_iter().chain([pid]);
    let threads =
        all.flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten());
    let times = threads.flatten().map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
    });
    times.sum()
}

/// Memory of a process in MiB. Pages shared with its children count once.
fn memory(pid: i32) -> f64 {
    let below: Vec<i32> = children(pid);
    if below.is_empty() {
        return kib(&format!("/proc/{pid}/status"), "VmRSS:") / 1024.0;
    }
    let all = below.into_iter().chain([pid]);
    all.map(|pid| kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:")).sum::<f64>() / 1024.0
}

fn children(pid: i32) -> Vec<i32> {
    let mut text = String::new();
    let file = fs::File::open(format!("/proc/{pid}/task/{pid}/children"));
    let _ = file.and_then(|mut file| file.read_to_string(&mut text));
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn kib(file: &str, line: &str) -> f64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let found = text.lines().find_map(|l| l.strip_prefix(line));
    let number = found.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or(f64::NAN)
}
