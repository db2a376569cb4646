//! What the agent reports: the group, its locks, and why someone waits.

use serde::{Deserialize, Serialize};

/// What is claimed of a name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Claim {
    /// The lock, alone.
    Exclusive,
    /// The lock, with other readers.
    Shared,
    /// One of so many slots.
    Slot {
        /// How many there are.
        of: u32,
    },
    /// Leadership.
    Leadership {
        /// Higher ones go first.
        priority: i32,
    },
}

/// All about the group, as one agent sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The name of the schema.
    pub schema: String,
    /// The agent's name.
    pub node: String,
    /// What the agent can do now.
    pub standing: Standing,
    /// The view.
    pub view: ViewReport,
    /// The locks and semaphores.
    pub locks: Vec<LockReport>,
    /// The elections.
    pub elections: Vec<LockReport>,
    /// How many names were left out, beyond the limit.
    pub more: usize,
    /// How many clients are connected to this agent.
    pub sessions: usize,
}

/// What an agent can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Looks for others; there is no view yet.
    Forming,
    /// In a view of a majority: grants are made.
    Primary,
    /// Without a majority, or between views: nothing is granted.
    Blocked,
    /// Leaves, or was excluded.
    Out,
}

/// A view of the group.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ViewReport {
    /// Grows when all members were down at once.
    pub generation: u32,
    /// Grows with each view.
    pub epoch: u64,
    /// How many voters a decision needs.
    pub quorum: usize,
    /// How many voters this agent hears, itself included.
    pub heard: usize,
    /// Who leads the view.
    pub coordinator: Option<String>,
    /// The members, in order of seniority.
    pub members: Vec<MemberReport>,
}

/// A member of the view.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MemberReport {
    /// What people call it.
    pub name: String,
    /// Its number in the group.
    pub id: u32,
    /// Which of its lives this is.
    pub incarnation: u32,
    /// Whether it is the agent that reports.
    pub me: bool,
    /// Whether it has a vote; not while it is entering.
    pub votes: bool,
    /// Whether a connection to it stands.
    pub connected: bool,
    /// Whether it is suspected to be down.
    pub suspected: bool,
    /// When it was last heard, in seconds ago; nothing for the agent itself.
    pub heard: Option<f64>,
}

/// A lock, a semaphore or an election.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LockReport {
    /// `lock`, `semaphore` or `election`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// How many may have it at a time, if it is a semaphore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Who has it.
    pub holders: Vec<Holder>,
    /// Who waits, the next one first.
    pub waiters: Vec<Waiter>,
}

/// One who has a lock.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// At which node.
    pub node: String,
    /// What the client says of itself.
    pub label: String,
    /// The fencing token.
    pub token: String,
    /// What of it.
    pub mode: String,
    /// For how long, in seconds, as far as the agent that reports knows.
    pub held: f64,
    /// How long it is safe from now on, in seconds; only the holder's own agent knows.
    pub safe: Option<f64>,
    /// Whether an operator took it, and it has not let it go yet.
    #[serde(default)]
    pub taken: bool,
    /// What else there is to say: its node is gone, or nobody uses it just now.
    pub remark: Option<String>,
}

/// One who waits for a lock.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Waiter {
    /// At which node.
    pub node: String,
    /// What the client says of itself.
    pub label: String,
    /// What of it.
    pub mode: String,
    /// Its priority, in elections.
    pub priority: i32,
}

/// Why a name is not free.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// The name of the schema.
    pub schema: String,
    /// The name in question.
    pub name: String,
    /// Whether it could be had at once.
    pub free: bool,
    /// The reasons, in words, the weightiest first.
    pub reasons: Vec<String>,
    /// Names and owners that wait for each other in a circle, if they do.
    pub cycle: Vec<String>,
}

/// What an examination found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked at.
    pub what: String,
    /// Whether it is well.
    pub well: bool,
    /// What was seen, and what to do.
    pub detail: String,
}
