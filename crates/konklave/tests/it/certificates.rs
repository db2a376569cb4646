//! Which certificates are accepted.

use std::time::Duration;

use konklave::{Node, Tls};
use tokio::time::timeout;

use crate::refusal;
use crate::tcp::{LONG, group, lock_around, shut_out_and_back};

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
        self.signed(&["konklave"], self)
    }

    /// A certificate of a node with an identity.
    fn named(&self, name: &str) -> Tls {
        self.signed(&["konklave", name], self)
    }

    /// A certificate for these names, of a node that trusts `trusted`.
    fn signed(&self, names: &[&str], trusted: &Self) -> Tls {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let params = rcgen::CertificateParams::new(names).unwrap();
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
    let (told, noted) = turned_away(&authority, other.signed(&["konklave"], &authority)).await;
    assert!(told.contains("it refused us: TLS"), "{told}");
    assert!(noted.contains("UnknownIssuer") || noted.contains("BadSignature"), "{noted}");
}

/// Its peers would refuse it, so the node does not even start.
#[tokio::test]
async fn own_certificate_without_name_of_members_is_refused_with_advice() {
    let authority = Authority::new();
    let other = authority.signed(&["other"], &authority);
    let error = Node::builder().tls(other).start().await.unwrap_err().to_string();
    assert!(error.contains("not valid for the name konklave"), "{error}");
    assert!(error.contains("subjectAltName = DNS:konklave"), "it says what to make: {error}");
}

/// `openssl x509 -req` without extensions makes such certificates.
#[test]
fn certificate_of_version_1_is_refused_with_advice() {
    let authority = Authority::new();
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let old = include_bytes!("certificates/version-1.pem");
    let error = Tls::from_pem(authority.pem.as_bytes(), old, key.as_bytes()).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("version 1, which has no names"), "{error}");
    assert!(error.contains("subjectAltName = DNS:konklave"), "it says what to make: {error}");
    for nothing in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let error = Tls::from_pem(authority.pem.as_bytes(), nothing.as_bytes(), key.as_bytes());
        assert!(error.unwrap_err().to_string().contains("our certificate"));
    }
}

/// One machine of three is shut out by the name in its certificate, and let in again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denied_identity_is_shut_out_until_it_is_allowed_again() {
    let authority = Authority::new();
    let names = ["a", "b", "c"];
    let (nodes, _) = group(3, |b, i| b.tls(authority.named(names[i]))).await;
    lock_around(&nodes).await;
    let mut known: Vec<String> =
        nodes[0].status().members.into_iter().filter_map(|member| member.identity).collect();
    known.sort();
    assert_eq!(known, names);
    shut_out_and_back(&nodes, "c").await;
}

/// A member may claim to be another node: its certificate has another name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_claims_to_be_another_one_is_refused() {
    let folder = std::env::temp_dir().join(format!("konklave-claims-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let authority = Authority::new();
    let names = ["a", "b"];
    let with = |b: konklave::Builder, i: usize| {
        b.tls(authority.named(names[i])).data_dir(folder.join(names[i]))
    };
    let (mut nodes, addresses) = group(2, with).await;
    let mut events = nodes[0].events();
    drop(nodes.pop());
    // The directory of b, in the hands of c.
    let claims = crate::fast().seeds(addresses).data_dir(folder.join("b"));
    let until_unlocked = async {
        loop {
            match claims.clone().tls(authority.named("c")).start().await {
                Ok(node) => break node,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let impostor = timeout(LONG, until_unlocked).await.unwrap();
    let refused = async {
        loop {
            let reason = refusal(&mut events).await;
            if reason.contains("the identity c, but the node it says to be had the identity b") {
                break;
            }
        }
    };
    timeout(LONG, refused).await.expect("it is refused");
    drop(impostor);
    let _ = std::fs::remove_dir_all(&folder);
}
