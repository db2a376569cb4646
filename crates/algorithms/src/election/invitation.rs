//! Garcia-Molina's invitation algorithm: leaders of groups that merge.
//!
//! Everyone begins as the coordinator of a group of its own. Coordinators look for other
//! coordinators and invite them, with all their members, into a new group. Whoever is left alone
//! founds a group again. A wrong suspicion only splits groups, so nothing depends on time but how
//! soon they merge: there may be several leaders, but only one for each group number.
//!
//! A group number is a count and the coordinator's id; the count is kept in stable storage.

use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch, Winner,
};

const EQUAL_WAITS: Mistake = Mistake {
    name: "equal-waits",
    what: "all wait equally long before they invite: two invite each other again and again, and neither comes",
    breaks: "agreement",
    caught_by: "-n 2 --synchronous --clock 1 --time-limit 24 --settled --set timeout=1 --property agreement",
};
const NO_PERSIST: Mistake = Mistake {
    name: "no-persist",
    what: "the count is not saved: a restarted coordinator uses a group number again, and an old READY fits",
    breaks: "growing epochs",
    caught_by: "-n 2 --crash 1 --restart 1 --synchronous --set max-count=2 --property fence",
};

const SHEET: DataSheet = DataSheet {
    name: "invitation",
    title: "Invitation",
    idea: "Everyone leads a group of its own; leaders invite each other until one group is left.",
    source: "H. Garcia-Molina, IEEE Trans. Computers 31(1), 1982",
    assumes: &[Assumption::KnownMembership, Assumption::UniqueIds, Assumption::StableStorage],
    topologies: &[Shape::Complete],
    winner: Some(Winner::Any),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "(2n + 5)(n − 1) until there is one group; then 2(n − 1) every 5 timeouts for \
                      the check, and as many every 2 for the members' questions",
            when: "nothing goes wrong, two delays are shorter than the timeout",
            bound: |f| peace(f).map(|(timeout, t)| messages(f, timeout, t)),
        },
        Cost {
            metric: Metric::Time,
            formula: "7 timeouts + 2T",
            when: "nothing goes wrong, two delays are shorter than the timeout",
            bound: |f| peace(f).map(|(timeout, t)| Bound::AtMost(7.0 * timeout + 2.0 * t + MOMENT)),
        },
    ],
    guarantees: &[
        Guarantee::UniquePerEpoch,
        Guarantee::GrowingEpochs,
        Guarantee::Agreement,
        Guarantee::LiveLeader,
        Guarantee::Termination,
    ],
    fence: Some("the group number: count and id in one"),
    mistakes: &[EQUAL_WAITS, NO_PERSIST],
    switches: &[
        Switch {
            name: "timeout",
            values: &["5", "<number>"],
            what: "how long to wait for an answer, in T: two delays at least; all other times are multiples",
        },
        Switch {
            name: "max-count",
            values: &["0", "<number>"],
            what: "for checks: who has counted so far invites nobody any more; 0: no limit",
        },
    ],
};

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

    fn at_rest(&self) -> bool {
        self.leader().is_some()
    }
}

impl Algorithm for Invitation {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;
    const ENDLESS: bool = true;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let timeout = setup.unit * setup.chosen(&SHEET, "timeout").number();
        let above = setup.group.members().iter().filter(|p| **p > me).count() as u32;
        let equal = *setup.makes(&EQUAL_WAITS);
        Self {
            status: Status::Member,
            group: GroupNumber::default(),
            count: 0,
            settings: Fixed(Settings {
                timeout,
                patience: if equal { timeout } else { timeout * above },
                max_count: setup.chosen(&SHEET, "max-count").number(),
                no_persist: *setup.makes(&NO_PERSIST),
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        if setup.chosen(&SHEET, "timeout").number() == 0 {
            return Err(SetupError("timeout must be at least 1".into()));
        }
        Ok(())
    }
}

/// A timer takes a moment even if it is set to none, in T.
const MOMENT: f64 = 0.01;

/// The timeout and the longest delay, if nothing goes wrong: then all look for others at once, and
/// the highest invites all before anyone else has waited long enough to.
fn peace(f: &Facts<'_>) -> Option<(f64, f64)> {
    let number = |name| f64::from(f.setup.chosen(&SHEET, name).number());
    let calm = f.undisturbed && f.setup.down.is_empty() && f.setup.mistake.is_none();
    let unlimited = f.at_once && number("max-count") == 0.0;
    let t = f.delay_max.filter(|t| calm && unlimited && 2.0 * t < number("timeout"))?;
    Some((number("timeout"), t))
}

/// After four timeouts everyone asks all others whether they are coordinators; then each but the
/// highest is invited, accepts, is accepted, hears that the group is ready and confirms. The group
/// is ready after seven timeouts: from then on it looks for others four timeouts after the last
/// look, which takes one, and a member asks after the coordinator two timeouts after the last
/// answer.
fn messages(f: &Facts<'_>, timeout: f64, t: f64) -> Bound {
    let others = f.n() - 1.0;
    let union = (2.0 * f.n() + 5.0) * others;
    let times = |begin: f64, period: f64| {
        ((f.elapsed - begin * timeout) / (period * timeout) + 1.0).floor().max(0.0)
    };
    let most = union + 2.0 * others * (times(11.0, 5.0) + times(9.0, 2.0));
    let united = f.elapsed > 7.0 * timeout + 2.0 * t + MOMENT;
    if united { Bound::Between(union, most) } else { Bound::AtMost(most) }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Input, Topology};
    use konklave_testkit::{Bench, send, set, tell};

    use super::*;

    const W: Duration = Duration::from_millis(5);

    fn process(me: u32, n: usize) -> Bench<Invitation> {
        let setup = Setup::new(Group::of(n), Topology::complete(n));
        let process = Invitation::new(ProcessId(me), &setup);
        let mut bench = Bench::new(process, ProcessId(me), &setup.group);
        bench.start();
        bench
    }

    fn number(count: u32, coordinator: u32) -> GroupNumber {
        GroupNumber { count, coordinator: ProcessId(coordinator) }
    }

    /// What it does but for timers that stop.
    fn hear(bench: &mut Bench<Invitation>, from: u32, message: Message) -> Vec<Effect<Invitation>> {
        let effects = bench.hear(from, message);
        effects.into_iter().filter(|e| !matches!(e, Effect::CancelTimer { .. })).collect()
    }

    #[test]
    fn everyone_begins_as_its_own_coordinator_and_counts_on_after_a_crash() {
        let mut p = process(1, 3);
        assert_eq!(p.process.leader(), Some(ProcessId(1)));
        let effects = p.step(Input::Recover(Some(7)));
        assert!(effects.contains(&Effect::Save(8)));
        assert!(effects.contains(&tell(Indication::Leading { epoch: 8 * 3 + 1 })));
    }

    #[test]
    fn the_higher_the_id_the_shorter_the_wait() {
        for (me, wait) in [(2, 0), (1, 1), (0, 2)] {
            let mut p = process(me, 3);
            p.fire(Timer::Check);
            p.hear((me + 1) % 3, Message::Coordinator(true));
            assert_eq!(p.fire(Timer::Answers), [set(Timer::Merge, wait * W)]);
        }
        let mut alone = process(0, 3);
        alone.hear(1, Message::Coordinator(false));
        assert_eq!(alone.fire(Timer::Answers), [set(Timer::Check, 4 * W)]);
    }

    #[test]
    fn a_coordinator_that_is_invited_brings_its_group_along() {
        let mut p = process(1, 4);
        p.process.status = Status::Coordinator {
            members: [ProcessId(0)].into_iter().collect(),
            found: ProcessSet::new(),
        };
        let effects = hear(&mut p, 3, Message::Invite(number(2, 3)));
        let accept = send(3, Message::Accept(number(2, 3)));
        let forward = send(0, Message::Invite(number(2, 3)));
        assert_eq!(effects[..3], [tell(Indication::Deposed), forward, accept]);
        assert_eq!(hear(&mut p, 2, Message::Invite(number(2, 2))), [], "one at a time");
    }

    #[test]
    fn a_group_is_led_when_all_who_came_have_confirmed() {
        let mut p = process(2, 3);
        p.hear(0, Message::Coordinator(true));
        p.hear(1, Message::Coordinator(true));
        p.fire(Timer::Merge);
        let new = number(2, 2);
        assert_eq!(hear(&mut p, 0, Message::Accept(new)), [send(0, Message::Accepted(new, true))]);
        let effects = p.fire(Timer::Accepts);
        assert_eq!(effects[0], send(0, Message::Ready(new)));
        let late = send(1, Message::Accepted(new, false));
        assert_eq!(hear(&mut p, 1, Message::Accept(new)), [late]);
        assert_eq!(hear(&mut p, 0, Message::Confirm(number(1, 2))), [], "of another group");
        let effects = hear(&mut p, 0, Message::Confirm(new));
        assert_eq!(effects[0], tell(Indication::Leading { epoch: 2 * 3 + 2 }));
    }

    #[test]
    fn only_the_ready_of_the_group_it_waits_for_makes_a_member() {
        let mut p = process(0, 2);
        p.hear(1, Message::Invite(number(5, 1)));
        assert_eq!(hear(&mut p, 1, Message::Ready(number(4, 1))), []);
        let effects = hear(&mut p, 1, Message::Ready(number(5, 1)));
        let following = Indication::Following { leader: Some(ProcessId(1)), epoch: 11 };
        assert_eq!(effects[0], tell(following));
        assert_eq!(effects.last(), Some(&send(1, Message::Confirm(number(5, 1)))));
    }

    #[test]
    fn who_is_not_wanted_or_not_answered_founds_its_own_group() {
        for timer in [None, Some(Timer::There)] {
            let mut p = process(0, 2);
            p.hear(1, Message::Invite(number(5, 1)));
            p.hear(1, Message::Ready(number(5, 1)));
            p.fire(Timer::Ask);
            let no = Message::There(number(5, 1), false);
            match timer {
                None => p.hear(1, no),
                Some(timer) => p.fire(timer),
            };
            assert_eq!((p.process.leader(), p.process.count), (Some(ProcessId(0)), 2));
        }
    }
}
