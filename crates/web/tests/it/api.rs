//! The answers of the API, most of all to requests that make no sense.

use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::Server;

#[test]
fn the_catalog_has_every_algorithm_with_its_data_sheet() {
    let server = Server::start();
    let answer = server.ask("GET", "/api/catalog", "");
    assert_eq!(answer.status, 200, "{answer:?}");
    let catalog = answer.json();
    let algorithms = catalog["algorithms"].as_array().unwrap();
    assert_eq!(algorithms.len(), konklave_catalog::Catalog::builtin().entries().len());
    for it in algorithms {
        assert!(it["idea"].as_str().is_some_and(|idea| !idea.is_empty()), "{it}");
        assert!(it["topology"].is_string(), "{it}");
    }
    assert!(!catalog["topologies"].to_string().contains("FILE"), "the page reads no files");
}

#[test]
fn a_run_has_a_place_for_everything_that_happened() {
    let server = Server::start();
    let answer = server.run(r#"{"algorithm":"ricart-agrawala","nodes":3,"seed":7}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
    let track = &answer.json()["tracks"][0];
    assert_eq!(track["name"], "mutex/ricart-agrawala");
    assert_eq!(track["verdict"], "ok");
    assert_eq!(track["report"]["messages"]["sent"], 12);
    assert_eq!(track["messages"].as_array().unwrap().len(), 12);
    // Steps of one moment stand beside each other; moments follow each other to the right.
    let mut moments: Vec<(u64, f64)> = Vec::new();
    for entry in track["entries"].as_array().unwrap() {
        let (at, x) = (entry[0].as_u64().unwrap(), entry[1].as_f64().unwrap());
        match moments.last_mut().filter(|(last, _)| *last == at) {
            Some((_, first)) => *first = first.min(x),
            None => moments.push((at, x)),
        }
    }
    assert!(moments.windows(2).all(|pair| pair[0].1 < pair[1].1), "{moments:?}");
    assert!(track["toml"].as_str().unwrap().contains("seed = 7"));
    assert!(track["command"].as_str().unwrap().starts_with("konklave run ricart-agrawala"));
    assert_eq!(track["edges"], Value::Null, "everyone is linked with everyone");
    let again = server.run(r#"{"algorithm":"ricart-agrawala","nodes":3,"seed":7}"#);
    assert_eq!(&again.json()["tracks"][0], track, "the same seed gives the same run");
}

#[test]
fn groups_of_one_and_two_are_shown_too() {
    let server = Server::start();
    for entry in konklave_catalog::Catalog::builtin().entries() {
        for nodes in [1, 2] {
            let name = entry.name();
            let scenario = format!(r#"{{"algorithm":"{name}","nodes":{nodes},"time-limit":20}}"#);
            let answer = server.run(&scenario);
            // Some need more: then they say so.
            assert!([200, 400].contains(&answer.status), "{name}: {answer:?}");
        }
    }
}

/// The ring of the project report: Chang and Roberts's election among workers with random ids, called by one of them.
#[test]
fn the_ring_of_the_report_is_offered_and_drawn_as_a_directed_ring() {
    let server = Server::start();
    let catalog = server.ask("GET", "/api/catalog", "").json();
    let algorithms = catalog["algorithms"].as_array().unwrap();
    let ring = algorithms.iter().find(|it| it["name"] == "election/chang-roberts").unwrap();
    assert!(ring["source"].as_str().unwrap().contains("project report"), "{ring}");
    assert_eq!(ring["topology"], "directed-ring");
    for ids in [&[7][..], &[17, 4], &[17, 4, 99], &[17, 4, 99, 8, 23]] {
        let n = ids.len();
        let list = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let scenario = format!(
            r#"{{"algorithm":"chang-roberts","nodes":{n},"ids":"{list}","initiators":"1x"}}"#
        );
        let answer = server.run(&scenario);
        assert_eq!(answer.status, 200, "{answer:?}");
        let track = &answer.json()["tracks"][0];
        assert_eq!(track["verdict"], "ok", "{list}");
        assert_eq!(track["directed"], true, "{list}");
        let highest = ids.iter().max().copied().unwrap();
        assert_eq!(track["report"]["election"]["leader"], highest, "{list}");
        let links = (0..n).filter(|_| n > 1).map(|i| (ids[i], ids[(i + 1) % n]));
        let mut expected: Vec<(u32, u32)> = links.collect();
        expected.sort_unstable();
        let edges = track["edges"].as_array().unwrap().iter().map(|edge| {
            let end = |i: usize| u32::try_from(edge[i].as_u64().unwrap()).unwrap();
            (end(0), end(1))
        });
        let mut edges: Vec<(u32, u32)> = edges.collect();
        edges.sort_unstable();
        assert_eq!(edges, expected, "{list}");
    }
}

#[test]
fn a_race_has_one_axis_of_time() {
    let server = Server::start();
    let answer =
        server.run(r#"{"algorithm":"central","nodes":3},{"algorithm":"suzuki-kasami","nodes":3}"#);
    let json = answer.json();
    let tracks = json["tracks"].as_array().unwrap();
    assert_eq!(tracks.len(), 2);
    let places = |track: &Value, at: u64| -> Vec<String> {
        let entries = track["entries"].as_array().unwrap().iter();
        entries.filter(|e| e[0] == at && e[3] != 0).map(|e| e[1].to_string()).collect()
    };
    let (one, two) = (places(&tracks[0], 1000), places(&tracks[1], 1000));
    assert!(one.iter().any(|x| two.contains(x)), "{one:?} {two:?}");
    let none = server.run("");
    assert_eq!(none.status, 400, "{none:?}");
    let five = [r#"{"algorithm":"central"}"#; 5].join(",");
    assert!(server.run(&five).error().contains("1 to 4"));
}

#[test]
fn nonsense_is_refused_with_a_reason() {
    let server = Server::start();
    for (body, status, why) in [
        ("", 400, "EOF"),
        ("[]", 400, "the request"),
        ("{\"scenarios\":7}", 400, "the request"),
        (r#"{"scenarios":[],"shell":"rm"}"#, 400, "unknown field"),
        (r#"{"scenarios":[{"algorithm":"central","colour":1}]}"#, 400, "unknown field"),
        (r#"{"scenarios":[{"nodes":3}]}"#, 400, "names no algorithm"),
        (r#"{"scenarios":[{"algorithm":"centrall"}]}"#, 400, "did you mean `central`"),
        (r#"{"scenarios":[{"algorithm":"central","nodes":0}]}"#, 400, "at least one node"),
        (r#"{"scenarios":[{"algorithm":"central","nodes":-1}]}"#, 400, "the request"),
        (r#"{"scenarios":[{"algorithm":"central","faults":["boil:1@2"]}]}"#, 400, "is not a fault"),
        (r#"{"scenarios":[{"algorithm":"central","faults":["crash:9@2"]}]}"#, 400, "not a member"),
        (r#"{"scenarios":[{"algorithm":"central","loss":2}]}"#, 400, "between 0 and 1"),
        (r#"{"scenarios":[{"algorithm":"central","mistake":"x"}]}"#, 400, "mistake"),
        (r#"{"scenarios":[{"algorithm":"tree-wave","topology":"ring"}]}"#, 400, "cannot run on"),
    ] {
        let answer = server.ask("POST", "/api/run", body);
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        assert!(answer.error().contains(why), "{body}: {answer:?}");
    }
    let unknown = server.ask("POST", "/api/export", r#"{"id":99,"form":"svg"}"#);
    assert_eq!(unknown.status, 410, "{unknown:?}");
    assert_eq!(server.ask("POST", "/api/export", r#"{"id":1,"form":"exe"}"#).status, 400);
    assert_eq!(server.ask("GET", "/api/files", "").status, 404);
    assert_eq!(server.ask("GET", "/../Cargo.toml", "").status, 404);
    assert_eq!(server.ask("GET", "/%2e%2e/Cargo.toml", "").status, 404);
}

#[test]
fn the_page_reads_no_files() {
    let server = Server::start();
    for scenario in [
        r#"{"algorithm":"tree-wave","topology":"/etc/hostname"}"#,
        r#"{"algorithm":"tree-wave","topology":"./Cargo.toml"}"#,
        r#"{"algorithm":"central","delay":"/etc/hostname"}"#,
        r#"{"algorithm":"central","delay":"links.txt"}"#,
    ] {
        let answer = server.run(scenario);
        assert_eq!(answer.status, 400, "{scenario}: {answer:?}");
    }
}

#[test]
fn runs_beyond_what_a_page_can_show_are_refused() {
    let server = Server::start();
    let many = server.run(r#"{"algorithm":"central","nodes":100000}"#);
    assert_eq!(many.status, 413, "{many:?}");
    assert!(many.error().contains("too many for a page"), "{many:?}");
    let long = server.run(r#"{"algorithm":"central","nodes":10,"entries":1000000}"#);
    assert_eq!(long.status, 413, "{long:?}");
    assert!(long.error().contains("steps"), "{long:?}");
    let cut = server.run(r#"{"algorithm":"central","nodes":10,"entries":1000000,"step-limit":50}"#);
    assert_eq!(cut.status, 200);
    assert_eq!(cut.json()["tracks"][0]["verdict"], "unfinished");
    let huge = format!(r#"{{"scenarios":[{{"algorithm":"{}"}}]}}"#, "x".repeat(300_000));
    assert_eq!(server.ask("POST", "/api/run", &huge).status, 413);
}

#[test]
fn only_those_who_know_the_token_may_ask() {
    let server = Server::start();
    let host = format!("Host: {}", server.address);
    let none = server.say("GET", "/api/catalog", &[&host], "");
    assert_eq!(none.status, 401);
    assert!(none.error().contains("token"));
    let wrong = server.say("GET", "/api/catalog", &[&host, "Authorization: Bearer 00"], "");
    assert_eq!(wrong.status, 401);
    assert_ne!(Server::start().token(), server.token(), "each has its own");
    assert_eq!(server.token().len(), 32);
}

#[test]
fn pages_of_others_are_refused() {
    let server = Server::start();
    let token = format!("Authorization: Bearer {}", server.token());
    let host = format!("Host: {}", server.address);
    let ask = |headers: &[&str]| {
        server.say("POST", "/api/run", headers, r#"{"scenarios":[{"algorithm":"central"}]}"#).status
    };
    assert_eq!(ask(&[&host, &token]), 200);
    assert_eq!(ask(&[&host, &token, &format!("Origin: http://{}", server.address)]), 200);
    assert_eq!(ask(&["Host: evil.example", &token]), 403, "a name that leads here is foreign");
    let renamed = format!("Host: evil.example:{}", server.address.port());
    assert_eq!(ask(&[&renamed, &token]), 403);
    assert_eq!(ask(&[&host, &token, "Origin: http://evil.example"]), 403);
    assert_eq!(ask(&[&host, &token, "Origin: null"]), 403);
    assert_eq!(ask(&[&host, &token, "Sec-Fetch-Site: cross-site"]), 403);
    // The page itself, too: its address would be of use.
    assert_eq!(server.say("GET", "/", &["Host: evil.example"], "").status, 403);
    let page = server.say("GET", "/", &[&host], "");
    assert_eq!(page.status, 200);
    for header in ["content-security-policy", "x-content-type-options", "no-referrer"] {
        assert!(page.head.contains(header), "{}", page.head);
    }
    assert!(!page.body.contains(server.token()), "the page does not tell the token");
}

#[test]
fn a_check_ends_with_its_witness() {
    let server = Server::start();
    let request = |mistake: &str| {
        let scenario = r#""algorithm":"ricart-agrawala","nodes":3,"requests":"2,1,1""#;
        let budgets = r#"{"properties":["order"]}"#;
        format!(r#"{{"scenario":{{{scenario}{mistake}}},"budgets":{budgets}}}"#)
    };
    let wrong = server.ask("POST", "/api/check", &request(r#","mistake":"request-clock""#));
    assert_eq!(wrong.status, 200, "{wrong:?}");
    assert!(wrong.body.contains(r#""verdict":"violated""#), "{}", wrong.body);
    assert!(wrong.body.contains(r#""world":"check""#), "{}", wrong.body);
    let right = server.ask("POST", "/api/check", &request(""));
    assert!(right.body.contains(r#""verdict":"exhausted""#), "{}", right.body);
    assert!(right.body.contains(r#""shown":null"#), "{}", right.body);
    let bad = r#"{"scenario":{"algorithm":"central"},"budgets":{"properties":["honour"]}}"#;
    let many = r#"{"scenario":{"algorithm":"central","nodes":65}}"#;
    let unset = r#"{"scenario":{"algorithm":"heartbeat","set":["period=0"]}}"#;
    // A wrong request is refused before the work starts, so the refusal is no line of progress.
    for (bad, why) in [
        (bad, "the properties of mutex are"),
        (many, "groups of at most 64"),
        (unset, "period must be at least 1"),
        (r#"{"scenario":{"algorithm":"centrall"}}"#, "did you mean `central`"),
        (r#"{"scenario":{"algorithm":"central","topology":"ring"}}"#, "cannot run on ring"),
    ] {
        let bad = server.ask("POST", "/api/check", bad);
        assert_eq!(bad.status, 400, "{bad:?}");
        assert!(bad.json()["error"].as_str().is_some_and(|e| e.contains(why)), "{bad:?}");
    }
    let odd = r#"{"scenario":{"algorithm":"central"},"budgets":{"luck":1}}"#;
    assert_eq!(server.ask("POST", "/api/check", odd).status, 400);
}

#[test]
fn an_abandoned_check_gives_its_seat_to_others() {
    let server = Server::start();
    let host = format!("Host: {}", server.address);
    let token = format!("Authorization: Bearer {}", server.token());
    let endless = r#"{"scenario":{"algorithm":"ricart-agrawala","nodes":5,"entries":3,
        "fifo":false}}"#;
    // As many checks as may run at a time: each is read until its first progress, then abandoned.
    let seats = konklave_web::limits::AT_A_TIME;
    let checks: Vec<_> = (0..seats)
        .map(|_| {
            let mut check = server.send("POST", "/api/check", &[&host, &token], endless);
            let (mut heard, mut bytes) = (Vec::new(), [0; 512]);
            while !String::from_utf8_lossy(&heard).contains("progress") {
                let read = check.read(&mut bytes).unwrap();
                assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
                heard.extend(&bytes[..read]);
            }
            check
        })
        .collect();
    drop(checks);
    let begin = Instant::now();
    let answer = server.run(r#"{"algorithm":"central","nodes":3}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn runs_are_exported_in_every_form() {
    let server = Server::start();
    let id = server.run(r#"{"algorithm":"central","nodes":3}"#).json()["id"].clone();
    for (form, begin) in [
        ("svg", "<svg"),
        ("html", "<!doctype html>"),
        ("tikz", ""),
        ("mermaid", "sequenceDiagram"),
        ("plantuml", "@startuml"),
        ("shiviz", ""),
        ("csv", ""),
        ("run", "{\"konklave\":1"),
    ] {
        let request = format!(r#"{{"id":{id},"form":"{form}","lanes":[2]}}"#);
        let answer = server.ask("POST", "/api/export", &request);
        assert_eq!(answer.status, 200, "{form}: {answer:?}");
        assert!(answer.body.len() > 100 && answer.body.contains(begin), "{form}");
        assert!(answer.head.contains("mutex-central."), "{}", answer.head);
    }
    let kinds = format!(r#"{{"id":{id},"form":"svg","kinds":["Nonsense"]}}"#);
    assert_eq!(server.ask("POST", "/api/export", &kinds).status, 400);
}
