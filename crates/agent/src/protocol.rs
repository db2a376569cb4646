//! The protocol between clients and the agent, over the agent's Unix socket.
//!
//! A frame is its length (four bytes, most significant first), then one JSON object. The first frame of a
//! client is [`Request::Hello`]. The connection is the client's session: when it is closed, by either side,
//! the agent releases all grants of the session. book/en/reference/socket-protocol.md describes the protocol for
//! other languages.

mod frame;
mod payload;
mod report;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use frame::{FrameError, Frames, MAX_FRAME, encode};
pub use payload::Payload;
pub use report::{
    AgentState, ClaimKind, Explanation, Finding, Holder, LockReport, MemberReport, Status,
    ViewReport, Waiter,
};

use crate::clock::Moment;

/// The version of this protocol. Clients of another version are refused with the reason.
pub const VERSION: u32 = 1;

/// The longest name of a lock, an election or a group, in bytes.
pub const MAX_NAME: usize = 255;

/// A frame of a client: a request and a number for its answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The answer has the same number.
    pub id: u64,
    /// The request.
    #[serde(flatten)]
    pub request: Request,
}

/// A request of a client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Request {
    /// The first request: version, label and time to live of the session.
    Hello {
        /// [`VERSION`].
        protocol: u32,
        /// The text that `status` shows for this client.
        label: String,
        /// How long the session lives without a [`Request::KeepAlive`], in ms. Without it, as long as the
        /// agent's lease, and 5 s at least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl: Option<u64>,
        /// The token of the lock under which this client runs, if any, as in `lock a -- lock b`. So `why` and
        /// `doctor` find deadlocks between nested commands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<String>,
    },
    /// Request a lock, a slot of a semaphore, or leadership. Answered when it is granted or refused. From
    /// then on, the number of the call identifies the claim.
    Acquire {
        /// The name.
        name: String,
        /// Exclusive, shared, a slot or leadership.
        claim: ClaimKind,
        /// How long to wait, in ms: 0 fails at once if it is not free, null waits for ever.
        wait: Option<u64>,
        /// The lease of this grant, in ms, if not the agent's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease: Option<u64>,
    },
    /// Go on with a grant after a restart of the agent. Answered like `acquire`, with the same token; refused if
    /// the lease of the grant is over. The number of this call identifies the claim.
    Resume {
        /// The name.
        name: String,
        /// The kind of grant.
        claim: ClaimKind,
        /// The token of the grant.
        token: String,
        /// The last deadline that the client knows. It must not have passed: the client still holds the grant.
        until: Moment,
        /// The lease of the grant, in ms, if not the agent's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease: Option<u64>,
    },
    /// Release the grant of call `claim`, or cancel its request.
    Release {
        /// The number of the `acquire` call.
        claim: u64,
    },
    /// Keep the session alive until `at` + ttl.
    KeepAlive {
        /// When the client sent it.
        at: Moment,
    },
    /// Report the group, and the locks and elections whose names start with a prefix.
    Status {
        /// Report only names that start with this.
        prefix: String,
        /// Report at most this many names.
        limit: usize,
    },
    /// Explain why `name` is not free.
    Why {
        /// The name.
        name: String,
    },
    /// Take grants from their holders.
    Revoke {
        /// The name.
        name: String,
        /// Whether the name is an election, not a lock.
        election: bool,
        /// Whether the name is a semaphore, not a lock.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        slots: bool,
        /// Take only the grant with this token.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
    /// Send changes ([`Event::Changed`]) from now on.
    Watch,
    /// Send a message to a group.
    Send {
        /// The group.
        group: String,
        /// The message.
        payload: Payload,
    },
    /// Send the messages and views of a group ([`Event::Message`], [`Event::View`]) from now on.
    Receive {
        /// The group.
        group: String,
    },
    /// Report the contents of the flight recorder.
    Record,
    /// Check the agent and its group.
    Examine,
    /// Report the metrics in the Prometheus text format.
    Metrics,
}

/// A frame of the agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// The answer to a call.
    Answer {
        /// The call's number.
        id: u64,
        /// The answer.
        #[serde(flatten)]
        answer: Answer,
    },
    /// An event.
    Event(Event),
    /// The answer to a frame without a readable number.
    Unaddressed(Answer),
}

/// The answer to a call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// To `hello`.
    Welcome {
        /// The agent's version of the protocol.
        protocol: u32,
        /// The node's name.
        node: String,
        /// The session's time to live, in ms. The agent may have changed the client's.
        ttl: u64,
        /// How often to send [`Request::KeepAlive`], in ms.
        keep_alive: u64,
    },
    /// The request is granted.
    Granted {
        /// The fencing token, greater than all earlier ones of this name.
        token: String,
        /// The deadline. Keep-alives extend it.
        until: Moment,
    },
    /// The request is refused.
    Refused {
        /// The reason.
        why: Refusal,
        /// The reason, for people.
        message: String,
    },
    /// The request has been performed.
    Done,
    /// To `keep-alive`: the deadline of each grant.
    Alive {
        /// Claims and their deadlines.
        until: Vec<(u64, Moment)>,
    },
    /// To `status`.
    Status(Box<Status>),
    /// To `why`.
    Why(Box<Explanation>),
    /// To `record` and `metrics`.
    Text {
        /// The text.
        text: String,
    },
    /// To `examine`.
    Findings {
        /// The results of the checks.
        findings: Vec<Finding>,
    },
    /// The request failed.
    Failed {
        /// The kind of failure.
        kind: FailureKind,
        /// The reason, for people.
        message: String,
    },
}

/// Why a request was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// It is taken, and the client does not wait.
    Busy,
    /// The client's wait timed out.
    Timeout,
    /// The client cancelled the request.
    Cancelled,
    /// There is no such grant to go on with: its lease is over.
    Lost,
}

/// Why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The request is invalid.
    Usage,
    /// The client may not use the agent.
    Forbidden,
    /// The group cannot perform it now.
    Unavailable,
    /// The claim or grant does not exist.
    Unknown,
}

/// An event that the agent reports.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The client has lost a grant: it must stop its work and release the claim.
    Lost {
        /// The number of the `acquire` call.
        claim: u64,
        /// The reason.
        why: String,
    },
    /// The agent is about to leave the group: the client must end its work and release its grants.
    Leaving,
    /// A change in the group.
    Changed {
        /// The kind of change.
        kind: String,
        /// The name it concerns.
        name: String,
        /// A description, for people.
        what: String,
        /// When the agent learned of it, in seconds of its wall clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<f64>,
        /// The node it concerns, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<String>,
        /// The token, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
    /// A message of a group.
    Message {
        /// The group.
        group: String,
        /// The sender.
        from: String,
        /// The number of messages that the agent has received in this group, this one included.
        number: u64,
        /// The message.
        payload: Payload,
    },
    /// The agent was out of a group for a while: an unknown number of messages may be missing here.
    Gap {
        /// The group.
        group: String,
    },
    /// A view of a group.
    View {
        /// The group.
        group: String,
        /// The members, the most senior first.
        members: Vec<String>,
    },
}

/// Checks a name: not empty, not too long, no control characters.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the name is empty".into());
    }
    if name.len() > MAX_NAME {
        return Err(format!("the name has {} bytes; {MAX_NAME} at most are allowed", name.len()));
    }
    if name.chars().any(char::is_control) {
        return Err("the name contains control characters, which are not allowed".into());
    }
    Ok(())
}

/// A number and its noun, which gets an s unless the number is 1.
#[must_use]
pub(crate) fn counted(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A text that is safe to print on a terminal: each control character becomes a question mark.
#[must_use]
pub fn legible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A duration in ms, as in the protocol.
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &impl Serialize) -> String {
        serde_json::to_string(value).expect("these are plain values")
    }

    #[test]
    fn frames_keep_their_format() {
        let hello =
            Request::Hello { protocol: 1, label: "x".into(), ttl: Some(5000), within: None };
        assert_eq!(
            text(&Call { id: 1, request: hello }),
            r#"{"id":1,"op":"hello","protocol":1,"label":"x","ttl":5000}"#
        );
        let (name, claim) = ("reports".into(), ClaimKind::Exclusive);
        let request = Request::Acquire { name, claim, wait: Some(0), lease: None };
        assert_eq!(
            text(&Call { id: 2, request }),
            r#"{"id":2,"op":"acquire","name":"reports","claim":{"kind":"exclusive"},"wait":0}"#
        );
        let request =
            Request::Revoke { name: "a".into(), election: false, slots: false, token: None };
        assert_eq!(
            text(&Call { id: 3, request }),
            r#"{"id":3,"op":"revoke","name":"a","election":false}"#
        );
        let (name, claim) = ("reports".into(), ClaimKind::Exclusive);
        let (token, until) = ("1.2.3".into(), Moment(7));
        assert_eq!(
            text(&Call {
                id: 4,
                request: Request::Resume { name, claim, token, until, lease: None }
            }),
            r#"{"id":4,"op":"resume","name":"reports","claim":{"kind":"exclusive"},"token":"1.2.3","until":7}"#
        );
        let answer = Answer::Granted { token: "1.2.3".into(), until: Moment(7) };
        assert_eq!(
            text(&Reply::Answer { id: 2, answer }),
            r#"{"id":2,"answer":"granted","token":"1.2.3","until":7}"#
        );
        let lost = Event::Lost { claim: 2, why: "revoked".into() };
        assert_eq!(text(&Reply::Event(lost)), r#"{"event":"lost","claim":2,"why":"revoked"}"#);
    }

    #[test]
    fn answers_and_events_are_distinguished() {
        for text in [
            r#"{"id":2,"answer":"done"}"#,
            r#"{"event":"leaving"}"#,
            r#"{"id":9,"answer":"refused","why":"busy","message":"no"}"#,
            r#"{"answer":"failed","kind":"usage","message":"no"}"#,
            r#"{"event":"changed","kind":"held","name":"a","what":"by b","at":1.5,"node":"b"}"#,
        ] {
            let reply: Reply = serde_json::from_str(text).expect("a reply");
            assert_eq!(serde_json::to_string(&reply).expect("text"), text);
        }
    }

    #[test]
    fn names_have_limits() {
        assert!(check_name("a/b c").is_ok());
        assert!(check_name("").is_err());
        assert!(check_name("a\nb").is_err());
        assert!(check_name(&"x".repeat(MAX_NAME)).is_ok());
        assert!(check_name(&"x".repeat(MAX_NAME + 1)).is_err());
    }
}
