//! Who may not come in is told so, and the log hears of it, but not as often as they knock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::unistd::User;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::session;

/// How many may be listened to at a time, until they have said what they are answered by.
const AT_A_TIME: usize = 32;
/// How often the log hears of the same user.
const EACH: Duration = Duration::from_secs(60);
/// So many users are told apart.
const USERS: usize = 1000;

/// Those who were sent away.
#[derive(Default)]
pub(super) struct Strangers {
    /// By user: when the log heard of it last, and how often it came since.
    told: BTreeMap<Option<u32>, (Instant, u64)>,
    leaving: JoinSet<()>,
}

impl Strangers {
    /// Sends a user away, with words.
    pub(super) fn turn_away(&mut self, stream: UnixStream, user: Option<u32>) {
        while self.leaving.try_join_next().is_some() {}
        if let Some(again) = self.is_news(user, Instant::now()) {
            match user {
                Some(user) => tracing::warn!(user, again, "sent a stranger away"),
                None => tracing::warn!(again, "sent a stranger away: nobody says who it is"),
            }
        }
        let why = format!(
            "{} may not use this agent: it serves its own user and root, and whom --allow-users and \
             --allow-groups name",
            called(user)
        );
        if self.leaving.len() < AT_A_TIME {
            self.leaving.spawn(session::turn_away(stream, why));
        } else {
            session::shut_out(&stream, why);
        }
    }

    /// Whether the log is to hear of it now: how often it was not told since the last time.
    fn is_news(&mut self, user: Option<u32>, now: Instant) -> Option<u64> {
        match self.told.get_mut(&user) {
            Some((last, again)) if now.duration_since(*last) < EACH => {
                *again += 1;
                None
            }
            Some((last, again)) => {
                *last = now;
                Some(std::mem::take(again))
            }
            None => {
                if self.told.len() >= USERS {
                    self.told.clear();
                }
                self.told.insert(user, (now, 0));
                Some(0)
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_is_told_once_and_then_once_a_minute() {
        let mut strangers = Strangers::default();
        let start = Instant::now();
        let mut tell =
            |user, after| strangers.is_news(Some(user), start + Duration::from_secs(after));
        assert_eq!(tell(7, 0), Some(0));
        assert_eq!((tell(7, 1), tell(7, 59)), (None, None));
        assert_eq!(tell(8, 2), Some(0));
        assert_eq!(tell(7, 60), Some(2));
        assert_eq!(tell(7, 61), None);
        for user in 0..10_000 {
            tell(user, 62);
        }
        assert!(strangers.told.len() <= USERS);
    }
}
