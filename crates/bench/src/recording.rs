//! Recording a run to disk in both forms, beside the same run without recording; and drawing one.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Instant;

use konklave_algorithms::election::chang_roberts::ChangRoberts;
use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_algorithms::{Algorithm, Setup, Workload};
use konklave_process::{Effect, EffectView, Group, Input, ProcessId, Recordable, Topology};
use konklave_sim::{Config, Delay, Observer, Pace, Parts, Sim, Time};
use konklave_trace::compact::CompactRecorder;
use konklave_trace::diagram::Options;
use konklave_trace::export::html;
use konklave_trace::{Header, Recorder, Run, Sink, Writer, svg};
use serde_json::json;

use crate::measure::cpu_nanos;
use crate::say;
use crate::workloads::{is_hold, parts_of, permutation};

/// A run to be recorded.
struct Scene {
    title: String,
    setup: Setup,
    workload: Workload,
    config: Config,
}

/// The best of several runs, in seconds.
#[derive(Clone, Copy)]
struct Quickest {
    /// The elapsed time of the fastest run.
    wall: f64,
    /// The mean processor time, since the system counts too coarsely for one run: the time that an idle machine
    /// with a fast disk would take.
    cpu: f64,
}

/// Prints a row for each workload and form, and one for each picture.
pub(crate) fn recording(quick: bool, as_json: bool) -> Result<(), String> {
    let runs = if quick { 2 } else { 7 };
    if !as_json {
        say(&format!(
            "{:<22} {:>8} {:<8} {:>8} {:>9} {:>8} {:>8} {:>6}",
            "workload", "events", "form", "B/event", "M/s wall", "M/s cpu", "ns cpu", "ratio"
        ))?;
    }
    for (n, entries) in [(10, 500), (30, 50), (100, 5)] {
        rows::<RicartAgrawala>(&mutex(n, entries), runs, as_json)?;
    }
    rows::<ChangRoberts>(&ring(10_000), runs, as_json)?;
    pictures(runs, as_json)
}

fn mutex(n: usize, entries: u32) -> Scene {
    Scene {
        title: format!("Ricart–Agrawala n={n}"),
        setup: Setup::new(Group::of(n), Topology::complete(n)),
        workload: Workload { initiators: Vec::new(), requests: vec![entries; n] },
        config: Config {
            seed: 1,
            fifo: false,
            delay: Delay::Uniform(0.001, 1.0),
            hold: Pace::Constant(0.01),
            ..Config::default()
        },
    }
}

fn ring(n: usize) -> Scene {
    let ids = permutation(n);
    Scene {
        title: format!("Chang–Roberts n={n}"),
        setup: Setup::new(
            Group::new(ids.clone()).unwrap_or_else(|_| Group::of(n)),
            Topology::directed_ring(n),
        ),
        workload: Workload { initiators: ids, requests: Vec::new() },
        config: Config::default(),
    }
}

fn rows<P: Algorithm + Recordable>(scene: &Scene, runs: u32, as_json: bool) -> Result<(), String> {
    let path = Kept(std::env::temp_dir().join(format!("konklave-bench-{}", std::process::id())));
    let Counter(events) = go::<P, _>(scene, Counter(0));
    let alone = quickest(runs, || {
        go::<P, _>(scene, ());
        Ok(())
    })?;
    let compact = quickest(runs, || compact::<P>(scene, &path.0))?;
    let compact_bytes = size(&path.0)?;
    let lines = quickest(runs, || lines::<P>(scene, &path.0))?;
    let lines_bytes = size(&path.0)?;
    let forms =
        [("off", alone, 0), ("compact", compact, compact_bytes), ("JSON", lines, lines_bytes)];
    for (form, Quickest { wall, cpu }, bytes) in forms {
        let per_event = bytes as f64 / events as f64;
        let (wall_rate, cpu_rate) = (events as f64 / wall / 1e6, events as f64 / cpu / 1e6);
        let (nanos, ratio) = (cpu * 1e9 / events as f64, cpu / alone.cpu);
        if as_json {
            say(&json!({
                "workload": scene.title,
                "form": form,
                "events": events,
                "bytes_per_event": per_event,
                "million_events_per_second": wall_rate,
                "million_events_per_cpu_second": cpu_rate,
                "ratio_to_no_recording": ratio,
            })
            .to_string())?;
        } else {
            say(&format!(
                "{:<22} {events:>8} {form:<8} {per_event:>8.1} {wall_rate:>9.2} {cpu_rate:>8.2} \
                 {nanos:>8.1} {ratio:>6.1}",
                scene.title
            ))?;
        }
    }
    Ok(())
}

/// A run of ten thousand events, laid out and drawn.
fn pictures(runs: u32, as_json: bool) -> Result<(), String> {
    let scene = mutex(5, 250);
    let header = header::<RicartAgrawala>(&scene);
    let recorder = Watcher { recorder: Recorder::<Run>::new(header) };
    let Watcher { recorder } = go::<RicartAgrawala, _>(&scene, recorder);
    let run = recorder.finish(None);
    let options = Options::of(konklave_algorithms::mutex::SHEET.conditions);
    let mut bytes = 0;
    type Draw = fn(&Run, &Options) -> String;
    let forms: [(&str, Draw); 2] = [("SVG", svg::draw), ("player", html)];
    for (form, draw) in forms {
        let took = quickest(runs, || {
            bytes = draw(&run, &options).len();
            Ok(())
        })?;
        let (events, millis, cpu) = (run.entries.len(), took.wall * 1e3, took.cpu * 1e3);
        if as_json {
            say(&json!({"picture": form, "entries": events, "ms": millis, "cpu_ms": cpu, "bytes": bytes})
                .to_string())?;
        } else {
            let kilobytes = bytes / 1024;
            say(&format!(
                "{form} of {events} steps: {millis:.0} ms, {cpu:.0} of them on a processor; {kilobytes} KB"
            ))?;
        }
    }
    Ok(())
}

fn quickest(runs: u32, mut work: impl FnMut() -> Result<(), String>) -> Result<Quickest, String> {
    let (mut wall, cpu) = (f64::INFINITY, cpu_nanos());
    let (mut done, all) = (0, Instant::now());
    // Long enough for the system's coarse count.
    while done < runs || all.elapsed().as_millis() < 200 {
        let begin = Instant::now();
        work()?;
        wall = wall.min(begin.elapsed().as_secs_f64());
        done += 1;
    }
    let cpu = cpu_nanos().saturating_sub(cpu) as f64 / 1e9 / f64::from(done);
    // Without processor time, elapsed time has to do.
    Ok(Quickest { wall, cpu: if cpu > 0.0 { cpu } else { wall } })
}

fn compact<P: Algorithm + Recordable>(scene: &Scene, path: &Path) -> Result<(), String> {
    let recorder = CompactRecorder::new(&header::<P>(scene), create(path)?);
    let Streamer(recorder) = go::<P, _>(scene, Streamer(recorder));
    on_disk(&recorder.finish(None).map_err(failed)?)
}

fn lines<P: Algorithm + Recordable>(scene: &Scene, path: &Path) -> Result<(), String> {
    let out = BufWriter::with_capacity(1 << 16, create(path)?);
    let recorder = Recorder::<Writer<_>>::writing(&header::<P>(scene), out);
    let Watcher { recorder } = go::<P, _>(scene, Watcher { recorder });
    on_disk(recorder.finish(None).map_err(failed)?.get_ref())
}

fn create(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Waits until the file is on disk: data that is only in the system's memory does not count as written.
fn on_disk(file: &File) -> Result<(), String> {
    file.sync_data().map_err(failed)
}

fn failed(error: std::io::Error) -> String {
    format!("cannot record: {error}")
}

fn size(path: &Path) -> Result<u64, String> {
    std::fs::metadata(path).map(|about| about.len()).map_err(failed)
}

/// A file that is removed when it is dropped.
struct Kept(PathBuf);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn header<P: Algorithm>(scene: &Scene) -> Header {
    let nodes = scene.setup.group.members().iter().map(|p| p.0).collect();
    Header::new(P::SHEET.name, nodes)
}

/// Runs the scene to its end and returns the observer.
fn go<P, O>(scene: &Scene, observer: O) -> O
where
    P: Algorithm,
    O: Observer<P>,
{
    let Parts { processes, application, monitor, meter, observer: () } =
        parts_of::<P>(&scene.setup, &scene.workload);
    let parts = Parts { processes, application, monitor, meter, observer };
    let mut sim = Sim::new(scene.setup.group.clone(), parts, &scene.config, is_hold::<P>);
    sim.run();
    sim.into_observer()
}

/// Counts events: inputs and effects. Sending a message and receiving it are two events.
struct Counter(u64);

impl<P: konklave_process::Process> Observer<P> for Counter {
    type Tag = ();

    fn before_step(&mut self, _now: Time, _at: ProcessId, _input: &Input<P>, _tag: &()) {
        self.0 += 1;
    }
    fn on_effect(&mut self, _now: Time, _at: ProcessId, _effect: &Effect<P>) {
        self.0 += 1;
    }
}

/// Records in the compact form.
struct Streamer(CompactRecorder<File>);

impl<P: Recordable> Observer<P> for Streamer {
    type Tag = u64;

    fn before_step(&mut self, now: Time, at: ProcessId, input: &Input<P>, tag: &u64) {
        self.0.begin(now, at, input.view(), *tag);
    }
    fn on_effect(&mut self, _now: Time, _at: ProcessId, effect: &Effect<P>) -> u64 {
        self.0.effect(effect.view())
    }
    fn on_send(&mut self, _now: Time, _at: ProcessId, to: ProcessId, message: &P::Message) -> u64 {
        self.0.effect(EffectView::Send(to, message))
    }
    fn after_step(&mut self, _now: Time, _at: ProcessId, process: &P) {
        self.0.end(process);
    }
}

/// Records as JSON, to memory or to a file.
struct Watcher<S> {
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
    fn after_step(&mut self, _now: Time, _at: ProcessId, process: &P) {
        self.recorder.end(process);
    }
}
