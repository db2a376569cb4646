//! Reliable multicast: how often a message is sent until all have it, how soon a lost end is back.

use konklave_algorithms::multicast::ack::expected_transmissions;
use konklave_catalog::{Error, Scenario};

use super::{Anchor, Relation, chosen, measure as figure, only, run};

pub(super) fn measure(seed: u64, all: &mut Vec<Anchor>) -> Result<(), Error> {
    for (p, r, messages) in [
        (0.1, 1, 4000),
        (0.05, 10, 2000),
        (0.1, 10, 2000),
        (0.01, 100, 1000),
        (0.1, 100, 500),
        (0.05, 1000, 60),
        (0.1, 1000, 60),
    ] {
        let scenario = Scenario {
            loss: Some(p),
            // One after the other, so that no message waits for one before it.
            think: Some("400".into()),
            set: chosen(&[("backoff", "1"), ("limit", "100"), ("timeout", "3")]),
            ..only(r + 1, 0, messages, seed)
        };
        let report = run("ack", scenario)?;
        // Sent every 3 T: the last delivery comes one delay after the last that anyone needed.
        let measured = 1.0 + (figure(&report, "last_latency.mean")? - 1.0) / 3.0;
        // Four standard errors; the number of transmissions deviates by less than 0.75.
        let slack = Relation::Within(4.0 * 0.75 / f64::from(messages).sqrt());
        let case = format!("ack: transmissions, r = {r}, loss {p}");
        let bound = (slack, expected_transmissions(p, r));
        all.push(Anchor::new(
            CHAPTER,
            case,
            "E[M] = Σ 1 − (1 − pⁱ)ʳ",
            bound,
            measured,
            &report.command,
        ));
    }
    let scenario = Scenario {
        set: chosen(&[("suppression", "none"), ("heartbeat", "2")]),
        faults: vec!["lose:0>2/Data#4".into()],
        ..only(3, 0, 4, seed)
    };
    let report = run("nack", scenario)?;
    // It should have come after T; whoever misses something waits for T before it asks.
    let measured = figure(&report, "last_latency.max")? - 1.0;
    let case = "nack: a lost tail is back, h_min = 2".to_owned();
    let bound = (Relation::AtMost, 2.0 + 1.0 + 2.0);
    all.push(Anchor::new(CHAPTER, case, "h_min + wait + 2T", bound, measured, &report.command));
    Ok(())
}

const CHAPTER: &str = "reliable multicast";
