//! Mutual TLS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig, crypto};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::error::Error;

/// How many bytes of a refused peer are read, and for how long.
const DRAIN_BYTES: u64 = 16 << 10;
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Certificates for mutual TLS: this node's, and the authority that signed all members'. Needs feature `tls`.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tls({:?})", self.name)
    }
}

impl Tls {
    /// From PEM: the authority's certificate, this node's certificate chain, and its private key.
    ///
    /// All members' certificates must be valid for the name `konklave` (or the one set by
    /// [`server_name`](Self::server_name)), and for both client and server use. Callers and called nodes are
    /// checked for that name alike, so the authority may also sign certificates for other purposes.
    pub fn from_pem(authority: &[u8], chain: &[u8], key: &[u8]) -> Result<Self, Error> {
        let wrong =
            |what: &str, e: &dyn std::fmt::Display| Error::Config(format!("TLS: {what}: {e}"));
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority) {
            let certificate = certificate.map_err(|e| wrong("the authority", &e))?;
            roots.add(certificate).map_err(|e| wrong("the authority", &e))?;
        }
        if roots.is_empty() {
            return Err(wrong("the authority", &"no certificate in it"));
        }
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|e| wrong("our certificate", &e))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| wrong("our key", &e))?;
        let (roots, provider) = (Arc::new(roots), Arc::new(crypto::ring::default_provider()));
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .build()
            .map_err(|e| wrong("the authority", &e))?;
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| wrong("versions", &e))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(|e| wrong("our certificate", &e))?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| wrong("versions", &e))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(|e| wrong("our certificate", &e))?;
        Ok(Self {
            acceptor: Arc::new(server).into(),
            connector: Arc::new(client).into(),
            name: ServerName::try_from("konklave").map_err(|e| wrong("the name", &e))?,
        })
    }

    /// Handshake as the caller; fails with the reason.
    pub(super) async fn connect<S>(&self, stream: S) -> Result<client::TlsStream<S>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let shaken = self.connector.connect(self.name.clone(), stream).await;
        shaken.map_err(|error| explain(&error))
    }

    /// Handshake as the called side: the stream, and an objection to the peer's certificate. Fails with the
    /// reason.
    pub(super) async fn accept<S>(
        &self,
        stream: S,
        within: Duration,
    ) -> Result<(server::TlsStream<S>, Option<String>), String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Ok(shaken) = timeout(within, self.acceptor.accept(stream).into_fallible()).await else {
            return Err("TLS: the handshake took too long".into());
        };
        match shaken {
            Ok(stream) => {
                let objection = self.objection(stream.get_ref().1.peer_certificates());
                Ok((stream, objection))
            }
            Err((error, stream)) => {
                drain(stream).await;
                Err(explain(&error))
            }
        }
    }

    /// Why the peer refused this node's certificate, if `error` says so. The caller learns that only when it
    /// reads.
    pub(super) fn refusal(&self, error: &io::Error) -> Option<String> {
        let inner = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
        matches!(inner, Some(rustls::Error::AlertReceived(_))).then(|| explain(error))
    }

    /// The objection to a caller's certificate, if any. TLS checks that the authority signed it, but not for
    /// which name.
    fn objection(&self, certificates: Option<&[CertificateDer<'_>]>) -> Option<String> {
        let first = certificates.and_then(<[_]>::first);
        let parsed = first.map(ParsedCertificate::try_from).transpose();
        let good = match &parsed {
            Ok(Some(certificate)) => verify_server_name(certificate, &self.name).is_ok(),
            Ok(None) | Err(_) => false,
        };
        let name = self.name.to_str();
        (!good).then(|| format!("its certificate is not good for the name {name}"))
    }

    /// The name for which the members' certificates must be valid.
    pub fn server_name(mut self, name: &str) -> Result<Self, Error> {
        let parsed = ServerName::try_from(name.to_owned());
        self.name = parsed.map_err(|e| Error::Config(format!("TLS: {name}: {e}")))?;
        Ok(self)
    }
}

/// The reason of a TLS failure.
fn explain(error: &io::Error) -> String {
    format!("TLS: {error}")
}

/// Lets a refused peer read the reason: a connection closed with unread bytes is reset, and the last bytes
/// sent are lost.
async fn drain<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let _ = stream.shutdown().await;
    let (mut rest, mut nowhere) = (stream.take(DRAIN_BYTES), tokio::io::sink());
    let _ = timeout(DRAIN_TIMEOUT, tokio::io::copy(&mut rest, &mut nowhere)).await;
}
