//! Finds all descendants of a command in /proc, to send them SIGTERM and SIGKILL until none is left.
//!
//! The keeper and the wrapper are subreapers. So a descendant that called `setsid`, or whose parent died, is
//! still a descendant of one of them. A scan may miss a process that is forked meanwhile. So callers repeat it
//! until the keeper ends, which happens when it has no child left.
//!
//! A command may be another `lock`, with a watchdog and a keeper of its own (here called guards). If the guards
//! died before the inner command, the inner lock would be free too early. So guards are killed last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgrp, getppid};

use super::process_group::ProcessGroup;
use super::{keeper, watchdog};
use crate::clock::Moment;

/// How long guards have to end by themselves once no other process is left.
const GUARDS: Duration = Duration::from_millis(100);

/// A process, read from /proc.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// When it started, in ticks. Distinguishes it from a later process with the same number.
    started: u64,
    /// Whether it runs: a zombie does not.
    pub(super) running: bool,
}

impl Process {
    /// The process with a number.
    fn find(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Reads a line of `/proc/PID/stat`.
    pub(super) fn parse(stat: &str) -> Option<Self> {
        // The name may contain brackets itself; the last one ends it.
        let (head, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok());
        // If the first thread has ended before the others, the process is shown as a zombie but still runs.
        let threads = number(17).unwrap_or(1);
        Some(Self {
            pid: head.split_ascii_whitespace().next()?.parse().ok()?,
            parent: number(1)?,
            group: number(2)?,
            started: fields.get(19).and_then(|field| field.parse().ok()).unwrap_or_default(),
            running: !matches!(*fields.first()?, "Z" | "X" | "x") || threads > 1,
        })
    }

    /// Whether its command line is that of a watchdog or a keeper.
    fn is_guard(self) -> bool {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let mut words = line.split(|&byte| byte == 0);
        let guards = [watchdog::COMMAND, keeper::COMMAND].map(str::as_bytes);
        words.next() == Some(b"konklave") && words.next().is_some_and(|word| guards.contains(&word))
    }

    /// Signals it. Returns false if this user may not.
    fn signal(self, signal: Signal) -> bool {
        kill(Pid::from_raw(self.pid), signal) != Err(Errno::EPERM)
    }
}

/// All processes in /proc; `None` if it cannot be read.
pub(super) fn processes() -> Option<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit)
            && let Ok(stat) = fs::read_to_string(entry.path().join("stat"))
        {
            found.extend(Process::parse(&stat));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// A running descendant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Member {
    process: Process,
    /// Whether it is the watchdog or the keeper of a lock.
    guard: bool,
    /// Whether it is a descendant of a guard. Then the inner wrapper passes SIGTERM on to it.
    guarded: bool,
}

/// The descendants of a command, as its wrapper, watchdog or keeper finds them.
#[derive(Debug)]
pub(super) struct Tree {
    /// The process group in which the command was started.
    group: ProcessGroup,
    /// The keeper, in the tree of the watchdog; it is killed last.
    keeper: Option<Process>,
    /// The process whose descendants belong to the tree, besides those of the keeper.
    root: Root,
    /// Since when only guards are left.
    only_guards: Option<Moment>,
}

/// The process that adopts the descendants of a command when its keeper dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Root {
    /// This process.
    Ourselves,
    /// The parent of this process, if it still has this id.
    Parent(Pid),
}

impl Tree {
    /// The descendants of this process, whose command was started in `group`. For keeper and wrapper.
    pub(super) fn of_ours(group: ProcessGroup) -> Self {
        Self { group, keeper: None, root: Root::Ourselves, only_guards: None }
    }

    /// The descendants of the keeper, which has the number of `group`, and of `wrapper`, the parent of this
    /// process. For the watchdog.
    pub(super) fn of_parent(group: ProcessGroup, wrapper: Pid) -> Self {
        let keeper = Process::find(group.0);
        Self { group, keeper, root: Root::Parent(wrapper), only_guards: None }
    }

    /// The group in which the command was started.
    pub(super) fn group(&self) -> ProcessGroup {
        self.group
    }

    /// Whether a descendant still runs. `spared`, the watchdog, does not count.
    pub(super) fn alive(&self, spared: Option<Pid>) -> bool {
        let keeper = self.keeper.and_then(|keeper| self.same(keeper));
        keeper.is_some_and(|keeper| keeper.running)
            || self.group.alive()
            || self.members(spared).is_some_and(|(members, _)| !members.is_empty())
    }

    /// The keeper as it is now; `None` if its number belongs to another process.
    fn same(&self, keeper: Process) -> Option<Process> {
        Process::find(keeper.pid).filter(|now| now.started == keeper.started)
    }

    /// Sends SIGTERM to all. A nested wrapper passes it on to its own command.
    pub(super) fn ask(&self, spared: Option<Pid>) {
        let Some((members, _)) = self.members(spared) else {
            self.group.signal(Signal::SIGTERM);
            self.group.signal(Signal::SIGCONT);
            return;
        };
        // A stopped process handles SIGTERM only after SIGCONT.
        for signal in [Signal::SIGTERM, Signal::SIGCONT] {
            self.group.signal(signal);
            for member in &members {
                if !member.guard && !member.guarded && member.process.group != self.group.0 {
                    member.process.signal(signal);
                }
            }
        }
    }

    /// Kills all descendants that a scan finds, guards last. Returns false if this user may not signal one of them.
    /// Callers repeat it while a descendant is alive.
    pub(super) fn kill(&mut self, spared: Option<Pid>) -> bool {
        let mut permitted = self.group.signal(Signal::SIGKILL);
        let Some((members, foreign)) = self.members(spared) else { return permitted };
        let (guards, commands): (Vec<Member>, Vec<Member>) =
            members.into_iter().partition(|member| member.guard);
        let victims = match (commands.is_empty(), guards.is_empty()) {
            (false, _) => {
                self.only_guards = None;
                commands
            }
            (true, true) => return permitted,
            (true, false) => {
                let since = *self.only_guards.get_or_insert_with(Moment::now);
                if !since.after(GUARDS).passed() {
                    return permitted;
                }
                guards
            }
        };
        // A process that forks and exits all the time escapes a kill by its id. A kill of its whole process group
        // is atomic.
        let groups: BTreeSet<i32> = victims.iter().map(|victim| victim.process.group).collect();
        for group in groups.difference(&foreign) {
            let _ = killpg(Pid::from_raw(*group), Signal::SIGKILL);
        }
        for victim in victims {
            permitted &= victim.process.signal(Signal::SIGKILL);
        }
        permitted
    }

    /// The running descendants, and the process groups that contain other processes, too. `None` without /proc.
    fn members(&self, spared: Option<Pid>) -> Option<(Vec<Member>, BTreeSet<i32>)> {
        let all = processes()?;
        let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
        for &process in &all {
            children.entry(process.parent).or_default().push(process);
        }
        let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
        let mut excluded = BTreeSet::from([own]);
        excluded.extend(spared.map(Pid::as_raw));
        let mut found: Vec<Member> = Vec::new();
        let keeper = self.keeper.and_then(|keeper| self.same(keeper));
        found.extend(keeper.map(|process| Member { process, guard: true, guarded: false }));
        let mut roots: Vec<i32> = match self.root {
            Root::Ourselves => vec![own],
            // If the parent has changed, the wrapper is dead, and its number may belong to another process.
            Root::Parent(wrapper) if getppid() == wrapper => vec![wrapper.as_raw()],
            Root::Parent(_) => Vec::new(),
        };
        roots.extend(keeper.map(|keeper| keeper.pid));
        excluded.extend(&roots);
        let mut ahead: Vec<(i32, bool)> = roots.into_iter().map(|root| (root, false)).collect();
        while let Some((parent, guarded)) = ahead.pop() {
            for &process in children.get(&parent).into_iter().flatten() {
                if excluded.insert(process.pid) {
                    let guard = process.is_guard();
                    found.push(Member { process, guard, guarded });
                    // The keeper of this command is a guard, too, but its descendants are not nested.
                    let ours = process.pid == self.group.0;
                    ahead.push((process.pid, guarded || guard && !ours));
                }
            }
        }
        found.retain(|member| member.process.running);
        let commands: BTreeSet<i32> =
            found.iter().filter(|m| !m.guard).map(|member| member.process.pid).collect();
        let others = all.iter().filter(|process| !commands.contains(&process.pid));
        let mut foreign: BTreeSet<i32> = others.map(|process| process.group).collect();
        foreign.insert(getpgrp().as_raw());
        Some((found, foreign))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_line_is_parsed_and_zombies_do_not_run() {
        let process = |stat| Process::parse(stat).map(|p| (p.pid, p.parent, p.group, p.running));
        assert_eq!(process("12 (a) b) S 1 77 77 0"), Some((12, 1, 77, true)));
        assert_eq!(process("12 (x) Z 1 77 77 0"), Some((12, 1, 77, false)));
        assert_eq!(process("12 (x"), None);
        assert_eq!(process("12 (x) S 1"), None);
        let rest = "1 77 77 0 -1 0 0 0 0 0 0 0 0 0 20 0";
        let threads = format!("12 (x) Z {rest} 3 0 4711 0");
        assert_eq!(process(&threads), Some((12, 1, 77, true)));
        assert_eq!(Process::parse(&threads).map(|p| p.started), Some(4711));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_found_and_is_no_guard() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        let found = processes().expect("a /proc").into_iter().find(|p| p.pid == own);
        let process = found.expect("we run");
        assert!(process.running && process.started > 0 && !process.is_guard());
        assert_eq!(process.parent, getppid().as_raw());
    }
}
