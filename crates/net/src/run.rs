//! A run from start to end.

use std::any::Any;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use konklave_process::{AnyProcess, Application, Group, ProcessId};
use konklave_trace::{Recorder, Run};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::codec::End;
use crate::hub::Hub;
use crate::judge::{Judge, LONGEST};
use crate::node::{Event, Node, Order};
use crate::transport::{Inbox, Network, Outlet};
use crate::{Ending, FaultKind, IsHold, NetConfig, NetError, NetOutcome, Parts};

/// Runs the processes until nothing more can happen, or the time is up.
///
/// All processes start, and all clients that do not pause ask, before the first message is
/// delivered. `is_hold` says which pause goes before a request: true for the pause inside. Wants a
/// tokio runtime with time and network, best one with several threads.
pub async fn run_group(
    group: Group,
    parts: Parts,
    config: NetConfig,
    is_hold: IsHold,
    recorder: Option<Recorder<Run>>,
) -> Result<NetOutcome, NetError> {
    start_group(group, parts, config, is_hold, recorder).await?.finish().await
}

/// A run under way. When it is dropped, all its tasks end.
pub struct Running {
    group: Group,
    hub: Arc<Hub>,
    network: Network,
    /// As newly built.
    newborn: Vec<AnyProcess>,
    /// The last known state of those that are gone.
    gone: Vec<Option<(u32, AnyProcess)>>,
    nodes: JoinSet<Ended>,
    /// Which task is whose.
    tasks: BTreeMap<Id, ProcessId>,
    orders: Vec<UnboundedSender<Order>>,
    /// What is planned, by its time and in the order it was planned.
    plans: BTreeMap<(Instant, u64), Plan>,
    planned: u64,
    start: Instant,
    time_limit: Duration,
    detect_after: Option<Duration>,
    seed: u64,
}

/// Something that will be done to a process.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Crash(usize),
    Restart(usize),
    Tell(usize, Order),
}

/// A process at its end.
type Ended = (End, AnyProcess);

/// A node with its connections, before it runs.
type Ready = (Node, Inbox, Outlet);

/// Starts a run; [`Running::finish`] sees it through.
pub async fn start_group(
    group: Group,
    mut parts: Parts,
    config: NetConfig,
    is_hold: IsHold,
    recorder: Option<Recorder<Run>>,
) -> Result<Running, NetError> {
    let processes = std::mem::take(&mut parts.processes);
    let NetConfig { transport, seed, faults, detect_after, time_limit, frame_limit, warn } = config;
    if processes.len() != group.len() {
        return Err(NetError::Size { processes: processes.len(), members: group.len() });
    }
    let mut strikes = Vec::with_capacity(faults.len());
    for fault in faults {
        let place = group.place(fault.process).ok_or(NetError::Stranger(fault.process))?;
        strikes.push(match fault.kind {
            FaultKind::Crash => (fault.at, Plan::Crash(place)),
            FaultKind::Restart => (fault.at, Plan::Restart(place)),
        });
    }
    let start = Instant::now();
    let mut judge = Judge::new(group.clone(), parts, is_hold, recorder, warn, start);
    // Nothing is quiet before all have started.
    judge.plan(1);
    let hub = Arc::new(Hub::new(judge));
    // A group has at least one member; all of them read the same messages.
    let sample = processes[0].clone();
    let network = Network::new(transport, group.clone(), frame_limit, sample, hub.clone())
        .map_err(NetError::Network)?;
    let mut running = Running {
        network,
        hub,
        gone: (0..group.len()).map(|_| None).collect(),
        newborn: processes,
        nodes: JoinSet::new(),
        tasks: BTreeMap::new(),
        orders: group.members().iter().map(|_| unbounded_channel().0).collect(),
        plans: BTreeMap::new(),
        planned: 0,
        start,
        time_limit: time_limit.min(LONGEST),
        detect_after: detect_after.map(|after| after.min(LONGEST)),
        seed,
        group,
    };
    for (at, plan) in strikes {
        // What is planned for later never strikes.
        if at <= running.time_limit {
            running.plan(start + at, plan);
        }
    }
    running.start().await?;
    Ok(running)
}

impl Running {
    /// Where the processes listen, in node order; empty if they have no sockets.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.network.addresses()
    }

    /// Sees the run through.
    pub async fn finish(mut self) -> Result<NetOutcome, NetError> {
        let hub = self.hub.clone();
        let time_is_up = self.start + self.time_limit;
        let ending = loop {
            let next = self.plans.keys().next().map_or(time_is_up, |(at, _)| *at);
            tokio::select! {
                biased;
                Some(ended) = self.nodes.join_next_with_id() => self.bury(ended)?,
                () = hub.quiet.notified() => {
                    if hub.with(|judge| judge.is_quiet()).unwrap_or(true) {
                        break Ending::Quiet;
                    }
                }
                () = sleep_until(next.min(time_is_up)) => match self.plans.pop_first() {
                    Some(((at, _), plan)) if at <= time_is_up => self.carry_out(plan).await?,
                    Some(_) | None => break Ending::CutOff,
                }
            }
        };
        let mut judge = hub.close().expect("a run ends once, and here");
        for orders in &self.orders {
            // Whoever is gone needs no order.
            let _ = orders.send(Order::Stop);
        }
        while let Some(ended) = self.nodes.join_next_with_id().await {
            self.bury(ended)?;
        }
        let last = self.gone.into_iter().zip(self.newborn);
        let processes: Vec<_> =
            last.map(|(last, new)| last.map_or(new, |(_, process)| process)).collect();
        judge.judge(ending, &processes);
        Ok(NetOutcome {
            ending,
            elapsed: judge.elapsed(),
            waiting: judge.ledger.application.waiting(),
            down: judge.down(),
            processes,
            counts: judge.counts,
            kinds: judge.kinds,
            violations: judge.violations,
            warnings: judge.warnings,
            faulty: judge.faulty,
            application: judge.ledger.application,
            monitor: judge.ledger.monitor,
            meter: judge.ledger.meter,
            recorder: judge.recorder,
        })
    }

    /// Starts all processes, and lets all clients ask that do not pause, before any message moves.
    async fn start(&mut self) -> Result<(), NetError> {
        let mut ready: Vec<Ready> = Vec::with_capacity(self.group.len());
        for place in 0..self.group.len() {
            ready.push(self.attach(place, 0).await?);
        }
        for (node, ..) in &mut ready {
            self.hub.step(node, Event::Start);
        }
        for (node, ..) in &mut ready {
            self.hub.with(|judge| judge.consult(node));
        }
        for (node, ..) in &mut ready {
            if let Some(event) = node.take_due() {
                self.hub.step(node, event);
            }
        }
        for node in ready {
            self.spawn(node);
        }
        self.hub.with(|judge| judge.plan(self.plans.len()));
        Ok(())
    }

    async fn attach(&self, place: usize, incarnation: u32) -> Result<Ready, NetError> {
        let process = self.group.id(place);
        let me = End { process, incarnation };
        let (inbox, outlet) = self
            .network
            .attach(place, me)
            .await
            .map_err(|error| NetError::Listen { process, error })?;
        let newborn = self.newborn[place].clone();
        Ok((Node::new(self.group.clone(), me, newborn, self.seed), inbox, outlet))
    }

    fn spawn(&mut self, (node, inbox, outlet): Ready) {
        let (sender, orders) = unbounded_channel();
        let (place, me) = (node.place, node.me);
        self.orders[place] = sender;
        let hub = self.hub.clone();
        let run = node.run(hub, inbox, outlet, orders);
        let task = self.nodes.spawn(async move { (me, run.await) });
        self.tasks.insert(task.id(), me.process);
    }

    /// A task has ended: keeps the last state of its process.
    fn bury(&mut self, ended: Result<(Id, Ended), JoinError>) -> Result<(), NetError> {
        match ended {
            Ok((task, (me, process))) => {
                self.tasks.remove(&task);
                let place = self.group.place(me.process).expect("nodes are members");
                let gone = &mut self.gone[place];
                if gone.as_ref().is_none_or(|(incarnation, _)| *incarnation <= me.incarnation) {
                    *gone = Some((me.incarnation, process));
                }
                Ok(())
            }
            Err(error) => {
                let process = self.tasks.remove(&error.id()).unwrap_or_default();
                let message = match error.try_into_panic() {
                    Ok(panic) => words(panic),
                    Err(error) => error.to_string(),
                };
                Err(NetError::Panicked { process, message })
            }
        }
    }

    fn plan(&mut self, at: Instant, plan: Plan) {
        self.planned += 1;
        self.plans.insert((at, self.planned), plan);
    }

    async fn carry_out(&mut self, plan: Plan) -> Result<(), NetError> {
        match plan {
            Plan::Crash(place) => self.crash(place),
            Plan::Restart(place) => self.restart(place).await?,
            Plan::Tell(place, order) => {
                if self.hub.with(|judge| judge.expect_news(place)).unwrap_or(false) {
                    // A task that is gone has crashed, and its news with it.
                    let _ = self.orders[place].send(order);
                }
            }
        }
        self.hub.with(|judge| judge.plan(self.plans.len()));
        Ok(())
    }

    fn crash(&mut self, place: usize) {
        if !self.hub.with(|judge| judge.crash(place)).unwrap_or(false) {
            return;
        }
        self.network.detach(place);
        let _ = self.orders[place].send(Order::Stop);
        self.tell_others(place, Order::Suspect);
    }

    async fn restart(&mut self, place: usize) -> Result<(), NetError> {
        let next = self.hub.with(|judge| judge.next_incarnation(place)).flatten();
        let Some(incarnation) = next else { return Ok(()) };
        let mut ready = self.attach(place, incarnation).await?;
        self.hub.with(|judge| judge.restart(&mut ready.0));
        self.spawn(ready);
        self.tell_others(place, Order::Trust);
        // The newcomer's own detector starts afresh, and learns who is down.
        if let Some(after) = self.detect_after {
            let down = self.hub.with(|judge| judge.down()).unwrap_or_default();
            for peer in down.iter() {
                self.plan(Instant::now() + after, Plan::Tell(place, Order::Suspect(peer)));
            }
        }
        Ok(())
    }

    /// Tells every other process, after the time that detection takes, if there is a detector.
    fn tell_others(&mut self, place: usize, order: fn(ProcessId) -> Order) {
        let Some(after) = self.detect_after else { return };
        let (peer, at) = (self.group.id(place), Instant::now() + after);
        for other in (0..self.group.len()).filter(|other| *other != place) {
            self.plan(at, Plan::Tell(other, order(peer)));
        }
    }
}

/// What a panic said.
fn words(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no words").to_owned()
}
