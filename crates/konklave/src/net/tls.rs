//! Mutual TLS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, RootCertStore, ServerConfig, crypto,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use super::certificate::{Facts, facts};
use super::handshake::drain;
use crate::error::Error;
use webpki::EndEntityCert;

/// Certificates for mutual TLS: this node's, and the authority that signed all members'. Needs feature `tls`.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    name: ServerName<'static>,
    /// This node's certificate.
    own: CertificateDer<'static>,
    /// The ends of this node's certificate and of the authority's, in seconds since 1970.
    ends: (u64, u64),
}

/// How to make a certificate that members accept.
const ADVICE: &str =
    "make one of version 3 with subjectAltName = DNS:konklave: `konklave keys tls` does";

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
    ///
    /// A further name in a certificate is the node's identity: peers refuse another node that claims to be
    /// this one, and [`Builder::deny`](crate::Builder::deny) shuts it out.
    pub fn from_pem(authority: &[u8], chain: &[u8], key: &[u8]) -> Result<Self, Error> {
        let wrong =
            |what: &str, e: &dyn std::fmt::Display| Error::Config(format!("TLS: {what}: {e}"));
        let mut roots = RootCertStore::empty();
        let mut authority_ends = u64::MAX;
        for certificate in CertificateDer::pem_slice_iter(authority) {
            let certificate = certificate.map_err(|e| wrong("the authority", &e))?;
            authority_ends =
                facts(&certificate).map_or(authority_ends, |f| f.ends.min(authority_ends));
            roots.add(certificate).map_err(|e| wrong("the authority", &e))?;
        }
        if roots.is_empty() {
            return Err(wrong("the authority", &"no certificate in it"));
        }
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|e| wrong("our certificate", &e))?;
        let Some(own) = chain.first().cloned() else {
            return Err(wrong("our certificate", &"no certificate in it"));
        };
        let Some(Facts { version, ends }) = facts(&own) else {
            return Err(wrong("our certificate", &"it cannot be read"));
        };
        if version != 3 {
            let what = format!("it has version {version}, which has no names: {ADVICE}");
            return Err(wrong("our certificate", &what));
        }
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
            own,
            ends: (ends, authority_ends),
        })
    }

    /// When this node's certificate ends, and when the authority's does, in seconds since 1970.
    #[must_use]
    pub fn ends(&self) -> (u64, u64) {
        self.ends
    }

    /// Whether the members will accept this node's certificate for their name.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.identity(Some(std::slice::from_ref(&self.own))).map(drop).map_err(|_| {
            let name = self.name.to_str();
            Error::Config(format!(
                "TLS: our certificate is not valid for the name {name}: {ADVICE}"
            ))
        })
    }

    /// The identity in this node's certificate.
    pub(super) fn own_identity(&self) -> Option<String> {
        self.identity(Some(std::slice::from_ref(&self.own))).ok().flatten()
    }

    /// Handshake as the caller: the stream, and the peer's identity. Fails with the reason.
    pub(super) async fn connect<S>(
        &self,
        stream: S,
    ) -> Result<(client::TlsStream<S>, Option<String>), String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let shaken = self.connector.connect(self.name.clone(), stream).await;
        let stream = shaken.map_err(|error| explain(&error))?;
        let identity = self.identity(stream.get_ref().1.peer_certificates())?;
        Ok((stream, identity))
    }

    /// Handshake as the called side: the stream, and the peer's identity, or an objection to its certificate.
    /// Fails with the reason.
    pub(super) async fn accept<S>(
        &self,
        stream: S,
        within: Duration,
    ) -> Result<(server::TlsStream<S>, Result<Option<String>, String>), String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Ok(shaken) = timeout(within, self.acceptor.accept(stream).into_fallible()).await else {
            return Err("TLS: the handshake took too long".into());
        };
        match shaken {
            Ok(stream) => {
                let identity = self.identity(stream.get_ref().1.peer_certificates());
                Ok((stream, identity))
            }
            Err((error, mut stream)) => {
                drain(&mut stream).await;
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

    /// The identity in a certificate: its first name besides that of all members, in alphabetical order. Fails
    /// if it is not valid for the name of all members. For callers, TLS does not check that.
    fn identity(&self, chain: Option<&[CertificateDer<'_>]>) -> Result<Option<String>, String> {
        let name = self.name.to_str();
        let objection = || format!("its certificate is not good for the name {name}");
        let first = chain.and_then(<[_]>::first).ok_or_else(objection)?;
        let parsed = EndEntityCert::try_from(first).map_err(|_| objection())?;
        parsed.verify_is_valid_for_subject_name(&self.name).map_err(|_| objection())?;
        let own = parsed.valid_dns_names().filter(|own| !own.contains('*') && *own != name);
        Ok(own.min().map(str::to_owned))
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
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
    let advice = match inner {
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => "; renew it: `konklave keys tls` does",
        Some(rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => "; make one with subjectAltName = DNS:konklave: `konklave keys tls` does",
        _ => "",
    };
    format!("TLS: {error}{advice}")
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    struct Authority(rcgen::Issuer<'static, rcgen::KeyPair>, String);

    impl Authority {
        fn new() -> Self {
            let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            let key = rcgen::KeyPair::generate().unwrap();
            let pem = params.self_signed(&key).unwrap().pem();
            Self(rcgen::Issuer::new(params, key), pem)
        }

        fn tls(&self, names: &[&str]) -> Tls {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let params = rcgen::CertificateParams::new(names).unwrap();
            let key = rcgen::KeyPair::generate().unwrap();
            let chain = params.signed_by(&key, &self.0).unwrap().pem();
            let key = key.serialize_pem();
            Tls::from_pem(self.1.as_bytes(), chain.as_bytes(), key.as_bytes()).unwrap()
        }
    }

    /// An authority may sign for other services, too; these are no members.
    #[tokio::test]
    async fn caller_with_certificate_for_other_name_is_refused() {
        let authority = Authority::new();
        let member = authority.tls(&["konklave", "b", "a", "*.a"]);
        for (names, expected) in [
            (&["other"][..], Err("its certificate is not good for the name konklave".to_owned())),
            (&["konklave"], Ok(None)),
            (&["konklave", "c"], Ok(Some("c".to_owned()))),
        ] {
            let (ours, theirs) = duplex(1 << 14);
            let caller = authority.tls(names);
            let (called, accepted) =
                tokio::join!(caller.connect(ours), member.accept(theirs, Duration::from_secs(20)));
            assert_eq!(called.unwrap().1.as_deref(), Some("a"), "the first name of its own");
            assert_eq!(accepted.unwrap().1, expected);
        }
    }

    #[test]
    fn only_certificate_with_name_of_members_is_taken() {
        let authority = Authority::new();
        assert!(authority.tls(&["x", "konklave"]).check().is_ok());
        assert!(authority.tls(&["x"]).check().is_err());
        assert!(authority.tls(&["x"]).server_name("x").unwrap().check().is_ok());
    }
}
