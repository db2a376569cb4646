//! `buffer`: the report's buffer of one slot, in every order of its threads. Hidden: `reproduce` asks it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use konklave_ring::{Code, Fault, Findings, explore};
use serde::Serialize;

use crate::Done;
use crate::args::{BufferArgs, BufferCode};
use crate::output::{Format, print_csv, print_json, stdout};

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    #[serde(flatten)]
    found: Findings,
    /// How many steps each fault takes at least.
    shortest: BTreeMap<Fault, usize>,
}

pub(crate) fn buffer(args: &BufferArgs) -> Done {
    let found = explore(match args.code {
        BufferCode::Printed => Code::Printed,
        BufferCode::Ticket => Code::Ticket,
    });
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
