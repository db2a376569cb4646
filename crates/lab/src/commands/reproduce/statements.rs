//! The statements of the sources: a file for each part.

mod bully;
mod elections;
mod faults;
mod groups;
mod performance;
mod permissions;
mod quorums;
mod report;
mod ring;
mod tokens;

use super::Statement;

/// All statements, grouped by chapter, in the order of the sources.
pub(super) fn statements() -> Vec<&'static Statement> {
    let chapters = chapters();
    let mut statements: Vec<&Statement> = parts().collect();
    statements
        .sort_by_key(|statement| chapters.iter().position(|chapter| *chapter == statement.chapter));
    statements
}

/// All chapters, in the order of the sources.
pub(super) fn chapters() -> Vec<&'static str> {
    let mut chapters: Vec<&str> = Vec::new();
    for statement in parts() {
        if !chapters.contains(&statement.chapter) {
            chapters.push(statement.chapter);
        }
    }
    chapters
}

fn parts() -> impl Iterator<Item = &'static Statement> {
    let parts = [
        elections::STATEMENTS,
        bully::STATEMENTS,
        ring::STATEMENTS,
        report::STATEMENTS,
        permissions::STATEMENTS,
        quorums::STATEMENTS,
        tokens::STATEMENTS,
        groups::STATEMENTS,
        performance::STATEMENTS,
        faults::STATEMENTS,
    ];
    parts.into_iter().flatten()
}
