//! Starts a run and sees it through.

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
use crate::node::{Event, Node, NodeCommand};
use crate::run_state::{LONGEST, RunState};
use crate::transport::{Inbox, Network, Outlet};
use crate::{Ending, FaultKind, IsHold, NetConfig, NetError, NetOutcome, Parts};

/// Runs the processes until nothing more can happen, or the time is up.
///
/// Before the first message is delivered, all processes start, and all clients without a pause make their
/// requests. `is_hold` tells which requests follow a holding time. Needs a tokio runtime with time and
/// network, preferably with several threads.
pub async fn run_group(
    group: Group,
    parts: Parts,
    config: NetConfig,
    is_hold: IsHold,
    recorder: Option<Recorder<Run>>,
) -> Result<NetOutcome, NetError> {
    start_group(group, parts, config, is_hold, recorder).await?.finish().await
}

/// A run in progress. When it is dropped, all its tasks end.
pub struct Running {
    group: Group,
    hub: Arc<Hub>,
    network: Network,
    /// The processes in their initial states.
    initial: Vec<AnyProcess>,
    /// For each place, the last state of its latest incarnation that ended.
    gone: Vec<Option<(u32, AnyProcess)>>,
    nodes: JoinSet<Ended>,
    /// The process of each task.
    tasks: BTreeMap<Id, ProcessId>,
    commands: Vec<UnboundedSender<NodeCommand>>,
    /// The planned faults and commands, by time and in the order they were planned.
    plans: BTreeMap<(Instant, u64), Plan>,
    planned: u64,
    start: Instant,
    time_limit: Duration,
    detect_after: Option<Duration>,
    seed: u64,
}

/// A planned fault or command; the number is the place of the process.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Crash(usize),
    Restart(usize),
    Command(usize, NodeCommand),
}

/// A process whose task has ended.
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
    let mut state = RunState::new(group.clone(), parts, is_hold, recorder, warn, start);
    // The run must not count as quiet before all processes have started.
    state.plan(1);
    let hub = Arc::new(Hub::new(state));
    // A group has at least one member; any process can decode the messages of all.
    let sample = processes[0].clone();
    let network = Network::new(transport, group.clone(), frame_limit, sample, hub.clone())
        .map_err(NetError::Network)?;
    let mut running = Running {
        network,
        hub,
        gone: (0..group.len()).map(|_| None).collect(),
        initial: processes,
        nodes: JoinSet::new(),
        tasks: BTreeMap::new(),
        commands: group.members().iter().map(|_| unbounded_channel().0).collect(),
        plans: BTreeMap::new(),
        planned: 0,
        start,
        time_limit: time_limit.min(LONGEST),
        detect_after: detect_after.map(|after| after.min(LONGEST)),
        seed,
        group,
    };
    for (at, plan) in strikes {
        // A fault planned for after the time limit never happens.
        if at <= running.time_limit {
            running.plan(start + at, plan);
        }
    }
    running.start().await?;
    Ok(running)
}

impl Running {
    /// The addresses at which the processes listen, in node order; empty if they have no sockets.
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
                Some(ended) = self.nodes.join_next_with_id() => self.keep_last_state(ended)?,
                () = hub.quiet.notified() => {
                    if hub.with(|state| state.is_quiet()).unwrap_or(true) {
                        break Ending::Quiet;
                    }
                }
                () = sleep_until(next.min(time_is_up)) => match self.plans.pop_first() {
                    Some(((at, _), plan)) if at <= time_is_up => self.carry_out(plan).await?,
                    Some(_) | None => break Ending::CutOff,
                }
            }
        };
        let mut state = hub.close().expect("a run ends once, and here");
        for commands in &self.commands {
            // A task that has ended needs no command.
            let _ = commands.send(NodeCommand::Stop);
        }
        while let Some(ended) = self.nodes.join_next_with_id().await {
            self.keep_last_state(ended)?;
        }
        let last = self.gone.into_iter().zip(self.initial);
        let processes: Vec<_> =
            last.map(|(last, new)| last.map_or(new, |(_, process)| process)).collect();
        state.judge_end(ending, &processes);
        let (elapsed, down) = (state.elapsed(), state.down());
        let waiting = state.ledger.application.waiting();
        let (application, monitor, meter) = state.ledger.into_parts();
        Ok(NetOutcome {
            ending,
            elapsed,
            waiting,
            down,
            processes,
            counts: state.counts,
            kinds: state.kinds,
            violations: state.violations,
            warnings: state.warnings,
            faulty: state.faulty,
            application,
            monitor,
            meter,
            recorder: state.recorder,
        })
    }

    /// Starts all processes and makes the requests of all clients without a pause, before any message is
    /// delivered.
    async fn start(&mut self) -> Result<(), NetError> {
        let mut ready: Vec<Ready> = Vec::with_capacity(self.group.len());
        for place in 0..self.group.len() {
            ready.push(self.attach(place, 0).await?);
        }
        for (node, ..) in &mut ready {
            self.hub.step(node, Event::Start);
        }
        for (node, ..) in &mut ready {
            self.hub.with(|state| state.ask_client(node));
        }
        for (node, ..) in &mut ready {
            if let Some(event) = node.take_due() {
                self.hub.step(node, event);
            }
        }
        for node in ready {
            self.spawn(node);
        }
        self.hub.with(|state| state.plan(self.plans.len()));
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
        let initial = self.initial[place].clone();
        Ok((Node::new(self.group.clone(), me, initial, self.seed), inbox, outlet))
    }

    fn spawn(&mut self, (node, inbox, outlet): Ready) {
        let (sender, commands) = unbounded_channel();
        let (place, me) = (node.place, node.me);
        self.commands[place] = sender;
        let hub = self.hub.clone();
        let run = node.run(hub, inbox, outlet, commands);
        let task = self.nodes.spawn(async move { (me, run.await) });
        self.tasks.insert(task.id(), me.process);
    }

    /// Keeps the last state of a process whose task has ended.
    fn keep_last_state(&mut self, ended: Result<(Id, Ended), JoinError>) -> Result<(), NetError> {
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
                    Ok(panic) => panic_message(panic),
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
            Plan::Command(place, command) => {
                if self.hub.with(|state| state.expect_news(place)).unwrap_or(false) {
                    // If the task has ended, its process has crashed, and the news are void.
                    let _ = self.commands[place].send(command);
                }
            }
        }
        self.hub.with(|state| state.plan(self.plans.len()));
        Ok(())
    }

    fn crash(&mut self, place: usize) {
        if !self.hub.with(|state| state.crash(place)).unwrap_or(false) {
            return;
        }
        self.network.detach(place);
        let _ = self.commands[place].send(NodeCommand::Stop);
        self.command_others(place, NodeCommand::Suspect);
    }

    async fn restart(&mut self, place: usize) -> Result<(), NetError> {
        let next = self.hub.with(|state| state.next_incarnation(place)).flatten();
        let Some(incarnation) = next else { return Ok(()) };
        let mut ready = self.attach(place, incarnation).await?;
        self.hub.with(|state| state.restart(&mut ready.0));
        self.spawn(ready);
        self.command_others(place, NodeCommand::Trust);
        // The detector of the restarted process starts afresh: it reports the processes that are down.
        if let Some(after) = self.detect_after {
            let down = self.hub.with(|state| state.down()).unwrap_or_default();
            for peer in down.iter() {
                self.plan(Instant::now() + after, Plan::Command(place, NodeCommand::Suspect(peer)));
            }
        }
        Ok(())
    }

    /// Plans a command to every other process, after the detection time; without a detector, none.
    fn command_others(&mut self, place: usize, command: fn(ProcessId) -> NodeCommand) {
        let Some(after) = self.detect_after else { return };
        let (peer, at) = (self.group.id(place), Instant::now() + after);
        for other in (0..self.group.len()).filter(|other| *other != place) {
            self.plan(at, Plan::Command(other, command(peer)));
        }
    }
}

/// The message of a panic.
fn panic_message(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
