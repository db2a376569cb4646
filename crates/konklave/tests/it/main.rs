//! Whole groups.

mod alone;
mod bulk;
#[cfg(feature = "tls")]
mod certificates;
mod endings;
#[cfg(feature = "nats")]
mod engine;
mod fences;
mod leases;
mod lifted;
mod locks;
mod losses;
#[cfg(feature = "nats")]
mod nats;
mod safety;
mod sweep;
mod tcp;
mod together;

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
