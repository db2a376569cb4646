//! All descendants of a command, found in /proc: asked to end, killed, and looked at until none is left.
//!
//! The keeper and the wrapper are subreapers, so a descendant that called `setsid`, or whose parent is
//! dead, is still below one of them. A scan may miss a process that is forked meanwhile: so callers
//! repeat it, and take the end of the keeper, which has no children left then, for the end of all.
//!
//! A command may be another `lock`, with a watchdog and a keeper of its own. If these died before the
//! inner command, the inner lock would be free too early. So such guards are killed last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgrp, getppid};

use super::group::Group;
use super::{keeper, watchdog};
use crate::clock::Moment;

/// How long guards have to end by themselves once nothing else is left.
const GUARDS: Duration = Duration::from_millis(100);

/// A process, by its line in /proc.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// When it started, in ticks: tells it from a later process with the same number.
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
        // The name may contain anything, also brackets: the last one ends it.
        let (head, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok());
        // The first thread of a process may end before the others: a zombie with threads that run.
        let threads = number(17).unwrap_or(1);
        Some(Self {
            pid: head.split_ascii_whitespace().next()?.parse().ok()?,
            parent: number(1)?,
            group: number(2)?,
            started: fields.get(19).and_then(|field| field.parse().ok()).unwrap_or_default(),
            running: !matches!(*fields.first()?, "Z" | "X" | "x") || threads > 1,
        })
    }

    /// Whether it is the watchdog or the keeper of another lock, by its command line.
    fn is_guard(self) -> bool {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let mut words = line.split(|&byte| byte == 0);
        let guards = [watchdog::COMMAND, keeper::COMMAND].map(str::as_bytes);
        words.next() == Some(b"konklave") && words.next().is_some_and(|word| guards.contains(&word))
    }

    /// Signals it; false if we may not.
    fn signal(self, signal: Signal) -> bool {
        kill(Pid::from_raw(self.pid), signal) != Err(Errno::EPERM)
    }
}

/// All processes that /proc shows; nothing if it cannot be read.
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

/// A descendant that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Member {
    process: Process,
    /// The watchdog or the keeper of a lock.
    guard: bool,
    /// Below such a guard: its own wrapper passes requests on.
    guarded: bool,
}

/// The descendants of a command, seen by one of the processes that guard it.
#[derive(Debug)]
pub(super) struct Tree {
    /// The process group in which the command was started.
    group: Group,
    /// The keeper, if it is not ourselves; it is killed last.
    keeper: Option<Process>,
    /// Whose descendants these are, besides those of the keeper.
    root: Root,
    /// Since when only guards are left.
    only_guards: Option<Moment>,
}

/// Where the descendants of a command are when its keeper is dead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Root {
    /// Below us.
    Ourselves,
    /// Below our parent, as long as this is it.
    Parent(Pid),
}

impl Tree {
    /// What is below us, and was started in `group`: for the keeper and the wrapper.
    pub(super) fn of_ours(group: Group) -> Self {
        Self { group, keeper: None, root: Root::Ourselves, only_guards: None }
    }

    /// What is below the keeper, whose number is that of the group, and below `wrapper`, our parent.
    pub(super) fn of_parent(group: Group, wrapper: Pid) -> Self {
        let keeper = Process::find(group.0);
        Self { group, keeper, root: Root::Parent(wrapper), only_guards: None }
    }

    /// The group in which the command was started.
    pub(super) fn group(&self) -> Group {
        self.group
    }

    /// Whether something still runs. `spared` is none of the command's.
    pub(super) fn alive(&self, spared: Option<Pid>) -> bool {
        let keeper = self.keeper.and_then(|keeper| self.same(keeper));
        keeper.is_some_and(|keeper| keeper.running)
            || self.group.alive()
            || self.members(spared).is_some_and(|(members, _)| !members.is_empty())
    }

    /// The keeper as it is now, unless its number is that of another process.
    fn same(&self, keeper: Process) -> Option<Process> {
        Process::find(keeper.pid).filter(|now| now.started == keeper.started)
    }

    /// Asks all to end. Another wrapper among them passes it on to its own command.
    pub(super) fn ask(&self, spared: Option<Pid>) {
        let Some((members, _)) = self.members(spared) else {
            self.group.signal(Signal::SIGTERM);
            self.group.signal(Signal::SIGCONT);
            return;
        };
        // One that is stopped hears of it only when it runs.
        for signal in [Signal::SIGTERM, Signal::SIGCONT] {
            self.group.signal(signal);
            for member in &members {
                if !member.guard && !member.guarded && member.process.group != self.group.0 {
                    member.process.signal(signal);
                }
            }
        }
    }

    /// Kills all that is found, guards last; false if we may not signal one of them. To be repeated as
    /// long as something is alive.
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
        // A process that forks and ends again and again is another one when it is to be killed. The
        // kernel kills a group as a whole.
        let groups: BTreeSet<i32> = victims.iter().map(|victim| victim.process.group).collect();
        for group in groups.difference(&foreign) {
            let _ = killpg(Pid::from_raw(*group), Signal::SIGKILL);
        }
        for victim in victims {
            permitted &= victim.process.signal(Signal::SIGKILL);
        }
        permitted
    }

    /// The descendants that run, and the process groups that have other members, too; nothing without
    /// a /proc.
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
            // Whose child we are no more is dead, and its number may be another's.
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
                    // Our own keeper is among them, too: what is below it is our command.
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
