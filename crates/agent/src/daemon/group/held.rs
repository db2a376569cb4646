//! What a client holds.

use std::sync::Arc;

use konklave::{Guard, Leadership, Loss, Node};
use serde_json::json;
use tokio::sync::broadcast;

use super::families::Families;
use super::problem;
use crate::clock::Moment;
use crate::recorder::Recorder;
use crate::service::{Hold, Problem, Promise};

/// A lock, a slot, or leadership.
pub(super) enum Held {
    Lock(Guard),
    Leadership(Leadership),
}

impl Held {
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

/// What a client lost because it showed no sign of life.
#[derive(Clone, Debug)]
pub(super) struct Forfeited {
    pub(super) name: String,
    pub(super) token: String,
    pub(super) why: String,
}

/// Tells those who look on.
pub(super) type Losses = broadcast::Sender<Forfeited>;

/// What is held, and where to say what becomes of it.
pub(super) struct Claimed {
    held: Held,
    name: String,
    node: Node,
    recorder: Arc<Recorder>,
    losses: Losses,
    _known: Known,
}

/// Known as the holder of a token, as long as it is one.
struct Known {
    token: String,
    families: Arc<Families>,
}

impl Drop for Known {
    fn drop(&mut self) {
        self.families.lets_go(&self.token);
    }
}

impl Claimed {
    pub(super) fn new(
        held: Held,
        name: String,
        node: Node,
        recorder: Arc<Recorder>,
        losses: Losses,
        families: Arc<Families>,
    ) -> Self {
        let known = Known { token: held.token(), families };
        Self { held, name, node, recorder, losses, _known: known }
    }

    fn reason(&self) -> String {
        let quorum = self.node.status().quorum;
        let loss = match &self.held {
            Held::Lock(guard) => guard.loss(),
            Held::Leadership(leadership) => leadership.loss(),
        };
        let why = match loss {
            Some(loss @ Loss::Lease) if quorum.heard < quorum.needed => format!(
                "{loss} ({} of {} voters are heard, and {} are needed)",
                quorum.heard, quorum.of, quorum.needed
            ),
            Some(loss) => loss.to_string(),
            None => "this agent's member is gone".to_owned(),
        };
        let what = json!({ "name": self.name, "token": self.held.token(), "why": why });
        self.recorder.note("lost", what);
        why
    }
}

impl Hold for Claimed {
    fn token(&self) -> String {
        self.held.token()
    }

    fn until(&self) -> Moment {
        // The clock is read first: a pause after that makes the deadline earlier, not later.
        let now = Moment::now();
        now.after(match &self.held {
            Held::Lock(guard) => guard.valid_for(),
            Held::Leadership(leadership) => leadership.valid_for(),
        })
    }

    fn lost(&mut self) -> Promise<'_, String> {
        Box::pin(async {
            match &self.held {
                Held::Lock(guard) => guard.lost().await,
                Held::Leadership(leadership) => leadership.lost().await,
            }
            self.reason()
        })
    }

    fn forfeit(self: Box<Self>, why: String) -> Promise<'static, ()> {
        let (name, token) = (self.name.clone(), self.held.token());
        self.recorder.note("lost", json!({ "name": name, "token": token, "why": why }));
        tracing::warn!(%name, "lost: {why}");
        let _ = self.losses.send(Forfeited { name, token, why });
        // It may have been lost before.
        Box::pin(async { drop(self.held.give_back().await) })
    }

    fn release(self: Box<Self>) -> Promise<'static, Result<(), Problem>> {
        Box::pin(async {
            let Self { held, name, recorder, .. } = *self;
            recorder.note("released", json!({ "name": name, "token": held.token() }));
            held.give_back().await
        })
    }
}
