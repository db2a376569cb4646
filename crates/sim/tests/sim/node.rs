//! A process that does what it is told, and an observer that writes down all it sees.

use std::time::Duration;

use konklave_process::{
    Application, Context, Effect, Group, Input, Inspect, Monitor, Process, ProcessId, Verdict,
};
use konklave_sim::{Config, Ending, Incident, Observer, Parts, Sim, Time};

/// Sends numbered messages when asked to, saves and sets a timer when told to.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Node {
    pub(crate) got: Vec<(ProcessId, u32)>,
    pub(crate) suspects: Vec<ProcessId>,
    pub(crate) recovered: Option<Option<u32>>,
    pub(crate) rings: u32,
}

/// The messages of nodes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Message {
    Data(u32),
    Other,
}

/// The requests of a client to its node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Request {
    /// Send the numbers below this to a node.
    Send(ProcessId, u32),
    /// Send something else.
    SendOther(ProcessId),
    /// Write this down.
    Save(u32),
    /// Set a timer, in milliseconds: T of the default configuration.
    Wait(u64),
}

impl Process for Node {
    type Message = Message;
    type Timer = ();
    type Request = Request;
    type Indication = ();
    type Record = u32;

    fn on_recover(&mut self, saved: Option<u32>, _ctx: &mut Context<'_, Self>) {
        self.recovered = Some(saved);
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Send(to, count) => (0..count).for_each(|i| ctx.send(to, Message::Data(i))),
            Request::SendOther(to) => ctx.send(to, Message::Other),
            Request::Save(value) => ctx.save(value),
            Request::Wait(millis) => ctx.set_timer((), Duration::from_millis(millis)),
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data(i) => self.got.push((from, i)),
            Message::Other => ctx.indicate(()),
        }
    }

    fn on_timer(&mut self, (): (), _ctx: &mut Context<'_, Self>) {
        self.rings += 1;
    }

    fn on_suspect(&mut self, peer: ProcessId, _ctx: &mut Context<'_, Self>) {
        self.suspects.push(peer);
    }

    fn on_trust(&mut self, peer: ProcessId, _ctx: &mut Context<'_, Self>) {
        self.suspects.retain(|p| *p != peer);
    }
}

impl Inspect for Node {}

/// The requests to each node, in turn.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Script(pub(crate) Vec<Vec<Request>>);

impl Application<Node> for Script {
    fn next(&self, at: ProcessId) -> Option<Request> {
        self.0.get(at.0 as usize)?.first().cloned()
    }
    fn on_request(&mut self, at: ProcessId, _request: &Request) {
        self.0[at.0 as usize].remove(0);
    }
    fn on_indication(&mut self, _at: ProcessId, (): &()) {}
    fn waiting(&self) -> Vec<ProcessId> {
        Vec::new()
    }
}

/// Judges nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Nobody;

impl Monitor<Node> for Nobody {
    type Tag = ();
    fn on_receive(&mut self, _: ProcessId, _: Option<&Message>, (): &()) -> Verdict {
        Ok(())
    }
}

/// Everything that happens, line by line.
#[derive(Default, Debug)]
pub(crate) struct Transcript(pub(crate) Vec<String>);

impl Observer<Node> for Transcript {
    type Tag = u64;

    fn before_step(&mut self, now: Time, at: ProcessId, input: &Input<Node>, tag: &u64) {
        self.0.push(format!("{now} {at} < {input:?} #{tag}"));
    }
    fn on_effect(&mut self, now: Time, at: ProcessId, effect: &Effect<Node>) -> u64 {
        self.0.push(format!("{now} {at} > {effect:?}"));
        self.0.len() as u64
    }
    fn on_lost(&mut self, now: Time, from: ProcessId, to: ProcessId, tag: &u64) {
        self.0.push(format!("{now} {from} {to} lost #{tag}"));
    }
    fn on_duplicated(&mut self, now: Time, tag: &u64) {
        self.0.push(format!("{now} doubled #{tag}"));
    }
    fn on_incident(&mut self, now: Time, incident: &Incident) {
        self.0.push(format!("{now} ! {incident:?}"));
    }
}

pub(crate) type World = Sim<Node, Script, Nobody, (), Transcript>;

/// A run of as many nodes as there are scripts.
pub(crate) fn run(config: &Config, scripts: Vec<Vec<Request>>) -> (World, Ending) {
    let n = scripts.len();
    let parts = Parts {
        processes: vec![Node::default(); n],
        application: Script(scripts),
        monitor: Nobody,
        meter: (),
        observer: Transcript::default(),
    };
    let mut sim = Sim::new(Group::of(n), parts, config, |_| false);
    let ending = sim.run();
    (sim, ending)
}

/// The world with these faults, written as on the command line.
pub(crate) fn with_faults(faults: &[&str]) -> Config {
    let faults = faults.iter().map(|text| text.parse().expect("the test's faults are right"));
    Config { faults: faults.collect(), ..Config::default() }
}

pub(crate) fn numbers(sim: &World, node: usize) -> Vec<u32> {
    sim.processes()[node].got.iter().map(|(_, i)| *i).collect()
}

pub(crate) const P0: ProcessId = ProcessId(0);
pub(crate) const P1: ProcessId = ProcessId(1);
pub(crate) const P2: ProcessId = ProcessId(2);
