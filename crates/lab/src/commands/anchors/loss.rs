//! Reliable multicast: transmissions of a message until all members have it, and the time until a lost last message
//! is repaired.

use konklave_algorithms::multicast::ack::{deviation_of_transmissions, expected_transmissions};
use konklave_catalog::{Error, Scenario};

use super::{Anchor, Anchors, ERRORS, Relation, chosen, measure as figure, only, run};

const CHAPTER: &str = "reliable multicast";
const RECEIVERS: [usize; 5] = [1, 10, 100, 1000, 10_000];
const LOSSES: [f64; 4] = [0.001, 0.01, 0.05, 0.1];

pub(super) fn measure(all: &mut Anchors) -> Result<(), Error> {
    for p in LOSSES {
        for r in RECEIVERS {
            all.push(transmissions(all, p, r)?);
        }
    }
    all.push(tail(all)?);
    Ok(())
}

/// The transmissions of a message until `r` receivers have it, if each transmission is lost for each receiver with
/// probability `p`.
fn transmissions(all: &Anchors, p: f64, r: usize) -> Result<Anchor, Error> {
    let sampling = all.sampling;
    let messages = sampling.times((200_000 / r as u32).clamp(50, 20_000));
    let scenario = Scenario {
        loss: Some(p),
        // One after the other, so that no message waits for one before it.
        think: Some("400".into()),
        set: chosen(&[("backoff", "1"), ("limit", "100"), ("timeout", "3")]),
        ..only(r + 1, 0, messages, sampling.seed)
    };
    let report = run(all.catalog, "ack", scenario)?;
    // Sent every 3 T: the last delivery comes one delay after the last that anyone needed.
    let measured = 1.0 + (figure(&report, "last_latency.mean")? - 1.0) / 3.0;
    let error = deviation_of_transmissions(p, r) / f64::from(messages).sqrt();
    let case = format!("ack: transmissions, p = {} %, r = {r}", 100.0 * p);
    let bound = (Relation::Within(ERRORS * error), expected_transmissions(p, r));
    Ok(Anchor::new(CHAPTER, case, "E[M] = Σ 1 − (1 − pⁱ)ʳ", bound, measured, &report.command))
}

/// The time until a lost last message of a stream is repaired.
fn tail(all: &Anchors) -> Result<Anchor, Error> {
    let scenario = Scenario {
        set: chosen(&[("suppression", "none"), ("heartbeat", "2")]),
        faults: vec!["lose:0>2/Data#4".into()],
        ..only(3, 0, 4, all.sampling.seed)
    };
    let report = run(all.catalog, "nack", scenario)?;
    // The message was due after T, and a member that misses one waits for T before it asks.
    let measured = figure(&report, "last_latency.max")? - 1.0;
    let case = "nack: a lost tail is back, h_min = 2".to_owned();
    let bound = (Relation::AtMost, 2.0 + 1.0 + 2.0);
    Ok(Anchor::new(CHAPTER, case, "h_min + wait + 2T", bound, measured, &report.command))
}
