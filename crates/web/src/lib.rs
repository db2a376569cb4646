//! The workbench: a page in the browser where one runs, watches, breaks and compares algorithms.
//!
//! The server listens on loopback and accepts requests with the token of the printed address. The page
//! consists of plain ES modules in the binary; it gets all data from the API:
//!
//! * `GET /api/catalog`: every algorithm with its data sheet, and the small languages;
//! * `POST /api/run`: one to four scenarios, run and laid out on one axis of time;
//! * `POST /api/check`: every run of a small group, with progress; a witness, laid out alike;
//! * `POST /api/export`: a run that was made before, as a file;
//! * `GET /api/live`: the reports of the configured agents.
//!
//! Scenarios from the page are data: they name no file ([`limits`]), and no run goes beyond a size
//! that a browser can show. A run belongs to its request: when the page goes away, it is given up.

mod api;
mod assets;
mod catalog;
mod checking;
mod drawing;
mod exercise;
mod export;
mod guard;
pub mod limits;
#[cfg_attr(not(feature = "agent"), path = "live/without_agent.rs")]
mod live;
mod refusal;
mod running;
mod store;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use konklave_catalog::Catalog;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use store::Store;

/// Where to listen.
#[derive(Clone, Debug)]
pub struct Options {
    /// The algorithms to show.
    pub catalog: &'static Catalog,
    /// The address; anything but loopback can be reached by others.
    pub listen: IpAddr,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// The sockets of agents to look at.
    pub agents: Vec<PathBuf>,
}

/// A server that listens, and does not answer yet.
#[derive(Debug)]
pub struct Workbench {
    catalog: &'static Catalog,
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    agents: Vec<PathBuf>,
}

/// The state that all requests share.
struct Shared {
    catalog: &'static Catalog,
    /// The catalog as the page gets it.
    catalog_text: String,
    token: String,
    address: SocketAddr,
    /// So many runs and checks go on at a time.
    slots: Arc<Semaphore>,
    store: Store,
    #[cfg_attr(not(feature = "agent"), expect(dead_code, reason = "only agents are asked"))]
    agents: Vec<PathBuf>,
}

impl Workbench {
    /// Listens, and makes up a token.
    pub async fn open(options: Options) -> std::io::Result<Self> {
        let listener = TcpListener::bind((options.listen, options.port)).await?;
        let address = listener.local_addr()?;
        let Options { catalog, agents, .. } = options;
        Ok(Self { catalog, listener, address, token: token()?, agents })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address to open in the browser. It contains the access token.
    pub fn link(&self) -> String {
        let host = match self.address.ip() {
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        format!("http://{host}:{}/?token={}", self.address.port(), self.token)
    }

    /// Answers until the process ends.
    pub async fn serve(self) -> std::io::Result<()> {
        let shared = Arc::new(Shared {
            catalog: self.catalog,
            catalog_text: catalog::text(self.catalog),
            token: self.token,
            address: self.address,
            slots: Arc::new(Semaphore::new(limits::AT_A_TIME)),
            store: Store::default(),
            agents: self.agents,
        });
        axum::serve(self.listener, api::router(shared)).await
    }
}

/// A random token of 128 bits.
fn token() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| std::io::Error::other(e.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
