//! Translates the status and the events of the library into those of the protocol.

use std::time::UNIX_EPOCH;

use konklave::{Event, Node, Remedy, Status as NodeStatus};
use serde_json::json;

use crate::protocol::{
    AgentState, Finding, Holder, LockReport, MemberReport, Status, ViewReport, Waiter, counted,
};
use crate::recorder::Line;

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

/// The name of a node, or its number if it has no name.
pub(super) fn called(name: &str, id: u32) -> String {
    if name.is_empty() { format!("#{id}") } else { name.to_owned() }
}

/// The mode of a holder or waiter. The library's permits are called slots here, as in `--slots`.
pub(super) fn mode(of: &str) -> &str {
    if of == "permit" { "slot" } else { of }
}

pub(super) fn status(told: &NodeStatus, prefix: &str, limit: usize, sessions: usize) -> Status {
    let (mut locks, mut elections, mut more) = (Vec::new(), Vec::new(), 0);
    let exact = |lock: &&konklave::LockStatus| lock.name == prefix;
    let longer = |lock: &&konklave::LockStatus| lock.name.starts_with(prefix) && !exact(lock);
    // Exact matches first, so that a request for one name is not cut off by longer ones.
    for lock in told.locks.iter().filter(exact).chain(told.locks.iter().filter(longer)) {
        if locks.len() + elections.len() >= limit {
            more += 1;
            continue;
        }
        let report = self::lock(lock);
        if lock.kind == "campaign" { &mut elections } else { &mut locks }.push(report);
    }
    Status {
        schema: "konklave.status/1".into(),
        node: called(&told.name, told.node),
        standing: state(told),
        view: view(told),
        locks,
        elections,
        more,
        sessions,
    }
}

/// Whether the node is in a majority, so that it can grant locks.
pub(super) fn is_primary(told: &NodeStatus) -> bool {
    told.member && told.missing.is_none() && told.quorum.heard >= told.quorum.needed
}

fn state(told: &NodeStatus) -> AgentState {
    match told.view {
        _ if is_primary(told) => AgentState::Primary,
        Some(_) => AgentState::Blocked,
        None => AgentState::Forming,
    }
}

fn view(told: &NodeStatus) -> ViewReport {
    let (generation, epoch) = told.view.unwrap_or_default();
    let member = |m: &konklave::MemberStatus| MemberReport {
        name: called(&m.name, m.node),
        id: m.node,
        incarnation: m.incarnation,
        me: m.node == told.node,
        votes: m.votes,
        connected: m.connected,
        suspected: m.suspected,
        heard: m.heard_ms.filter(|_| m.node != told.node).map(seconds),
        identity: m.identity.clone(),
    };
    let members: Vec<MemberReport> = told.members.iter().map(member).collect();
    let coordinator = members.iter().find(|m| Some(m.id) == told.leader).map(|m| m.name.clone());
    let (quorum, heard) = (told.quorum.needed, told.quorum.heard);
    ViewReport { generation, epoch, quorum, heard, coordinator, members }
}

pub(super) fn lock(told: &konklave::LockStatus) -> LockReport {
    let kind = if told.kind == "campaign" { "election" } else { &told.kind };
    let holder = |h: &konklave::Holder| Holder {
        node: called(&h.name, h.node),
        label: h.label.clone(),
        token: h.token.to_string(),
        mode: mode(&h.mode).to_owned(),
        held: seconds(h.since_ms),
        safe: h.valid_for_ms.map(seconds),
        taken: h.revoked,
        remark: match (h.frozen, h.revoked, h.used) {
            (true, ..) => Some("its node is gone".into()),
            (false, true, _) => Some("revoked, still ending".into()),
            (false, false, Some(false)) => Some("cached, unused".into()),
            (false, false, _) => None,
        },
    };
    let waiter = |w: &konklave::Waiter| Waiter {
        node: called(&w.name, w.node),
        label: w.label.clone(),
        mode: mode(&w.mode).to_owned(),
        priority: w.priority,
    };
    LockReport {
        kind: kind.to_owned(),
        name: told.name.clone(),
        slots: told.permits,
        holders: told.holders.iter().map(holder).collect(),
        waiters: told.queue.iter().map(waiter).collect(),
    }
}

/// Why an agent is in no group, and what helps; `None` if nothing is missing. The library has no flags, so they are
/// added here. What is safe comes first: two agents with --found-alone would be two groups.
pub(in crate::daemon) fn advised(told: &NodeStatus) -> Option<String> {
    let missing = told.missing.as_deref()?;
    Some(match told.remedy {
        Some(Remedy::StartFounders) => format!(
            "{missing}\n  start their agents, or open the way to their ports\n  \
             only if they are lost for good: restart one agent with --found-alone"
        ),
        Some(Remedy::StartMembers) => format!(
            "{missing}\n  start their agents, or open the way to their ports\n  \
             only if they are lost for good: restart one agent with --found-alone, which begins a new generation"
        ),
        Some(Remedy::NameFounders) => format!("{missing}\n  set it on all agents: --founders N"),
        Some(Remedy::Reconnect) => format!(
            "{missing}\n  open the way between this machine and the others: each agent must reach every other one"
        ),
        Some(_) | None => missing.to_owned(),
    })
}

/// The refused connections of the last minute, for `doctor` and `why`.
pub(super) fn refusals(told: &NodeStatus) -> impl Iterator<Item = String> + '_ {
    told.refusals.iter().filter(|refused| !refused.caller).map(|refused| {
        format!("{} is refused: {}{}", refused.address, refused.reason, remedy(&refused.reason))
    })
}

/// The remedy for a refusal, if it is more than its reason says.
fn remedy(reason: &str) -> &'static str {
    let about = |word: &str| reason.to_ascii_lowercase().contains(word);
    match () {
        () if about("expired") => {
            "\n  renew the certificate (tls-certificate) on the machine that has it, then reload its agent (HUP)"
        }
        () if about("its lease is") => {
            "\n  all agents need the same --lease and --profile: correct one of them, and restart it"
        }
        () if about("its mutex is") => {
            "\n  all agents need the same --mutex: correct one of them, and restart it"
        }
        () => "",
    }
}

/// The findings about other groups, and about peers that are kept out.
fn outsiders(told: &NodeStatus, find: &mut impl FnMut(&str, bool, String)) {
    for outsider in &told.outsiders {
        let name = called(&outsider.name, outsider.node);
        match outsider.generation {
            Some(generation) => find(
                "split group",
                false,
                format!(
                    "{name} is in another group of the same name (generation {generation}, this one is {}): a lock \
                     may have a holder in each\n  \
                     decide which group goes on, stop the agents of the other one, and let them join it",
                    told.view.unwrap_or_default().0
                ),
            ),
            None => find(
                "outsider",
                false,
                format!(
                    "{name} reaches this agent, but is in no group: it is joining, or does not reach every member \
                     (partial partition)\n  ask its own doctor, and open the way between it and each member"
                ),
            ),
        }
    }
}

/// The kind of an event, the name it concerns, and a description.
pub(super) fn event(event: &Event) -> (String, String, String) {
    let told = |kind: &str, name: &str, what: String| (kind.to_owned(), name.to_owned(), what);
    match event {
        Event::View { generation, epoch, members, entering, names } => {
            let mut names = members.iter().chain(entering).zip(names);
            let mut next = |n: usize| -> Vec<String> {
                names.by_ref().take(n).map(|(id, name)| called(name, *id)).collect()
            };
            let mut what = format!("members {}", next(members.len()).join(" "));
            if !entering.is_empty() {
                what.push_str(&format!(", joining {}", next(entering.len()).join(" ")));
            }
            told("view", &format!("{generation}.{epoch}"), what)
        }
        Event::Excluded => {
            told("excluded", "", "the majority continues without this agent; it rejoins".into())
        }
        Event::Dissolved => {
            let what =
                "too many members restarted, or continued in another group: a new group is founded";
            told("dissolved", "", what.into())
        }
        Event::Left => told("left", "", "this agent left the group".into()),
        Event::Blocked => {
            told("blocked", "", "no majority answers, so this agent grants nothing".into())
        }
        Event::Connected { node, name } => {
            told("connected", &called(name, *node), "connected to this agent".into())
        }
        Event::Suspected { node, name } => {
            told("suspected", &called(name, *node), "it does not answer, or is gone".into())
        }
        Event::Refused { address, reason, again: 0 } => told("stranger", address, reason.clone()),
        Event::Refused { address, reason, again } => {
            let again = counted(*again, "more time");
            told("stranger", address, format!("{reason} ({again})"))
        }
        Event::Network { trouble: Some(trouble) } => told("network", "", trouble.clone()),
        Event::Network { trouble: None } => told("network", "", "it works again".into()),
        Event::Disk { trouble: Some(trouble) } => told("disk", "", trouble.clone()),
        Event::Disk { trouble: None } => {
            told("disk", "", "the data directory can be written again".into())
        }
        Event::Granted { name, token } => told("granted", name, format!("token {token}")),
        Event::Lost { name, why } => told("lost", name, why.to_string()),
        Event::Held { kind, name, node, by, label, token } => {
            let verb = if kind == "campaign" { "leads" } else { "held" };
            told(verb, name, format!("{kind}, by {} ({label}), token {token}", called(by, *node)))
        }
        Event::Freed { kind, name, node, by } => {
            let verb = if kind == "campaign" { "led" } else { "freed" };
            told(verb, name, format!("{kind}, by {}", called(by, *node)))
        }
        Event::Missed { missed } => told("missed", "", counted(*missed, "event")),
        other => {
            let value = serde_json::to_value(other).unwrap_or_default();
            told("other", "", value.to_string())
        }
    }
}

/// How many voters this agent hears, and how many it needs.
pub(super) fn hears(quorum: konklave::Quorum) -> String {
    let voters = counted(quorum.of as u64, "voter");
    format!(
        "this agent hears {} of {voters}, itself included, and needs {}",
        quorum.heard, quorum.needed
    )
}

/// The text about the majority before the first view.
pub(super) const NO_VIEW: &str = "there is no view yet, so there are no voters";

/// Checks whether a majority is heard, and how many more voters may crash.
fn majority(quorum: konklave::Quorum, find: &mut impl FnMut(&str, bool, String)) {
    let enough = quorum.needed > 0 && quorum.heard >= quorum.needed;
    find("majority", enough, hears(quorum));
    let spare = quorum.heard.saturating_sub(quorum.needed);
    let detail = match (quorum.of, spare) {
        (0..=2, _) => format!(
            "{}: the group survives no crash; it needs 3 voters to survive one",
            counted(quorum.of as u64, "voter")
        ),
        (_, 0) => "if one more voter crashes, the group grants nothing".to_owned(),
        _ => format!(
            "{} may crash before the group grants nothing",
            counted(spare as u64, "more voter")
        ),
    };
    find("crashes", quorum.of > 2 && spare > 0, detail);
}

/// Checks the member of this agent and its group, for `doctor`.
pub(super) fn examine(told: &NodeStatus, protected: bool, kept: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |what: &str, well: bool, detail: String| {
        findings.push(Finding { what: what.to_owned(), well, detail });
    };
    let quorum = told.quorum;
    match (&told.missing, told.member) {
        (None, true) => find("group", true, "this agent is a member".into()),
        (None, false) => {
            find("group", false, "this agent is not a member: it has left or is joining".into())
        }
        (Some(_), _) => find("group", false, advised(told).unwrap_or_default()),
    }
    if quorum.of == 0 {
        find("majority", false, NO_VIEW.into());
    } else {
        majority(quorum, &mut find);
    }
    for member in told.members.iter().filter(|member| member.suspected || !member.connected) {
        let name = called(&member.name, member.node);
        let what = if member.suspected { "suspected of a crash" } else { "no connection" };
        find("member", false, format!("{name}: {what}; is its agent running and reachable?"));
    }
    outsiders(told, &mut find);
    refusals(told).for_each(|refusal| find("connection", false, refusal));
    match &told.trouble {
        None if kept => find("data directory", true, "writable".into()),
        None => find("data directory", true, "none (--dev): nothing is stored".into()),
        Some(trouble) => find("data directory", false, trouble.clone()),
    }
    if let Some(trouble) = &told.network {
        find("network", false, trouble.clone());
    }
    let detail = if protected { "key or TLS" } else { "none: safe on loopback only" };
    find("protection", true, detail.into());
    findings
}

/// The last messages that the members sent and received, as lines of a recording.
pub(super) fn passed(nodes: &[Node], life: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    for node in nodes {
        for message in node.messages() {
            let peer = called(&message.name, message.peer);
            let at = message.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            let side = if message.sent { "to" } else { "from" };
            lines.push(Line {
                node: node.name().to_owned(),
                life,
                number: message.count,
                at,
                kind: if message.sent { "sent" } else { "received" }.to_owned(),
                what: json!({ side: peer, "number": message.number, "what": message.what }),
            });
        }
    }
    lines
}
