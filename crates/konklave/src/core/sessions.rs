//! Sessions: all that belongs to one of them ends together.

use std::sync::Arc;

use super::Core;

impl Core {
    pub(crate) fn open(&mut self, label: Arc<str>) -> u32 {
        self.last_session += 1;
        self.sessions.insert(self.last_session, label);
        self.last_session
    }

    pub(crate) fn close(&mut self, session: u32) {
        if self.sessions.remove(&session).is_some() {
            self.end_claims(session);
            self.end_seats(session);
            self.end_waits(session);
            self.pump();
        }
    }

    pub(crate) fn is_open(&self, session: u32) -> bool {
        self.sessions.contains_key(&session)
    }

    pub(crate) fn label(&self, session: u32) -> Arc<str> {
        self.sessions.get(&session).cloned().unwrap_or_else(|| "".into())
    }
}
