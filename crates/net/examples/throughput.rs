//! Measures how many messages a second Ricart–Agrawala exchanges, on channels and on sockets.
//!
//! `cargo run --release -p konklave-net --example throughput -- 5 20000`

use std::error::Error;

use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_algorithms::{Setup, Watch, Workload, erased};
use konklave_net::{NetConfig, Parts, Transport, no_message_faults, no_pause, run_group};
use konklave_process::{Group, Topology};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let n = arguments.next().map_or(Ok(5), |n| n.parse())?;
    let entries = arguments.next().map_or(Ok(20_000), |entries| entries.parse())?;
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    let algorithm = erased::<RicartAgrawala>();
    let workload = Workload { initiators: Vec::new(), requests: vec![entries; n] };
    for transport in [Transport::Threads, Transport::Tcp] {
        let group = setup.group.clone();
        let parts = Parts {
            processes: algorithm.processes(&setup),
            application: algorithm.application(&workload, &setup),
            monitor: algorithm.monitor(&Watch::all(&algorithm.sheet()), &setup),
            meter: algorithm.meter(&setup),
            pause: no_pause(),
            fates: no_message_faults(),
        };
        let config = NetConfig { transport, ..NetConfig::default() };
        let outcome = run_group(group, parts, config, Box::new(|_| false), None).await?;
        let seconds = outcome.elapsed.as_secs_f64();
        let rate = outcome.counts.delivered as f64 / seconds;
        let (sent, broken) = (outcome.counts.sent, outcome.violations.len());
        println!(
            "{transport}: {sent} messages in {seconds:.2} s, {rate:.0}/s, {broken} violations"
        );
    }
    Ok(())
}
