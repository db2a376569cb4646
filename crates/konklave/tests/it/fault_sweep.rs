//! Groups under load and faults, determined by a seed. All grants are recorded and judged.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use konklave::testing::Cluster;
use konklave::{Error, Handover, LockAlgorithm, Loss, State, Timings, Token};

const MS: Duration = Duration::from_millis(1);

/// The time in which a client believed to hold a lock.
#[derive(Clone, Debug)]
struct Belief {
    #[allow(dead_code, reason = "told when something is wrong")]
    node: usize,
    name: String,
    shared: bool,
    mode: Handover,
    token: Token,
    from: Duration,
    to: Duration,
}

#[derive(Default)]
struct History(RefCell<Vec<Belief>>);

impl History {
    fn judge(&self, seed: u64) {
        let mut names: BTreeMap<String, Vec<Belief>> = BTreeMap::new();
        for belief in self.0.borrow().iter() {
            names.entry(belief.name.clone()).or_default().push(belief.clone());
        }
        for beliefs in names.values_mut() {
            beliefs.sort_by_key(|b| (b.from, b.token));
            for (i, a) in beliefs.iter().enumerate() {
                for b in &beliefs[i + 1..] {
                    judge_pair(seed, a, b);
                }
            }
        }
    }
}

fn judge_pair(seed: u64, a: &Belief, b: &Belief) {
    let what = || format!("seed {seed}\n  {a:?}\n  {b:?}");
    assert_ne!(a.token, b.token, "one token, one grant: {}", what());
    let together = a.shared && b.shared;
    if a.mode == Handover::LeaseSafe && b.mode == Handover::LeaseSafe && !together {
        assert!(a.to <= b.from || b.to <= a.from, "two believe at once: {}", what());
    }
    // A holder that begins after another has ended has the higher token, if no lock is handed over fast.
    if !together && a.to <= b.from && a.mode == Handover::LeaseSafe && b.mode == a.mode {
        assert!(a.token < b.token, "tokens grow: {}", what());
    }
}

/// A small generator: the same numbers for the same seed.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

struct Run {
    algorithm: LockAlgorithm,
    done: RefCell<bool>,
}

async fn work(
    cluster: Rc<Cluster>,
    node: usize,
    mut dice: Dice,
    history: Rc<History>,
    run: Rc<Run>,
) {
    while !*run.done.borrow() {
        cluster.sleep(MS * (1 + dice.below(40) as u32)).await;
        if !cluster.is_up(node) {
            continue;
        }
        let name = format!("lock{}", dice.below(3));
        let mode = if dice.below(4) == 0 { Handover::Fast } else { Handover::LeaseSafe };
        // Each name has one handover mode; the judge depends on it.
        let mode = if name == "lock2" { mode } else { Handover::LeaseSafe };
        let shared = run.algorithm == LockAlgorithm::Table && name == "lock1" && dice.below(2) == 0;
        let handle = cluster.node(node);
        let mut request =
            handle.lock(&name).handover(mode).timeout(MS * (1 + dice.below(3000) as u32));
        if shared {
            request = request.shared();
        }
        let tries = dice.below(5) == 0;
        let asked = if tries { request.try_acquire().await } else { request.acquire().await };
        let guard = match asked {
            Ok(guard) => guard,
            Err(Error::TimedOut(_) | Error::Busy(_) | Error::Left) => continue,
            Err(Error::NoGroup(_)) if tries => {
                cluster.sleep(MS).await;
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        let (from, token) = (cluster.now(), guard.token());
        // Unless the node leaves at this moment.
        let left = guard.loss() == Some(Loss::Left);
        assert!(left || guard.state() != State::Lost, "what is granted is ours at that moment");
        let hold = MS * dice.below(60) as u32;
        tokio::select! {
            biased;
            () = guard.lost() => {}
            () = cluster.sleep(hold) => {}
        }
        let to = cluster.now();
        history.0.borrow_mut().push(Belief { node, name, shared, mode, token, from, to });
        if dice.below(2) == 0 {
            let _ = guard.release().await;
        }
    }
}

/// Leaves in order, then ends the process.
fn leave(cluster: &Rc<Cluster>, i: usize) {
    if cluster.is_up(i) {
        let (cluster, node) = (cluster.clone(), cluster.node(i));
        cluster.clone().spawn(async move {
            let _ = node.leave().await;
            // It may have crashed in the meantime, and restarted.
            if cluster.is_up(i) {
                let asked = cluster.node(i).lock("left?").try_acquire().await;
                if matches!(asked, Err(Error::Left)) && cluster.is_up(i) {
                    cluster.crash(i);
                }
            }
        });
    }
}

async fn trouble(cluster: &Rc<Cluster>, dice: &mut Dice, n: usize) {
    for _ in 0..12 {
        cluster.sleep(MS * dice.below(700) as u32).await;
        let (i, j) = (dice.below(n as u64) as usize, dice.below(n as u64) as usize);
        match dice.below(10) {
            0 => cluster.crash(i),
            1 => (0..n).for_each(|i| cluster.restart(i)),
            2 => cluster.isolate(i),
            3 if i != j => cluster.cut(i, j),
            4 => cluster.partition(&[i, j]),
            5 | 6 => cluster.heal(),
            7 => cluster.delay(MS / 20, MS * dice.below(20) as u32),
            8 => leave(cluster, i),
            // At the moment when another member falls silent.
            9 => {
                cluster.isolate(j);
                leave(cluster, i);
            }
            _ => {}
        }
    }
}

/// A run of `n` members, determined by `seed`.
fn run(algorithm: LockAlgorithm, n: usize, seed: u64) -> usize {
    let cluster = Rc::new(Cluster::with_lock_algorithm(algorithm, n, seed, Timings::fast()));
    let history = Rc::new(History::default());
    let run = Rc::new(Run { algorithm, done: RefCell::new(false) });
    let mut dice = Dice(seed ^ 0x9e37_79b9_7f4a_7c15);
    for worker in 0..2 * n {
        let fate = Dice(dice.below(u64::MAX >> 31) << 20 | worker as u64);
        cluster.spawn(work(cluster.clone(), worker % n, fate, history.clone(), run.clone()));
    }
    cluster.block_on(async {
        trouble(&cluster, &mut dice, n).await;
        cluster.heal();
        // Nodes that are leaving finish.
        cluster.sleep(MS * 3000).await;
        cluster.delay(MS / 20, MS / 4);
        (0..n).for_each(|i| cluster.restart(i));
        cluster.sleep(MS * 8000).await;
        // After the faults, every node is served.
        for i in 0..n {
            let node = cluster.node(i);
            for name in ["lock0", "lock1", "lock2"] {
                let served = node.lock(name).timeout(MS * 10_000).acquire().await;
                let all = || (0..n).map(|i| cluster.node(i).status()).collect::<Vec<_>>();
                assert!(served.is_ok(), "seed {seed}: n{i} {name}: {:#?}", all());
            }
        }
        *run.done.borrow_mut() = true;
        cluster.sleep(MS * 4000).await;
    });
    history.judge(seed);
    for i in 0..n {
        let status = cluster.node(i).status();
        assert_eq!(status.locks, [], "seed {seed}: n{i} keeps what nobody uses");
    }
    history.0.borrow().len()
}

fn sweep(algorithm: LockAlgorithm, n: usize, seeds: std::ops::Range<u64>) {
    let beliefs: usize = seeds.clone().map(|seed| run(algorithm, n, seed)).sum();
    let runs = (seeds.end - seeds.start) as usize;
    assert!(beliefs > 20 * runs, "{beliefs} grants in {runs} runs are few");
}

#[test]
fn three_members_under_faults() {
    sweep(LockAlgorithm::Table, 3, 0..150);
}

#[test]
fn five_members_under_faults() {
    sweep(LockAlgorithm::Table, 5, 1000..1040);
}

#[test]
fn two_members_under_faults() {
    sweep(LockAlgorithm::Table, 2, 2800..2950);
}

#[test]
fn same_seed_gives_same_run() {
    assert_eq!(run(LockAlgorithm::Table, 3, 7), run(LockAlgorithm::Table, 3, 7));
    assert_eq!(run(LockAlgorithm::NaimiTrehel, 3, 7), run(LockAlgorithm::NaimiTrehel, 3, 7));
}

#[test]
fn naimi_trehel_under_faults() {
    sweep(LockAlgorithm::NaimiTrehel, 3, 0..150);
    sweep(LockAlgorithm::NaimiTrehel, 5, 1000..1040);
    sweep(LockAlgorithm::NaimiTrehel, 2, 2800..2880);
}

#[test]
fn suzuki_kasami_under_faults() {
    sweep(LockAlgorithm::SuzukiKasami, 3, 200..300);
    sweep(LockAlgorithm::SuzukiKasami, 5, 1000..1020);
}

#[test]
fn other_algorithms_under_faults() {
    for algorithm in &LockAlgorithm::ALL[3..] {
        sweep(*algorithm, 3, 300..340);
        sweep(*algorithm, 4, 340..350);
    }
}
