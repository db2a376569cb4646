//! Agents that talk over NATS, with a server of the distribution.

use std::fs;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, Plan, free_addresses};
use crate::history::{command, judge, parse};
use crate::kit::{Folder, Running, code, output, start, until};
use crate::nats_server::NatsServer;

fn cluster(server: &NatsServer) -> Cluster {
    let folder = Folder::new();
    let key = folder.file("key");
    fs::write(&key, "a key of sixteen bytes, and more").expect("written");
    let meet = ["--nats", &server.url(), "--founders", "3"].map(str::to_owned).to_vec();
    let plan = Plan { meet: Some(meet), ..Plan::new(&["--key-file", &key]) };
    Cluster::planned(folder, free_addresses(3), plan)
}

#[test]
fn agents_over_nats_survive_kills_of_members_and_of_the_server() {
    let Some(mut server) = NatsServer::new() else { return };
    let mut cluster = cluster(&server);
    let script = command(&cluster.path().display().to_string(), "sleep 0.02");
    let mut clients: Vec<Option<Running>> = (0..6).map(|_| None).collect();
    let mut load = |cluster: &Cluster, time: Duration| {
        let end = Instant::now() + time;
        while Instant::now() < end {
            for (i, slot) in clients.iter_mut().enumerate() {
                let ended = |c: &mut Running| !matches!(c.child_mut().try_wait(), Ok(None));
                if slot.as_mut().is_none_or(ended) {
                    let name = ["a", "b"][i % 2];
                    let words = ["lock", name, "-c", &script];
                    *slot = Some(start(&cluster.socket(i % 3), &words));
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for round in 0..3 {
        load(&cluster, Duration::from_millis(800));
        cluster.kill(round);
        load(&cluster, Duration::from_millis(300));
        cluster.start(round);
        cluster.ready(round);
        load(&cluster, Duration::from_millis(300));
        server.kill();
        load(&cluster, Duration::from_millis(if round == 0 { 300 } else { 2500 }));
        server.start();
        for i in 0..3 {
            cluster.ready(i);
        }
    }
    drop(clients);
    let before = parse(&fs::read_to_string(cluster.file("history")).expect("written")).len();
    for i in 0..3 {
        cluster.ask(i, &["lock", "-w", "20", "a", "-c", &script]);
    }
    let history = parse(&fs::read_to_string(cluster.file("history")).expect("written"));
    assert!(history.len() >= before + 6, "nobody was served after the storm");
    let entries = judge(&history).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(entries > 20, "only {entries} entries");
}

#[test]
fn a_server_that_is_not_there_is_named_by_the_doctor_and_tried_again() {
    let Some(mut server) = NatsServer::later() else { return };
    let folder = Folder::new();
    let socket = folder.path().join("a.sock");
    let url = server.url();
    let run = |name: &str| {
        let (socket, data) = (folder.path().join(format!("{name}.sock")), folder.file(name));
        start(&socket, &["agent", "--nats", &url, "--founders", "2", "--data-dir", &data])
    };
    let _first = run("a");
    let address = server.address().to_string();
    until("named", || {
        let output = output(&socket, &["doctor"]);
        String::from_utf8_lossy(&output.stdout).contains(&address)
    });
    let refused = output(&socket, &["lock", "-w", "0.3", "a", "--", "true"]);
    assert_ne!(code(&refused), 0, "there is no group yet");
    server.start();
    let _second = run("b");
    until("granted", || code(&output(&socket, &["lock", "-w", "5", "a", "--", "true"])) == 0);
}
