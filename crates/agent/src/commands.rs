//! The client commands, apart from `lock` and `elect`.

mod doctor;
mod fence;
mod operate;
mod status;
mod talk;

pub(crate) use doctor::doctor;
pub(crate) use fence::fence;
pub(crate) use operate::{record, revoke, step_down, watch};
pub(crate) use status::{members, status, who, why};
pub(crate) use talk::{recv, send};

use std::future::Future;
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use crate::args::{AgentArgs, Format, JsonLayout};
use crate::client::Client;
use crate::failure::Failure;
use crate::protocol::{Answer, Request, legible};

/// The time to live of a session that holds nothing. Such a session does not expire; the value only has to
/// be valid.
const READER_TTL: Duration = Duration::from_secs(600);

/// The limit of a status request for one name. A lock, a semaphore and an election may share it, and the
/// agent reports exact matches first; longer names with the same prefix are cut off.
const SAME_NAME_LIMIT: usize = 8;

/// Runs `work` on this thread.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::system("cannot start the runtime"))?;
    runtime.block_on(work)
}

async fn connect(args: &AgentArgs) -> Result<Client, Failure> {
    let label = format!("pid {}", std::process::id());
    Client::connect(&args.socket, &label, READER_TTL).await
}

/// Sends one request on a new connection, and returns the answer.
fn ask(args: &AgentArgs, request: Request) -> Result<Answer, Failure> {
    block_on(async { connect(args).await?.call(request).await })
}

/// Prints `value` as JSON, indented or on one line.
fn print_json(value: &impl Serialize, format: Format) -> Result<u8, Failure> {
    if format == Format::Jsonl {
        return print_line(value).map(|()| 0);
    }
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(0)
}

/// Prints `value` with the name of its schema.
fn print_as(schema: &'static str, value: &impl Serialize, format: Format) -> Result<u8, Failure> {
    #[derive(Serialize)]
    struct Named<'a, T> {
        schema: &'static str,
        #[serde(flatten)]
        value: &'a T,
    }
    print_json(&Named { schema, value }, format)
}

/// Prints a failure as a JSON object on stdout. Its text for people goes to stderr elsewhere.
pub(crate) fn print_failure(failure: &Failure, layout: JsonLayout) {
    #[derive(Serialize)]
    struct Failed {
        schema: &'static str,
        error: String,
        exit_code: u8,
    }
    let exit_code = failure.exit_code();
    // Stdout is closed or broken, so the object could not be written either.
    if matches!(failure, Failure::Output(_)) {
        return;
    }
    let failed = Failed { schema: "konklave.error/1", error: failure.to_string(), exit_code };
    let _ = match layout {
        JsonLayout::Object => print_json(&failed, Format::Json).map(drop),
        JsonLayout::Lines => print_line(&failed),
    };
}

fn print_line(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// Prints rows as aligned columns. The first row is the header.
fn print_table(rows: &[Vec<String>]) -> Result<(), Failure> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (i, cell) in row.iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(i) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let mut out = io::stdout().lock();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{:width$}  ", legible(cell)));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Formats a number of seconds for people.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn span_or_dash(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), span)
}
