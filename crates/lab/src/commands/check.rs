//! `check`: every run of a small group.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use konklave_catalog::{
    ArrangementsReport, Assumption, Catalog, CheckOptions, CheckPlan, CheckReport, Checked,
    Checkpoints, Clock, Entry, Error, Extreme, Plan, Progress, Scenario, Swarm, SymmetryReport,
    Timing, Victim,
};
use konklave_trace::{Run, diagram, svg, text};
use serde::Serialize;
use serde_json::Value;

use super::run::{recording, warn_of_broken, warn_without_effect};
use crate::Done;
use crate::args::{Activity, CheckArgs, Emit, MAX_MEMORY, MAX_STATES};
use crate::interrupt;
use crate::output::{Colour, Format, Picture, Target, paint, print_csv, print_json, stdout};

pub(crate) fn check(catalog: &'static Catalog, args: CheckArgs) -> Done {
    let entry = catalog.find(&args.algorithm)?;
    let plans = entry.arranged(scenario(&args, entry))?;
    let plan = &plans[0];
    if plans.len() > 1 && (args.checkpoint.is_some() || args.resume.is_some()) {
        let why = "`--ids every` explores many groups; a checkpoint can save only one search";
        return Err(Error::Usage(why.into()).into());
    }
    let record_to = Target::open_if(args.record.as_ref())?;
    let draw_to = Picture::open_if(args.svg.as_ref())?;
    let check = CheckPlan {
        options: options(&args, plan.setup.unit)?,
        extreme: extreme(&args),
        arguments: arguments(&args),
        checkpoints: Checkpoints {
            write: args.checkpoint.clone(),
            resume: args.resume.clone(),
            ..Checkpoints::default()
        },
    };
    check.refuse(entry.problem, plan)?;
    for (option, why) in &plan.idle {
        warn_without_effect(option, why);
    }
    let broken = broken_by(plan, &check.options);
    for (assumption, by) in &broken {
        warn_of_broken(&entry.name(), *assumption, by);
    }
    // A path that cannot be written is known before the work starts.
    drop(Target::open_if(args.checkpoint.as_ref())?);
    let stop = interrupt()?;
    let bar = progress_bar(args.format);
    let mut watch = |progress: Progress| {
        bar.set_message(format!(
            "{} states, {} transitions, depth {}, {} to look at",
            progress.states, progress.transitions, progress.depth, progress.frontier
        ));
        !stop.load(Ordering::Relaxed)
    };
    let checked = match &plans[..] {
        [plan] => entry.check(plan, &check, &mut watch)?,
        plans => entry.check_arranged(plans, &check, &mut watch)?,
    };
    bar.finish_and_clear();
    if let Some(witness) = &checked.witness {
        if let Some(target) = record_to {
            target.finish(&recording(witness, args.record.as_deref())?)?;
        }
        if let Some(target) = draw_to {
            target.finish(&svg::draw(witness, &diagram::Options::of(entry.problem.conditions)))?;
        }
    } else if record_to.is_some() || draw_to.is_some() {
        tell!("no file written: the search found no witness");
    }
    match (args.emit, &checked.test) {
        (None, _) => print(&args, &checked, &broken)?,
        (Some(Emit::Test), Some(test)) => stdout().write_all(test.as_bytes())?,
        (Some(Emit::Test), None) => {
            tell!("no test written: the search found no finite run that violates a property");
            print(&args, &checked, &broken)?;
        }
    }
    Ok(exit_code(&checked.report))
}

fn exit_code(report: &CheckReport) -> u8 {
    match report.verdict {
        "exhausted" => 0,
        "violated" => 1,
        _ => 2,
    }
}

fn scenario(args: &CheckArgs, entry: &Entry) -> Scenario {
    Scenario {
        algorithm: Some(entry.name()),
        nodes: args.nodes.or(Some(3).filter(|_| args.ids.is_none() && args.topology.is_none())),
        topology: args.topology.clone(),
        ids: args.ids.clone(),
        initiators: args.initiators.clone(),
        down: args.down.clone(),
        set: args.set.clone(),
        mistake: args.mistake.clone(),
        entries: args.entries,
        requests: args.requests.clone(),
        fifo: args.no_fifo.then_some(false),
        seed: args.seed,
        ..Scenario::default()
    }
}

fn options(args: &CheckArgs, unit: Duration) -> Result<CheckOptions, Error> {
    Ok(CheckOptions {
        fifo: !args.no_fifo,
        timing: if args.synchronous { Timing::WhenQuiet } else { Timing::Anytime },
        early: args.early,
        clock: args.clock.map(|step| clock(step, args, unit)).transpose()?,
        down: Vec::new(),
        crashes: args.crash,
        victims: match args.victim {
            Activity::Anyone => Victim::Anyone,
            Activity::Idle => Victim::Idle,
            Activity::Waiting => Victim::Waiting,
            Activity::Holder => Victim::Holder,
            Activity::Arbiter => Victim::Arbiter,
            Activity::Coordinator => Victim::Coordinator,
            Activity::IdleTokenHolder => Victim::IdleTokenHolder,
        },
        coordinator: None,
        restarts: args.restart,
        stable_storage: !args.amnesia,
        losses: args.loss,
        duplicates: args.duplicate,
        cuts: args.cut,
        breaks: args.breaks,
        links: Vec::new(),
        detector: !args.no_detector,
        app_messages: args.app_messages,
        count_messages: args.count_messages || extreme(args).is_some(),
        threads: args.threads,
        compact: args.compact,
        reduce: args.reduce,
        symmetry: args.symmetry,
        swarm: args.shard.as_deref().map(|shard| swarm(shard, args)).transpose()?,
        properties: args.properties.clone(),
        most_messages: None,
        max_states: args.max_states,
        max_depth: args.max_depth.unwrap_or(u32::MAX),
        max_bytes: args.max_memory.saturating_mul(1 << 20),
    })
}

/// The clock of `--clock` and `--time-limit`, both in units of T.
fn clock(step: f64, args: &CheckArgs, unit: Duration) -> Result<Clock, Error> {
    Clock::in_units(step, args.time_limit, args.settled, unit).map_err(Error::Usage)
}

/// Which assumptions the budgets break, and how.
fn broken_by(plan: &Plan, options: &CheckOptions) -> Vec<(Assumption, &'static str)> {
    let mut broken = Vec::new();
    for &assumption in plan.assumes {
        let by = match assumption {
            Assumption::Reliable if options.losses > 0 => "messages may be lost",
            Assumption::Reliable if options.cuts > 0 => "channels may be cut",
            Assumption::Reliable if options.breaks > 0 => "links may break",
            Assumption::ReliableLinks if options.losses > 0 => "messages may be lost",
            Assumption::ReliableLinks if options.cuts > 0 => "channels may be cut",
            Assumption::AccurateDetector
                if !options.detector && options.crashes + options.breaks > 0 =>
            {
                "crashes and broken links are not reported"
            }
            Assumption::NoDuplicates if options.duplicates > 0 => "messages may arrive twice",
            Assumption::Fifo if !options.fifo => "messages may overtake each other",
            Assumption::NoCrash if options.crashes > 0 => "nodes may crash",
            Assumption::NoRestart if options.restarts > 0 => "crashed nodes may restart",
            Assumption::Synchronous if options.timing == Timing::Anytime => {
                "timers may fire at any time (`--synchronous` lets them fire only when no message is in flight)"
            }
            Assumption::StableStorage if options.restarts > 0 && !options.stable_storage => {
                "saved state is lost in a crash"
            }
            Assumption::Reliable
            | Assumption::ReliableLinks
            | Assumption::AccurateDetector
            | Assumption::NoDuplicates
            | Assumption::Fifo
            | Assumption::NoCrash
            | Assumption::NoRestart
            | Assumption::Synchronous
            | Assumption::BoundedDelays
            | Assumption::SteadyClocks
            | Assumption::KnownMembership
            | Assumption::UniqueIds
            | Assumption::StableStorage => continue,
        };
        broken.push((assumption, by));
    }
    broken
}

fn extreme(args: &CheckArgs) -> Option<Extreme> {
    let least = args.minimise.map(|_| Extreme::Least);
    args.maximise.map(|_| Extreme::Most).or(least)
}

fn swarm(shard: &str, args: &CheckArgs) -> Result<Swarm, Error> {
    let parts = shard.split_once('/');
    let parts = parts.and_then(|(i, n)| Some((i.parse::<u32>().ok()?, n.parse::<u32>().ok()?)));
    match parts {
        Some((i, n)) if 1 <= i && i <= n => {
            Ok(Swarm { shard: i - 1, of: n, seed: args.seed.unwrap_or(0), runs: args.runs })
        }
        _ => Err(Error::Usage(format!("--shard {shard}: expected I/N, as in 1/4"))),
    }
}

/// The options that repeat the budgets and the choice of properties.
fn arguments(args: &CheckArgs) -> String {
    let mut words = Vec::new();
    let budgets = [
        ("crash", args.crash),
        ("restart", args.restart),
        ("loss", args.loss),
        ("duplicate", args.duplicate),
        ("cut", args.cut),
        ("break", args.breaks),
        ("app-messages", args.app_messages),
        ("early", args.early),
    ];
    words.extend(budgets.iter().filter(|(_, k)| *k > 0).map(|(name, k)| format!("--{name} {k}")));
    words.extend(args.clock.map(|step| format!("--clock {step}")));
    words.extend(args.time_limit.map(|limit| format!("--time-limit {limit}")));
    let victim = clap::ValueEnum::to_possible_value(&args.victim);
    let victim = victim.filter(|_| args.victim != Activity::Anyone);
    words.extend(victim.map(|who| format!("--victim {}", who.get_name())));
    let flags = [
        ("synchronous", args.synchronous),
        ("settled", args.settled),
        ("no-detector", args.no_detector),
        ("amnesia", args.amnesia),
        ("count-messages", args.count_messages),
        ("compact", args.compact),
        ("reduce", args.reduce),
        ("symmetry", args.symmetry),
    ];
    words.extend(flags.iter().filter(|(_, on)| *on).map(|(name, _)| format!("--{name}")));
    words.extend(extreme(args).map(|end| match end {
        Extreme::Most => "--maximise messages".to_owned(),
        Extreme::Least => "--minimise messages".to_owned(),
    }));
    if let Some(shard) = &args.shard {
        words.push(format!("--shard {shard} --runs {}", args.runs));
    }
    words.extend(args.properties.iter().map(|p| format!("--property {p}")));
    if args.max_states != MAX_STATES {
        words.push(format!("--max-states {}", args.max_states));
    }
    words.extend(args.max_depth.map(|depth| format!("--max-depth {depth}")));
    if args.max_memory != MAX_MEMORY {
        words.push(format!("--max-memory {}", args.max_memory));
    }
    words.join(" ")
}

/// Set by the first interrupt; the search stops and reports its result so far.
pub(super) fn interrupt() -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = stop.clone();
    interrupt::on_signal(move || {
        if set.swap(true, Ordering::Relaxed) {
            interrupt::leave();
        }
    })?;
    Ok(stop)
}

fn progress_bar(format: Format) -> ProgressBar {
    if format != Format::Text || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The report, and which assumptions were broken.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    report: &'a CheckReport,
    broken_assumptions: Vec<String>,
}

fn print(
    args: &CheckArgs,
    checked: &Checked,
    broken: &[(Assumption, &'static str)],
) -> io::Result<()> {
    let report = &checked.report;
    match args.format {
        Format::Json | Format::Jsonl => {
            let broken_assumptions = broken.iter().map(|(a, _)| a.to_string()).collect();
            print_json(&Told { report, broken_assumptions }, args.format)
        }
        Format::Csv => print_csv(&[row(report)]),
        Format::Text => {
            let mut out = stdout();
            if let Some(witness) = &checked.witness {
                tell(args, report, witness, &mut out)?;
            }
            summarise(report, broken, &mut out)?;
            let goes_on = report.verdict == "bounded" && args.checkpoint.is_some();
            if let Some(file) = args.checkpoint.as_ref().filter(|_| goes_on) {
                writeln!(out, "continue    with `--resume {}`", file.display())?;
            }
            out.flush()
        }
    }
}

fn tell(
    args: &CheckArgs,
    report: &CheckReport,
    witness: &Run,
    out: &mut impl Write,
) -> io::Result<()> {
    let length = report.witness_length.unwrap_or(0);
    let shortest = args.shard.is_none() && !args.reduce;
    let what = match (report.verdict, shortest) {
        ("violated", true) => "A shortest run to the violation",
        ("violated", false) => "A run to the violation",
        _ if args.minimise.is_some() => "A run with the fewest messages",
        _ => "A run with the most messages",
    };
    writeln!(out, "{what}, {length} steps:")?;
    writeln!(out)?;
    let options =
        text::Options { states: args.states, debug: args.debug, ..text::Options::default() };
    writeln!(out, "{}", text::transcript(witness, &options))?;
    if let Some(from) = report.witness_loops_from {
        writeln!(out, "From step {} on, the run repeats for ever.", from + 1)?;
        writeln!(out)?;
    }
    Ok(())
}

fn summarise(
    report: &CheckReport,
    broken: &[(Assumption, &'static str)],
    out: &mut impl Write,
) -> io::Result<()> {
    let channels = if report.fifo { "FIFO" } else { "not FIFO" };
    let mistake = report.mistake.as_ref().map_or(String::new(), |m| format!(", mistake {m}"));
    writeln!(
        out,
        "{} · {} nodes, {}, {channels}{mistake}",
        report.algorithm, report.nodes, report.topology
    )?;
    match report.verdict {
        "exhausted" => {
            let all = paint("exhausted", Colour::Green);
            let though: Vec<_> =
                broken.iter().map(|(assumption, _)| assumption.to_string()).collect();
            let though = match though.as_slice() {
                [] => String::new(),
                some => format!(", although it assumes {}", some.join(", ")),
            };
            let within = match report.budgets.get("time_limit").and_then(Value::as_f64) {
                Some(limit) => format!(" for {limit} T"),
                None => String::new(),
            };
            writeln!(out, "verdict     {all}: every run explored{within}, no violation{though}")?;
        }
        "violated" => {
            let violated = paint("violated", Colour::Red);
            let property = report.property.as_deref().unwrap_or_default();
            let detail = text::violation(report.detail.as_deref().unwrap_or_default());
            writeln!(out, "verdict     {violated}: {property}: {detail}")?;
            if let Some(why) = &report.explanation {
                writeln!(out, "why         {why}")?;
            }
        }
        _ => {
            let bounded = paint("bounded", Colour::Yellow);
            writeln!(out, "verdict     {bounded}: {}", why_bounded(report))?;
        }
    }
    if let Some(ArrangementsReport { explored, of }) = report.arrangements {
        writeln!(out, "ids         {explored} of {of} arrangements explored")?;
    }
    writeln!(
        out,
        "explored    {} states, {} transitions, depth {}",
        report.states, report.transitions, report.depth
    )?;
    if report.missed > 0.0 {
        writeln!(out, "missed      a state, with a probability of at most {:.1e}", report.missed)?;
    }
    if report.reduction != "none" {
        writeln!(out, "reduced     one order of commuting deliveries was explored")?;
    }
    if let Some(symmetry) = &report.symmetry {
        writeln!(out, "symmetry    {}", interchangeable(symmetry))?;
    }
    if let Some((least, most)) = report.messages {
        writeln!(out, "messages    {least} … {most} over all runs that end")?;
    }
    writeln!(
        out,
        "took        {:.3} s, {:.0} states/s, {:.1} MB",
        report.seconds,
        report.states_per_second,
        report.peak_bytes as f64 / 1e6
    )?;
    writeln!(out, "again       {}", report.command)
}

fn why_bounded(report: &CheckReport) -> String {
    match report.bound.unwrap_or_default() {
        "sample" => "no violation in the runs that were tried".to_owned(),
        "compact" => "no violation, but endless runs were not judged".to_owned(),
        "interrupted" => "no violation before the search was interrupted".to_owned(),
        bound => format!("no violation before the limit of {bound}"),
    }
}

fn interchangeable(symmetry: &SymmetryReport) -> String {
    let class = |class: &Vec<u32>| {
        let ids: Vec<String> = class.iter().map(|id| format!("p{id}")).collect();
        ids.join(", ")
    };
    let classes: Vec<String> = symmetry.interchangeable.iter().map(class).collect();
    match (&symmetry.refuted, classes.is_empty()) {
        (Some(why), true) => format!("none: no two processes are interchangeable ({why})"),
        (None, true) => "none: no two processes are interchangeable".to_owned(),
        (_, false) => {
            format!(
                "{} are interchangeable, {} permutations",
                classes.join("; "),
                symmetry.permutations
            )
        }
    }
}

fn row(report: &CheckReport) -> Vec<(String, String)> {
    [
        ("algorithm", report.algorithm.clone()),
        ("nodes", report.nodes.to_string()),
        ("topology", report.topology.clone()),
        ("fifo", report.fifo.to_string()),
        ("mistake", report.mistake.clone().unwrap_or_default()),
        ("verdict", report.verdict.to_owned()),
        ("property", report.property.clone().unwrap_or_default()),
        ("states", report.states.to_string()),
        ("transitions", report.transitions.to_string()),
        ("depth", report.depth.to_string()),
        ("witness_length", report.witness_length.map_or(String::new(), |n| n.to_string())),
        ("seconds", format!("{:.6}", report.seconds)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
