//! A run that is written down in the compact form while it goes on is the run.

use konklave_catalog::{Catalog, Scenario};
use konklave_trace::compact;

#[test]
fn every_algorithm_streams_what_it_records() {
    let faults = ["crash:0@2.5", "restart:0@9", "lose:/#3", "duplicate:/#5", "pause:1@1-3"];
    for entry in Catalog::builtin().entries() {
        for faulty in [false, true] {
            let scenario = Scenario {
                nodes: Some(4),
                seed: Some(3),
                delay: Some("uniform:0.5..1.5".into()),
                app_messages: Some(1),
                time_limit: Some(60.0),
                faults: faults.iter().filter(|_| faulty).map(|f| (*f).to_owned()).collect(),
                ..Scenario::default()
            };
            let plan = entry.plan(scenario).unwrap();
            let outcome = entry.simulate(&plan, true).unwrap();
            let mut bytes = Vec::new();
            let report = entry.record(&plan, &mut bytes).unwrap().unwrap();
            assert_eq!(report.messages, outcome.report.messages);
            let read = compact::salvage("x.runz", &bytes).unwrap();
            assert!(read.cut.is_none());
            let (streamed, recorded) = (read.run.to_text(), outcome.run.unwrap().to_text());
            for (streamed, recorded) in streamed.lines().zip(recorded.lines()) {
                assert_eq!(streamed, recorded, "{} faulty: {faulty}", entry.name());
            }
            assert_eq!(streamed.len(), recorded.len());
        }
    }
}
