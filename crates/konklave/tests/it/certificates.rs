//! Which certificates are accepted.

use konklave::Tls;

use crate::refusal;
use crate::tcp::{group, lock_around};

/// A test's certificate authority.
struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: rcgen::Issuer::new(params, key), pem }
    }

    fn member(&self) -> Tls {
        self.signed("konklave", self)
    }

    /// A certificate for `name`, of a node that trusts `trusted`.
    fn signed(&self, name: &str, trusted: &Self) -> Tls {
        let params = rcgen::CertificateParams::new(vec![name.into()]).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let (chain, key) = (certificate.pem(), key.serialize_pem());
        Tls::from_pem(trusted.pem.as_bytes(), chain.as_bytes(), key.as_bytes()).unwrap()
    }
}

/// The reasons that the refused peer and the member report.
async fn turned_away(authority: &Authority, stranger: Tls) -> (String, String) {
    let (nodes, addresses) = group(3, |b, _| b.tls(authority.member())).await;
    lock_around(&nodes).await;
    let mut member = nodes[0].events();
    let stranger = crate::fast().id(77).seeds(addresses).tls(stranger).start().await.unwrap();
    let mut events = stranger.events();
    let reasons = (refusal(&mut events).await, refusal(&mut member).await);
    assert!(!stranger.status().member);
    assert_eq!(nodes[0].status().members.len(), 3);
    lock_around(&nodes).await;
    reasons
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_of_other_authority_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (told, noted) = turned_away(&authority, other.member()).await;
    assert!(told.contains("UnknownIssuer") || told.contains("BadSignature"), "{told}");
    assert!(noted.contains("TLS"), "{noted}");
}

/// The refused peer accepts the member's certificate, and finishes its part of the handshake first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_peer_that_trusts_our_authority_learns_reason() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (told, noted) = turned_away(&authority, other.signed("konklave", &authority)).await;
    assert!(told.contains("it refused us: TLS"), "{told}");
    assert!(noted.contains("UnknownIssuer") || noted.contains("BadSignature"), "{noted}");
}

/// An authority may sign for other services, too; these are no members.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_for_other_name_is_refused() {
    let authority = Authority::new();
    let (told, noted) = turned_away(&authority, authority.signed("other", &authority)).await;
    assert!(told.contains("it refused us: its certificate is not good for the name"), "{told}");
    assert!(noted.contains("not good for the name konklave"), "{noted}");
}
