//! Garcia-Molina's invitation algorithm: leaders of groups that merge.
//!
//! Everyone begins as the coordinator of a group of its own. Coordinators look for other
//! coordinators and invite them, with all their members, into a new group. Whoever is left alone
//! founds a group again. A wrong suspicion only splits groups, so nothing depends on time but how
//! soon they merge: there may be several leaders, but only one for each group number.
//!
//! A group number is a count and the coordinator's id; the count is kept in stable storage.

mod sheet;
#[cfg(test)]
mod tests;

use std::time::Duration;

use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use super::{Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Invitation {
    status: Status,
    group: GroupNumber,
    /// In stable storage: how many groups we founded.
    count: u32,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    timeout: Duration,
    /// How long we wait before we invite: the higher our id, the shorter.
    patience: Duration,
    max_count: u32,
    no_persist: bool,
}

/// Which group: no two are the same, and a later one of the same coordinator is greater.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct GroupNumber {
    count: u32,
    coordinator: ProcessId,
}

/// Where a process stands with its group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Status {
    /// It leads the group.
    Coordinator {
        /// Those who follow it.
        members: ProcessSet,
        /// Other coordinators that the present check has found.
        found: ProcessSet,
    },
    /// It founds a new group, and waits for those it invited.
    Inviting {
        /// Who has come.
        members: ProcessSet,
    },
    /// It has told the members of the new group that all are there.
    Readying {
        /// All members.
        members: ProcessSet,
        /// Those who have not confirmed.
        awaited: ProcessSet,
    },
    /// It has accepted an invitation, and waits for the group to be ready.
    Invited,
    /// It follows the coordinator of the group.
    Member,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Are you a coordinator?
    AreYouCoordinator,
    /// Yes or no.
    Coordinator(bool),
    /// Am I still in your group?
    AreYouThere(GroupNumber),
    /// Yes or no.
    There(GroupNumber, bool),
    /// Come into this group.
    Invite(GroupNumber),
    /// I come.
    Accept(GroupNumber),
    /// Good; or too late.
    Accepted(GroupNumber, bool),
    /// All are there: the group is ready.
    Ready(GroupNumber),
    /// I am, too.
    Confirm(GroupNumber),
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Coordinator: time to look for others.
    Check,
    /// Coordinator: all that answer have answered.
    Answers,
    /// Coordinator: nobody higher has invited us, so we invite.
    Merge,
    /// Inviting: all that come have come.
    Accepts,
    /// Readying: all should have confirmed.
    Confirms,
    /// Invited: the group should be ready.
    Ready,
    /// Member: time to ask after the coordinator.
    Ask,
    /// Member: it should have answered.
    There,
}

impl Invitation {
    /// Whom it follows; itself if it leads; nobody while groups merge.
    pub fn leader(&self) -> Option<ProcessId> {
        match self.status {
            Status::Coordinator { .. } | Status::Member => Some(self.group.coordinator),
            Status::Inviting { .. } | Status::Readying { .. } | Status::Invited => None,
        }
    }

    /// Count and id in one number.
    fn epoch(&self, ctx: &Context<'_, Self>) -> u32 {
        let place = ctx.group().place(self.group.coordinator).expect("coordinators are members");
        self.group.count.saturating_mul(ctx.group_size() as u32).saturating_add(place as u32)
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

    /// The number of a group that never was.
    fn new_group(&mut self, ctx: &mut Context<'_, Self>) {
        self.count += 1;
        if !self.settings.no_persist {
            ctx.save(self.count);
        }
        self.group = GroupNumber { count: self.count, coordinator: ctx.me() };
    }

    /// Founds a group of our own.
    fn recover(&mut self, ctx: &mut Context<'_, Self>) {
        self.new_group(ctx);
        self.lead(ProcessSet::new(), ctx);
    }

    fn lead(&mut self, members: ProcessSet, ctx: &mut Context<'_, Self>) {
        self.change(Status::Coordinator { members, found: ProcessSet::new() }, ctx);
        ctx.indicate(Indication::Leading { epoch: self.epoch(ctx) });
        ctx.set_timer(Timer::Check, 4 * self.settings.timeout);
    }

    /// Looks for other coordinators.
    fn check(&mut self, ctx: &mut Context<'_, Self>) {
        let Status::Coordinator { found, .. } = &mut self.status else { return };
        found.clear();
        if ctx.group_size() > 1 {
            ctx.send_to_others(Message::AreYouCoordinator);
            ctx.set_timer(Timer::Answers, self.settings.timeout);
        }
    }

    /// Invites those found and our own members into a new group.
    fn merge(&mut self, ctx: &mut Context<'_, Self>) {
        let inviting = Status::Inviting { members: ProcessSet::new() };
        let Status::Coordinator { mut members, found } = self.change(inviting, ctx) else { return };
        members.union_with(&found);
        ctx.indicate(Indication::Deposed);
        self.new_group(ctx);
        members.iter().for_each(|p| ctx.send(p, Message::Invite(self.group)));
        ctx.set_timer(Timer::Accepts, 2 * self.settings.timeout);
    }

    fn on_invite(&mut self, group: GroupNumber, ctx: &mut Context<'_, Self>) {
        match &self.status {
            // We are on the way into another group, or hear this for the second time.
            Status::Inviting { .. } | Status::Readying { .. } | Status::Invited => return,
            Status::Coordinator { .. } | Status::Member if group.coordinator == ctx.me() => return,
            Status::Coordinator { .. } | Status::Member if group == self.group => return,
            Status::Coordinator { .. } | Status::Member => {}
        }
        ctx.indicate(Indication::Deposed);
        if let Status::Coordinator { members, .. } = self.change(Status::Invited, ctx) {
            // Our whole group comes along.
            members.iter().for_each(|p| ctx.send(p, Message::Invite(group)));
        }
        self.group = group;
        ctx.send(group.coordinator, Message::Accept(group));
        ctx.set_timer(Timer::Ready, 4 * self.settings.timeout);
    }

    fn on_accept(&mut self, from: ProcessId, group: GroupNumber, ctx: &mut Context<'_, Self>) {
        let in_time = group == self.group
            && match &mut self.status {
                Status::Inviting { members } => {
                    members.insert(from);
                    true
                }
                Status::Coordinator { members, .. } | Status::Readying { members, .. } => {
                    members.contains(from)
                }
                Status::Invited | Status::Member => false,
            };
        ctx.send(from, Message::Accepted(group, in_time));
    }

    /// All that come have come.
    fn make_ready(&mut self, ctx: &mut Context<'_, Self>) {
        let Status::Inviting { members } = &self.status else { return };
        let members = members.clone();
        if members.is_empty() {
            return self.lead(members, ctx);
        }
        members.iter().for_each(|p| ctx.send(p, Message::Ready(self.group)));
        self.change(Status::Readying { awaited: members.clone(), members }, ctx);
        ctx.set_timer(Timer::Confirms, self.settings.timeout);
    }

    fn on_ready(&mut self, group: GroupNumber, ctx: &mut Context<'_, Self>) {
        if group != self.group {
            return;
        }
        match self.status {
            Status::Invited => {
                self.change(Status::Member, ctx);
                let leader = Some(group.coordinator);
                ctx.indicate(Indication::Following { leader, epoch: self.epoch(ctx) });
                ctx.set_timer(Timer::Ask, 2 * self.settings.timeout);
            }
            Status::Member => {}
            Status::Coordinator { .. } | Status::Inviting { .. } | Status::Readying { .. } => {
                return;
            }
        }
        ctx.send(group.coordinator, Message::Confirm(group));
    }

    fn on_confirm(&mut self, from: ProcessId, group: GroupNumber, ctx: &mut Context<'_, Self>) {
        let Status::Readying { members, awaited } = &mut self.status else { return };
        if group != self.group {
            return;
        }
        awaited.remove(from);
        if awaited.is_empty() {
            let members = std::mem::take(members);
            self.lead(members, ctx);
        }
    }

    /// Whether `from` belongs to our present group.
    fn has_member(&self, from: ProcessId, group: GroupNumber) -> bool {
        let members = match &self.status {
            Status::Coordinator { members, .. } | Status::Readying { members, .. } => members,
            Status::Inviting { .. } | Status::Invited | Status::Member => return false,
        };
        group == self.group && members.contains(from)
    }
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
                ctx.indicate(Indication::Leading { epoch: self.epoch(ctx) });
                ctx.cancel_timer(Timer::Check);
                self.on_timer(Timer::Check, ctx);
            }
            Status::Member => {
                let leader = Some(self.group.coordinator);
                ctx.indicate(Indication::Following { leader, epoch: self.epoch(ctx) });
            }
            // It will be told.
            Status::Inviting { .. } | Status::Readying { .. } | Status::Invited => {}
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::AreYouCoordinator => {
                let yes = matches!(self.status, Status::Coordinator { .. });
                ctx.send(from, Message::Coordinator(yes));
            }
            Message::Coordinator(yes) => {
                if let Status::Coordinator { found, .. } = &mut self.status
                    && yes
                {
                    found.insert(from);
                }
            }
            Message::AreYouThere(group) => {
                ctx.send(from, Message::There(group, self.has_member(from, group)));
            }
            Message::There(group, yes) => {
                if self.status == Status::Member && group == self.group {
                    if !yes {
                        return self.recover(ctx);
                    }
                    ctx.cancel_timer(Timer::There);
                    ctx.set_timer(Timer::Ask, 2 * self.settings.timeout);
                }
            }
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
            Timer::Answers => {
                let Status::Coordinator { found, .. } = &self.status else { return };
                let limit = self.settings.max_count;
                if found.is_empty() || (limit > 0 && self.count >= limit) {
                    ctx.set_timer(Timer::Check, 4 * self.settings.timeout);
                } else {
                    ctx.set_timer(Timer::Merge, self.settings.patience);
                }
            }
            Timer::Merge => self.merge(ctx),
            Timer::Accepts => self.make_ready(ctx),
            Timer::Confirms | Timer::Ready | Timer::There => self.recover(ctx),
            Timer::Ask => {
                ctx.send(self.group.coordinator, Message::AreYouThere(self.group));
                ctx.set_timer(Timer::There, self.settings.timeout);
            }
        }
    }
}
