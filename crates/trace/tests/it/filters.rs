//! A filter keeps or drops a message with both its ends, and every export shows
//! the same messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;

use crate::files::{CONDITIONS, path_of};
use konklave_trace::diagram::{Options, layout};
use konklave_trace::export::{csv, mermaid, plantuml, shiviz};
use konklave_trace::messages::messages;
use konklave_trace::{Filter, Run};

fn stored(name: &str) -> Run {
    let file = format!("{name}.run");
    Run::read(&file, BufReader::new(File::open(path_of(&file)).unwrap())).unwrap()
}

/// Many ways to leave something out.
fn filters(run: &Run) -> Vec<Filter> {
    let last = run.entries.last().unwrap().at();
    let kinds: BTreeSet<String> = messages(run).values().map(|m| m.kind().to_owned()).collect();
    let nodes = &run.header.nodes;
    let mut filters = vec![Filter::default()];
    for share in 0..8 {
        let window = Some((last * share / 8, last * (share + 1) / 8));
        filters.push(Filter { window, ..Filter::default() });
    }
    for kind in &kinds {
        filters.push(Filter { kinds: Some([kind.clone()].into()), ..Filter::default() });
    }
    for pair in nodes.windows(2) {
        let nodes = Some(pair.iter().copied().collect());
        filters.push(Filter { nodes, window: Some((last / 4, last / 2)), ..Filter::default() });
    }
    filters
}

/// The messages of a table: for each number, how often it is sent, received, lost.
fn table_of(run: &Run, options: &Options) -> BTreeMap<u64, [usize; 3]> {
    let mut found: BTreeMap<u64, [usize; 3]> = BTreeMap::new();
    for line in csv(run, options).lines().skip(1) {
        let cells: Vec<&str> = line.splitn(9, ',').collect();
        let event = match cells[4] {
            "send" | "app_message" => 0,
            "receive" | "stamp" => 1,
            "lost" => 2,
            _ => continue,
        };
        found.entry(cells[7].parse().unwrap()).or_default()[event] += 1;
    }
    found
}

#[test]
fn messages_are_whole_or_not_there_and_everywhere_the_same() {
    for name in ["ricart-agrawala", "chang-roberts", "faults"] {
        let run = stored(name);
        let all = messages(&run);
        for only in filters(&run) {
            let options = Options { only: only.clone(), ..Options::of(CONDITIONS) };
            let table = table_of(&run, &options);
            for (id, [sent, received, lost]) in &table {
                let whole = &all[id];
                let ends = (1, whole.received.len(), usize::from(whole.lost.is_some()));
                assert_eq!((*sent, *received, *lost), ends, "{name}, {only:?}: message {id}");
            }
            let drawn: BTreeSet<u64> = layout(&run, &options).arrows.iter().map(|a| a.id).collect();
            let told: BTreeSet<u64> = table.keys().copied().collect();
            assert_eq!(drawn, told, "{name}, {only:?}: the picture and the table");
            // A sequence diagram has an arrow for each end that is not the beginning.
            let arrows: usize = told
                .iter()
                .map(|id| (all[id].received.len() + usize::from(all[id].lost.is_some())).max(1))
                .sum();
            let is_arrow = |line: &&str| {
                ["->>", "-->>", "-x", "--)"].iter().any(|arrow| line.contains(arrow))
                    && !line.contains("Note over")
            };
            let count = mermaid(&run, &options).lines().filter(is_arrow).count();
            assert_eq!(count, arrows, "{name}, {only:?}: Mermaid");
            let count = plantuml(&run, &options)
                .lines()
                .filter(|l| l.contains(" ->") || l.contains(" -->"))
                .count();
            assert_eq!(count, arrows, "{name}, {only:?}: PlantUML");
            let (sends, receipts) = ends_in(&shiviz(&run, &options));
            assert_eq!(
                sends,
                told.iter().filter(|id| all[id].body.is_some()).count(),
                "{name}, {only:?}: ShiViz"
            );
            let expected: usize = told.iter().map(|id| all[id].received.len()).sum();
            assert_eq!(receipts, expected, "{name}, {only:?}: ShiViz");
        }
    }
}

/// How many messages a log sends and receives.
fn ends_in(log: &str) -> (usize, usize) {
    let (mut sends, mut receipts) = (0, 0);
    for event in log.lines().step_by(2) {
        for part in event.split("; ") {
            receipts += usize::from(part.contains(" receives "));
            if let Some((_, sent)) = part.split_once("sends ")
                && let Some((_, to)) = sent.split_once(" to ")
            {
                let receivers = to.split(" (").next().unwrap_or_default();
                sends += receivers.split([' ', ',']).filter(|word| is_node(word)).count();
            }
        }
    }
    (sends, receipts)
}

fn is_node(word: &str) -> bool {
    word.strip_prefix('p')
        .is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
}
