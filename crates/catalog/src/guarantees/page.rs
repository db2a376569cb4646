//! The table as a page of the docs.

use super::{Bounds, CONDITIONS, Cell, GuaranteeRow, title};

/// The meaning of the signs in the cells.
pub const LEGEND: &[(&str, &str)] = &[
    ("yes", "every run was explored, and none violates it"),
    ("no (k)", "a run of k steps violates it"),
    (
        "≤k in r",
        "not decided for clients that ask for ever; with r requests each, every run was seen, none leaves \
         anyone waiting for ever, and nobody is overtaken more than k times",
    ),
    ("? (d)", "undecided: no run of fewer than d steps violates it"),
    ("–", "not applicable: no process ever has this role"),
    ("n=2", "found in a smaller group than the rest"),
];

/// The whole table as a page of the docs.
pub fn page(rows: &[GuaranteeRow], bounds: Bounds) -> String {
    let mut page = format!(
        "# Guarantees, computed\n\n\
         Every cell is a search of all runs of a small group, of {} nodes unless said otherwise, in which\n\
         everyone asks (or starts) once; for starvation, again and again.\n\n",
        bounds.nodes
    );
    for (sign, meaning) in LEGEND {
        page += &format!("- **{sign}**: {meaning}\n");
    }
    page += &format!(
        "\nA search gives up beyond {} states; a cell that it gave up is tried again in a smaller group.\n\
         Starvation needs clients that ask for ever. Most algorithms count something that then grows for\n\
         ever (a clock, a fence), so that no state comes twice, and neither a proof nor a lasso can be\n\
         had: then a cell says how far clients with r requests each were seen to be safe. With r requests\n\
         each, r·(n − 1) is the most that anyone could be overtaken. Who waits in a deadlock starves, too.\n\n\
         Under a fault that the data sheet rules out, a *no* is no mistake of the algorithm: it says what\n\
         the assumption is for. Channels are FIFO but under *reordering*. One process crashes and stays\n\
         down, and everyone is told, in his own time; it is *idle* if its client wants nothing and it is at\n\
         rest, *waiting* or *holder* as its client is, *arbiter* if its client wants nothing but it has work\n\
         for others in hand. A process that waits or holds and has such work counts as waiting or holder.\n\n\
         Made by `konklave guarantees --markdown --cache docs/guarantees.json`, where the numbers of\n\
         states are, too; with `--witnesses DIR` every *no* is written down as a run.\n",
        bounds.states
    );
    for rows in rows.chunk_by(|a, b| a.algorithm == b.algorithm) {
        section(rows, bounds, &mut page);
    }
    page
}

/// The rows of one algorithm, and the command for each *no*.
fn section(rows: &[GuaranteeRow], bounds: Bounds, page: &mut String) {
    let (algorithm, nodes) = (&rows[0].algorithm, rows[0].nodes);
    let size = if nodes == bounds.nodes { String::new() } else { format!(", {nodes} nodes") };
    *page += &format!("\n## {algorithm}{size}\n\n| | {} |\n", CONDITIONS.join(" | "));
    *page += &format!("|---|{}\n", "---|".repeat(CONDITIONS.len()));
    for row in rows {
        let cells: Vec<String> = row.cells.iter().map(|cell| cell.beside(nodes)).collect();
        *page += &format!("| {} | {} |\n", title(&row.property), cells.join(" | "));
    }
    let mut commands: Vec<&str> = Vec::new();
    for command in rows.iter().flat_map(|row| &row.cells).filter_map(shown) {
        // A deadlock is in two rows.
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    if !commands.is_empty() {
        *page += "\n<details><summary>violating runs</summary>\n\n```sh\n";
        *page += &commands.join("\n");
        *page += "\n```\n\n</details>\n";
    }
}

/// The command that shows a *no*.
fn shown(cell: &Cell) -> Option<&str> {
    match cell {
        Cell::No { command, .. } => Some(command),
        Cell::Yes { .. } | Cell::Bypass { .. } | Cell::Never | Cell::Bounded { .. } => None,
    }
}
