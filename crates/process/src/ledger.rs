//! The ledger of a run: clients, judges and measures, the same in every world.

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
    /// The judges.
    pub monitor: M,
    /// The measures.
    pub meter: T,
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

    /// Judges the end of a run; `processes` are the last states of all members.
    pub fn judge_end<'a>(
        &self,
        end: &End,
        processes: impl Iterator<Item = (ProcessId, &'a P)>,
    ) -> Verdict
    where
        P: 'a,
    {
        self.monitor.at_end(end)?;
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
