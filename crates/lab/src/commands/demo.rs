//! `demo`: a tour of ten seconds: what happens, why it matters, what to type next.

#[cfg(feature = "agent")]
pub(super) mod members;

use std::io::{self, Write};

use konklave_catalog::{Catalog, CheckOptions, CheckPlan, Scenario};
use konklave_trace::{diagram, svg, text};

use super::run::number;
use crate::Done;
use crate::args::DemoArgs;
use crate::output::{Colour, Target, paint, stdout};

/// The last act needs the library for real groups.
const ACTS: &str = if cfg!(feature = "agent") { "five" } else { "four" };

pub(crate) fn demo(catalog: &Catalog, args: &DemoArgs) -> Done {
    let picture = Target::open_if(args.svg.as_ref())?;
    let mut out = stdout();
    writeln!(
        out,
        "Konklave: processes that share no memory elect a leader, take a lock, speak as a group.\n\
         Each algorithm is written once and runs in three worlds; here are {ACTS} short acts.\n"
    )?;
    election(catalog, &mut out)?;
    lock(catalog, &mut out, picture, args)?;
    mistake(catalog, &mut out)?;
    crash(catalog, &mut out)?;
    #[cfg(feature = "agent")]
    members::kill_holder(&mut out)?;
    writeln!(
        out,
        "{}\n  konklave list                                   every algorithm, its price, its promises\n  \
         konklave run suzuki-kasami -n 5 --entries 3     another lock, another price\n  \
         konklave check chang-roberts -n 3 --crash 1     what one crash does to an election\n  \
         konklave ring 8 -n 3 --sleep 0 --worker-sleep 10 --log   real threads, a real ring\n  \
         konklave new my-lock --problem mutex            a crate for an algorithm of your own\n  \
         konklave help faults                            everything that can go wrong",
        heading("What to type next")
    )?;
    out.flush()?;
    Ok(0)
}

fn heading(text: &str) -> String {
    paint(text, Colour::Yellow)
}

/// Act 1: a leader.
fn election(catalog: &Catalog, out: &mut impl Write) -> Result<(), crate::Failure> {
    writeln!(out, "{}", heading("1. Elect a leader"))?;
    writeln!(
        out,
        "Eight processes on a ring, all start at once. Numbers go round; only the highest"
    )?;
    writeln!(out, "comes home (Chang and Roberts, 1979).")?;
    let entry = catalog.find("chang-roberts")?;
    let scenario = Scenario {
        nodes: Some(8),
        ids: Some("17,4,99,23,8,61,42,5".into()),
        ..Scenario::default()
    };
    let report = entry.simulate(&entry.plan(scenario)?, false)?.report;
    let leader = &report.problem["election"]["leader"];
    writeln!(
        out,
        "→ p{leader} leads after {} T and {} messages; all {} know it.",
        number(report.time),
        report.messages.sent,
        report.nodes
    )?;
    for bound in report.bounds.iter().filter(|b| b.holds == Some(true)).take(1) {
        let limit = bound.limit.unwrap_or_default();
        writeln!(
            out,
            "  The book says {} = {}: measured, not believed.\n",
            bound.formula,
            number(limit)
        )?;
    }
    Ok(())
}

/// Act 2: a lock, and its picture.
fn lock(
    catalog: &Catalog,
    out: &mut impl Write,
    picture: Option<Target>,
    args: &DemoArgs,
) -> Result<(), crate::Failure> {
    writeln!(out, "{}", heading("2. Take a lock"))?;
    writeln!(
        out,
        "Three processes want the same thing at the same time, and no server decides: each"
    )?;
    writeln!(out, "asks the others; who asked earlier goes first (Ricart and Agrawala, 1981).")?;
    let entry = catalog.find("ricart-agrawala")?;
    let scenario = Scenario {
        nodes: Some(3),
        delay: Some("uniform:0.5..1.5".into()),
        hold: Some("2".into()),
        seed: Some(5),
        ..Scenario::default()
    };
    let outcome = entry.simulate(&entry.plan(scenario)?, true)?;
    let run = outcome.run.ok_or_else(|| io::Error::other("the run was not recorded"))?;
    let story = text::transcript(&run, &text::Options::default());
    let mut subject = "";
    for line in story.lines() {
        match line.trim_start().strip_prefix("is granted") {
            Some(rest) => writeln!(out, "  {subject} is granted{rest}")?,
            None if line.contains("requests:") => writeln!(out, "  {line}")?,
            None => {}
        }
        // Effects stand below their step: its line has the time and the process.
        if !line.starts_with("        ") {
            let words = line.match_indices(' ').filter(|(i, _)| !line[..*i].trim().is_empty());
            subject = words.map(|(i, _)| &line[..i]).nth(1).unwrap_or(line);
        }
    }
    writeln!(
        out,
        "→ never two inside; every grant has a fence number that only grows, so that a resource\n  \
         can refuse a holder of the past."
    )?;
    match (picture, &args.svg) {
        (Some(picture), Some(path)) => {
            picture.finish(svg::draw(&run, &diagram::Options::default()).as_bytes())?;
            writeln!(out, "  The run as a picture: {}\n", path.display())?;
        }
        _ => writeln!(out, "  `konklave demo --svg FILE` draws the run.\n")?,
    }
    Ok(())
}

/// Act 3: the slide is wrong, and the checker shows it.
fn mistake(catalog: &Catalog, out: &mut impl Write) -> Result<(), crate::Failure> {
    writeln!(out, "{}", heading("3. Do not believe the slide"))?;
    writeln!(
        out,
        "On a tree, says the slide, \"a leaf echoes when it receives an explorer\". Every run"
    )?;
    writeln!(out, "of four processes, two of them leaves that start:")?;
    let entry = catalog.find("tree-wave")?;
    let scenario = Scenario {
        nodes: Some(4),
        topology: Some("path".into()),
        initiators: Some("0,3".into()),
        mistake: Some("leaf-rule".into()),
        ..Scenario::default()
    };
    let check = CheckPlan { options: CheckOptions::default(), ..CheckPlan::default() };
    let printed = entry.check(&entry.plan(scenario.clone())?, &check, &mut |_| true)?;
    for line in printed.report.witness.iter() {
        writeln!(out, "  {line}")?;
    }
    let right = Scenario { mistake: None, ..scenario };
    let right = entry.check(&entry.plan(right)?, &check, &mut |_| true)?;
    writeln!(
        out,
        "→ {} steps to a deadlock, and no shorter run has one. With the right rule all {} states\n  \
         were explored: every run ends well.\n",
        printed.report.witness_length.unwrap_or_default(),
        right.report.states
    )?;
    Ok(())
}

/// Act 4: what a crash does.
fn crash(catalog: &Catalog, out: &mut impl Write) -> Result<(), crate::Failure> {
    writeln!(out, "{}", heading("4. Crash the holder"))?;
    writeln!(
        out,
        "A lock that is a token (Suzuki and Kasami, 1985), and its holder crashes inside:"
    )?;
    let entry = catalog.find("suzuki-kasami")?;
    let scenario = Scenario {
        nodes: Some(4),
        entries: Some(2),
        hold: Some("2".into()),
        faults: vec!["crash:0@1".into()],
        ..Scenario::default()
    };
    let report = entry.simulate(&entry.plan(scenario)?, false)?.report;
    let waiting: Vec<String> = report.waiting.iter().map(|p| format!("p{p}")).collect();
    writeln!(
        out,
        "→ {}: {} wait for ever. \"No process may crash\", the sources say; a detector tells\n  \
         of the crash (`konklave run heartbeat --fault crash:1@10`), and views are the cure.\n",
        report.verdict.name(),
        waiting.join(", ")
    )?;
    Ok(())
}
