//! Orders of messages: messages and time of one multicast among five members.

use konklave_catalog::{Error, Scenario};

use super::{Anchor, Anchors, Relation, chosen, measure as figure, only, run};

const CHAPTER: &str = "orders, one multicast among 5";

/// An order: algorithm, switches, the formulas for messages and time, and their values for five members of which the
/// last one sends.
type Row =
    (&'static str, &'static [(&'static str, &'static str)], &'static str, f64, &'static str, f64);

const ROWS: &[Row] = &[
    ("best-effort", &[], "n − 1", 4.0, "T", 1.0),
    ("fifo", &[], "n − 1", 4.0, "T", 1.0),
    ("causal", &[], "n − 1", 4.0, "T", 1.0),
    ("sequencer", &[("wire", "ub")], "n", 5.0, "2T", 2.0),
    ("sequencer", &[("wire", "bb")], "2(n − 1)", 8.0, "2T", 2.0),
    ("sequencer", &[("wire", "ub"), ("delivery", "uniform")], "n + n(n − 1)", 25.0, "3T", 3.0),
    ("sequencer", &[("wire", "ub"), ("delivery", "committed")], "n + 2(n − 1)", 13.0, "4T", 4.0),
    ("isis", &[], "3(n − 1)", 12.0, "3T", 3.0),
    ("lamport-order", &[], "n(n − 1)", 20.0, "2T", 2.0),
    ("token-order", &[], "5n − 1, the token's rounds included", 24.0, "(n + 1)T from rest", 6.0),
];

pub(super) fn measure(all: &mut Anchors) -> Result<(), Error> {
    let seed = all.sampling.seed;
    for (algorithm, set, formula, messages, time_formula, time) in ROWS {
        let scenario = Scenario { set: chosen(set), ..only(5, 4, 1, seed) };
        let report = run(all.catalog, algorithm, scenario)?;
        let variant: Vec<&str> = set.iter().map(|(_, value)| *value).collect();
        let name = [&[*algorithm][..], &variant].concat().join(", ");
        let sent = report.messages.sent as f64;
        let bound = (Relation::Exactly, *messages);
        all.push(Anchor::new(
            CHAPTER,
            format!("{name}: messages"),
            formula,
            bound,
            sent,
            &report.command,
        ));
        let (bound, measured) = ((Relation::Exactly, *time), figure(&report, "last_latency.max")?);
        let case = format!("{name}: time");
        all.push(Anchor::new(CHAPTER, case, time_formula, bound, measured, &report.command));
    }
    Ok(())
}
