//! The events of `watch`: translates events of the library, with a text for people and fields for programs.

use konklave::{Event, Node};

use super::claims::Forfeited;
use super::report::{self, called};
use crate::protocol;
use crate::recorder::wall;

/// Translates an event of `node`. Its time is now.
pub(super) fn changed(event: &Event, node: &Node) -> protocol::Event {
    let (kind, name, what) = report::event(event);
    let (about, token) = match event {
        Event::Held { node: id, by, token, .. } => (Some(called(by, *id)), Some(token)),
        Event::Freed { node: id, by, .. } => (Some(called(by, *id)), None),
        Event::Granted { token, .. } => (Some(node.name().to_owned()), Some(token)),
        Event::Lost { .. } => (Some(node.name().to_owned()), None),
        Event::Connected { node: id, name } | Event::Suspected { node: id, name } => {
            (Some(called(name, *id)), None)
        }
        _ => (None, None),
    };
    let (node, token) = (about, token.map(ToString::to_string));
    protocol::Event::Changed { kind, name, what, at: now(), node, token }
}

/// The event for a client of `node` that lost its grant, because it sent no keep-alive.
pub(super) fn forfeited(lost: Forfeited, node: &Node) -> protocol::Event {
    let Forfeited { name, token, why } = lost;
    let (kind, node) = ("lost".to_owned(), Some(node.name().to_owned()));
    protocol::Event::Changed { kind, name, what: why, at: now(), node, token: Some(token) }
}

fn now() -> Option<f64> {
    Some(wall().as_secs_f64())
}
