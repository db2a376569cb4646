//! The properties: views and messages form one sequence that is the same everywhere.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{End, Fixed, Monitor, Process, ProcessId, ProcessMap, Verdict, Violation};

use super::{Bytes, Indication, Request, View, ViewId};
use crate::Setup;

/// A message of a view: who sent it, and its number there.
type Id = (ProcessId, u32);

/// The monitor of group communication.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Properties {
    /// Whether deliveries of crashed and excluded processes count, too.
    uniform: Fixed<bool>,
    views: BTreeMap<(u32, u64), View>,
    /// The view that followed each view, and the messages that were delivered before.
    closed: BTreeMap<ViewId, (ViewId, Option<Vec<Id>>)>,
    /// The messages that any process delivered in each view, in order.
    lines: BTreeMap<ViewId, Vec<Id>>,
    /// The messages sent in each view, by sender.
    sent: BTreeMap<(ViewId, ProcessId), Vec<Bytes>>,
    locals: ProcessMap<Local>,
    /// Views before this one are not judged any more: no process is in them.
    bound: ViewId,
}

/// The history of one process.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Local {
    up: bool,
    view: Option<ViewId>,
    /// Whether it has left for good.
    left: bool,
    /// Whether it has the state of the group. Without it a process delivers nothing.
    has_state: bool,
    /// How many deliveries of the present view the state that it received includes.
    start: u64,
    log: Vec<Id>,
    /// Commands that it was asked to send and has not numbered yet.
    asked: VecDeque<Bytes>,
}

/// The name of a message in verdicts.
fn name((sender, number): Id) -> String {
    format!("message {number} of {sender}")
}

/// The names of messages in verdicts.
fn row(ids: &[Id]) -> String {
    match ids {
        [] => "nothing".to_owned(),
        ids => ids.iter().map(|id| name(*id)).collect::<Vec<_>>().join(", "),
    }
}

/// The name of a view in verdicts.
fn place(view: Option<ViewId>) -> String {
    view.map_or("no view".to_owned(), |view| view.to_string())
}

fn broken(property: &'static str, detail: String) -> Verdict {
    Err(Violation::new(property, detail))
}

impl Properties {
    /// Nothing has happened yet.
    pub fn new(setup: &Setup) -> Self {
        let agreed = setup.chosen.get("delivery").is_some_and(|v| v == "agreed");
        let local = Local { up: true, ..Local::default() };
        Self {
            uniform: Fixed(!agreed),
            views: BTreeMap::new(),
            closed: BTreeMap::new(),
            lines: BTreeMap::new(),
            sent: BTreeMap::new(),
            locals: ProcessMap::new(&setup.group, local),
            bound: ViewId::default(),
        }
    }

    /// The newest view that a process installed.
    pub fn newest(&self) -> Option<&View> {
        self.views.values().next_back()
    }

    fn installed(&mut self, at: ProcessId, view: &View) -> Verdict {
        if view.find(at).is_none() {
            return broken("self-inclusion", format!("{at} installed {view} without itself"));
        }
        let last = self.locals[at].view;
        if last >= Some(view.id) {
            return broken(
                "growing views",
                format!("{at} went from {} to {}", place(last), view.id),
            );
        }
        let key = (view.id.generation, view.id.epoch);
        let known = self.views.entry(key).or_insert_with(|| view.clone());
        if known != view {
            return broken("view agreement", format!("{at} installed {view}, others {known}"));
        }
        if let Some(last) = last {
            self.moved(at, last, view.id)?;
        }
        let local = &mut self.locals[at];
        local.has_state |= view.has_member(at);
        (local.view, local.start, local.log) = (Some(view.id), 0, Vec::new());
        self.forget();
        Ok(())
    }

    /// `at` goes from view `old` to view `new`.
    fn moved(&mut self, at: ProcessId, old: ViewId, new: ViewId) -> Verdict {
        if old < self.bound {
            return Ok(());
        }
        let local = &self.locals[at];
        let (start, log) = (local.start as usize, &local.log);
        let (next, all) = self.closed.entry(old).or_insert((new, None));
        if *next != new {
            let detail = format!("{at} went from {old} to {new}, others to {next}");
            return broken("view agreement", detail);
        }
        if !local.has_state {
            return Ok(());
        }
        match all {
            None if start == 0 => *all = Some(log.clone()),
            None => {}
            Some(all) if all.get(start..) != Some(&log[..]) => {
                let (log, all) = (row(log), row(all));
                let detail = format!("{at} delivered {log} from {start} in {old}, others {all}");
                return broken("virtual synchrony", detail);
            }
            Some(_) => {}
        }
        let line = self.lines.get(&old).map_or(0, Vec::len);
        if *self.uniform && line > start + log.len() {
            let detail = format!("{at} left {old} without what another had delivered");
            return broken("uniform agreement", detail);
        }
        let (own, sent) = (log.iter().filter(|id| id.0 == at).count(), self.sent.get(&(old, at)));
        if start == 0 && sent.map_or(0, Vec::len) != own {
            return broken("self-delivery", format!("{at} left {old} without its own messages"));
        }
        Ok(())
    }

    fn delivered(
        &mut self,
        at: ProcessId,
        view: ViewId,
        position: u64,
        id: Id,
        command: &Bytes,
    ) -> Verdict {
        let local = &mut self.locals[at];
        if local.view != Some(view) {
            let detail = format!("{at} delivered {} of {view} in {}", name(id), place(local.view));
            return broken("sending view", detail);
        }
        let next = local.start + local.log.len() as u64;
        let before = local.log.iter().filter(|known| known.0 == id.0).count() as u32;
        if position != next || (local.start == 0 && id.1 != before + 1) {
            let detail =
                format!("{at} delivered {} at {position} after {}", name(id), row(&local.log));
            return broken("no gaps", detail);
        }
        local.log.push(id);
        if view < self.bound {
            return Ok(());
        }
        let sent = self.sent.get(&(view, id.0)).and_then(|sent| sent.get(id.1 as usize - 1));
        if sent != Some(command) {
            return broken("integrity", format!("{at} delivered {}, which nobody sent", name(id)));
        }
        if !*self.uniform {
            return Ok(());
        }
        let line = self.lines.entry(view).or_default();
        match line.get(position as usize) {
            Some(known) if *known != id => {
                let (id, known) = (name(id), name(*known));
                let detail =
                    format!("{at} delivered {id} at {position} in {view}, another {known}");
                return broken("total order", detail);
            }
            Some(_) => {}
            None => line.push(id),
        }
        let beyond = |all: &Vec<Id>| position as usize >= all.len();
        if self.closed.get(&view).and_then(|(_, all)| all.as_ref()).is_some_and(beyond) {
            let detail =
                format!("{at} delivered {} in {view}, which others left without it", name(id));
            return broken("uniform agreement", detail);
        }
        Ok(())
    }

    /// Forgets all views that no process is in any more.
    fn forget(&mut self) {
        let oldest = self.locals.values().filter(|l| l.up).filter_map(|l| l.view).min();
        let Some(oldest) = oldest else { return };
        self.bound = oldest.max(self.bound);
        self.closed.retain(|view, _| *view >= oldest);
        self.lines.retain(|view, _| *view >= oldest);
        self.sent.retain(|(view, _), _| *view >= oldest);
    }
}

impl<P> Monitor<P> for Properties
where
    P: Process<Request = Request<Bytes>, Indication = Indication<Bytes>>,
{
    type Tag = ();

    fn on_request(&mut self, at: ProcessId, request: &Request<Bytes>) -> Verdict {
        if let Request::Multicast(command) = request {
            self.locals[at].asked.push_back(command.clone());
        }
        Ok(())
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication<Bytes>) -> Verdict {
        match indication {
            Indication::Sent { seq } => {
                let local = &mut self.locals[at];
                let (Some(view), Some(command)) = (local.view, local.asked.pop_front()) else {
                    return broken("integrity", format!("{at} sent what it was not asked to"));
                };
                let sent = self.sent.entry((view, at)).or_default();
                sent.push(command);
                if sent.len() != *seq as usize {
                    return broken("no gaps", format!("{at} numbered a message {seq}"));
                }
                Ok(())
            }
            Indication::Refused(_) => {
                self.locals[at].asked.pop_back();
                Ok(())
            }
            Indication::Delivered { view, position, sender, seq, command } => {
                self.delivered(at, *view, *position, (*sender, *seq), command)
            }
            Indication::Installed { view, .. } => self.installed(at, view),
            Indication::State { position, .. } => {
                let local = &mut self.locals[at];
                (local.start, local.log, local.has_state) = (*position, Vec::new(), true);
                Ok(())
            }
            Indication::Excluded | Indication::Left => {
                let left = *indication == Indication::Left;
                self.locals[at] = Local { up: true, left, ..Local::default() };
                self.forget();
                Ok(())
            }
            Indication::Wedged | Indication::Blocked | Indication::StateWanted => Ok(()),
        }
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.locals[at] = Local::default();
    }

    fn on_restart(&mut self, at: ProcessId) {
        self.locals[at].up = true;
    }

    fn at_end(&self, end: &End) -> Verdict {
        let Some(view) = self.newest().filter(|_| end.quiet) else { return Ok(()) };
        // When the last members leave, the remaining processes have no next view.
        let is_over = view.members.iter().all(|m| self.locals[m.id].view.is_none())
            && view.members.iter().any(|m| self.locals[m.id].left);
        if is_over || !view.is_quorum(&end.alive, false) {
            return Ok(());
        }
        for member in view.everyone() {
            if !end.alive.contains(member.id) {
                let detail = format!("{} is dead and in the last view", member.id);
                return broken("view progress", detail);
            }
            if self.locals[member.id].view != Some(view.id) {
                let detail = format!("{} never came to the last view", member.id);
                return broken("view progress", detail);
            }
        }
        Ok(())
    }
}
