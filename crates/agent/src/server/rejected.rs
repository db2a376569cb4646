//! Clients that the access policy rejects: each gets the reason, and the log gets one line per user
//! and minute.

use std::time::{Duration, Instant};

use nix::unistd::User;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::session;
use crate::protocol::FailureKind;
use crate::service::Problem;
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
    crowds: RateLimiter<()>,
    answering: JoinSet<()>,
}

impl Default for RejectedClients {
    fn default() -> Self {
        let reports = RateLimiter::new(LOG_INTERVAL, USERS);
        Self { reports, crowds: RateLimiter::new(LOG_INTERVAL, 1), answering: JoinSet::new() }
    }
}

impl RejectedClients {
    /// Rejects a client because there are `most` already.
    pub(super) fn too_many(&mut self, stream: UnixStream, most: usize) {
        if let Some(times) = self.crowds.count((), 1, Instant::now()) {
            tracing::warn!(
                times,
                "rejected a client: {most} clients are connected, the most there can be"
            );
        }
        let why = format!(
            "the agent serves {most} clients already, the most that its limit of open files allows \
             (LimitNOFILE)"
        );
        self.answer(stream, (FailureKind::Unavailable, why));
    }

    /// Rejects the client at the other end of `stream`, and tells it why.
    pub(super) fn reject(&mut self, stream: UnixStream, user: Option<u32>) {
        if let Some(times) = self.reports.count(user, 1, Instant::now()) {
            let user = called(user);
            tracing::warn!(
                times,
                "rejected a client: {user} is in no list of users or groups (--allow-users, --allow-groups)"
            );
        }
        let why = format!(
            "{} may not use this agent: it serves its own user, root, and the users and groups in \
             --allow-users, --allow-groups, and those to operate and to observe",
            called(user)
        );
        self.answer(stream, (FailureKind::Forbidden, why));
    }

    fn answer(&mut self, stream: UnixStream, problem: Problem) {
        while self.answering.try_join_next().is_some() {}
        if self.answering.len() < AT_A_TIME {
            self.answering.spawn(session::reject(stream, problem));
        } else {
            session::reject_at_once(&stream, problem);
        }
    }
}

pub(super) fn called(user: Option<u32>) -> String {
    let Some(number) = user else { return "an unknown user".into() };
    match User::from_uid(number.into()) {
        Ok(Some(user)) => format!("user {number} ({})", user.name),
        Ok(None) | Err(_) => format!("user {number}"),
    }
}
