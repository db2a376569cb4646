//! `ui`: the workbench in the browser.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use konklave_catalog::{Catalog, Error};
use konklave_web::{Options, Workbench};

use crate::Done;
use crate::args::UiArgs;
use crate::output::stdout;

pub(crate) fn ui(catalog: &'static Catalog, args: &UiArgs) -> Done {
    let unavailable =
        |what: &str, why: std::io::Error| Error::Unavailable(format!("{what}: {why}"));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| unavailable("cannot start the workbench", e))?;
    let (listen, port) = (args.listen, args.port);
    let options = Options { catalog, listen, port, agents: agents(args) };
    let place = format!("cannot listen on {} port {}", args.listen, args.port);
    let workbench =
        runtime.block_on(Workbench::open(options)).map_err(|e| unavailable(&place, e))?;
    if !args.listen.is_loopback() {
        tell!(
            "other machines can reach {}, and the connection is not encrypted; \
             use it only in a network that you trust",
            args.listen
        );
    }
    let link = workbench.link();
    let mut out = stdout();
    writeln!(out, "{link}")?;
    out.flush()?;
    tell!("the workbench runs at the address above; Ctrl-C stops it");
    if !args.no_open && !open(&link) {
        tell!("cannot start a browser; open the address yourself");
    }
    runtime.block_on(workbench.serve()).map_err(|e| unavailable("the workbench stopped", e))?;
    Ok(0)
}

/// The named agents, or the agent at the default socket.
fn agents(args: &UiArgs) -> Vec<PathBuf> {
    if !args.agent.is_empty() {
        return args.agent.clone();
    }
    #[cfg(feature = "agent")]
    let socket = Some(konklave_agent::client::default_socket());
    #[cfg(not(feature = "agent"))]
    let socket = None::<PathBuf>;
    socket.filter(|socket| socket.exists()).into_iter().collect()
}

/// Asks the desktop to open `link`; returns whether its program could be started.
fn open(link: &str) -> bool {
    let (program, first): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(first).arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
