//! A page for each algorithm, in both languages: from its data sheet, its source, and runs of the program.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{GATHERED, Program, german, write};

/// The words of a page in one language.
struct Words {
    folder: &'static str,
    title: &'static str,
    intro: &'static str,
    idea: &'static str,
    source: &'static str,
    assumes: &'static str,
    promises: &'static str,
    topologies: &'static str,
    run: &'static str,
    run_text: &'static str,
    code: &'static str,
    code_text: &'static str,
    costs: &'static str,
    costs_head: &'static str,
    measured: &'static str,
    measured_head: &'static str,
    keeps: &'static str,
    mistakes: &'static str,
    no_mistakes: &'static str,
    breaks: &'static str,
}

const LANGUAGES: [Words; 2] = [
    Words {
        folder: "en",
        title: "Algorithms",
        intro: "Each page has the idea, a run, the source, costs, guarantees and known mistakes of one algorithm.",
        idea: "Idea",
        source: "Source",
        assumes: "Assumes",
        promises: "Promises",
        topologies: "Runs on",
        run: "A run",
        run_text: "The standard run of four processes (time goes to the right, one lane for each process):",
        code: "State, messages, handlers",
        code_text: "This is the algorithm as simulator, checker and network run it.",
        costs: "Costs",
        costs_head: "| measure | formula | condition |",
        measured: "Measured against the formula",
        measured_head: "| n | workload | messages | bounds |",
        keeps: "Guarantees under faults",
        mistakes: "Known mistakes",
        no_mistakes: "No mistake of this algorithm is known from the sources.",
        breaks: "breaks",
    },
    Words {
        folder: "de",
        title: "Algorithmen",
        intro: "Jede Seite zeigt Idee, Ablauf, Quelltext, Kosten, Garantien und bekannte Fehler eines Verfahrens. \
                Steckbriefe sind auf Englisch.",
        idea: "Idee",
        source: "Quelle",
        assumes: "Annahmen",
        promises: "Zusicherungen",
        topologies: "Topologien",
        run: "Ein Ablauf",
        run_text: "Der Standardablauf mit vier Prozessen (die Zeit läuft nach rechts, jeder Prozess hat eine Zeile):",
        code: "Zustand, Nachrichten, Regeln",
        code_text: "Genau diesen Quelltext führen Simulator, Prüfer und Netz aus.",
        costs: "Kosten",
        costs_head: "| Maß | Formel | Bedingung |",
        measured: "Gemessen gegen die Formel",
        measured_head: "| n | Last | Nachrichten | Schranken |",
        keeps: "Garantien bei Störungen",
        mistakes: "Bekannte Fehler",
        no_mistakes: "Die Quellen enthalten keinen Fehler dieses Verfahrens.",
        breaks: "verletzt",
    },
];

/// Problems in the order of the course, with their names in both languages.
const PROBLEMS: &[(&str, [&str; 2])] = &[
    ("mutex", ["Mutual exclusion", "Gegenseitiger Ausschluss"]),
    ("election", ["Elections", "Wahlverfahren"]),
    ("multicast", ["Multicast", "Multicast"]),
    ("group", ["Groups", "Gruppen"]),
    ("detector", ["Failure detectors", "Ausfallerkennung"]),
];

/// Writes the pages of all algorithms, and their pictures.
pub(super) fn write_pages(program: &Program) -> Result<()> {
    let sheets: Vec<Value> = serde_json::from_str(&program.stdout(&["list", "--format", "json"])?)
        .context("the data sheets are no JSON")?;
    let middle = sheets.len() / 2;
    let halves = [&sheets[..middle], &sheets[middle..]];
    // Two halves at a time: checks of mistakes take most of the time.
    thread::scope(|scope| {
        let workers: Vec<_> = halves
            .map(|half| scope.spawn(|| half.iter().try_for_each(|sheet| page(program, sheet))))
            .into_iter()
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
    })?;
    LANGUAGES.iter().enumerate().try_for_each(|(language, words)| index(words, language, &sheets))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list(value: &Value, key: &str) -> String {
    let all = value[key].as_array().into_iter().flatten().filter_map(Value::as_str);
    all.collect::<Vec<_>>().join(", ")
}

/// The folder of pages of algorithms, and the path of one without its ending.
fn place(folder: &str, name: &str) -> PathBuf {
    Path::new(GATHERED).join(folder).join("learn/algorithms").join(name)
}

fn index(words: &Words, language: usize, sheets: &[Value]) -> Result<()> {
    let mut page = format!("# {}\n\n{}\n\n", words.title, words.intro);
    for (problem, names) in PROBLEMS {
        writeln!(page, "## {}\n\n| | {} |\n|---|---|", names[language], words.idea)?;
        for sheet in sheets.iter().filter(|sheet| text(sheet, "problem") == *problem) {
            let name = text(sheet, "name");
            writeln!(page, "| [{}]({name}.md) | {} |", text(sheet, "title"), text(sheet, "idea"))?;
        }
        page.push('\n');
    }
    write(&place(words.folder, "index.md"), &page)
}

fn page(program: &Program, sheet: &Value) -> Result<()> {
    let full = text(sheet, "name");
    let name = full.rsplit('/').next().unwrap_or(full);
    let pictures = place("en", full);
    fs::create_dir_all(&pictures)?;
    let command = standard_run(program, name, &pictures)?;
    let mistakes = sheet["mistakes"].as_array().map_or(&[][..], Vec::as_slice);
    let commands: Vec<String> = mistakes
        .iter()
        .map(|mistake| picture_of(program, name, mistake, &pictures))
        .collect::<Result<_>>()?;
    let measured: Vec<Value> =
        serde_json::from_str(&program.stdout(&["costs", name, "--format", "json"])?)
            .with_context(|| format!("costs of {name}"))?;
    for words in &LANGUAGES {
        // Pictures are the same in both languages.
        let to = if words.folder == "en" { "" } else { "../../../../en/learn/algorithms/" };
        let to = if to.is_empty() { format!("{name}/") } else { format!("{to}{full}/") };
        let (before, after) = written(full, words.folder)?;
        let mut page = heading(words, sheet)? + &before;
        writeln!(page, "## {}\n\n{}\n", words.run, words.run_text)?;
        writeln!(
            page,
            "[![{}]({to}run.svg)]({to}run.svg)\n\n```console\n$ {command}\n```\n",
            words.run
        )?;
        writeln!(page, "## {}\n\n{}\n", words.code, words.code_text)?;
        writeln!(page, "```rust\n{}\n```\n", source(full)?.trim_end())?;
        costs(&mut page, words, sheet, &measured)?;
        guarantees(&mut page, words, full)?;
        writeln!(page, "## {}\n", words.mistakes)?;
        if mistakes.is_empty() {
            writeln!(page, "{}\n", words.no_mistakes)?;
        }
        for (mistake, command) in mistakes.iter().zip(&commands) {
            let title = text(mistake, "name");
            writeln!(page, "### `{title}`\n\n{}\n", text(mistake, "what"))?;
            writeln!(page, "*{}: {}.*\n", words.breaks, text(mistake, "breaks"))?;
            writeln!(
                page,
                "```console\n$ {command}\n```\n\n[![{title}]({to}{title}.svg)]({to}{title}.svg)\n"
            )?;
        }
        page.push_str(&after);
        write(&place(words.folder, full).with_extension("md"), &page)?;
    }
    Ok(())
}

/// The written parts of a page: how it works and pseudocode; slides and exercises.
fn written(full: &str, language: &str) -> Result<(String, String)> {
    let path = format!("book/algorithms/{full}.{language}.md");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    let parts: Vec<usize> = text
        .match_indices("## ")
        .map(|(at, _)| at)
        .filter(|at| is_line_start(&text, *at))
        .collect();
    let [_, _, slides, _] = parts[..] else {
        bail!("{path}: four headings are needed: how it works, pseudocode, slides, exercises");
    };
    let (before, after) = text.split_at(slides);
    Ok((format!("{}\n\n", before.trim_end()), format!("{}\n", after.trim_end())))
}

fn is_line_start(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n'
}

/// The navigation of all pages of algorithms, as lines of `mkdocs.yml`.
pub(super) fn navigation(program: &Program, indent: &str) -> Result<String> {
    let sheets: Vec<Value> = serde_json::from_str(&program.stdout(&["list", "--format", "json"])?)?;
    let mut lines = format!("{indent}- Algorithms:\n{indent}    - learn/algorithms/index.md\n");
    for (problem, names) in PROBLEMS {
        writeln!(lines, "{indent}    - {}:", names[0])?;
        for sheet in sheets.iter().filter(|sheet| text(sheet, "problem") == *problem) {
            writeln!(lines, "{indent}        - learn/algorithms/{}.md", text(sheet, "name"))?;
        }
    }
    Ok(lines)
}

fn heading(words: &Words, sheet: &Value) -> Result<String> {
    let mut page =
        format!("# {}\n\n{}\n\n| | |\n|---|---|\n", text(sheet, "title"), text(sheet, "idea"));
    writeln!(page, "| {} | {} |", words.source, text(sheet, "source"))?;
    let lists = [
        (words.topologies, "topologies"),
        (words.assumes, "assumes"),
        (words.promises, "guarantees"),
    ];
    for (word, key) in lists {
        writeln!(page, "| {word} | {} |", list(sheet, key))?;
    }
    page.push('\n');
    Ok(page)
}

/// Draws the standard run; says which command shows it.
fn standard_run(program: &Program, name: &str, pictures: &Path) -> Result<String> {
    let (run, svg) = (pictures.join("run.runz"), pictures.join("run.svg"));
    let (run, svg) = (run.to_string_lossy(), svg.to_string_lossy());
    let _ = fs::remove_file(&*run);
    program.stdout(&["run", name, "-n", "4", "--record", &run])?;
    // Algorithms with heartbeats never end: the first 24 T tell their story.
    program.stdout(&["export", &run, "--to", "svg", "--window", "0..24", "-o", &svg])?;
    fs::remove_file(&*run)?;
    Ok(format!("konklave run {name} -n 4"))
}

/// Draws the run that shows a mistake; says which command finds it.
fn picture_of(program: &Program, name: &str, mistake: &Value, pictures: &Path) -> Result<String> {
    let title = text(mistake, "name");
    let (verb, options) = match text(mistake, "caught_by") {
        "" => ("run", text(mistake, "shown_by")),
        found => ("check", found),
    };
    let svg = pictures.join(format!("{title}.svg"));
    let mut args = vec![verb, name, "--mistake", title];
    args.extend(options.split_whitespace());
    let command = format!("konklave {}", args.join(" "));
    let svg = svg.to_string_lossy();
    args.extend(["--svg", &svg]);
    program.stdout(&args)?;
    Ok(command)
}

/// The file of the algorithm, without what only tools need.
fn source(full: &str) -> Result<String> {
    let path = Path::new("crates/algorithms/src").join(full.replace('-', "_")).with_extension("rs");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let skipped = ["mod tests;", "mod sheet;", "#[cfg(test)]", "use "];
    let mut lines = Vec::new();
    let mut in_use = false;
    for line in text.lines() {
        let starts = skipped.iter().any(|word| line.trim_start_matches("pub ").starts_with(word));
        if in_use || starts {
            in_use = (in_use || line.starts_with("use ")) && !line.ends_with(';');
            continue;
        }
        if !(line.is_empty() && lines.last().is_none_or(|last: &&str| last.is_empty())) {
            lines.push(line);
        }
    }
    Ok(lines.join("\n"))
}

fn costs(page: &mut String, words: &Words, sheet: &Value, measured: &[Value]) -> Result<()> {
    writeln!(page, "## {}\n\n{}\n|---|---|---|", words.costs, words.costs_head)?;
    for cost in sheet["costs"].as_array().into_iter().flatten() {
        let (metric, formula) = (text(cost, "metric").replace('_', " "), text(cost, "formula"));
        writeln!(page, "| {metric} | {} | {} |", cell(formula), cell(text(cost, "when")))?;
    }
    writeln!(page, "\n### {}\n\n{}\n|---:|---|---:|---|", words.measured, words.measured_head)?;
    for row in measured.iter().filter(|row| row["nodes"].as_u64().is_some_and(|n| n >= 3)) {
        let bounds = row["bounds"].as_array().into_iter().flatten().filter_map(bound);
        let bounds: Vec<String> = bounds.collect();
        let (n, case) = (&row["nodes"], cell(text(row, "case")));
        writeln!(page, "| {n} | {case} | {} | {} |", row["messages"], bounds.join("; "))?;
    }
    page.push('\n');
    Ok(())
}

/// "messages: 4 ≤ 8", where there was something to measure.
fn bound(bound: &Value) -> Option<String> {
    let (measured, limit) = (bound["measured"].as_f64()?, bound["limit"].as_f64()?);
    let sign = if bound["exact"].as_bool()? { "=" } else { "≤" };
    let short = |x: f64| format!("{}", (x * 1000.0).round() / 1000.0);
    let metric = text(bound, "metric").replace('_', " ");
    Some(format!("{metric}: {} {sign} {}", short(measured), short(limit)))
}

/// Bars would end a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The table of this algorithm on the page of guarantees.
fn guarantees(page: &mut String, words: &Words, full: &str) -> Result<()> {
    let all =
        fs::read_to_string("book/en/learn/guarantees.md").context("book/en/learn/guarantees.md")?;
    let heading = format!("\n## {full}\n");
    let Some(at) = all.find(&heading) else { return Ok(()) };
    let rest = &all[at + heading.len()..];
    let table: Vec<&str> = rest
        .lines()
        .skip_while(|line| line.is_empty())
        .take_while(|l| l.starts_with('|'))
        .collect();
    let table = match words.folder {
        "de" => german::translated(&table.join("\n"))?,
        _ => table.join("\n"),
    };
    writeln!(
        page,
        "## {}\n\n{table}\n\n```console\n$ konklave guarantees {full}\n```\n",
        words.keeps
    )?;
    Ok(())
}
