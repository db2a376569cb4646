//! German pages: a note on pages that exist in English only, and computed tables.
//!
//! Computed tables on the German pages are those of the English page, with German words. So no figure is copied by hand.
//!
//! A German page has a mark where its English counterpart has a table:
//!
//! - `<!-- konklave ARGUMENTS -->`: the table under the same mark;
//! - `<!-- | HEAD | OF | THE | TABLE | -->`: the table with this head;
//! - `<!-- sections -->`: all sections of the second level.
//!
//! `{nodes}` and `{states}` are the bounds that the English page of guarantees states.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{GATHERED, write};

/// The first sentence of an English page in the German book.
const ENGLISH_ONLY: &str = "*Diese Seite gibt es nur auf Englisch.*";

/// Puts the English pages that have no German form into the German book, with a note below the title.
pub(super) fn mark_english_pages() -> Result<()> {
    mark(Path::new(GATHERED), Path::new("internals"))?;
    mark(Path::new(GATHERED), Path::new("reference"))
}

fn mark(root: &Path, folder: &Path) -> Result<()> {
    let from = root.join("en").join(folder);
    for entry in fs::read_dir(&from).with_context(|| from.display().to_string())? {
        let name = folder.join(entry?.file_name());
        let (english, german) = (root.join("en").join(&name), root.join("de").join(&name));
        if english.is_dir() {
            mark(root, &name)?;
        } else if name.extension().is_some_and(|ending| ending == "md") && !german.exists() {
            let page = fs::read_to_string(&english).with_context(|| name.display().to_string())?;
            write(&german, &marked(&page))?;
        }
    }
    Ok(())
}

/// A page with the note below its title.
fn marked(page: &str) -> String {
    match page.split_once('\n') {
        Some((title, rest)) if title.starts_with("# ") => {
            format!("{title}\n\n{ENGLISH_ONLY}\n{rest}")
        }
        _ => format!("{ENGLISH_ONLY}\n\n{page}"),
    }
}

/// Replaces the marks on all German pages.
pub(super) fn complete() -> Result<()> {
    pages(Path::new(GATHERED), Path::new("de"))
}

fn pages(root: &Path, folder: &Path) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).with_context(|| folder.display().to_string())? {
        let path = folder.join(entry?.file_name());
        if root.join(&path).is_dir() {
            pages(root, &path)?;
        } else if path.extension().is_some_and(|ending| ending == "md") {
            let german = fs::read_to_string(root.join(&path))?;
            let english = Path::new("en").join(path.strip_prefix("de").unwrap_or(&path));
            let english = fs::read_to_string(root.join(english)).unwrap_or_default();
            let completed = completed(&german, &english);
            let completed = completed.with_context(|| format!("book/{}", path.display()))?;
            if completed != german {
                write(&root.join(&path), &completed)?;
            }
        }
    }
    Ok(())
}

/// A German page with the tables of the English one in place of its marks.
fn completed(german: &str, english: &str) -> Result<String> {
    let mut page = String::with_capacity(german.len());
    for line in german.lines() {
        match line.strip_prefix("<!-- ").and_then(|mark| mark.strip_suffix(" -->")) {
            Some(mark) => page.push_str(&translated(&found(mark, english)?)?),
            None => page.push_str(line),
        }
        page.push('\n');
    }
    for (name, after) in [("{nodes}", " nodes unless noted"), ("{states}", " states; an undecided")]
    {
        if page.contains(name) {
            let before = english.split(after).next().filter(|before| before.len() < english.len());
            let figure = before.and_then(|before| before.rsplit(' ').next());
            page =
                page.replace(name, figure.with_context(|| format!("no figure before `{after}`"))?);
        }
    }
    Ok(page)
}

/// The English text for which a mark stands.
fn found<'a>(mark: &str, english: &'a str) -> Result<String> {
    let lines = || english.lines().skip_while(|line| !begins(mark, line));
    let found: Vec<&'a str> = match mark {
        "sections" => lines().collect(),
        _ if mark.starts_with('|') => lines().take_while(|line| line.starts_with('|')).collect(),
        _ => lines().skip(1).take_while(|line| *line != "<!-- end -->").collect(),
    };
    if found.is_empty() {
        bail!("the English page has nothing for the mark `{mark}`");
    }
    Ok(found.join("\n").trim().to_owned())
}

/// Whether this line of the English page is the first one for which a mark stands.
fn begins(mark: &str, line: &str) -> bool {
    match mark {
        "sections" => line.starts_with("## "),
        _ if mark.starts_with('|') => line == mark,
        _ => line == format!("<!-- {mark} -->"),
    }
}

/// Tables and headings with German words. Each head of a column must have one, so that a new column is noticed.
pub(super) fn translated(english: &str) -> Result<String> {
    let lines: Vec<&str> = english.lines().collect();
    let mut german = Vec::with_capacity(lines.len());
    for (i, line) in lines.iter().enumerate() {
        let is_head = lines.get(i + 1).is_some_and(|next| next.starts_with("|---"));
        german.push(if line.starts_with('|') {
            row(line, is_head)?
        } else if let Some(heading) = line.strip_prefix("## ") {
            format!("## {}", heading.replace(" nodes", " Knoten"))
        } else {
            line.replace("violating runs", "verletzende Läufe")
        });
    }
    Ok(german.join("\n"))
}

fn row(line: &str, is_head: bool) -> Result<String> {
    let inner = line.trim_start_matches('|').trim_end_matches('|');
    let mut cells = Vec::new();
    for cell in inner.split('|') {
        let word = cell.trim();
        let exact = CELLS.iter().find(|(english, _)| *english == word);
        if is_head && exact.is_none() && !is_name(word) {
            bail!(
                "no German word for the column `{word}`: add it to CELLS of xtask/src/book/german.rs"
            );
        }
        cells.push(match exact {
            Some((_, german)) => cell.replacen(word, german, 1),
            None => phrases(cell),
        });
    }
    Ok(format!("|{}|", cells.join("|")))
}

/// Heads that have no words: nothing, `n`, `p0`, an algorithm, an option.
fn is_name(word: &str) -> bool {
    word.len() < 3 || word.starts_with('`') || ["sanders", "FIFO"].contains(&word)
}

/// A cell with German phrases, except in code.
fn phrases(cell: &str) -> String {
    let parts = cell.split('`').enumerate().map(|(i, part)| match i % 2 {
        0 => PHRASES
            .iter()
            .fold(part.to_owned(), |part, (english, german)| part.replace(english, german)),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Whole cells.
const CELLS: &[(&str, &str)] = &[
    ("again", "noch einmal"),
    ("agreement", "Einigkeit"),
    ("alone", "allein"),
    ("any order", "beliebige Reihenfolge"),
    ("arbiter", "Schiedsrichter"),
    ("bounded bypass", "beschränktes Überholen"),
    ("breaks", "verletzt"),
    ("case", "Fall"),
    ("configuration", "Konfiguration"),
    ("contended", "umkämpft"),
    ("coordinator", "Koordinator"),
    ("counts kept", "eingehaltene Kosten"),
    ("crash: arbiter", "Absturz: Schiedsrichter"),
    ("crash: coordinator", "Absturz: Koordinator"),
    ("crash: holder", "Absturz: Halter"),
    ("crash: idle", "Absturz: untätig"),
    ("crash: idle, with the token", "Absturz: untätig, mit Token"),
    ("crash: waiting", "Absturz: wartend"),
    ("crashed", "abgestürzt"),
    ("deadlock", "Verklemmung"),
    ("deadlock-free", "verklemmungsfrei"),
    ("election", "Wahlverfahren"),
    ("entry", "Eintritt"),
    ("expected inputs", "erwartete Eingaben"),
    ("explored", "untersucht"),
    ("formula", "Formel"),
    ("growing fences", "wachsende Marken"),
    ("happened-before order", "kausale Ordnung"),
    ("hasty", "eilig"),
    ("holder", "Halter"),
    ("holds", "gilt"),
    ("idle", "untätig"),
    ("idle, with the token", "untätig, mit Token"),
    ("inside", "im Abschnitt"),
    ("livelock-free", "frei von Livelocks"),
    ("lock", "Sperre"),
    ("lost", "verloren"),
    ("measured", "gemessen"),
    ("messages", "Nachrichten"),
    ("mistake", "Fehler"),
    ("mistakes caught", "gefundene Fehler"),
    ("model", "Modell"),
    ("mutual exclusion", "gegenseitiger Ausschluss"),
    ("on the path", "auf dem Weg"),
    ("one duplicate", "eine Verdopplung"),
    ("one leader", "ein Anführer"),
    ("one loss", "ein Verlust"),
    ("one token", "ein Token"),
    ("quiescence", "Ruhe"),
    ("quiescent", "kommt zur Ruhe"),
    ("reference", "Bezug"),
    ("reordering", "Überholen"),
    ("response", "Antwortzeit"),
    ("safety", "Sicherheit"),
    ("starvation-free", "frei von Aushungern"),
    ("states", "Zustände"),
    ("states, FIFO", "Zustände, FIFO"),
    ("states, any order", "Zustände, jede Reihenfolge"),
    ("steps", "Schritte"),
    ("sync delay", "Koordinierung"),
    ("termination", "Abschluss"),
    ("theory", "Theorie"),
    ("both", "beide"),
    ("waiting", "wartend"),
    ("with `--reduce`", "mit `--reduce`"),
];

/// Phrases within cells, longer ones first.
const PHRASES: &[(&str, &str)] = &[
    ("all but one (", "alle außer einem ("),
    ("nobody (", "niemand ("),
    ("some (", "einige ("),
    ("all (", "alle ("),
    ("**unsafe**", "**unsicher**"),
    ("**mutual exclusion** breaks in ", "**gegenseitiger Ausschluss** verletzt nach "),
    ("one leader at a time, shown by a run", "ein Anführer zur Zeit, gezeigt durch einen Lauf"),
    ("stability, shown by its tests", "Beständigkeit, gezeigt durch Tests"),
    ("one leader at a time", "ein Anführer zur Zeit"),
    ("one leader per epoch", "ein Anführer je Epoche"),
    ("acyclic parents", "Eltern ohne Zyklus"),
    ("expected inputs", "erwartete Eingaben"),
    ("growing epochs", "wachsende Epochen"),
    ("right winner", "richtiger Gewinner"),
    ("none known", "keiner bekannt"),
    ("deadlock in", "Verklemmung in"),
    ("agreement in", "Einigkeit in"),
    ("termination in", "Abschluss in"),
    ("bound in", "Schranke in"),
    ("any order", "jede Reihenfolge"),
    ("out of reach", "nicht erreichbar"),
    ("on a star", "auf einem Stern"),
    ("no more than with fixed timers", "nicht mehr als mit festen Zeiten"),
    ("less than with fixed timers", "weniger als mit festen Zeiten"),
    ("less than in rounds", "weniger als in Runden"),
    ("the token's rounds included", "mit den Runden des Tokens"),
    ("from rest", "aus der Ruhe"),
    ("a lost tail is back", "eine verlorene letzte Nachricht ist zurück"),
    ("scalable reliable multicast", "skalierbarer zuverlässiger Multicast"),
    ("reliable multicast", "zuverlässiger Multicast"),
    ("orders, one multicast among 5", "Ordnungen, ein Multicast unter 5"),
    ("virtual synchrony", "virtuelle Synchronität"),
    ("transmissions", "Übertragungen"),
    ("random tree", "zufälliger Baum"),
    ("sparse in a tree of", "verstreut in einem Baum aus"),
    ("sparse,", "verstreut,"),
    ("chain of", "Kette aus"),
    ("star,", "Stern,"),
    ("adaptive, rounds", "angepasst, Runden"),
    ("last delay/RTT", "letzte Verzögerung/RTT"),
    ("view change", "Sichtwechsel"),
    ("after a suspicion", "nach einer Verdächtigung"),
    ("uniform delivery", "einheitliche Zustellung"),
    ("agreed delivery", "vereinbarte Zustellung"),
    ("lock table: hand-over", "Sperrtabelle: Weitergabe"),
    ("hand-over", "Weitergabe"),
    ("lifted ", "in Sichten: "),
    ("uniform:", "einheitlich:"),
    ("committed:", "bestätigt:"),
    (": requests", ": Anfragen"),
    (": repairs", ": Wiederholungen"),
    (": messages", ": Nachrichten"),
    (": time", ": Zeit"),
    ("+ wait", "+ Warten"),
    (" steps", " Schritten"),
    (" states", " Zustände"),
    (" of 24 runs", " von 24 Läufen"),
    ("yes", "ja"),
    ("no (", "nein ("),
];

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: &str = "# A\n\ngroups of 3 nodes unless noted\n\n<!-- konklave x -->\n\n| lock | n |\n|---|---|\n\
                           | `no (` | nobody (3/4) |\n\n<!-- end -->\n\n## b/c, 2 nodes\n\n| | crash: idle |\n|---|---|\n\
                           | safety | no (4), n=2 |\n";

    #[test]
    fn english_page_gets_a_note_below_its_title() {
        assert_eq!(marked("# Speed\n\nText\n"), format!("# Speed\n\n{ENGLISH_ONLY}\n\nText\n"));
        assert_eq!(marked("Text\n"), format!("{ENGLISH_ONLY}\n\nText\n"));
    }

    #[test]
    fn marks_become_tables_with_german_words() {
        let german = completed("Vorher {nodes}\n<!-- konklave x -->\nnachher", ENGLISH).unwrap();
        let table = "| Sperre | n |\n|---|---|\n| `no (` | niemand (3/4) |";
        assert_eq!(german, format!("Vorher 3\n{table}\nnachher\n"));
        let sections = completed("<!-- sections -->", ENGLISH).unwrap();
        assert!(sections.starts_with("## b/c, 2 Knoten\n"), "{sections}");
        assert!(sections.contains("| | Absturz: untätig |"), "{sections}");
        assert!(sections.contains("| Sicherheit | nein (4), n=2 |"), "{sections}");
        let headed = completed("<!-- | lock | n | -->", ENGLISH).unwrap();
        assert_eq!(headed, format!("{table}\n"));
    }

    #[test]
    fn mark_without_table_and_column_without_word_are_errors() {
        let missing = completed("<!-- konklave y -->", ENGLISH).unwrap_err().to_string();
        assert_eq!(missing, "the English page has nothing for the mark `konklave y`");
        let column = translated("| lock | jitters |\n|---|---|").unwrap_err().to_string();
        assert!(column.starts_with("no German word for the column `jitters`"), "{column}");
        assert!(completed("{states}", ENGLISH).is_err());
    }

    /// Every German page, with the English page that the tests compare with the program.
    #[test]
    fn every_mark_of_the_book_has_its_table() {
        let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../book");
        let mut tables = 0;
        for page in fs::read_dir(book.join("de/learn")).unwrap() {
            let path = page.unwrap().path();
            let german = fs::read_to_string(&path).unwrap();
            let english = book.join("en/learn").join(path.file_name().unwrap());
            let english = fs::read_to_string(english).unwrap();
            let completed = completed(&german, &english).unwrap();
            tables += german.matches("\n<!-- ").count();
            assert!(!completed.contains("<!--"), "{}", path.display());
            for word in ["nobody", " yes ", " crash: ", " breaks ", " steps", "mutual exclusion"] {
                let found =
                    completed.lines().find(|line| line.starts_with('|') && line.contains(word));
                assert_eq!(found, None, "{}: {word}", path.display());
            }
        }
        assert!(tables >= 9, "{tables} tables");
    }
}
