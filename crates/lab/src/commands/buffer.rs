//! `buffer`: explores the report's one-slot buffer in every order of its threads. A hidden command, for `reproduce`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use konklave_ring::{Code, Fault, Findings, Met, Rendezvous, explore};
use serde::Serialize;

use crate::Done;
use crate::args::{BufferArgs, BufferCode};
use crate::output::{Format, print_csv, print_json, stdout};

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    #[serde(flatten)]
    found: Findings,
    /// The least number of steps to each fault.
    shortest: BTreeMap<Fault, usize>,
}

/// The result of an election over such buffers.
#[derive(Serialize)]
struct Held {
    schema: &'static str,
    asked: Rendezvous,
    #[serde(flatten)]
    met: Met,
    /// The shortest timeout with which no worker is regarded as failed.
    shortest_timeout: Option<u64>,
}

/// The longest timeout to try, in milliseconds. If this is too short, no timeout is long enough.
const LONGEST: u64 = 1_000_000;

/// `--workers`: an election in time.
fn held(asked: Rendezvous, format: Format) -> Done {
    let (met, shortest_timeout) = (asked.hold(), asked.shortest_timeout(LONGEST));
    match format {
        Format::Text => {
            let mut out = stdout();
            let Met { taken, wrongly_failed, took } = met;
            writeln!(out, "{taken} messages taken in {took} ms")?;
            writeln!(
                out,
                "{wrongly_failed} times a worker regarded a healthy neighbour as failed"
            )?;
            if let Some(shortest) = shortest_timeout {
                writeln!(out, "never with a timeout of {shortest} ms or more")?;
            }
            out.flush()?;
        }
        Format::Json | Format::Jsonl => {
            let schema = "konklave.rendezvous/1";
            print_json(&Held { schema, asked, met, shortest_timeout }, format)?;
        }
        Format::Csv => print_csv(&[vec![
            ("taken".to_owned(), met.taken.to_string()),
            ("wrongly_failed".to_owned(), met.wrongly_failed.to_string()),
            ("took_ms".to_owned(), met.took.to_string()),
        ]])?,
    }
    Ok(u8::from(met.wrongly_failed > 0))
}

pub(crate) fn buffer(args: &BufferArgs) -> Done {
    let code = match args.code {
        BufferCode::Printed => Code::Printed,
        BufferCode::Ticket => Code::Ticket,
    };
    if let Some(workers) = args.workers {
        let asked = Rendezvous {
            code,
            workers: workers as usize,
            initiators: args.initiators as usize,
            timeout: u64::from(args.timeout),
            worker_sleep: u64::from(args.worker_sleep),
        };
        return held(asked, args.format);
    }
    let found = explore(code);
    let is_fine = found.faults.is_empty();
    match args.format {
        Format::Text => print(&found)?,
        Format::Json | Format::Jsonl => {
            let shortest = found.faults.iter().map(|(fault, way)| (*fault, way.len())).collect();
            print_json(&Report { schema: "konklave.buffer/1", found, shortest }, args.format)?;
        }
        Format::Csv => {
            let row = |(fault, way): (&Fault, &Vec<&str>)| {
                vec![
                    ("fault".to_owned(), fault.what().to_owned()),
                    ("steps".to_owned(), way.len().to_string()),
                ]
            };
            print_csv(&found.faults.iter().map(row).collect::<Vec<_>>())?;
        }
    }
    Ok(u8::from(!is_fine))
}

fn print(found: &Findings) -> io::Result<()> {
    let mut out = stdout();
    for (fault, way) in &found.faults {
        writeln!(out, "{}, after {} steps:", fault.what(), way.len())?;
        for (i, step) in way.iter().enumerate() {
            writeln!(out, "  {:>2} {step}", i + 1)?;
        }
    }
    writeln!(out, "{} states, {} faults", found.states, found.faults.len())?;
    out.flush()
}
