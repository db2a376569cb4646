//! `why`: the reasons as sentences, the most important first.

use konklave::{Holder, LockStatus, MemberStatus, Status, Waiter, Why, WhyState};

use super::report::{NO_VIEW, advised, called, hears, mode, refusals};
use crate::protocol::{Explanation, counted};

pub(super) fn explain(why: &Why, status: &Status) -> Explanation {
    let mut reasons = Vec::new();
    // A lock, a semaphore and an election may share the name. All that are in use are explained.
    let others = |lock: &&LockStatus| lock.name == why.name && lock.kind != "lock";
    let locks: Vec<&LockStatus> =
        why.lock.iter().chain(status.locks.iter().filter(others)).collect();
    let free = match why.state {
        WhyState::NoGroup => {
            let missing = advised(status).unwrap_or("it is looking for other agents".into());
            reasons.push(format!("this agent is in no group: {missing}"));
            reasons.extend(refusals(status));
            false
        }
        WhyState::NoQuorum => {
            reasons.push(
                "this agent hears no majority of the voters, so it grants nothing".to_owned(),
            );
            reasons.extend(refusals(status));
            false
        }
        WhyState::Deadlock => {
            reasons.push("deadlock: its holders and its waiters wait for each other".to_owned());
            false
        }
        WhyState::Frozen | WhyState::Held | WhyState::Free => locks.iter().all(|l| can_be_had(l)),
    };
    for lock in &locks {
        if locks.len() > 1 {
            let kind =
                if lock.kind == "campaign" { "an election" } else { &*format!("a {}", lock.kind) };
            reasons.push(format!("as {kind}:"));
        }
        if let Some(slots) = lock.permits {
            reasons.push(format!("slots held: {} of {slots}", lock.holders.len()));
        }
        holders(lock, why, status, &mut reasons);
        queue(lock, &mut reasons);
    }
    let quorum = why.quorum;
    reasons.push(match quorum.of {
        0 => format!("majority: {NO_VIEW}"),
        _ => format!(
            "majority: {}{}",
            hears(quorum),
            if quorum.heard < quorum.needed { ": too few" } else { "" }
        ),
    });
    if free && locks.iter().all(|lock| lock.holders.is_empty()) {
        reasons.insert(0, "it has no holder and no waiters".into());
    }
    let mut cycle: Vec<String> = why
        .cycle
        .iter()
        .map(|(node, session, lock)| {
            let party = (*node, *session);
            let label =
                label_of(status, lock, party).unwrap_or_else(|| format!("session {session}"));
            format!("{} ({label}) waits for {lock}", name_of(status, *node))
        })
        .collect();
    let own = locks.iter().find_map(|lock| waits_for_itself(lock));
    if let Some(own) = own.filter(|_| cycle.is_empty()) {
        let node = name_of(status, own.node);
        cycle.push(format!(
            "{node} ({}) waits for a lock that the command around it holds",
            own.label
        ));
    }
    Explanation { schema: "konklave.why/1".into(), name: why.name.clone(), free, reasons, cycle }
}

/// Whether a request now would be granted at once: it has no waiters, and no holder, only an unused cached
/// one, or a free slot.
fn can_be_had(lock: &LockStatus) -> bool {
    let unused = |h: &Holder| h.used == Some(false) && !h.frozen;
    let room = match lock.permits {
        Some(slots) => lock.holders.len() < slots as usize,
        None => lock.holders.iter().all(unused),
    };
    room && lock.queue.is_empty()
}

/// A waiter whose own session holds the lock: a command under the lock has asked for it again.
fn waits_for_itself(lock: &LockStatus) -> Option<&Waiter> {
    lock.queue.iter().find(|waiter| {
        lock.holders.iter().any(|h| (h.node, h.session) == (waiter.node, waiter.session))
    })
}

/// The label of the waiter `party` in the queue of `lock`.
fn label_of(status: &Status, lock: &str, party: (u32, u32)) -> Option<String> {
    let locks = status.locks.iter().filter(|l| l.name == lock);
    let waiters = locks.flat_map(|l| &l.queue);
    let mut own = waiters.filter(|w| (w.node, w.session) == party && !w.label.is_empty());
    own.next().map(|w| w.label.clone())
}

fn name_of(status: &Status, node: u32) -> String {
    let member = status.members.iter().find(|member| member.node == node);
    called(member.map_or("", |m| &m.name), node)
}

fn seconds(milliseconds: u64) -> String {
    format!("{:.1} s", milliseconds as f64 / 1e3)
}

fn holders(lock: &LockStatus, why: &Why, status: &Status, reasons: &mut Vec<String>) {
    for holder in &lock.holders {
        let node = called(&holder.name, holder.node);
        let verb = if lock.kind == "campaign" { "leads" } else { "holds it" };
        let mut reason = format!(
            "{node} ({}) {verb}, {}, token {}, for {}",
            holder.label,
            mode(&holder.mode),
            holder.token,
            seconds(holder.since_ms)
        );
        if holder.revoked {
            reason.push_str("; an operator took it: its command must end before its deadline");
        } else if holder.used == Some(false) {
            reason.push_str("; it is cached there, unused, and moves when another client asks");
        }
        if let Some(left) = holder.valid_for_ms {
            reason.push_str(&format!(
                "; safe for {} if the majority falls silent now",
                seconds(left)
            ));
        }
        reasons.push(reason);
        let seen = why.holders.iter().chain(&status.members).find(|m| m.node == holder.node);
        match seen {
            _ if holder.frozen => reasons.push(format!(
                "{node} is gone: the lock stays taken until the lease of {node} has run out"
            )),
            Some(member) if member.node != status.node => reasons.push(heard(&node, member)),
            Some(_) => {}
            None => reasons.push(format!("{node} is not in the view")),
        }
    }
}

fn heard(node: &str, member: &MemberStatus) -> String {
    let mut text = match member.heard_ms {
        Some(ago) => format!("{node} was last heard {} ago", seconds(ago)),
        None => format!("{node} has not been heard yet"),
    };
    if member.suspected {
        text.push_str(", and is suspected of a crash: the group excludes it if a majority agrees");
    } else if !member.connected {
        text.push_str("; this agent has no connection to it");
    }
    text
}

fn queue(lock: &LockStatus, reasons: &mut Vec<String>) {
    const SHOWN: usize = 10;
    for (i, waiter) in lock.queue.iter().take(SHOWN).enumerate() {
        let node = if waiter.name.is_empty() { "?" } else { &waiter.name };
        let mut reason = format!(
            "place {} in the queue: {node} ({}), {}",
            i + 1,
            waiter.label,
            mode(&waiter.mode)
        );
        if waiter.priority != 0 {
            reason.push_str(&format!(", priority {}", waiter.priority));
        }
        reasons.push(reason);
    }
    if lock.queue.len() > SHOWN {
        let more = (lock.queue.len() - SHOWN) as u64;
        reasons.push(format!("{} not shown", counted(more, "more waiter")));
    }
}
