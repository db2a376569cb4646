//! One process in an operating system process of its own.
//!
//! The members of such a group share nothing but sockets: no judge sees all of them, no lock orders
//! their steps, and whoever is killed just falls silent. So each carries a failure detector along,
//! another process beside the algorithm, whose messages travel through the same connections.
//!
//! A member lives once: what it saves is not kept anywhere, so it must not be started again.

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
use wire::{Outlets, Parcel, Samples, Ways, take_connections};

/// What a member is part of.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// Everyone.
    pub group: Group,
    /// Which of them this is.
    pub me: ProcessId,
    /// Where its draws come from.
    pub seed: u64,
    /// It ends after this time.
    pub time_limit: Duration,
    /// No frame is longer than this, in bytes.
    pub frame_limit: usize,
}

/// What a detector says of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// It is taken for crashed.
    Suspect(ProcessId),
    /// It is taken for alive again.
    Trust(ProcessId),
}

/// A member, with the detector that it carries along.
pub struct Member {
    config: MemberConfig,
    own: Layer,
    detector: Layer,
    news: fn(&AnyData) -> Option<News>,
    application: AnyApplication,
    rng: Rng,
}

/// What comes in, and from whom.
type Arrival = (ProcessId, Parcel);

/// What is told of a run: the time since its start, and what the application was told.
pub type Tell<'a> = &'a mut dyn FnMut(Duration, &AnyData);

impl Member {
    /// `process` with `detector`, whose indications `news` reads, and a client.
    pub fn new(
        config: MemberConfig,
        process: AnyProcess,
        detector: AnyProcess,
        news: fn(&AnyData) -> Option<News>,
        application: AnyApplication,
    ) -> Self {
        let rng = Rng::new(config.seed).fork(u64::from(config.me.0));
        let layer = |process, wrap| Layer { process, timers: Timers::default(), wrap };
        let (own, detector) = (layer(process, Parcel::Own), layer(detector, Parcel::Detector));
        Self { config, own, detector, news, application, rng }
    }

    /// Runs until the time is up. The others listen at `addresses`, we do with `sockets`.
    pub fn run(
        mut self,
        sockets: Sockets,
        addresses: &BTreeMap<ProcessId, SocketAddr>,
        tell: Tell<'_>,
    ) -> io::Result<()> {
        let (sender, arrivals) = channel();
        let (me, limit) = (self.config.me, self.config.frame_limit);
        let group = self.config.group.clone();
        let (own, detector) = (self.own.process.clone(), self.detector.process.clone());
        let samples = Arc::new(Samples { own, detector });
        let ways = match sockets {
            Sockets::Streams(listener) => {
                take_connections(listener, group, limit, samples, sender);
                Ways::streams(me, addresses)
            }
            Sockets::Multicast { own, shared, all } => {
                for socket in [own.try_clone()?, shared] {
                    let us = (me, group.clone());
                    take_datagrams(socket, all, us, samples.clone(), sender.clone());
                }
                let (addresses, pending) = (addresses.clone(), Vec::new());
                Ways::Datagrams(Datagrams { me, group, own, all, addresses, pending })
            }
        };
        let mut outlets = Outlets::new(me, limit, ways);
        let start = Instant::now();
        let mut tell = |told: &AnyData| tell(start.elapsed(), told);
        self.detect(Input::Start, &mut outlets, &mut tell);
        self.step(Input::Start, &mut outlets, &mut tell);
        self.ask(&mut outlets, &mut tell);
        while let Some(left) = self.config.time_limit.checked_sub(start.elapsed()) {
            self.next(&arrivals, left, &mut outlets, &mut tell);
        }
        Ok(())
    }

    /// Waits for what comes next, and does it.
    fn next(
        &mut self,
        arrivals: &Receiver<Arrival>,
        left: Duration,
        outlets: &mut Outlets,
        tell: &mut dyn FnMut(&AnyData),
    ) {
        let due = [self.own.timers.due(), self.detector.timers.due()].into_iter().flatten().min();
        let now = Instant::now();
        let wait = due.map_or(left, |due| due.saturating_duration_since(now)).min(left);
        match arrivals.recv_timeout(wait) {
            Ok((from, Parcel::Own(message))) => {
                self.step(Input::Message { from, message }, outlets, tell);
            }
            Ok((from, Parcel::Detector(message))) => {
                self.detect(Input::Message { from, message }, outlets, tell);
            }
            // Nobody can connect any more; timers go on.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(wait),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        if let Some(timer) = self.own.timers.take_due(now) {
            self.step(Input::Timer(timer), outlets, tell);
        }
        if let Some(timer) = self.detector.timers.take_due(now) {
            self.detect(Input::Timer(timer), outlets, tell);
        }
        self.ask(outlets, tell);
    }

    /// The client asks for what it wants.
    fn ask(&mut self, outlets: &mut Outlets, tell: &mut dyn FnMut(&AnyData)) {
        if let Some(request) = self.application.next(self.config.me) {
            self.application.on_request(self.config.me, &request);
            self.step(Input::Request(request), outlets, tell);
        }
    }

    fn step(
        &mut self,
        input: Input<AnyProcess>,
        outlets: &mut Outlets,
        tell: &mut dyn FnMut(&AnyData),
    ) {
        for indication in self.own.handle(input, &self.config, &mut self.rng, outlets) {
            self.application.on_indication(self.config.me, &indication);
            tell(&indication);
        }
    }

    fn detect(
        &mut self,
        input: Input<AnyProcess>,
        outlets: &mut Outlets,
        tell: &mut dyn FnMut(&AnyData),
    ) {
        let told = self.detector.handle(input, &self.config, &mut self.rng, outlets);
        for news in told.iter().filter_map(self.news) {
            let input = match news {
                News::Suspect(peer) => Input::Suspect(peer),
                News::Trust(peer) => Input::Trust(peer),
            };
            self.step(input, outlets, tell);
        }
    }
}

/// One of the two processes of a member, with its timers.
struct Layer {
    process: AnyProcess,
    timers: Timers,
    /// Marks its messages as its own.
    wrap: fn(AnyData) -> Parcel,
}

impl Layer {
    /// Makes a step: its indications.
    fn handle(
        &mut self,
        input: Input<AnyProcess>,
        MemberConfig { me, group, .. }: &MemberConfig,
        rng: &mut Rng,
        outlets: &mut Outlets,
    ) -> Vec<AnyData> {
        let Self { process, timers, wrap } = self;
        let mut hand = Hand { timers, wrap: *wrap, rng, outlets, told: Vec::new() };
        process.handle(input, &mut Context::new(*me, group, &mut hand));
        let told = hand.told;
        outlets.flush();
        told
    }
}

/// What one step acts through.
struct Hand<'a> {
    timers: &'a mut Timers,
    wrap: fn(AnyData) -> Parcel,
    rng: &'a mut Rng,
    outlets: &'a mut Outlets,
    told: Vec<AnyData>,
}

impl Host<AnyProcess> for Hand<'_> {
    fn perform(&mut self, effect: Effect<AnyProcess>) {
        match effect {
            Effect::Send { to, message } => self.outlets.send(to, &(self.wrap)(message)),
            Effect::SetTimer { timer, after } => self.timers.set(timer, Instant::now() + after),
            Effect::CancelTimer { timer } => self.timers.cancel(&timer),
            Effect::Indicate(indication) => self.told.push(indication),
            // It is never started again, and what is unexpected is for judges, who are not here.
            Effect::Save(_) | Effect::Unexpected(_) => {}
        }
    }

    fn choose(&mut self, bound: u32) -> u32 {
        self.rng.below(bound)
    }
}
