//! What the sources say, and the command that shows it: a file for each part of the sources.

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

use super::Claim;

/// Every claim, in the order of the sources: what belongs to one chapter stands together.
pub(super) fn claims() -> Vec<&'static Claim> {
    let chapters = chapters();
    let mut claims: Vec<&Claim> = parts().collect();
    claims.sort_by_key(|claim| chapters.iter().position(|chapter| *chapter == claim.chapter));
    claims
}

/// The chapters, each once, in the order of the sources.
pub(super) fn chapters() -> Vec<&'static str> {
    let mut chapters: Vec<&str> = Vec::new();
    for claim in parts() {
        if !chapters.contains(&claim.chapter) {
            chapters.push(claim.chapter);
        }
    }
    chapters
}

fn parts() -> impl Iterator<Item = &'static Claim> {
    let parts = [
        elections::CLAIMS,
        bully::CLAIMS,
        ring::CLAIMS,
        report::CLAIMS,
        permissions::CLAIMS,
        quorums::CLAIMS,
        tokens::CLAIMS,
        groups::CLAIMS,
        performance::CLAIMS,
        faults::CLAIMS,
    ];
    parts.into_iter().flatten()
}
