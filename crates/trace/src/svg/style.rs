//! The looks of a picture, on light and dark pages.

/// The style sheet.
pub(super) fn sheet() -> String {
    let shades = |shade: fn(&(&'static str, &'static str)) -> &'static str| -> String {
        let colours = COLOURS.iter().map(shade).enumerate();
        let rules = colours.map(|(i, c)| format!(".k{i}{{stroke:{c}}}.f{i}{{fill:{c}}}\n"));
        rules.collect()
    };
    let (light, dark) = (shades(|colour| colour.0), shades(|colour| colour.1));
    format!("{STYLE}{light}@media (prefers-color-scheme:dark){{\n{DARK}{dark}}}")
}

/// Colours that everyone can tell apart (Okabe and Ito), the clearest first; for a dark page a
/// lighter shade of each.
pub(crate) const COLOURS: [(&str, &str); 6] = [
    ("#0072b2", "#56a8e0"),
    ("#d55e00", "#f08a3c"),
    ("#009e73", "#2cc79b"),
    ("#b4568c", "#e090bd"),
    ("#5f6a72", "#b3bec6"),
    ("#2f9bd8", "#8fd0f7"),
];

const STYLE: &str = "
text{font-family:system-ui,'Segoe UI','Helvetica Neue','DejaVu Sans',sans-serif;fill:#1b1f24}
.page{fill:#fff}
.title{font-size:19px;font-weight:600}
.sub{font-size:13px;fill:#57606a}
.name{font-size:14px;font-weight:600;text-anchor:end}
.small{text-anchor:middle}
.lane{stroke:#8c959f;stroke-width:1.2}
.grid{stroke:#d8dee4;stroke-width:1}
.axis{stroke:#57606a;stroke-width:1}
.wide{stroke:#57606a;stroke-width:3}
.moment{fill:#8c959f;fill-opacity:.1}
.tick{font-size:11px;fill:#57606a;text-anchor:middle}
.back{fill:#fff;fill-opacity:.82}
.arrow{fill:none;stroke-width:1.6}
.again{stroke-dasharray:7 3}
.lost{stroke-dasharray:4 3}
.pending{stroke-dasharray:2 4}
.cross{stroke:#b3001b;stroke-width:2.4;fill:none}
.point{fill:#1b1f24}
.ask{fill:#fff;stroke:#1b1f24;stroke-width:1.6}
.detect{fill:#b3001b}
.mark{fill:#1b1f24;font-style:italic}
.waiting{fill:#e69f00;fill-opacity:.45}
.inside{fill:#ffce5c;stroke:#a87400;stroke-width:1.2}
.leading{fill:#f0e442;stroke:#8a8000;stroke-width:1.2}
.following{fill:#b8ae00;fill-opacity:.4}
.paused{stroke:#fff;stroke-width:3;stroke-dasharray:2 5}
.down{stroke:#fff;stroke-width:3;stroke-dasharray:5 5}
.inbar{fill:#3d2c00}
.band{fill:#8c959f;fill-opacity:.16}
.gap{fill:#fff;fill-opacity:.75}
.gapside{stroke:#8c959f;stroke-width:1;stroke-dasharray:2 3}
.bad{stroke:#b3001b;stroke-width:1.6;stroke-dasharray:6 3}
.badtext{fill:#b3001b;font-size:12px;font-weight:600;text-anchor:middle}
.key{font-size:12px}
";

const DARK: &str = "text{fill:#e6edf3}.page{fill:#0d1117}.sub,.tick{fill:#9aa4ae}
.lane{stroke:#6e7781}.grid{stroke:#21262d}.axis,.wide{stroke:#9aa4ae}.back{fill:#0d1117}
.point{fill:#e6edf3}.ask{fill:#0d1117;stroke:#e6edf3}.mark{fill:#e6edf3}
.cross,.bad{stroke:#ff7b86}.detect,.badtext{fill:#ff7b86}
.inside{fill:#b57f00;stroke:#ffce5c}.leading{fill:#8a8000;stroke:#f0e442}
.following{fill:#f0e442}.inbar{fill:#fff}
.paused,.down{stroke:#0d1117}.gap{fill:#0d1117}
";
