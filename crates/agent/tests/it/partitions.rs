//! Network partitions between agents in namespaces: packets are dropped in both directions or in one.

use std::fs;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, Plan};
use crate::kit::{Folder, code, number, output, start, until};
use crate::network::Network;

/// Cuts agent 0 off in the directions of `cuts`, and checks a lock that it holds.
fn cut_off(cuts: &[(usize, usize)]) {
    let Some(cluster) = Cluster::apart() else { return };
    let (pid, next) = (cluster.file("pid"), cluster.file("next"));
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.01; done");
    let holder = start(&cluster.socket(0), &["lock", "a", "-c", &script]);
    let pid = number(&pid);
    let script = format!("kill -0 {pid} 2>/dev/null && echo ALIVE; echo 1 > {next}; cat");
    let mut waiter = start(&cluster.socket(1), &["lock", "a", "-c", &script]);
    cluster.until(1, "one waits", |s| s["locks"][0]["waiters"][0]["node"] == "n1");
    for &(from, to) in cuts {
        cluster.network().cut(from, to);
    }
    let cut = Instant::now();
    until("the next", || fs::metadata(&next).is_ok());
    eprintln!("cut {cuts:?} to the next command: {:?}", cut.elapsed());
    assert!(cut.elapsed() < Duration::from_secs(10), "{:?}", cut.elapsed());
    assert_eq!(holder.end().0, 76);
    // The minority grants nothing and reports why. The majority continues.
    cluster.until(0, "blocked", |s| s["standing"] != "primary");
    assert_eq!(code(&output(&cluster.socket(0), &["lock", "-w", "0.5", "b", "--", "true"])), 69);
    assert!(cluster.ask(0, &["why", "b"]).contains("is not available"));
    assert_eq!(code(&output(&cluster.socket(2), &["lock", "-w", "5", "b", "--", "true"])), 0);
    for &(from, to) in cuts {
        cluster.network().mend(from, to);
    }
    let mended = Instant::now();
    cluster.until(0, "back", |s| {
        s["standing"] == "primary" && s["view"]["members"].as_array().is_some_and(|m| m.len() == 3)
    });
    eprintln!("mended to three members again: {:?}", mended.elapsed());
    // The lock is still the new holder's.
    assert_eq!(code(&output(&cluster.socket(0), &["lock", "-n", "a", "--", "true"])), 75);
    drop(waiter.child_mut().stdin.take());
    let output = waiter.output();
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b""[..]), "two commands at once");
}

#[test]
fn a_minority_of_one_loses_its_locks_and_comes_back() {
    cut_off(&[(0, 1), (0, 2), (1, 0), (2, 0)]);
}

#[test]
fn one_who_is_not_heard_is_out_even_if_it_hears() {
    cut_off(&[(0, 1), (0, 2)]);
}

#[test]
fn one_who_does_not_hear_is_out_even_if_it_is_heard() {
    cut_off(&[(1, 0), (2, 0)]);
}

#[test]
fn founders_find_each_other_by_multicast_where_they_listen() {
    // There is no way to anywhere else in these networks: none that the system would choose by itself.
    let Some(network) = Network::new(3) else { return };
    let folder = Folder::new();
    let key = folder.file("key");
    fs::write(&key, "a key of sixteen bytes, and more").expect("written");
    let addresses = network.addresses();
    let meet = ["--beacon", "--founders", "3"].map(str::to_owned).to_vec();
    let plan =
        Plan { meet: Some(meet), network: Some(network), ..Plan::new(&["--key-file", &key]) };
    let cluster = Cluster::planned(folder, addresses, plan);
    cluster.until(0, "three", |s| s["view"]["heard"] == 3);
}

#[test]
fn founders_find_each_other_by_multicast_of_ipv6_where_they_listen() {
    let Some(network) = Network::new(3) else { return };
    let addresses = match network.with_blind_alleys() {
        Ok(addresses) => addresses,
        Err(why) => return eprintln!("skipped: no IPv6 here ({why})"),
    };
    let folder = Folder::new();
    let key = folder.file("key");
    fs::write(&key, "a key of sixteen bytes, and more").expect("written");
    let meet = ["--beacon=[ff02::7400]:7401", "--founders", "3"].map(str::to_owned).to_vec();
    let plan =
        Plan { meet: Some(meet), network: Some(network), ..Plan::new(&["--key-file", &key]) };
    let cluster = Cluster::planned(folder, addresses, plan);
    cluster.until(0, "three", |s| s["view"]["heard"] == 3);
}
