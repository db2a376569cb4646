//! `why`: the reasons in words, the weightiest first.

use konklave::{Holder, LockStatus, MemberStatus, Status, Waiter, Why, WhyState};

use super::report::{NO_VIEW, advised, called, mode};
use crate::protocol::Explanation;

pub(super) fn explain(why: &Why, status: &Status) -> Explanation {
    let mut reasons = Vec::new();
    // The same name may be a lock, a semaphore, an election: all that are in use.
    let others = |lock: &&LockStatus| lock.name == why.name && lock.kind != "lock";
    let locks: Vec<&LockStatus> =
        why.lock.iter().chain(status.locks.iter().filter(others)).collect();
    let free = match why.state {
        WhyState::NoGroup => {
            let missing = why.missing.as_deref().unwrap_or("it looks for others");
            reasons.push(format!("this agent is in no group: {}", advised(missing)));
            false
        }
        WhyState::NoQuorum => {
            reasons.push("this agent hears no majority: nothing is granted here".to_owned());
            false
        }
        WhyState::Deadlock => {
            reasons.push("those who hold it and want it wait for each other".to_owned());
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
            reasons.push(format!("{} of {slots} slots are held", lock.holders.len()));
        }
        holders(lock, why, status, &mut reasons);
        queue(lock, &mut reasons);
    }
    let quorum = why.quorum;
    reasons.push(match quorum.of {
        0 => format!("majority: {NO_VIEW}"),
        of => format!(
            "majority: {of} voters, {} needed, {} heard by this agent{}",
            quorum.needed,
            quorum.heard,
            if quorum.heard < quorum.needed { ": too few" } else { "" }
        ),
    });
    if free && locks.iter().all(|lock| lock.holders.is_empty()) {
        reasons.insert(0, "nobody holds it, nobody waits".into());
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
        cycle.push(format!("{node} ({}) waits for what the command around it holds", own.label));
    }
    Explanation { schema: "konklave.why/1".into(), name: why.name.clone(), free, reasons, cycle }
}

/// Whether one who asks now gets it: nobody has it, or someone keeps it for nobody, or not all slots
/// are taken; and nobody waits.
fn can_be_had(lock: &LockStatus) -> bool {
    let unused = |h: &Holder| h.used == Some(false) && !h.frozen;
    let room = match lock.permits {
        Some(slots) => lock.holders.len() < slots as usize,
        None => lock.holders.iter().all(unused),
    };
    room && lock.queue.is_empty()
}

/// One who waits for a lock that it holds already: a command under it asks for it again.
fn waits_for_itself(lock: &LockStatus) -> Option<&Waiter> {
    lock.queue.iter().find(|waiter| {
        lock.holders.iter().any(|h| (h.node, h.session) == (waiter.node, waiter.session))
    })
}

/// What who waits for `lock` says of itself.
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
            reason.push_str("; an operator took it, and it has until its deadline to let it go");
        } else if holder.used == Some(false) {
            reason.push_str("; nobody uses it just now: it moves when someone asks");
        }
        if let Some(left) = holder.valid_for_ms {
            reason.push_str(&format!("; safe for {} without a sign of a majority", seconds(left)));
        }
        reasons.push(reason);
        let seen = why.holders.iter().chain(&status.members).find(|m| m.node == holder.node);
        match seen {
            _ if holder.frozen => reasons.push(format!(
                "{node} is gone: the lock stays taken until {node} must know that it lost it"
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
        None => format!("{node} was never heard"),
    };
    if member.suspected {
        text.push_str(", and is suspected: a view without it is on its way if a majority agrees");
    } else if !member.connected {
        text.push_str("; there is no connection to it");
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
        reasons.push(format!("and {} more wait", lock.queue.len() - SHOWN));
    }
}
