//! The grants that clients of this agent hold.

use std::sync::Arc;

use konklave::{Guard, Leadership, Loss, Node};
use serde_json::json;
use tokio::sync::broadcast;

use super::nested_sessions::NestedSessions;
use super::problem;
use crate::clock::Moment;
use crate::recorder::Recorder;
use crate::service::{BoxFuture, HeldClaim, Lost, Problem};

/// A guard of the library: a lock or a slot, or leadership.
pub(super) enum AnyGuard {
    Lock(Guard),
    Leadership(Leadership),
}

impl AnyGuard {
    pub(super) fn token(&self) -> String {
        match self {
            Self::Lock(guard) => guard.token().to_string(),
            Self::Leadership(leadership) => leadership.token().to_string(),
        }
    }

    async fn give_back(self) -> Result<(), Problem> {
        match self {
            Self::Lock(guard) => guard.release().await,
            Self::Leadership(leadership) => leadership.resign().await,
        }
        .map_err(problem)
    }
}

/// A grant that a client lost because it sent no keep-alive.
#[derive(Clone, Debug)]
pub(super) struct Forfeited {
    pub(super) name: String,
    pub(super) token: String,
    pub(super) why: String,
}

/// Reports forfeited grants to the clients that watch.
pub(super) type Losses = broadcast::Sender<Forfeited>;

/// A grant, and the places where its end is reported.
pub(super) struct GroupClaim {
    held: AnyGuard,
    name: String,
    node: Node,
    recorder: Arc<Recorder>,
    losses: Losses,
    _registered: Registered,
}

/// Registers the holder of a token with [`NestedSessions`] until this is dropped.
struct Registered {
    token: String,
    nested: Arc<NestedSessions>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.nested.lets_go(&self.token);
    }
}

impl GroupClaim {
    pub(super) fn new(
        held: AnyGuard,
        name: String,
        node: Node,
        recorder: Arc<Recorder>,
        losses: Losses,
        nested: Arc<NestedSessions>,
    ) -> Self {
        let registered = Registered { token: held.token(), nested };
        Self { held, name, node, recorder, losses, _registered: registered }
    }

    fn lost_grant(&self) -> Lost {
        let quorum = self.node.status().quorum;
        let loss = match &self.held {
            AnyGuard::Lock(guard) => guard.loss(),
            AnyGuard::Leadership(leadership) => leadership.loss(),
        };
        let why = match loss {
            Some(loss @ Loss::Lease) if quorum.heard < quorum.needed => {
                format!("{loss} ({})", super::report::hears(quorum))
            }
            Some(loss) => loss.to_string(),
            None => "the member of this agent has ended".to_owned(),
        };
        // The group fences the grant for its lease: it may be resumed until then.
        let resumable = loss == Some(Loss::Excluded);
        let what = json!({ "name": self.name, "token": self.held.token(), "why": why });
        self.recorder.note(if resumable { "interrupted" } else { "lost" }, what);
        Lost { why, resumable }
    }
}

impl HeldClaim for GroupClaim {
    fn token(&self) -> String {
        self.held.token()
    }

    fn until(&self) -> Moment {
        // The clock is read first: a pause between the two readings then only makes the deadline earlier.
        let now = Moment::now();
        now.after(match &self.held {
            AnyGuard::Lock(guard) => guard.valid_for(),
            AnyGuard::Leadership(leadership) => leadership.valid_for(),
        })
    }

    fn lost(&mut self) -> BoxFuture<'_, Lost> {
        Box::pin(async {
            match &self.held {
                AnyGuard::Lock(guard) => guard.lost().await,
                AnyGuard::Leadership(leadership) => leadership.lost().await,
            }
            self.lost_grant()
        })
    }

    fn forfeit(self: Box<Self>, why: String) -> BoxFuture<'static, ()> {
        let (name, token) = (self.name.clone(), self.held.token());
        self.recorder.note("lost", json!({ "name": name, "token": token, "why": why }));
        tracing::warn!(%name, %token, "a client lost its grant: {why}");
        let _ = self.losses.send(Forfeited { name, token, why });
        // The release fails if the grant was lost before, which changes nothing.
        Box::pin(async { drop(self.held.give_back().await) })
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), Problem>> {
        Box::pin(async {
            let Self { held, name, recorder, .. } = *self;
            recorder.note("released", json!({ "name": name, "token": held.token() }));
            held.give_back().await
        })
    }
}
