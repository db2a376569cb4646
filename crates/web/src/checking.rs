//! Checks for the page: progress, line by line, then the verdict, and the witness as a drawing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use konklave_catalog::{
    Catalog, CheckOptions, CheckPlan, Clock, Entry, Plan, Progress, Scenario, Timing,
};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_stream::Stream;

use crate::api::{Abandoned, read};
use crate::drawing::World;
use crate::refusal::Refusal;
use crate::running::{plan, show};
use crate::{Shared, limits};

/// The interval of progress reports to the page.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// The body of `POST /api/check`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckRequest {
    scenario: Scenario,
    #[serde(default)]
    budgets: Budgets,
}

/// Budgets and options of a check, under the names of the command line.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Budgets {
    crash: u8,
    restart: u8,
    loss: u8,
    duplicate: u8,
    app_messages: u8,
    early: u8,
    #[serde(rename = "break")]
    breaks: u8,
    clock: Option<f64>,
    time_limit: Option<f64>,
    settled: bool,
    synchronous: bool,
    no_detector: bool,
    amnesia: bool,
    properties: Vec<String>,
    max_states: Option<u64>,
}

impl Budgets {
    fn options(&self, unit: Duration) -> Result<CheckOptions, konklave_catalog::Error> {
        let clock = self.clock.map(|step| {
            Clock::in_units(step, self.time_limit, self.settled, unit)
                .map_err(konklave_catalog::Error::Usage)
        });
        Ok(CheckOptions {
            clock: clock.transpose()?,
            breaks: self.breaks,
            timing: if self.synchronous { Timing::WhenQuiet } else { Timing::Anytime },
            early: self.early,
            crashes: self.crash,
            restarts: self.restart,
            stable_storage: !self.amnesia,
            losses: self.loss,
            duplicates: self.duplicate,
            detector: !self.no_detector,
            app_messages: self.app_messages,
            properties: self.properties.clone(),
            max_states: self.max_states.unwrap_or(limits::STATES).min(limits::STATES),
            max_bytes: limits::CHECK_BYTES,
            ..CheckOptions::default()
        })
    }

    /// These options as words of the command line.
    fn arguments(&self) -> String {
        let budgets = [
            ("crash", self.crash),
            ("restart", self.restart),
            ("loss", self.loss),
            ("duplicate", self.duplicate),
            ("app-messages", self.app_messages),
            ("early", self.early),
            ("break", self.breaks),
        ];
        let budgets = budgets.iter().filter(|(_, k)| *k > 0).map(|(b, k)| format!("--{b} {k}"));
        let flags = [
            ("synchronous", self.synchronous),
            ("no-detector", self.no_detector),
            ("amnesia", self.amnesia),
            ("settled", self.settled),
        ];
        let times = [("clock", self.clock), ("time-limit", self.time_limit)];
        let times = times.iter().filter_map(|(name, t)| t.map(|t| format!("--{name} {t}")));
        let flags = flags.iter().filter(|(_, on)| *on).map(|(flag, _)| format!("--{flag}"));
        let properties = self.properties.iter().map(|p| format!("--property {p}"));
        budgets.chain(times).chain(flags).chain(properties).collect::<Vec<_>>().join(" ")
    }
}

/// `POST /api/check`: one JSON object a line. The check ends when the page closes the connection.
pub(crate) async fn check(
    State(shared): State<Arc<Shared>>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let request: CheckRequest = read(&body)?;
    // A request is refused before the answer begins; a started answer could only break off.
    let catalog = shared.catalog;
    let planned = tokio::task::spawn_blocking(move || planned(catalog, request)).await;
    let planned = planned.map_err(|_| Refusal::bug("the check could not be planned"))??;
    let abandoned = Abandoned(Arc::default());
    let slot = Arc::clone(&shared.slots).acquire_owned().await;
    let slot = slot.map_err(|_| Refusal::gone("the workbench is closing"))?;
    let (lines, heard) = channel(16);
    let stop = Arc::clone(&abandoned.0);
    tokio::task::spawn_blocking(move || {
        let last = explore(&shared, &planned, &stop, &lines)
            .unwrap_or_else(|refusal| json!({ "error": refusal.why() }).to_string().into_bytes());
        // If the page has closed the connection, the last line is not needed.
        let _ = lines.blocking_send(line(last));
        drop(slot);
    });
    let body = Body::from_stream(Lines { heard, _abandoned: abandoned });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

/// A check that can begin.
struct Planned {
    entry: &'static Entry,
    plan: Plan,
    check: CheckPlan,
}

fn planned(catalog: &'static Catalog, request: CheckRequest) -> Result<Planned, Refusal> {
    let budgets = request.budgets;
    // A check ignores settings of the simulator: the schedule of faults, delays, pauses.
    let scenario = Scenario {
        script: None,
        load: None,
        think: None,
        skew: None,
        hold: None,
        app_messages: None,
        delay: None,
        service: None,
        bandwidth: None,
        loss: None,
        duplicate: None,
        faults: Vec::new(),
        detect_after: None,
        warm_up: None,
        sample: None,
        time_limit: None,
        step_limit: None,
        ..request.scenario
    };
    let (entry, plan) = plan(catalog, scenario)?;
    let check = CheckPlan {
        options: budgets.options(plan.setup.unit)?,
        arguments: budgets.arguments(),
        ..CheckPlan::default()
    };
    check.refuse(entry.problem, &plan)?;
    Ok(Planned { entry, plan, check })
}

fn explore(
    shared: &Shared,
    Planned { entry, plan, check }: &Planned,
    stop: &AtomicBool,
    lines: &Sender<Bytes>,
) -> Result<Vec<u8>, Refusal> {
    let mut told = Instant::now();
    let mut watch = |progress: Progress| {
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            let news = json!({ "progress": {
                "states": progress.states, "transitions": progress.transitions,
                "depth": progress.depth, "frontier": progress.frontier,
            }});
            // A page that reads slowly misses news, not the verdict.
            let _ = lines.try_send(line(news.to_string().into_bytes()));
        }
        !stop.load(Ordering::Relaxed)
    };
    let checked = entry.check(plan, check, &mut watch)?;
    let report = serde_json::to_value(&checked.report).unwrap_or_default();
    let shown = match checked.witness {
        Some(witness) => show(shared, vec![witness], &[World::of(plan, report.clone())])?,
        None => b"null".to_vec(),
    };
    let shown = String::from_utf8_lossy(&shown).into_owned();
    Ok(format!("{{\"report\":{report},\"shown\":{shown}}}").into_bytes())
}

fn line(mut text: Vec<u8>) -> Bytes {
    text.push(b'\n');
    text.into()
}

/// The lines of an answer until it is complete; dropped when the reader goes away.
struct Lines {
    heard: Receiver<Bytes>,
    _abandoned: Abandoned,
}

impl Stream for Lines {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.heard.poll_recv(context).map(|line| line.map(Ok))
    }
}
