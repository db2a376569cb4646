//! Sessions of local clients. When a session ends, all its requests and grants end.

use std::sync::Arc;

use super::Core;
use crate::error::Error;

impl Core {
    pub(crate) fn open(&mut self, label: Arc<str>) -> u32 {
        self.last_session += 1;
        self.sessions.insert(self.last_session, label);
        self.last_session
    }

    /// Ends a session. The node's own session (0) stays open, and only loses its requests and grants.
    pub(crate) fn close(&mut self, session: u32) {
        let ours = session == 0 && self.is_open(0);
        if ours || self.sessions.remove(&session).is_some() {
            self.end_claims(session);
            self.end_subscriptions(session);
            self.end_waits(session);
            self.pump();
        }
    }

    /// Whether a session accepts requests; otherwise the error to answer with.
    pub(super) fn is_usable(&self, session: u32) -> Result<(), Error> {
        match () {
            () if self.left || self.leaving => Err(Error::Left),
            () if !self.is_open(session) => Err(Error::Closed),
            () => Ok(()),
        }
    }

    pub(crate) fn is_open(&self, session: u32) -> bool {
        self.sessions.contains_key(&session)
    }

    pub(crate) fn label(&self, session: u32) -> Arc<str> {
        self.sessions.get(&session).cloned().unwrap_or_else(|| "".into())
    }
}
