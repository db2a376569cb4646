//! The player in a real browser: step on and back, choose a message. Without Chromium it is
//! skipped, and says so.

use std::fs::File;
use std::io::BufReader;
use std::process::Command;

use crate::files::{CONDITIONS, path_of};
use konklave_trace::Run;
use konklave_trace::diagram::Options;
use konklave_trace::export::{html, html_race};
use serde_json::Value;

/// The actions of a visitor, and what the page shows after each.
const VISIT: &str = "
const seen = {};
const $ = (id) => document.getElementById(id);
const key = (key) => document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
const at = () => $('kp-where').textContent;
const x = () => Number($('kp-cursor').getAttribute('x1'));
seen.lang = document.documentElement.lang;
seen.begin = at();
seen.steps = $('kp-story').children.length;
$('kp-next').click();
seen.first = at();
const before = x();
key('ArrowRight'); key('ArrowRight');
seen.third = at();
seen.forward = x() >= before;
seen.current = [...$('kp-story').children].findIndex((it) => it.hasAttribute('aria-current'));
key('ArrowLeft');
seen.back = at();
$('kp-back').click(); $('kp-back').click(); $('kp-back').click();
seen.home = at();
key('End');
seen.last = at();
seen.changes = 0;
key('Home');
for (let i = 0; i < seen.steps; i++) {
  key('ArrowRight');
  seen.changes += document.querySelectorAll('#kp-states .kp-changed').length;
}
seen.down = document.querySelectorAll('#kp-states .kp-down').length;
const arrow = document.querySelectorAll('[data-message]')[3];
arrow.dispatchEvent(new MouseEvent('click', { bubbles: true }));
seen.message = $('kp-message').hidden ? '' : $('kp-message').innerText;
seen.past = document.querySelectorAll('g[data-entry].kp-past').length;
seen.future = document.querySelectorAll('g[data-entry].kp-future').length;
key('Escape');
seen.closed = $('kp-message').hidden && !document.querySelector('.kp-past');
document.body.append(Object.assign(document.createElement('pre'),
  { id: 'seen', textContent: 'SEEN' + JSON.stringify(seen) + 'NEES' }));
";

fn stored(name: &str) -> Run {
    Run::read(name, BufReader::new(File::open(path_of(name)).unwrap())).unwrap()
}

fn browser() -> Option<String> {
    let given = std::env::var("KONKLAVE_CHROMIUM").ok();
    let names = ["chromium", "chromium-browser", "google-chrome"].map(str::to_owned);
    given.into_iter().chain(names).find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success())
    })
}

/// Opens `page`, visits it as above, and tells what was seen.
fn visit(browser: &str, page: &str, language: &str) -> Value {
    let folder = std::env::temp_dir().join(format!(
        "konklave-player-{}-{language}-{}",
        std::process::id(),
        page.len()
    ));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("player.html");
    let page = page.replace("</body>", &format!("<script>{VISIT}</script></body>"));
    std::fs::write(&file, page).unwrap();
    let said = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--virtual-time-budget=2000",
            "--dump-dom",
        ])
        .arg(format!("--lang={language}"))
        .arg(format!("--accept-lang={language}"))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let _ = std::fs::remove_dir_all(&folder);
    let dom = String::from_utf8_lossy(&said.stdout);
    // The script itself is in the page, too; what it wrote comes after.
    let seen = dom.rsplit("SEEN").next().and_then(|rest| rest.split("NEES").next());
    let seen = seen.unwrap_or_default().replace("&gt;", ">").replace("&lt;", "<");
    serde_json::from_str(&seen.replace("&amp;", "&"))
        .unwrap_or_else(|e| panic!("{e}: {seen}\n{}", String::from_utf8_lossy(&said.stderr)))
}

#[test]
fn a_visitor_steps_forwards_and_backwards() {
    let Some(browser) = browser() else {
        println!("skipped: no Chromium here; KONKLAVE_CHROMIUM names one");
        return;
    };
    let run = stored("faults.run");
    let seen = visit(&browser, &html(&run, &Options::of(CONDITIONS)), "en");
    let steps = seen["steps"].as_u64().unwrap();
    assert!(steps > 10, "{seen}");
    assert_eq!(seen["begin"], "begin");
    assert_eq!(seen["first"], format!("step 1 of {steps} · 0 T"));
    assert_eq!(seen["current"], 2, "{seen}");
    let step = |name: &str| seen[name].as_str().unwrap_or_default().to_owned();
    assert!(step("third").starts_with("step 3 of "), "{seen}");
    assert!(step("back").starts_with("step 2 of "), "{seen}");
    assert_eq!(seen["home"], "begin");
    assert!(step("last").starts_with(&format!("step {steps} of ")), "{seen}");
    assert_eq!(seen["forward"], true);
    assert!(seen["changes"].as_u64() > Some(3), "{seen}");
    assert_eq!(seen["down"], 1, "p0 crashes at the end: {seen}");
    assert!(step("message").contains("possible causes"), "{seen}");
    assert!(seen["past"].as_u64() > Some(0) && seen["future"].as_u64() > Some(0), "{seen}");
    assert_eq!(seen["closed"], true);
}

#[test]
fn a_race_is_played_too() {
    let Some(browser) = browser() else {
        println!("skipped: no Chromium here; KONKLAVE_CHROMIUM names one");
        return;
    };
    let (one, two) = (stored("ricart-agrawala.run"), stored("chang-roberts.run"));
    let seen = visit(&browser, &html_race(&[&one, &two], &Options::of(CONDITIONS)), "de");
    assert_eq!(seen["begin"], "Beginn", "{seen}");
    assert!(seen["message"].as_str().is_some_and(|m| m.contains("mögliche Ursachen")), "{seen}");
}
