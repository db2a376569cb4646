//! Live view: the reports and recordings of running agents.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::State;
use konklave_agent::client::{Client, unexpected};
use konklave_agent::failure::Failure;
use konklave_agent::protocol::{Answer, Request, Status};
use konklave_agent::recorder::Line;
use serde::Serialize;

use crate::Shared;

/// An agent that takes longer is shown as silent.
const PATIENCE: Duration = Duration::from_secs(2);
/// So many names of locks are shown.
const NAMES: usize = 200;
/// So many lines of a recording are shown, the newest.
const LINES: usize = 4000;

/// The data that the page shows.
#[derive(Serialize)]
pub(crate) struct Seen {
    /// Seconds of the wall clock, as recordings have them.
    now: f64,
    agents: Vec<Agent>,
}

#[derive(Serialize)]
struct Agent {
    socket: PathBuf,
    status: Option<Box<Status>>,
    lines: Vec<Line>,
    trouble: Option<String>,
}

/// `GET /api/live`: asks all configured agents at the same time.
pub(crate) async fn live(State(shared): State<Arc<Shared>>) -> Json<Seen> {
    let mut asked = tokio::task::JoinSet::new();
    for (place, socket) in shared.agents.iter().cloned().enumerate() {
        asked.spawn(async move { (place, look(socket).await) });
    }
    let mut agents = asked.join_all().await;
    agents.sort_by_key(|(place, _)| *place);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    Json(Seen { now, agents: agents.into_iter().map(|(_, agent)| agent).collect() })
}

async fn look(socket: PathBuf) -> Agent {
    let seen = tokio::time::timeout(PATIENCE, ask(&socket)).await;
    let (status, lines, trouble) = match seen {
        Ok(Ok((status, lines))) => (Some(status), lines, None),
        Ok(Err(failure)) => (None, Vec::new(), Some(failure.to_string())),
        Err(_) => {
            let seconds = PATIENCE.as_secs();
            (None, Vec::new(), Some(format!("the agent has not answered for {seconds} s")))
        }
    };
    Agent { socket, status, lines, trouble }
}

async fn ask(socket: &Path) -> Result<(Box<Status>, Vec<Line>), Failure> {
    let mut client = Client::connect(socket, "workbench", PATIENCE).await?;
    let request = Request::Status { prefix: String::new(), limit: NAMES };
    let status = match client.call(request).await? {
        Answer::Status(status) => status,
        other => return Err(unexpected(&other)),
    };
    let text = match client.call(Request::Record).await? {
        Answer::Text { text } => text,
        other => return Err(unexpected(&other)),
    };
    let mut lines: Vec<Line> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    lines.drain(..lines.len().saturating_sub(LINES));
    Ok((status, lines))
}
