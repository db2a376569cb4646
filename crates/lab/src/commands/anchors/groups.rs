//! Virtual synchrony and the locks on it: packets and times.

use konklave_catalog::{Error, Scenario};

use super::{Anchor, Anchors, Relation, chosen, measure as figure, only, run};

const CHAPTER: &str = "virtual synchrony";

pub(super) fn measure(all: &mut Anchors) -> Result<(), Error> {
    let (catalog, seed) = (all.catalog, all.sampling.seed);
    for n in [3, 5, 9] {
        let size = n as f64;
        let calm = |set: &[(&str, &str)]| {
            let set = [&[("retry", "off")][..], set].concat();
            Scenario { set: chosen(&set), ..only(n, 0, 0, seed) }
        };
        let change = run(catalog, "virtual-synchrony", calm(&[("reform", "0")]))?;
        let mut add = |case: &str, formula, theory, measured, command: &str| {
            let (case, bound) = (format!("{case}, n = {n}"), (Relation::Exactly, theory));
            all.push(Anchor::new(CHAPTER, case, formula, bound, measured, command));
        };
        let took = figure(&change, "change_max")?;
        add("view change: time", "4T", 4.0, took, &change.command);
        // The proposer's own acceptance travels inside its proposal.
        let packets = 3.0 * (size - 1.0) + (size - 1.0) * (size - 1.0);
        let sent = change.messages.sent as f64;
        add("view change: messages", "3(n − 1) + (n − 1)²", packets, sent, &change.command);
        let crash = Scenario { faults: vec!["crash:1@1".into()], ..calm(&[]) };
        let crash = run(catalog, "virtual-synchrony", crash)?;
        let took = figure(&crash, "change_max")?;
        add("after a suspicion: time", "4T", 4.0, took, &crash.command);
        let sends = Scenario { requests: only(n, 1, 1, seed).requests, ..calm(&[]) };
        let agreed =
            Scenario { requests: sends.requests.clone(), ..calm(&[("delivery", "agreed")]) };
        let uniform = run(catalog, "virtual-synchrony", sends)?;
        let took = figure(&uniform, "latency_max")?;
        add("uniform delivery: time", "3T", 3.0, took, &uniform.command);
        let agreed = run(catalog, "virtual-synchrony", agreed)?;
        let took = figure(&agreed, "latency_max")?;
        add("agreed delivery: time", "2T", 2.0, took, &agreed.command);
        let all_want = |hold: &str, set: &[(&str, &str)]| Scenario {
            requests: None,
            entries: Some(2),
            hold: Some(hold.into()),
            ..calm(set)
        };
        let table = run(catalog, "lock-table", all_want("10", &[]))?;
        let took = figure(&table, "hand_over_max")?;
        add("lock table: hand-over", "3T", 3.0, took, &table.command);
        for mutex in ["naimi-trehel", "suzuki-kasami"] {
            let lifted = run(catalog, "lifted", all_want("10", &[("mutex", mutex)]))?;
            let took = figure(&lifted, "hand_over_max")?;
            add(&format!("lifted {mutex}: hand-over"), "T", 1.0, took, &lifted.command);
        }
    }
    Ok(())
}
