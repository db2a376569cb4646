//! The choice of the algorithm for exclusive locks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The algorithm that serves the exclusive locks of a group. All members must have the same.
///
/// The table replicates every lock to every member, and needs a majority for each grant. The others are
/// classic algorithms that are *lifted* into a view: a view change restarts them with the present holders and
/// waiters, and a grant is known at its node only. They serve exclusive locks only; shared locks need the
/// table. Semaphores, campaigns, barriers and groups are always in the table.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum LockAlgorithm {
    /// The replicated table: a majority knows every grant. Also serves shared locks.
    #[default]
    Table,
    /// Naimi and Tréhel: a token follows a tree of last requests. Few messages, however many members.
    NaimiTrehel,
    /// Suzuki and Kasami: a token, requested from all members. Always two message delays.
    SuzukiKasami,
    /// Raymond: a token in a fixed tree.
    Raymond,
    /// Ricart and Agrawala: permission of all members for each grant.
    RicartAgrawala,
    /// Maekawa: permission of a quorum.
    Maekawa,
    /// Lamport: a queue replicated to all members.
    Lamport,
    /// Central coordinator: one member per lock.
    Central,
    /// Singhal: a token, requested from the members that may have it.
    Singhal,
    /// Sanders: permission of the members of an information structure, here of two hubs.
    Sanders,
    /// Cao and Singhal: permission of a quorum, passed on by the holder directly.
    CaoSinghal,
}

impl LockAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 11] = [
        Self::Table,
        Self::NaimiTrehel,
        Self::SuzukiKasami,
        Self::Raymond,
        Self::RicartAgrawala,
        Self::Maekawa,
        Self::Lamport,
        Self::Central,
        Self::Singhal,
        Self::Sanders,
        Self::CaoSinghal,
    ];

    /// The name in options and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::NaimiTrehel => "naimi-trehel",
            Self::SuzukiKasami => "suzuki-kasami",
            Self::Raymond => "raymond",
            Self::RicartAgrawala => "ricart-agrawala",
            Self::Maekawa => "maekawa",
            Self::Lamport => "lamport",
            Self::Central => "central",
            Self::Singhal => "singhal",
            Self::Sanders => "sanders",
            Self::CaoSinghal => "cao-singhal",
        }
    }
}

impl fmt::Display for LockAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LockAlgorithm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let name: String = name.chars().take(64).collect();
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name).ok_or_else(|| {
            Error::Config(format!("unknown lock algorithm {name:?}: expected one of {}", names()))
        })
    }
}

#[cfg(test)]
mod tests {
    use konklave_algorithms::group::lifted::NAMES;

    use super::*;

    #[test]
    fn every_liftable_algorithm_has_its_name() {
        let mut names: Vec<&str> = LockAlgorithm::ALL[1..].iter().map(|m| m.name()).collect();
        let mut all = NAMES.to_vec();
        names.sort_unstable();
        all.sort_unstable();
        assert_eq!(names, all);
        for algorithm in LockAlgorithm::ALL {
            assert_eq!(algorithm.to_string().parse::<LockAlgorithm>().ok(), Some(algorithm));
        }
        let wrong = "bakery".parse::<LockAlgorithm>().expect_err("not one of ours").to_string();
        assert!(wrong.contains("naimi-trehel"), "{wrong}");
    }
}
