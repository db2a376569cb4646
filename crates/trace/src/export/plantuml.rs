//! PlantUML: <https://plantuml.com/sequence-diagram>.

use std::fmt::Write;

use super::sequence::{Item, sequence};
use crate::Run;
use crate::diagram::{Fate, Options};

/// `run` as a sequence diagram. An arrow stands where its message arrives.
pub fn plantuml(run: &Run, options: &Options) -> String {
    let (lanes, items) = sequence(run, options);
    let mut out = String::from("@startuml\n");
    let mut put = |line: String| writeln!(out, "{line}").expect("a string takes everything");
    put(format!("title {}", safe(&run.header.algorithm)));
    put("hide footbox".into());
    lanes.iter().for_each(|node| put(format!("participant p{node}")));
    for item in items {
        put(match item {
            Item::Arrow { from, to, label, fate } => {
                let arrow = match fate {
                    Fate::Arrived | Fate::Beyond => "->",
                    Fate::Again => "-->",
                    Fate::Lost => "->x",
                    Fate::Pending => "-->o",
                };
                format!("p{from} {arrow} p{to} : {}", safe(&label))
            }
            Item::Note { node, lines } => {
                let lines: Vec<String> = lines.iter().map(|line| safe(line)).collect();
                format!("rnote over p{node} : {}", lines.join("\\n"))
            }
            Item::Everyone(words) => format!("hnote across : {}", safe(&words)),
            Item::Quiet(length) => format!("...{}...", safe(&length)),
            Item::Enter(node) => format!("activate p{node}"),
            Item::Leave(node) => format!("deactivate p{node}"),
        });
    }
    put("@enduml".into());
    out
}

/// `words` as PlantUML takes them: its marks for bold, italics, links and more are written by
/// their number.
fn safe(words: &str) -> String {
    words.chars().fold(String::new(), |mut safe, c| {
        match c {
            '*' | '/' | '_' | '-' | '~' | '"' | '<' | '>' | '\\' | '#' | '&' | '[' | ']' | '%'
            | '=' | '|' | '\'' | '$' | '!' | '@' => {
                write!(safe, "&#{};", c as u32).expect("a string takes everything");
            }
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
        safe
    })
}
