//! Maps clients to sessions of the library, so that deadlocks of nested commands are found.
//!
//! Two jobs run `lock a -- lock b` and `lock b -- lock a`. Each inner `lock` is a client of its own. With a
//! session of its own it would wait, but hold nothing, and no member would see a wait cycle. So a client that
//! runs under a lock shares the session of that lock's holder.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use konklave::Session;

#[derive(Default)]
pub(super) struct NestedSessions(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The session of each client, by the client's number.
    sessions: BTreeMap<u64, Arc<Session>>,
    /// The client that holds each token.
    holders: BTreeMap<String, u64>,
}

impl NestedSessions {
    fn known<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The session of a client. A new client gets the session of the holder of token `within`, or else a new
    /// one from `open`.
    pub(super) fn session(
        &self,
        client: u64,
        within: Option<&str>,
        open: impl FnOnce() -> Session,
    ) -> Session {
        self.known(|known| {
            let around = within.and_then(|token| known.holders.get(token));
            let around = around.and_then(|holder| known.sessions.get(holder)).cloned();
            let session = known.sessions.entry(client);
            let session = session.or_insert_with(|| around.unwrap_or_else(|| Arc::new(open())));
            Session::clone(session)
        })
    }

    /// Notes that a client holds `token`.
    pub(super) fn holds(&self, client: u64, token: &str) {
        self.known(|known| known.holders.insert(token.to_owned(), client));
    }

    /// Notes that no client holds `token` any more.
    pub(super) fn lets_go(&self, token: &str) {
        self.known(|known| known.holders.remove(token));
    }

    /// Removes a client. A session is closed with the last client that shares it.
    pub(super) fn over(&self, client: u64) {
        let session = self.known(|known| known.sessions.remove(&client));
        if let Some(session) = session.and_then(Arc::into_inner) {
            session.close();
        }
    }
}
