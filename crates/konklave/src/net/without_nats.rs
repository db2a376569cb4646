//! Stand-ins for [`nats`](super::nats) in a build without feature `nats`: types without values.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::DuplexStream;

use super::{Mesh, Security};
use crate::error::Error;
use crate::shared::Shared;

/// The scheme of inbox addresses: a peer may still report one.
pub(super) const SCHEME: &str = "nats:";

/// NATS options of a builder: none.
#[derive(Clone, Default, Debug)]
pub(crate) struct NatsOptions {}

impl NatsOptions {
    pub(crate) fn address(self, _: Option<&Security>) -> Result<Option<NatsAddress>, Error> {
        Ok(None)
    }
}

#[derive(Clone)]
pub(crate) enum NatsAddress {}

pub(super) enum NatsEndpoint {}

pub(super) enum Responders {}

impl NatsEndpoint {
    pub(super) fn new(address: &NatsAddress, _: &str, _: u64) -> Arc<Self> {
        match *address {}
    }

    pub(super) async fn call(&self, _: &str) -> io::Result<(DuplexStream, Responders)> {
        match *self {}
    }
}

impl Responders {
    pub(super) fn is_gone(&self, _: Duration) -> bool {
        match *self {}
    }
}

pub(super) async fn run(_: Arc<Mesh>, _: Arc<Shared>, nats_endpoint: Arc<NatsEndpoint>) {
    match *nats_endpoint {}
}
