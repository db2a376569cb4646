//! What the rest of `net` needs of [`nats`](super::nats) in a build without feature `nats`: types without values.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::DuplexStream;

use super::{Mesh, Security};
use crate::error::Error;
use crate::shared::Shared;

/// How addresses of inboxes begin: a peer may still tell us one.
pub(super) const SCHEME: &str = "nats:";

/// What a builder was given about NATS: nothing.
#[derive(Clone, Default, Debug)]
pub(crate) struct NatsOptions {}

impl NatsOptions {
    pub(crate) fn place(self, _: Option<&Security>) -> Result<Option<Place>, Error> {
        Ok(None)
    }
}

#[derive(Clone)]
pub(crate) enum Place {}

pub(super) enum Office {}

pub(super) enum Echo {}

impl Office {
    pub(super) fn new(place: &Place, _: &str, _: u64) -> Arc<Self> {
        match *place {}
    }

    pub(super) async fn call(&self, _: &str) -> io::Result<(DuplexStream, Echo)> {
        match *self {}
    }
}

impl Echo {
    pub(super) fn is_gone(&self, _: Duration) -> bool {
        match *self {}
    }
}

pub(super) async fn run(_: Arc<Mesh>, _: Arc<Shared>, office: Arc<Office>) {
    match *office {}
}
