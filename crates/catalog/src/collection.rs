//! The catalog: a value that holds algorithms, ours and those of others.

use konklave_algorithms::Algorithm;
use konklave_algorithms::problem::{ProblemSheet, Property};
use konklave_process::{Condition, Portable};
use konklave_trace::{Header, Run};

use crate::{Entry, Error, Plan, Scenario, builtin, did_you_mean, program};

/// A collection of algorithms.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    entries: Vec<Entry>,
}

impl Catalog {
    /// The algorithms that come with Konklave.
    pub fn builtin() -> Self {
        Self { entries: builtin::entries() }
    }

    /// The same with `P`, too.
    pub fn with<P: Algorithm + Portable>(self) -> Self {
        self.with_entry(Entry::new::<P>())
    }

    /// The same with `entry`, behind the others of its problem.
    pub fn with_entry(mut self, entry: Entry) -> Self {
        let last = self.entries.iter().rposition(|known| known.problem.name == entry.problem.name);
        self.entries.insert(last.map_or(self.entries.len(), |last| last + 1), entry);
        self
    }

    /// Says which name stands twice in the catalog, if one does: only the first would be found.
    pub fn check(&self) -> Result<(), Error> {
        let twice = |i: &usize| {
            let name = self.entries[*i].sheet.name;
            self.entries[..*i].iter().any(|entry| entry.sheet.name == name)
        };
        match (0..self.entries.len()).find(twice) {
            Some(i) => Err(Error::Usage(format!(
                "the catalog has two algorithms named `{}`; change `name` in the data sheet of yours",
                self.entries[i].sheet.name
            ))),
            None => Ok(()),
        }
    }

    /// All algorithms, those of one problem together.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The algorithms that solve `problem`; none if the problem is unknown.
    pub fn of_problem(&self, problem: &str) -> Vec<&Entry> {
        self.entries.iter().filter(|entry| entry.problem.name == problem).collect()
    }

    /// All problems.
    pub fn problems(&self) -> Vec<&'static ProblemSheet> {
        let mut problems: Vec<_> = self.entries.iter().map(|entry| entry.problem).collect();
        problems.dedup_by_key(|problem| problem.name);
        problems
    }

    /// The conditions of clients in a run of `header`'s problem; none if the problem is unknown.
    pub fn conditions(&self, header: &Header) -> &'static [Condition] {
        let problem = self.problems().into_iter().find(|known| known.name == header.problem());
        problem.map_or(&[], |problem| problem.conditions)
    }

    /// All properties that the judges of these problems know.
    pub fn properties(&self) -> Vec<&'static Property> {
        let problems = self.problems();
        let own = problems.iter().flat_map(|problem| problem.properties);
        let mut known: Vec<&Property> = Vec::new();
        for property in own.chain(Property::COMMON) {
            if !known.contains(&property) {
                known.push(property);
            }
        }
        known
    }

    /// The algorithm called `name`: `problem/name`, or the name alone; underscores will do.
    pub fn find(&self, name: &str) -> Result<&Entry, Error> {
        let wanted = name.trim().to_lowercase().replace('_', "-");
        let by_name = |e: &&Entry| e.sheet.name == wanted || e.name() == wanted;
        if let Some(entry) = self.entries.iter().find(by_name) {
            return Ok(entry);
        }
        let names: Vec<String> =
            self.entries.iter().flat_map(|e| [e.sheet.name.to_owned(), e.name()]).collect();
        let hint = did_you_mean(&wanted, names.iter().map(String::as_str));
        Err(Error::Usage(format!(
            "there is no algorithm `{name}`{hint}; `{} list` shows all",
            program()
        )))
    }

    /// The plan that a recorded run was made from.
    pub fn plan_of(&self, run: &Run) -> Result<(&Entry, Plan), Error> {
        let entry = self.find(&run.header.algorithm)?;
        let scenario: Scenario = match &run.header.scenario {
            serde_json::Value::Null => Scenario {
                nodes: Some(run.header.nodes.len()),
                topology: Some(run.header.topology.clone()).filter(|t| !t.is_empty()),
                ids: Some(ids_of(&run.header)),
                set: run
                    .header
                    .chosen
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect(),
                mistake: run.header.mistake.clone(),
                seed: Some(run.header.seed),
                ..Scenario::default()
            },
            value => serde_json::from_value(value.clone()).map_err(|e| {
                Error::Data(format!("cannot read the scenario of the recording: {e}"))
            })?,
        };
        // A scenario that names an algorithm names this one.
        let algorithm = scenario.algorithm.as_ref().map(|_| entry.name());
        let mut plan = entry.plan(Scenario { algorithm, ..scenario })?;
        if matches!(run.header.world.as_str(), "threads" | "tcp" | "udp" | "multicast")
            && run.header.unit >= 1.0
        {
            plan.setup.unit = std::time::Duration::from_nanos(run.header.unit as u64);
        }
        // The same algorithm may have been recorded by a program of another name.
        if let Some(name) = run.header.command.split(' ').next().filter(|name| !name.is_empty()) {
            name.clone_into(&mut plan.program);
        }
        let ids: Vec<u32> = plan.setup.group.members().iter().map(|p| p.0).collect();
        if ids != run.header.nodes {
            let listed =
                |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            return Err(Error::Data(format!(
                "the recording has the nodes {}, but its scenario has {}",
                listed(&run.header.nodes),
                listed(&ids)
            )));
        }
        Ok((entry, plan))
    }
}

/// The ids of the members, as `--ids` has them.
fn ids_of(header: &Header) -> String {
    let ids: Vec<String> = header.nodes.iter().map(u32::to_string).collect();
    ids.join(",")
}
