//! Real runs for the tests: the simulator with a recorder that watches.

use konklave_algorithms::{Algorithm, Pause, Problem, Setup, Watch, Workload, erased};
use konklave_process::{
    AnyProcess, Effect, Group, Input, Portable, ProcessId, Recordable, Topology,
};
use konklave_sim::{Config, Ending, Fault, Observer, Parts, Sim, Time};
use konklave_trace::{Footer, Header, IncidentKind, Memory, Recorder, Run, Sink};

/// Tells a recorder what happens in the simulator.
pub(crate) struct Watcher<S> {
    recorder: Recorder<S>,
}

impl<P: Recordable, S: Sink> Observer<P> for Watcher<S> {
    type Tag = u64;

    fn before_step(&mut self, now: Time, at: ProcessId, input: &Input<P>, tag: &u64) {
        self.recorder.begin(now, at, input.view(), *tag);
    }
    fn on_effect(&mut self, _now: Time, _at: ProcessId, effect: &Effect<P>) -> u64 {
        self.recorder.effect(effect.view())
    }
    fn on_draw(&mut self, drawn: u32) {
        self.recorder.draw(drawn);
    }
    fn after_step(&mut self, _now: Time, _at: ProcessId, process: &P) {
        self.recorder.end(process);
    }
    fn on_lost(&mut self, now: Time, _from: ProcessId, _to: ProcessId, tag: &u64) {
        self.recorder.lost(now, *tag);
    }
    fn on_duplicated(&mut self, now: Time, tag: &u64) {
        self.recorder.duplicated(now, *tag);
    }
    fn on_app_message(&mut self, now: Time, from: ProcessId, to: ProcessId) -> u64 {
        self.recorder.app_message(now, from, to)
    }
    fn on_incident(&mut self, now: Time, incident: &konklave_sim::Incident) {
        use konklave_sim::Incident;
        let kind = match incident {
            Incident::Crash(p) => IncidentKind::Crash(p.0),
            // The tests restart with what was saved only.
            Incident::Restart(p, _) => IncidentKind::Restart { node: p.0, memory: Memory::Saved },
            Incident::Pause(p) => IncidentKind::Pause(p.0),
            Incident::Resume(p) => IncidentKind::Resume(p.0),
            Incident::Cut(what) => IncidentKind::Cut(what.clone()),
            Incident::Heal(what) => IncidentKind::Heal(what.clone()),
            Incident::Violation { property, detail } => {
                IncidentKind::Violation { property: (*property).to_owned(), detail: detail.clone() }
            }
        };
        self.recorder.incident(now, kind);
    }
}

/// A group, its world and its wishes.
pub(crate) struct Scene {
    pub(crate) setup: Setup,
    pub(crate) config: Config,
    pub(crate) workload: Workload,
}

impl Scene {
    /// `ids` in node order, each asking `requests` times.
    pub(crate) fn new(ids: &[u32], topology: Topology, requests: u32) -> Self {
        let members: Vec<ProcessId> = ids.iter().copied().map(ProcessId).collect();
        let group = Group::new(members.clone()).unwrap();
        let workload = Workload { initiators: members, requests: vec![requests; ids.len()] };
        Self { setup: Setup::new(group, topology), config: Config::default(), workload }
    }

    pub(crate) fn faults(mut self, faults: &[&str]) -> Self {
        self.config.faults = faults.iter().map(|f| f.parse::<Fault>().unwrap()).collect();
        self
    }

    /// New processes of `P`, for a replay.
    pub(crate) fn processes<P: Algorithm + Portable>(&self) -> Vec<AnyProcess> {
        erased::<P>().processes(&self.setup)
    }

    pub(crate) fn header<P: Algorithm>(&self) -> Header {
        let nodes = self.setup.group.members().iter().map(|p| p.0).collect();
        let name = format!("{}/{}", <P::Problem as Problem<P>>::SHEET.name, P::SHEET.name);
        Header {
            topology: self.setup.topology.name.clone(),
            seed: self.config.seed,
            mistake: self.setup.mistake.map(str::to_owned),
            command: format!("konklave run {name} -n {}", self.setup.group.len()),
            ..Header::new(name, nodes)
        }
    }

    /// Runs `P` and records to memory.
    pub(crate) fn run<P: Algorithm + Recordable>(&self) -> Run {
        self.record::<P, Run>(Recorder::new(self.header::<P>()))
    }

    /// Runs `P` and records to `recorder`.
    pub(crate) fn record<P: Algorithm + Recordable, S: Sink>(
        &self,
        recorder: Recorder<S>,
    ) -> S::Done {
        let parts = Parts {
            processes: self.setup.group.members().iter().map(|&p| P::new(p, &self.setup)).collect(),
            application: <P::Problem as Problem<P>>::application(&self.workload, &self.setup),
            monitor: <P::Problem as Problem<P>>::monitor(&Watch::all(&P::SHEET), &self.setup),
            meter: <P::Problem as Problem<P>>::meter(&self.setup),
            observer: Watcher { recorder },
        };
        let is_hold =
            |request: &P::Request| <P::Problem as Problem<P>>::pause(request) == Pause::Hold;
        let mut sim = Sim::new(self.setup.group.clone(), parts, &self.config, is_hold);
        let ending = sim.run();
        sim.judge(ending);
        let verdict = match (sim.violations().is_empty(), ending) {
            (false, _) => "violated",
            (true, Ending::Quiet) => "ok",
            (true, Ending::CutOff) => "unfinished",
        };
        let counts = sim.counts().clone();
        let summary = serde_json::json!({"sent": counts.sent, "steps": counts.steps});
        sim.into_observer().recorder.finish(Some(Footer { verdict: verdict.into(), summary }))
    }
}
