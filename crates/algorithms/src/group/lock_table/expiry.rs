//! The end of sessions: the leader measures their time, and proposes that a silent session has expired.

use konklave_process::Context;

use super::{Command, LockTable, Session, Timer};

impl LockTable {
    /// The sessions of excluded members that may not know of it yet.
    pub(super) fn frozen(&self) -> Vec<Session> {
        self.table.sessions().filter(|(_, client)| client.frozen).map(|(s, _)| *s).collect()
    }

    /// At the leader: an operation that is a sign of life restarts the time of its session.
    pub(super) fn watch(&mut self, command: &Command, ctx: &mut Context<'_, Self>) {
        match command {
            Command::KeepAlive { session } | Command::Acquire { session, .. } => {
                self.arm(*session, ctx);
            }
            Command::Open { .. }
            | Command::Release { .. }
            | Command::Cancel { .. }
            | Command::Expire { .. }
            | Command::Close { .. }
            | Command::Sessions(_)
            | Command::Locks(_) => {}
        }
    }

    pub(super) fn arm(&mut self, session: Session, ctx: &mut Context<'_, Self>) {
        if self.view().leader() != Some(ctx.me()) {
            return;
        }
        let client = self.table.sessions().find(|(s, _)| **s == session).map(|(_, c)| c);
        let after = match client {
            Some(client) if client.frozen => self.settings.lease,
            Some(client) => client.ttl.map(|ttl| self.settings.unit * ttl),
            None => None,
        };
        if let Some(after) = after {
            ctx.set_timer(Timer::Silent(session), after);
        }
    }

    pub(super) fn on_silence(&mut self, session: Session, ctx: &mut Context<'_, Self>) {
        if self.view().leader() != Some(ctx.me()) {
            return;
        }
        let client = self.table.sessions().find(|(s, _)| **s == session).map(|(_, c)| c);
        let Some(seen) = client.map(|client| client.seen) else { return };
        self.submit(Command::Expire { session, seen });
        // A view change may drop the proposal: the timer runs on.
        self.arm(session, ctx);
    }
}
