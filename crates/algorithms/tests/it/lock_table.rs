use konklave_algorithms::group::Member;
use konklave_algorithms::group::lock_table::{
    Command, Event, LockTable, Reply, Session, Table, Timer,
};
use konklave_algorithms::group::locks::{FenceGate, Indication, Mode, Name, Request, Token};
use konklave_process::{ProcessId, Rng};
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use crate::long;
use crate::play::{Play, storm};

type Group = Case<LockTable>;

fn calm(n: usize) -> Group {
    Case::complete(n).requests(&vec![0; n]).set("retry", "off")
}

fn lively(n: usize, time: f64) -> Group {
    let case = Case::complete(n).set("heartbeat", 2).set("rejoin", "on");
    case.config(|c| {
        (c.time_limit, c.detect_after) = (time, None);
        (c.delay, c.hold) = (Delay::Uniform(0.2, 1.8), Pace::Constant(1.0));
    })
}

fn token(epoch: u64, count: u64) -> Token {
    Token { generation: 0, epoch, count }
}

fn name(text: &str) -> Name {
    Name::from(text)
}

/// A table with these clients, opened at places 1, 2, …; the next place is returned with it.
struct Script {
    table: Table,
    now: u64,
}

impl Script {
    fn new(clients: usize) -> (Self, Vec<Session>) {
        let mut script = Self { table: Table::default(), now: 0 };
        let sessions = script.open(clients);
        (script, sessions)
    }

    fn open(&mut self, clients: usize) -> Vec<Session> {
        let open = |_| {
            let command = Command::Open { via: ProcessId(0), request: 0, ttl: 10 };
            match self.apply(command).remove(0) {
                Event::Opened { session, .. } => session,
                other => panic!("{other:?}"),
            }
        };
        (0..clients).map(open).collect()
    }

    fn apply(&mut self, command: Command) -> Vec<Event> {
        self.now += 1;
        let mut events = Vec::new();
        self.table.apply(token(0, self.now), command, &mut events);
        events
    }

    fn acquire(&mut self, session: Session, request: u64, lock: &str, mode: Mode) -> Vec<Reply> {
        let command = Command::Acquire { session, request, name: name(lock), mode, wait: true };
        replies(self.apply(command))
    }

    fn take(&mut self, session: Session, request: u64) -> Vec<Reply> {
        self.acquire(session, request, "a", Mode::Exclusive)
    }

    fn release(&mut self, session: Session, token: Token) -> Vec<Event> {
        self.apply(Command::Release { session, name: name("a"), token })
    }

    fn holders(&self) -> Vec<Session> {
        let lock = self.table.lock("a");
        lock.map_or(Vec::new(), |lock| lock.holders.iter().map(|(s, _)| *s).collect())
    }
}

fn replies(events: Vec<Event>) -> Vec<Reply> {
    let answer = |event| match event {
        Event::Answer { reply, .. } => Some(reply),
        _ => None,
    };
    events.into_iter().filter_map(answer).collect()
}

fn granted(count: u64) -> Reply {
    Reply::Granted { name: name("a"), mode: Mode::Exclusive, token: token(0, count) }
}

#[test]
fn acquire_and_hand_over_take_three_delays_each() {
    for n in 2..=7 {
        let one = |at: usize| (0..n).map(|p| u32::from(p == at)).collect::<Vec<u32>>();
        let seen = calm(n).requests(&one(1)).simulate();
        // In a group of three, leader and requester are a majority: delivery waits for no acknowledgement.
        let far = if n <= 3 { 2.0 } else { 3.0 };
        assert_eq!(seen.well().summary.lone_entry_max, Some(far), "n = {n}");
        let seen = calm(n).requests(&one(0)).simulate();
        assert_eq!(seen.well().summary.lone_entry_max, Some(2.0), "n = {n}");
        let case = calm(n).requests(&vec![3; n]).config(|c| c.hold = Pace::Constant(10.0));
        let seen = case.simulate();
        assert_eq!(seen.well().summary.hand_over_max, Some(3.0), "n = {n}");
        assert_eq!(seen.summary.entries, 3 * n as u64);
        // Two operations for an entry, each with its place and the acknowledgements of it.
        let (n, entries) = (n as u64, seen.summary.entries);
        let data = 2 * entries * (n - 1) / n;
        assert_eq!(seen.sent, data + 2 * entries * (n - 1) * n, "n = {n}");
    }
}

#[test]
fn every_run_of_a_small_group_is_right() {
    calm(2).requests(&[1, 1]).check().exhausted(85);
    if long() {
        calm(3).requests(&[1, 0, 0]).crashes(1, 0).check().exhausted(107_305);
    }
    let mut crash = calm(3).requests(&[1, 0, 1]).crashes(1, 0);
    crash = crash.judge(&["growing fences", "mutual exclusion", "told of loss"]);
    crash.options.max_states = 20_000;
    assert_eq!(crash.check().verdict, "bounded");
    let change = calm(2).requests(&[1, 1]).set("reform", "0");
    change.check().exhausted(397);
    let found = change.mistake("bare-token").check();
    assert_eq!((found.verdict, found.property), ("violated", Some("growing fences")));
}

#[test]
fn k1_the_fence_refuses_a_holder_that_slept() {
    let (mut script, s) = Script::new(2);
    assert_eq!(script.take(s[0], 1), [granted(3)]);
    assert_eq!(script.take(s[1], 1), [Reply::Queued]);
    let seen = token(0, 3);
    let events = script.apply(Command::Expire { session: s[0], seen });
    assert_eq!(replies(events), [granted(5)]);
    let mut gate = FenceGate::default();
    assert!(gate.admit(token(0, 5)));
    assert!(!gate.admit(token(0, 3)), "the old write");
    assert!(gate.admit(token(0, 5)));
}

#[test]
fn k2_a_minority_grants_nothing_and_reports_locks_as_lost() {
    let case = lively(5, 200.0).requests(&[1, 0, 1, 0, 0]).fault("partition:0,1|2,3,4@8-120");
    let case = case.config(|c| c.hold = Pace::Constant(60.0));
    let seen = case.simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert!(seen.summary.losses >= 1, "{:?}", seen.summary);
    assert_eq!(seen.summary.entries, 2, "the majority's waiter got it");
}

#[test]
fn k3_a_repeated_request_gets_the_same_reply() {
    let (mut script, s) = Script::new(2);
    assert_eq!(script.take(s[0], 1), [granted(3)]);
    assert_eq!(script.take(s[0], 1), [granted(3)], "the same token");
    assert_eq!(script.take(s[1], 7), [Reply::Queued]);
    assert_eq!(script.take(s[1], 7), [Reply::Queued]);
    assert_eq!(script.table.lock("a").map(|l| l.queue.len()), Some(1), "one place in the queue");
}

#[test]
fn k4_a_sign_of_life_and_an_expiry_race() {
    for alive_first in [true, false] {
        let (mut script, s) = Script::new(1);
        script.take(s[0], 1);
        let seen = token(0, 2);
        if alive_first {
            script.apply(Command::KeepAlive { session: s[0] });
        }
        script.apply(Command::Expire { session: s[0], seen });
        assert_eq!(script.holders().len(), usize::from(alive_first));
        let late = script.apply(Command::KeepAlive { session: s[0] });
        assert_eq!(late.is_empty(), alive_first, "who comes too late is told");
    }
}

#[test]
fn k5_a_late_release_does_not_end_a_later_grant() {
    let (mut script, s) = Script::new(1);
    script.take(s[0], 1);
    script.release(s[0], token(0, 2));
    assert_eq!(script.take(s[0], 2), [granted(4)]);
    let events = script.release(s[0], token(0, 2));
    assert!(matches!(events[..], [Event::Released { held: false, .. }]));
    assert_eq!(script.holders(), [s[0]]);
}

#[test]
fn k6_a_release_that_overtakes_a_repeated_request_leaves_no_phantom() {
    let (mut script, s) = Script::new(2);
    script.take(s[0], 1);
    script.release(s[0], token(0, 3));
    // The request arrives again: it is answered, not carried out.
    assert_eq!(script.take(s[0], 1), [granted(3)]);
    assert!(script.holders().is_empty());
    assert_eq!(script.take(s[1], 1), [granted(6)]);
}

#[test]
fn k7_a_new_generation_has_higher_tokens() {
    let case = calm(3);
    let mut play = Play::new(&case.setup.group, |p| {
        <LockTable as konklave_algorithms::Algorithm>::new(p, &case.setup)
    });
    let acquire = || Request::Acquire { name: name("a"), mode: Mode::Exclusive };
    play.ask(0, acquire()).settle();
    let last = |play: &Play<LockTable>| {
        let token = |(_, told): &(u32, Indication)| match told {
            Indication::Granted { token, .. } => Some(*token),
            _ => None,
        };
        play.told.iter().rev().find_map(token)
    };
    let first = last(&play).expect("it was granted");
    play.crash(1).crash(2).suspect(0, 1).suspect(0, 2).settle();
    play.ask(0, Request::Refound);
    assert!(play.told.contains(&(0, Indication::Lost { name: name("a") })));
    play.ask(0, acquire());
    let second = last(&play).expect("it was granted again");
    assert!(second > first && second.generation == 1, "{second:?} after {first:?}");
    assert!(second.to_bytes() > first.to_bytes());
}

#[test]
fn k8_k13_only_the_leader_counts_time_and_a_new_one_starts_afresh() {
    let case = calm(3);
    let mut play = Play::new(&case.setup.group, |p| {
        <LockTable as konklave_algorithms::Algorithm>::new(p, &case.setup)
    });
    let open = Command::Open { via: ProcessId(1), request: 1, ttl: 30 };
    play.ask(1, Request::Operate(open)).settle();
    let session = play.told.iter().find_map(|(at, told)| match told {
        Indication::Replied(Event::Opened { session, .. }) => Some((*at, *session)),
        _ => None,
    });
    let (at, session) = session.expect("it was opened");
    assert_eq!(at, 1, "only who asked is told");
    let has =
        |play: &Play<LockTable>| play.process(2).table().sessions().any(|(s, _)| *s == session);
    // Others do not let it expire, whatever their clocks say.
    play.fire(1, Timer::Silent(session)).fire(2, Timer::Silent(session)).settle();
    assert!(has(&play));
    // A new leader gives it its full time again.
    for _ in 0..4 {
        play.ask(0, Request::Reform).settle();
    }
    assert!(has(&play));
    play.fire(0, Timer::Silent(session)).settle();
    assert!(!has(&play));
}

#[test]
fn the_lock_of_a_dead_member_becomes_free_though_views_change_faster_than_its_lease() {
    // 4 crashes as the holder, with a lease of 20 T; wrong suspicions change the view all the time.
    let case = Case::<LockTable>::complete(5).set("departed", "frozen").set("rejoin", "on");
    let mut case = case.requests(&[1, 0, 0, 1, 1]).fault("crash:4@8").config(|c| {
        c.script = vec![(ProcessId(4), 0.0), (ProcessId(3), 4.0), (ProcessId(0), 4.0)];
        (c.hold, c.time_limit) = (Pace::Constant(10.0), 300.0);
    });
    for at in (10..600).step_by(15) {
        case = case.fault(&format!("suspect:2>1@{at}"));
    }
    let seen = case.simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(seen.summary.entries, 3, "{:?}", seen.waiting);
    assert!(seen.summary.views > 20, "{}", seen.summary.views);
}

#[test]
fn k9_the_order_of_remaining_waiters_does_not_change() {
    let member = |id: u32| Member { id: ProcessId(id), incarnation: 1 };
    let all: Vec<Member> = (0..4).map(member).collect();
    let mut table = Table::default();
    let mut events = Vec::new();
    table.members(token(0, 0), &all, |_| false, &mut events);
    for i in 0..100u64 {
        let session = Session::Member(all[if i % 10 < 3 { 3 } else { (i % 3) as usize }]);
        let command = Command::Acquire {
            session,
            request: i,
            name: name("a"),
            mode: Mode::Exclusive,
            wait: true,
        };
        table.apply(token(0, i + 1), command, &mut events);
    }
    let queue = |table: &Table| -> Vec<(Session, u64)> {
        let lock = table.lock("a").expect("they wait");
        lock.queue.iter().map(|(s, r, _)| (*s, *r)).collect()
    };
    let before = queue(&table);
    let stays = |(s, _): &(Session, u64)| *s != Session::Member(all[3]);
    let expected: Vec<(Session, u64)> = before.iter().copied().filter(stays).collect();
    table.members(token(1, 0), &all[..3], |_| false, &mut events);
    // The first remaining waiter holds it now.
    assert_eq!(queue(&table), expected[1..]);
    assert_eq!(table.lock("a").map(|l| l.holders[0]), Some((expected[0].0, token(1, 0))));
}

#[test]
fn k10_no_setting_lets_both_sides_of_a_split_grant() {
    use konklave_algorithms::Algorithm;
    // There is no mode in which every part of a split group goes on: locks would be granted twice.
    for switch in LockTable::SHEET.switches {
        assert!(!switch.what.contains("partition"), "{}", switch.name);
        for value in switch.values.iter().filter(|value| !value.starts_with('<')) {
            for split in ["0,1|2,3", "0|1,2,3", "0,1,2|3"] {
                let case = lively(4, 250.0).requests(&[3; 4]).set(switch.name, value);
                let case = case.fault(&format!("partition:{split}@6-150"));
                let seen = case.simulate();
                let why = format!("{}={value}, {split}", switch.name);
                assert!(seen.violations.is_empty(), "{why}: {:?}", seen.violations);
            }
        }
    }
}

/// A table of a group that makes this mistake, with clients.
fn flawed(mistake: &str, clients: usize) -> (Script, Vec<Session>) {
    let setup = calm(1).mistake(mistake).setup;
    let process = <LockTable as konklave_algorithms::Algorithm>::new(ProcessId(0), &setup);
    let mut script = Script { table: process.table().clone(), now: 0 };
    let sessions = script.open(clients);
    (script, sessions)
}

#[test]
fn each_mistake_of_the_table_breaks_its_property() {
    // any-token: a late release ends a later grant, and two hold the lock (K5).
    let late_release = |(mut script, s): (Script, Vec<Session>)| {
        script.take(s[0], 1);
        script.release(s[0], token(0, 3));
        assert_eq!(script.take(s[0], 2), [granted(5)]);
        script.take(s[1], 1);
        // s[0] takes itself for the holder; is s[1] granted the lock?
        replies(script.release(s[0], token(0, 3))).len()
    };
    assert_eq!(late_release(Script::new(2)), 0);
    assert_eq!(late_release(flawed("any-token", 2)), 1);
    // any-expiry: an expiry after a sign of life, and another session is granted the lock (K4).
    let late_expiry = |(mut script, s): (Script, Vec<Session>)| {
        script.take(s[0], 1);
        script.take(s[1], 1);
        let seen = token(0, 3);
        script.apply(Command::KeepAlive { session: s[0] });
        replies(script.apply(Command::Expire { session: s[0], seen })).len()
    };
    assert_eq!(late_expiry(Script::new(2)), 0);
    assert_eq!(late_expiry(flawed("any-expiry", 2)), 1);
    // no-memory: a request repeated after the release acquires the lock once more (K6).
    let phantom = |(mut script, s): (Script, Vec<Session>)| {
        script.take(s[0], 1);
        script.release(s[0], token(0, 2));
        script.take(s[0], 1);
        script.holders().len()
    };
    assert_eq!(phantom(Script::new(1)), 0);
    assert_eq!(phantom(flawed("no-memory", 1)), 1);
    // bare-token: the checker finds it.
    let change = calm(2).requests(&[1, 1]).set("reform", "0").mistake("bare-token");
    assert_eq!(change.check().property, Some("growing fences"));
}

#[test]
fn k11_a_cancellation_and_a_grant_race() {
    let (mut script, s) = Script::new(2);
    script.take(s[0], 1);
    script.take(s[1], 1);
    // Granted first: the reply to the cancellation is the grant.
    let (mut late, sessions) = (Script { table: script.table.clone(), now: script.now }, s.clone());
    late.release(sessions[0], token(0, 3));
    let answer = late.apply(Command::Cancel { session: sessions[1], request: 1 });
    assert_eq!(replies(answer), [granted(5)]);
    assert_eq!(late.holders(), [sessions[1]]);
    // Cancelled first: it is not granted.
    let answer = script.apply(Command::Cancel { session: s[1], request: 1 });
    assert_eq!(replies(answer), [Reply::Cancelled]);
    script.release(s[0], token(0, 3));
    assert!(script.holders().is_empty());
}

#[test]
fn k14_a_million_released_locks_leave_nothing_behind() {
    let (mut script, s) = Script::new(1);
    for i in 0..1_000_000u64 {
        let lock = i.to_string();
        let now = script.now + 1;
        script.acquire(s[0], i, &lock, Mode::Exclusive);
        let (session, token) = (s[0], token(0, now));
        script.apply(Command::Release { session, name: name(&lock), token });
    }
    assert_eq!(script.table.len(), (1, 0));
}

#[test]
fn shared_holders_enter_together_and_do_not_starve_an_exclusive_one() {
    let (mut script, s) = Script::new(5);
    let shared = |script: &mut Script, i: usize| script.acquire(s[i], 1, "a", Mode::Shared);
    shared(&mut script, 0);
    shared(&mut script, 1);
    assert_eq!(script.holders(), [s[0], s[1]]);
    assert_eq!(script.take(s[2], 1), [Reply::Queued]);
    assert_eq!(shared(&mut script, 3), [Reply::Queued], "behind the one who wants to be alone");
    shared(&mut script, 4);
    script.release(s[0], token(0, 6));
    assert_eq!(script.holders(), [s[1]]);
    script.release(s[1], token(0, 7));
    assert_eq!(script.holders(), [s[2]]);
    let alone = token(0, script.now);
    script.release(s[2], alone);
    assert_eq!(script.holders(), [s[3], s[4]]);
}

#[test]
fn a_request_without_wait_or_session_is_answered_at_once() {
    let (mut script, s) = Script::new(2);
    script.take(s[0], 1);
    let mut ask = |session| {
        let (name, mode) = (name("a"), Mode::Exclusive);
        script.apply(Command::Acquire { session, request: 9, name, mode, wait: false })
    };
    assert_eq!(replies(ask(s[1])), [Reply::Busy]);
    assert_eq!(replies(ask(Session::Client(token(9, 9)))), [Reply::NoSession]);
}

#[test]
fn a_new_member_receives_the_table() {
    let seen = lively(4, 150.0).requests(&[4; 4]).set("joiners", 3).simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert!(seen.waiting.is_empty(), "{:?}", seen.waiting);
    assert_eq!(seen.summary.entries, 16);
    let tables: Vec<&Table> = seen.processes.iter().map(LockTable::table).collect();
    assert!(tables.iter().all(|t| *t == tables[0]), "{tables:?}");
}

#[test]
fn no_history_with_faults_breaks_a_lock() {
    let (mut entries, mut refused, mut stuck) = (0, 0, 0);
    let runs = if long() { 10_000 } else { 150 };
    for seed in 0..runs {
        let mut rng = Rng::new(seed);
        let n = 3 + rng.below(3) as usize;
        let requests: Vec<u32> = (0..n).map(|_| rng.below(8)).collect();
        let case = lively(n, 420.0).requests(&requests).config(|c| {
            (c.seed, c.think) = (seed, Pace::Exponential(6.0));
        });
        let case = if rng.below(3) == 0 { case.set("departed", "frozen") } else { case };
        let faults = storm(&mut rng, n).0;
        let case = faults.iter().fold(case, |case, fault| case.fault(fault));
        let seen = case.simulate();
        assert!(seen.violations.is_empty(), "seed {seed} {faults:?}: {:?}", seen.violations);
        entries += seen.summary.entries;
        refused += seen.summary.refused;
        stuck += u64::from(!seen.waiting.is_empty());
    }
    assert!(entries > 5 * runs && 10 * stuck < 2 * runs, "{entries} {refused} {stuck} of {runs}");
}

#[test]
fn an_isolated_holder_gives_its_lock_up_before_the_others_grant_it() {
    let isolated = |set: &str, from: &str| {
        let case = Case::<LockTable>::complete(3).set("departed", "frozen").requests(&[0, 1, 1]);
        let case = if set.is_empty() { case } else { case.set("heartbeat", set) };
        let case = case.fault(&format!("break:1-0@{from}")).fault(&format!("break:1-2@{from}"));
        case.config(|c| (c.hold, c.time_limit) = (Pace::Constant(100.0), 400.0)).simulate()
    };
    for heartbeat in ["", "2", "4"] {
        for from in ["3", "5", "5.5", "7"] {
            let seen = isolated(heartbeat, from);
            assert!(seen.violations.is_empty(), "{heartbeat} {from}: {:?}", seen.violations);
            assert_eq!((seen.summary.entries, seen.summary.losses), (2, 1), "{heartbeat} {from}");
        }
    }
}
