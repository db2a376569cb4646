//! Real connections between members.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;

/// How connections are protected.
#[derive(Clone, Debug)]
pub(crate) enum Security {
    None,
    Key(Arc<[u8]>),
    Tls(Tls),
}

/// Certificates for mutual TLS.
#[derive(Clone, Debug)]
pub struct Tls {}

pub(crate) struct Settings {
    pub(crate) cluster: String,
    pub(crate) security: Security,
    pub(crate) key: u64,
    pub(crate) boot: u64,
    pub(crate) name: Arc<str>,
    pub(crate) address: String,
    pub(crate) seeds: Vec<String>,
    pub(crate) unit: Duration,
}

pub(crate) async fn listen(_: &str, _: Option<&Security>) -> Result<tokio::net::TcpListener, Error> {
    Err(Error::Config("later".into()))
}

pub(crate) fn start(_: &Arc<crate::shared::Shared>, _: tokio::net::TcpListener, _: Settings) -> Result<(), Error> {
    Err(Error::Config("later".into()))
}
