//! Real runs: recorded, read, replayed, printed and drawn. `UPDATE=1` rewrites texts and pictures,
//! `UPDATE=runs` records the stored runs anew: they need not follow every change of an algorithm.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;

use crate::files::{CONDITIONS, golden, path_of};
use crate::world::Scene;
use konklave_algorithms::election::chang_roberts::ChangRoberts;
use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_process::Topology;
use konklave_sim::Pace;
use konklave_trace::causality::Causality;
use konklave_trace::diagram::{self, Fate, Lasting, layout};
use konklave_trace::{
    EffectRecord, Entry, Filter, InputRecord, Reader, Recorder, Run, replay, svg, text,
};

fn three_want_in() -> Scene {
    let mut scene = Scene::new(&[0, 1, 2], Topology::complete(3), 1);
    scene.config.hold = Pace::Constant(1.5);
    scene
}

fn a_crash_on_the_ring() -> Scene {
    let scene = Scene::new(&[3, 1, 4, 0, 2], Topology::directed_ring(5), 2);
    let mut scene = scene.faults(&["crash:3@2.5", "restart:3@14"]);
    scene.config.detect_after = Some(2.0);
    scene
}

fn everything_goes_wrong() -> Scene {
    let faults = ["lose:/Reply#1", "duplicate:/Request#1", "partition:0|1@2-4", "pause:1@3-5"];
    let mut scene = Scene::new(&[0, 1], Topology::complete(2), 1).faults(&faults);
    scene.config.faults.push("crash:0@20".parse().unwrap());
    scene.setup.mistake = Some("no-tie-break");
    scene.config.app_messages = 1;
    scene
}

#[test]
fn three_processes_enter_one_after_the_other() {
    let run = stored("ricart-agrawala.run", || three_want_in().run::<RicartAgrawala>());
    let options = text::Options { states: true, ..text::Options::default() };
    golden("ricart-agrawala.txt", &text::transcript(&run, &options));
    golden("ricart-agrawala.svg", &svg::draw(&run, &diagram::Options::of(CONDITIONS)));
}

#[test]
fn a_process_of_the_ring_crashes_and_comes_back() {
    let run = stored("chang-roberts.run", || a_crash_on_the_ring().run::<ChangRoberts>());
    golden("chang-roberts.txt", &text::transcript(&run, &text::Options::default()));
    golden("chang-roberts.svg", &svg::draw(&run, &diagram::Options::of(CONDITIONS)));
}

#[test]
fn every_kind_of_fault_is_told_and_drawn() {
    let run = stored("faults.run", || everything_goes_wrong().run::<RicartAgrawala>());
    golden("faults.txt", &text::transcript(&run, &text::Options::default()));
    golden("faults.svg", &svg::draw(&run, &diagram::Options::of(CONDITIONS)));
    let diagram = layout(&run, &diagram::Options::of(CONDITIONS));
    let fates: Vec<Fate> = diagram.arrows.iter().map(|arrow| arrow.fate).collect();
    assert!([Fate::Arrived, Fate::Again, Fate::Lost].iter().all(|fate| fates.contains(fate)));
    assert_eq!(diagram.violations.len(), 1);
    assert_eq!(diagram.bands.len(), 1);
    assert!(diagram.bars.iter().any(|bar| bar.what == Lasting::Down && bar.open));
    assert!(diagram.bars.iter().any(|bar| bar.what == Lasting::Paused && !bar.open));
}

#[test]
fn recording_is_read_back_and_replays_to_the_byte() {
    fn check<P: konklave_algorithms::Algorithm + konklave_process::Portable>(scene: &Scene) {
        let run = scene.run::<P>();
        let text = run.to_text();
        let read = Run::read("x.run", text.as_bytes()).unwrap();
        assert_eq!(read, run);
        assert_eq!(read.to_text(), text, "reading loses nothing");
        let streamed = Recorder::writing(&scene.header::<P>(), Vec::new());
        let streamed = scene.record::<P, _>(streamed).unwrap();
        assert_eq!(String::from_utf8(streamed).unwrap(), text, "both sinks write the same");
        let replayed = replay(&read, scene.processes::<P>(), &scene.setup.group).unwrap();
        let steps = run.entries.iter().filter(|entry| entry.step().is_some()).count();
        assert_eq!(replayed.steps, steps);
    }
    check::<RicartAgrawala>(&three_want_in());
    check::<RicartAgrawala>(&everything_goes_wrong());
    check::<ChangRoberts>(&a_crash_on_the_ring());
}

#[test]
fn a_replay_names_the_first_step_that_differs() {
    let scene = three_want_in();
    let mut run = scene.run::<RicartAgrawala>();
    let Entry::Step(step) = &mut run.entries[6] else { panic!("the seventh entry is a step") };
    let EffectRecord::Send { body, .. } = &mut step.effects[0] else { panic!("it sends") };
    body["Reply"]["clock"] = 7.into();
    let error = replay(&run, scene.processes::<RicartAgrawala>(), &scene.setup.group).unwrap_err();
    assert_eq!((error.line, error.step, error.node), (8, 7, 1));
    let told = "line 8, step 7 at p1: effect 1 differs\n  \
        recorded: {\"send\":{\"to\":0,\"id\":7,\"body\":{\"Reply\":{\"to\":1,\"clock\":7}}}}\n  \
        replayed: {\"send\":{\"to\":0,\"id\":7,\"body\":{\"Reply\":{\"to\":1,\"clock\":1}}}}";
    assert_eq!(error.to_string(), told);

    let mut run = scene.run::<RicartAgrawala>();
    let Entry::Step(step) = &mut run.entries[3] else { panic!("the fourth entry is a step") };
    step.state = None;
    let error = replay(&run, scene.processes::<RicartAgrawala>(), &scene.setup.group).unwrap_err();
    assert_eq!((error.what.as_str(), error.recorded.as_str()), ("the state differs", "no change"));

    let mut run = scene.run::<RicartAgrawala>();
    let Entry::Step(step) = &mut run.entries[3] else { panic!("the fourth entry is a step") };
    step.input = InputRecord::Request("Dance".into());
    let error = replay(&run, scene.processes::<RicartAgrawala>(), &scene.setup.group).unwrap_err();
    assert!(error.replayed.contains("unknown variant `Dance`"), "{error}");
}

#[test]
fn error_in_a_file_names_the_line() {
    let text = three_entries().to_text();
    let error = |text: &str| Run::read("a.run", text.as_bytes()).unwrap_err().to_string();
    let header = text.lines().next().unwrap();
    let first = "its first line should be like {\"konklave\":1,\"algorithm\":…}";
    assert_eq!(error(""), format!("a.run:1: the file is empty; {first}"));
    assert_eq!(error("hello\n"), format!("a.run:1: this is no run, but `hello`; {first}"));
    assert_eq!(
        error("{}\n"),
        format!("a.run:1: this is no run, but JSON of another kind; {first}")
    );
    assert_eq!(
        error(&text.replacen("\"konklave\":1", "\"konklave\":2", 1)),
        "a.run:1: the format has version 2, but this konklave reads version 1: \
         take the konklave that wrote it, or a newer one"
    );
    assert_eq!(
        error(&format!("{header}\n{{\"at\":0,\"node\":9,\"in\":\"start\"}}\n")),
        "a.run:2: a step of node 9, but the header has nodes 0, 1, 2"
    );
    assert_eq!(
        error(&format!("{header}\n{{\"at\":0,\"node\":0,\"in\":\"begin\"}}\n")),
        "a.run:2: in a step: unknown variant `begin`, expected one of `start`, `recover`, \
         `request`, `message`, `timer`, `suspect`, `trust`, `stamp`"
    );
    let missing = error(&format!("{header}\n{{\"at\":0,\"boom\":1}}\n"));
    assert!(missing.starts_with("a.run:2: `{\"at\":0,\"boom\":1}` is neither a step"), "{missing}");
    let broken = error(&format!("{header}\n{{\"at\":0,,\n{{\"end\":\"ok\"}}\n"));
    assert!(broken.starts_with("a.run:2: `{\"at\":0,,` is no JSON"), "{broken}");
    let late = error(&format!("{text}{{\"at\":1,\"crash\":1}}\n"));
    assert_eq!(late, "a.run:24: `{\"at\":1,\"crash\":1}` comes after the end; nothing should");
}

#[test]
fn a_file_that_is_cut_off_is_read_as_far_as_it_goes() {
    let run = three_entries();
    let text = run.to_text();
    let cut = "cut off: the file should go on to a last line {\"end\":…}";
    let half = &text[..text.len() - 100];
    let error = Run::read("a.run", half.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), format!("a.run:22: {cut}"));
    let salvaged = Run::salvage("a.run", half.as_bytes()).unwrap();
    assert_eq!(salvaged.run.entries[..], run.entries[..20]);
    assert!(salvaged.run.footer.is_none() && salvaged.cut.is_some());
    let whole_lines = &text[..text.rfind("{\"end\"").unwrap()];
    let salvaged = Run::salvage("a.run", whole_lines.as_bytes()).unwrap();
    assert_eq!(salvaged.run.entries, run.entries);
    assert_eq!(salvaged.cut.unwrap().to_string(), format!("a.run:23: {cut}"));
    assert!(Run::salvage("a.run", text.as_bytes()).unwrap().cut.is_none());
    assert!(svg::draw(&salvaged.run, &diagram::Options::of(CONDITIONS)).contains("cut off"));
}

#[test]
fn unknown_fields_are_tolerated() {
    let run = three_entries();
    let text = run.to_text().replace("{\"at\":", "{\"new\":[1],\"at\":");
    let text = text.replacen("{\"konklave\":1", "{\"konklave\":1,\"new\":true", 1);
    assert_eq!(Run::read("a.run", text.as_bytes()).unwrap(), run);
}

#[test]
fn a_long_run_can_be_read_entry_by_entry() {
    let run = three_entries();
    let text = run.to_text();
    let mut reader = Reader::new("a.run", text.as_bytes()).unwrap();
    assert_eq!(reader.header(), &run.header);
    let entries: Vec<Entry> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(entries, run.entries);
    assert_eq!(reader.footer(), run.footer.as_ref());
}

#[test]
fn a_story_can_be_short_and_about_one_node() {
    let run = three_entries();
    let nodes = Some(BTreeSet::from([2]));
    let options = text::Options { nodes, most_lines: Some(3), ..text::Options::default() };
    let story = "   0 p2 requests: acquire
        sends Request to p0 and p1 (timestamp 1)
   1 p2 receives Request from p0 (timestamp 1)
… 7 more lines
";
    assert_eq!(text::transcript(&run, &options), story);
}

#[test]
fn causes_come_before_effects_and_rivals_are_concurrent() {
    let run = three_entries();
    let order = Causality::of(&run);
    // Entries 3 to 5 ask; 6 is p1's receipt of p0's request; 13 is p0's entry.
    assert!(order.concurrent(3, 4) && order.concurrent(4, 5));
    assert!(order.before(3, 6) && !order.before(6, 3));
    assert!(order.before(4, 13) && order.before(5, 13));
    assert_eq!(order.vector(6), Some([2, 3, 0].as_slice()));
    assert_eq!(order.past(6), [0, 1, 3, 4]);
    assert!(order.future(3).contains(&20));
    assert!(order.concurrent_pairs().all(|(a, b)| a < b && order.concurrent(a, b)));
    assert!(order.concurrent_pairs().any(|pair| pair == (3, 4)));
}

#[test]
fn many_lanes_and_messages_stay_apart() {
    let ids: Vec<u32> = (0..20).collect();
    let mut scene = Scene::new(&ids, Topology::complete(20), 0);
    scene.workload.requests = (0..20).map(|i| u32::from(i % 3 == 0)).collect();
    scene.config.delay = "uniform:0.5..1.5".parse().unwrap();
    let run = scene.run::<RicartAgrawala>();
    let diagram = layout(&run, &diagram::Options::of(CONDITIONS));
    assert!(diagram.arrows.len() > 200 && diagram.arrows.iter().all(|a| a.label.is_none()));
    assert!(diagram.width < 4600.0, "{}", diagram.width);
    for lane in &diagram.lanes {
        let mut xs: Vec<f64> =
            diagram.points.iter().filter(|p| p.at.1 == lane.y).map(|p| p.at.0).collect();
        xs.sort_by(f64::total_cmp);
        assert!(xs.windows(2).all(|pair| pair[1] - pair[0] >= 8.0), "points are seen apart");
    }
    assert!(diagram.arrows.iter().all(|a| a.to.0 > a.from.0), "arrows go forward in time");
    let only = Filter { nodes: Some(BTreeSet::from([0, 3])), ..Filter::default() };
    let few = layout(&run, &diagram::Options { only, ..diagram::Options::of(CONDITIONS) });
    assert_eq!((few.lanes.len(), few.kinds.len()), (2, 2));
    assert!(few.arrows.iter().any(|arrow| arrow.label.is_some()));
}

#[test]
fn nodes_are_called_as_the_scenario_says() {
    let mut run = three_entries();
    run.header.scenario = serde_json::json!({ "names": { "0": "<north>", "2": "a longer name" } });
    let diagram = layout(&run, &diagram::Options::of(CONDITIONS));
    let labels: Vec<&str> = diagram.lanes.iter().map(|lane| lane.label.as_str()).collect();
    assert_eq!(labels, ["<north>", "p1", "a longer name"]);
    let story = text::transcript(&run, &text::Options::default());
    assert!(
        story.contains("<north> requests") && story.contains("p1 receives Request from <north>"),
        "{story}"
    );
    assert!(story.contains("to p1 and a longer name ("), "{story}");
    assert!(!story.contains("p0") && !story.contains("p2"), "{story}");
}

/// The stored run of three processes that enter.
fn three_entries() -> Run {
    let name = "ricart-agrawala.run";
    Run::read(name, BufReader::new(File::open(path_of(name)).unwrap())).unwrap()
}

/// The run under `tests/golden`.
fn stored(name: &str, record: impl Fn() -> Run) -> Run {
    let path = path_of(name);
    if std::env::var("UPDATE").is_ok_and(|what| what == "runs") {
        // Other tests read it meanwhile: it is there as a whole or not yet.
        let new = path.with_extension("new");
        std::fs::write(&new, record().to_text()).unwrap();
        std::fs::rename(new, &path).unwrap();
    }
    Run::read(name, BufReader::new(File::open(&path).unwrap())).unwrap()
}
