//! `doctor` and `why` name the cause: another lease, an expired certificate, a split group, a partial partition. What
//! is dangerous is never advised first.

use std::fs;

use crate::cluster::{Cluster, free_addresses};
use crate::kit::{Folder, Running, code, output, start, until};

/// An agent of its own, with these flags.
fn agent(folder: &Folder, name: &str, flags: &[&str]) -> (Running, std::path::PathBuf) {
    let socket = folder.path().join(format!("{name}.sock"));
    let data = folder.file(&format!("{name}.data"));
    let words = ["agent", "--name", name, "--data-dir", &data, "--profile", "fast"];
    (start(&socket, &[&words[..], flags].concat()), socket)
}

fn printed(socket: &std::path::Path, words: &[&str]) -> String {
    String::from_utf8_lossy(&output(socket, words).stdout).into_owned()
}

#[test]
fn lease_mismatch_is_named_with_its_remedy() {
    let folder = Folder::new();
    let addresses: Vec<String> = free_addresses(2).iter().map(ToString::to_string).collect();
    let peers = addresses.join(",");
    let flags = |i: usize| ["--listen", &addresses[i], "--peers", &peers];
    let _a = agent(&folder, "a", &flags(0));
    let (_b, b) = agent(&folder, "b", &[&flags(1)[..], &["--lease", "3"]].concat());
    for words in [&["doctor"][..], &["why", "x"]] {
        until("named", || printed(&b, words).contains("its lease is 1s, ours 3s"));
        let said = printed(&b, words);
        assert!(said.contains("all agents need the same --lease"), "{said}");
    }
    let said = printed(&b, &["doctor"]);
    assert!(said.contains(&format!("FAIL connection: {}", addresses[0])), "{said}");
    let (safe, dangerous) = (said.find("start their agents"), said.find("--found-alone"));
    assert!(safe.is_some() && safe < dangerous, "{said}");
}

#[test]
fn expired_certificate_is_named_with_its_remedy() {
    let folder = Folder::new();
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("a key");
    let authority = params.self_signed(&key).expect("signed").pem();
    let issuer = rcgen::Issuer::new(params, key);
    fs::write(folder.file("authority"), authority).expect("written");
    for (name, until) in [("a", 2100), ("b", 2001)] {
        let mut params = rcgen::CertificateParams::new(vec!["konklave".into()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &issuer).expect("signed").pem();
        fs::write(folder.file(&format!("{name}.pem")), certificate).expect("written");
        fs::write(folder.file(&format!("{name}.key")), key.serialize_pem()).expect("written");
    }
    let addresses: Vec<String> = free_addresses(2).iter().map(ToString::to_string).collect();
    let peers = addresses.join(",");
    let authority = folder.file("authority");
    let agents: Vec<_> = ["a", "b"]
        .iter()
        .zip(&addresses)
        .map(|(name, listen)| {
            let (pem, key) =
                (folder.file(&format!("{name}.pem")), folder.file(&format!("{name}.key")));
            let tls = ["--tls-certificate", &pem, "--tls-key", &key, "--tls-authority", &authority];
            agent(&folder, name, &[&["--listen", listen, "--peers", &peers][..], &tls].concat())
        })
        .collect();
    for (_, socket) in &agents {
        until("named", || {
            let said = printed(socket, &["doctor"]).to_ascii_lowercase();
            said.contains("fail connection") && said.contains("expired")
        });
        let said = printed(socket, &["doctor"]);
        assert!(said.contains("renew the certificate"), "{said}");
    }
}

#[test]
fn split_group_is_named() {
    let folder = Folder::new();
    let addresses: Vec<String> = free_addresses(2).iter().map(ToString::to_string).collect();
    let config = folder.file("b.toml");
    let write = |peers: &[String]| {
        fs::write(&config, format!("peers = {peers:?}")).expect("written");
    };
    // Its place in the list is its number, which must not be that of the other one.
    write(&["127.0.0.1:1".to_owned(), addresses[1].clone()]);
    let alone = ["--found-alone", "--listen"];
    let flags = [&alone[..], &[&addresses[0], "--peers", &addresses[0]]].concat();
    let (_a, a) = agent(&folder, "a", &flags);
    let flags = [&alone[..], &[&addresses[1], "--config", &config]].concat();
    let (second, b) = agent(&folder, "b", &flags);
    for socket in [&a, &b] {
        until("a group", || printed(socket, &["status"]).contains("in the majority"));
    }
    // Two groups, which hear of each other only now.
    write(&addresses);
    second.signal(nix::sys::signal::Signal::SIGHUP);
    for (socket, other) in [(&a, "b"), (&b, "a")] {
        until("named", || printed(socket, &["doctor"]).contains("FAIL split group"));
        let said = printed(socket, &["doctor"]);
        assert!(said.contains(&format!("{other} is in another group of the same name")), "{said}");
        assert!(said.contains("decide which group goes on"), "{said}");
        assert!(!said.contains("--found-alone"), "{said}");
    }
}

/// The first and the last of three agents do not reach each other; the second reaches both.
#[test]
fn partial_partition_is_named() {
    let Some(cluster) = Cluster::apart() else { return };
    cluster.network().cut(0, 2);
    cluster.network().cut(2, 0);
    let out = || {
        [0, 2].into_iter().find(|i| {
            cluster.status(*i).is_some_and(|s| {
                s["standing"] != "primary" && s["view"]["members"] == serde_json::json!([])
            })
        })
    };
    until("one is out", || out().is_some());
    let out = out().expect("as before");
    until("named", || printed(&cluster.socket(out), &["doctor"]).contains("partial partition"));
    let said = printed(&cluster.socket(out), &["doctor"]);
    assert!(said.contains("n1 is in a group and answers"), "{said}");
    assert!(said.contains(&format!("but n{} does not", 2 - out)), "{said}");
    assert!(said.contains("open the way between") && !said.contains("--found-alone"), "{said}");
    until("named inside", || {
        printed(&cluster.socket(1), &["doctor"]).contains(&format!("FAIL outsider: n{out}"))
    });
    assert_eq!(code(&output(&cluster.socket(1), &["doctor"])), 1);
}
