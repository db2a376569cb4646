//! The ledger of a run: clients, judges and measures, the same in every world. It gets every event.

use std::marker::PhantomData;

use crate::{Application, End, Inspect, Meter, Monitor, ProcessId, Verdict, Violation};

/// The clients, judges and measures of a run.
///
/// The simulator, the network and the replay have one ledger for the whole run. In the checker it is part of
/// every state; a state has no time, so its meter is `()`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ledger<P, A, M, T = ()> {
    /// The clients.
    pub application: A,
    monitor: M,
    meter: T,
    process: PhantomData<fn(P)>,
}

impl<P, A, M, T> Ledger<P, A, M, T>
where
    P: Inspect,
    A: Application<P>,
    M: Monitor<P>,
    T: Meter<P>,
{
    /// The ledger of a run that begins.
    pub fn new(application: A, monitor: M, meter: T) -> Self {
        Self { application, monitor, meter, process: PhantomData }
    }

    /// The client at `at` makes `request`.
    #[inline]
    pub fn on_request(&mut self, now: u64, at: ProcessId, request: &P::Request) -> Verdict {
        self.meter.on_request(now, at, request);
        self.application.on_request(at, request);
        self.monitor.on_request(at, request)
    }

    /// The request of the client at `at` arrived at this time; it waited for an earlier one.
    #[inline]
    pub fn on_arrival(&mut self, arrived: u64, at: ProcessId) {
        self.meter.on_arrival(arrived, at);
    }

    /// The process `at` gives `indication` to its client.
    #[inline]
    pub fn on_indication(
        &mut self,
        now: u64,
        at: ProcessId,
        indication: &P::Indication,
    ) -> Verdict {
        self.meter.on_indication(now, at, indication);
        self.application.on_indication(at, indication);
        self.monitor.on_indication(at, indication)
    }

    /// A message is sent; none stands for a message of the application past the algorithm.
    #[inline(always)]
    pub fn on_send(&mut self, from: ProcessId, message: Option<&P::Message>) -> M::Tag {
        self.monitor.on_send(from, message)
    }

    /// A message arrives and is about to be handled.
    #[inline(always)]
    pub fn on_receive(
        &mut self,
        at: ProcessId,
        message: Option<&P::Message>,
        tag: &M::Tag,
    ) -> Verdict {
        self.monitor.on_receive(at, message, tag)
    }

    /// A message is lost.
    pub fn on_lost(&mut self, message: &P::Message) {
        self.monitor.on_lost(message);
    }

    /// A message in flight is duplicated.
    pub fn on_duplicated(&mut self, message: &P::Message) {
        self.monitor.on_duplicated(message);
    }

    /// The link between two processes breaks.
    pub fn on_break(&mut self, one: ProcessId, other: ProcessId) {
        self.monitor.on_break(one, other);
    }

    /// A broken link is mended.
    pub fn on_mend(&mut self, one: ProcessId, other: ProcessId) {
        self.monitor.on_mend(one, other);
    }

    /// A step of the process `at` ends; `process` is the state after it.
    #[inline(always)]
    pub fn after_step(&mut self, at: ProcessId, process: &P) -> Verdict {
        self.monitor.after_step(at, process)
    }

    /// An event at `at` comes soon; `told` says whether clients have got indications recently.
    #[inline]
    pub fn prefetch(&self, at: ProcessId, told: bool) {
        self.monitor.prefetch(at, told);
        if told {
            self.application.prefetch(at);
        }
    }

    /// The process `at` crashes.
    pub fn on_crash(&mut self, now: u64, at: ProcessId) {
        self.application.on_crash(at);
        self.monitor.on_crash(at);
        self.meter.on_crash(now, at);
    }

    /// The process `at` restarts.
    pub fn on_restart(&mut self, at: ProcessId) {
        self.application.on_restart(at);
        self.monitor.on_restart(at);
        self.meter.on_restart(at);
    }

    /// Whether no client waits, and none at the processes `up` has a further request.
    pub fn is_served(&self, mut up: impl Iterator<Item = ProcessId>) -> bool {
        self.application.waiting().is_empty() && !up.any(|p| self.application.next(p).is_some())
    }

    /// The judges.
    pub fn monitor(&self) -> &M {
        &self.monitor
    }

    /// The measures.
    pub fn meter(&self) -> &T {
        &self.meter
    }

    /// The clients, the judges and the measures.
    pub fn into_parts(self) -> (A, M, T) {
        (self.application, self.monitor, self.meter)
    }

    /// Judges the end of a run by what clients and judges know. Whether processes are at rest is left out: see
    /// [`judge_rest`].
    pub fn judge_clients(&self, end: &End) -> Verdict {
        self.monitor.at_end(end)
    }

    /// Judges the end of a run; `processes` are the last states of all members.
    pub fn judge_end<'a>(
        &self,
        end: &End,
        processes: impl Iterator<Item = (ProcessId, &'a P)>,
    ) -> Verdict
    where
        P: 'a,
    {
        self.judge_clients(end)?;
        let mut up = processes.filter(|(p, _)| end.alive.contains(*p));
        let restless = up.find(|(_, process)| !process.at_rest()).map(|(p, _)| p);
        judge_rest(end.quiet && self.application.waiting().is_empty(), restless)
    }
}

/// Judges quiescence at an end: if nothing more can happen, every process must be at rest. `restless` is one
/// that is not. (A run with a waiting client is not judged by this, since the waiting explains it; the
/// checker judges each property by itself.)
pub fn judge_rest(quiet: bool, restless: Option<ProcessId>) -> Verdict {
    match restless {
        Some(p) if quiet => Err(Violation::unquiet(p)),
        _ => Ok(()),
    }
}
