//! Runs for other tools, compared with files under `tests/golden`; `UPDATE=1` rewrites them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;

use crate::files::{CONDITIONS, golden, path_of};
use konklave_process::{ClientEvent, Condition, Lasting};
use konklave_trace::diagram::{Fate, Options, layout, layout_all};
use konklave_trace::export::{csv, html, html_race, mermaid, plantuml, shiviz, table, tikz};
use konklave_trace::{Entry, Filter, Header, IncidentKind, Run, svg};
use serde_json::Value;

const RUNS: [&str; 3] = ["ricart-agrawala", "chang-roberts", "faults"];

fn stored(name: &str) -> Run {
    let file = format!("{name}.run");
    Run::read(&file, BufReader::new(File::open(path_of(&file)).unwrap())).unwrap()
}

fn everything() -> Options {
    Options::of(CONDITIONS)
}

fn only(change: impl FnOnce(&mut Filter)) -> Options {
    let mut options = everything();
    change(&mut options.only);
    options
}

#[test]
fn every_text_form_is_as_stored() {
    for name in RUNS {
        let run = stored(name);
        let options = everything();
        golden(&format!("{name}.tex"), &tikz(&run, &options));
        golden(&format!("{name}.mmd"), &mermaid(&run, &options));
        golden(&format!("{name}.puml"), &plantuml(&run, &options));
        golden(&format!("{name}.shiviz"), &shiviz(&run, &options));
        golden(&format!("{name}.csv"), &csv(&run, &options));
    }
    golden("faults.html", &html(&stored("faults"), &everything()));
}

#[test]
fn a_part_of_a_run_is_as_stored() {
    let run = stored("chang-roberts");
    let mut options = only(|only| only.window = Some((2_000, 16_000)));
    options.lanes = vec![4, 3];
    golden("chang-roberts-part.svg", &svg::draw(&run, &options));
    golden("chang-roberts-part.mmd", &mermaid(&run, &options));
    golden("chang-roberts-part.shiviz", &shiviz(&run, &options));
}

#[test]
fn lanes_come_in_the_order_that_was_asked_for() {
    let run = stored("ricart-agrawala");
    let options = Options { lanes: vec![2, 0], ..everything() };
    let nodes: Vec<u32> = layout(&run, &options).lanes.iter().map(|lane| lane.node).collect();
    assert_eq!(nodes, [2, 0, 1]);
    assert!(mermaid(&run, &options).contains("participant p2\n    participant p0\n"));
}

#[test]
fn only_some_kinds_of_messages_are_drawn() {
    let run = stored("ricart-agrawala");
    let options = only(|only| only.kinds = Some(BTreeSet::from(["Reply".to_owned()])));
    let diagram = layout(&run, &options);
    assert_eq!(diagram.kinds.len(), 1);
    assert_eq!(diagram.arrows.len(), diagram.kinds[0].count);
    assert!(diagram.subtitle.ends_with("only Reply"));
    assert!(!plantuml(&run, &options).contains("Request"));
    assert!(!csv(&run, &options).contains("receive,Request"));
}

#[test]
fn a_window_cuts_arrows_at_its_edges_and_keeps_what_lasts() {
    let run = stored("chang-roberts");
    let all = layout(&run, &everything());
    let crash = run
        .entries
        .iter()
        .find(|e| matches!(e, Entry::Incident(i) if matches!(i.kind, IncidentKind::Crash(_))));
    let crash = crash.unwrap().at();
    let options = only(|only| only.window = Some((crash + 1, crash + 400)));
    let part = layout(&run, &options);
    assert!(part.points.len() < all.points.len() && part.width < all.width);
    assert!(part.bars.iter().any(|bar| bar.what == Lasting::Down));
    assert!(part.arrows.iter().any(|arrow| arrow.fate == Fate::Beyond), "one is on its way");
    let lanes: Vec<f64> = part.lanes.iter().map(|lane| lane.y).collect();
    let (top, bottom) = (lanes[0], lanes[lanes.len() - 1]);
    for arrow in &part.arrows {
        assert!(arrow.from.0 <= arrow.to.0 + 0.1, "{arrow:?}");
        assert!((top..=bottom).contains(&arrow.from.1) && (top..=bottom).contains(&arrow.to.1));
    }
}

#[test]
fn wishes_that_the_run_cannot_fulfil_are_told() {
    let run = stored("ricart-agrawala");
    let told = |only: Filter| only.check(&run).unwrap_err();
    let nodes = Some(BTreeSet::from([7]));
    assert_eq!(
        told(Filter { nodes, ..Filter::default() }),
        "there is no node 7: the run has 0, 1, 2"
    );
    let kinds = Some(BTreeSet::from(["Token".to_owned()]));
    assert_eq!(
        told(Filter { kinds, ..Filter::default() }),
        "no message is of the kind `Token`: the run has Reply, Request"
    );
    let window = Some((90_000, 99_000));
    let none = told(Filter { window, ..Filter::default() });
    assert!(none.starts_with("nothing happens then: the run goes from 0 to "), "{none}");
    let header = Header::new("x/y", vec![0]);
    assert_eq!(Filter::parse_window("1.5..2", &header), Ok((1500, 2000)));
    assert_eq!(Filter::parse_window("3..", &header), Ok((3000, u64::MAX)));
    assert_eq!(Filter::parse_window("..0.5", &header), Ok((0, 500)));
    for wrong in ["", "5", "a..b", "-1..2", "1..nan", "inf..", "1-2"] {
        let told = Filter::parse_window(wrong, &header).unwrap_err();
        assert!(told.contains("should be like 2.5..10"), "{wrong}: {told}");
    }
    assert!(Filter::parse_window("5..2", &header).unwrap_err().contains("ends before it begins"));
}

#[test]
fn a_run_without_entries_has_every_form() {
    let run = Run { header: Header::new("x/y", vec![]), entries: vec![], footer: None };
    let options = everything();
    for text in [
        svg::draw(&run, &options),
        tikz(&run, &options),
        mermaid(&run, &options),
        plantuml(&run, &options),
        csv(&run, &options),
        html(&run, &options),
    ] {
        assert!(!text.is_empty());
    }
    assert_eq!(shiviz(&run, &options), "");
    assert!(table(&run, &options).to_parquet().ends_with(b"PAR1"));
}

#[test]
fn text_of_a_process_cannot_break_a_form() {
    let mut run = stored("ricart-agrawala");
    let wild = "</script><b>&;#%$_{}\\^~\"'`*end*/\n|--\u{7}→";
    run.header.algorithm = wild.into();
    for entry in &mut run.entries {
        let Entry::Step(step) = entry else { continue };
        if let konklave_trace::InputRecord::Request(request) = &mut step.input {
            *request = Value::String(wild.into());
        }
    }
    let options = everything();
    let page = html(&run, &options);
    assert_eq!(page.matches("</script>").count(), 2, "only our own");
    assert!(!page.contains("<b>&"));
    let text = mermaid(&run, &options);
    assert!(
        text.lines()
            .skip(3)
            .all(|line| line.is_empty() || line.starts_with("    ") || line == "sequenceDiagram")
    );
    assert!(!text.contains("</script>") && text.contains("#60;/script#62;"));
    let uml = plantuml(&run, &options);
    assert!(!uml.contains("<b>"));
    assert!(tikz(&run, &options).contains("\\textless{}/script\\textgreater{}"));
    let log = shiviz(&run, &options);
    assert_eq!(log.lines().count() % 2, 0);
}

/// ShiViz asks for this: each host counts its own events from 1, and knows no event that is not
/// there.
#[test]
fn the_clocks_of_a_log_are_sound() {
    for name in RUNS {
        for options in [everything(), only(|only| only.window = Some((1_000, 6_000)))] {
            let log = shiviz(&stored(name), &options);
            let lines: Vec<&str> = log.lines().collect();
            let mut counts: std::collections::BTreeMap<&str, u64> = Default::default();
            for pair in lines.chunks(2) {
                let (host, clock) = pair[1].split_once(' ').unwrap();
                let clock: std::collections::BTreeMap<String, u64> =
                    serde_json::from_str(clock).unwrap();
                let own = counts.entry(host).or_default();
                *own += 1;
                assert_eq!(clock[host], *own, "{name}: {pair:?}");
                for (other, count) in &clock {
                    let there = counts.get(other.as_str()).copied().unwrap_or(0);
                    assert!(*count <= there, "{name}: {pair:?} knows what has not happened");
                }
            }
            assert!(!counts.is_empty());
        }
    }
}

#[test]
fn runs_of_a_race_share_one_axis() {
    let (one, two) = (stored("ricart-agrawala"), stored("faults"));
    let diagrams = layout_all(&[&one, &two], &everything());
    assert_eq!(diagrams[0].ticks, diagrams[1].ticks);
    assert_eq!(diagrams[0].field.0, diagrams[1].field.0);
    for diagram in &diagrams {
        assert!(diagram.arrows.iter().all(|a| a.to.0 > a.from.0), "arrows go forward in time");
    }
    let picture = svg::stack(&diagrams);
    assert_eq!(picture.matches("<svg").count(), 1);
    assert!(picture.contains("data-track=\"1\""));
    golden("race.svg", &picture);
    assert!(html_race(&[&one, &two], &everything()).contains("kp-data"));
}

#[cfg(feature = "png")]
#[test]
fn a_png_is_drawn_with_words() {
    use konklave_trace::export::{PngError, png};
    let run = stored("faults");
    let picture = svg::draw(&run, &everything());
    let points = png(&picture, 1.0).unwrap();
    assert!(points.starts_with(b"\x89PNG"));
    assert!(points.len() > 10_000, "there are words in it: {}", points.len());
    assert_eq!(points, png(&picture, 1.0).unwrap(), "the same bytes");
    assert!(matches!(png("no svg", 1.0), Err(PngError::NoSvg(_))));
    assert!(matches!(png(&picture, 20.0), Err(PngError::TooLarge { .. })));
}

/// Ten thousand steps are drawn in less than a second, in the build for use.
#[test]
fn a_long_run_is_drawn_soon() {
    let mut run = stored("ricart-agrawala");
    let (entries, once) = (run.entries.clone(), run.entries.last().unwrap().at() + 1);
    let mut text = String::new();
    let mut round = 0;
    while run.entries.len() < 10_000 {
        round += 1;
        for entry in &entries {
            // The same again, later and with other numbers.
            let mut line = serde_json::to_value(entry).unwrap();
            renumber(&mut line, round * 1_000);
            line["at"] = (entry.at() + round * once).into();
            text += &(line.to_string() + "\n");
        }
        let header = serde_json::to_string(&run.header).unwrap();
        let again = Run::read("x.run", format!("{header}\n{text}{{\"end\":\"ok\"}}\n").as_bytes());
        run.entries.extend(again.unwrap().entries);
        text.clear();
    }
    let begin = std::time::Instant::now();
    let picture = svg::draw(&run, &everything());
    let took = begin.elapsed();
    println!("{} entries, {} bytes of SVG, {took:?}", run.entries.len(), picture.len());
    assert!(took.as_secs() < 10, "{took:?}");
}

fn renumber(value: &mut Value, by: u64) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_u64() {
                    Some(id) if name == "id" => *value = (id + by).into(),
                    _ => renumber(value, by),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| renumber(item, by)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A run of an algorithm on another: two layers, with two kinds each.
fn layered() -> Run {
    let header =
        "{\"konklave\":1,\"algorithm\":\"x/y\",\"nodes\":[0,1],\"unit\":1000,\"time\":\"T\"}";
    let bodies = [
        "{\"Group\":{\"Prepare\":{\"view\":1}}}",
        "{\"Group\":{\"Promise\":{\"view\":1}}}",
        "\"Ask\"",
        "{\"Inside\":{\"view\":1,\"message\":{\"Raymond\":{\"Token\":{\"fence\":1}}}}}",
        "{\"Yes\":{\"round\":1}}",
    ];
    let mut text = format!("{header}\n");
    for (i, body) in bodies.iter().enumerate() {
        let (id, at, later) = (i + 1, i * 2000, i * 2000 + 1000);
        text += &format!(
            "{{\"at\":{at},\"node\":0,\"in\":{{\"request\":\"Go\"}},\
             \"do\":[{{\"send\":{{\"to\":1,\"id\":{id},\"body\":{body}}}}}]}}\n\
             {{\"at\":{later},\"node\":1,\"in\":{{\"message\":{{\"from\":0,\"id\":{id},\"body\":{body}}}}}}}\n"
        );
    }
    Run::read("layered.run", format!("{text}{{\"end\":\"ok\"}}\n").as_bytes()).unwrap()
}

#[test]
fn each_layer_has_a_colour_and_each_kind_a_pattern() {
    let run = layered();
    let diagram = layout(&run, &everything());
    let looks = |name: &str| {
        let kind = diagram.kinds.iter().find(|kind| kind.name == name).expect(name);
        (kind.colour, kind.dash)
    };
    assert_eq!([looks("Ask"), looks("Yes")], [(0, 0), (0, 1)], "the algorithm itself");
    assert_eq!([looks("Group/Prepare"), looks("Group/Promise")], [(1, 0), (1, 1)]);
    assert_eq!(looks("Inside/Token"), (2, 0), "what is wrapped beside other fields");
    let legend: Vec<&str> = diagram.legend.iter().map(|key| key.text.as_str()).take(5).collect();
    assert_eq!(
        legend,
        ["Ask (1)", "Yes (1)", "Group/Prepare (1)", "Group/Promise (1)", "Inside/Token (1)"]
    );
    let labels =
        diagram.arrows.iter().filter_map(|arrow| Some(arrow.label.as_ref()?.text.as_str()));
    assert_eq!(labels.collect::<Vec<_>>(), ["Prepare", "Promise", "Ask", "Token", "Yes 1"]);
    assert!(mermaid(&run, &everything()).contains("p0->>p1: Prepare @1"));
    let picture = svg::render(&diagram);
    for colour in ["k0", "k1", "k2"] {
        assert!(picture.contains(&format!("class=\"arrow {colour}")), "{colour}");
    }
    assert!(picture.contains("class=\"arrow k1\" stroke-dasharray=\"10 2\""), "Promise");
    assert!(tikz(&run, &everything()).contains("arrow,kind1,tip,dash pattern=on 10bp off 2bp"));
    let kinds = |kind: &str| only(|only| only.kinds = Some(BTreeSet::from([kind.to_owned()])));
    assert_eq!(layout(&run, &kinds("Group")).arrows.len(), 2, "a whole layer");
    assert_eq!(layout(&run, &kinds("Group/Promise")).arrows.len(), 1);
    // Without layers, each kind has its own colour.
    let plain = layout(&stored("ricart-agrawala"), &everything());
    assert_eq!(
        plain.kinds.iter().map(|kind| (kind.colour, kind.dash)).collect::<Vec<_>>(),
        [(0, 0), (1, 0)]
    );
}

/// A printer is `Queued`, then `Printing` until it is `Empty`; the page number is in the label.
const PRINTER: &[Condition] = &[
    Condition {
        what: Lasting::Waiting,
        name: "queued",
        short: "",
        begins: &[ClientEvent::Request("Print")],
        ends: &[ClientEvent::Indication("Printing")],
    },
    Condition {
        what: Lasting::Inside,
        name: "prints page {page}",
        short: "",
        begins: &[ClientEvent::Indication("Printing")],
        ends: &[ClientEvent::Indication("Empty")],
    },
];

#[test]
fn bars_are_the_conditions_of_the_problem() {
    let text = r#"{"konklave":1,"algorithm":"printing/mine","nodes":[0]}
{"at":0,"node":0,"in":{"request":"Print"}}
{"at":3000,"node":0,"in":{"timer":"ready"},"do":[{"indicate":{"Printing":{"page":7}}}]}
{"at":9000,"node":0,"in":{"timer":"done"},"do":[{"indicate":"Empty"}]}
{"end":"ok","summary":{}}
"#;
    let run = Run::read("printing.run", text.as_bytes()).unwrap();
    let diagram = layout(&run, &Options::of(PRINTER));
    let bars: Vec<(Lasting, bool)> = diagram.bars.iter().map(|b| (b.what, b.open)).collect();
    assert_eq!(bars, [(Lasting::Waiting, false), (Lasting::Inside, false)]);
    assert!(diagram.bars[1].tooltip.contains("prints page 7"), "{:?}", diagram.bars[1]);
    let legend: Vec<&str> = diagram.legend.iter().map(|key| key.text.as_str()).collect();
    assert_eq!(legend, ["queued", "prints page"]);
    let marks: Vec<&str> = diagram.marks.iter().map(|mark| mark.label.text.as_str()).collect();
    assert_eq!(marks, ["Empty"], "an event that begins a bar has no mark of its own");
    assert!(layout(&run, &Options::default()).bars.is_empty());
}
