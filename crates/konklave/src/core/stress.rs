//! Random workloads of clients, operators and full disks, determined by a seed. Every request is answered in
//! time, and no two clients hold the same lock. `SEED=n` repeats one seed; `KONKLAVE_LONG=1` runs fifty times
//! as many.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use konklave_process::Rng;

use crate::builder::Timings;
use crate::error::Error;
use crate::lock::{Handover, State};
use crate::lock_algorithm::LockAlgorithm;
use crate::status::Loss;
use crate::testing::Cluster;
use crate::token::Token;

const MS: Duration = Duration::from_millis(1);
const FOR_EVER: Duration = Duration::from_secs(10_000);
const NAMES: [&str; 3] = ["a", "b", "c"];

/// The time in which a client believed to hold a lock.
#[derive(Debug)]
struct Belief {
    name: &'static str,
    token: Token,
    #[allow(dead_code, reason = "shown by assertions")]
    node: usize,
    handover: Handover,
    from: Duration,
    to: Duration,
}

/// True once in `n` calls, on average.
fn one_in(dice: &mut Rng, n: u32) -> bool {
    dice.below(n) == 0
}

struct Stress {
    cluster: Cluster,
    what: String,
    /// No node fails.
    calm: bool,
    over: Cell<bool>,
    /// The running clients, and what each waits for.
    at_work: RefCell<BTreeMap<usize, String>>,
    beliefs: RefCell<Vec<Belief>>,
}

impl Stress {
    /// A client: requests locks in every way, holds them for a while or not at all, and releases them in time
    /// or late.
    async fn work(&self, me: usize, node: usize, mut dice: Rng) {
        while !self.over.get() {
            match dice.below(3) {
                0 => self.cluster.sleep(MS * (1 + dice.below(40))).await,
                1 => self.cluster.sleep(MS / 10 * dice.below(10)).await,
                _ => {}
            }
            if self.cluster.is_up(node) {
                self.ask(me, node, &mut dice).await;
            } else {
                self.cluster.sleep(MS * 5).await;
            }
        }
        self.at_work.borrow_mut().remove(&me);
    }

    async fn ask(&self, me: usize, node: usize, dice: &mut Rng) {
        let (cluster, name) = (&self.cluster, NAMES[dice.below(3) as usize]);
        // One lock is also requested with `Handover::Fast`, which promises nothing if the holder fails.
        let fast = name == "c" && one_in(dice, 2);
        let handover = if fast { Handover::Fast } else { Handover::LeaseSafe };
        let mut request = cluster.node(node).lock(name).handover(handover);
        let timeout = one_in(dice, 2).then(|| MS / 10 * dice.below(2000));
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        let tries = one_in(dice, 5);
        let gives_up = if one_in(dice, 4) { MS / 10 * dice.below(500) } else { FOR_EVER };
        let begun = cluster.now();
        self.at_work.borrow_mut().insert(me, format!("{node} asks for {name} since {begun:?}"));
        let asked = tokio::select! {
            biased;
            asked = async { if tries { request.try_acquire().await } else { request.acquire().await } } => asked,
            () = cluster.sleep(gives_up) => return,
        };
        self.at_work.borrow_mut().insert(me, String::new());
        let waited = cluster.now() - begun;
        let late = timeout.is_some_and(|timeout| waited > timeout + MS / 100);
        assert!(!late, "{}: {node} waited {waited:?} for {name}, not {timeout:?}", self.what);
        let guard = match asked {
            Ok(guard) => guard,
            Err(Error::Busy(_)) if tries => return,
            Err(Error::NoGroup(_)) if tries => return cluster.sleep(MS).await,
            Err(Error::TimedOut(_)) => return,
            Err(Error::Left) => return cluster.sleep(MS).await,
            Err(other) => panic!("{}: {other}", self.what),
        };
        let (from, token) = (cluster.now(), guard.token());
        let expected_loss = matches!(guard.loss(), Some(Loss::Left | Loss::Revoked));
        assert!(
            expected_loss || guard.state() != State::Lost,
            "{}: granted and lost at once",
            self.what
        );
        let held_for = if one_in(dice, 2) { Duration::ZERO } else { MS / 10 * dice.below(300) };
        let lost = tokio::select! {
            biased;
            () = guard.lost() => true,
            () = async { if !held_for.is_zero() { cluster.sleep(held_for).await } } => false,
        };
        let to = cluster.now();
        self.beliefs.borrow_mut().push(Belief { name, token, node, handover, from, to });
        if lost && one_in(dice, 3) {
            cluster.sleep(MS * dice.below(300)).await;
        }
        if one_in(dice, 2) {
            let _ = guard.release().await;
        }
    }

    /// An operator: revokes locks, and fills disks for a while.
    async fn operate(&self, me: usize, n: u32, mut dice: Rng) {
        while !self.over.get() {
            self.cluster.sleep(MS * dice.below(120)).await;
            let i = dice.below(n) as usize;
            if !self.cluster.is_up(i) {
                continue;
            }
            let node = self.cluster.node(i);
            if one_in(&mut dice, 3) {
                node.shared().with(|core, _| core.unsaved = true);
                self.cluster.sleep(MS * dice.below(60)).await;
                node.shared().with(|core, _| core.saved());
            } else {
                let _ = node.revoke(NAMES[dice.below(3) as usize], None).await;
            }
        }
        self.at_work.borrow_mut().remove(&me);
    }

    async fn inject_faults(&self, n: u32, dice: &mut Rng) {
        let cluster = &self.cluster;
        for _ in 0..10 {
            cluster.sleep(MS * dice.below(700)).await;
            let (i, j) = (dice.below(n) as usize, dice.below(n) as usize);
            match dice.below(8) {
                0 => cluster.crash(i),
                1 => (0..n as usize).for_each(|i| cluster.restart(i)),
                2 => cluster.isolate(i),
                3 if i != j => cluster.cut(i, j),
                4 => cluster.partition(&[i, j]),
                5 | 6 => cluster.heal(),
                7 => cluster.delay(MS / 20, MS * dice.below(20)),
                _ => {}
            }
        }
        cluster.heal();
        cluster.sleep(MS * 3000).await;
        cluster.delay(MS / 20, MS / 4);
        (0..n as usize).for_each(|i| cluster.restart(i));
        cluster.sleep(MS * 6000).await;
    }

    /// The holder with the higher token begins after the other has ended: always if no node fails and no lock
    /// is handed over fast.
    fn judge(&self) {
        let mut beliefs = self.beliefs.borrow_mut();
        beliefs.sort_by_key(|belief| (belief.name, belief.token));
        for pair in beliefs.windows(2).filter(|pair| pair[0].name == pair[1].name) {
            let [a, b] = pair else { continue };
            assert_ne!(a.token, b.token, "{}: {a:?} {b:?}", self.what);
            let safe = self.calm || a.handover == Handover::LeaseSafe;
            assert!(!safe || a.to <= b.from, "{}: two at once: {a:?} {b:?}", self.what);
        }
    }
}

fn run(algorithm: LockAlgorithm, seed: u64, calm: bool) {
    let n = 2 + (seed % 4) as u32;
    let what = format!("{algorithm}: SEED={seed} cargo test -p konklave --lib stress");
    let stress = Rc::new(Stress {
        cluster: Cluster::with_lock_algorithm(algorithm, n as usize, seed, Timings::fast()),
        what,
        calm,
        over: Cell::new(false),
        at_work: RefCell::default(),
        beliefs: RefCell::default(),
    });
    let mut dice = Rng::new(seed);
    let clients = 3 * n as usize;
    for me in 0..=clients {
        let (stress, fate) = (stress.clone(), dice.fork(me as u64));
        stress.at_work.borrow_mut().insert(me, String::new());
        let cluster = &stress.clone().cluster;
        cluster.spawn(async move {
            match me {
                0 => stress.operate(me, n, fate).await,
                _ => stress.work(me, me % n as usize, fate).await,
            }
        });
    }
    stress.cluster.block_on(async {
        let (cluster, what) = (&stress.cluster, &stress.what);
        if calm {
            cluster.delay(MS / 20, MS / 10 * (1 + dice.below(50)));
            cluster.sleep(MS * 1500).await;
        } else {
            stress.inject_faults(n, &mut dice).await;
        }
        stress.over.set(true);
        cluster.sleep(MS * 8000).await;
        assert_eq!(*stress.at_work.borrow(), BTreeMap::new(), "{what}: they wait for ever");
        cluster.sleep(MS * 4000).await;
        for (i, name) in (0..n as usize).flat_map(|i| NAMES.map(|name| (i, name))) {
            let served = cluster.node(i).lock(name).timeout(MS * 10_000).acquire().await;
            assert!(served.is_ok(), "{what}: {i} asks for {name}");
        }
    });
    stress.judge();
}

fn stress_runs(calm: bool) {
    let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let long = std::env::var_os("KONKLAVE_LONG").is_some();
    let seeds = given.map_or(0..if long { 1000 } else { 20 }, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let algorithms =
            [LockAlgorithm::Table, LockAlgorithm::NaimiTrehel, LockAlgorithm::SuzukiKasami];
        algorithms.into_iter().for_each(|algorithm| run(algorithm, seed, calm));
    }
}

#[test]
fn every_request_is_answered_despite_operators_and_full_disks() {
    stress_runs(true);
}

#[test]
fn every_request_is_answered_despite_failures() {
    stress_runs(false);
}
