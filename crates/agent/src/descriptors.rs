//! How many file descriptors this process may have, and how they are divided.
//!
//! An agent without descriptors can neither reach its peers nor write its state. So clients and strangers get
//! a part of them, and the rest is for the group.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors for peers, files, the log, the metrics port, and clients that have not introduced themselves.
const RESERVED: u64 = 512;

/// Raises the limit as far as the system allows without rights.
pub(crate) fn raise() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        tracing::debug!(%error, "cannot raise the limit of open files");
    }
}

/// The most clients at a time.
pub(crate) fn for_clients() -> usize {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 1024));
    share(soft)
}

/// The clients' part of so many descriptors.
fn share(limit: u64) -> usize {
    // A small limit is halved: then the group gets less than it may need, and the clients less than they want.
    let share = limit.saturating_sub(RESERVED).max(limit / 2);
    usize::try_from(share).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_never_get_all_descriptors() {
        for (limit, clients) in [(0, 0), (256, 128), (1024, 512), (20_000, 19_488)] {
            assert_eq!(share(limit), clients);
        }
    }
}
