//! A fake service without a group: locks in memory, served in order of request. A test chooses the length of its
//! leases, and can take a lock away.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use konklave_agent::clock::Moment;
use konklave_agent::protocol::{
    AgentState, ClaimKind, Event, Explanation, FailureKind, Finding, Payload, Refusal, Status,
    ViewReport,
};
use konklave_agent::server::{AccessPolicy, ClientListener, Counts, SharedAccessPolicy, Users};
use konklave_agent::service::{
    AcquireRequest, BoxFuture, Denied, HeldClaim, Lost, Problem, Service, Target,
};
use tokio::sync::{mpsc, oneshot, watch};

/// One name.
#[derive(Default)]
struct Lock {
    holders: Vec<(u64, bool, watch::Sender<Option<String>>)>,
    queue: VecDeque<(u64, bool, oneshot::Sender<u64>)>,
}

#[derive(Default)]
struct Table {
    locks: BTreeMap<String, Lock>,
    next: u64,
    /// The history: grants (+token) and ends (-token), in order.
    history: Vec<(String, i64, Moment)>,
}

/// The service; what the tests look at.
#[derive(Clone)]
pub(crate) struct Fake {
    table: Arc<Mutex<Table>>,
    /// How long a grant is safe from any moment; nothing freezes it where it was.
    lease: Arc<Mutex<Duration>>,
    counts: Arc<Counts>,
    closing: watch::Sender<bool>,
}

impl Table {
    fn grant(&mut self, name: &str) {
        let Some(lock) = self.locks.get_mut(name) else { return };
        while let Some((_, shared, _)) = lock.queue.front() {
            let shared = *shared;
            if !(lock.holders.is_empty() || shared && lock.holders.iter().all(|h| h.1)) {
                return;
            }
            let Some((ticket, shared, told)) = lock.queue.pop_front() else { return };
            self.next += 1;
            let _ = ticket;
            if told.send(self.next).is_ok() {
                let (lost, _) = watch::channel(None);
                lock.holders.push((self.next, shared, lost));
                let token = i64::try_from(self.next).expect("small");
                self.history.push((name.to_owned(), token, Moment::now()));
            }
        }
    }

    fn end(&mut self, name: &str, token: u64) {
        if let Some(lock) = self.locks.get_mut(name) {
            let before = lock.holders.len();
            lock.holders.retain(|holder| holder.0 != token);
            if lock.holders.len() < before {
                let token = i64::try_from(token).expect("small");
                self.history.push((name.to_owned(), -token, Moment::now()));
            }
        }
        self.grant(name);
    }
}

impl Fake {
    /// A service at a socket in `folder`, on threads of its own until the test ends.
    pub(crate) fn serve(folder: &Path) -> (Self, PathBuf) {
        Self::serve_for(folder, &[])
    }

    /// The same, for these users, too.
    pub(crate) fn serve_for(folder: &Path, users: &[u32]) -> (Self, PathBuf) {
        let (closing, _) = watch::channel(false);
        let lease = Arc::new(Mutex::new(Duration::from_secs(60)));
        let fake = Self { table: Arc::default(), lease, counts: Arc::default(), closing };
        let hold = Users { users: users.to_vec(), groups: Vec::new() };
        let policy = AccessPolicy { hold, ..AccessPolicy::default() };
        let socket = folder.join("agent.sock");
        let (path, service) = (socket.clone(), Arc::new(fake.clone()));
        let (ready, bound) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let counts = Arc::clone(&service.counts);
                let door = ClientListener::bind(&path, SharedAccessPolicy::new(policy), counts)
                    .expect("bind");
                ready.send(()).expect("the test waits");
                let closing = service.closing.subscribe();
                door.serve(service, closing).await;
            });
        });
        bound.recv().expect("bound");
        (fake, socket)
    }

    /// Has it go away in order.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// How many clients it serves.
    pub(crate) fn sessions(&self) -> usize {
        self.counts.sessions.load(Ordering::Relaxed)
    }

    pub(crate) fn lease(&self, lease: Duration) {
        *self.lease.lock().expect("whole") = lease;
    }

    /// Takes `name` from its holder, and serves the next waiter.
    pub(crate) fn take_away(&self, name: &str, why: &str) {
        let mut table = self.table.lock().expect("whole");
        let tokens: Vec<u64> = table
            .locks
            .get(name)
            .into_iter()
            .flat_map(|lock| &lock.holders)
            .map(|(token, _, lost)| {
                lost.send_replace(Some(why.to_owned()));
                *token
            })
            .collect();
        for token in tokens {
            table.end(name, token);
        }
    }

    /// The tokens of the holders of `name`.
    pub(crate) fn holders(&self, name: &str) -> Vec<u64> {
        let table = self.table.lock().expect("whole");
        table.locks.get(name).map(|l| l.holders.iter().map(|h| h.0).collect()).unwrap_or_default()
    }

    /// How many wait for `name`.
    pub(crate) fn waiting(&self, name: &str) -> usize {
        let table = self.table.lock().expect("whole");
        table
            .locks
            .get(name)
            .map_or(0, |lock| lock.queue.iter().filter(|waiter| !waiter.2.is_closed()).count())
    }

    /// When the last holder of `name` ended.
    pub(crate) fn ended(&self, name: &str) -> Option<Moment> {
        let table = self.table.lock().expect("whole");
        table.history.iter().rev().find(|e| e.0 == name && e.1 < 0).map(|e| e.2)
    }

    async fn obtain(&self, wish: AcquireRequest) -> Result<Box<dyn HeldClaim>, Denied> {
        let (told, granted) = oneshot::channel();
        let shared = match wish.claim {
            ClaimKind::Shared => true,
            ClaimKind::Exclusive | ClaimKind::Leadership { .. } => false,
            ClaimKind::Slot { .. } => {
                return Err(Denied::Failed(FailureKind::Usage, "no slots here".into()));
            }
        };
        let busy = |why| Denied::Refused(why, "someone has it".into());
        {
            let mut table = self.table.lock().expect("whole");
            table.next += 1;
            let ticket = table.next;
            let lock = table.locks.entry(wish.name.clone()).or_default();
            lock.queue.retain(|waiter| !waiter.2.is_closed());
            lock.queue.push_back((ticket, shared, told));
            table.grant(&wish.name);
        }
        let token = match wish.wait {
            None => granted.await.ok(),
            Some(wait) if wait.is_zero() => {
                let mut granted = granted;
                Some(granted.try_recv().map_err(|_| busy(Refusal::Busy))?)
            }
            Some(wait) => match tokio::time::timeout(wait, granted).await {
                Ok(token) => token.ok(),
                Err(_) => return Err(busy(Refusal::Timeout)),
            },
        };
        let token = token.ok_or_else(|| busy(Refusal::Cancelled))?;
        let lost = {
            let table = self.table.lock().expect("whole");
            let holders = table.locks.get(&wish.name).map(|lock| &lock.holders);
            holders
                .and_then(|all| all.iter().find(|holder| holder.0 == token))
                .map(|holder| holder.2.subscribe())
                .ok_or_else(|| busy(Refusal::Cancelled))?
        };
        Ok(Box::new(Held { fake: self.clone(), name: wish.name, token, lost }))
    }
}

struct Held {
    fake: Fake,
    name: String,
    token: u64,
    lost: watch::Receiver<Option<String>>,
}

impl HeldClaim for Held {
    fn token(&self) -> String {
        self.token.to_string()
    }

    fn until(&self) -> Moment {
        Moment::now().after(*self.fake.lease.lock().expect("whole"))
    }

    fn lost(&mut self) -> BoxFuture<'_, Lost> {
        Box::pin(async {
            let why = match self.lost.wait_for(Option::is_some).await {
                Ok(why) => why.clone().unwrap_or_default(),
                Err(_) => "gone".into(),
            };
            Lost { why, resumable: false }
        })
    }

    fn forfeit(self: Box<Self>, _why: String) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), Problem>> {
        // As it is dropped.
        Box::pin(async { Ok(()) })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.fake.table.lock().expect("whole").end(&self.name, self.token);
    }
}

impl Service for Fake {
    fn node(&self) -> String {
        "fake".into()
    }

    fn lease(&self) -> Duration {
        *self.lease.lock().expect("whole")
    }

    fn acquire(&self, wish: AcquireRequest) -> BoxFuture<'_, Result<Box<dyn HeldClaim>, Denied>> {
        Box::pin(self.obtain(wish))
    }

    fn over(&self, _: u64) {}

    fn status(&self, _: &str, _: usize) -> BoxFuture<'_, Result<Status, Problem>> {
        Box::pin(async {
            Ok(Status {
                schema: "konklave.status/1".into(),
                node: "fake".into(),
                standing: AgentState::Primary,
                view: ViewReport::default(),
                locks: Vec::new(),
                elections: Vec::new(),
                more: 0,
                sessions: 0,
            })
        })
    }

    fn why(&self, name: &str) -> BoxFuture<'_, Result<Explanation, Problem>> {
        let name = name.to_owned();
        Box::pin(async {
            Ok(Explanation {
                schema: "konklave.why/1".into(),
                name,
                free: true,
                reasons: Vec::new(),
                cycle: Vec::new(),
            })
        })
    }

    fn revoke(
        &self,
        name: &str,
        _: Target,
        _: Option<konklave::Token>,
    ) -> BoxFuture<'_, Result<(), Problem>> {
        self.take_away(name, "revoked");
        Box::pin(async { Ok(()) })
    }

    fn watch(&self, _: mpsc::Sender<Event>) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async { Ok(()) })
    }

    fn send(&self, _: &str, _: Payload) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async { Err((FailureKind::Unavailable, "no group".into())) })
    }

    fn receive(&self, _: &str, _: mpsc::Sender<Event>) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async { Err((FailureKind::Unavailable, "no group".into())) })
    }

    fn record(&self) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async { Ok(String::new()) })
    }

    fn examine(&self) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(async { Vec::new() })
    }

    fn metrics(&self) -> String {
        String::new()
    }
}
