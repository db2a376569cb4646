//! Missing members: what the others report and do meanwhile, and after a member is back.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cluster::Cluster;
use crate::kit::{code, output, start};

/// The generation of the view that an agent is in.
fn generation(cluster: &Cluster, i: usize) -> Value {
    cluster.status(i).expect("it answers")["view"]["generation"].clone()
}

#[test]
fn of_the_last_two_one_may_restart() {
    let mut cluster = Cluster::new(3);
    let first = cluster.ask(1, &["lock", "a", "-c", "echo $KONKLAVE_TOKEN"]);
    let before = generation(&cluster, 0);
    cluster.kill(2);
    cluster.until(0, "two", |s| s["view"]["members"].as_array().is_some_and(|m| m.len() == 2));
    // In a view, and yet somebody is missing.
    let doctor = output(&cluster.socket(0), &["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let founder = format!("FAIL founder: {}", cluster.address(2));
    assert!(code(&doctor) == 1 && said.contains(&founder), "{said}");
    assert_eq!(said.matches("FAIL founder").count(), 1, "{said}");
    cluster.kill(1);
    cluster.until(0, "blocked", |s| s["standing"] == "blocked");
    for words in [&["lock", "-n", "a", "--", "true"][..], &["revoke", "a"], &["elect", "-n", "a"]] {
        let start = Instant::now();
        let refused = output(&cluster.socket(0), words);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(code(&refused), 69, "{words:?}: {said}");
        let why =
            "no majority: this agent hears 1 of 2 voters, itself included, and needs 2; silent: n1";
        assert!(said.contains(why), "{said}");
        assert!(start.elapsed() < Duration::from_secs(2), "{words:?}: {:?}", start.elapsed());
    }
    cluster.start(1);
    for i in [0, 1] {
        cluster.ready(i);
        assert_eq!(generation(&cluster, i), before, "the group is the same");
    }
    let token = |text: &str| text.trim().parse::<konklave::Token>().expect("a token");
    let second = cluster.ask(1, &["lock", "a", "-c", "echo $KONKLAVE_TOKEN"]);
    assert!(token(&second) > token(&first), "{first} {second}");
    let log = cluster.logged(0);
    assert!(!log.contains("excluded") && !log.contains("dissolved"), "{log}");
}

#[test]
fn missing_member_is_recorded_by_its_name() {
    let mut cluster = Cluster::new(3);
    cluster.ask(2, &["lock", "a", "--", "true"]);
    cluster.kill(2);
    cluster.until(0, "two", |s| s["view"]["members"].as_array().is_some_and(|m| m.len() == 2));
    let other = cluster.socket(1).display().to_string();
    let run = cluster.file("incident.run");
    let recorded = output(&cluster.socket(0), &["record", "--also", &other, "-o", &run]);
    let said = String::from_utf8_lossy(&recorded.stderr);
    assert_eq!(said.matches(": no recording").count(), 1, "{said}");
    assert!(said.contains("missing: n2: no recording"), "{said}");
    let text = std::fs::read_to_string(&run).expect("written");
    let header: Value = serde_json::from_str(text.lines().next().expect("a header")).expect("JSON");
    let names: Vec<&str> = header["scenario"]["names"]
        .as_object()
        .expect("names")
        .values()
        .flat_map(Value::as_str)
        .collect();
    assert_eq!(names, ["n0", "n1", "n2"]);
}

#[test]
fn revoked_grant_is_shown_as_ending() {
    let cluster = Cluster::new(3);
    let stubborn =
        ["lock", "a", "--grace", "30", "-c", "trap '' TERM; while :; do sleep 0.1; done"];
    let holder = start(&cluster.socket(1), &stubborn);
    cluster.until(0, "held", |s| s["locks"][0]["holders"][0]["node"] == "n1");
    let revoke = || {
        let revoked = output(&cluster.socket(0), &["revoke", "a"]);
        let said = String::from_utf8_lossy(&revoked.stderr).into_owned();
        assert_eq!(code(&revoked), 0, "{said}");
        said
    };
    let said = revoke();
    assert!(said.contains("konklave: took a from n1"), "{said}");
    let said = revoke();
    assert!(said.contains("already took a from n1") && said.contains("still ending"), "{said}");
    let who = cluster.ask(0, &["who", "a"]);
    assert!(who.contains("revoked, still ending"), "{who}");
    let why = cluster.ask(0, &["why", "a"]);
    assert!(why.contains("an operator took it"), "{why}");
    assert_eq!(holder.stopped(), 76);
}
