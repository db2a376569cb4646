//! Which session of the library a client has. A command under a lock that asks for another one shares
//! the session of the lock it runs under: who waits for either waits for the same party, so that circles
//! of waiting are seen, by every member alike.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use konklave::Session;

#[derive(Default)]
pub(super) struct Families(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// By the number of the client.
    sessions: BTreeMap<u64, Arc<Session>>,
    /// Who holds what, by token.
    holders: BTreeMap<String, u64>,
}

impl Families {
    fn known<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The session of a client that runs under `within`; the first time, `open` gives one.
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

    /// A client holds something.
    pub(super) fn holds(&self, client: u64, token: &str) {
        self.known(|known| known.holders.insert(token.to_owned(), client));
    }

    /// It does no more.
    pub(super) fn lets_go(&self, token: &str) {
        self.known(|known| known.holders.remove(token));
    }

    /// A client is gone; its session ends with the last who shares it.
    pub(super) fn over(&self, client: u64) {
        let session = self.known(|known| known.sessions.remove(&client));
        if let Some(session) = session.and_then(Arc::into_inner) {
            session.close();
        }
    }
}
