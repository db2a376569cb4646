//! The core of a node, a state machine without network and clock. Inputs: frames, requests of local sessions,
//! and the time. Outputs: frames to send and records to save.
//!
//! Four parts: the group (`forming`, with virtual synchrony below it); the replicated table (`table`); the node's own
//! knowledge, which the table lacks (`local_claims`: its requests, grants and cached locks; `lease`: the end of its
//! lease); and lifted locks (`lifted`), which a classic algorithm serves inside a view instead of the table.

mod agreed_delivery;
mod app_groups;
mod flush;
mod forming;
mod group_host;
mod heartbeat;
mod lease;
mod lifted;
mod local_barriers;
mod local_claims;
mod outgoing;
mod refusals;
mod report;
mod sessions;

pub(crate) use app_groups::{GroupOutput, Outbox};
pub(crate) use local_barriers::Party;
pub(crate) use local_claims::{Granted, LocalRequest, LossFlag};

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use konklave_algorithms::Setup;
use konklave_algorithms::group::forming::{
    self as algorithm, Forming, Message, Settings, Timer, Times,
};
use konklave_algorithms::group::{Indication, Member, Request, View};
use konklave_process::{Context, Group, Process, ProcessId, ProcessSet, Rng, Topology};
use tokio::sync::broadcast;

use crate::builder::Timings;
use crate::flight::FlightRecorder;
use crate::local_grant_budget::LocalGrantBudget;
use crate::lock_algorithm::LockAlgorithm;
use crate::status::{Event, Loss};
use crate::store::Record;
use crate::table::{Batch, Outcome, Table};
use crate::wire::Frame;
use forming::Peer;
use group_host::GroupHost;
use lease::Lease;

/// The process that forms the group, and virtual synchrony below it.
type GroupProcess = Forming<Batch>;

/// Capacity of the event channel. A slower reader misses the oldest events.
const EVENTS: usize = 1024;

/// For how many heartbeats a refused proposer leaves the field to the lower id.
const ABSTAIN: u32 = 10;
/// For how many silence timeouts half of a view waits for the other half before it dissolves.
const DISSOLVE_TIMEOUTS: u32 = 10;

/// Fixed properties of a node.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) id: ProcessId,
    pub(crate) name: Arc<str>,
    pub(crate) timings: Timings,
    /// The record found on disk; `None` without a data directory.
    pub(crate) record: Option<Record>,
    /// The number of founders' addresses.
    pub(crate) seeds: usize,
    /// The index of this node's own address among them, if it is known before any peer answers.
    pub(crate) own: Option<usize>,
    /// The number of founders, if it is given; otherwise one founder per address.
    pub(crate) founders: Option<usize>,
    /// Whether to found a group of one, for others to join.
    pub(crate) alone: bool,
    pub(crate) rng_seed: u64,
    /// The calendar time in seconds: the generation of a group whose members have no data directory.
    pub(crate) calendar: u32,
    /// The algorithm that serves exclusive locks.
    pub(crate) lock_algorithm: LockAlgorithm,
    /// How many times in a row local sessions get locks before the network is read.
    pub(crate) local_turns: u32,
    /// Whether holders may outlive this process, by one lease at most.
    pub(crate) holders_outlive: bool,
}

/// An action for the host of the core. The host performs outputs in order.
#[derive(Debug)]
pub(crate) enum Output {
    Send {
        to: ProcessId,
        frame: Frame,
    },
    /// Write the record to disk before performing any later output.
    Save(Record),
    /// Write the record when the disk allows it; no other output waits for it.
    Note(Record),
}

pub(crate) struct Core {
    me: ProcessId,
    config: Config,
    /// All known processes, this one included.
    known: Group,
    forming: GroupProcess,
    timers: Vec<(Timer, Duration)>,
    rng: Rng,
    record: Record,
    table: Table,
    /// Whether `table` holds the group's state.
    has_table: bool,
    /// Whether this node was a member of the last view it knows.
    was_member: bool,
    outgoing: outgoing::OutgoingOps,
    in_flight: usize,
    /// The number of messages of this view that the table has applied.
    applied: u64,
    claims: local_claims::LocalClaims,
    lifted: lifted::Lifted,
    app_groups: app_groups::AppGroups,
    barriers: local_barriers::LocalBarriers,
    observers: Vec<report::LeaderObserver>,
    sessions: BTreeMap<u32, Arc<str>>,
    last_session: u32,
    lease: Lease,
    /// For each excluded member and lease (in milliseconds) of its grants: when they have expired by its own
    /// clock. Kept by the leader.
    lease_expiries: BTreeMap<(Member, u32), Duration>,
    peers: BTreeMap<ProcessId, Peer>,
    /// A name that stands for several addresses, although the number of founders is not given.
    shared_name: Option<String>,
    /// Whether an `Output::Save` has not reached the disk yet.
    unsaved: bool,
    blocked: bool,
    leaving: bool,
    /// When to leave without the consent of the other members.
    leave_by: Option<Duration>,
    /// Whether this node has left for good.
    left: bool,
    heartbeat: heartbeat::HeartbeatSchedule,
    events: broadcast::Sender<Event>,
    refusals: refusals::Refusals,
    flush_state: flush::FlushState,
    /// The last messages sent and received, for `Node::messages`.
    pub(crate) flight: FlightRecorder,
    out: Vec<Output>,
    /// Empty between steps; kept to reuse its memory.
    indications: VecDeque<algorithm::Indication<Batch>>,
    outcomes: Vec<Outcome>,
    grant_budget: Arc<LocalGrantBudget>,
    now: Duration,
}

impl Core {
    pub(crate) fn new(config: Config, now: Duration) -> Self {
        let me = config.id;
        let mut core = Self {
            me,
            known: Group::new(vec![me]).expect("one member is a group"),
            forming: outside(me, &config),
            timers: Vec::new(),
            rng: Rng::new(config.rng_seed),
            record: config.record.clone().unwrap_or_default(),
            table: Table::default(),
            has_table: false,
            was_member: false,
            outgoing: outgoing::OutgoingOps::default(),
            in_flight: 0,
            applied: 0,
            claims: local_claims::LocalClaims::default(),
            lifted: lifted::Lifted::new(me, config.lock_algorithm),
            app_groups: app_groups::AppGroups::default(),
            barriers: local_barriers::LocalBarriers::default(),
            observers: Vec::new(),
            sessions: BTreeMap::from([(0, "".into())]),
            last_session: 0,
            lease: Lease::default(),
            lease_expiries: BTreeMap::new(),
            peers: BTreeMap::new(),
            shared_name: None,
            unsaved: false,
            blocked: false,
            leaving: false,
            leave_by: None,
            left: false,
            heartbeat: heartbeat::HeartbeatSchedule::new(&config.timings, now),
            events: broadcast::Sender::new(EVENTS),
            refusals: refusals::Refusals::default(),
            flush_state: flush::FlushState::default(),
            flight: FlightRecorder::default(),
            out: Vec::new(),
            indications: VecDeque::new(),
            outcomes: Vec::new(),
            grant_budget: Arc::new(LocalGrantBudget::new(config.local_turns)),
            now,
            config,
        };
        let algorithm::Record { incarnation, .. } = core.saved_record();
        // Without a record of earlier incarnations, the process draws an incarnation number they have not had.
        let saved = (incarnation > 0).then(|| core.saved_record());
        core.step(|forming, ctx| forming.on_recover(saved, ctx));
        core.tick(now);
        core
    }

    /// The part of the record on disk that forming needs.
    fn saved_record(&self) -> algorithm::Record {
        let Record { incarnation, generation, ref members, .. } = self.record;
        let members = members.iter().map(|(id, _)| ProcessId(*id)).collect();
        algorithm::Record { incarnation, generation, members, promised: Vec::new() }
    }

    /// Takes the pending outputs, in order. `room` is an empty vector that collects the next ones.
    pub(crate) fn take_outputs(&mut self, room: Vec<Output>) -> Vec<Output> {
        std::mem::replace(&mut self.out, room)
    }

    pub(crate) fn has_outputs(&self) -> bool {
        !self.out.is_empty()
    }

    pub(crate) fn grant_budget(&self) -> Arc<LocalGrantBudget> {
        self.grant_budget.clone()
    }

    pub(crate) fn me(&self) -> ProcessId {
        self.me
    }

    pub(crate) fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Whether this node is a member: it has a vote in the view, and the table.
    pub(crate) fn is_member(&self) -> bool {
        self.is_inside() && self.has_table && self.forming.group().view().has_member(self.me)
    }

    fn is_inside(&self) -> bool {
        self.forming.is_inside()
    }

    /// This node as a member of the present view: its id and incarnation.
    fn own_member(&self) -> Member {
        let outside_any_view = Member { id: self.me, incarnation: self.record.incarnation };
        self.forming.group().view().find(self.me).unwrap_or(outside_any_view)
    }

    fn is_leader(&self) -> bool {
        self.is_inside() && self.forming.group().view().leader() == Some(self.me)
    }

    /// Sets the time. Must precede any other call, so that an expired lease is not taken for a valid one.
    pub(crate) fn at(&mut self, now: Duration) -> &mut Self {
        self.now = self.now.max(now);
        self
    }

    /// Runs everything that is due at `now`.
    pub(crate) fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
        while let Some(at) = self.timers.iter().position(|(_, due)| *due <= self.now) {
            let (timer, due) = self.timers.swap_remove(at);
            if timer == heartbeat::TIMER {
                self.count_missed_heartbeat(due);
                // Send pings with the heartbeats of virtual synchrony, now and from now on.
                self.heartbeat.next = self.now;
            }
            self.step(|forming, ctx| forming.on_timer(timer, ctx));
        }
        if self.now >= self.heartbeat.next {
            self.send_heartbeat();
        }
        if self.leave_by.is_some_and(|due| due <= self.now) {
            return self.terminate();
        }
        self.expire_requests();
        self.expire_revoked();
        self.check_lease();
        self.expire_leases();
        self.lift_fences();
        self.pump_all();
    }

    /// When `tick` has to be called next, if nothing else happens.
    pub(crate) fn next_due(&self) -> Duration {
        let patience = self.patience();
        let mut due = self.heartbeat.next + patience;
        for (timer, at) in &self.timers {
            let at = if *timer == heartbeat::TIMER { *at + patience } else { *at };
            due = due.min(at);
        }
        let mut or = |other: Option<Duration>| due = other.map_or(due, |other| due.min(other));
        or(self.claims.shortest_lease().and_then(|lease| self.lease.runs_out(lease)));
        or(self.lease_expiries.values().min().copied());
        or(self.claims.first_deadline());
        or(self.claims.first_revoked_due());
        or(self.lifted.first_fence_end());
        or(self.leave_by);
        due
    }

    /// The record, as it is on disk or about to be saved.
    pub(crate) fn record(&self) -> Record {
        self.record.clone()
    }

    /// Ends the node as a crash would: without releasing anything, and with an error for every waiting
    /// request.
    pub(crate) fn terminate(&mut self) {
        self.leaving = true;
        self.timers.clear();
        self.forming.leave_at_once();
        self.forming.stop();
        self.go_outside(Loss::Left);
        self.end();
        self.out.clear();
    }

    /// Ends all waiting requests, observers and event streams; the node does nothing afterwards.
    fn end(&mut self) {
        self.left = true;
        self.leave_by = None;
        self.fail_waiting();
        self.observers.clear();
        self.events = broadcast::Sender::new(1);
    }

    /// Fails every waiting request, barrier, subscription and revocation.
    fn fail_waiting(&mut self) {
        self.fail_requests();
        self.barriers.end();
        self.app_groups.close();
        self.end_revocations();
    }

    /// Handles a frame of another member, and sends the operations that result.
    pub(crate) fn on_frame_and_pump(&mut self, from: ProcessId, frame: Frame, now: Duration) {
        self.on_frame(from, frame, now);
        self.pump();
    }

    /// Handles a frame of another member.
    pub(crate) fn on_frame(&mut self, from: ProcessId, frame: Frame, now: Duration) {
        self.now = self.now.max(now);
        self.grant_budget.reset();
        match frame {
            Frame::Group(message) if self.exceeds_buffer(&message) => {}
            Frame::Group(message) => self.receive(from, Message::Group(message)),
            Frame::Ping { view, stamp, lifted_sent } => {
                self.on_ping(from, view, stamp, lifted_sent);
            }
            Frame::Pong { view, stamp } => self.on_pong(from, view, stamp),
            Frame::PeerStatus(status) => {
                if let Some(peer) = self.peers.get_mut(&from) {
                    peer.heard = self.now;
                }
                self.receive(from, Message::Status(status));
            }
            Frame::Found(view) => self.receive(from, Message::Found(view)),
            Frame::Founding(message) => self.receive(from, Message::Founding(message)),
            Frame::Lifted(inside) => self.on_lifted_frame(from, inside),
            // Handled by the network layer.
            Frame::Peers(_) => {}
        }
    }

    fn receive(&mut self, from: ProcessId, message: Message<Batch>) {
        self.step(|forming, ctx| forming.on_message(from, message, ctx));
    }

    /// Makes a request to virtual synchrony.
    fn request(&mut self, request: Request<Batch>) {
        let request = algorithm::Request::Group(request);
        self.step(|forming, ctx| forming.on_request(request, ctx));
    }

    /// Runs one step of the process, then handles its indications until none is left.
    fn step(&mut self, step: impl FnOnce(&mut GroupProcess, &mut Context<'_, GroupProcess>)) {
        let mut indications = std::mem::take(&mut self.indications);
        self.step_once(&mut indications, step);
        while let Some(indication) = indications.pop_front() {
            if let Some(request) = self.on_indication(indication) {
                let request = algorithm::Request::Group(request);
                self.step_once(&mut indications, |forming, ctx| forming.on_request(request, ctx));
            }
        }
        self.indications = indications;
        self.deliver_ordered();
    }

    fn step_once(
        &mut self,
        indications: &mut VecDeque<algorithm::Indication<Batch>>,
        step: impl FnOnce(&mut GroupProcess, &mut Context<'_, GroupProcess>),
    ) {
        let mut host = GroupHost {
            out: &mut self.out,
            timers: &mut self.timers,
            rng: &mut self.rng,
            indications,
            record: &mut self.record,
            unsaved: &mut self.unsaved,
            peers: &self.peers,
            claims: &self.claims,
            me: (self.me, &self.config.name),
            now: self.now,
        };
        step(&mut self.forming, &mut Context::new(self.me, &self.known, &mut host));
    }

    /// Handles one indication; may return a request to virtual synchrony.
    fn on_indication(
        &mut self,
        indication: algorithm::Indication<Batch>,
    ) -> Option<Request<Batch>> {
        match indication {
            algorithm::Indication::Group(indication) => {
                return self.on_group_indication(indication);
            }
            algorithm::Indication::Founded => {
                self.table = Table::default();
                self.has_table = true;
            }
            algorithm::Indication::Dissolved => {
                self.publish(Event::Dissolved);
                self.go_outside(Loss::Dissolved);
            }
            algorithm::Indication::GrantsOver => {}
            algorithm::Indication::InOtherGroup(id) => {
                let reason = "it is in another group: stop it, and let it join this one";
                self.refused(self.name_of(id), reason.into(), self.now);
            }
            algorithm::Indication::JoinsInstead(id) => {
                let reason = "it is in a group, which this node joins instead of founding one";
                self.refused(self.name_of(id), reason.into(), self.now);
            }
        }
        None
    }

    fn on_group_indication(&mut self, indication: Indication<Batch>) -> Option<Request<Batch>> {
        match indication {
            Indication::Delivered { sender, command, position, .. } => {
                self.applied = position + 1;
                if sender == self.me {
                    self.in_flight = self.in_flight.saturating_sub(1);
                }
                let mut outcomes = std::mem::take(&mut self.outcomes);
                command.ops.iter().for_each(|op| self.table.apply(op, &mut outcomes));
                self.on_outcomes(&mut outcomes);
                self.outcomes = outcomes;
            }
            Indication::Installed { view, left, summaries } => {
                self.on_view(view, &left, summaries);
            }
            Indication::StateWanted => return Some(Request::State(self.table.parts())),
            Indication::State { parts, .. } => {
                self.table = Table::default();
                self.table.set_view(self.forming.group().view().id);
                let ops = parts.iter().flat_map(|part| part.ops.iter());
                ops.for_each(|op| self.table.apply(op, &mut Vec::new()));
                self.has_table = true;
                self.refresh_observers();
            }
            Indication::Excluded => {
                self.publish(Event::Excluded);
                self.go_outside(Loss::Excluded);
                self.end_if_leaving();
            }
            Indication::Left => {
                self.publish(Event::Left);
                self.go_outside(Loss::Left);
                self.end_if_leaving();
            }
            Indication::Blocked => {
                self.blocked = true;
                self.publish(Event::Blocked);
            }
            Indication::Refused(_) => self.in_flight = self.in_flight.saturating_sub(1),
            Indication::Wedged if self.config.lock_algorithm != LockAlgorithm::Table => {
                return Some(Request::Freeze(self.summary_of_locks()));
            }
            Indication::Sent { .. } | Indication::Wedged => {}
        }
        None
    }

    fn on_view(&mut self, view: View, left: &ProcessSet, summaries: Vec<(Member, Batch)>) {
        (self.blocked, self.applied) = (false, 0);
        self.app_groups.begin_view();
        self.flush_state = flush::FlushState::default();
        self.refusals.on_view();
        if self.has_table {
            let mut outcomes = Vec::new();
            self.table.install(view.id, &view.members, left, &mut outcomes);
            self.publish_view(&view);
            self.on_outcomes(&mut outcomes);
        } else {
            self.table.set_view(view.id);
            self.publish_view(&view);
        }
        self.lease.on_view(&view, self.me, self.now);
        // A new leader does not know when earlier leases ended, so it waits a full lease for each. A leader
        // that stays in office keeps its deadlines.
        let fenced = if self.is_leader() { self.table.fenced() } else { Vec::new() };
        self.lease_expiries.retain(|fence, _| fenced.contains(fence));
        fenced.into_iter().for_each(|(member, lease)| self.await_expiry(member, lease));
        if self.config.lock_algorithm != LockAlgorithm::Table {
            self.install_locks(&view, left, summaries);
        }
        self.ping();
        if self.is_member() && !std::mem::replace(&mut self.was_member, true) {
            self.resubmit_requests();
            self.reenter_groups();
            self.rearrive();
        }
    }

    /// This node is in no view any more: drops the group's state, and all local grants are lost.
    fn go_outside(&mut self, why: Loss) {
        self.table = Table::default();
        (self.has_table, self.was_member, self.blocked) = (false, false, false);
        self.outgoing.clear();
        self.in_flight = 0;
        self.lease_expiries.clear();
        self.lease.end();
        self.lose_all_grants(why);
        self.claims.forget_others();
        self.lifted.clear();
        self.app_groups.end(why);
        self.barriers.fail();
        self.end_revocations();
        self.clear_observers();
    }

    /// Handles those outcomes of operations that concern this node or its sessions.
    fn on_outcomes(&mut self, outcomes: &mut Vec<Outcome>) {
        for outcome in outcomes.drain(..) {
            match outcome {
                Outcome::Granted { claim, key, token } => self.on_granted(claim, key, token),
                Outcome::Refused { claim, key, why } => self.on_refused(claim, &key, why),
                Outcome::GrantRevoked { claim, key, .. } => self.on_grant_revoked(claim, &key),
                Outcome::Contended { key } => self.serve_queue(&key),
                Outcome::Changed { key } => self.on_changed(&key),
                Outcome::RevokeDone { claim, held } => self.on_revoke_done(claim, held),
                Outcome::Opened { claims } => self.on_opened(&claims),
                Outcome::Departed { claim } => self.on_departed(claim),
                Outcome::Mismatch { claim, of } => self.on_mismatch(claim, of),
                Outcome::AppView { group, members } => self.on_app_view(&group, &members),
                Outcome::AppMessage { group, from, payload } => {
                    self.on_app_message(&group, from, &payload)
                }
                Outcome::StateRequested { group, donor, to } => {
                    self.on_state_requested(&group, donor, to)
                }
                Outcome::StateGiven { group, to, state } => self.on_state_given(&group, to, state),
                Outcome::Fenced { member, lease } => {
                    if self.is_leader() {
                        self.await_expiry(member, lease);
                    }
                }
            }
        }
    }

    /// Leaves the group in order. If no member confirms within a lease, leaves anyway.
    pub(crate) fn leave(&mut self, now: Duration) {
        self.now = self.now.max(now);
        if std::mem::replace(&mut self.leaving, true) {
            return;
        }
        self.forming.stop();
        if self.is_inside() {
            self.lose_all_grants(Loss::Left);
            self.pump_all();
            self.fail_waiting();
            let view = self.forming.group().view();
            if view.members.len() == 1 && view.observers.is_empty() && self.is_member() {
                // No other member is there to confirm.
                return self.end();
            }
            self.leave_by = Some(self.now + self.config.timings.lease_expiry());
            self.request(Request::Leave);
        } else {
            self.end();
        }
    }

    fn end_if_leaving(&mut self) {
        if self.leaving {
            self.end();
        }
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left
    }

    fn publish(&self, event: Event) {
        // An error means that there is no receiver.
        let _ = self.events.send(event);
    }

    fn send(&mut self, to: ProcessId, frame: Frame) {
        self.out.push(Output::Send { to, frame });
    }
}

/// A process outside any view. With a lifted algorithm, it also asks for a summary of the locks when a view ends.
fn outside(me: ProcessId, config: &Config) -> GroupProcess {
    let Config { ref timings, ref record, .. } = *config;
    let earlier = record.as_ref().is_none_or(|record| record.incarnation > 0);
    let settings = Settings {
        founders: config.founders,
        alone: config.alone,
        has_data_dir: record.is_some(),
        grants_outlive: config.holders_outlive && earlier,
        calendar: config.calendar,
        draws: 1 << 30,
        calls: false,
        beats: 0,
        times: Times {
            beat: None,
            abstain: timings.heartbeat * ABSTAIN,
            stall: timings.silence * DISSOLVE_TIMEOUTS,
            patience: timings.silence,
            lease: timings.lease_expiry(),
        },
    };
    let process = Forming::build(me, &setup(me, timings), settings, config.seeds);
    if config.lock_algorithm == LockAlgorithm::Table { process } else { process.summarised() }
}

fn setup(me: ProcessId, timings: &Timings) -> Setup {
    let group = Group::new(vec![me]).expect("one member is a group");
    let mut setup =
        Setup::new(group, Topology::from_edges("alone", 1, []).expect("one place is a graph"));
    setup.unit = timings.unit;
    let (beats, misses) = timings.in_units();
    setup.chosen.insert("heartbeat", beats.to_string());
    setup.chosen.insert("misses", misses.to_string());
    setup
}

#[cfg(test)]
mod stress;
