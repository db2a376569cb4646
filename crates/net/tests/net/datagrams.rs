//! Algorithms that need no reliable channels, on datagrams.

use konklave_algorithms::multicast::ack::Ack;
use konklave_algorithms::multicast::nack::Nack;
use konklave_algorithms::multicast::srm::Srm;
use konklave_algorithms::multicast::token_order::TokenOrder;
use konklave_algorithms::mutex::central::Central;
use konklave_algorithms::{AnyAlgorithm, Setup, Workload, erased};
use konklave_net::{Ending, NetConfig, Transport};
use konklave_process::{Group, Inspect, Topology};

use crate::common::{millis, run};

async fn deliver(
    algorithm: &'static dyn AnyAlgorithm,
    transport: Transport,
    set: &[(&'static str, &str)],
) {
    let mut setup = Setup::new(Group::of(5), Topology::complete(5));
    setup.chosen = set.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    setup.unit = millis(5);
    let workload = Workload { initiators: Vec::new(), requests: vec![4; 5] };
    let config = NetConfig { transport, time_limit: millis(20_000), ..NetConfig::default() };
    let outcome = run(algorithm, &setup, &workload, config).await;
    assert_eq!(outcome.ending, Ending::Quiet, "{transport}: {:?}", outcome.counts);
    assert_eq!(outcome.violations, [], "{transport}");
    assert!(outcome.processes.iter().all(Inspect::at_rest), "{transport}");
    let counts = &outcome.counts;
    assert_eq!(counts.delivered + counts.lost, counts.sent, "{transport}: {counts:?}");
}

const DATAGRAMS: [Transport; 2] = [Transport::Udp, Transport::Multicast];

#[tokio::test(flavor = "multi_thread")]
async fn reliable_multicasts_need_no_reliable_channels() {
    for transport in DATAGRAMS {
        deliver(erased::<Ack>(), transport, &[]).await;
        deliver(erased::<Nack>(), transport, &[("beats", "3")]).await;
        deliver(erased::<Srm>(), transport, &[]).await;
        deliver(erased::<TokenOrder>(), transport, &[("delivery", "safe")]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_an_idle_machine_nothing_is_lost_and_counts_are_as_everywhere() {
    let mut setup = Setup::new(Group::of(5), Topology::complete(5));
    setup.unit = millis(5);
    let workload = Workload { initiators: Vec::new(), requests: vec![2; 5] };
    for transport in DATAGRAMS {
        let config = NetConfig { transport, time_limit: millis(15_000), ..NetConfig::default() };
        let outcome = run(erased::<Central>(), &setup, &workload, config).await;
        assert_eq!((outcome.counts.lost, outcome.violations.len()), (0, 0), "{transport}");
        assert_eq!(outcome.counts.sent, 24, "{transport}");
    }
}
