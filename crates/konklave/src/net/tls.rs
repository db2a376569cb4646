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

/// How much of what one who is refused says is read, and for how long.
const UNREAD: u64 = 16 << 10;
const PATIENCE: Duration = Duration::from_millis(500);

/// Certificates for mutual TLS: ours, and the authority that signed everyone's. Needs feature `tls`.
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
    /// From PEM: the authority's certificate, our chain of certificates, and our private key. All
    /// members' certificates must be good for the name `konklave`, unless
    /// [`server_name`](Self::server_name) says otherwise, and for clients and servers alike: who calls and who
    /// is called are both asked for that name, so that an authority may sign for others, too.
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

    /// Handshake with a peer that we called; fails with the reason.
    pub(super) async fn connect<S>(&self, stream: S) -> Result<client::TlsStream<S>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let shaken = self.connector.connect(self.name.clone(), stream).await;
        shaken.map_err(|error| explain(&error))
    }

    /// Handshake with a peer that called us: the stream, and what there is to object to the peer's
    /// certificate. Fails with the reason.
    pub(super) async fn accept<S>(
        &self,
        stream: S,
        within: Duration,
    ) -> Result<(server::TlsStream<S>, Option<String>), String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Ok(shaken) = timeout(within, self.acceptor.accept(stream).into_fallible()).await else {
            return Err("TLS: too slow".into());
        };
        match shaken {
            Ok(stream) => {
                let objection = self.objection(stream.get_ref().1.peer_certificates());
                Ok((stream, objection))
            }
            Err((error, stream)) => {
                let_them_read(stream).await;
                Err(explain(&error))
            }
        }
    }

    /// Why the peer refused our certificate, if `error` says that it did. The side that calls learns
    /// that only when it reads.
    pub(super) fn refusal(&self, error: &io::Error) -> Option<String> {
        let inner = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
        matches!(inner, Some(rustls::Error::AlertReceived(_))).then(|| explain(error))
    }

    /// What there is to object to the certificates of one who called us. The authority has signed them; whom
    /// for, only we can tell.
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

    /// The name that the certificates of the others must be good for.
    pub fn server_name(mut self, name: &str) -> Result<Self, Error> {
        let parsed = ServerName::try_from(name.to_owned());
        self.name = parsed.map_err(|e| Error::Config(format!("TLS: {name}: {e}")))?;
        Ok(self)
    }
}

/// Why TLS failed, in a few words.
fn explain(error: &io::Error) -> String {
    format!("TLS: {error}")
}

/// Whoever is refused shall read why: a connection that is closed with something unread in it is cut off, and
/// what was said last with it.
async fn let_them_read<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let _ = stream.shutdown().await;
    let (mut rest, mut nowhere) = (stream.take(UNREAD), tokio::io::sink());
    let _ = timeout(PATIENCE, tokio::io::copy(&mut rest, &mut nowhere)).await;
}
