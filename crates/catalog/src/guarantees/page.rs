//! The table as a page of the docs.

use super::{Bounds, CONDITIONS, Cell, FURTHER, GuaranteeRow, title};

/// The meaning of the signs in the cells.
pub const LEGEND: &[(&str, &str)] = &[
    ("yes", "every run was explored, and none violates it"),
    ("no (k)", "a run of k steps violates it"),
    (
        "≤k in r",
        "undecided for clients that make requests for ever; with r requests each, every run was explored: no \
         client waits for ever or is overtaken more than k times",
    ),
    ("? (d)", "undecided: no run of fewer than d steps violates it"),
    ("–", "not applicable: no process ever has this role, or no message is ever sent"),
    ("n=2", "found in a smaller group than the rest"),
    (
        SYNCHRONOUS,
        "the algorithm assumes known time bounds, and so does the search: a timer fires only if no message is in flight",
    ),
];

/// Stands beside the name of an algorithm that is searched under the assumption of known time bounds.
pub const SYNCHRONOUS: &str = "--synchronous";

/// The name of the algorithm of `row`, and how it is searched.
pub fn head(row: &GuaranteeRow, nodes: usize) -> String {
    let size = if row.nodes == nodes { String::new() } else { format!(", {} nodes", row.nodes) };
    let timing = if row.synchronous { format!(", {SYNCHRONOUS}") } else { String::new() };
    format!("{}{size}{timing}", row.algorithm)
}

/// The whole table as a page of the docs.
pub fn page(rows: &[GuaranteeRow], bounds: Bounds) -> String {
    let mut page = format!(
        "# Guarantees, computed\n\n\
         Every cell is a search of all runs of a small group, of {} nodes unless noted. In it, every client makes\n\
         one request (or starts once); for starvation, clients make requests again and again.\n\n",
        bounds.nodes
    );
    for (sign, meaning) in LEGEND {
        let sign = if sign.starts_with("--") { format!("`{sign}`") } else { format!("**{sign}**") };
        page += &format!("- {sign}: {meaning}\n");
    }
    page += &format!(
        "\nA search stops after {} states; an undecided cell is tried again in a smaller group, then with {FURTHER} times as\n\
         many states and one request of each client. Algorithms that never end, or end by chance, have states without\n\
         end, so more states would not decide their cells.\n\
         Starvation is judged with clients that make requests for ever. In most algorithms a counter then grows for\n\
         ever (a clock, a fencing token). So no state occurs twice, and the search finds neither a proof nor a lasso.\n\
         Such a cell gives the result for clients with r requests each. With r requests each, a client can be\n\
         overtaken at most r·(n − 1) times. A client that waits in a deadlock starves, too.\n\n\
         If the data sheet rules out a fault, a *no* is no mistake of the algorithm: it shows why the algorithm\n\
         needs the assumption. Channels are FIFO except under *reordering*. In the columns of crashes, one process\n\
         crashes and stays down, and every other process learns of it at some time. The crashed process is *waiting* or\n\
         *holder* if its client waits or holds. If its client is idle, the process is *idle*; but it is *idle, with the\n\
         token* if it has the token, and *arbiter* if it has work for others: a vote given, a queue, or a message on its\n\
         way to it. The *coordinator* is the process that every message goes from or to; it has no other role. The\n\
         table of [tolerance](tolerance.md) has the same roles.\n\n\
         Happened-before order is judged with one message of the application: it can put two requests in order.\n\n\
         The command `{} guarantees --markdown --cache book/guarantees.json` makes this page; the file also has\n\
         the numbers of states. With `--witnesses DIR` it records a run for every *no*.\n",
        bounds.states,
        crate::program()
    );
    for rows in rows.chunk_by(|a, b| a.algorithm == b.algorithm) {
        section(rows, bounds, &mut page);
    }
    page
}

/// The rows of one algorithm, and the command for each *no*.
fn section(rows: &[GuaranteeRow], bounds: Bounds, page: &mut String) {
    let nodes = rows[0].nodes;
    let head = head(&rows[0], bounds.nodes);
    *page += &format!("\n## {head}\n\n| | {} |\n", CONDITIONS.join(" | "));
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
