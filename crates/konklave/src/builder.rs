//! How a node is set up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use konklave_process::ProcessId;

use crate::clock::{Clock, calendar_seconds};
use crate::core::{Config, Core};
use crate::error::Error;
use crate::lock_algorithm::LockAlgorithm;
#[cfg(feature = "tls")]
use crate::net::tls::Tls;
use crate::net::{self, Endpoint, NatsOptions, Security};
use crate::node::Node;
use crate::shared::Shared;
use crate::store::{Record, Store};

/// Ids of nodes that are no founders are drawn from so many, from here on.
const IDS: (u32, u32) = (256, 4096);

/// How many local_turns those of a node have in a row before it listens to others, if nothing else is said.
pub(crate) const TURNS: u32 = 8;

/// How fast a group is. All members should have the same; who has another lease is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timings {
    /// How often members give a sign of life.
    pub heartbeat: Duration,
    /// How long a member may be silent. One whose process is gone is noticed at once.
    pub silence: Duration,
    /// How long a grant is safe without a sign of life of a majority; also how long others wait
    /// for it after a silent member's exclusion ([`Handover::LeaseSafe`](crate::Handover)).
    pub lease: Duration,
    /// How long a lock that nobody uses stays where it was used last.
    pub keep: Duration,
    /// About how long a message may take. The patience of a change of view is a few times this.
    pub unit: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(140),
            silence: Duration::from_millis(1400),
            lease: Duration::from_millis(1000),
            keep: Duration::from_millis(1000),
            unit: Duration::from_millis(5),
        }
    }
}

/// No sign of life takes longer.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Timings {
    fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::Config(what.into()));
        if [self.unit, self.heartbeat, self.silence, self.lease].iter().any(|t| *t > LONGEST) {
            return wrong("timings: a day at most, but for `keep`");
        }
        if self.unit < Duration::from_micros(100) || self.heartbeat < self.unit {
            return wrong("timings: a heartbeat is at least a unit, and that at least 100 µs");
        }
        if self.silence < self.heartbeat * 2 || self.lease < self.heartbeat * 2 {
            return wrong("timings: silence and lease are at least two heartbeats");
        }
        Ok(())
    }

    /// The heartbeat and the silence, as the group below counts them.
    pub(crate) fn in_units(&self) -> (u128, u128) {
        let beats = (self.heartbeat.as_nanos() / self.unit.as_nanos()).max(1);
        let period = beats * self.unit.as_nanos();
        (beats, (self.silence.as_nanos() / period).saturating_sub(1).max(1))
    }

    /// How often signs of life really come.
    pub(crate) fn period(&self) -> Duration {
        let (beats, _) = self.in_units();
        self.unit.saturating_mul(u32::try_from(beats).unwrap_or(u32::MAX))
    }

    /// Whether one sign of life that comes late, or its answer, does no harm.
    pub(crate) fn spare_one(&self) -> bool {
        self.silence.min(self.held_for()) >= self.heartbeat.saturating_mul(5)
    }

    /// How long we believe in what we hold: our clock may go slower than theirs.
    pub(crate) fn held_for(&self) -> Duration {
        self.lease - self.lease / 64
    }

    /// How long others wait for us to know: their clock may go faster than ours.
    pub(crate) fn lease_expiry(&self) -> Duration {
        self.lease + self.lease / 64
    }
}

/// Sets up a [`Node`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    name: Option<String>,
    cluster: String,
    listen: String,
    advertise: Option<String>,
    seeds: Vec<String>,
    founders: Option<usize>,
    alone: bool,
    data_dir: Option<PathBuf>,
    id: Option<u32>,
    timings: Timings,
    lock_algorithm: LockAlgorithm,
    security: Option<Security>,
    nats: NatsOptions,
    local_turns: u32,
    holders_outlive: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            name: None,
            cluster: "konklave".into(),
            listen: "127.0.0.1:0".into(),
            advertise: None,
            seeds: Vec::new(),
            founders: None,
            alone: false,
            data_dir: None,
            id: None,
            timings: Timings::default(),
            lock_algorithm: LockAlgorithm::default(),
            security: None,
            nats: NatsOptions::default(),
            local_turns: TURNS,
            holders_outlive: false,
        }
    }
}

impl Builder {
    /// What people call this node. Need not be unique; never decides anything.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The name of the group. Nodes of groups with different names do not talk.
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.cluster = name.into();
        self
    }

    /// Where to listen: `host:port`; port 0 takes a free one. Loopback if not said.
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = address.into();
        self
    }

    /// Where others reach us, if not where we listen.
    pub fn advertise(mut self, address: impl Into<String>) -> Self {
        self.advertise = Some(address.into());
        self
    }

    /// Where the founders are, ourselves included if we are one: `host:port`. A name that stands for
    /// several addresses stands for all of them. All are called again and again, for ever.
    pub fn seeds<S: Into<String>>(mut self, seeds: impl IntoIterator<Item = S>) -> Self {
        self.seeds.extend(seeds.into_iter().map(Into::into));
        self
    }

    /// Talks over NATS instead of connections of its own: `nats://host:port/prefix`, or several
    /// servers of one engine, separated by commas. Members find each other on a subject, so
    /// [`listen`](Self::listen), [`advertise`](Self::advertise) and [`seeds`](Self::seeds) do
    /// not matter; [`founders`](Self::founders) says how many found a group. Without it, and
    /// without [`found_alone`](Self::found_alone), the node only joins one that is there.
    ///
    /// A server that cannot be reached is tried again and again; meanwhile
    /// [`Status::network`](crate::Status::network) says why, and [`Event::Network`](crate::Event).
    ///
    /// Needs feature `nats`.
    #[cfg(feature = "nats")]
    pub fn nats(mut self, place: impl Into<String>) -> Self {
        self.nats.servers = Some(place.into());
        self
    }

    /// A file of credentials (`.creds`: a user's JWT and the seed of its key) for the server of
    /// [`nats`](Self::nats). It is read again for each connection, so it may be replaced.
    ///
    /// Needs feature `nats`.
    #[cfg(feature = "nats")]
    pub fn nats_credentials(mut self, file: impl Into<PathBuf>) -> Self {
        self.nats.credentials = Some(file.into());
        self
    }

    /// How many times clients of this node get locks in a row before it listens whether others want
    /// them, where a client takes a lock again and again without a pause. More is quicker for who has
    /// the lock, less is fairer to others. The default is 8.
    pub fn local_turns(mut self, local_turns: u32) -> Self {
        self.local_turns = local_turns;
        self
    }

    /// Those who hold something may go on with it when this process is gone, until the deadline they
    /// were given: commands, for instance, that others started with a lock of this node. After a
    /// restart of everyone, a group is then founded only when a lease is over.
    pub fn holders_outlive(mut self) -> Self {
        self.holders_outlive = true;
        self
    }

    /// How many founders there are, where [`seeds`](Self::seeds) does not say: one name that
    /// stands for all of them, for instance. Fewer than twice as many may be started before
    /// the group is there: two halves that do not see each other would be two groups.
    pub fn founders(mut self, n: usize) -> Self {
        self.founders = Some(n);
        self
    }

    /// Founds a group of one, in a new generation, which others join. For the very first
    /// node of a group without a fixed list of founders, or when a majority is lost for good.
    /// Two nodes with this found two groups. One that has been in a group with others waits for as
    /// long as a member may be silent, and joins if it hears of one who is in a group.
    pub fn found_alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Where to keep who we are and how high the numbers went. Without it a total restart is told
    /// from the past by the calendar only.
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// The id, if it shall not be drawn by lot (and kept in the data directory): below 2²⁴, and
    /// best below a few thousand. A lower id names the first view; nothing else depends on it.
    pub fn id(mut self, id: crate::NodeId) -> Self {
        self.id = Some(id);
        self
    }

    /// How fast the group is.
    pub fn timings(mut self, timings: Timings) -> Self {
        self.timings = timings;
        self
    }

    /// What serves exclusive locks. All members must have the same: who has another is refused.
    pub fn lock_algorithm(mut self, lock_algorithm: LockAlgorithm) -> Self {
        self.lock_algorithm = lock_algorithm;
        self
    }

    /// All members know this key: every connection proves it, and every record is encrypted.
    /// At least 16 bytes; 32 random ones are best.
    pub fn pre_shared_key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.security = Some(Security::Key(key.into().into()));
        self
    }

    /// Mutual TLS: every member has a certificate that the others' authority has signed.
    ///
    /// Needs feature `tls`.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.security = Some(Security::Tls(tls));
        self
    }

    /// No protection at all, beyond loopback, too: whoever reaches the port is a member.
    pub fn insecure(mut self) -> Self {
        self.security = Some(Security::None);
        self
    }

    /// Starts the node, and returns when it is a member of a group.
    pub async fn join(self) -> Result<Node, Error> {
        let node = self.start().await?;
        node.ready().await?;
        Ok(node)
    }

    /// Starts the node, and does not wait for a group: [`Node::ready`] does.
    pub async fn start(self) -> Result<Node, Error> {
        self.timings.check()?;
        self.security.as_ref().map_or(Ok(()), Security::check)?;
        check_title("name", self.name.as_deref().unwrap_or_default())?;
        check_title("name of the group", &self.cluster)?;
        if self.id.is_some_and(|id| id > konklave_process::MAX_ID) {
            return Err(Error::Config("the id is too high: below 2^24".into()));
        }
        if self.founders == Some(0) {
            return Err(Error::Config("a group has one founder at least".into()));
        }
        if let Some(n) = self.founders.filter(|n| n.saturating_mul(2) <= self.seeds.len()) {
            return Err(Error::Config(format!(
                "{n} founders of {}: two parts of them would be two groups; more than half",
                self.seeds.len()
            )));
        }
        let (endpoint, local) = match self.nats.place(self.security.as_ref())? {
            Some(place) => (Endpoint::Nats(place), None),
            None => {
                net::check_seeds(&self.seeds, self.security.as_ref())?;
                let listener = net::listen(&self.listen, self.security.as_ref()).await?;
                let local = listener.local_addr()?;
                (Endpoint::Tcp(listener), Some(local))
            }
        };
        let boot = random();
        let (store, kept) = match &self.data_dir {
            Some(folder) => {
                let (store, record) = Store::open(folder)?;
                (Some(store), record)
            }
            None => (None, None),
        };
        let address = match local {
            Some(local) => self.advertise.unwrap_or_else(|| local.to_string()),
            None => net::inbox_address(boot),
        };
        let mut seeds = if local.is_some() { self.seeds } else { Vec::new() };
        // Where only their number is known, founders have no list to be numbered by.
        let listed = local.is_some() && (self.founders.is_none() || !seeds.is_empty());
        // Whoever is met at NATS may be a founder: only a number says when all are there.
        let founders = self.founders.or((local.is_none() && !self.alone).then_some(usize::MAX));
        if seeds.is_empty() {
            seeds.push(address.clone());
        }
        seeds.sort_unstable();
        seeds.dedup();
        let own = seeds.iter().position(|s| *s == address || *s == self.listen);
        let fresh = || {
            // Founders are numbered by their addresses, which all of them know.
            let place = own.filter(|_| listed);
            let id = place.map_or(IDS.0 + random() as u32 % IDS.1, |place| place as u32);
            Record { id, key: random(), ..Record::default() }
        };
        let mut record = kept.unwrap_or_else(fresh);
        record.id = self.id.unwrap_or(record.id);
        let name: Arc<str> = self
            .name
            .unwrap_or_else(|| local.map_or_else(|| address.clone(), |at| at.to_string()))
            .into();
        let settings = net::Settings {
            cluster: self.cluster,
            open: self.security.is_some(),
            security: self.security.unwrap_or(Security::None),
            key: record.key,
            boot,
            name: name.clone(),
            address,
            seeds,
            lock_algorithm: self.lock_algorithm,
            heartbeat: self.timings.heartbeat,
            silence: self.timings.silence,
            lease: self.timings.lease,
        };
        let config = Config {
            id: ProcessId(record.id),
            name: name.clone(),
            timings: self.timings,
            record: store.is_some().then_some(record),
            seeds: settings.seeds.len(),
            own,
            founders,
            alone: self.alone,
            rng_seed: random(),
            calendar: u32::try_from(calendar_seconds()).unwrap_or(u32::MAX),
            lock_algorithm: self.lock_algorithm,
            local_turns: self.local_turns,
            holders_outlive: self.holders_outlive,
        };
        let clock = Clock::Machine;
        let core = Core::new(config, clock.now());
        let shared = Shared::new(core, clock, store, self.timings, name);
        net::start(&shared, endpoint, settings)?;
        Ok(Node::new(shared, local))
    }
}

/// The longest name of a node or a group, in bytes: greetings carry both.
const TITLE: usize = 200;

fn check_title(what: &str, title: &str) -> Result<(), Error> {
    if title.len() > TITLE {
        let (title, bytes) = (title.chars().take(20).collect::<String>(), title.len());
        return Err(Error::Config(format!(
            "the {what} {title}… has {bytes} bytes: {TITLE} at most"
        )));
    }
    if title.chars().any(char::is_control) {
        return Err(Error::Config(format!("the {what} has control characters")));
    }
    Ok(())
}

fn random() -> u64 {
    getrandom::u64().unwrap_or_else(|_| {
        // No entropy: the time and the process are better than nothing; nothing secret is drawn here.
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        time.map_or(0, |t| t.as_nanos() as u64) ^ u64::from(std::process::id()) << 32
    })
}
