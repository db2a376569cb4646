//! What clients and the agent say to each other, over the agent's Unix socket.
//!
//! A frame is its length, four bytes, most significant first, and then one JSON object. The first
//! frame of a client is [`Request::Hello`]; the connection is the client's session: when it is closed,
//! by whom and however, all that the session holds is given back. book/en/operate/agents.md has the protocol for
//! other languages.

mod frame;
mod payload;
mod report;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use frame::{FrameError, Frames, MAX_FRAME, encode};
pub use payload::Payload;
pub use report::{
    Claim, Explanation, Finding, Holder, LockReport, MemberReport, Standing, Status, ViewReport,
    Waiter,
};

use crate::clock::Moment;

/// The version of this protocol. Another one is refused with words.
pub const VERSION: u32 = 1;

/// The longest name of a lock, an election or a group, in bytes.
pub const MAX_NAME: usize = 255;

/// What a client sends: a number for the answer, and what it wants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The answer has the same number.
    pub id: u64,
    /// What is wanted.
    #[serde(flatten)]
    pub request: Request,
}

/// What a client wants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Request {
    /// The first words: who speaks, and in which version.
    Hello {
        /// [`VERSION`].
        protocol: u32,
        /// What status shows of this client.
        label: String,
        /// How long the session lives without a [`Request::KeepAlive`], in ms.
        ttl: u64,
        /// The token under which this client itself runs, if it does: `lock a -- lock b`. Whoever waits
        /// for `a` then waits for what this one waits for, and `why` sees it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<String>,
    },
    /// Ask for a lock, a slot of a semaphore, or leadership. Answered when it is granted or refused.
    /// The number of the call names the claim from then on.
    Acquire {
        /// The name.
        name: String,
        /// What of it.
        claim: Claim,
        /// How long to wait, in ms: 0 does not wait, nothing waits for ever.
        wait: Option<u64>,
    },
    /// Give back what was granted to, or take back what was asked with, call `claim`.
    Release {
        /// The number of the call that asked.
        claim: u64,
    },
    /// "I live", said at a moment of the client's. The session lives until `at` + ttl.
    KeepAlive {
        /// When it was said.
        at: Moment,
    },
    /// All about the group, and the locks whose names start with a prefix.
    Status {
        /// Only names that start so.
        prefix: String,
        /// At most so many names.
        limit: usize,
    },
    /// Why is `name` not mine?
    Why {
        /// The name.
        name: String,
    },
    /// Take it from whoever has it.
    Revoke {
        /// The name.
        name: String,
        /// A lock or leadership.
        election: bool,
        /// The slots of a semaphore, not a lock.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        slots: bool,
        /// Only what was granted with this token.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
    /// Tell me of changes ([`Event::Changed`]) from now on.
    Watch,
    /// Send a message to a group.
    Send {
        /// The group.
        group: String,
        /// The message.
        payload: Payload,
    },
    /// Join a group and tell me its views and messages ([`Event::Message`], [`Event::View`]).
    Receive {
        /// The group.
        group: String,
    },
    /// What the flight recorder remembers.
    Record,
    /// Look at yourself: is all well?
    Examine,
    /// Have the metrics as Prometheus reads them.
    Metrics,
}

/// What the agent sends.
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
    /// Something that happened.
    Event(Event),
    /// The answer to what had no number that could be read.
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
        /// The session's time to live, in ms; may differ from what was wished.
        ttl: u64,
        /// How often to say [`Request::KeepAlive`], in ms.
        keep_alive: u64,
    },
    /// It is yours.
    Granted {
        /// The fencing token: each later one is greater.
        token: String,
        /// Yours at least until then, as of now.
        until: Moment,
    },
    /// It is not yours.
    Refused {
        /// Why not.
        why: Refusal,
        /// In words.
        message: String,
    },
    /// Done.
    Done,
    /// To `keep-alive`: until when each claim is safe.
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
        /// What was found.
        findings: Vec<Finding>,
    },
    /// It could not be done.
    Failed {
        /// Of which kind.
        kind: Trouble,
        /// In words.
        message: String,
    },
}

/// Why a claim was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Someone else has it, and the client would not wait.
    Busy,
    /// The time was over.
    Timeout,
    /// The client took it back.
    Cancelled,
}

/// Why something could not be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// It was asked in a wrong way.
    Usage,
    /// The peer is not allowed to.
    Forbidden,
    /// The group cannot do it now.
    Unavailable,
    /// There is no such thing.
    Unknown,
}

/// Something that happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A claim that was granted is no longer yours.
    Lost {
        /// The number of the call that asked.
        claim: u64,
        /// Why.
        why: String,
    },
    /// The agent goes away in order: give back what you hold.
    Leaving,
    /// Something changed; in words.
    Changed {
        /// What kind of thing.
        kind: String,
        /// Which.
        name: String,
        /// In words.
        what: String,
        /// When the agent learned of it, in seconds of its wall clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<f64>,
        /// Which node it is about, if it is about one.
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
        /// How many messages the agent has seen of this group, this one included.
        number: u64,
        /// The message.
        payload: Payload,
    },
    /// The agent was out of a group for a while: messages may be missing here, nobody knows how many.
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

/// Whether `name` can name something: not empty, not too long, no control characters.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a name is not empty".into());
    }
    if name.len() > MAX_NAME {
        return Err(format!("a name has at most {MAX_NAME} bytes, this one {}", name.len()));
    }
    if name.chars().any(char::is_control) {
        return Err("a name has no control characters".into());
    }
    Ok(())
}

/// A text that does nothing to a terminal: each control character is shown as a question mark.
#[must_use]
pub fn legible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A duration as the protocol has it.
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
    fn the_words_on_the_wire_stay_as_they_are() {
        let hello = Request::Hello { protocol: 1, label: "x".into(), ttl: 5000, within: None };
        assert_eq!(
            text(&Call { id: 1, request: hello }),
            r#"{"id":1,"op":"hello","protocol":1,"label":"x","ttl":5000}"#
        );
        let request =
            Request::Acquire { name: "reports".into(), claim: Claim::Exclusive, wait: Some(0) };
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
        let answer = Answer::Granted { token: "1.2.3".into(), until: Moment(7) };
        assert_eq!(
            text(&Reply::Answer { id: 2, answer }),
            r#"{"id":2,"answer":"granted","token":"1.2.3","until":7}"#
        );
        let lost = Event::Lost { claim: 2, why: "revoked".into() };
        assert_eq!(text(&Reply::Event(lost)), r#"{"event":"lost","claim":2,"why":"revoked"}"#);
    }

    #[test]
    fn answers_and_events_are_told_apart() {
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
