//! SIGHUP: what can change while the agent runs.

use std::convert::Infallible;
use std::path::PathBuf;

use super::group::Group;
use super::{Protection, doorman, log, notify, protection, read, refused, seeds};
use crate::args::DaemonArgs;
use crate::config::Settings;
use crate::failure::Failure;
use crate::server::SharedDoorman;

/// Reads the file again at each SIGHUP; never ends.
pub(super) async fn reload(
    args: &DaemonArgs,
    mut hangups: tokio::signal::unix::Signal,
    door: &SharedDoorman,
    log: &log::Log,
    group: &Group,
) -> Infallible {
    let mut before = read(args).ok();
    let first = before.clone();
    while hangups.recv().await.is_some() {
        notify::notify("RELOADING=1");
        let read = read(args).and_then(|settings| {
            let new = doorman(&settings)?;
            renew(group, &settings, first.as_ref())?;
            Ok((new, settings))
        });
        match read {
            Ok((new, settings)) => {
                if let Err(error) = door.replace(new) {
                    tracing::error!(%error, "the socket's mode is not changed");
                }
                if let Some(obstacle) = door.obstacle() {
                    tracing::warn!("{obstacle}");
                }
                log.level(&settings);
                if before.clone().map(lasting) != Some(lasting(settings.clone())) {
                    tracing::warn!(
                        "reloaded; what is new beyond log, allow-*, peers, keys and certificates \
                         needs a restart"
                    );
                } else {
                    tracing::info!("reloaded");
                }
                before = Some(settings);
                group.reloaded(None);
            }
            Err(error) => {
                tracing::error!(%error, "nothing is reloaded");
                group.reloaded(Some(error.to_string()));
            }
        }
        notify::notify("READY=1");
    }
    std::future::pending().await
}

/// What takes a restart to change.
fn lasting(settings: Settings) -> Settings {
    let some = |file: Option<PathBuf>| file.map(|_| PathBuf::new());
    Settings {
        log: None,
        allow_users: None,
        allow_groups: None,
        peers: None,
        peers_file: None,
        key_file: some(settings.key_file),
        tls_certificate: some(settings.tls_certificate),
        tls_key: some(settings.tls_key),
        tls_authority: some(settings.tls_authority),
        ..settings
    }
}

/// Calls whoever is new in the list, and protects new connections by what the files say now.
fn renew(group: &Group, settings: &Settings, first: Option<&Settings>) -> Result<(), Failure> {
    // Another kind of protection than that of the start takes a restart.
    let kind = |s: &Settings| (s.key_file.is_some(), s.tls_key.is_some());
    let alike = first.is_some_and(|first| kind(first) == kind(settings));
    let protection = protection(settings)?;
    let peers = seeds(settings)?;
    for node in group.nodes() {
        node.call(peers.clone());
        match &protection {
            Some(Protection::Key(key)) if alike => node.change_key(key.clone()).map_err(refused)?,
            #[cfg(feature = "tls")]
            Some(Protection::Tls(tls)) if alike => node.change_tls(tls.clone()).map_err(refused)?,
            Some(_) | None => {}
        }
    }
    Ok(())
}
