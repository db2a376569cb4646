//! Whole groups.

mod groups_of_one;
mod bulk;
#[cfg(feature = "tls")]
mod certificates;
mod shutdown;
#[cfg(feature = "nats")]
mod nats_server;
mod fences;
mod leases;
mod lifted;
mod locks;
mod losses;
#[cfg(feature = "nats")]
mod nats;
mod safety;
mod fault_sweep;
mod tcp;
mod coordination;

use std::time::Duration;

use konklave::{Event, Events};

/// Why the next stranger is refused.
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
