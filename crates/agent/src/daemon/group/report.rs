//! What the library tells, in the words of the protocol.

use std::time::UNIX_EPOCH;

use konklave::{Event, Node, Status as Told};
use serde_json::json;

use crate::protocol::{
    Finding, Holder, LockReport, MemberReport, Standing, Status, ViewReport, Waiter,
};
use crate::recorder::Line;

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

/// A name, or the number of one who has none.
pub(super) fn called(name: &str, id: u32) -> String {
    if name.is_empty() { format!("#{id}") } else { name.to_owned() }
}

/// What of a name is held or wanted: of a semaphore a slot, as its flag calls it.
pub(super) fn mode(told: &str) -> &str {
    if told == "permit" { "slot" } else { told }
}

pub(super) fn status(told: &Told, prefix: &str, limit: usize, sessions: usize) -> Status {
    let (mut locks, mut elections, mut more) = (Vec::new(), Vec::new(), 0);
    let exact = |lock: &&konklave::LockStatus| lock.name == prefix;
    let longer = |lock: &&konklave::LockStatus| lock.name.starts_with(prefix) && !exact(lock);
    // Those of exactly that name first: who asks for one of many need not read them all.
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
        standing: standing(told),
        view: view(told),
        locks,
        elections,
        more,
        sessions,
    }
}

/// Whether something can be granted there.
pub(super) fn is_primary(told: &Told) -> bool {
    told.member && told.missing.is_none() && told.quorum.heard >= told.quorum.needed
}

fn standing(told: &Told) -> Standing {
    match told.view {
        _ if is_primary(told) => Standing::Primary,
        Some(_) => Standing::Blocked,
        None => Standing::Forming,
    }
}

fn view(told: &Told) -> ViewReport {
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
            (false, true, _) => Some("taken from it, ending".into()),
            (false, false, Some(false)) => Some("kept, not used".into()),
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

/// What is missing for a group, and with which flag a group is founded: the library has none.
pub(in crate::daemon) fn advised(missing: &str) -> String {
    [
        ("told to do it alone", "--found-alone"),
        ("found a new generation here", "--found-alone"),
        ("how many founders there are", "--founders N"),
    ]
    .iter()
    .fold(missing.to_owned(), |text, (way, flag)| text.replace(way, &format!("{way} ({flag})")))
}

/// What happened: its kind, its name, and the whole in words.
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
                what.push_str(&format!(", entering {}", next(entering.len()).join(" ")));
            }
            told("view", &format!("{generation}.{epoch}"), what)
        }
        Event::Excluded => told("excluded", "", "the others went on without this agent".into()),
        Event::Dissolved => {
            let what =
                "too many members began another life, or went on in another group: all begin anew";
            told("dissolved", "", what.into())
        }
        Event::Left => told("left", "", "this agent left".into()),
        Event::Blocked => told("blocked", "", "no majority answers: nothing is granted".into()),
        Event::Connected { node, name } => {
            told("connected", &called(name, *node), "is there".into())
        }
        Event::Suspected { node, name } => {
            told("suspected", &called(name, *node), "does not answer, or is gone".into())
        }
        Event::Refused { address, reason, again: 0 } => told("stranger", address, reason.clone()),
        Event::Refused { address, reason, again } => {
            told("stranger", address, format!("{reason} ({again} times more)"))
        }
        Event::Network { trouble: Some(trouble) } => told("network", "", trouble.clone()),
        Event::Network { trouble: None } => told("network", "", "works".into()),
        Event::Disk { trouble: Some(trouble) } => told("disk", "", trouble.clone()),
        Event::Disk { trouble: None } => told("disk", "", "takes what must survive".into()),
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
        Event::Missed { missed } => told("missed", "", format!("{missed} events")),
        other => told("other", "", format!("{other:?}")),
    }
}

/// What is said of majorities before there is a view.
pub(super) const NO_VIEW: &str = "there is no view yet, and so nobody to count";

/// Whether a majority is heard, and how many of it may fail.
fn majority(quorum: konklave::Quorum, find: &mut impl FnMut(&str, bool, String)) {
    let enough = quorum.needed > 0 && quorum.heard >= quorum.needed;
    let detail = format!("{} of {} heard, {} needed", quorum.heard, quorum.of, quorum.needed);
    find("majority", enough, detail);
    let spare = quorum.heard.saturating_sub(quorum.needed);
    match quorum.of {
        0..=2 => find(
            "crashes",
            false,
            format!("{} voters: none may fail; three or more survive one", quorum.of),
        ),
        _ => find("crashes", spare > 0, format!("{spare} more may fail before nothing is granted")),
    }
}

/// What a doctor sees.
pub(super) fn examine(told: &Told, protected: bool, kept: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |what: &str, well: bool, detail: String| {
        findings.push(Finding { what: what.to_owned(), well, detail });
    };
    let quorum = told.quorum;
    match (&told.missing, told.member) {
        (None, true) => find("group", true, "in a view".into()),
        (None, false) => find("group", false, "in no view".into()),
        (Some(missing), _) => find("group", false, advised(missing)),
    }
    if quorum.of == 0 {
        find("majority", false, NO_VIEW.into());
    } else {
        majority(quorum, &mut find);
    }
    for member in told.members.iter().filter(|member| member.suspected || !member.connected) {
        let name = called(&member.name, member.node);
        let what = if member.suspected { "suspected" } else { "no connection" };
        find("member", false, format!("{name}: {what}; is its agent running, and reachable?"));
    }
    match &told.trouble {
        None if kept => find("data directory", true, "written".into()),
        None => find("data directory", true, "none: nothing is kept".into()),
        Some(trouble) => find("data directory", false, trouble.clone()),
    }
    if let Some(trouble) = &told.network {
        find("network", false, trouble.clone());
    }
    let detail = if protected { "key or TLS" } else { "none: fine on loopback only" };
    find("protection", true, detail.into());
    findings
}

/// The messages that passed at our members, as the recorder writes them.
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
