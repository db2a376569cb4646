//! Stand-in for [`tls`](super::tls) in a build without feature `tls`: a type without values.

use std::io;
use std::time::Duration;

use crate::error::Error;

/// Certificates: none in this build.
#[derive(Clone, Debug)]
pub(crate) enum Tls {}

impl Tls {
    pub(crate) fn check(&self) -> Result<(), Error> {
        match *self {}
    }

    pub(super) fn own_identity(&self) -> Option<String> {
        match *self {}
    }

    pub(super) async fn connect<S>(&self, _: S) -> Result<(S, Option<String>), String> {
        match *self {}
    }

    pub(super) async fn accept<S>(
        &self,
        _: S,
        _: Duration,
    ) -> Result<(S, Result<Option<String>, String>), String> {
        match *self {}
    }

    pub(super) fn refusal(&self, _: &io::Error) -> Option<String> {
        match *self {}
    }
}
