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
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use konklave_process::{Application, Context, Effect, Group, Host, Input, Process, ProcessId, Rng};
use tokio::time::Instant;

use crate::NetProcess;
use crate::timers::Timers;
use datagrams::{Datagrams, take_datagrams};
pub use sockets::Sockets;
use wire::{Outlets, Parcel, Ways, take_connections};

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
pub struct Member<P: Process, D: Process, A> {
    config: MemberConfig,
    process: P,
    timers: Timers<P::Timer>,
    detector: D,
    detector_timers: Timers<D::Timer>,
    news: fn(&D::Indication) -> Option<News>,
    application: A,
    rng: Rng,
}

/// What comes in, and from whom.
type Arrival<P, D> = (ProcessId, Parcel<<P as Process>::Message, <D as Process>::Message>);

/// What is told of a run: the time since its start, and what the application was told.
pub type Tell<'a, I> = &'a mut dyn FnMut(Duration, &I);

impl<P, D, A> Member<P, D, A>
where
    P: NetProcess,
    D: NetProcess,
    A: Application<P>,
{
    /// `process` with `detector`, whose indications `news` reads, and a client.
    pub fn new(
        config: MemberConfig,
        process: P,
        detector: D,
        news: fn(&D::Indication) -> Option<News>,
        application: A,
    ) -> Self {
        let rng = Rng::new(config.seed).fork(u64::from(config.me.0));
        let (timers, detector_timers) = (Timers::default(), Timers::default());
        Self { config, process, timers, detector, detector_timers, news, application, rng }
    }

    /// Runs until the time is up. The others listen at `addresses`, we do with `sockets`.
    pub fn run(
        mut self,
        sockets: Sockets,
        addresses: &BTreeMap<ProcessId, SocketAddr>,
        tell: Tell<'_, P::Indication>,
    ) -> io::Result<()> {
        let (sender, arrivals) = channel();
        let (me, limit) = (self.config.me, self.config.frame_limit);
        let group = self.config.group.clone();
        let ways = match sockets {
            Sockets::Streams(listener) => {
                take_connections(listener, group, limit, sender);
                Ways::streams(me, addresses)
            }
            Sockets::Multicast { own, shared, all } => {
                take_datagrams(own.try_clone()?, all, (me, group.clone()), sender.clone());
                take_datagrams(shared, all, (me, group.clone()), sender);
                let (addresses, pending) = (addresses.clone(), Vec::new());
                Ways::Datagrams(Datagrams { me, group, own, all, addresses, pending })
            }
        };
        let mut outlets = Outlets::new(me, limit, ways);
        let start = Instant::now();
        let mut tell = |told: &P::Indication| tell(start.elapsed(), told);
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
        arrivals: &Receiver<Arrival<P, D>>,
        left: Duration,
        outlets: &mut Outlets<P::Message, D::Message>,
        tell: &mut dyn FnMut(&P::Indication),
    ) {
        let (ours, its) = (self.timers.next(), self.detector_timers.next());
        let due = [ours.map(|(_, due)| due), its.map(|(_, due)| due)].into_iter().flatten().min();
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
        if let Some((timer, _)) = self.timers.next().filter(|(_, due)| *due <= now) {
            self.timers.cancel(timer);
            self.step(Input::Timer(timer), outlets, tell);
        }
        if let Some((timer, _)) = self.detector_timers.next().filter(|(_, due)| *due <= now) {
            self.detector_timers.cancel(timer);
            self.detect(Input::Timer(timer), outlets, tell);
        }
        self.ask(outlets, tell);
    }

    /// The client asks for what it wants.
    fn ask(
        &mut self,
        outlets: &mut Outlets<P::Message, D::Message>,
        tell: &mut dyn FnMut(&P::Indication),
    ) {
        if let Some(request) = self.application.next(self.config.me) {
            self.application.on_request(self.config.me, &request);
            self.step(Input::Request(request), outlets, tell);
        }
    }

    fn step(
        &mut self,
        input: Input<P>,
        outlets: &mut Outlets<P::Message, D::Message>,
        tell: &mut dyn FnMut(&P::Indication),
    ) {
        let MemberConfig { group, me, .. } = &self.config;
        let mut told = Vec::new();
        let mut send = |to, message| outlets.send(to, &Parcel::Own(message));
        let mut hand = Hand::<P> {
            timers: &mut self.timers,
            told: &mut told,
            rng: &mut self.rng,
            send: &mut send,
        };
        self.process.handle(input, &mut Context::new(*me, group, &mut hand));
        outlets.flush();
        for indication in &told {
            self.application.on_indication(*me, indication);
            tell(indication);
        }
    }

    fn detect(
        &mut self,
        input: Input<D>,
        outlets: &mut Outlets<P::Message, D::Message>,
        tell: &mut dyn FnMut(&P::Indication),
    ) {
        let MemberConfig { group, me, .. } = &self.config;
        let mut told = Vec::new();
        let mut send = |to, message| outlets.send(to, &Parcel::Detector(message));
        let mut hand = Hand::<D> {
            timers: &mut self.detector_timers,
            told: &mut told,
            rng: &mut self.rng,
            send: &mut send,
        };
        self.detector.handle(input, &mut Context::new(*me, group, &mut hand));
        outlets.flush();
        for news in told.iter().filter_map(self.news) {
            let input = match news {
                News::Suspect(peer) => Input::Suspect(peer),
                News::Trust(peer) => Input::Trust(peer),
            };
            self.step(input, outlets, tell);
        }
    }
}

/// What one step acts through.
struct Hand<'a, Q: Process> {
    timers: &'a mut Timers<Q::Timer>,
    told: &'a mut Vec<Q::Indication>,
    rng: &'a mut Rng,
    send: &'a mut dyn FnMut(ProcessId, Q::Message),
}

impl<Q: Process> Host<Q> for Hand<'_, Q> {
    fn perform(&mut self, effect: Effect<Q>) {
        match effect {
            Effect::Send { to, message } => (self.send)(to, message),
            Effect::SetTimer { timer, after } => self.timers.set(timer, Instant::now() + after),
            Effect::CancelTimer { timer } => self.timers.cancel(timer),
            Effect::Indicate(indication) => self.told.push(indication),
            // It is never started again, and what is unexpected is for judges, who are not here.
            Effect::Save(_) | Effect::Unexpected(_) => {}
        }
    }

    fn choose(&mut self, bound: u32) -> u32 {
        self.rng.below(bound)
    }
}
