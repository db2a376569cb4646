//! The run-time form: a process asks a registry for addresses when it comes up.
//!
//! The address of the registry is all that a process knows before. The first process that asks is the root. Every later
//! one gets the addresses of up to two processes that asked before it, and connects to them. An address is stale if its
//! process has crashed since. The process skips it, as `connect()` on the slide does. If a stale address leaves a
//! process without a parent, it asks again, and the answer has the address of the root. A process that suspects the root
//! asks, too: the first of these is the root of the next epoch, in which all addresses are registered anew. If a process
//! comes up again, the next epoch begins with the same root.

use konklave_process::{Context, Port, PortSet, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Edges, Message, Reign, VirtualTree};

/// The addresses that a process of the run-time form knows.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub(super) struct Contacts {
    /// The addresses it got, and those of the processes that connected to it.
    known: PortSet,
    /// The root of its epoch.
    root: Option<ProcessId>,
    /// Whether an answer of the registry is missing.
    asks: bool,
    /// At the registry: its latest epoch.
    latest: Option<u32>,
    /// At the registry: the processes that asked in that epoch, the root first.
    registered: Vec<ProcessId>,
}

/// Why a process asks the registry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Reason {
    /// It comes up.
    Up,
    /// A stale address left it without a parent.
    Stale,
    /// Its epoch is over: the root has crashed, or a message of a later epoch has arrived.
    Over,
}

impl Contacts {
    pub(super) fn waits(&self) -> bool {
        self.asks
    }

    pub(super) fn root(&self) -> Option<ProcessId> {
        self.root
    }

    pub(super) fn knows(&self, port: Port) -> bool {
        self.known.contains(port)
    }

    /// A process that connects is known from then on.
    pub(super) fn note(&mut self, port: Port) {
        self.known.insert(port);
    }

    /// The registry keeps its latest epoch over a crash, and no addresses.
    pub(super) fn restore(&mut self, saved: Option<Reign>) {
        self.latest = saved.map(|Reign(epoch)| epoch);
    }

    /// The registry answers `asker`, and registers its address.
    fn answer(
        &mut self,
        asker: ProcessId,
        (epoch, reason): (u32, Reason),
        ctx: &mut Context<'_, VirtualTree>,
    ) -> Message {
        let root = self.registered.first().copied();
        let next_root = match reason {
            // Scenario: no process notices its crash, and some wait for its answer. All of them have to connect anew.
            Reason::Up if self.registered.contains(&asker) => root,
            Reason::Over if self.latest == Some(epoch) => Some(asker),
            Reason::Up | Reason::Stale | Reason::Over => None,
        };
        let (Some(root), Some(latest), None) = (root, self.latest, next_root) else {
            return self.begin_epoch(next_root.unwrap_or(asker), asker, epoch, ctx);
        };
        let mut others = self.registered.clone();
        others.retain(|p| *p != asker);
        let is_known = others.len() < self.registered.len();
        if !is_known {
            self.registered.push(asker);
        }
        // The root has a parent to offer at any time; a second answer has it, so that there is no third.
        let first = if is_known || reason == Reason::Stale { 0 } else { draw(others.len(), ctx) };
        let first = others.remove(first);
        let second = if others.is_empty() { first } else { others[draw(others.len(), ctx)] };
        Message::Answer(latest, root, [first, second])
    }

    /// Registers `root` and `asker` only. The others may not notice the end of the last epoch, so they are told.
    fn begin_epoch(
        &mut self,
        root: ProcessId,
        asker: ProcessId,
        past: u32,
        ctx: &mut Context<'_, VirtualTree>,
    ) -> Message {
        let next = self.latest.map_or(0, |latest| latest.max(past).saturating_add(1));
        self.latest = Some(next);
        ctx.save(Reign(next));
        for p in std::mem::take(&mut self.registered) {
            if p != asker && p != ctx.me() {
                ctx.send(p, Message::Level(next, None));
            }
        }
        self.registered.push(root);
        if root != asker {
            self.registered.push(asker);
        }
        Message::Answer(next, root, [root; 2])
    }
}

/// A place below `count`, by chance if there is a choice.
fn draw(count: usize, ctx: &mut Context<'_, VirtualTree>) -> usize {
    if count > 1 { ctx.choose(count as u32) as usize } else { 0 }
}

impl VirtualTree {
    /// Asks the registry, unless an answer is missing already.
    pub(super) fn ask(&mut self, reason: Reason, ctx: &mut Context<'_, Self>) {
        self.ask_about(self.epoch.unwrap_or(0), reason, ctx);
    }

    fn ask_about(&mut self, epoch: u32, reason: Reason, ctx: &mut Context<'_, Self>) {
        let (Some(contacts), Some(registry)) = (&mut self.contacts, self.rules.run_time) else {
            return;
        };
        if std::mem::replace(&mut contacts.asks, true) {
            return;
        }
        if registry != ctx.me() {
            return ctx.send(registry, Message::Ask(epoch, reason));
        }
        let answer = contacts.answer(registry, (epoch, reason), ctx);
        self.on_answer(answer, ctx);
    }

    /// A process without a parent asks again if one of its addresses is stale. The tree may have been cut there.
    pub(super) fn ask_again_if_stale(&mut self, ctx: &mut Context<'_, Self>) {
        let is_stale = |contacts: &Contacts| {
            contacts.known.iter().any(|port| self.suspects(self.edges.peer(port)))
        };
        let is_cut_off = !self.is_attached() && self.level.is_none();
        if is_cut_off && self.contacts.as_deref().is_some_and(is_stale) && self.rules.asks_again() {
            self.ask(Reason::Stale, ctx);
        }
    }

    /// A message of the registry, or to it, in the run-time form. Any other is returned.
    pub(super) fn on_registry_message(
        &mut self,
        from: ProcessId,
        message: Message,
        ctx: &mut Context<'_, Self>,
    ) -> Option<Message> {
        match (message, self.contacts.as_mut()) {
            (Message::Ask(epoch, reason), Some(contacts))
                if self.rules.run_time == Some(ctx.me()) =>
            {
                let answer = contacts.answer(from, (epoch, reason), ctx);
                let is_over = self.epoch.is_some() && contacts.latest > self.epoch;
                ctx.send(from, answer);
                if is_over {
                    self.ask(Reason::Over, ctx);
                }
            }
            // It may be for a former life, and the one for this life follows.
            (Message::Answer(..), Some(_)) => self.on_answer(message, ctx),
            (Message::Ask(..) | Message::Answer(..), _) => {
                ctx.unexpected("a message for or from a registry");
            }
            _ => return Some(message),
        }
        None
    }

    fn on_answer(&mut self, answer: Message, ctx: &mut Context<'_, Self>) {
        let (Message::Answer(epoch, root, addresses), Some(contacts)) =
            (answer, &mut self.contacts)
        else {
            return;
        };
        contacts.asks = false;
        if Some(epoch) < self.epoch {
            return;
        }
        let ports = |edges: &Edges<_, 1>, addresses: &[ProcessId]| -> PortSet {
            addresses.iter().filter_map(|p| edges.port(*p)).collect()
        };
        let addresses = ports(&self.edges, &addresses);
        contacts.known.union_with(&addresses);
        if self.suspects.as_deref().is_some_and(|suspects| suspects.contains(root)) {
            // After its restart, the former root has to hear of the next epoch.
            contacts.known.union_with(&ports(&self.edges, &[root]));
            return self.ask_about(epoch, Reason::Over, ctx);
        }
        if Some(epoch) > self.epoch {
            contacts.root = Some(root);
            self.enter(epoch, ctx);
        } else {
            for port in addresses.iter() {
                self.connect_anew(port, epoch, ctx);
            }
        }
        self.seek(ctx);
    }

    /// Connects to a process that has offered no level, unless its address is stale.
    fn connect_anew(&mut self, port: Port, epoch: u32, ctx: &mut Context<'_, Self>) {
        let peer = self.edges.peer(port);
        if self.edges[port].is_none() && !self.suspects(peer) && self.greeted.insert(port) {
            ctx.send(peer, Message::Connect(epoch));
        }
    }

    /// A process of the run-time form learns of a later epoch. Only the registry knows its root, so the process asks.
    pub(super) fn on_later_epoch(
        &mut self,
        from: ProcessId,
        message: Message,
        ctx: &mut Context<'_, Self>,
    ) {
        if let Message::Connect(epoch) = message {
            ctx.send(from, Message::Welcome(epoch, None));
        }
        if self.epoch.is_some() {
            self.ask(Reason::Over, ctx);
        }
    }
}
