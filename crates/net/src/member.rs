//! One process of an algorithm in an operating system process of its own.
//!
//! The members of such a group share only sockets: no judge sees all of them, no lock orders their steps, and
//! a killed member just falls silent. So each member also runs a failure detector: a second process beside
//! the algorithm, whose messages travel through the same connections.
//!
//! A member must not be restarted: its saved records are not kept anywhere.

mod datagrams;
mod sockets;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use konklave_process::{
    AnyApplication, AnyData, AnyProcess, Application, Context, Effect, Group, Host, Input, Inspect,
    ProcessId, Rng,
};
use tokio::time::Instant;

use crate::timers::Timers;
use datagrams::{Datagrams, take_datagrams};
pub use sockets::Sockets;
use wire::{MemberMessage, Outgoing, PeerLinks, Samples, take_connections};

/// The configuration of a member.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// All members.
    pub group: Group,
    /// The id of this member.
    pub me: ProcessId,
    /// The seed of its random choices.
    pub seed: u64,
    /// The member ends after this time.
    pub time_limit: Duration,
    /// The maximum length of a frame, in bytes.
    pub frame_limit: usize,
}

/// A report of the failure detector on a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// The peer is suspected to have crashed.
    Suspect(ProcessId),
    /// The peer is trusted again.
    Trust(ProcessId),
}

/// A member: a process of the algorithm, its failure detector and its client.
pub struct Member {
    config: MemberConfig,
    own: Layer,
    detector: Layer,
    news: fn(&AnyData) -> Option<News>,
    application: AnyApplication,
    rng: Rng,
}

/// A message received, with its sender.
type Arrival = (ProcessId, MemberMessage);

/// Called with each indication of the algorithm and its time since the start.
pub type OnIndication<'a> = &'a mut dyn FnMut(Duration, &AnyData);

impl Member {
    /// A member of these parts; `news` reads the indications of the detector.
    pub fn new(
        config: MemberConfig,
        process: AnyProcess,
        detector: AnyProcess,
        news: fn(&AnyData) -> Option<News>,
        application: AnyApplication,
    ) -> Self {
        let rng = Rng::new(config.seed).fork(u64::from(config.me.0));
        let layer = |process, wrap| Layer { process, timers: Timers::default(), wrap };
        let (own, detector) =
            (layer(process, MemberMessage::Own), layer(detector, MemberMessage::Detector));
        Self { config, own, detector, news, application, rng }
    }

    /// Runs until the time limit. This member listens on `sockets`, the others at `addresses`.
    pub fn run(
        mut self,
        sockets: Sockets,
        addresses: &BTreeMap<ProcessId, SocketAddr>,
        tell: OnIndication<'_>,
    ) -> io::Result<()> {
        let (sender, arrivals) = channel();
        let (me, limit) = (self.config.me, self.config.frame_limit);
        let group = self.config.group.clone();
        let (own, detector) = (self.own.process.clone(), self.detector.process.clone());
        let samples = Arc::new(Samples { own, detector });
        let links = match sockets {
            Sockets::Streams(listener) => {
                take_connections(listener, group, limit, samples, sender);
                PeerLinks::streams(me, addresses)
            }
            Sockets::Multicast { own, shared, all } => {
                for socket in [own.try_clone()?, shared] {
                    let us = (me, group.clone());
                    take_datagrams(socket, all, us, samples.clone(), sender.clone());
                }
                let (addresses, pending) = (addresses.clone(), Vec::new());
                PeerLinks::Datagrams(Datagrams { me, group, own, all, addresses, pending })
            }
        };
        let mut outgoing = Outgoing::new(me, limit, links);
        let start = Instant::now();
        let mut tell = |told: &AnyData| tell(start.elapsed(), told);
        self.detect(Input::Start, &mut outgoing, &mut tell);
        self.step(Input::Start, &mut outgoing, &mut tell);
        self.ask(&mut outgoing, &mut tell);
        while let Some(left) = self.config.time_limit.checked_sub(start.elapsed()) {
            self.next(&arrivals, left, &mut outgoing, &mut tell);
        }
        Ok(())
    }

    /// Waits for the next message or timer, and handles it.
    fn next(
        &mut self,
        arrivals: &Receiver<Arrival>,
        left: Duration,
        outgoing: &mut Outgoing,
        tell: &mut dyn FnMut(&AnyData),
    ) {
        let due = [self.own.timers.due(), self.detector.timers.due()].into_iter().flatten().min();
        let now = Instant::now();
        let wait = due.map_or(left, |due| due.saturating_duration_since(now)).min(left);
        match arrivals.recv_timeout(wait) {
            Ok((from, MemberMessage::Own(message))) => {
                self.step(Input::Message { from, message }, outgoing, tell);
            }
            Ok((from, MemberMessage::Detector(message))) => {
                self.detect(Input::Message { from, message }, outgoing, tell);
            }
            // No member can connect any more, but timers go on.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(wait),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        if let Some(timer) = self.own.timers.take_due(now) {
            self.step(Input::Timer(timer), outgoing, tell);
        }
        if let Some(timer) = self.detector.timers.take_due(now) {
            self.detect(Input::Timer(timer), outgoing, tell);
        }
        self.ask(outgoing, tell);
    }

    /// Makes the next request of the client, if it has one.
    fn ask(&mut self, outgoing: &mut Outgoing, tell: &mut dyn FnMut(&AnyData)) {
        if let Some(request) = self.application.next(self.config.me) {
            self.application.on_request(self.config.me, &request);
            self.step(Input::Request(request), outgoing, tell);
        }
    }

    fn step(
        &mut self,
        input: Input<AnyProcess>,
        outgoing: &mut Outgoing,
        tell: &mut dyn FnMut(&AnyData),
    ) {
        for indication in self.own.handle(input, &self.config, &mut self.rng, outgoing) {
            self.application.on_indication(self.config.me, &indication);
            tell(&indication);
        }
    }

    fn detect(
        &mut self,
        input: Input<AnyProcess>,
        outgoing: &mut Outgoing,
        tell: &mut dyn FnMut(&AnyData),
    ) {
        let told = self.detector.handle(input, &self.config, &mut self.rng, outgoing);
        for news in told.iter().filter_map(self.news) {
            let input = match news {
                News::Suspect(peer) => Input::Suspect(peer),
                News::Trust(peer) => Input::Trust(peer),
            };
            self.step(input, outgoing, tell);
        }
    }
}

/// One of the two processes of a member, with its timers.
struct Layer {
    process: AnyProcess,
    timers: Timers,
    /// Marks a message as one of this layer.
    wrap: fn(AnyData) -> MemberMessage,
}

impl Layer {
    /// Makes a step; returns its indications.
    fn handle(
        &mut self,
        input: Input<AnyProcess>,
        MemberConfig { me, group, .. }: &MemberConfig,
        rng: &mut Rng,
        outgoing: &mut Outgoing,
    ) -> Vec<AnyData> {
        let Self { process, timers, wrap } = self;
        let mut hand = LayerHost { timers, wrap: *wrap, rng, outgoing, told: Vec::new() };
        process.handle(input, &mut Context::new(*me, group, &mut hand));
        let told = hand.told;
        outgoing.flush();
        told
    }
}

/// The host of one step.
struct LayerHost<'a> {
    timers: &'a mut Timers,
    wrap: fn(AnyData) -> MemberMessage,
    rng: &'a mut Rng,
    outgoing: &'a mut Outgoing,
    told: Vec<AnyData>,
}

impl Host<AnyProcess> for LayerHost<'_> {
    fn perform(&mut self, effect: Effect<AnyProcess>) {
        match effect {
            Effect::Send { to, message } => self.outgoing.send(to, &(self.wrap)(message)),
            Effect::SetTimer { timer, after } => self.timers.set(timer, Instant::now() + after),
            Effect::CancelTimer { timer } => self.timers.cancel(&timer),
            Effect::Indicate(indication) => self.told.push(indication),
            // A member is never restarted, so records are not kept. There is no judge for the unexpected.
            Effect::Save(_) | Effect::Unexpected(_) => {}
        }
    }

    fn choose(&mut self, bound: u32) -> u32 {
        self.rng.below(bound)
    }
}
