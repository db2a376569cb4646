//! The service on a real group: what clients ask, said in the words of the library.

mod changes;
mod circle;
mod deadlocks;
mod explain;
mod families;
mod held;
mod metrics;
mod report;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use konklave::{Error, Guard, Node, Session, Token};
use serde_json::json;
use tokio::sync::{broadcast, mpsc};

use self::circle::Circles;
use self::families::Families;
use self::held::{Claimed, Held, Losses};
pub(super) use self::report::advised;
use super::discovery::{TRY, silent};
use crate::protocol::{
    Claim, Event, Explanation, Finding, MAX_FRAME, Payload, Refusal, Status, Trouble,
};
use crate::recorder::Recorder;
use crate::seldom::Seldom;
use crate::server::{Counts, SharedDoorman};
use crate::service::{Denied, Hold, Problem, Promise, Service, Target, Wish};

/// How many losses are kept for who looks on and is slow.
const LOSSES: usize = 64;
/// How long a group may take to be founded, or to take us in, before a list of peers without ourselves
/// is what it waits for.
const SETTLING: Duration = Duration::from_secs(3);
const UNLISTED: &str = "this agent's address is not among --peers, whose agents all answer: the list is \
                        the same for all, ourselves included";
/// How long the group may take to say whether something is free.
const PROMPT: Duration = Duration::from_secs(3);
/// How long it may be without a majority meanwhile: no change of view takes that long.
const HOPE: Duration = Duration::from_millis(500);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// One or, with `--dev`, three members, and what their clients hold.
pub(super) struct Group {
    nodes: Vec<Node>,
    next: AtomicUsize,
    families: Arc<Families>,
    circles: Circles,
    counts: Arc<Counts>,
    waits: metrics::Waits,
    recorder: Arc<Recorder>,
    losses: Losses,
    /// Who stands at the socket.
    doorman: SharedDoorman,
    started: Instant,
    /// Why the last reload failed, if it did.
    unread: Mutex<Option<String>>,
    protected: bool,
    /// Files with keys.
    secrets: Vec<PathBuf>,
    /// Where the founders are, as far as a list says.
    founders: Vec<String>,
}

impl Group {
    pub(super) fn new(
        nodes: Vec<Node>,
        counts: Arc<Counts>,
        doorman: SharedDoorman,
        protected: bool,
        secrets: Vec<PathBuf>,
        founders: Vec<String>,
    ) -> Self {
        let name = nodes.first().map(|node| node.name().to_owned()).unwrap_or_default();
        let recorder = Arc::new(Recorder::new(&name));
        for node in &nodes {
            // From now on, not from when the task has its first turn; what was told before is asked for.
            let (events, status) = (node.events(), node.status());
            if let trouble @ Some(_) = status.trouble {
                note(&konklave::Event::Disk { trouble }, &recorder);
            }
            if let trouble @ Some(_) = status.network {
                note(&konklave::Event::Network { trouble }, &recorder);
            }
            tokio::spawn(remember(events, Arc::clone(&recorder)));
            tokio::spawn(look_for_ourselves(node.clone()));
        }
        Self {
            nodes,
            next: AtomicUsize::new(0),
            families: Arc::default(),
            circles: Circles::default(),
            counts,
            waits: metrics::Waits::default(),
            recorder,
            losses: broadcast::Sender::new(LOSSES),
            doorman,
            started: Instant::now(),
            unread: Mutex::default(),
            protected,
            secrets,
            founders,
        }
    }

    /// The member that reports. There is always one.
    fn node(&self) -> &Node {
        &self.nodes[0]
    }

    /// All members that run here.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The files were read again, or were not.
    pub(super) fn reloaded(&self, failure: Option<String>) {
        *self.unread.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Whether something can be granted here.
    pub(super) fn is_primary(&self) -> bool {
        report::is_primary(&self.node().status())
    }

    /// Leaves in order.
    pub(super) async fn leave(&self) {
        for node in self.nodes.iter().rev() {
            match tokio::time::timeout(PROMPT, node.leave()).await {
                Ok(Ok(())) => tracing::info!(node = node.name(), "left the group"),
                Ok(Err(error)) => tracing::warn!(%error, "could not leave in order"),
                Err(_) => tracing::warn!("nobody confirms that we leave"),
            }
        }
    }

    /// Ends as a crash would: what is held here stays taken until its holders must know.
    pub(super) fn kill(&self) {
        for node in &self.nodes {
            node.kill();
        }
    }

    /// The session of a client; the first time at one member or another.
    fn session(&self, wish: &Wish) -> Session {
        let open = || {
            let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.nodes.len();
            self.nodes[turn].session(wish.label.as_str())
        };
        self.families.session(wish.session, wish.within.as_deref(), open)
    }

    async fn obtain(&self, wish: Wish) -> Result<Box<dyn Hold>, Denied> {
        let session = self.session(&wish);
        // One session may be that of several clients.
        let label = wish.label.as_str();
        let start = Instant::now();
        self.recorder.note("asked", json!({ "name": wish.name, "label": wish.label }));
        let result = match &wish.claim {
            Claim::Leadership { priority } => self.lead(&session, &wish, *priority).await,
            Claim::Exclusive => {
                self.ask(session.lock(&wish.name).label(label), wish.wait).await.map(Held::Lock)
            }
            Claim::Shared => {
                let request = session.lock(&wish.name).shared();
                self.ask(request.label(label), wish.wait).await.map(Held::Lock)
            }
            Claim::Slot { of } => {
                let request = session.semaphore(&wish.name, *of);
                self.ask(request.label(label), wish.wait).await.map(Held::Lock)
            }
        };
        self.waits.note(start.elapsed());
        match result {
            Ok(held) => {
                let token = held.token();
                let mode = match wish.claim {
                    Claim::Exclusive => "exclusive",
                    Claim::Shared => "shared",
                    Claim::Slot { .. } => "slot",
                    Claim::Leadership { .. } => "leadership",
                };
                let what = json!({ "name": wish.name, "token": token, "mode": mode });
                self.recorder.note("granted", what);
                self.families.holds(wish.session, &token);
                let node = self.node().clone();
                let (recorder, families) = (Arc::clone(&self.recorder), Arc::clone(&self.families));
                let losses = self.losses.clone();
                Ok(Box::new(Claimed::new(held, wish.name, node, recorder, losses, families)))
            }
            Err(error) => {
                let what = json!({ "name": wish.name, "why": error.to_string() });
                self.recorder.note("refused", what);
                Err(self.denied(error).await)
            }
        }
    }

    async fn lead(&self, session: &Session, wish: &Wish, priority: i32) -> Result<Held, Error> {
        let campaign = session.campaign(&wish.name).priority(priority).label(wish.label.as_str());
        let elected = match wish.wait {
            None => campaign.await,
            Some(wait) if wait.is_zero() => {
                if self.leads(&wish.name) {
                    return Err(Error::Busy(wish.name.clone()));
                }
                let asked = self.promptly(campaign.timeout(PROMPT).into_future()).await;
                asked.map_err(|error| match error {
                    Error::TimedOut(name) if self.is_primary() => Error::Busy(name),
                    other => other,
                })
            }
            Some(wait) => campaign.timeout(wait).await,
        };
        elected.map(Held::Leadership)
    }

    async fn ask(
        &self,
        request: konklave::LockRequest,
        wait: Option<Duration>,
    ) -> Result<Guard, Error> {
        match wait {
            None => request.acquire().await,
            // The group has to say so; without one nobody can.
            Some(wait) if wait.is_zero() => self.promptly(request.try_acquire()).await,
            Some(wait) => request.timeout(wait).acquire().await,
        }
    }

    /// What the group answers, as long as there is one that can: who does not wait is not kept waiting for a
    /// majority. An agent that has just started gets its time to find the others.
    async fn promptly<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut answer = std::pin::pin!(answer);
        let start = Instant::now();
        let mut hope = start;
        while hope.elapsed() < HOPE && start.elapsed() < PROMPT {
            if let Ok(answer) = tokio::time::timeout(LOOK, answer.as_mut()).await {
                return answer;
            }
            let status = self.node().status();
            let young = !status.member && self.started.elapsed() < SETTLING;
            if young || report::is_primary(&status) {
                hope = Instant::now();
            }
        }
        Err(Error::NoGroup("it does not answer".into()))
    }

    /// Whether someone leads under `name`.
    fn leads(&self, name: &str) -> bool {
        let locks = self.node().status().locks;
        locks.iter().any(|l| l.kind == "campaign" && l.name == name && !l.holders.is_empty())
    }

    /// Why nothing is granted here, if so, and who is missing.
    async fn hindrance(&self) -> Option<String> {
        let status = self.node().status();
        if report::is_primary(&status) {
            return None;
        }
        let quorum = status.quorum;
        Some(match status.missing {
            Some(missing) => {
                let mut why = format!("no group: {}", advised(&missing));
                // Whoever asks has waited already.
                for silent in silent(&self.founders, TRY / 2).await {
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
                    format!(", not {}", away.join(", "))
                };
                format!(
                    "no majority: {} of {} voters are heard{silent}, and {} are needed",
                    quorum.heard, quorum.of, quorum.needed
                )
            }
        })
    }

    async fn denied(&self, error: Error) -> Denied {
        let message = error.to_string();
        match error {
            Error::Busy(_) => Denied::Refused(Refusal::Busy, message),
            // Not "someone else has it": nobody here can know.
            Error::TimedOut(_) | Error::NoGroup(_) => match self.hindrance().await {
                Some(why) => Denied::Failed(Trouble::Unavailable, why),
                None if matches!(error, Error::TimedOut(_)) => {
                    Denied::Refused(Refusal::Timeout, message)
                }
                None => Denied::Failed(Trouble::Unavailable, message),
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
        | Error::BadName(_)
        | Error::TooLong { .. }
        | Error::Config(_) => Trouble::Usage,
        Error::NotHeld(_) => Trouble::Unknown,
        _ => Trouble::Unavailable,
    };
    (kind, error.to_string())
}

/// Keeps what a member tells in mind.
async fn remember(mut events: konklave::Events, recorder: Arc<Recorder>) {
    let mut missed = Seldom::default();
    while let Some(event) = events.next().await {
        // Where much happens, much is missed: the recorder has each gap, the log some.
        if let konklave::Event::Missed { missed: more } = event {
            recorder.note("missed", serde_json::to_value(&event).unwrap_or_default());
            if let Some(missed) = missed.count(more, Instant::now()) {
                tracing::warn!("missed: {missed} events are not recorded: too many at a time");
            }
            continue;
        }
        note(&event, &recorder);
    }
}

/// Says once that a group waits for ever, if it does: whom everyone counts as a founder is not the same.
async fn look_for_ourselves(node: Node) {
    loop {
        tokio::time::sleep(SETTLING).await;
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

/// For the log, and for the recorder.
fn note(event: &konklave::Event, recorder: &Recorder) {
    // What its own clients do is noted where it happens, and each agent notes its own.
    if matches!(event, konklave::Event::Held { .. } | konklave::Event::Freed { .. }) {
        return;
    }
    let (kind, name, what) = report::event(event);
    match event {
        konklave::Event::View { .. } => tracing::info!(view = %name, "{what}"),
        konklave::Event::Left => tracing::info!("left"),
        konklave::Event::Network { trouble: None } => tracing::info!("the network works"),
        konklave::Event::Network { trouble: Some(trouble) } => tracing::warn!("{trouble}"),
        konklave::Event::Disk { trouble: None } => tracing::info!("the disk works again"),
        konklave::Event::Disk { trouble: Some(trouble) } => tracing::warn!("{trouble}"),
        _ if name.is_empty() => tracing::warn!("{kind}: {what}"),
        konklave::Event::Granted { .. } | konklave::Event::Connected { .. } => {
            tracing::debug!(?event);
        }
        _ => tracing::warn!(name = %name, "{kind}: {what}"),
    }
    // What clients are granted and lose is noted with who it was, and once.
    if matches!(event, konklave::Event::Granted { .. } | konklave::Event::Lost { .. }) {
        return;
    }
    let value = serde_json::to_value(event).unwrap_or_else(|_| what.into());
    recorder.note(&kind, value);
}

impl Service for Group {
    fn node(&self) -> String {
        self.node().name().to_owned()
    }

    fn acquire(&self, wish: Wish) -> Promise<'_, Result<Box<dyn Hold>, Denied>> {
        Box::pin(self.obtain(wish))
    }

    fn over(&self, session: u64) {
        self.families.over(session);
    }

    fn status(&self, prefix: &str, limit: usize) -> Promise<'_, Result<Status, Problem>> {
        let sessions = self.counts.sessions.load(Ordering::Relaxed);
        let status = report::status(&self.node().status(), prefix, limit, sessions);
        Box::pin(async { Ok(status) })
    }

    fn why(&self, name: &str) -> Promise<'_, Result<Explanation, Problem>> {
        let status = self.node().status();
        let mut explanation = explain::explain(&self.node().why(name), &status);
        Box::pin(async move {
            if !status.member && status.missing.is_some() {
                // After what is missing, who.
                for (i, why) in silent(&self.founders, TRY).await.into_iter().enumerate() {
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
    ) -> Promise<'_, Result<(), Problem>> {
        let name = name.to_owned();
        Box::pin(async move {
            self.recorder.note("revoked", json!({ "name": name }));
            tracing::info!(%name, "an operator takes it from whoever holds it");
            let revoked = async {
                match target {
                    Target::Election => self.node().step_down(&name).await,
                    Target::Slots => self.node().revoke_permits(&name, token).await,
                    Target::Lock => self.node().revoke(&name, token).await,
                }
            };
            match self.promptly(revoked).await {
                Err(error @ Error::NoGroup(_)) => {
                    let why = self.hindrance().await.unwrap_or_else(|| error.to_string());
                    Err((Trouble::Unavailable, why))
                }
                result => result.map_err(problem),
            }
        })
    }

    fn watch(&self, to: mpsc::Sender<Event>) -> Promise<'_, Result<(), Problem>> {
        let (mut events, mut losses) = (self.node().events(), self.losses.subscribe());
        Box::pin(async move {
            loop {
                tokio::select! {
                    // Who reads too slowly is told what it missed by the member's own events.
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

    fn send(&self, group: &str, payload: Payload) -> Promise<'_, Result<(), Problem>> {
        let group = group.to_owned();
        Box::pin(async move {
            let bytes = payload.into_bytes();
            let bytes =
                bytes.ok_or_else(|| (Trouble::Usage, "no hexadecimal digits".to_owned()))?;
            let Err((kind, message)) = self.circles.send(self.node(), &group, bytes).await else {
                return Ok(());
            };
            Err(match self.hindrance().await {
                Some(why) if kind == Trouble::Unavailable => (kind, format!("{group}: {why}")),
                Some(_) | None => (kind, message),
            })
        })
    }

    fn receive(&self, group: &str, to: mpsc::Sender<Event>) -> Promise<'_, Result<(), Problem>> {
        let group = group.to_owned();
        Box::pin(async move { self.circles.receive(self.node(), &group, to).await })
    }

    fn record(&self) -> Promise<'_, Result<String, Problem>> {
        // In JSON, a text may grow by half: quotes are written with a bar before them.
        let text =
            self.recorder.text(report::passed(&self.nodes, self.recorder.life()), MAX_FRAME / 2);
        Box::pin(async { Ok(text) })
    }

    fn examine(&self) -> Promise<'_, Vec<Finding>> {
        let status = self.node().status();
        // Three in one process are for trying things out, and keep nothing.
        let kept = self.nodes.len() == 1;
        let mut findings = report::examine(&status, self.protected, kept);
        findings.push(deadlocks::examine(&status));
        if self.node().is_unlisted() && self.started.elapsed() > SETTLING {
            findings.push(Finding { what: "peers".into(), well: false, detail: UNLISTED.into() });
        }
        if let Some(why) = self.unread.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            let detail = format!("at the last SIGHUP nothing was reloaded: {why}");
            findings.push(Finding { what: "reload".into(), well: false, detail });
        }
        if let Some(detail) = self.doorman.obstacle() {
            findings.push(Finding { what: "way to the socket".into(), well: false, detail });
        }
        for detail in self.secrets.iter().filter_map(|file| super::secrets::exposed(file)) {
            findings.push(Finding { what: "key".into(), well: false, detail });
        }
        Box::pin(async move {
            // Who is missing, and why. A group that has grown beyond its founders does not need them.
            let voters = status.members.iter().filter(|member| member.votes).count();
            if !status.member || voters < self.founders.len() {
                for detail in silent(&self.founders, TRY).await {
                    findings.push(Finding { what: "founder".into(), well: false, detail });
                }
            }
            findings
        })
    }

    fn metrics(&self) -> String {
        metrics::text(&self.node().status(), &self.counts, &self.waits)
    }
}
