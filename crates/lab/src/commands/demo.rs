//! `demo`: a tour of ten seconds, with commands to try next.

#[cfg(feature = "agent")]
pub(super) mod members;

use std::io::{self, Write};

use konklave_catalog::{Catalog, CheckOptions, CheckPlan, Scenario, program};
use konklave_trace::{diagram, svg, text};

use super::run::number;
use crate::Done;
use crate::args::DemoArgs;
use crate::output::{Target, heading, stdout};

/// The number of parts; the last one needs the agent.
const PARTS: &str = if cfg!(feature = "agent") { "five" } else { "four" };

pub(crate) fn demo(catalog: &Catalog, args: &DemoArgs) -> Done {
    let picture = Target::open_if(args.svg.as_ref())?;
    let mut out = stdout();
    writeln!(
        out,
        "Konklave: processes that share no memory elect a leader, take a lock, speak as a group.\n\
         Each algorithm is written once and runs in three worlds: simulator, checker, network. This tour has {PARTS} parts.\n"
    )?;
    election(catalog, &mut out)?;
    lock(catalog, &mut out, picture, args)?;
    mistake(catalog, &mut out)?;
    crash(catalog, &mut out)?;
    #[cfg(feature = "agent")]
    members::kill_holder(&mut out)?;
    writeln!(
        out,
        "{}\n  {program} list                                   all algorithms, their costs and guarantees\n  \
         {program} run suzuki-kasami -n 5 --entries 3     another lock, with other costs\n  \
         {program} check chang-roberts -n 3 --crash 1     an election with one crash\n  \
         {program} ring 8 -n 3 --sleep 0 --worker-sleep 10 --log   a ring of real threads\n  \
         {program} new my-lock --problem mutex            a crate for your own algorithm\n  \
         {program} help faults                            all kinds of faults",
        heading("What to type next"),
        program = program()
    )?;
    out.flush()?;
    Ok(0)
}

/// Part 1: an election.
fn election(catalog: &Catalog, out: &mut impl Write) -> Result<(), crate::Failure> {
    writeln!(out, "{}", heading("1. Elect a leader"))?;
    writeln!(
        out,
        "Eight processes on a ring start at the same time. Each sends its number round; only the"
    )?;
    writeln!(out, "highest number returns to its sender (Chang and Roberts, 1979).")?;
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
            "  The formula of the book gives {} = {}; the run confirms it.\n",
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
        "Three processes request the same lock at the same time. There is no server: each"
    )?;
    writeln!(
        out,
        "process asks the others, and the earlier request goes first (Ricart and Agrawala, 1981)."
    )?;
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
            picture.finish(
                svg::draw(&run, &diagram::Options::of(entry.problem.conditions)).as_bytes(),
            )?;
            writeln!(out, "  The run as a picture: {}\n", path.display())?;
        }
        _ => writeln!(out, "  `{} demo --svg FILE` draws the run.\n", program())?,
    }
    Ok(())
}

/// Part 3: the checker finds the mistake of a slide.
fn mistake(catalog: &Catalog, out: &mut impl Write) -> Result<(), crate::Failure> {
    writeln!(out, "{}", heading("3. Check a rule from a lecture slide"))?;
    writeln!(
        out,
        "The slide says: on a tree, \"a leaf echoes when it receives an explorer\". Explore every"
    )?;
    writeln!(out, "run of four processes on a path, whose two leaves start:")?;
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
        "→ {} steps to a deadlock, and no shorter run has one. With the right rule, all {} states\n  \
         were explored without a violation.\n",
        printed.report.witness_length.unwrap_or_default(),
        right.report.states
    )?;
    Ok(())
}

/// Part 4: a crash blocks a token lock.
fn crash(catalog: &Catalog, out: &mut impl Write) -> Result<(), crate::Failure> {
    writeln!(out, "{}", heading("4. Crash the holder"))?;
    writeln!(
        out,
        "The lock is a token (Suzuki and Kasami, 1985). Its holder crashes in the critical section:"
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
        "→ {}: {} wait for ever, since the algorithm assumes that no process crashes. A failure\n  \
         detector reports crashes (`{} run heartbeat --fault crash:1@10`); groups with views\n  \
         tolerate them.\n",
        report.verdict.name(),
        waiting.join(", "),
        program()
    )?;
    Ok(())
}
