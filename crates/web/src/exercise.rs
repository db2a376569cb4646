//! A known mistake as an exercise: the check that catches it, ready to be started from the page.

use konklave_algorithms::Mistake;
use konklave_catalog::{Entry, Scenario};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A check that is ready to start.
#[derive(Serialize)]
pub(crate) struct Exercise {
    scenario: Scenario,
    /// The budgets of the check: see [`Budgets`](crate::checking::Budgets).
    budgets: Value,
}

/// The check that catches `mistake`; none if the data sheet names none, or if the page lacks one of its options.
pub(crate) fn exercise(entry: &Entry, mistake: &Mistake) -> Option<Exercise> {
    if mistake.caught_by.is_empty() {
        return None;
    }
    let mut scenario = Scenario {
        algorithm: Some(entry.name()),
        mistake: Some(mistake.name.to_owned()),
        ..Scenario::default()
    };
    let mut budgets = Map::new();
    let mut words = mistake.caught_by.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let value = words.next_if(|next| !next.starts_with('-')).map(str::to_owned);
        let number = || value.as_deref().map_or(Some(1), |v| v.parse::<u64>().ok());
        match word.trim_start_matches('-') {
            "n" | "nodes" => scenario.nodes = Some(number()? as usize),
            "topology" => scenario.topology = value,
            "ids" => scenario.ids = value,
            "initiators" => scenario.initiators = value,
            "down" => scenario.down = value,
            "set" => scenario.set.extend(value),
            "requests" => scenario.requests = value,
            "entries" => scenario.entries = Some(u32::try_from(number()?).ok()?),
            "seed" => scenario.seed = Some(number()?),
            "no-fifo" => scenario.fifo = Some(false),
            "property" => {
                let list = budgets.entry("properties").or_insert_with(|| json!([]));
                list.as_array_mut()?.push(value?.into());
            }
            budget @ ("crash" | "restart" | "loss" | "duplicate" | "app-messages" | "early"
            | "break") => {
                budgets.insert(budget.to_owned(), number()?.into());
            }
            time @ ("clock" | "time-limit") => {
                budgets.insert(time.to_owned(), value?.parse::<f64>().ok()?.into());
            }
            flag @ ("synchronous" | "no-detector" | "amnesia" | "settled") => {
                budgets.insert(flag.to_owned(), true.into());
            }
            _ => return None,
        }
    }
    Some(Exercise { scenario, budgets: budgets.into() })
}

#[cfg(test)]
mod tests {
    use konklave_catalog::Catalog;

    use super::*;
    use crate::checking::Budgets;

    #[test]
    fn every_mistake_that_a_check_catches_is_an_exercise() {
        for entry in Catalog::builtin().entries() {
            for mistake in entry.sheet.mistakes.iter().filter(|m| !m.caught_by.is_empty()) {
                let name = format!("{} {}", entry.name(), mistake.name);
                let exercise = exercise(entry, mistake).unwrap_or_else(|| panic!("{name}"));
                let budgets = serde_json::from_value::<Budgets>(exercise.budgets);
                assert!(budgets.is_ok(), "{name}: {:?}", budgets.err());
                assert!(entry.plan(exercise.scenario).is_ok(), "{name}");
            }
        }
    }
}
