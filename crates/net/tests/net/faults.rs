//! Crashes, restarts, foreign connections, and processes with bugs.

use std::time::Duration;

use konklave_algorithms::detector::heartbeat::Heartbeat;
use konklave_algorithms::election::Properties;
use konklave_algorithms::election::chang_roberts::ChangRoberts;
use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_algorithms::{Setup, Workload, erased};
use konklave_net::codec::{self, Hello};
use konklave_net::{
    Counts, Ending, FaultKind, IsHold, NetConfig, NetError, NetFault, Parts, PauseContext,
    Transport, Trouble, no_message_faults, no_pause, run_group,
};
use konklave_process::{
    AnyApplication, AnyMeter, AnyMonitor, AnyProcess, Application, Context, Group, Inspect,
    Monitor, NoRequest, Portable, Process, ProcessId, ProcessSet, Topology, Violation,
};
use konklave_trace::{Entry, Header, IncidentKind, Recorder, replay};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{millis, run, start};

const WORLDS: [Transport; 2] = [Transport::Threads, Transport::Tcp];

fn crash(at: u64, p: u32) -> NetFault {
    NetFault { at: millis(at), process: ProcessId(p), kind: FaultKind::Crash }
}

fn restart(at: u64, p: u32) -> NetFault {
    NetFault { kind: FaultKind::Restart, ..crash(at, p) }
}

fn config(transport: Transport, time_limit: u64, faults: Vec<NetFault>) -> NetConfig {
    NetConfig { transport, time_limit: millis(time_limit), faults, ..NetConfig::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn survivors_suspect_a_crashed_process_and_trust_it_after_its_restart() {
    let mut setup = Setup::new(Group::of(5), Topology::complete(5));
    // A busy machine must not look like a crash: three missed periods are 300 ms.
    setup.unit = millis(50);
    for world in WORLDS {
        let faults = vec![crash(200, 3), crash(250, 1), restart(900, 1)];
        let config = config(world, 1600, faults);
        let outcome = run(erased::<Heartbeat>(), &setup, &Workload::default(), config).await;
        assert_eq!(outcome.ending, Ending::CutOff);
        // Completeness and accuracy are judged at the end.
        assert_eq!(outcome.violations, []);
        assert_eq!(outcome.down, ProcessSet::from_iter([ProcessId(3)]));
        let counts = &outcome.counts;
        assert!(counts.lost > 0 && counts.delivered > 0 && outcome.faulty);
        assert!(counts.sent >= counts.delivered + counts.lost);
        let recording = outcome.recorder.unwrap().finish(None);
        replay(&recording, erased::<Heartbeat>().processes(&setup), &setup.group).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn news_of_a_crash_mends_the_ring() {
    let setup = Setup::new(Group::of(6), Topology::directed_ring(6));
    for world in WORLDS {
        let mut config = config(world, 5000, vec![crash(10, 5)]);
        config.detect_after = Some(millis(5));
        let workload = Workload { initiators: vec![ProcessId(0)], requests: vec![2; 6] };
        // The second election comes when the crash is known.
        let mut pauses = [0, 300].into_iter();
        let pause = Box::new(move |_| millis(pauses.next().unwrap_or(0)));
        let running = start(erased::<ChangRoberts>(), &setup, &workload, config, pause).await;
        let outcome = running.finish().await.unwrap();
        assert_eq!(outcome.ending, Ending::Quiet);
        assert_eq!(outcome.violations, []);
        assert_eq!(outcome.monitor.get::<Properties>().leader(), Some((ProcessId(4), 0)));
        assert!(outcome.elapsed < millis(2000));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_lost_by_a_crash_are_counted_and_clients_wait_forever() {
    let setup = Setup::new(Group::of(3), Topology::complete(3));
    for world in WORLDS {
        let config = config(world, 5000, vec![crash(30, 2)]);
        let workload = Workload { initiators: Vec::new(), requests: vec![100_000, 100_000, 0] };
        let outcome = run(erased::<RicartAgrawala>(), &setup, &workload, config).await;
        // No client enters without the reply of the crashed process, so the run is quiet.
        assert_eq!(outcome.ending, Ending::Quiet);
        assert_eq!(outcome.violations, []);
        assert_eq!(outcome.waiting, [ProcessId(0), ProcessId(1)]);
        let counts = &outcome.counts;
        assert!(counts.lost > 0);
        assert_eq!(counts.sent, counts.delivered + counts.lost);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_connections_do_no_harm() {
    let setup = Setup::new(Group::of(3), Topology::complete(3));
    let workload = Workload { initiators: Vec::new(), requests: vec![60; 3] };
    let config = config(Transport::Tcp, 30_000, vec![]);
    // The clients hold the lock for a while, one after the other: the run takes a second.
    let pause = Box::new(|wish: PauseContext| if wish.hold { millis(5) } else { Duration::ZERO });
    let running = start(erased::<RicartAgrawala>(), &setup, &workload, config, pause).await;
    let addresses = running.addresses();
    assert_eq!(addresses.len(), 3);
    let run = tokio::spawn(running.finish());
    let end = |p| codec::End { process: ProcessId(p), incarnation: 0 };
    let hello = Hello { group: 1, sender: end(1), receiver: end(0), connection: 1 };
    let mut other_version = hello.encode();
    other_version[4] = 99;
    for knock in [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", &[0; 40][..], &[255; 9000]] {
        assert!(is_shown_the_door(addresses[0], knock).await);
    }
    assert!(is_shown_the_door(addresses[1], &hello.encode()).await);
    assert!(is_shown_the_door(addresses[2], &other_version).await);
    let silent = TcpStream::connect(addresses[2]).await.unwrap();
    drop(silent);
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(outcome.ending, Ending::Quiet);
    assert_eq!(outcome.violations, []);
    assert_eq!(outcome.counts.sent, 180 * 4);
    let has = |trouble| outcome.warnings.iter().any(|(_, warning)| warning.trouble == trouble);
    assert!(has(Trouble::Hello(codec::CodecError::Magic)));
    assert!(has(Trouble::Hello(codec::CodecError::Version(99))));
    assert!(has(Trouble::OtherGroup));
}

async fn is_shown_the_door(address: std::net::SocketAddr, knock: &[u8]) -> bool {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The connection may be closed before all bytes are written.
    let _ = stream.write_all(knock).await;
    let answer = tokio::time::timeout(millis(3000), stream.read(&mut [0; 8])).await;
    matches!(answer, Ok(Ok(0) | Err(_)))
}

/// Counts its starts, and misbehaves in a way that depends on its id.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Odd {
    lives: u32,
    heard: u32,
}

impl Process for Odd {
    type Message = Vec<u8>;
    type Timer = u8;
    type Request = NoRequest;
    type Indication = u32;
    type Record = u32;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.lives += 1;
        ctx.save(self.lives);
        ctx.set_timer(0, millis(1));
        ctx.set_timer(1, Duration::MAX);
        ctx.set_timer(2, millis(1));
        ctx.cancel_timer(2);
    }

    fn on_recover(&mut self, saved: Option<u32>, ctx: &mut Context<'_, Self>) {
        self.lives = saved.unwrap_or(0);
        self.on_start(ctx);
    }

    fn on_request(&mut self, request: NoRequest, _: &mut Context<'_, Self>) {
        match request {}
    }

    fn on_timer(&mut self, timer: u8, ctx: &mut Context<'_, Self>) {
        assert_eq!(timer, 0, "the others never run out");
        ctx.cancel_timer(1);
        match ctx.me() {
            ProcessId(0) => ctx.send(ProcessId(77), vec![1]),
            ProcessId(1) => ctx.unexpected("a Monday"),
            ProcessId(2) => {
                ctx.send(ProcessId(3), vec![0; 2000]);
                ctx.send(ProcessId(3), vec![2]);
                ctx.send(ProcessId(2), vec![3]);
            }
            _ => {}
        }
    }

    fn on_message(&mut self, _: ProcessId, _: Vec<u8>, ctx: &mut Context<'_, Self>) {
        self.heard += 1;
        let drawn = ctx.choose(5);
        ctx.indicate(drawn);
    }
}

impl Inspect for Odd {}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Nobody;

impl<P: Process> Application<P> for Nobody {
    fn next(&self, _: ProcessId) -> Option<P::Request> {
        None
    }
    fn on_request(&mut self, _: ProcessId, _: &P::Request) {}
    fn on_indication(&mut self, _: ProcessId, _: &P::Indication) {}
    fn waiting(&self) -> Vec<ProcessId> {
        Vec::new()
    }
}

impl<P: Process> Monitor<P> for Nobody {
    type Tag = ();
}

/// `n` copies of `process`, without clients.
fn parts<P: Portable>(process: P, n: usize) -> Parts {
    Parts {
        processes: vec![AnyProcess::new(process); n],
        application: AnyApplication::new::<P>(Nobody),
        monitor: AnyMonitor::new::<P>(Nobody),
        meter: AnyMeter::new::<P>(()),
        pause: no_pause(),
        fates: no_message_faults(),
    }
}

fn odd(n: usize) -> Parts {
    parts(Odd { lives: 0, heard: 0 }, n)
}

fn never() -> IsHold {
    Box::new(|_| false)
}

#[tokio::test(flavor = "multi_thread")]
async fn misuse_of_effects_is_a_violation_or_a_loss_and_never_a_panic() {
    let config = NetConfig { frame_limit: 1000, ..config(Transport::Tcp, 5000, vec![]) };
    let outcome = run_group(Group::of(4), odd(4), config, never(), None).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.ending, Ending::Quiet);
    let mut broken: Vec<_> =
        outcome.violations.iter().map(|(_, v)| (v.property, v.detail.as_str())).collect();
    broken.sort_unstable();
    let expected =
        [("expected inputs", "p1 met a Monday"), ("usage", "p0 sent to p77, who is no member")];
    assert_eq!(broken, expected);
    let heard: Vec<_> = outcome.processes.iter().map(|p| p.get::<Odd>().heard).collect();
    assert_eq!(heard, [0, 0, 1, 1]);
    assert_eq!((outcome.counts.sent, outcome.counts.delivered, outcome.counts.lost), (4, 2, 1));
    let error = codec::CodecError::TooLong { len: 2015, limit: 1000 };
    let trouble = Trouble::Unsendable { to: ProcessId(3), error };
    let told: Vec<_> = outcome.warnings.iter().map(|(_, w)| (w.at, w.trouble.clone())).collect();
    assert_eq!(told, [(ProcessId(2), trouble)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn saved_record_outlives_a_crash() {
    for world in WORLDS {
        let faults = vec![crash(20, 2), restart(30, 2), crash(40, 2), restart(50, 2)];
        let config = config(world, 5000, faults);
        let recorder = Recorder::new(Header::new("odd", vec![0, 1, 2, 3]));
        let outcome = run_group(Group::of(4), odd(4), config, never(), Some(recorder)).await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.ending, Ending::Quiet);
        // Each restart loses its memory but not its saved record.
        assert_eq!(*outcome.processes[2].get::<Odd>(), Odd { lives: 3, heard: 1 });
        // On a busy machine an incarnation may crash before its timer fires. Each one that lives long enough
        // sends two messages to p3, which always arrive, and one that p2 may miss.
        let Counts { sent, delivered, lost, .. } = outcome.counts;
        let to_nobody = 1;
        assert_eq!(u64::from(outcome.processes[3].get::<Odd>().heard), (sent - to_nobody) / 3 * 2);
        assert_eq!(delivered + lost, sent - to_nobody);
        let recording = outcome.recorder.unwrap().finish(None);
        let replayed = replay(&recording, odd(4).processes, &Group::of(4)).unwrap();
        assert_eq!(replayed.steps as u64, outcome.counts.steps);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_configuration_is_an_error() {
    let run = |parts, faults| {
        let config = config(Transport::Threads, 1000, faults);
        run_group(Group::of(4), parts, config, never(), None)
    };
    let error = run(odd(3), vec![]).await.unwrap_err();
    assert_eq!(error.to_string(), "3 processes for a group of 4");
    let error = run(odd(4), vec![crash(1, 8)]).await.unwrap_err();
    assert_eq!(error.to_string(), "a fault names p8, which is not a member");
}

/// p0 sends 9 to p1, which panics on it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Nine;

impl Process for Nine {
    type Message = u8;
    type Timer = u8;
    type Request = NoRequest;
    type Indication = u32;
    type Record = u32;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        if ctx.me() == ProcessId(0) {
            ctx.send(ProcessId(1), 9);
        }
    }
    fn on_request(&mut self, request: NoRequest, _: &mut Context<'_, Self>) {
        match request {}
    }
    fn on_message(&mut self, _: ProcessId, message: u8, _: &mut Context<'_, Self>) {
        assert_ne!(message, 9, "nine is too much");
    }
}

impl Inspect for Nine {}

#[tokio::test(flavor = "multi_thread")]
async fn panic_of_a_process_ends_the_run_with_its_message() {
    for world in WORLDS {
        let (parts, config) = (parts(Nine, 2), config(world, 2000, vec![]));
        let error = run_group(Group::of(2), parts, config, never(), None).await.unwrap_err();
        let NetError::Panicked { process, message } = error else { panic!("{error}") };
        assert_eq!(process, ProcessId(1));
        assert!(message.contains("nine is too much"), "{message}");
    }
}

/// A process that is never at rest, except p0.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Restless(bool);

impl Process for Restless {
    type Message = u8;
    type Timer = u8;
    type Request = NoRequest;
    type Indication = u32;
    type Record = u32;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.0 = ctx.me() != ProcessId(0);
    }
    fn on_request(&mut self, request: NoRequest, _: &mut Context<'_, Self>) {
        match request {}
    }
    fn on_message(&mut self, _: ProcessId, _: u8, _: &mut Context<'_, Self>) {}
}

impl Inspect for Restless {
    fn at_rest(&self) -> bool {
        !self.0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn live_process_not_at_rest_at_the_end_is_a_violation() {
    for world in WORLDS {
        let (parts, config) = (parts(Restless(false), 4), config(world, 2000, vec![crash(1, 1)]));
        let recorder = Recorder::new(Header::new("restless", vec![0, 1, 2, 3]));
        let outcome = run_group(Group::of(4), parts, config, never(), Some(recorder)).await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.ending, Ending::Quiet);
        let broken: Vec<_> = outcome.violations.iter().map(|(_, v)| v.clone()).collect();
        assert_eq!(broken, [Violation::unquiet(ProcessId(2))]);
        let recording = outcome.recorder.unwrap().finish(None);
        let is_violation = |entry: &&Entry| match entry {
            Entry::Incident(incident) => matches!(incident.kind, IncidentKind::Violation { .. }),
            Entry::Step(_) => false,
        };
        assert_eq!(recording.entries.iter().filter(is_violation).count(), 1);
    }
}
