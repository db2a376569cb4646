//! Garcia-Molina's invitation algorithm: leaders of groups that merge.
//!
//! Each process begins as the coordinator of a group of its own. Coordinators look for other coordinators and invite
//! them, with all their members, into a new group; a process that is left alone founds a group again.
//!
//! A wrong suspicion only splits a group, so nothing but the time until groups merge depends on delays. There may be
//! several leaders, but only one for each group number: a count in stable storage, and the id of the coordinator.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Request, ring};
use crate::election::Indication;

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Invitation {
    status: Status,
    group: GroupNumber,
    /// The number of groups that this process founded, in stable storage.
    count: u32,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// The number of a group: unique, and a later group of the same coordinator has a greater one.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct GroupNumber {
    count: u32,
    coordinator: ProcessId,
}

/// The role of a process in its group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Status {
    /// It leads the group.
    Coordinator {
        /// The processes that follow it.
        members: ProcessSet,
        /// The other coordinators that the present check has found.
        found: ProcessSet,
    },
    /// It founds a new group, and waits for the invited processes.
    Inviting {
        /// The processes that have accepted.
        members: ProcessSet,
    },
    /// It has told the members of the new group that it is complete.
    Readying {
        /// All members.
        members: ProcessSet,
        /// The members that have not confirmed.
        awaited: ProcessSet,
    },
    /// It has accepted an invitation, and waits for the group to be ready.
    Invited,
    /// It follows the coordinator of the group.
    Member,
}

/// The messages: four questions with their answers, and the invitation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Asks whether the receiver is a coordinator.
    AreYouCoordinator,
    /// The answer.
    Coordinator(bool),
    /// Asks the coordinator whether the sender is still in its group.
    AreYouThere(GroupNumber),
    /// The answer.
    There(GroupNumber, bool),
    /// Invites into this group.
    Invite(GroupNumber),
    /// The sender accepts the invitation.
    Accept(GroupNumber),
    /// Whether the acceptance was in time.
    Accepted(GroupNumber, bool),
    /// The group is complete.
    Ready(GroupNumber),
    /// The sender follows the coordinator.
    Confirm(GroupNumber),
}

/// The timers, each of one status.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Coordinator: the next check for other coordinators.
    Check,
    /// Coordinator: the answers to the check are complete.
    Answers,
    /// Coordinator: no higher coordinator has sent an invitation, so this one does.
    Merge,
    /// Inviting: the acceptances are complete.
    Accepts,
    /// Readying: a confirmation is overdue.
    Confirms,
    /// Invited: the group should be ready.
    Ready,
    /// Member: the next question to the coordinator.
    Ask,
    /// Member: the answer of the coordinator is overdue.
    There,
}

impl Process for Invitation {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = u32;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.recover(ctx);
    }

    fn on_recover(&mut self, saved: Option<u32>, ctx: &mut Context<'_, Self>) {
        self.count = saved.unwrap_or(0);
        self.recover(ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match self.status {
            Status::Coordinator { .. } => {
                self.announce(ctx);
                ctx.cancel_timer(Timer::Check);
                self.check(ctx);
            }
            Status::Member => self.announce(ctx),
            // The outcome of the merge is announced.
            Status::Inviting { .. } | Status::Readying { .. } | Status::Invited => {}
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::AreYouCoordinator => {
                let yes = matches!(self.status, Status::Coordinator { .. });
                ctx.send(from, Message::Coordinator(yes));
            }
            Message::Coordinator(true) => {
                if let Status::Coordinator { found, .. } = &mut self.status {
                    found.insert(from);
                }
            }
            Message::Coordinator(false) => {}
            Message::AreYouThere(group) => {
                ctx.send(from, Message::There(group, self.has_member(from, group)));
            }
            Message::There(group, yes) if self.status == Status::Member && group == self.group => {
                if !yes {
                    return self.recover(ctx);
                }
                ctx.cancel_timer(Timer::There);
                ctx.set_timer(Timer::Ask, 2 * self.rules.timeout);
            }
            Message::There(..) => {}
            Message::Invite(group) => self.on_invite(group, ctx),
            Message::Accept(group) => self.on_accept(from, group, ctx),
            Message::Accepted(group, in_time) => {
                if self.status == Status::Invited && group == self.group && !in_time {
                    self.recover(ctx);
                }
            }
            Message::Ready(group) => self.on_ready(group, ctx),
            Message::Confirm(group) => self.on_confirm(from, group, ctx),
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Check => self.check(ctx),
            Timer::Answers => self.on_answers(ctx),
            Timer::Merge => self.merge(ctx),
            Timer::Accepts => self.make_ready(ctx),
            Timer::Confirms | Timer::Ready | Timer::There => self.recover(ctx),
            Timer::Ask => {
                ctx.send(self.group.coordinator, Message::AreYouThere(self.group));
                ctx.set_timer(Timer::There, self.rules.timeout);
            }
        }
    }
}

impl Invitation {
    /// The process it follows; itself if it leads; none while groups merge.
    pub fn leader(&self) -> Option<ProcessId> {
        match self.status {
            Status::Coordinator { .. } | Status::Member => Some(self.group.coordinator),
            Status::Inviting { .. } | Status::Readying { .. } | Status::Invited => None,
        }
    }

    /// Founds a group of its own.
    fn recover(&mut self, ctx: &mut Context<'_, Self>) {
        self.new_group(ctx);
        self.lead(ProcessSet::new(), ctx);
    }

    /// Takes a group number that was never used.
    fn new_group(&mut self, ctx: &mut Context<'_, Self>) {
        self.count += 1;
        self.save_count(ctx);
        self.group = GroupNumber { count: self.count, coordinator: ctx.me() };
    }

    fn lead(&mut self, members: ProcessSet, ctx: &mut Context<'_, Self>) {
        self.change(Status::Coordinator { members, found: ProcessSet::new() }, ctx);
        self.announce(ctx);
        ctx.set_timer(Timer::Check, 4 * self.rules.timeout);
    }

    /// Looks for other coordinators.
    fn check(&mut self, ctx: &mut Context<'_, Self>) {
        let Status::Coordinator { found, .. } = &mut self.status else { return };
        found.clear();
        if ctx.group_size() > 1 {
            ctx.send_to_others(Message::AreYouCoordinator);
            ctx.set_timer(Timer::Answers, self.rules.timeout);
        }
    }

    fn on_answers(&mut self, ctx: &mut Context<'_, Self>) {
        let Status::Coordinator { found, .. } = &self.status else { return };
        if found.is_empty() || !self.rules.permits_invitation(self.count) {
            ctx.set_timer(Timer::Check, 4 * self.rules.timeout);
        } else {
            ctx.set_timer(Timer::Merge, self.rules.patience);
        }
    }

    /// Invites the found coordinators and the own members into a new group.
    fn merge(&mut self, ctx: &mut Context<'_, Self>) {
        let inviting = Status::Inviting { members: ProcessSet::new() };
        let Status::Coordinator { mut members, found } = self.change(inviting, ctx) else { return };
        members.union_with(&found);
        ctx.indicate(Indication::Deposed);
        self.new_group(ctx);
        members.iter().for_each(|p| ctx.send(p, Message::Invite(self.group)));
        ctx.set_timer(Timer::Accepts, 2 * self.rules.timeout);
    }

    fn on_invite(&mut self, group: GroupNumber, ctx: &mut Context<'_, Self>) {
        // A process that is on its way into another group does not accept, nor does it accept a copy.
        let merges = self.leader().is_none();
        if merges || group.coordinator == ctx.me() || group == self.group {
            return;
        }
        ctx.indicate(Indication::Deposed);
        if let Status::Coordinator { members, .. } = self.change(Status::Invited, ctx) {
            // The whole group accepts the invitation.
            members.iter().for_each(|p| ctx.send(p, Message::Invite(group)));
        }
        self.group = group;
        ctx.send(group.coordinator, Message::Accept(group));
        ctx.set_timer(Timer::Ready, 4 * self.rules.timeout);
    }

    fn on_accept(&mut self, from: ProcessId, group: GroupNumber, ctx: &mut Context<'_, Self>) {
        let in_time = if let Status::Inviting { members } = &mut self.status
            && group == self.group
        {
            members.insert(from);
            true
        } else {
            self.has_member(from, group)
        };
        ctx.send(from, Message::Accepted(group, in_time));
    }

    /// The acceptances are complete.
    fn make_ready(&mut self, ctx: &mut Context<'_, Self>) {
        let Status::Inviting { members } = &self.status else { return };
        let members = members.clone();
        if members.is_empty() {
            return self.lead(members, ctx);
        }
        members.iter().for_each(|p| ctx.send(p, Message::Ready(self.group)));
        self.change(Status::Readying { awaited: members.clone(), members }, ctx);
        ctx.set_timer(Timer::Confirms, self.rules.timeout);
    }

    fn on_ready(&mut self, group: GroupNumber, ctx: &mut Context<'_, Self>) {
        let accepted = matches!(self.status, Status::Invited | Status::Member);
        if !accepted || group != self.group {
            return;
        }
        if self.status == Status::Invited {
            self.change(Status::Member, ctx);
            self.announce(ctx);
            ctx.set_timer(Timer::Ask, 2 * self.rules.timeout);
        }
        ctx.send(group.coordinator, Message::Confirm(group));
    }

    fn on_confirm(&mut self, from: ProcessId, group: GroupNumber, ctx: &mut Context<'_, Self>) {
        let Status::Readying { members, awaited } = &mut self.status else { return };
        if group == self.group && awaited.remove(from) && awaited.is_empty() {
            let members = std::mem::take(members);
            self.lead(members, ctx);
        }
    }

    /// Changes the status, and stops the timers of the old one.
    fn change(&mut self, status: Status, ctx: &mut Context<'_, Self>) -> Status {
        let before = std::mem::replace(&mut self.status, status);
        let timers: &[Timer] = match before {
            Status::Coordinator { .. } => &[Timer::Check, Timer::Answers, Timer::Merge],
            Status::Inviting { .. } => &[Timer::Accepts],
            Status::Readying { .. } => &[Timer::Confirms],
            Status::Invited => &[Timer::Ready],
            Status::Member => &[Timer::Ask, Timer::There],
        };
        timers.iter().for_each(|timer| ctx.cancel_timer(*timer));
        before
    }

    /// Whether `from` is a member of the present group of this coordinator.
    fn has_member(&self, from: ProcessId, group: GroupNumber) -> bool {
        let members = match &self.status {
            Status::Coordinator { members, .. } | Status::Readying { members, .. } => members,
            Status::Inviting { .. } | Status::Invited | Status::Member => return false,
        };
        group == self.group && members.contains(from)
    }

    /// Indicates the coordinator; count and id make one number.
    fn announce(&self, ctx: &mut Context<'_, Self>) {
        let GroupNumber { count, coordinator } = self.group;
        let place = ctx.group().place(coordinator).expect("coordinators are members");
        let epoch = count.saturating_mul(ctx.group_size() as u32).saturating_add(place as u32);
        ring::announce(coordinator, epoch, ctx);
    }
}
