//! The service of an agent: translates the requests of clients into calls of the library.

mod app_groups;
mod certificates;
mod changes;
mod claims;
mod explain;
mod metrics;
mod nested_sessions;
mod report;
mod wait_cycles;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use konklave::{Error, LockRequest, Node, Session, Token};
use serde_json::json;
use tokio::sync::{broadcast, mpsc};

use self::app_groups::AppGroups;
pub(super) use self::certificates::Certificates;
use self::claims::{AnyGuard, GroupClaim, Losses};
use self::nested_sessions::NestedSessions;
pub(super) use self::report::advised;
use super::discovery::{PROBE_TIMEOUT, silent};
use crate::protocol::{
    ClaimKind, Event, Explanation, FailureKind, Finding, MAX_FRAME, Payload, Refusal, Status,
    counted,
};
use crate::recorder::Recorder;
use crate::server::{Counts, SharedAccessPolicy};
use crate::service::{
    AcquireRequest, BoxFuture, Denied, HeldClaim, Problem, Resumed, Service, Target,
};
use konklave::RateLimiter;

/// How often the log reports missed events.
const MISSED_INTERVAL: Duration = Duration::from_secs(10);
/// How many losses are buffered for a slow reader of `watch`.
const LOSS_BUFFER: usize = 64;
/// How long an agent may take to found or join a group, besides the lease of former locks. Later, a missing own address in `--peers` is
/// reported as the cause.
const SETTLING: Duration = Duration::from_secs(3);
const UNLISTED: &str = "this agent's address is not in --peers, though all agents of the list answer: add it; \
                        the list must be the same on all agents";
/// How long the group may take to answer a request that does not wait (`-n`).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// The member of this agent (with `--dev`, three members), and the state of its clients.
pub(super) struct GroupService {
    nodes: Vec<Node>,
    next: AtomicUsize,
    nested: Arc<NestedSessions>,
    app_groups: AppGroups,
    counts: Arc<Counts>,
    waits: metrics::Waits,
    recorder: Arc<Recorder>,
    losses: Losses,
    /// Which users may use the socket.
    policy: SharedAccessPolicy,
    started: Instant,
    /// Why the last reload failed, if it did.
    unread: Mutex<Option<String>>,
    protected: bool,
    /// The files with keys.
    secrets: Vec<PathBuf>,
    /// The ends of the certificates, if it uses some.
    certificates: Mutex<Option<Certificates>>,
    /// The addresses of the founders, if a list names them.
    founders: Vec<String>,
    /// The lease of the group.
    lease: Duration,
}

impl GroupService {
    pub(super) fn new(
        nodes: Vec<Node>,
        counts: Arc<Counts>,
        policy: SharedAccessPolicy,
        protected: bool,
        secrets: Vec<PathBuf>,
        founders: Vec<String>,
        lease: Duration,
    ) -> Self {
        let name = nodes.first().map(|node| node.name().to_owned()).unwrap_or_default();
        let recorder = Arc::new(Recorder::new(&name));
        for node in &nodes {
            // Subscribe before reading the status, so that no trouble is missed between the two.
            let (events, status) = (node.events(), node.status());
            if let trouble @ Some(_) = status.trouble {
                note(&konklave::Event::Disk { trouble }, &recorder);
            }
            if let trouble @ Some(_) = status.network {
                note(&konklave::Event::Network { trouble }, &recorder);
            }
            tokio::spawn(remember(events, Arc::clone(&recorder)));
            tokio::spawn(look_for_ourselves(node.clone(), SETTLING + lease));
        }
        Self {
            nodes,
            next: AtomicUsize::new(0),
            nested: Arc::default(),
            app_groups: AppGroups::default(),
            counts,
            waits: metrics::Waits::default(),
            recorder,
            losses: broadcast::Sender::new(LOSS_BUFFER),
            policy,
            started: Instant::now(),
            unread: Mutex::default(),
            protected,
            secrets,
            certificates: Mutex::default(),
            founders,
            lease,
        }
    }

    /// The member whose status the agent reports. There is always one.
    fn node(&self) -> &Node {
        &self.nodes[0]
    }

    /// All members in this process.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Notes which certificates this agent uses.
    pub(super) fn use_certificates(&self, certificates: Option<Certificates>) {
        *self.certificates.lock().unwrap_or_else(PoisonError::into_inner) = certificates;
    }

    fn certificates(&self) -> Option<Certificates> {
        *self.certificates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the result of a reload.
    pub(super) fn reloaded(&self, failure: Option<String>) {
        *self.unread.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Whether this agent's member is in a majority, so that it can grant locks.
    pub(super) fn is_primary(&self) -> bool {
        report::is_primary(&self.node().status())
    }

    /// Leaves in order.
    pub(super) async fn leave(&self) {
        for node in self.nodes.iter().rev() {
            match tokio::time::timeout(ANSWER_TIMEOUT, node.leave()).await {
                Ok(Ok(())) => tracing::info!(node = node.name(), "left the group"),
                Ok(Err(error)) => tracing::warn!(%error, "could not leave the group in order"),
                Err(_) => tracing::warn!("no other member has confirmed that this agent leaves"),
            }
        }
    }

    /// Ends like a crash: locks held here stay taken until their leases have run out.
    pub(super) fn kill(&self) {
        for node in &self.nodes {
            node.kill();
        }
    }

    /// The library session of a client. New ones are spread over the members of `--dev`.
    fn session(&self, wish: &AcquireRequest) -> Session {
        let open = || {
            let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.nodes.len();
            self.nodes[turn].session(wish.label.as_str())
        };
        self.nested.session(wish.session, wish.within.as_deref(), open)
    }

    async fn obtain(&self, wish: AcquireRequest) -> Result<Box<dyn HeldClaim>, Denied> {
        let session = self.session(&wish);
        // Nested clients share a session, so the label is set per request.
        let start = Instant::now();
        let asked = if wish.resume.is_some() { "resuming" } else { "asked" };
        self.recorder.note(asked, json!({ "name": wish.name, "label": wish.label }));
        let lock = |request| self.ask(request, &wish);
        let result = match &wish.claim {
            ClaimKind::Leadership { priority } => self.lead(&session, &wish, *priority).await,
            ClaimKind::Exclusive => lock(session.lock(&wish.name)).await,
            ClaimKind::Shared => lock(session.lock(&wish.name).shared()).await,
            ClaimKind::Slot { of } => lock(session.semaphore(&wish.name, *of)).await,
        };
        self.waits.note(start.elapsed());
        match result {
            Ok(held) => {
                let token = held.token();
                let mode = match wish.claim {
                    ClaimKind::Exclusive => "exclusive",
                    ClaimKind::Shared => "shared",
                    ClaimKind::Slot { .. } => "slot",
                    ClaimKind::Leadership { .. } => "leadership",
                };
                let what = json!({ "name": wish.name, "token": token, "mode": mode });
                // A resumed grant is the same grant: it has been recorded.
                let granted = if wish.resume.is_some() { "resumed" } else { "granted" };
                self.recorder.note(granted, what);
                self.nested.holds(wish.session, &token);
                let node = self.node().clone();
                let (recorder, nested) = (Arc::clone(&self.recorder), Arc::clone(&self.nested));
                let losses = self.losses.clone();
                Ok(Box::new(GroupClaim::new(held, wish.name, node, recorder, losses, nested)))
            }
            Err(error) => {
                let what = json!({ "name": wish.name, "why": error.to_string() });
                self.recorder.note("refused", what);
                Err(self.denied(error).await)
            }
        }
    }

    async fn lead(
        &self,
        session: &Session,
        wish: &AcquireRequest,
        priority: i32,
    ) -> Result<AnyGuard, Error> {
        let mut campaign = session.campaign(&wish.name).priority(priority).label(&*wish.label);
        if let Some(lease) = wish.lease {
            campaign = campaign.lease(lease);
        }
        if let Some(resume) = &wish.resume {
            let campaign = campaign.resume(token_of(resume)?).timeout(resume.until.left());
            return campaign.await.map(AnyGuard::Leadership);
        }
        let elected = match wish.wait {
            None => campaign.await,
            Some(wait) if wait.is_zero() => {
                if self.leads(&wish.name) {
                    return Err(Error::Busy(wish.name.clone()));
                }
                let asked =
                    self.without_waiting(campaign.timeout(ANSWER_TIMEOUT).into_future()).await;
                asked.map_err(|error| match error {
                    Error::TimedOut(name) if self.is_primary() => Error::Busy(name),
                    other => other,
                })
            }
            Some(wait) => campaign.timeout(wait).await,
        };
        elected.map(AnyGuard::Leadership)
    }

    async fn ask(&self, request: LockRequest, wish: &AcquireRequest) -> Result<AnyGuard, Error> {
        // Nested clients share a session, so the label is set per request.
        let mut request = request.label(&*wish.label);
        if let Some(lease) = wish.lease {
            request = request.lease(lease);
        }
        let guard = match (&wish.resume, wish.wait) {
            (Some(resume), _) => {
                request.resume(token_of(resume)?).timeout(resume.until.left()).acquire().await
            }
            (None, None) => request.acquire().await,
            // Only the group knows whether it is free; this needs a majority.
            (None, Some(wait)) if wait.is_zero() => {
                self.without_waiting(request.try_acquire()).await
            }
            (None, Some(wait)) => request.timeout(wait).acquire().await,
        };
        guard.map(AnyGuard::Lock)
    }

    /// Waits for an answer of the group, for a client that does not want to wait for a lock.
    ///
    /// Without a majority the answer may never come, so the call fails. An agent that has just started gets
    /// time to find the other agents.
    async fn without_waiting<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let settling = SETTLING.saturating_sub(self.started.elapsed());
        if !settling.is_zero() && !self.node().status().member {
            let _ = tokio::time::timeout(settling, self.node().ready()).await;
        }
        let no_majority = || Err(Error::NoGroup("no majority has answered in time".into()));
        let mut quorum = self.node().watch_quorum();
        let lost = async { while quorum.next().await == Some(true) {} };
        tokio::select! {
            biased;
            answer = tokio::time::timeout(ANSWER_TIMEOUT, answer) => answer.unwrap_or_else(|_| no_majority()),
            () = lost => no_majority(),
        }
    }

    /// Whether the election `name` has a leader.
    fn leads(&self, name: &str) -> bool {
        let locks = self.node().status().locks;
        locks.iter().any(|l| l.kind == "campaign" && l.name == name && !l.holders.is_empty())
    }

    /// Why this agent cannot grant anything now, if so, and which agents are missing.
    async fn why_no_grants(&self) -> Option<String> {
        let status = self.node().status();
        if report::is_primary(&status) {
            return None;
        }
        let quorum = status.quorum;
        Some(match advised(&status) {
            Some(missing) => {
                let mut why = format!("no group: {missing}");
                // A short probe, because the client has waited already.
                for silent in silent(&self.founders, PROBE_TIMEOUT / 2).await {
                    why.push_str(&format!("\n  {silent}"));
                }
                why
            }
            None => {
                let away = |m: &&konklave::MemberStatus| m.suspected || !m.connected;
                let away: Vec<String> = status.members.iter().filter(away).map(named).collect();
                let silent = if away.is_empty() {
                    String::new()
                } else {
                    format!("; silent: {}", away.join(", "))
                };
                format!("no majority: {}{silent}", report::hears(quorum))
            }
        })
    }

    async fn denied(&self, error: Error) -> Denied {
        let message = error.to_string();
        match error {
            Error::Busy(_) => Denied::Refused(Refusal::Busy, message),
            Error::Lost(_) => Denied::Refused(Refusal::Lost, message),
            // Without a majority this agent cannot know whether it is taken, so the answer is not "refused".
            Error::TimedOut(_) | Error::NoGroup(_) => match self.why_no_grants().await {
                Some(why) => Denied::Failed(FailureKind::Unavailable, why),
                None if matches!(error, Error::TimedOut(_)) => {
                    Denied::Refused(Refusal::Timeout, message)
                }
                None => Denied::Failed(FailureKind::Unavailable, message),
            },
            other => {
                let (kind, message) = problem(other);
                Denied::Failed(kind, message)
            }
        }
    }
}

fn named(member: &konklave::MemberStatus) -> String {
    report::called(&member.name, member.node)
}

fn problem(error: Error) -> Problem {
    let kind = match &error {
        Error::Permits { .. }
        | Error::OnlyExclusive { .. }
        | Error::OnlyGroupLease { .. }
        | Error::BadName(_)
        | Error::TooLong { .. }
        | Error::Config(_) => FailureKind::Usage,
        Error::NotHeld(_) => FailureKind::Unknown,
        _ => FailureKind::Unavailable,
    };
    (kind, error.to_string())
}

/// Writes the events of a member to the recorder and the log.
async fn remember(mut events: konklave::Events, recorder: Arc<Recorder>) {
    let mut missed = RateLimiter::new(MISSED_INTERVAL, 1);
    while let Some(event) = events.next().await {
        // The recorder notes each gap; the log is limited, because gaps come in bursts.
        if let konklave::Event::Missed { missed: more } = event {
            recorder.note("missed", serde_json::to_value(&event).unwrap_or_default());
            if let Some(missed) = missed.count((), more, Instant::now()) {
                let missed = counted(missed, "event");
                tracing::warn!("missed: {missed} not recorded, because too many came at a time");
            }
            continue;
        }
        note(&event, &recorder);
    }
}

/// Logs once if the agent waits for ever because its own address is not in its list of peers.
async fn look_for_ourselves(node: Node, settling: Duration) {
    loop {
        tokio::time::sleep(settling).await;
        let status = node.status();
        if status.member {
            return;
        }
        if node.is_unlisted() {
            tracing::warn!("{UNLISTED}");
            return;
        }
    }
}

/// Writes an event to the log and the recorder.
fn note(event: &konklave::Event, recorder: &Recorder) {
    // Each agent records the grants of its own clients, where they happen.
    if matches!(event, konklave::Event::Held { .. } | konklave::Event::Freed { .. }) {
        return;
    }
    let (kind, name, what) = report::event(event);
    match event {
        konklave::Event::View { .. } => tracing::info!(view = %name, "{what}"),
        konklave::Event::Left => tracing::info!("left the group"),
        konklave::Event::Network { trouble: None } => tracing::info!("the network works again"),
        konklave::Event::Network { trouble: Some(trouble) } => tracing::warn!("{trouble}"),
        konklave::Event::Disk { trouble: None } => tracing::info!("the disk works again"),
        konklave::Event::Disk { trouble: Some(trouble) } => tracing::warn!("{trouble}"),
        _ if name.is_empty() => tracing::warn!("{kind}: {what}"),
        konklave::Event::Granted { .. } | konklave::Event::Connected { .. } => {
            tracing::debug!(name = %name, "{kind}: {what}");
        }
        _ => tracing::warn!(name = %name, "{kind}: {what}"),
    }
    // Grants and losses are recorded elsewhere, with the client they belong to.
    if matches!(event, konklave::Event::Granted { .. } | konklave::Event::Lost { .. }) {
        return;
    }
    let value = serde_json::to_value(event).unwrap_or_else(|_| what.into());
    recorder.note(&kind, value);
}

/// The token of a grant to go on with. Its client may have lost it to another one since, if its deadline has passed.
fn token_of(resumed: &Resumed) -> Result<Token, Error> {
    if resumed.until.passed() {
        return Err(Error::Lost("the grant".into()));
    }
    let wrong = |_| Error::Config(format!("{:?} is no token", resumed.token));
    resumed.token.parse().map_err(wrong)
}

impl Service for GroupService {
    fn node(&self) -> String {
        self.node().name().to_owned()
    }

    fn lease(&self) -> Duration {
        self.lease
    }

    fn acquire(&self, wish: AcquireRequest) -> BoxFuture<'_, Result<Box<dyn HeldClaim>, Denied>> {
        Box::pin(self.obtain(wish))
    }

    fn over(&self, session: u64) {
        self.nested.over(session);
    }

    fn status(&self, prefix: &str, limit: usize) -> BoxFuture<'_, Result<Status, Problem>> {
        let sessions = self.counts.sessions.load(Ordering::Relaxed);
        let status = report::status(&self.node().status(), prefix, limit, sessions);
        Box::pin(async { Ok(status) })
    }

    fn why(&self, name: &str) -> BoxFuture<'_, Result<Explanation, Problem>> {
        let status = self.node().status();
        let mut explanation = explain::explain(&self.node().why(name), &status);
        Box::pin(async move {
            if !status.member && status.missing.is_some() {
                // After the line about what is missing come the founders that do not answer.
                let silent = silent(&self.founders, PROBE_TIMEOUT).await;
                for (i, why) in silent.into_iter().enumerate() {
                    let place = explanation.reasons.len().min(1 + i);
                    explanation.reasons.insert(place, format!("founder {why}"));
                }
            }
            Ok(explanation)
        })
    }

    fn revoke(
        &self,
        name: &str,
        target: Target,
        token: Option<Token>,
    ) -> BoxFuture<'_, Result<(), Problem>> {
        let name = name.to_owned();
        Box::pin(async move {
            self.recorder.note("revoked", json!({ "name": name }));
            tracing::info!(%name, "an operator revokes the grants of {name}");
            let revoked = async {
                match target {
                    Target::Election => self.node().step_down(&name).await,
                    Target::Slots => self.node().revoke_permits(&name, token).await,
                    Target::Lock => self.node().revoke(&name, token).await,
                }
            };
            match self.without_waiting(revoked).await {
                Err(error @ Error::NoGroup(_)) => {
                    let why = self.why_no_grants().await.unwrap_or_else(|| error.to_string());
                    Err((FailureKind::Unavailable, why))
                }
                result => result.map_err(problem),
            }
        })
    }

    fn watch(&self, to: mpsc::Sender<Event>) -> BoxFuture<'_, Result<(), Problem>> {
        let (mut events, mut losses) = (self.node().events(), self.losses.subscribe());
        Box::pin(async move {
            loop {
                tokio::select! {
                    // A lagging receiver gets an error here, and a `Missed` event from the member.
                    Ok(lost) = losses.recv() => {
                        if to.send(changes::forfeited(lost, self.node())).await.is_err() {
                            return Ok(());
                        }
                    }
                    event = events.next() => {
                        let Some(event) = event else { return Ok(()) };
                        if to.send(changes::changed(&event, self.node())).await.is_err() {
                            return Ok(());
                        }
                    }
                    () = to.closed() => return Ok(()),
                }
            }
        })
    }

    fn send(&self, group: &str, payload: Payload) -> BoxFuture<'_, Result<(), Problem>> {
        let group = group.to_owned();
        Box::pin(async move {
            let bytes = payload.into_bytes();
            let bytes =
                bytes.ok_or_else(|| (FailureKind::Usage, "payload: not hexadecimal".to_owned()))?;
            let Err((kind, message)) = self.app_groups.send(self.node(), &group, bytes).await
            else {
                return Ok(());
            };
            Err(match self.why_no_grants().await {
                Some(why) if kind == FailureKind::Unavailable => (kind, format!("{group}: {why}")),
                Some(_) | None => (kind, message),
            })
        })
    }

    fn receive(&self, group: &str, to: mpsc::Sender<Event>) -> BoxFuture<'_, Result<(), Problem>> {
        let group = group.to_owned();
        Box::pin(async move { self.app_groups.receive(self.node(), &group, to).await })
    }

    fn record(&self) -> BoxFuture<'_, Result<String, Problem>> {
        // As a JSON string the text grows, because each quote is escaped. Half of a frame leaves room for that.
        let text =
            self.recorder.text(report::passed(&self.nodes, self.recorder.life()), MAX_FRAME / 2);
        Box::pin(async { Ok(text) })
    }

    fn examine(&self) -> BoxFuture<'_, Vec<Finding>> {
        let status = self.node().status();
        // The three members of --dev store nothing.
        let kept = self.nodes.len() == 1;
        let mut findings = report::examine(&status, self.protected, kept);
        findings.push(wait_cycles::examine(&status));
        if self.node().is_unlisted() && self.started.elapsed() > SETTLING + self.lease {
            findings.push(Finding { what: "peers".into(), well: false, detail: UNLISTED.into() });
        }
        if let Some(why) = self.unread.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            let detail = format!("the last SIGHUP failed, the agent keeps its settings: {why}");
            findings.push(Finding { what: "reload".into(), well: false, detail });
        }
        if let Some(detail) = self.policy.obstacle() {
            findings.push(Finding { what: "way to the socket".into(), well: false, detail });
        }
        findings.extend(
            self.certificates().into_iter().flat_map(|ends| ends.findings(SystemTime::now())),
        );
        for detail in self.secrets.iter().filter_map(|file| super::secrets::exposed(file)) {
            findings.push(Finding { what: "key".into(), well: false, detail });
        }
        Box::pin(async move {
            // A group with at least as many voters as founders does not need the silent ones.
            let voters = status.members.iter().filter(|member| member.votes).count();
            if !status.member || voters < self.founders.len() {
                for detail in silent(&self.founders, PROBE_TIMEOUT).await {
                    findings.push(Finding { what: "founder".into(), well: false, detail });
                }
            }
            findings
        })
    }

    fn metrics(&self) -> String {
        metrics::text(&self.node().status(), &self.counts, &self.waits, self.certificates())
    }
}
