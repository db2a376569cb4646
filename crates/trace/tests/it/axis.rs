//! The axis shows true times: a step between two ticks lies at its time
//! in proportion, and a gap that is cut short states its length.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;

use crate::files::{CONDITIONS, path_of};
use konklave_trace::diagram::{Diagram, Options, layout, layout_all};
use konklave_trace::{Entry, Filter, Run};

/// So many typical delays (here: T) a reader may be off.
const TOLERANCE: f64 = 0.1;

fn stored(name: &str) -> Run {
    let file = format!("{name}.run");
    Run::read(&file, BufReader::new(File::open(path_of(&file)).unwrap())).unwrap()
}

/// `count` nodes; each of the others tells node 0 something at each of the `times`, and it arrives
/// one unit later: very much happens at one node at one moment.
fn crowd(count: u32, times: &[u64]) -> Run {
    let nodes: Vec<String> = (0..count).map(|node| node.to_string()).collect();
    let mut text = format!(
        "{{\"konklave\":1,\"algorithm\":\"x/y\",\"nodes\":[{}],\"unit\":1000,\"time\":\"T\"}}\n",
        nodes.join(",")
    );
    let mut lines: Vec<(u64, String)> = Vec::new();
    let mut id = 0;
    for &at in times {
        for node in 1..count {
            id += 1;
            lines.push((
                at,
                format!(
                    "{{\"at\":{at},\"node\":{node},\"in\":{{\"request\":\"Go\"}},\
                 \"do\":[{{\"send\":{{\"to\":0,\"id\":{id},\"body\":\"Hello\"}}}}]}}"
                ),
            ));
            let at = at + 1000;
            lines.push((
                at,
                format!(
                    "{{\"at\":{at},\"node\":0,\"in\":{{\"message\":{{\"from\":{node},\"id\":{id},\
                 \"body\":\"Hello\"}}}}}}"
                ),
            ));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    lines.iter().for_each(|(_, line)| text += &format!("{line}\n"));
    Run::read("crowd.run", format!("{text}{{\"end\":\"ok\"}}\n").as_bytes()).unwrap()
}

/// The time that one reads at `x`.
fn read(diagram: &Diagram, x: f64) -> f64 {
    let time = |label: &str| label.parse::<f64>().expect("a tick is a time");
    // One sees a tenth of a point at best.
    let within = |from: f64, to: f64| from - 0.1 <= x && x <= to + 0.1;
    if let Some(tick) = diagram.ticks.iter().find(|tick| within(tick.x, tick.to)) {
        return time(&tick.label);
    }
    let left = diagram.ticks.iter().rfind(|tick| tick.to <= x).expect("there is a tick before");
    let right = diagram.ticks.iter().find(|tick| tick.x >= x).expect("there is a tick after");
    let cut = |from: f64, to: f64| diagram.gaps.iter().any(|gap| gap.from >= from && gap.to <= to);
    assert!(!cut(left.to - 0.1, right.x + 0.1), "{x} is read across a silence that was cut short");
    let share = (x - left.to) / (right.x - left.to);
    time(&left.label) + (time(&right.label) - time(&left.label)) * share
}

fn every_time_can_be_read(name: &str, run: &Run, diagram: &Diagram) {
    for point in &diagram.points {
        let (at, x) = (run.header.time_of(run.entries[point.entry].at()), point.at.0);
        let read = read(diagram, x);
        assert!((read - at).abs() <= TOLERANCE, "{name}: {at} at {x} reads as {read}");
    }
    let shown: Vec<u64> = diagram.points.iter().map(|p| run.entries[p.entry].at()).collect();
    for gap in &diagram.gaps {
        let length: f64 = gap.label.text.trim_end_matches(" T").parse().unwrap();
        let (before, after) = (read(diagram, gap.from), read(diagram, gap.to));
        assert!((after - before - length).abs() <= TOLERANCE, "{name}: {before} to {after}");
        let within = |at: &&u64| {
            let at = run.header.time_of(**at);
            at > before + TOLERANCE && at < after - TOLERANCE
        };
        assert_eq!(shown.iter().find(within), None, "{name}: something happens in the silence");
    }
    for pair in diagram.ticks.windows(2) {
        assert!(pair[0].to <= pair[1].x, "{name}: {pair:?}");
    }
}

fn runs() -> Vec<(&'static str, Run)> {
    let mut stored: Vec<(&str, Run)> =
        ["ricart-agrawala", "chang-roberts", "faults"].map(|name| (name, stored(name))).into();
    stored.push(("one moment", crowd(20, &[0])));
    stored.push(("much at a time", crowd(20, &[0, 500, 1000, 1010, 1020, 9000, 50_000, 50_100])));
    stored.push(("two", crowd(2, &[0, 10, 20, 30, 40, 50, 60, 70, 2000, 90_000])));
    stored
}

#[test]
fn the_time_of_every_step_can_be_read_between_two_ticks() {
    for (name, run) in runs() {
        for width in [600.0, 4500.0, 100_000.0] {
            let options = Options { width, ..Options::of(CONDITIONS) };
            let diagram = layout(&run, &options);
            assert!(!diagram.points.is_empty(), "{name}: nothing is shown");
            every_time_can_be_read(name, &run, &diagram);
        }
    }
}

#[test]
fn the_same_holds_for_a_part_of_a_run() {
    let mut shown = 0;
    for (name, run) in runs() {
        let last = run.entries.last().unwrap().at();
        let windows = [None, Some((0, last / 2)), Some((last / 3, last)), Some((1, u64::MAX))];
        for window in windows {
            for nodes in [None, Some(BTreeSet::from([run.header.nodes[0], run.header.nodes[1]]))] {
                let only = Filter { nodes, window, ..Filter::default() };
                let options = Options { only, ..Options::of(CONDITIONS) };
                let diagram = layout(&run, &options);
                shown += usize::from(!diagram.points.is_empty());
                every_time_can_be_read(name, &run, &diagram);
            }
        }
    }
    assert!(shown >= 40, "only {shown} parts show anything");
}

#[test]
fn the_same_holds_for_a_race() {
    let (one, two) = (stored("ricart-agrawala"), crowd(8, &[0, 300, 40_000]));
    let diagrams = layout_all(&[&one, &two], &Options::of(CONDITIONS));
    for (run, diagram) in [&one, &two].into_iter().zip(&diagrams) {
        every_time_can_be_read("race", run, diagram);
    }
}

#[test]
fn events_of_one_moment_are_drawn_apart_and_keep_their_time() {
    let run = crowd(20, &[0]);
    let diagram = layout(&run, &Options::of(CONDITIONS));
    let at_zero: Vec<f64> = (diagram.points.iter())
        .filter(|p| matches!(&run.entries[p.entry], Entry::Step(step) if step.node == 0))
        .map(|p| p.at.0)
        .collect();
    assert_eq!(at_zero.len(), 19);
    assert!(at_zero.windows(2).all(|pair| pair[1] - pair[0] >= 7.9), "{at_zero:?}");
    let wide: Vec<_> = diagram.ticks.iter().filter(|tick| tick.to > tick.x).collect();
    assert_eq!(wide.len(), 1, "{wide:?}");
    assert_eq!(wide[0].label, "1");
    assert!(diagram.legend.iter().any(|key| key.text == "one moment, drawn wide"));
}
