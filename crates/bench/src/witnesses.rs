//! The checker's time to the first witness of every mistake whose data sheet names a check that catches it.

use std::process::Command;

use serde_json::{Value, json};

use crate::say;

/// The search for the witness of one mistake.
struct Found {
    algorithm: String,
    mistake: String,
    property: String,
    steps: u64,
    states: u64,
    seconds: f64,
}

/// Reads all mistakes from the program and lets it catch each one. Prints a table, or a JSON object for each.
pub(crate) fn witnesses(program: &str, json: bool, quick: bool) -> Result<(), String> {
    let algorithms = said(program, &["list", "--format", "json"])?;
    let algorithms = algorithms.as_array().ok_or("`list` names no algorithms")?;
    if !json {
        say(&format!(
            "{:<42} {:<26} {:>6} {:>9} {:>10}",
            "mistake", "breaks", "steps", "states", "seconds"
        ))?;
    }
    let mut all = Vec::new();
    for sheet in algorithms {
        let name = text(&sheet["name"]);
        let mistakes = sheet["mistakes"].as_array().into_iter().flatten();
        for mistake in mistakes.filter(|m| !text(&m["caught_by"]).is_empty()) {
            let found = caught(program, name, mistake)?;
            tell(&found, json)?;
            all.push(found);
            if quick {
                break;
            }
        }
    }
    let total: f64 = all.iter().map(|found| found.seconds).sum();
    let slowest = all.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    match slowest {
        Some(slowest) if !json => say(&format!(
            "{} mistakes, {total:.1} s together; the longest search is that for {} of {}, {:.2} s",
            all.len(),
            slowest.mistake,
            slowest.algorithm,
            slowest.seconds
        )),
        _ => Ok(()),
    }
}

fn caught(program: &str, algorithm: &str, mistake: &Value) -> Result<Found, String> {
    let (name, breaks) = (text(&mistake["name"]), text(&mistake["breaks"]));
    let how = words(text(&mistake["caught_by"]));
    let mut line = vec!["check", algorithm, "--mistake", name, "--threads", "1"];
    line.extend(["--format", "json"]);
    line.extend(how.iter().map(String::as_str));
    let report = said(program, &line)?;
    let property = text(&report["property"]);
    let (Some(steps), Some(states), Some(seconds), true) = (
        report["witness_length"].as_u64(),
        report["states"].as_u64(),
        report["seconds"].as_f64(),
        property == breaks,
    ) else {
        let line = line.join(" ");
        return Err(format!("`{line}` breaks `{property}`, and not `{breaks}`"));
    };
    let (algorithm, mistake) = (algorithm.to_owned(), name.to_owned());
    Ok(Found { algorithm, mistake, property: property.to_owned(), steps, states, seconds })
}

fn tell(found: &Found, json: bool) -> Result<(), String> {
    let Found { algorithm, mistake, property, steps, states, seconds } = found;
    if json {
        return say(&json!({
            "algorithm": algorithm,
            "mistake": mistake,
            "property": property,
            "steps": steps,
            "states": states,
            "seconds": seconds,
        })
        .to_string());
    }
    let what = format!("{algorithm} {mistake}");
    say(&format!("{what:<42} {property:<26} {steps:>6} {states:>9} {seconds:>10.4}"))
}

/// The JSON that the program prints. Its exit code is not read: a witness is no success.
fn said(program: &str, args: &[&str]) -> Result<Value, String> {
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|e| format!("cannot run {program}: {e}"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("{}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr)))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The words of a line; a quoted one may have spaces.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("there is a word").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_of_a_line_keep_quoted_spaces() {
        assert_eq!(words("-n 3  --set 'a=b c'"), ["-n", "3", "--set", "a=b c"]);
        assert!(words("").is_empty());
    }
}
