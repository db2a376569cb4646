//! Forming a group: for the first time, and after all members were down. Founders agree on a first view before they enter it;
//! virtual synchrony below forms all later views.
//!
//! Hazard: a restarted process may have forgotten a promise it gave in an old view, so it must not count for that view. Rule:
//! a group is founded only if all founders are present and none is in a view. The founder with the lowest id then proposes the
//! first view, in a generation above all known ones. The founders enter it once all have promised to.
//!
//! This page has the state and the reports between peers. The handlers are by subject:
//!
//! - `founding.rs`: proposals of first views, promises and their ends;
//! - `lasting.rs`: which views are over, and what follows;
//! - `below.rs`: virtual synchrony below.

mod below;
mod founding;
mod lasting;
mod messages;
mod problem;
mod properties;
mod sheet;

use std::collections::{BTreeMap, BTreeSet};

use konklave_process::{Context, Fixed, Process, ProcessId};
use serde::Serialize;

use super::virtual_synchrony::{Membership, VirtualSynchrony};
use super::{Bytes, Data, Member, virtual_synchrony};
use crate::{Setup, group};
use founding::Promises;
pub use messages::{FoundingMessage, Indication, Message, PeerStatus, Record, Request, Timer};
pub use problem::{Formation, Founders};
pub use properties::Properties;
pub use sheet::{Settings, Times};

/// The last incarnation before the first start.
const FIRST: u32 = 0;

/// One process of a group that forms itself and carries commands `C`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Forming<C = Bytes> {
    group: VirtualSynchrony<C>,
    /// The members of the last view that this process was in. It is part of its record.
    last_members: Vec<ProcessId>,
    /// The last report of each connected process; none before its first one.
    peers: BTreeMap<ProcessId, Option<PeerStatus>>,
    /// For each founder address, the process that answered there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    seeds: Vec<Option<ProcessId>>,
    /// The number of founders, if it is given; otherwise there is one founder per address.
    needed: Option<usize>,
    promises: Promises,
    /// Whether the view can continue only with members that are not connected.
    stalled: bool,
    /// Whether grants of earlier incarnations and of earlier views can no longer be in use.
    grants_over: bool,
    /// Whether to found a group of one, as soon as grants from before are over and no peer is in a group.
    alone: bool,
    /// Whether this process is about to leave for good: it forms no group any more.
    stopped: bool,
    /// Whether `Timer::Beat` runs.
    beating: bool,
    /// If reports are limited: how many were sent without news.
    beats: u32,
    #[serde(skip)]
    settings: Fixed<Settings>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

impl<C: Data> Process for Forming<C> {
    type Message = Message<C>;
    type Timer = Timer;
    type Request = Request<C>;
    type Indication = Indication<C>;
    type Record = Record;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.on_recover(Some(Record { incarnation: FIRST, ..Record::default() }), ctx);
    }

    /// Begins a new incarnation, outside any view.
    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        // Without a record, the old incarnation's number is unknown. A random number differs from all old
        // ones, almost certainly.
        let saved = saved.unwrap_or_else(|| self.draw_record(ctx));
        let Record { incarnation, generation, members, promised } = saved;
        self.last_members = members;
        self.last_members.extend(promised);
        self.begin_incarnation(virtual_synchrony::Record { incarnation, generation }, ctx);
        if self.settings.grants_outlive && incarnation != FIRST {
            self.await_end_of_grants(ctx);
        }
        if self.settings.alone {
            self.found_alone_later(ctx);
        }
        self.announce(ctx);
        self.form(ctx);
        self.beat_on(ctx);
    }

    fn on_request(&mut self, request: Request<C>, ctx: &mut Context<'_, Self>) {
        self.handle_request(request, ctx);
        self.beat_on(ctx);
    }

    fn on_message(&mut self, from: ProcessId, message: Message<C>, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Group(virtual_synchrony::Message::Join { .. })
                if self.is_superseded_by(from, ctx.me()) =>
            {
                self.dissolve_if_stalled(false, ctx);
            }
            Message::Group(message) => {
                self.step_group(ctx, |group, ctx| group.on_message(from, message, ctx));
            }
            Message::Status(status) => self.on_status(from, status, ctx),
            Message::Found(view) => self.on_found(&view, ctx),
            Message::Founding(message) => self.on_founding(from, message, ctx),
        }
        self.beat_on(ctx);
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Group(timer) => self.step_group(ctx, |group, ctx| group.on_timer(timer, ctx)),
            Timer::Beat => {
                self.beating = false;
                self.beats += u32::from(self.settings.beats > 0);
                self.on_beat(ctx);
                if self.group.membership() == Membership::Joining {
                    self.step_group(ctx, |group, ctx| group.ask_again(ctx));
                }
            }
            Timer::Abstain => {
                self.beats = 0;
                self.promises.abstains = false;
            }
            Timer::Stall => self.dissolve_if_stalled(true, ctx),
            Timer::Alone => {
                self.alone = true;
                self.found_alone_if_due(ctx);
            }
            Timer::GrantsOver => {
                self.beats = 0;
                self.grants_over = true;
                ctx.indicate(Indication::GrantsOver);
                self.found_alone_if_due(ctx);
            }
        }
        self.beat_on(ctx);
    }

    /// The peer is gone.
    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.beats = 0;
        self.peers.remove(&peer);
        self.step_group(ctx, |group, ctx| group.on_suspect(peer, ctx));
        self.beat_on(ctx);
    }

    /// A connection to the peer is established.
    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.beats = 0;
        self.peers.insert(peer, None);
        self.step_group(ctx, |group, ctx| group.on_trust(peer, ctx));
        ctx.send(peer, Message::Status(self.status()));
        self.beat_on(ctx);
    }
}

impl<C: Data> Forming<C> {
    /// The process `me`, outside any view, with `seeds` addresses of founders.
    pub fn build(me: ProcessId, setup: &Setup, settings: Settings, seeds: usize) -> Self {
        let mut outside = setup.clone();
        outside.chosen.insert("joiners", me.0.to_string());
        Self {
            group: VirtualSynchrony::build(me, &outside).renewed(),
            last_members: Vec::new(),
            peers: BTreeMap::new(),
            seeds: vec![None; seeds],
            needed: settings.founders,
            promises: Promises::new(setup.mistake == Some(sheet::VOLATILE_PROMISES.name)),
            stalled: false,
            grants_over: true,
            alone: false,
            stopped: false,
            beating: false,
            beats: 0,
            settings: Fixed(settings),
            mistake: Fixed(setup.mistake),
        }
    }

    /// The same process below a layer that gives a summary at the end of each view.
    pub fn summarised(mut self) -> Self {
        self.group = self.group.summarised();
        self
    }

    /// The group below.
    pub fn group(&self) -> &VirtualSynchrony<C> {
        &self.group
    }

    /// Whether this process is in a view.
    pub fn is_inside(&self) -> bool {
        self.group.membership() == Membership::Inside
    }

    /// The number of founders, if it is given.
    pub fn needed(&self) -> Option<usize> {
        self.needed
    }

    /// The number of founders is not known: this process founds no group.
    pub fn forget_founders(&mut self) {
        self.needed = Some(usize::MAX);
    }

    /// For each founder address, the process that answered there.
    pub fn seeds(&self) -> &[Option<ProcessId>] {
        &self.seeds
    }

    /// A process, perhaps this one, answered at a founder's address.
    pub fn on_seed(&mut self, seed: usize, id: ProcessId, ctx: &mut Context<'_, Self>) {
        if let Some(known) = self.seeds.get_mut(seed) {
            *known = Some(id);
        }
        self.form(ctx);
    }

    /// Whether a peer is connected.
    pub fn is_connected(&self, id: ProcessId) -> bool {
        self.peers.contains_key(&id)
    }

    /// The connected peers, with their last reports.
    pub fn peers(&self) -> impl Iterator<Item = (ProcessId, Option<&PeerStatus>)> {
        self.peers.iter().map(|(id, status)| (*id, status.as_ref()))
    }

    /// The last report of a connected peer.
    pub fn status_of(&self, id: ProcessId) -> Option<&PeerStatus> {
        self.peers.get(&id)?.as_ref()
    }

    /// A peer that is in a view, according to its last report.
    pub fn peer_inside(&self) -> Option<ProcessId> {
        let inside = |status: Option<&PeerStatus>| status.is_some_and(|s| s.view.is_some());
        self.peers().find(|(_, status)| inside(*status)).map(|(id, _)| id)
    }

    /// Whether grants of earlier incarnations and of earlier views can no longer be in use.
    pub fn are_grants_over(&self) -> bool {
        self.grants_over
    }

    /// Forms no group any more, and joins none.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Leaves any view at once, as a crash would.
    pub fn leave_at_once(&mut self) {
        self.group = self.group.renewed();
    }

    fn record(&self) -> Record {
        Record {
            incarnation: self.group.incarnation(),
            generation: self.group.generation(),
            members: self.last_members.clone(),
            promised: self.promises.recorded(),
        }
    }

    fn draw_record(&self, ctx: &mut Context<'_, Self>) -> Record {
        Record { incarnation: 1 + ctx.choose(self.settings.draws), ..Record::default() }
    }

    fn myself(&self, me: ProcessId) -> Member {
        Member { id: me, incarnation: self.group.incarnation() }
    }

    /// This process has a vote in its view, and the state of the group.
    fn is_member(&self, me: ProcessId) -> bool {
        self.is_inside() && self.group.has_state() && self.group.view().has_member(me)
    }

    fn status(&self) -> PeerStatus {
        PeerStatus {
            incarnation: self.group.incarnation(),
            generation: self.group.generation(),
            view: self.is_inside().then(|| self.group.view().id),
            has_data_dir: self.settings.has_data_dir,
            earlier_grants_over: self.grants_over,
        }
    }

    /// Reports the own state to all connected peers.
    pub(super) fn announce(&self, ctx: &mut Context<'_, Self>) {
        let status = self.status();
        if self.settings.calls {
            return ctx.send_to_others(Message::Status(status));
        }
        for to in self.peers.keys() {
            ctx.send(*to, Message::Status(status.clone()));
        }
    }

    /// Reports the own state to peers that are in a view of their own, so that both see that it lasts.
    fn announce_to_other_groups(&self, ctx: &mut Context<'_, Self>) {
        for (to, status) in self.peers() {
            let inside = status.is_some_and(|status| status.view.is_some());
            if inside && self.group.view().find(to).is_none() {
                ctx.send(to, Message::Status(self.status()));
            }
        }
    }

    fn on_status(&mut self, from: ProcessId, status: PeerStatus, ctx: &mut Context<'_, Self>) {
        let is_outside = status.view.is_none();
        let member = Member { id: from, incarnation: status.incarnation };
        let view = self.group.view();
        let elsewhere = status.view.is_some_and(|theirs| theirs.generation != view.id.generation);
        let in_other_group = elsewhere && !view.has_member(from);
        if self.is_inside() && is_outside && view.id.epoch == 0 && view.members.contains(&member) {
            // It has not received the first view yet.
            ctx.send(from, Message::Found(view.clone()));
        }
        if self.settings.calls || self.peers.contains_key(&from) {
            let known = self.peers.insert(from, Some(status.clone()));
            if known != Some(Some(status)) {
                self.beats = 0;
            }
        }
        if in_other_group && self.is_member(ctx.me()) {
            ctx.indicate(Indication::InOtherGroup(from));
        }
        self.end_promise_of_restarted(member, ctx.me());
        if self.is_inside() && is_outside {
            ctx.send(from, Message::Status(self.status()));
        }
        self.form(ctx);
    }

    /// Does the periodic work: reports, and the next attempt to form a group.
    pub fn on_beat(&mut self, ctx: &mut Context<'_, Self>) {
        self.dissolve_if_stalled(false, ctx);
        if self.is_inside() {
            self.announce_to_other_groups(ctx);
        } else {
            self.announce(ctx);
        }
        self.found_alone_if_due(ctx);
        self.form(ctx);
    }

    /// Sets the timer of the periodic work if there is a reason for it, and stops it otherwise.
    fn beat_on(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(period) = self.settings.times.beat else { return };
        let few = self.settings.beats == 0 || self.beats < self.settings.beats;
        let wanted = few && (!self.is_inside() || !self.is_view_healthy(ctx.me()));
        if wanted && !self.beating {
            ctx.set_timer(Timer::Beat, period);
        } else if !wanted && self.beating {
            ctx.cancel_timer(Timer::Beat);
        }
        self.beating = wanted;
    }

    /// Outside a view: joins a group that a peer is in, or founds one with the others.
    fn form(&mut self, ctx: &mut Context<'_, Self>) {
        if self.is_inside() || self.stopped {
            return;
        }
        if self.peer_inside().is_some() {
            self.withdraw_proposal(ctx);
            return self.ask_group(group::Request::Join, ctx);
        }
        self.propose(ctx);
    }

    /// The founders that are present. If their number is given instead of their addresses, every connected
    /// process counts.
    pub fn founders(&self, me: ProcessId) -> BTreeSet<ProcessId> {
        let answered = self.seeds.iter().flatten().copied();
        match self.needed {
            // Before any process has answered, this one included, nothing is known.
            Some(_) if answered.clone().next().is_none() => BTreeSet::new(),
            // Connections in both directions count.
            Some(_) => self.peers.keys().copied().chain([me]).collect(),
            None => answered.collect(),
        }
    }
}

#[cfg(test)]
mod tests;
