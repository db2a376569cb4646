//! What the sources say, and the command that shows it: a file for each part of the sources.

mod elections;
mod groups;
mod permissions;
mod quorums;
mod ring;
mod tokens;

use super::Claim;

/// Every claim, in the order of the sources.
pub(super) fn claims() -> impl Iterator<Item = &'static Claim> + Clone {
    let parts = [
        elections::CLAIMS,
        ring::CLAIMS,
        permissions::CLAIMS,
        quorums::CLAIMS,
        tokens::CLAIMS,
        groups::CLAIMS,
    ];
    parts.into_iter().flatten()
}

/// The chapters, each once, in the order of the sources.
pub(super) fn chapters() -> Vec<&'static str> {
    let mut chapters: Vec<&str> = Vec::new();
    for claim in claims() {
        if !chapters.contains(&claim.chapter) {
            chapters.push(claim.chapter);
        }
    }
    chapters
}
