//! TikZ pictures compile in LaTeX. Without pdflatex the test is skipped and prints so.

use std::fs::File;
use std::io::BufReader;
use std::process::Command;

use crate::files::{CONDITIONS, path_of};
use konklave_trace::diagram::Options;
use konklave_trace::export::tikz;
use konklave_trace::{Entry, Header, InputRecord, Run};
use serde_json::Value;

fn stored(name: &str) -> Run {
    Run::read(name, BufReader::new(File::open(path_of(name)).unwrap())).unwrap()
}

/// A run whose words are all that TeX could take for its own.
fn wild() -> Run {
    let mut run = stored("ricart-agrawala.run");
    let words = "\\end{document} #1 $x_y^z$ 50% {a} & ~ \"q\" `t` <b> → größer œ 漢\u{7}";
    run.header.algorithm = words.into();
    for entry in &mut run.entries {
        if let Entry::Step(step) = entry
            && let InputRecord::Request(request) = &mut step.input
        {
            *request = Value::String(words.into());
        }
    }
    run
}

#[test]
fn every_document_compiles() {
    if !Command::new("pdflatex").arg("--version").output().is_ok_and(|o| o.status.success()) {
        println!("skipped: no pdflatex here");
        return;
    }
    let folder = std::env::temp_dir().join(format!("konklave-tikz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let nothing = Run { header: Header::new("x/y", vec![]), entries: vec![], footer: None };
    let runs = [
        ("ricart-agrawala", stored("ricart-agrawala.run")),
        ("chang-roberts", stored("chang-roberts.run")),
        ("faults", stored("faults.run")),
        ("wild", wild()),
        ("nothing", nothing),
    ];
    for (name, run) in runs {
        std::fs::write(folder.join(format!("{name}.tex")), tikz(&run, &Options::of(CONDITIONS)))
            .unwrap();
        let said = Command::new("pdflatex")
            .args(["-interaction=nonstopmode", "-halt-on-error", name])
            .current_dir(&folder)
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success(), "{name}: {log}");
        assert!(log.contains("(1 page"), "{name} is one page: {log}");
        assert!(!log.contains("Missing character"), "{name}: {log}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
