//! Sessions: all that belongs to one of them ends together.

use std::sync::Arc;

use super::Core;
use crate::error::Error;

impl Core {
    pub(crate) fn open(&mut self, label: Arc<str>) -> u32 {
        self.last_session += 1;
        self.sessions.insert(self.last_session, label);
        self.last_session
    }

    /// Ends a session; the node's own one is left as if it were new.
    pub(crate) fn close(&mut self, session: u32) {
        let ours = session == 0 && self.is_open(0);
        if ours || self.sessions.remove(&session).is_some() {
            self.end_claims(session);
            self.end_subscriptions(session);
            self.end_waits(session);
            self.pump();
        }
    }

    /// Whether something can be asked for in a session.
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
