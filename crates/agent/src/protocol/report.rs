//! The reports of an agent: the group, its locks and elections, explanations and checks.

use serde::{Deserialize, Serialize};

/// The kind of grant that a client requests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ClaimKind {
    /// The lock, exclusively.
    Exclusive,
    /// The lock, shared with other readers.
    Shared,
    /// A slot of a semaphore.
    Slot {
        /// The number of slots.
        of: u32,
    },
    /// Leadership in an election.
    Leadership {
        /// Candidates with a higher priority are elected first.
        priority: i32,
    },
}

/// The group as one agent sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The name of the schema.
    pub schema: String,
    /// The agent's name.
    pub node: String,
    /// The state of the agent.
    pub standing: AgentState,
    /// The view.
    pub view: ViewReport,
    /// The locks and semaphores.
    pub locks: Vec<LockReport>,
    /// The elections.
    pub elections: Vec<LockReport>,
    /// How many names are left out because of the limit.
    pub more: usize,
    /// How many clients are connected to this agent.
    pub sessions: usize,
}

/// The state of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentState {
    /// Looking for other agents; there is no view yet.
    Forming,
    /// In a view with a majority: it grants locks.
    Primary,
    /// Without a majority, or between views: it grants nothing.
    Blocked,
    /// Leaving the group, or excluded from it.
    Out,
}

/// A view of the group.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ViewReport {
    /// Grows when the group is founded anew.
    pub generation: u32,
    /// Grows with each view.
    pub epoch: u64,
    /// How many voters are a majority.
    pub quorum: usize,
    /// How many voters this agent hears, itself included.
    pub heard: usize,
    /// The member that orders the group's decisions.
    pub coordinator: Option<String>,
    /// The members, in order of seniority.
    pub members: Vec<MemberReport>,
}

/// A member of the view.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MemberReport {
    /// The member's name.
    pub name: String,
    /// Its number in the group.
    pub id: u32,
    /// Grows with each restart of the agent.
    pub incarnation: u32,
    /// Whether it is the agent that reports.
    pub me: bool,
    /// Whether it has a vote. A joining member has none yet.
    pub votes: bool,
    /// Whether the agent is connected to it.
    pub connected: bool,
    /// Whether it is suspected of a crash.
    pub suspected: bool,
    /// Seconds since its last sign of life; `None` for the agent itself.
    pub heard: Option<f64>,
    /// The identity that it has proved with its key or its certificate; `deny` shuts it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// A lock, a semaphore or an election.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LockReport {
    /// `lock`, `semaphore` or `election`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The number of slots of a semaphore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// The holders.
    pub holders: Vec<Holder>,
    /// The waiters, the next one first.
    pub waiters: Vec<Waiter>,
}

/// A holder of a lock, a slot or leadership.
///
/// Only the holder's own agent knows the current holder and its deadline; other agents show the last grant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// The node of the holder.
    pub node: String,
    /// The label of the client.
    pub label: String,
    /// The fencing token.
    pub token: String,
    /// `exclusive`, `shared` or `slot`; a leader is `exclusive`.
    pub mode: String,
    /// How long it has been held, in seconds, as far as the reporting agent knows.
    pub held: f64,
    /// How long it is still safe, in seconds; known to the holder's own agent only.
    pub safe: Option<f64>,
    /// Whether an operator revoked it, and the holder has not released it yet.
    #[serde(default)]
    pub taken: bool,
    /// A remark for people: the node is gone, the grant is revoked, or cached without a user.
    pub remark: Option<String>,
}

/// A waiter for a lock, a slot or leadership.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Waiter {
    /// The node of the waiter.
    pub node: String,
    /// The label of the client.
    pub label: String,
    /// `exclusive`, `shared` or `slot`; a leader is `exclusive`.
    pub mode: String,
    /// Its priority, in elections.
    pub priority: i32,
}

/// Why a name is not free.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// The name of the schema.
    pub schema: String,
    /// The name.
    pub name: String,
    /// Whether a request now would be granted at once.
    pub free: bool,
    /// The reasons as sentences, the most important first.
    pub reasons: Vec<String>,
    /// The clients of a deadlock, each waiting for the next; empty if there is none.
    pub cycle: Vec<String>,
}

/// The result of a check.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The subject of the check.
    pub what: String,
    /// Whether the check passed.
    pub well: bool,
    /// The finding, and the remedy.
    pub detail: String,
}
