//! Mutual TLS.

use std::io;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::error::Error;

/// Certificates for mutual TLS: ours, and the authority that signed everyone's.
#[derive(Clone)]
pub struct Tls {
    pub(super) acceptor: TlsAcceptor,
    pub(super) connector: TlsConnector,
    pub(super) name: ServerName<'static>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tls({:?})", self.name)
    }
}

impl Tls {
    /// From PEM: the authority's certificate, our chain of certificates, and our private key. All
    /// members' certificates must be good for the name `konklave`, unless
    /// [`server_name`](Self::server_name) says otherwise, and for clients and servers alike.
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

    /// The name that the certificates of the others must be good for.
    pub fn server_name(mut self, name: &str) -> Result<Self, Error> {
        let parsed = ServerName::try_from(name.to_owned());
        self.name = parsed.map_err(|e| Error::Config(format!("TLS: {name}: {e}")))?;
        Ok(self)
    }
}

/// Why TLS failed, in a few words.
pub(super) fn explain(error: &io::Error) -> String {
    format!("TLS: {error}")
}
