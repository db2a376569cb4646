//! Tests of whole groups.

mod app_groups;
mod bulk;
#[cfg(feature = "tls")]
mod certificates;
mod coordination;
mod fault_sweep;
mod fences;
mod groups_of_one;
mod leases;
mod lifted;
mod locks;
mod losses;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "nats")]
mod nats_server;
mod resumption;
mod safety;
mod shutdown;
mod tcp;

use std::time::Duration;

use konklave::{Event, Events};

/// The reason of the next refused connection.
async fn refusal(events: &mut Events) -> String {
    let refused = async {
        loop {
            if let Some(Event::Refused { reason, .. }) = events.next().await {
                break reason;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), refused).await.expect("someone is refused")
}

/// A builder with timings for quick fail-over: the tests wait for leases.
pub(crate) fn fast() -> konklave::Builder {
    konklave::Node::builder().timings(konklave::Timings::fast())
}
