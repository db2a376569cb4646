//! The formulas of data sheets for the columns of a comparison.

use konklave_catalog::{BoundReport, Plan, RunReport};

use crate::Row;
use konklave_algorithms::problem::{Bounded, Column};

/// As the book writes it, and its value; or why there is none.
pub(super) type Formula = Result<(String, f64), String>;

/// Why there is no formula where nothing was measured: that run takes no part in the mean, either.
pub(super) const NOTHING: &str = "no figure was measured";

const NONE: &str = "the data sheet has no formula";

/// One run, as far as formulas speak of it.
pub(super) struct Told<'a> {
    pub(super) plan: &'a Plan,
    pub(super) report: &'a RunReport,
    pub(super) row: &'a Row,
    /// Whether only requests that met no other are looked at.
    pub(super) alone: bool,
}

impl Told<'_> {
    /// The formula for `column` in this run.
    pub(super) fn formula(&self, column: &Column) -> Formula {
        match column.bound {
            Bounded::Not => Err(String::new()),
            // Several problems may give one metric different meanings: no measure, no formula.
            Bounded::By(_) if !self.row.measures.contains_key(column.measure) => {
                Err(NOTHING.into())
            }
            Bounded::By(metric) => self.said(metric),
            Bounded::PerEach(served) => self.said("messages_per_entry").or_else(|why| {
                let of_all =
                    self.said("messages").map_err(|other| if other == NONE { why } else { other });
                let (text, all) = of_all?;
                Ok((text, all / self.served(served)?))
            }),
            Bounded::Response if self.alone => {
                let (text, entry) = self.said("entry_delay")?;
                let stay = self.stay()?;
                Ok((format!("E + {text}"), entry + stay))
            }
            // A process that requests the lock again at once waits for all others once, on average. This is
            // Little's law with n processes in the system.
            Bounded::Response => {
                let (text, each) = self.in_turn()?;
                Ok((format!("n(E + S), S = {text}"), self.report.nodes as f64 * each))
            }
            Bounded::Throughput => {
                let (text, each) = self.in_turn()?;
                Ok((format!("1/(E + S), S = {text}"), 1.0 / each))
            }
        }
    }

    fn said(&self, metric: &str) -> Formula {
        self.row.formulas.get(metric).cloned().ok_or_else(|| {
            let of_metric = |b: &&BoundReport| b.name().replace(' ', "_") == metric;
            let bound = self.report.bounds.iter().find(of_metric);
            let why = bound.and_then(|b| b.why.clone());
            why.unwrap_or_else(|| NONE.into())
        })
    }

    fn served(&self, measure: &str) -> Result<f64, String> {
        let served = self.row.measure(measure).filter(|served| *served > 0.0);
        served.ok_or_else(|| "no request was granted".into())
    }

    /// E, if all stay as long.
    fn stay(&self) -> Result<f64, String> {
        self.plan.config.hold.constant().ok_or_else(|| "only if all hold times are equal".into())
    }

    /// The formula for S, and what one entry takes when someone is waiting at every exit.
    fn in_turn(&self) -> Formula {
        let count = |name: &str| self.row.measure(name).unwrap_or(0.0);
        if self.plan.config.think.is_open() || !self.plan.config.script.is_empty() {
            return Err("only if clients ask again after they were served (closed load)".into());
        }
        let entries = if count("measured.entries") > 0.0 { "measured.entries" } else { "entries" };
        let (entries, handed_over) = (count(entries), count("sync_delay.count"));
        if entries < 2.0 || handed_over + 1.0 < entries {
            return Err("only if a node waits at every exit".into());
        }
        let (text, delay) = self.said("sync_delay")?;
        Ok((text, self.stay()? + delay))
    }
}
