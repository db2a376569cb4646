//! Clients that the access policy rejects: each gets the reason, and the log gets one line per user
//! and minute.

use std::time::{Duration, Instant};

use nix::unistd::User;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::session;
use konklave::RateLimiter;

/// How many rejected clients may be connected at a time, until their first request is answered.
const AT_A_TIME: usize = 32;
/// How often the log reports the same user.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// For how many users the log is limited separately.
const USERS: usize = 1000;

/// Answers clients that may not use the agent.
pub(super) struct RejectedClients {
    reports: RateLimiter<Option<u32>>,
    answering: JoinSet<()>,
}

impl Default for RejectedClients {
    fn default() -> Self {
        Self { reports: RateLimiter::new(LOG_INTERVAL, USERS), answering: JoinSet::new() }
    }
}

impl RejectedClients {
    /// Rejects the client at the other end of `stream`, and tells it why.
    pub(super) fn reject(&mut self, stream: UnixStream, user: Option<u32>) {
        while self.answering.try_join_next().is_some() {}
        if let Some(times) = self.reports.count(user, 1, Instant::now()) {
            let user = called(user);
            tracing::warn!(
                times,
                "rejected a client: {user} is not in --allow-users or --allow-groups"
            );
        }
        let why = format!(
            "{} may not use this agent: it serves its own user, root, and the users and groups in \
             --allow-users and --allow-groups",
            called(user)
        );
        if self.answering.len() < AT_A_TIME {
            self.answering.spawn(session::reject(stream, why));
        } else {
            session::reject_at_once(&stream, why);
        }
    }
}

fn called(user: Option<u32>) -> String {
    let Some(number) = user else { return "an unknown user".into() };
    match User::from_uid(number.into()) {
        Ok(Some(user)) => format!("user {number} ({})", user.name),
        Ok(None) | Err(_) => format!("user {number}"),
    }
}
