use konklave_algorithms::Algorithm;
use konklave_algorithms::group::lock_table::{Event, LockTable, Session, SessionOp, Timer};
use konklave_algorithms::group::locks::{Indication, LockMode, Name, Request};
use konklave_algorithms::group::table::{ClaimId, Key, Lock, Op, Space, Table};
use konklave_algorithms::group::{Member, Token, ViewId};
use konklave_process::{Effect, ProcessId, ProcessSet, Rng};
use konklave_sim::{Delay, Pace};
use konklave_testkit::{Bench, Case};

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

fn name(text: &str) -> Name {
    Name::from(text)
}

fn acquire() -> Request {
    Request::Acquire { name: name("a"), mode: LockMode::Exclusive, wait: true, priority: 0 }
}

/// A group of one, which delivers at once, and clients with sessions there.
struct Script {
    bench: Bench<LockTable>,
    sessions: Vec<Session>,
}

impl Script {
    fn new(clients: usize) -> Self {
        Self::flawed("", clients)
    }

    /// The group makes this mistake.
    fn flawed(mistake: &str, clients: usize) -> Self {
        let case = calm(1);
        let setup = if mistake.is_empty() { case.setup } else { case.mistake(mistake).setup };
        let me = ProcessId(0);
        let mut bench = Bench::new(<LockTable as Algorithm>::new(me, &setup), me, &setup.group);
        bench.start();
        let mut script = Self { bench, sessions: Vec::new() };
        let via = Member { id: me, incarnation: 1 };
        for _ in 0..clients {
            let opened = script.operate(SessionOp::Open { via, ttl: 10 });
            let [Event::Opened { session }] = opened[..] else { panic!("{opened:?}") };
            script.sessions.push(session);
        }
        script
    }

    fn operate(&mut self, op: SessionOp) -> Vec<Event> {
        let told = |effect| match effect {
            Effect::Indicate(Indication::Replied(event)) => Some(event),
            _ => None,
        };
        self.bench.ask(Request::Operate(op)).into_iter().filter_map(told).collect()
    }

    fn claim(&self, client: usize, number: u64) -> ClaimId {
        let Session { member, number: session } = self.sessions[client];
        ClaimId { member, session, number }
    }

    fn acquire(&mut self, claim: ClaimId, lock: &str, mode: LockMode, wait: bool) -> Vec<Event> {
        let (key, label) = (key(lock), "".into());
        let (safe, lease, priority) = (false, 0, 0);
        let op = Op::Acquire { claim, key, mode, wait, safe, lease, priority, label };
        self.operate(SessionOp::Request(op))
    }

    fn take(&mut self, client: usize, number: u64) -> Vec<Event> {
        self.acquire(self.claim(client, number), "a", LockMode::Exclusive, true)
    }

    fn release(&mut self, client: usize, number: u64) -> Vec<Event> {
        let claim = self.claim(client, number);
        self.operate(SessionOp::Request(Op::Release { claim, key: key("a") }))
    }

    fn cancel(&mut self, client: usize, number: u64) -> Vec<Event> {
        let claim = self.claim(client, number);
        self.operate(SessionOp::Request(Op::Cancel { claim, key: key("a") }))
    }

    fn expire(&mut self, client: usize, signs: u32) -> Vec<Event> {
        self.operate(SessionOp::Expire { session: self.sessions[client], signs })
    }

    /// The reply to this grant, number `count` of the group.
    fn granted(&self, client: usize, number: u64, count: u64) -> Event {
        let (claim, token) = (self.claim(client, number), token(count));
        Event::Granted { claim, name: name("a"), token }
    }

    fn lock(&self) -> Lock {
        self.bench.process.table().lock(&key("a")).cloned().unwrap_or_default()
    }

    /// The clients that hold the lock.
    fn holders(&self) -> Vec<usize> {
        let place = |s: u32| self.sessions.iter().position(|own| own.number == s);
        self.lock().holders.iter().filter_map(|grant| place(grant.claim.session)).collect()
    }
}

/// The token of grant number `count` in the first view. The low bits are for local grants.
fn token(count: u64) -> Token {
    Token { generation: 0, epoch: 0, k: count << 20 }
}

fn key(text: &str) -> Key {
    Key { space: Space::Lock, name: name(text) }
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
    calm(2).requests(&[1, 1]).check().exhausted(75);
    if long() {
        calm(3).requests(&[1, 0, 0]).crashes(1, 0).check().exhausted(107_305);
    }
    let mut crash = calm(3).requests(&[1, 0, 1]).crashes(1, 0);
    crash = crash.judge(&["growing fences", "mutual exclusion", "told of loss"]);
    crash.options.max_states = 20_000;
    assert_eq!(crash.check().verdict, "bounded");
    let change = calm(2).requests(&[1, 1]).set("reform", "0");
    change.check().exhausted(379);
    let found = change.mistake("bare-token").check();
    assert_eq!((found.verdict, found.property), ("violated", Some("growing fences")));
}

/// Clients that ask in every way, two of them or one, with the states of all their runs.
#[test]
fn every_kind_of_request_is_right_in_a_small_group() {
    let two = |requests: &[u32]| calm(2).requests(requests);
    two(&[1, 1]).set("ask", "shared,exclusive").check().exhausted(76);
    two(&[2, 1]).set("ask", "shared").check().exhausted(319);
    two(&[1, 1]).set("ask", "permit-1").check().exhausted(75);
    two(&[2, 2]).set("ask", "permit-2").check().exhausted(1_309);
    two(&[2, 1]).set("ask", "exclusive,urgent").check().exhausted(176);
    two(&[2, 2]).set("ask", "try,exclusive").check().exhausted(1_173);
    two(&[2, 2]).set("ask", "try").check().exhausted(2_502);
    two(&[1, 1]).set("ask", "cancel,exclusive").check().exhausted(202);
    two(&[3, 1]).set("ask", "again,exclusive").check().exhausted(588);
    two(&[1, 1]).set("revoke", 1).check().exhausted(351);
    two(&[2, 1]).set("ask", "again,try").set("revoke", 1).check().exhausted(2_349);
    two(&[2, 1]).set("ask", "again,urgent").set("reform", 1).check().exhausted(1_515);
    two(&[1, 1]).set("ask", "shared,cancel").set("leavers", 1).check().exhausted(1_538);
    outlived().check().exhausted(11_813);
}

/// A client outlives a crash of its process, and takes its grant over after the restart.
fn outlived() -> Group {
    let case = calm(2).requests(&[1, 1]).synchronous().crashes(1, 1);
    let case = case.set("departed", "fenced").set("adopt", "on").set("rejoin", "on");
    case.judge(&["mutual exclusion"])
}

#[test]
fn each_rule_of_the_table_is_needed() {
    let two = |ask: &str| calm(2).requests(&[1, 1]).set("ask", ask);
    let exclusion = "mutual exclusion";
    two("shared,exclusive").mistake("mixed-modes").check().violated(exclusion, 6);
    two("permit-1").mistake("spare-permit").check().violated(exclusion, 6);
    two("cancel,exclusive").mistake("kept-cancelled").check().violated("deadlock", 10);
    let revoked = two("exclusive").set("revoke", 1).mistake("free-revoked");
    revoked.judge(&[exclusion]).check().violated(exclusion, 9);
    two("try").mistake("try-refused").check().violated("refused though free", 3);
    let passed = calm(2).requests(&[2, 1]).set("ask", "again,exclusive").mistake("passed-token");
    passed.check().violated("growing fences", 7);
    outlived().mistake("any-expiry").check().violated(exclusion, 32);
    outlived().mistake("adopt-any").check().violated(exclusion, 31);
    // An excluded holder: its link breaks, and the others form a view without it.
    let isolated = calm(3).requests(&[0, 1, 1]).synchronous().clock(1000).set("departed", "fenced");
    let mut isolated = isolated.judge(&[exclusion]);
    (isolated.options.breaks, isolated.options.max_states) = (1, 10_000_000);
    if let Some(clock) = &mut isolated.options.clock {
        clock.limit = Some(1);
    }
    if long() {
        isolated.clone().check().exhausted(7_654_455);
    }
    isolated.mistake("no-wait").check().violated(exclusion, 13);
}

#[test]
fn k1_a_holder_that_slept_has_a_lower_token_than_the_next() {
    let mut script = Script::new(2);
    assert_eq!(script.take(0, 1), [script.granted(0, 1, 1)]);
    assert_eq!(script.take(1, 1), []);
    let ended = Event::Ended { session: script.sessions[0] };
    assert_eq!(script.expire(0, 1), [script.granted(1, 1, 2), ended]);
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
    let mut script = Script::new(2);
    assert_eq!(script.take(0, 1), [script.granted(0, 1, 1)]);
    assert_eq!(script.take(0, 1), [script.granted(0, 1, 1)], "the same token");
    assert_eq!(script.take(1, 7), []);
    assert_eq!(script.take(1, 7), []);
    assert_eq!(script.lock().queue.len(), 1, "one place in the queue");
}

#[test]
fn k4_a_sign_of_life_and_an_expiry_race() {
    for alive_first in [true, false] {
        let mut script = Script::new(1);
        script.take(0, 1);
        let session = script.sessions[0];
        if alive_first {
            script.operate(SessionOp::KeepAlive { session });
        }
        script.expire(0, 1);
        assert_eq!(script.holders().len(), usize::from(alive_first));
        let late = script.operate(SessionOp::KeepAlive { session });
        assert_eq!(late.is_empty(), alive_first, "a client that comes too late is told");
    }
}

#[test]
fn k5_a_late_release_does_not_end_a_later_grant() {
    let mut script = Script::new(1);
    script.take(0, 1);
    script.release(0, 1);
    assert_eq!(script.take(0, 2), [script.granted(0, 2, 2)]);
    script.release(0, 1);
    assert_eq!(script.holders(), [0]);
}

#[test]
fn k6_a_release_that_overtakes_a_repeated_request_leaves_no_phantom() {
    let mut script = Script::new(2);
    script.take(0, 1);
    script.release(0, 1);
    // The request arrives again: it is answered, not carried out.
    assert_eq!(script.take(0, 1), [script.granted(0, 1, 1)]);
    assert_eq!(script.holders(), [0; 0]);
    assert_eq!(script.take(1, 1), [script.granted(1, 1, 2)]);
}

#[test]
fn k7_a_new_generation_has_higher_tokens() {
    let case = calm(3);
    let mut play = Play::new(&case.setup.group, |p| <LockTable as Algorithm>::new(p, &case.setup));
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
}

#[test]
fn k8_k13_only_the_leader_counts_time_and_a_new_one_starts_afresh() {
    let case = calm(3);
    let mut play = Play::new(&case.setup.group, |p| <LockTable as Algorithm>::new(p, &case.setup));
    let via = Member { id: ProcessId(1), incarnation: 1 };
    play.ask(1, Request::Operate(SessionOp::Open { via, ttl: 30 })).settle();
    let opened: Vec<(u32, Session)> = play
        .told
        .iter()
        .filter_map(|(at, told)| match told {
            Indication::Replied(Event::Opened { session }) => Some((*at, *session)),
            _ => None,
        })
        .collect();
    let [(1, session)] = opened[..] else { panic!("only the client's member is told: {opened:?}") };
    let has = |play: &Play<LockTable>| play.process(2).sessions().any(|(s, _)| *s == session);
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
    let case = Case::<LockTable>::complete(5).set("departed", "fenced").set("rejoin", "on");
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
    let mut table = Table::default();
    for number in 0..100u64 {
        let member = member(if number % 10 < 3 { 3 } else { (number % 3) as u32 });
        let (claim, label) = (ClaimId { member, session: 0, number }, "".into());
        let (mode, wait, safe, lease, priority) = (LockMode::Exclusive, true, false, 0, 0);
        let acquire =
            Op::Acquire { claim, key: key("a"), mode, wait, safe, lease, priority, label };
        table.apply(&acquire, &mut Vec::new());
    }
    let queue = |table: &Table| -> Vec<ClaimId> {
        table.lock(&key("a")).expect("they wait").queue.iter().map(|w| w.claim).collect()
    };
    let mut expected = queue(&table);
    expected.retain(|claim| claim.member != member(3));
    let view = ViewId { epoch: 1, ..ViewId::default() };
    table.install(view, &[0, 1, 2].map(member), &ProcessSet::new(), &mut Vec::new());
    // The first remaining waiter holds it now.
    assert_eq!(queue(&table), expected[1..]);
    let holders = &table.lock(&key("a")).expect("it is held").holders;
    assert_eq!((holders[0].claim, holders[0].token), (expected[0], Token::of(view, 1 << 20)));
}

#[test]
fn k10_no_setting_lets_both_sides_of_a_split_grant() {
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

#[test]
fn each_mistake_of_a_session_breaks_its_property() {
    // any-token: a late release ends a later grant, and two hold the lock (K5).
    let late_release = |mut script: Script| {
        script.take(0, 1);
        script.release(0, 1);
        script.take(0, 2);
        script.take(1, 1);
        // Client 0 takes itself for the holder; is client 1 granted the lock?
        script.release(0, 1).len()
    };
    assert_eq!(late_release(Script::new(2)), 0);
    assert_eq!(late_release(Script::flawed("any-token", 2)), 1);
    // any-expiry: an expiry after a sign of life, and another session is granted the lock (K4).
    let late_expiry = |mut script: Script| {
        script.take(0, 1);
        script.take(1, 1);
        script.operate(SessionOp::KeepAlive { session: script.sessions[0] });
        script.expire(0, 1);
        script.holders()
    };
    assert_eq!(late_expiry(Script::new(2)), [0]);
    assert_eq!(late_expiry(Script::flawed("any-expiry", 2)), [1]);
    // no-memory: a request repeated after the release acquires the lock once more (K6).
    let phantom = |mut script: Script| {
        script.take(0, 1);
        script.release(0, 1);
        script.take(0, 1);
        script.holders().len()
    };
    assert_eq!(phantom(Script::new(1)), 0);
    assert_eq!(phantom(Script::flawed("no-memory", 1)), 1);
}

#[test]
fn k11_a_cancellation_and_a_grant_race() {
    // Granted first: the reply to the cancellation is the grant.
    let mut script = Script::new(2);
    script.take(0, 1);
    script.take(1, 1);
    script.release(0, 1);
    assert_eq!(script.cancel(1, 1), [script.granted(1, 1, 2)]);
    assert_eq!(script.holders(), [1]);
    // Cancelled first: it is not granted.
    let mut script = Script::new(2);
    script.take(0, 1);
    script.take(1, 1);
    assert_eq!(script.cancel(1, 1), [Event::Refused { claim: script.claim(1, 1) }]);
    script.release(0, 1);
    assert_eq!(script.holders(), [0; 0]);
}

#[test]
fn k14_a_million_released_locks_leave_nothing_behind() {
    let mut table = Table::default();
    let member = Member { id: ProcessId(0), incarnation: 1 };
    let mut out = Vec::new();
    for number in 0..1_000_000u64 {
        let (claim, key) = (ClaimId { member, session: 0, number }, key(&number.to_string()));
        let (mode, wait, safe, lease, priority) = (LockMode::Exclusive, true, false, 0, 0);
        let (held, label) = (key.clone(), "".into());
        let acquire = Op::Acquire { claim, key, mode, wait, safe, lease, priority, label };
        table.apply(&acquire, &mut out);
        table.apply(&Op::Release { claim, key: held }, &mut out);
        out.clear();
    }
    assert_eq!(table.len(), (0, 0, 0));
}

#[test]
fn a_request_without_wait_or_session_is_answered_at_once() {
    let mut script = Script::new(2);
    script.acquire(script.claim(0, 1), "a", LockMode::Shared, true);
    let claim = script.claim(1, 9);
    let refused = Event::Refused { claim };
    assert_eq!(script.acquire(claim, "a", LockMode::Exclusive, false), [refused]);
    let session = Session { number: 77, ..script.sessions[0] };
    let stranger = ClaimId { session: 77, ..claim };
    let ended = Event::Ended { session };
    assert_eq!(script.acquire(stranger, "a", LockMode::Exclusive, false), [ended]);
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
        let leases = rng.below(3) == 0;
        let case = if leases { case.set("departed", "fenced") } else { case };
        let mut faults = storm(&mut rng, n).0;
        // A member that slept past its lease may deliver a grant of its old view when it wakes. The node holds
        // such a grant back until a majority has answered (`core/lease.rs`); this process has no such rule.
        faults.retain(|fault| !leases || !fault.starts_with("pause"));
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
        let case = Case::<LockTable>::complete(3).set("departed", "fenced").requests(&[0, 1, 1]);
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
