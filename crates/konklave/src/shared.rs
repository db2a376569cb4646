//! A node shared by several tasks: its core behind a lock, and the work after each step of the core.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use konklave_process::ProcessId;
use tokio::sync::{Notify, watch};

use crate::builder::{Timings, held_for};
use crate::clock::Clock;
use crate::core::{Core, Output};
use crate::error::Error;
use crate::local_grant_budget::LocalGrantBudget;
use crate::net::Security;
use crate::store::{Record, Store};
use crate::wire::{Frame, WireError};

/// How many batched frames are sent together; far fewer than may be unconfirmed.
pub(crate) const BATCH_FRAMES: u64 = 16;

/// When a frame is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flush {
    /// Immediately: a process waits for it.
    Now,
    /// As soon as the local tasks have reacted to the last arrivals.
    Soon,
    /// With the next frames: no process waits for it.
    Batched,
}

/// Carries frames to other processes.
pub(crate) trait Carrier: Send + Sync {
    /// Queues a frame, in order. Returns its number among those to this receiver, or `None` without a link to
    /// it. A frame that is too long is refused.
    fn send(&self, to: ProcessId, frame: &Frame, flush: Flush) -> Result<Option<u64>, WireError>;
    /// The step is over: sends its frames.
    fn flush(&self);
    /// The node has ended.
    fn stop(&self);
    /// Returns when no process can reach this node any more.
    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {})
    }
    /// Calls these addresses, too.
    fn dial(&self, _shared: &Arc<Shared>, _addresses: Vec<String>) {}
    /// Protects new connections in this way.
    fn set_security(&self, _security: Security) {}
    /// Shuts out the processes with these identities, and no others.
    fn deny(&self, _identities: Vec<String>) {}
    /// The identity that this process has proved.
    fn identity(&self, _id: ProcessId) -> Option<String> {
        None
    }
}

/// Whether a node can serve requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Readiness {
    /// It is in no group, or no majority answers it.
    Waiting,
    /// It is a member, and a majority answers.
    Ready,
    /// It has left for good.
    Left,
}

pub(crate) struct Shared {
    inner: Mutex<Inner>,
    pub(crate) clock: Clock,
    pub(crate) timings: Timings,
    pub(crate) name: Arc<str>,
    pub(crate) id: ProcessId,
    /// The time from which leases count, in nanoseconds; `u64::MAX` if they cannot run out.
    renewed: AtomicU64,
    /// When the timer task has to call `tick`.
    due: AtomicU64,
    /// Whether operations are deferred until local tasks have run.
    has_deferred: AtomicBool,
    /// Wakes the timer task.
    pub(crate) alarm: Notify,
    /// Whether this node can serve requests.
    readiness: watch::Sender<Readiness>,
    /// Notified when group messages of the application may be sent again.
    pub(crate) room: Notify,
    /// Limits consecutive local grants.
    pub(crate) grant_budget: Arc<LocalGrantBudget>,
}

struct Inner {
    core: Core,
    carrier: Option<Arc<dyn Carrier>>,
    store: Option<Store>,
    /// Empty between steps; kept to reuse its memory.
    room: Vec<Output>,
    /// Outputs that wait for the disk; and its last error.
    awaiting_disk: VecDeque<Output>,
    trouble: Option<String>,
    /// The problem of the network, if there is one.
    network: Option<String>,
    /// The last `Output::Note` that is not on disk, and when its write was last tried.
    unsaved: Option<(Record, Instant)>,
}

/// The most frames to keep for a failing disk. The links or the group replace dropped ones.
const AWAITING_DISK: usize = 1024;
/// The delay between attempts to write.
const RETRY_DELAY: Duration = Duration::from_millis(500);

impl Shared {
    pub(crate) fn new(
        core: Core,
        clock: Clock,
        store: Option<Store>,
        timings: Timings,
        name: Arc<str>,
    ) -> Arc<Self> {
        let (id, grant_budget) = (core.me(), core.grant_budget());
        let (awaiting_disk, trouble, network, carrier) = (VecDeque::new(), None, None, None);
        Arc::new(Self {
            inner: Mutex::new(Inner {
                core,
                carrier,
                store,
                room: Vec::new(),
                awaiting_disk,
                trouble,
                network,
                unsaved: None,
            }),
            clock,
            timings,
            name,
            id,
            renewed: AtomicU64::new(0),
            due: AtomicU64::new(0),
            has_deferred: AtomicBool::new(false),
            alarm: Notify::new(),
            readiness: watch::Sender::new(Readiness::Waiting),
            room: Notify::new(),
            grant_budget,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects the node to its network.
    pub(crate) fn connect(&self, carrier: Arc<dyn Carrier>) {
        self.lock().carrier = Some(carrier);
        self.with(|_, _| ());
    }

    /// Runs one step of the core, performs its outputs, and publishes what other tasks read without the lock.
    pub(crate) fn with<R>(&self, step: impl FnOnce(&mut Core, Duration) -> R) -> R {
        let mut inner = self.lock();
        let full = inner.core.is_full();
        let now = self.clock.now();
        let result = step(inner.core.at(now), now);
        let room = full && !inner.core.is_full();
        let sent = inner.carry_out(now);
        inner.core.end_step();
        let renewed = inner.core.lease_renewed().map_or(u64::MAX, |at| at.as_nanos() as u64);
        self.renewed.store(renewed, Ordering::Release);
        let has_deferred = inner.core.has_deferred();
        // Deferred operations are due as soon as the woken local tasks have run.
        let due = if has_deferred { 0 } else { inner.core.next_due().as_nanos() as u64 };
        self.has_deferred.store(has_deferred, Ordering::Release);
        inner.publish_readiness(&self.readiness);
        let carrier = sent.then(|| inner.carrier.clone()).flatten();
        let sooner = self.due.swap(due, Ordering::AcqRel) > due;
        drop(inner);
        if sooner {
            self.alarm.notify_one();
        }
        if room {
            self.room.notify_waiters();
        }
        if let Some(carrier) = carrier {
            carrier.flush();
        }
        result
    }

    /// Whether operations are deferred until local tasks have run.
    pub(crate) fn has_deferred(&self) -> bool {
        self.has_deferred.load(Ordering::Acquire)
    }

    /// A record is about to be written: sends the deferred operations along.
    pub(crate) fn send_deferred(&self) {
        if self.has_deferred() {
            self.with(|core, _| core.pump_all());
        }
    }

    /// Reads the core without changing it.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Core) -> R) -> R {
        look(&self.lock().core)
    }

    /// Whether this node can serve requests now, and each change from now on.
    pub(crate) fn readiness(&self) -> watch::Receiver<Readiness> {
        self.readiness.subscribe()
    }

    /// Waits for an answer of the group. Without a majority it may never come: then this fails.
    pub(crate) async fn answer_of_majority<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut readiness = self.readiness();
        let gone = async {
            let state = readiness.wait_for(|readiness| *readiness != Readiness::Ready).await;
            // Not the reference: a step publishes changes while it holds the lock that `look` takes.
            state.map(|state| *state)
        };
        tokio::select! {
            biased;
            answer = answer => answer,
            state = gone => match state {
                Ok(Readiness::Waiting) => Err(Error::NoGroup(self.look(Core::why_not_ready))),
                _ => Err(Error::Left),
            }
        }
    }

    /// The errors of the disk and of the network, if any.
    pub(crate) fn troubles(&self) -> (Option<String>, Option<String>) {
        let inner = self.lock();
        (inner.trouble.clone(), inner.network.clone())
    }

    /// Records what is wrong with the network as a whole; publishes changes only.
    #[cfg(feature = "nats")]
    pub(crate) fn network(&self, trouble: Option<String>) {
        let mut inner = self.lock();
        if inner.network != trouble {
            inner.core.network(trouble.clone());
            inner.network = trouble;
        }
    }

    /// The end of a grant with this lease; `None` if it cannot run out.
    ///
    /// A session may get its grant while the step that granted it is still running, before that step's lease
    /// is published. So an expired value is checked under the lock, after the step.
    pub(crate) fn lease_ends(&self, lease: Duration) -> Option<Duration> {
        let held = held_for(lease);
        let renewed = self.renewed.load(Ordering::Acquire);
        let seen = (renewed < u64::MAX).then(|| Duration::from_nanos(renewed) + held);
        match seen {
            Some(until) if until <= self.clock.now() => {
                self.look(Core::lease_renewed).map(|renewed| renewed + held)
            }
            seen => seen,
        }
    }

    /// When the timer task has to call `tick`.
    pub(crate) fn due(&self) -> Duration {
        Duration::from_nanos(self.due.load(Ordering::Acquire))
    }

    pub(crate) fn tick(&self) {
        self.with(|core, now| core.tick(now));
    }

    /// The network, while there is one.
    pub(crate) fn carrier(&self) -> Option<Arc<dyn Carrier>> {
        self.lock().carrier.clone()
    }

    /// Disconnects the network, which may take a moment, and closes the data directory.
    pub(crate) fn stop(&self) -> Option<Arc<dyn Carrier>> {
        self.send_deferred();
        let (carrier, store) = {
            let mut inner = self.lock();
            (inner.carrier.take(), inner.store.take())
        };
        drop(store);
        carrier.inspect(|carrier| carrier.stop())
    }

    /// Ends the node as a crash would: its timer task is gone, perhaps with the runtime.
    pub(crate) fn crash(&self) {
        let _ = self.stop();
        self.with(|core, _| core.terminate());
    }
}

impl Inner {
    /// Tells the others whether this node can serve requests, if that has changed.
    fn publish_readiness(&self, readiness: &watch::Sender<Readiness>) {
        let now = match (self.core.has_left(), self.core.has_quorum()) {
            (true, _) => Readiness::Left,
            (false, true) => Readiness::Ready,
            (false, false) => Readiness::Waiting,
        };
        readiness.send_if_modified(|last| std::mem::replace(last, now) != now);
    }

    /// Records the error of the disk; publishes changes only.
    fn disk(&mut self, trouble: Option<String>) {
        if self.trouble != trouble {
            self.core.disk(trouble.clone());
            self.trouble = trouble;
        }
    }

    /// Writes the pending note, if there is one.
    fn note(&mut self) {
        let Some((record, _)) = &self.unsaved else { return };
        let saved = self.store.as_ref().map_or(Ok(()), |store| store.save(record));
        self.disk(saved.err().map(|e| e.to_string()));
        match (&self.trouble, &mut self.unsaved) {
            (Some(_), Some((_, tried))) => *tried = Instant::now(),
            _ => self.unsaved = None,
        }
    }

    /// Tries a failed write of a note again from time to time.
    fn note_again(&mut self) {
        if self.unsaved.as_ref().is_some_and(|(_, tried)| tried.elapsed() > RETRY_DELAY) {
            self.note();
        }
    }

    /// A record is on disk. If no other one waits, the core may go on.
    fn on_saved(&mut self) {
        if !self.awaiting_disk.iter().any(|output| matches!(output, Output::Save(_))) {
            self.core.saved();
            self.awaiting_disk.extend(self.core.take_outputs(Vec::new()));
        }
    }

    fn send(&mut self, to: ProcessId, frame: &Frame, now: Duration) {
        if let Some(carrier) = &self.carrier {
            let flush = self.core.flush_policy(to, frame);
            match carrier.send(to, frame, flush) {
                Ok(Some(number)) => self.core.flight.note(now, true, to.0, number, frame),
                Ok(None) => {}
                Err(error) => self.core.refused(format!("node {}", to.0), error.to_string(), now),
            }
        }
    }

    /// Keeps only the latest of the frames that wait for the disk.
    fn forget_old_frames(&mut self) {
        let is_frame = |output: &Output| matches!(output, Output::Send { .. });
        let frames = self.awaiting_disk.iter().filter(|output| is_frame(output)).count();
        let mut surplus = frames.saturating_sub(AWAITING_DISK);
        self.awaiting_disk.retain(|output| {
            let forgets = surplus > 0 && is_frame(output);
            surplus -= usize::from(forgets);
            !forgets
        });
    }

    /// Performs the outputs of the core, in order; returns whether a frame was sent.
    fn carry_out(&mut self, now: Duration) -> bool {
        self.note_again();
        if self.awaiting_disk.is_empty() && !self.core.has_outputs() {
            return false;
        }
        let mut outputs = self.core.take_outputs(std::mem::take(&mut self.room));
        let sends = |output: &Output| matches!(output, Output::Send { .. });
        let sent =
            if self.awaiting_disk.is_empty() && self.carrier.is_some() && outputs.iter().all(sends)
            {
                for output in outputs.drain(..) {
                    if let Output::Send { to, frame } = output {
                        self.send(to, &frame, now);
                    }
                }
                true
            } else {
                self.awaiting_disk.extend(outputs.drain(..));
                self.carrier.is_some() && self.carry_out_slowly(now)
            };
        self.room = outputs;
        sent
    }

    /// The same with records to save: no later output is performed before a record is on disk.
    fn carry_out_slowly(&mut self, now: Duration) -> bool {
        let mut sent = false;
        while let Some(output) = self.awaiting_disk.pop_front() {
            match output {
                Output::Send { to, frame } => {
                    self.send(to, &frame, now);
                    sent = true;
                }
                Output::Note(record) => {
                    self.unsaved = Some((record, Instant::now()));
                    self.note();
                }
                Output::Save(record) => match self.store.as_ref().map(|s| s.save(&record)) {
                    None => self.on_saved(),
                    Some(Ok(())) => {
                        self.disk(None);
                        self.unsaved = None;
                        self.on_saved();
                    }
                    Some(Err(error)) => {
                        self.disk(Some(error.to_string()));
                        // Tried again in the next step; the timer ensures that there is one.
                        self.awaiting_disk.push_front(Output::Save(record));
                        self.forget_old_frames();
                        return sent;
                    }
                },
            }
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;

    #[tokio::test]
    async fn unpublished_lease_is_read_from_core() {
        let node = Node::builder().start().await.unwrap();
        node.ready().await.unwrap();
        let shared = node.shared();
        // Imitates a step that has delivered a grant, but not published its lease yet.
        shared.renewed.store(0, Ordering::Release);
        let lease = shared.timings.lease;
        assert_eq!(shared.lease_ends(lease), None, "alone, nobody could take it");
    }

    /// A node without a group sends joins for ever, even if the disk stays full for a week.
    #[tokio::test]
    async fn outputs_awaiting_disk_are_bounded() {
        let folder = std::env::temp_dir().join(format!("konklave-full-{}", std::process::id()));
        let node = Node::builder().data_dir(&folder).found_alone().join().await.unwrap();
        let shared = node.shared();
        let send = |stamp| {
            let frame = Frame::Pong { view: Default::default(), stamp };
            shared.lock().awaiting_disk.push_back(Output::Send { to: ProcessId(9), frame });
            shared.with(|_, _| ());
        };
        std::fs::remove_dir_all(&folder).unwrap();
        let record = shared.look(Core::record);
        let waiting = [Output::Save(record.clone()), Output::Note(record)];
        shared.lock().awaiting_disk.extend(waiting);
        (0..5000).for_each(send);
        {
            let waiting = &shared.lock().awaiting_disk;
            assert_eq!(waiting.len(), 2 + AWAITING_DISK);
            assert!(matches!(waiting[0], Output::Save(_)) && matches!(waiting[1], Output::Note(_)));
            let stamp = |output: &Output| match output {
                Output::Send { frame: Frame::Pong { stamp, .. }, .. } => Some(*stamp),
                _ => None,
            };
            let kept: Vec<u64> = waiting.iter().filter_map(stamp).collect();
            let latest: Vec<u64> = (5000 - AWAITING_DISK as u64..5000).collect();
            assert_eq!(kept, latest, "in order");
        }
        std::fs::create_dir_all(&folder).unwrap();
        send(5000);
        assert!(shared.lock().awaiting_disk.is_empty());
        assert!(folder.join("node.json").exists());
        let _ = std::fs::remove_dir_all(&folder);
    }
}
