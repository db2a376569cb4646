//! How many messages a second Ricart–Agrawala gets through, on channels and on sockets.
//!
//! `cargo run --release -p konklave-net --example throughput -- 5 20000`

use std::error::Error;

use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_algorithms::mutex::{Clients, Measures, Properties};
use konklave_algorithms::{Algorithm, Setup, Watch};
use konklave_net::{NetConfig, Parts, Transport, no_pause, run_group};
use konklave_process::{Group, Topology};
use konklave_trace::{Recorder, Run};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let n = arguments.next().map_or(Ok(5), |n| n.parse())?;
    let entries = arguments.next().map_or(Ok(20_000), |entries| entries.parse())?;
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    for transport in [Transport::Threads, Transport::Tcp] {
        let group = setup.group.clone();
        let parts = Parts {
            processes: group.members().iter().map(|&p| RicartAgrawala::new(p, &setup)).collect(),
            application: Clients::new(&group, &vec![entries; n]),
            monitor: Properties::new(&Watch::all(&RicartAgrawala::SHEET), &group),
            meter: Measures::new(&group),
            pause: no_pause(),
        };
        let config = NetConfig { transport, ..NetConfig::default() };
        let none = None::<Recorder<_, Run>>;
        let outcome = run_group(group, parts, config, |_| false, none).await?;
        let seconds = outcome.elapsed.as_secs_f64();
        let rate = outcome.counts.delivered as f64 / seconds;
        let (sent, broken) = (outcome.counts.sent, outcome.violations.len());
        println!(
            "{transport}: {sent} messages in {seconds:.2} s, {rate:.0}/s, {broken} violations"
        );
    }
    Ok(())
}
