//! Every arrangement of ids, explored one after the other (`check --ids every`).

use konklave_process::topology::Shape;

use crate::report::ArrangementsReport;
use crate::{CheckPlan, Checked, Entry, Error, Plan, Progress, Scenario};

/// The word that stands for all arrangements.
pub(crate) const EVERY: &str = "every";

/// Larger groups have too many arrangements: 9 nodes have 362 880.
const MOST_NODES: usize = 8;

impl Entry {
    /// The plans of all arrangements of ids if `scenario` asks for them, else the one plan of `scenario`.
    pub fn arranged(&self, scenario: Scenario) -> Result<Vec<Plan>, Error> {
        if scenario.ids.as_deref() != Some(EVERY) {
            return Ok(vec![self.plan(scenario)?]);
        }
        let base = self.plan(Scenario { ids: None, ..scenario.clone() })?;
        let n = base.setup.group.len();
        if n > MOST_NODES {
            return Err(Error::Usage(format!(
                "--ids {EVERY}: {n} nodes have too many arrangements; the most is {MOST_NODES} nodes"
            )));
        }
        let fixed = usize::from(self.turns(&base));
        let mut arrangements = Vec::new();
        permute(&mut (0..n as u32).collect::<Vec<_>>(), fixed, &mut arrangements);
        let plan =
            |ids: &String| self.plan(Scenario { ids: Some(ids.clone()), ..scenario.clone() });
        arrangements.iter().map(plan).collect()
    }

    /// Whether a ring may be turned without changing anything: then one place has the lowest id in all
    /// arrangements. What is given by place, not by id, would be turned, too.
    fn turns(&self, plan: &Plan) -> bool {
        let Scenario { requests, initiators, .. } = &plan.scenario;
        let ring = [Shape::DirectedRing, Shape::Ring];
        let by_place = requests.is_some() || initiators.as_ref().is_some_and(|i| i.ends_with('x'));
        self.problem.one_shot && !by_place && ring.iter().any(|&s| plan.setup.topology.fits(s))
    }

    /// Explores `plans`, arrangements of one group, until one of them breaks something.
    pub fn check_arranged(
        &self,
        plans: &[Plan],
        check: &CheckPlan,
        watch: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Checked, Error> {
        let mut all: Option<Checked> = None;
        for (i, plan) in plans.iter().enumerate() {
            let mut checked = self.check(plan, check, watch)?;
            if let Some(before) = all {
                checked = before.followed_by(checked);
            }
            let of = plans.len();
            checked.report.arrangements = Some(ArrangementsReport { explored: i + 1, of });
            let over =
                checked.report.verdict == "violated" || checked.report.bound == Some("interrupted");
            all = Some(checked);
            if over {
                break;
            }
        }
        let mut all = all.ok_or_else(|| Error::Usage("there is no arrangement".into()))?;
        if all.report.verdict != "violated"
            && let Some(ids) = plans.first().and_then(|plan| plan.scenario.ids.as_ref())
        {
            let (one, every) = (format!("--ids {ids}"), format!("--ids {EVERY}"));
            all.report.command = all.report.command.replace(&one, &every);
        }
        Ok(all)
    }
}

impl Checked {
    /// Merges the report of the next arrangement: adds the figures, keeps the more severe verdict.
    fn followed_by(self, next: Self) -> Self {
        let (a, b) = (&self.report, &next.report);
        let seconds = a.seconds + b.seconds;
        let states = a.states + b.states;
        let figures = (
            a.transitions + b.transitions,
            a.depth.max(b.depth),
            a.messages.zip(b.messages).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))),
            a.peak_bytes.max(b.peak_bytes),
            1.0 - (1.0 - a.missed) * (1.0 - b.missed),
        );
        let rank =
            |verdict: &str| ["exhausted", "bounded", "violated"].iter().position(|v| *v == verdict);
        let mut all = if rank(b.verdict) > rank(a.verdict) { next } else { self };
        let report = &mut all.report;
        (report.seconds, report.states) = (seconds, states);
        (report.transitions, report.depth, report.messages, report.peak_bytes, report.missed) =
            figures;
        report.states_per_second = states as f64 / seconds.max(f64::MIN_POSITIVE);
        all
    }
}

/// All orders of `ids` from place `fixed` on, as lists.
fn permute(ids: &mut [u32], fixed: usize, all: &mut Vec<String>) {
    if fixed >= ids.len() {
        return all.push(ids.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    }
    for i in fixed..ids.len() {
        ids.swap(fixed, i);
        permute(ids, fixed + 1, all);
        ids.swap(fixed, i);
    }
}
