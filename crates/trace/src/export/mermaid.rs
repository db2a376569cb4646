//! Mermaid, for pages in Markdown: <https://mermaid.js.org/syntax/sequenceDiagram.html>.

use std::fmt::Write;

use super::sequence::{Item, sequence};
use crate::Run;
use crate::diagram::{Fate, Options};

/// `run` as a sequence diagram. An arrow stands where its message arrives.
pub fn mermaid(run: &Run, options: &Options) -> String {
    let (lanes, items) = sequence(run, options);
    let mut out =
        format!("---\ntitle: \"{}\"\n---\nsequenceDiagram\n", safe(&run.header.algorithm));
    let mut put = |line: String| writeln!(out, "    {line}").expect("a string takes everything");
    lanes.iter().for_each(|node| put(format!("participant p{node}")));
    let everyone = match (lanes.first(), lanes.last()) {
        (Some(first), Some(last)) if first != last => format!("p{first},p{last}"),
        (Some(first), _) => format!("p{first}"),
        (None, _) => return out,
    };
    for item in items {
        put(match item {
            Item::Arrow { from, to, label, fate } => {
                let arrow = match fate {
                    Fate::Arrived | Fate::Beyond => "->>",
                    Fate::Again => "-->>",
                    Fate::Lost => "-x",
                    Fate::Pending => "--)",
                };
                format!("p{from}{arrow}p{to}: {}", safe(&label))
            }
            Item::Note { node, lines } => {
                let lines: Vec<String> = lines.iter().map(|line| safe(line)).collect();
                format!("Note over p{node}: {}", lines.join("<br/>"))
            }
            Item::Everyone(words) => format!("Note over {everyone}: {}", safe(&words)),
            Item::Quiet(length) => format!("Note over {everyone}: … {} …", safe(&length)),
            Item::Enter(node) => format!("activate p{node}"),
            Item::Leave(node) => format!("deactivate p{node}"),
        });
    }
    out
}

/// `words` escaped for Mermaid: characters of its syntax are written by their numbers.
fn safe(words: &str) -> String {
    let escaped = words.chars().fold(String::new(), |mut safe, c| {
        match c {
            ';' | '#' | '<' | '>' | '"' | '&' | '%' | '`' | '\\' => {
                write!(safe, "#{};", c as u32).expect("a string takes everything");
            }
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
        safe
    });
    // The word alone would end a block.
    let plain = |word: &str| if word == "end" { "#101;nd".to_owned() } else { word.to_owned() };
    escaped.split(' ').map(plain).collect::<Vec<_>>().join(" ")
}
