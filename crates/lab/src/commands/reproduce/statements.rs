//! The statements of the sources: a file for each part.

mod bully;
mod cao_singhal;
mod central;
mod elections;
mod firewire;
mod groups;
mod maekawa;
mod permissions;
mod report;
mod ring;
mod sanders;
mod singhal;
mod token_ring;
mod tokens;
mod trees;

use super::Statement;

/// All statements, in the order of the sources.
pub(super) fn statements() -> impl Iterator<Item = &'static Statement> {
    let parts = [
        elections::STATEMENTS,
        bully::STATEMENTS,
        ring::STATEMENTS,
        firewire::STATEMENTS,
        trees::STATEMENTS,
        report::STATEMENTS,
        central::STATEMENTS,
        permissions::STATEMENTS,
        maekawa::STATEMENTS,
        sanders::STATEMENTS,
        cao_singhal::STATEMENTS,
        token_ring::STATEMENTS,
        tokens::STATEMENTS,
        singhal::STATEMENTS,
        groups::STATEMENTS,
    ];
    parts.into_iter().flatten()
}

/// All chapters, in the order of the sources.
pub(super) fn chapters() -> Vec<&'static str> {
    let mut chapters: Vec<&str> = statements().map(|statement| statement.chapter).collect();
    chapters.dedup();
    chapters
}
