//! Stand-in for [`tls`](super::tls) in a build without feature `tls`: a type without values.

use std::io;
use std::time::Duration;

/// Certificates: none in this build.
#[derive(Clone, Debug)]
pub(crate) enum Tls {}

impl Tls {
    pub(super) async fn connect<S>(&self, _: S) -> Result<S, String> {
        match *self {}
    }

    pub(super) async fn accept<S>(&self, _: S, _: Duration) -> Result<(S, Option<String>), String> {
        match *self {}
    }

    pub(super) fn refusal(&self, _: &io::Error) -> Option<String> {
        match *self {}
    }
}
