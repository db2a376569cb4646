//! Configuration of a node.

use std::net::SocketAddr;
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
use crate::net::{self, Endpoint, NatsOptions, Secret, Security, SharedKeys};
use crate::node::Node;
use crate::shared::Shared;
use crate::store::{Record, Store};

/// Ids of nodes that are not listed founders are drawn at random from this many, starting here.
const IDS: (u32, u32) = (256, 4096);

/// The default of [`Builder::local_turns`].
pub(crate) const TURNS: u32 = 8;

/// The timings of a group, the same for all its members. A member with another lease is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timings {
    /// The time between heartbeats.
    pub heartbeat: Duration,
    /// How long a member may be silent before it is suspected. A closed port is noticed at once.
    pub silence: Duration,
    /// How long a grant is valid without an answer of a majority. Also how long the other members wait, after
    /// excluding a silent member, before they grant its locks ([`Handover::LeaseSafe`](crate::Handover)).
    pub lease: Duration,
    /// How long a node keeps an unused lock cached.
    pub keep: Duration,
    /// About the time a message takes. Timeouts during a view change are small multiples of it.
    pub unit: Duration,
}

/// For loaded machines: a process or a network that stalls for three seconds costs no grant, and no member is
/// excluded.
impl Default for Timings {
    fn default() -> Self {
        Self { silence: Duration::from_secs(5), lease: Duration::from_secs(8), ..Self::fast() }
    }
}

impl Timings {
    /// For machines that never stall: fail-over takes a second or two, and a stall of less than half a second
    /// may cost a grant.
    pub fn fast() -> Self {
        Self {
            heartbeat: Duration::from_millis(140),
            silence: Duration::from_millis(1400),
            lease: Duration::from_millis(1000),
            keep: Duration::from_millis(1000),
            unit: Duration::from_millis(5),
        }
    }
}

/// The longest allowed time, except for `keep`.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Timings {
    fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::Config(what.into()));
        if [self.unit, self.heartbeat, self.silence, self.lease].iter().any(|t| *t > LONGEST) {
            return wrong("timings: at most one day each, except `keep`");
        }
        if self.unit < Duration::from_micros(100) || self.heartbeat < self.unit {
            return wrong(
                "timings: `heartbeat` must be at least `unit`, and `unit` at least 100 µs",
            );
        }
        if self.silence < self.heartbeat * 2 || self.lease < self.heartbeat * 2 {
            return wrong("timings: `silence` and `lease` must be at least two heartbeats");
        }
        Ok(())
    }

    /// Heartbeat and silence in units, as virtual synchrony counts them.
    pub(crate) fn in_units(&self) -> (u128, u128) {
        let beats = (self.heartbeat.as_nanos() / self.unit.as_nanos()).max(1);
        let period = beats * self.unit.as_nanos();
        (beats, (self.silence.as_nanos() / period).saturating_sub(1).max(1))
    }

    /// The actual time between heartbeats: whole units.
    pub(crate) fn period(&self) -> Duration {
        let (beats, _) = self.in_units();
        self.unit.saturating_mul(u32::try_from(beats).unwrap_or(u32::MAX))
    }

    /// Whether one late heartbeat, or a late answer to it, does no harm.
    pub(crate) fn spare_one(&self) -> bool {
        self.silence.min(self.held_for()) >= self.heartbeat.saturating_mul(5)
    }

    /// How long this node relies on a grant with the group's lease.
    pub(crate) fn held_for(&self) -> Duration {
        held_for(self.lease)
    }

    /// How long other members wait for the group's lease to expire.
    pub(crate) fn lease_expiry(&self) -> Duration {
        lease_expiry(self.lease)
    }

    /// Checks the lease of a single grant.
    pub(crate) fn check_lease(&self, lease: Duration) -> Result<(), Error> {
        if lease > LONGEST || lease < self.heartbeat * 2 {
            return Err(Error::Config(format!(
                "a lease of {lease:?} is not possible: from {:?} (two heartbeats) to one day",
                self.heartbeat * 2
            )));
        }
        Ok(())
    }
}

/// How long a node relies on a grant: shorter than the lease, because its clock may run slower than others'.
pub(crate) fn held_for(lease: Duration) -> Duration {
    lease - lease / 64
}

/// How long other members wait for a lease to expire: longer than the lease, because their clocks may run
/// faster.
pub(crate) fn lease_expiry(lease: Duration) -> Duration {
    lease + lease / 64
}

/// Configures and starts a [`Node`].
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
    denied: Vec<String>,
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
            denied: Vec::new(),
            nats: NatsOptions::default(),
            local_turns: TURNS,
            holders_outlive: false,
        }
    }
}

impl Builder {
    /// The name of this node, for people. Need not be unique, and decides nothing.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The name of the group. Nodes with different group names refuse each other.
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.cluster = name.into();
        self
    }

    /// The address to listen on, `host:port`; port 0 takes a free port. Default: a free port on loopback.
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = address.into();
        self
    }

    /// The address at which others reach this node, if it is not the one it listens on.
    pub fn advertise(mut self, address: impl Into<String>) -> Self {
        self.advertise = Some(address.into());
        self
    }

    /// The addresses of the founders, `host:port`, this node's included if it is one. A name that resolves to
    /// several addresses stands for all of them. The node calls all of them again and again.
    pub fn seeds<S: Into<String>>(mut self, seeds: impl IntoIterator<Item = S>) -> Self {
        self.seeds.extend(seeds.into_iter().map(Into::into));
        self
    }

    /// Uses a NATS server as the network: `nats://host:port/prefix`, or several servers of one NATS cluster,
    /// separated by commas. Members find each other on a subject, so [`listen`](Self::listen),
    /// [`advertise`](Self::advertise) and [`seeds`](Self::seeds) have no effect. [`founders`](Self::founders)
    /// is the number of nodes that found a group; without it, and without [`found_alone`](Self::found_alone), the
    /// node only joins an existing group.
    ///
    /// An unreachable server is tried again and again. Meanwhile [`Status::network`](crate::Status::network)
    /// and [`Event::Network`](crate::Event) tell the reason.
    ///
    /// Needs feature `nats`.
    #[cfg(feature = "nats")]
    pub fn nats(mut self, index: impl Into<String>) -> Self {
        self.nats.servers = Some(index.into());
        self
    }

    /// A credentials file for the server of [`nats`](Self::nats) (`.creds`: a user's JWT and the seed of its
    /// key). It is read again for each connection, so it may be replaced.
    ///
    /// Needs feature `nats`.
    #[cfg(feature = "nats")]
    pub fn nats_credentials(mut self, file: impl Into<PathBuf>) -> Self {
        self.nats.credentials = Some(file.into());
        self
    }

    /// How many times in a row this node's sessions get locks before it reads the requests of other nodes, if
    /// a session requests a lock again and again. More is faster for that session, less is fairer to others.
    /// Default: 8.
    pub fn local_turns(mut self, local_turns: u32) -> Self {
        self.local_turns = local_turns;
        self
    }

    /// Declares that holders may go on after this process ends, until the deadline of their grants: commands,
    /// for instance, that were started with a lock of this node. After all nodes were down, a group is then
    /// founded only when a lease is over.
    pub fn holders_outlive(mut self) -> Self {
        self.holders_outlive = true;
        self
    }

    /// The number of founders, where [`seeds`](Self::seeds) does not tell: for instance, one name that stands
    /// for all of them.
    ///
    /// Until the group exists, start fewer than twice this many nodes: otherwise two halves that do not see
    /// each other found two groups.
    pub fn founders(mut self, n: usize) -> Self {
        self.founders = Some(n);
        self
    }

    /// Founds a group of one, in a new generation, for others to join. For the first node of a group without
    /// a list of founders, or when a majority is lost for good.
    ///
    /// Two nodes with this option found two groups. A node that was in a group with others waits for
    /// [`Timings::silence`], and joins if one of them is in a group.
    pub fn found_alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// The directory for the node's id and its highest generation. Without it, only the calendar
    /// distinguishes the generations before and after a total restart.
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// The node's id, below 2²⁴, and best below a few thousand. By default it is drawn at random and kept in
    /// the data directory. The lowest id proposes the first view; nothing else depends on it.
    pub fn id(mut self, id: crate::NodeId) -> Self {
        self.id = Some(id);
        self
    }

    /// The timings of the group.
    pub fn timings(mut self, timings: Timings) -> Self {
        self.timings = timings;
        self
    }

    /// The algorithm that serves exclusive locks. All members must have the same; others are refused.
    pub fn lock_algorithm(mut self, lock_algorithm: LockAlgorithm) -> Self {
        self.lock_algorithm = lock_algorithm;
        self
    }

    /// Protects all connections with a shared key, by the Noise protocol: each side proves that it knows the
    /// key, and everything is encrypted, with forward secrecy. At least 16 bytes; best 32 random ones.
    pub fn pre_shared_key(self, key: impl Into<Vec<u8>>) -> Self {
        self.pre_shared_keys([key])
    }

    /// The same with two keys, while the key is changed: calls use the first key, and the second one if that
    /// is refused; peers may use either.
    pub fn pre_shared_keys<K: Into<Vec<u8>>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.security = Some(Security::Keys(SharedKeys::new(keys)));
        self
    }

    /// Shuts out the nodes with these identities ([`MemberStatus::identity`](crate::MemberStatus)). All
    /// members need the same list. With a shared key, change the key, too: a machine that has it can take a
    /// new identity.
    pub fn deny<S: Into<String>>(mut self, identities: impl IntoIterator<Item = S>) -> Self {
        self.denied.extend(identities.into_iter().map(Into::into));
        self
    }

    /// Protects all connections with mutual TLS: every member has a certificate signed by a common authority.
    ///
    /// Needs feature `tls`.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.security = Some(Security::Tls(tls));
        self
    }

    /// Allows unprotected connections beyond loopback: any process that reaches the port can become a member.
    pub fn insecure(mut self) -> Self {
        self.security = Some(Security::None);
        self
    }

    /// Starts the node; returns when it is a member of a group.
    pub async fn join(self) -> Result<Node, Error> {
        let node = self.start().await?;
        node.ready().await?;
        Ok(node)
    }

    /// Starts the node without waiting for a group; [`Node::ready`] waits.
    pub async fn start(self) -> Result<Node, Error> {
        self.check()?;
        let (endpoint, local) = self.endpoint().await?;
        let boot = random();
        let (store, kept) = self.store()?;
        let address = match local {
            Some(local) => self.advertise.unwrap_or_else(|| local.to_string()),
            None => net::inbox_address(boot),
        };
        let mut seeds = if local.is_some() { self.seeds } else { Vec::new() };
        // If only the number of founders is known, there is no list to take ids from.
        let listed = local.is_some() && (self.founders.is_none() || !seeds.is_empty());
        // Any process at NATS may be a founder: only a given number tells when all are present.
        let founders = self.founders.or((local.is_none() && !self.alone).then_some(usize::MAX));
        if seeds.is_empty() {
            seeds.push(address.clone());
        }
        seeds.sort_unstable();
        seeds.dedup();
        let own = seeds.iter().position(|s| *s == address || *s == self.listen);
        let fresh = || {
            // The ids of founders are the positions of their addresses, which all founders know.
            let index = own.filter(|_| listed);
            let id = index.map_or(IDS.0 + random() as u32 % IDS.1, |index| index as u32);
            Record { id, key: random(), ..Record::default() }
        };
        let mut record = kept.unwrap_or_else(fresh);
        record.id = self.id.unwrap_or(record.id);
        let name: Arc<str> = self
            .name
            .unwrap_or_else(|| local.map_or_else(|| address.clone(), |at| at.to_string()))
            .into();
        let secret = static_key(self.security.as_ref(), &mut record, store.as_ref())?;
        let settings = net::Settings {
            cluster: self.cluster,
            open: self.security.is_some(),
            secret,
            denied: self.denied,
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

    /// Refuses settings that make no sense.
    fn check(&self) -> Result<(), Error> {
        self.timings.check()?;
        self.security.as_ref().map_or(Ok(()), Security::check)?;
        check_title("name", self.name.as_deref().unwrap_or_default())?;
        check_title("name of the group", &self.cluster)?;
        if self.id.is_some_and(|id| id > konklave_process::MAX_ID) {
            return Err(Error::Config("the id is too high: it must be below 2^24".into()));
        }
        if self.founders == Some(0) {
            return Err(Error::Config("the number of founders must be at least 1".into()));
        }
        if let Some(n) = self.founders.filter(|n| n.saturating_mul(2) <= self.seeds.len()) {
            return Err(Error::Config(format!(
                "the number of founders is {n}, with {} seeds: two halves could found two groups; more than half is needed",
                self.seeds.len()
            )));
        }
        Ok(())
    }

    /// The data directory, if there is one, and the record in it.
    fn store(&self) -> Result<(Option<Store>, Option<Record>), Error> {
        let Some(folder) = &self.data_dir else { return Ok((None, None)) };
        let (store, record) = Store::open(folder)?;
        Ok((Some(store), record))
    }

    /// The network, and the address at which this node listens there, if it does.
    async fn endpoint(&self) -> Result<(Endpoint, Option<SocketAddr>), Error> {
        if let Some(index) = self.nats.clone().address(self.security.as_ref())? {
            return Ok((Endpoint::Nats(index), None));
        }
        net::check_seeds(&self.seeds, self.security.as_ref())?;
        let listener = net::listen(&self.listen, self.security.as_ref()).await?;
        let local = listener.local_addr()?;
        Ok((Endpoint::Tcp(listener), Some(local)))
    }
}

/// The node's static key, which belongs to its other identity: kept with it, if it is kept.
fn static_key(
    security: Option<&Security>,
    record: &mut Record,
    store: Option<&Store>,
) -> Result<Secret, Error> {
    if let Some(secret) = &record.secret {
        return Ok(secret.clone());
    }
    let secret = Secret::random()?;
    if matches!(security, Some(Security::Keys(_))) {
        record.secret = Some(secret.clone());
        // Peers remember it together with `key`. If that is on the disk already, the secret must be, too.
        if let Some(store) = store.filter(|_| record.incarnation > 0) {
            store.save(record)?;
        }
    }
    Ok(secret)
}

/// The longest name of a node or a group, in bytes: both are part of a greeting.
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
        // Without entropy, time and process id must do; nothing secret is drawn here.
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        time.map_or(0, |t| t.as_nanos() as u64) ^ u64::from(std::process::id()) << 32
    })
}
