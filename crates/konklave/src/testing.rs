//! A simulated group in memory, with its own clock, and with faults.
//!
//! The seed determines everything: a test with the same seed does the same every time.
//!
//! ```
//! use std::time::Duration;
//! use konklave::testing::Cluster;
//!
//! let cluster = Cluster::new(3);
//! cluster.block_on(async {
//!     let guard = cluster.node(0).lock("reports").acquire().await.unwrap();
//!     // The holder's node is cut off. It notices in time, and the others continue.
//!     cluster.isolate(0);
//!     let next = cluster.node(1).lock("reports").acquire().await.unwrap();
//!     assert!(next.token() > guard.token());
//!     assert_eq!(guard.state(), konklave::State::Lost);
//! });
//! ```

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use konklave_process::{ProcessId, Rng};

use crate::builder::Timings;
use crate::clock::Clock;
use crate::core::{Config, Core};
use crate::lock_algorithm::LockAlgorithm;
use crate::node::Node;
use crate::shared::{BATCH_FRAMES, Carrier, Flush, Shared};
use crate::store::Record;
use crate::wire::{Frame, MAX_FRAME, WireError};

/// The longest simulated time for `block_on`.
const BLOCK_ON_LIMIT: Duration = Duration::from_secs(3600);

/// The simulated network.
#[derive(Default)]
struct MemoryNetwork {
    /// Frames in flight, by arrival and order of departure: sender, receiver, bytes.
    in_flight: BTreeMap<(Duration, u64), (usize, usize, Vec<u8>)>,
    sent: u64,
    /// Batched frames of each channel, as on a real link.
    batched: BTreeMap<(usize, usize), Vec<Vec<u8>>>,
    /// The last arrival of each channel: channels are FIFO.
    last: BTreeMap<(usize, usize), Duration>,
    cut: BTreeSet<(usize, usize)>,
    /// Sleeping tasks, with the time at which they wake.
    alarms: Vec<(u64, Waker)>,
    /// Shortest and longest delay.
    delay: (Duration, Duration),
    rng: Option<Rng>,
}

impl MemoryNetwork {
    fn depart(&mut self, (from, to): (usize, usize), bytes: Vec<u8>, now: Duration) {
        let (least, most) = self.delay;
        let spread = u32::try_from((most - least).as_micros()).unwrap_or(u32::MAX);
        let extra = self.rng.as_mut().map_or(0, |rng| rng.below(spread.saturating_add(1)));
        let at = now + least + Duration::from_micros(extra.into());
        let last = self.last.entry((from, to)).or_default();
        let at = at.max(*last);
        *last = at;
        self.sent += 1;
        self.in_flight.insert((at, self.sent), (from, to, bytes));
    }
}

struct Hub {
    network: Mutex<MemoryNetwork>,
    clock: Arc<AtomicU64>,
}

impl Hub {
    fn network(&self) -> std::sync::MutexGuard<'_, MemoryNetwork> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct MemoryCarrier {
    hub: Arc<Hub>,
    from: usize,
}

impl Carrier for MemoryCarrier {
    fn send(&self, to: ProcessId, frame: &Frame, flush: Flush) -> Result<Option<u64>, WireError> {
        let mut network = self.hub.network();
        let channel = (self.from, to.0 as usize);
        // Encoded, as on a real network.
        let bytes = frame.encode(Vec::new());
        assert!(bytes.len() <= MAX_FRAME, "a frame of {} bytes to {to:?}", bytes.len());
        let waiting = network.batched.entry(channel).or_default();
        waiting.push(bytes);
        if flush == Flush::Batched && waiting.len() < BATCH_FRAMES as usize {
            return Ok(None);
        }
        let now = Duration::from_nanos(self.hub.clock.load(Ordering::SeqCst));
        for bytes in std::mem::take(waiting) {
            network.depart(channel, bytes, now);
        }
        // No frame numbers: the flight recorder stays empty.
        Ok(None)
    }

    fn flush(&self) {}

    fn stop(&self) {}
}

/// One machine of the cluster.
struct Machine {
    shared: Option<Arc<Shared>>,
    node: Option<Node>,
    disk: Option<Record>,
}

/// A group in memory.
pub struct Cluster {
    hub: Arc<Hub>,
    machines: RefCell<Vec<Machine>>,
    timings: Timings,
    lock_algorithm: LockAlgorithm,
    /// The number of founders, if not all members.
    founders: Option<usize>,
    /// Whether holders may outlive their machines.
    holders_outlive: bool,
    seed: u64,
    incarnations: RefCell<u64>,
    tasks: RefCell<Vec<Task>>,
}

struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<Woken>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Cluster {
    /// A connected group of `n` members, with ids from 0, and with [`Timings::fast`].
    pub fn new(n: usize) -> Self {
        Self::with(n, 0, Timings::fast())
    }

    /// The same with another seed: messages have other delays.
    pub fn seeded(n: usize, seed: u64) -> Self {
        Self::with(n, seed, Timings::fast())
    }

    /// The same with other timings.
    pub fn with(n: usize, seed: u64, timings: Timings) -> Self {
        Self::with_lock_algorithm(LockAlgorithm::default(), n, seed, timings)
    }

    /// The same with another algorithm for exclusive locks.
    pub fn with_lock_algorithm(
        lock_algorithm: LockAlgorithm,
        n: usize,
        seed: u64,
        timings: Timings,
    ) -> Self {
        let cluster = Self::empty(lock_algorithm, n, seed, timings);
        (0..n).for_each(|i| cluster.start(i));
        cluster.advance(Duration::from_millis(50));
        cluster
    }

    /// Members whose holders may go on after a crash, as with
    /// [`Builder::holders_outlive`](crate::Builder::holders_outlive).
    pub fn with_outliving_holders(lock_algorithm: LockAlgorithm, n: usize) -> Self {
        let empty = Self::empty(lock_algorithm, n, 0, Timings::fast());
        let cluster = Self { holders_outlive: true, ..empty };
        (0..n).for_each(|i| cluster.start(i));
        cluster.advance(Duration::from_millis(50));
        cluster
    }

    /// `n` members started at once, of which `founders` found a group. The seed decides the order of connections.
    #[cfg(test)]
    pub(crate) fn crowd(n: usize, founders: usize, seed: u64) -> Self {
        let cluster = Self::strangers(n, founders, seed);
        let mut rng = Rng::new(seed ^ 0xc0de);
        let mut pairs: Vec<_> = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
        while !pairs.is_empty() {
            let (i, j) = pairs.swap_remove(rng.below(pairs.len() as u32) as usize);
            cluster.introduce(i, j);
            cluster.advance(Duration::from_micros(u64::from(rng.below(400))));
        }
        cluster
    }

    /// `n` members that are not connected, of which `founders` found a group.
    #[cfg(test)]
    pub(crate) fn strangers(n: usize, founders: usize, seed: u64) -> Self {
        let empty = Self::empty(LockAlgorithm::default(), n, seed, Timings::fast());
        let cluster = Self { founders: Some(founders), ..empty };
        (0..n).for_each(|i| cluster.start(i));
        cluster
    }

    /// Connects two members, in both directions.
    #[cfg(test)]
    pub(crate) fn introduce(&self, i: usize, j: usize) {
        self.meet(i, j);
        self.meet(j, i);
    }

    fn empty(lock_algorithm: LockAlgorithm, n: usize, seed: u64, timings: Timings) -> Self {
        let clock = Arc::new(AtomicU64::new(Duration::from_secs(1000).as_nanos() as u64));
        let delay = (Duration::from_micros(50), Duration::from_micros(250));
        let network =
            MemoryNetwork { delay, rng: Some(Rng::new(seed)), ..MemoryNetwork::default() };
        let hub = Arc::new(Hub { network: Mutex::new(network), clock });
        let machines = (0..n).map(|_| Machine { shared: None, node: None, disk: None }).collect();
        Self {
            hub,
            machines: RefCell::new(machines),
            timings,
            lock_algorithm,
            founders: None,
            holders_outlive: false,
            seed,
            incarnations: RefCell::new(0),
            tasks: RefCell::new(Vec::new()),
        }
    }

    fn start(&self, i: usize) {
        let n = self.machines.borrow().len();
        *self.incarnations.borrow_mut() += 1;
        let incarnation = *self.incarnations.borrow();
        let fresh = Record { id: i as u32, key: i as u64, ..Record::default() };
        let record = self.machines.borrow()[i].disk.clone().unwrap_or(fresh);
        let config = Config {
            id: ProcessId(i as u32),
            name: format!("n{i}").into(),
            timings: self.timings,
            record: Some(record),
            seeds: n,
            own: Some(i),
            founders: self.founders,
            alone: false,
            rng_seed: self.seed ^ incarnation << 32,
            calendar: 0,
            lock_algorithm: self.lock_algorithm,
            local_turns: crate::builder::TURNS,
            holders_outlive: self.holders_outlive,
        };
        let clock = Clock::Fake(self.hub.clock.clone());
        let name = config.name.clone();
        let shared = Shared::new(Core::new(config, clock.now()), clock, None, self.timings, name);
        shared.connect(Arc::new(MemoryCarrier { hub: self.hub.clone(), from: i }));
        let node = Node::new(shared.clone(), None);
        {
            let machine = &mut self.machines.borrow_mut()[i];
            machine.shared = Some(shared);
            machine.node = Some(node);
        }
        for j in 0..n {
            let other = self.shared(j);
            if i != j && other.is_some() && self.founders.is_none() {
                self.meet(i, j);
                self.meet(j, i);
            }
        }
        if let Some(shared) = self.shared(i) {
            shared.with(|core, _| core.seed_is(i, ProcessId(i as u32)));
        }
    }

    /// Member `i` learns that member `j` is connected.
    fn meet(&self, i: usize, j: usize) {
        let id = ProcessId(j as u32);
        if let Some(shared) = self.shared(i) {
            shared.with(|core, now| {
                core.peer_up(id, format!("n{j}").into(), now);
                core.seed_is(j, id);
            });
        }
    }

    fn shared(&self, i: usize) -> Option<Arc<Shared>> {
        self.machines.borrow().get(i)?.shared.clone()
    }

    fn network(&self) -> std::sync::MutexGuard<'_, MemoryNetwork> {
        self.hub.network()
    }

    /// The number of machines.
    pub fn len(&self) -> usize {
        self.machines.borrow().len()
    }

    /// Whether there are no machines.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Member `i`.
    ///
    /// # Panics
    /// If it is down.
    pub fn node(&self, i: usize) -> Node {
        let node = self.machines.borrow()[i].node.clone();
        node.unwrap_or_else(|| panic!("n{i} is down: restart it first"))
    }

    /// Whether member `i` is up.
    pub fn is_up(&self, i: usize) -> bool {
        self.machines.borrow()[i].shared.is_some()
    }

    /// The number of frames sent so far, heartbeats included.
    pub fn sent(&self) -> u64 {
        self.network().sent
    }

    /// The time since some moment in the past.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.hub.clock.load(Ordering::SeqCst))
    }

    /// Crashes member `i`: its sockets close, so the others notice at once. Old handles of its node do not
    /// work any more.
    pub fn crash(&self, i: usize) {
        let (shared, node) = {
            let machine = &mut self.machines.borrow_mut()[i];
            (machine.shared.take(), machine.node.take())
        };
        if let Some(shared) = shared {
            self.machines.borrow_mut()[i].disk = shared.look(|core| Some(core.record()));
            let _ = shared.stop();
            // A crashed process sends nothing more. Frames in flight may still arrive, batched ones do not.
            shared.with(|core, _| core.terminate());
            self.network().batched.retain(|(from, to), _| *from != i && *to != i);
        }
        drop(node);
        for j in (0..self.len()).filter(|j| *j != i) {
            if let Some(other) = self.shared(j)
                && !self.network().cut.contains(&(i, j))
            {
                other.with(|core, now| core.peer_down(ProcessId(i as u32), now));
            }
        }
    }

    /// Restarts member `i` with its disk.
    pub fn restart(&self, i: usize) {
        if !self.is_up(i) {
            self.start(i);
        }
    }

    /// Restarts member `i` with an empty disk: it has forgotten everything.
    pub fn restart_empty(&self, i: usize) {
        self.machines.borrow_mut()[i].disk = None;
        self.restart(i);
    }

    /// Cuts the channel from `from` to `to`; frames in flight are lost.
    pub fn cut(&self, from: usize, to: usize) {
        let mut network = self.network();
        network.cut.insert((from, to));
        network.in_flight.retain(|_, (f, t, _)| (*f, *t) != (from, to));
        network.batched.remove(&(from, to));
    }

    /// Cuts member `i` off from all others, in both directions, silently.
    pub fn isolate(&self, i: usize) {
        for j in (0..self.len()).filter(|j| *j != i) {
            self.cut(i, j);
            self.cut(j, i);
        }
    }

    /// Partitions the members: those of `side`, and all others.
    pub fn partition(&self, side: &[usize]) {
        for i in 0..self.len() {
            for j in 0..self.len() {
                if side.contains(&i) != side.contains(&j) {
                    self.cut(i, j);
                }
            }
        }
    }

    /// Repairs all cuts.
    pub fn heal(&self) {
        self.network().cut.clear();
    }

    /// Member `to` receives a frame that `from` never sent.
    #[cfg(test)]
    pub(crate) fn inject(&self, to: usize, from: ProcessId, frame: Frame) {
        if let Some(shared) = self.shared(to) {
            shared.with(|core, now| core.on_frame_and_pump(from, frame, now));
        }
    }

    /// The frames in flight: sender, receiver, bytes.
    #[cfg(test)]
    pub(crate) fn frames_in_flight(&self) -> Vec<(usize, usize, Vec<u8>)> {
        self.network().in_flight.values().cloned().collect()
    }

    /// The delay of messages, from now on.
    pub fn delay(&self, least: Duration, most: Duration) {
        self.network().delay = (least, most.max(least));
    }

    /// Runs a future as a task of its own, while time passes.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        self.tasks.borrow_mut().push(Task { future: Box::pin(future), woken });
    }

    /// Lets `time` pass.
    pub fn advance(&self, time: Duration) {
        let end = self.now() + time;
        while self.run_tasks() {}
        while let Some(at) = self.next_event().filter(|at| *at <= end) {
            self.happen(at);
            while self.run_tasks() {}
        }
        self.set_clock(end);
        while self.run_tasks() {}
    }

    /// Returns after `time` has passed. For use in [`block_on`](Self::block_on) and [`spawn`](Self::spawn).
    pub fn sleep(&self, time: Duration) -> impl Future<Output = ()> + 'static + use<> {
        let (clock, end) = (self.hub.clock.clone(), self.now() + time);
        let end = end.as_nanos() as u64;
        let hub = self.hub.clone();
        std::future::poll_fn(move |cx| {
            if clock.load(Ordering::SeqCst) >= end {
                return Poll::Ready(());
            }
            hub.network().alarms.push((end, cx.waker().clone()));
            Poll::Pending
        })
    }

    /// Runs a future to its end, letting time pass.
    ///
    /// # Panics
    /// If it takes more than an hour.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(woken.clone());
        let mut future = pin!(future);
        let end = self.now() + BLOCK_ON_LIMIT;
        loop {
            if woken.0.swap(false, Ordering::SeqCst)
                && let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return value;
            }
            if self.run_tasks() || woken.0.load(Ordering::SeqCst) {
                continue;
            }
            match self.next_event().filter(|at| *at <= end) {
                Some(at) => self.happen(at),
                None => panic!("nothing more will happen: seed {}", self.seed),
            }
        }
    }

    /// Polls the woken tasks; returns whether there were any.
    fn run_tasks(&self) -> bool {
        let mut any = false;
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        let mut still = Vec::new();
        for mut task in tasks {
            let done = task.woken.0.swap(false, Ordering::SeqCst) && {
                any = true;
                let waker = Waker::from(task.woken.clone());
                task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
            };
            if !done {
                still.push(task);
            }
        }
        let mut tasks = self.tasks.borrow_mut();
        still.append(&mut tasks);
        *tasks = still;
        any
    }

    /// The time of the next event.
    fn next_event(&self) -> Option<Duration> {
        let network = self.network();
        let arrival = network.in_flight.keys().next().map(|(at, _)| *at);
        let alarm = network.alarms.iter().map(|(at, _)| Duration::from_nanos(*at)).min();
        drop(network);
        let machines = self.machines.borrow();
        let ticks = machines.iter().filter_map(|m| m.shared.as_ref()).map(|s| s.due());
        ticks.chain(arrival).chain(alarm).min().map(|at| at.max(self.now()))
    }

    fn set_clock(&self, to: Duration) {
        self.hub.clock.store(to.as_nanos() as u64, Ordering::SeqCst);
        let nanoseconds = to.as_nanos() as u64;
        let mut network = self.network();
        let due: Vec<_> = network.alarms.extract_if(.., |(at, _)| *at <= nanoseconds).collect();
        drop(network);
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Performs all events of this moment.
    fn happen(&self, at: Duration) {
        self.set_clock(at);
        loop {
            let mut network = self.network();
            let Some(entry) = network.in_flight.first_entry().filter(|e| e.key().0 <= at) else {
                break;
            };
            let (from, to, bytes) = entry.remove();
            let cut = network.cut.contains(&(from, to));
            drop(network);
            if let Some(shared) = self.shared(to).filter(|_| !cut) {
                let (frame, _) = Frame::decode(&bytes).expect("what was encoded can be decoded");
                let from = ProcessId(from as u32);
                shared.with(|core, now| core.on_frame_and_pump(from, frame, now));
            }
        }
        for i in 0..self.len() {
            if let Some(shared) = self.shared(i).filter(|s| s.due() <= at) {
                shared.tick();
            }
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster({} members, seed {})", self.len(), self.seed)
    }
}
