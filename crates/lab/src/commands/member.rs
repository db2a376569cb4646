//! `member`: one member of a group, in this operating system process. A hidden command: the program that starts a
//! group exchanges lines with its members. A member prints its address (`listens ADDRESS`) and reads all
//! addresses (`ID=ADDRESS` for each, on one line). Then it prints each indication to its application.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use konklave_catalog::{Catalog, Error, MemberPlan, Scenario, Told};
use konklave_process::ProcessId;

use crate::Done;
use crate::args::MemberArgs;

pub(crate) fn member(catalog: &Catalog, args: &MemberArgs) -> Done {
    if args.unit.is_nan() || args.unit <= 0.0 || args.unit > 60_000.0 {
        let message = format!("--unit {}: T must be a positive number of ms", args.unit);
        return Err(Error::Usage(message).into());
    }
    if let Some(all) = args.multicast.filter(|all| !all.ip().is_multicast()) {
        let message = format!("--multicast {all}: not a multicast address (224.0.0.0/4)");
        return Err(Error::Usage(message).into());
    }
    let entry = catalog.find(&args.algorithm)?;
    let scenario = args.scenario.clone().or(Scenario::default());
    let plan = entry.plan(Scenario { algorithm: Some(entry.name()), ..scenario })?;
    let member = MemberPlan {
        me: ProcessId(args.me),
        unit: Duration::from_secs_f64(args.unit / 1e3),
        listen: args.listen,
        multicast: args.multicast,
        meet: &mut meet,
        tell: &mut tell,
    };
    entry.member(&plan, member)?;
    Ok(0)
}

fn meet(address: SocketAddr) -> Result<BTreeMap<ProcessId, SocketAddr>, Error> {
    say(&format!("listens {address}"));
    let mut line = String::new();
    io::stdin()
        .read_line(&mut line)
        .map_err(|why| Error::Unreadable { file: "stdin".into(), why })?;
    let entry = |word: &str| {
        let (id, address) = word.split_once('=')?;
        Some((ProcessId(id.parse().ok()?), address.parse().ok()?))
    };
    let wrong =
        |word: &str| Error::Data(format!("stdin:1: `{word}` is not of the form ID=ADDRESS"));
    line.split_whitespace().map(|word| entry(word).ok_or_else(|| wrong(word))).collect()
}

fn tell(told: Told) {
    say(&serde_json::to_string(&told).unwrap_or_default());
}

/// Prints and flushes a line. A closed stdout means that the parent has ended, and is ignored.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
