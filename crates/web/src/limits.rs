//! What a page may ask for: no files, and no more than a browser can show.

use konklave_catalog::Scenario;
use konklave_process::topology::Spec;
use konklave_sim::Delay;

use crate::refusal::Refusal;

/// A request has no more bytes.
pub const BODY: usize = 256 << 10;
/// So many runs and checks go on at a time; others wait.
pub const AT_A_TIME: usize = 2;
/// A race has no more runs.
pub const RACERS: usize = 4;
/// A group has no more nodes.
pub const NODES: usize = 256;
/// A tree over which nodes are scattered has no more nodes itself.
const TREE: usize = 100_000;
/// All runs of a request together have no more steps.
pub const STEPS: u64 = 120_000;
/// A step may hold the state of a node, and that a number for each node: so many together.
const CELLS: u64 = 4_000_000;
/// A check has no more states.
pub const STATES: u64 = 5_000_000;
/// A check takes no more memory, about.
pub const CHECK_BYTES: u64 = 2 << 30;
/// With each request, the application sends no more messages.
const APP_MESSAGES: u32 = 20;

/// How many steps each of `runs` runs of `nodes` nodes may have.
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
            "{nodes} nodes are too many for a page: it shows up to {NODES}; the command line takes \
             millions"
        )));
    }
    if let Some(text) = &scenario.topology {
        match text.parse::<Spec>() {
            Ok(Spec::File(_)) => {
                return Err(Refusal::senseless(format!(
                    "topology `{text}` is a file: the page reads none, the command line does"
                )));
            }
            Ok(Spec::Scattered(nodes, _)) if nodes > TREE => {
                return Err(Refusal::too_large(format!(
                    "a tree of {nodes} nodes is too large for a page: it takes up to {TREE}"
                )));
            }
            Ok(_) => {}
            Err(e) => return Err(Refusal::senseless(format!("topology: {e}"))),
        }
    }
    // `hops` follows from the topology.
    if let Some(text) = scenario.delay.as_deref().filter(|text| *text != "hops")
        && let Err(e) = text.parse::<Delay>()
    {
        return Err(Refusal::senseless(format!("delay: {e}")));
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
        for scenario in
            [topology("/etc/passwd"), topology("./x.txt"), delay("/etc/passwd"), delay("x.links")]
        {
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
