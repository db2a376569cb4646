//! Limits of requests from the page: no files, and no more than a browser can show.

use konklave_catalog::Scenario;
use konklave_process::topology::Spec;
use konklave_sim::Delay;

use crate::refusal::Refusal;

/// Largest body of a request, in bytes.
pub const BODY: usize = 256 << 10;
/// Runs and checks that may go on at the same time; further ones wait.
pub const AT_A_TIME: usize = 2;
/// Most runs of a race.
pub const RACERS: usize = 4;
/// Most nodes of a group.
pub const NODES: usize = 256;
/// Most nodes of a tree over which processes are scattered.
const TREE: usize = 100_000;
/// Most steps of all runs of a request together.
pub const STEPS: u64 = 120_000;
/// Most numbers in the recorded states of a run: each step may record one number for each node.
const CELLS: u64 = 4_000_000;
/// Most states of a check.
pub const STATES: u64 = 5_000_000;
/// Most memory of a check, about.
pub const CHECK_BYTES: u64 = 2 << 30;
/// Most messages of the application with each request.
const APP_MESSAGES: u32 = 20;

/// Most steps of each of `runs` runs of `nodes` nodes.
pub fn steps(nodes: usize, runs: usize) -> u64 {
    let nodes = nodes.max(1) as u64;
    (STEPS / runs.max(1) as u64).min(CELLS / nodes)
}

/// Refuses a scenario that reads a file or is too large.
pub(crate) fn admit(scenario: &Scenario) -> Result<(), Refusal> {
    let listed = scenario.ids.as_ref().map_or(0, |ids| ids.split(',').count());
    let nodes = scenario.nodes.unwrap_or(0).max(listed);
    if nodes > NODES {
        return Err(Refusal::too_large(format!(
            "{nodes} nodes are too many for a page, which shows at most {NODES}; use the command line \
             for more"
        )));
    }
    if let Some(text) = &scenario.topology {
        match text.parse::<Spec>() {
            Ok(Spec::File(_)) => {
                return Err(Refusal::invalid(format!(
                    "topology `{text}` is a file; the page reads no files, use the command line"
                )));
            }
            Ok(Spec::Scattered(nodes, _)) if nodes > TREE => {
                return Err(Refusal::too_large(format!(
                    "a tree of {nodes} nodes is too large for a page; the most is {TREE}"
                )));
            }
            Ok(_) => {}
            Err(e) => return Err(Refusal::invalid(format!("topology: {e}"))),
        }
    }
    // `hops` follows from the topology.
    if let Some(text) = scenario.delay.as_deref().filter(|text| *text != "hops")
        && let Err(e) = text.parse::<Delay>()
    {
        return Err(Refusal::invalid(format!("delay: {e}")));
    }
    if let Some(text) =
        scenario.script.as_ref().filter(|text| !text.is_empty() && !text.contains('@'))
    {
        return Err(Refusal::invalid(format!(
            "script `{text}` is a file; the page reads no files, use the command line"
        )));
    }
    if scenario.app_messages.unwrap_or(0) > APP_MESSAGES {
        return Err(Refusal::too_large(format!(
            "more than {APP_MESSAGES} messages of the application with each request are too many \
             for a page"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(scenario: &Scenario) -> String {
        admit(scenario).map_or_else(|refusal| refusal.why().to_owned(), |()| String::new())
    }

    #[test]
    fn files_are_refused_wherever_they_hide() {
        let topology = |t: &str| Scenario { topology: Some(t.into()), ..Scenario::default() };
        let delay = |t: &str| Scenario { delay: Some(t.into()), ..Scenario::default() };
        let script = |t: &str| Scenario { script: Some(t.into()), ..Scenario::default() };
        for scenario in [
            topology("/etc/passwd"),
            topology("./x.txt"),
            delay("/etc/passwd"),
            delay("x.links"),
            script("/etc/passwd"),
        ] {
            assert_ne!(why(&scenario), "", "{scenario:?}");
        }
        for scenario in
            [topology("ring"), topology("grid:3x4"), delay("uniform:0.5..1.5"), delay("hops")]
        {
            assert_eq!(why(&scenario), "");
        }
        assert_eq!(why(&topology("scattered:1000")), "");
        assert!(why(&topology("scattered:16000000")).contains("too large"));
    }

    #[test]
    fn many_nodes_may_make_few_steps() {
        assert_eq!(steps(1, 1), STEPS);
        assert_eq!(steps(0, 0), STEPS);
        assert!(steps(NODES, 1) < STEPS && steps(NODES, 1) > 10_000);
        assert_eq!(steps(4, 4), STEPS / 4);
    }
}
