//! The algorithms on real tasks and sockets: no violation, and exactly the number of messages in the formula.

use konklave_algorithms::election::Properties;
use konklave_algorithms::election::chang_roberts::ChangRoberts;
use konklave_algorithms::election::tree_wave::TreeWave;
use konklave_algorithms::mutex::central::Central;
use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_algorithms::mutex::suzuki_kasami::SuzukiKasami;
use konklave_algorithms::{Algorithm, AnyAlgorithm, Setup, Workload, erased};
use konklave_net::{Counts, Ending, NetConfig, NetOutcome, Transport};
use konklave_process::{Group, Inspect, Portable, ProcessId, Rng, Topology};
use konklave_trace::replay;

use crate::common::{messages_hold, millis, run};

const WORLDS: [Transport; 2] = [Transport::Threads, Transport::Tcp];

fn config(transport: Transport) -> NetConfig {
    NetConfig { transport, time_limit: millis(15_000), ..NetConfig::default() }
}

/// Runs to the end and checks what every run without faults must satisfy.
async fn run_well(
    algorithm: &'static dyn AnyAlgorithm,
    setup: &Setup,
    workload: &Workload,
    transport: Transport,
) -> NetOutcome {
    let mut outcome = run(algorithm, setup, workload, config(transport)).await;
    assert_eq!(outcome.ending, Ending::Quiet, "{:?}", outcome.counts);
    assert_eq!(outcome.violations, []);
    assert_eq!(outcome.warnings, []);
    assert_eq!(outcome.waiting, []);
    let Counts { sent, delivered, lost, refused, .. } = outcome.counts;
    assert_eq!((delivered, lost, refused), (sent, 0, 0));
    assert_eq!(outcome.kinds.iter().map(|(_, count)| count).sum::<u64>(), sent);
    assert!(outcome.processes.iter().all(Inspect::at_rest));
    assert!(
        messages_hold(algorithm, setup, &workload.initiators, &outcome),
        "{:?}",
        outcome.counts
    );
    let recording = outcome.recorder.take().unwrap().finish(None);
    let replayed = replay(&recording, algorithm.processes(setup), &setup.group).unwrap();
    assert_eq!(replayed.steps as u64, outcome.counts.steps);
    outcome
}

async fn enter<P: Algorithm + Portable>(
    n: usize,
    entries: u32,
    transport: Transport,
) -> NetOutcome {
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    let workload = Workload { initiators: Vec::new(), requests: vec![entries; n] };
    run_well(erased::<P>(), &setup, &workload, transport).await
}

async fn elect<P: Algorithm + Portable>(
    ids: &[u32],
    topology: Topology,
    starters: &[u32],
    transport: Transport,
) -> NetOutcome {
    let group = Group::new(ids.iter().copied().map(ProcessId).collect()).unwrap();
    let initiators = starters.iter().copied().map(ProcessId).collect();
    let workload = Workload { initiators, requests: Vec::new() };
    run_well(erased::<P>(), &Setup::new(group, topology), &workload, transport).await
}

fn leader(outcome: &NetOutcome) -> Option<(ProcessId, u32)> {
    outcome.monitor.get::<Properties>().leader()
}

#[tokio::test(flavor = "multi_thread")]
async fn ricart_agrawala_takes_2_n_minus_1_messages_an_entry() {
    for world in WORLDS {
        let outcome = enter::<RicartAgrawala>(5, 50, world).await;
        assert_eq!(outcome.counts.sent, 250 * 2 * 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn suzuki_kasami_takes_at_most_n_messages_an_entry() {
    for world in WORLDS {
        let outcome = enter::<SuzukiKasami>(5, 50, world).await;
        assert!(outcome.counts.sent <= 250 * 5);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_takes_3_messages_an_entry_and_none_for_its_own() {
    for world in WORLDS {
        let outcome = enter::<Central>(5, 50, world).await;
        assert_eq!(outcome.counts.sent, 200 * 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_is_a_group() {
    for world in WORLDS {
        assert_eq!(enter::<RicartAgrawala>(1, 9, world).await.counts.sent, 0);
        assert_eq!(enter::<SuzukiKasami>(1, 9, world).await.counts.sent, 0);
        assert_eq!(enter::<Central>(1, 9, world).await.counts.sent, 0);
        let outcome = elect::<ChangRoberts>(&[7], Topology::ring(1), &[7], world).await;
        assert_eq!(leader(&outcome), Some((ProcessId(7), 0)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chang_roberts_takes_as_many_messages_as_the_order_of_ids_says() {
    let ids = [3, 12, 5, 9, 1, 44, 7, 2];
    for world in WORLDS {
        let ring = Topology::directed_ring(8);
        let all = elect::<ChangRoberts>(&ids, ring.clone(), &ids, world).await;
        assert_eq!(all.counts.sent, (1 + 4 + 1 + 2 + 1 + 8 + 3 + 1) + 8);
        let one = elect::<ChangRoberts>(&ids, ring, &[9], world).await;
        assert_eq!(one.counts.sent, 2 + 2 * 8);
        for outcome in [all, one] {
            assert_eq!(leader(&outcome), Some((ProcessId(44), 0)));
            assert_eq!(outcome.monitor.get::<Properties>().informed(), 8);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wave_on_a_tree_takes_3_n_plus_k_minus_4_messages() {
    let ids: Vec<u32> = (0..20).map(|i| i * 7 % 20).collect();
    for (seed, starters) in [&ids[..1], &ids[3..8], &ids].into_iter().enumerate() {
        for world in WORLDS {
            let tree = Topology::random_tree(20, &mut Rng::new(seed as u64));
            let outcome = elect::<TreeWave>(&ids, tree, starters, world).await;
            assert_eq!(outcome.counts.sent as usize, 3 * 20 + starters.len() - 4);
            assert_eq!(leader(&outcome), Some((ProcessId(19), 0)));
        }
    }
}
