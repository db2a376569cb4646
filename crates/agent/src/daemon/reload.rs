//! SIGHUP: reads the settings again while the agent runs.

use std::convert::Infallible;
use std::path::PathBuf;

use super::group::GroupService;
use super::{
    Protection, certificates, log, notify, policy, protection, read, refused, seeds,
    warn_of_exposed_files,
};
use crate::args::DaemonArgs;
use crate::config::Settings;
use crate::failure::Failure;
use crate::server::SharedAccessPolicy;

/// Reads the settings again at each SIGHUP; never returns.
pub(super) async fn reload(
    args: &DaemonArgs,
    mut hangups: tokio::signal::unix::Signal,
    access: &SharedAccessPolicy,
    log: &log::Log,
    group: &GroupService,
) -> Infallible {
    let mut before = read(args).ok();
    let first = before.clone();
    while hangups.recv().await.is_some() {
        notify::notify("RELOADING=1");
        let read = read(args).and_then(|settings| {
            let new = policy(&settings)?;
            renew(group, &settings, first.as_ref())?;
            Ok((new, settings))
        });
        match read {
            Ok((new, settings)) => {
                if let Err(error) = access.replace(new) {
                    tracing::error!(%error, "cannot change the permissions of the socket");
                }
                if let Some(obstacle) = access.obstacle() {
                    tracing::warn!("{obstacle}");
                }
                log.level(&settings);
                if before.clone().map(lasting) != Some(lasting(settings.clone())) {
                    tracing::warn!(
                        "reloaded log, the users and groups of the socket, peers, deny, keys and \
                         certificates; the other changed settings need a restart"
                    );
                } else {
                    tracing::info!("reloaded");
                }
                before = Some(settings);
                group.reloaded(None);
            }
            Err(error) => {
                tracing::error!(%error, "reload failed: the agent keeps its settings");
                group.reloaded(Some(error.to_string()));
            }
        }
        notify::notify("READY=1");
    }
    std::future::pending().await
}

/// The settings that only a restart can change.
fn lasting(settings: Settings) -> Settings {
    let some = |file: Option<PathBuf>| file.map(|_| PathBuf::new());
    Settings {
        log: None,
        allow_users: None,
        allow_groups: None,
        operate_users: None,
        operate_groups: None,
        observe_users: None,
        observe_groups: None,
        deny: None,
        // It comes and goes while the key is changed.
        second_key_file: None,
        peers: None,
        peers_file: None,
        key_file: some(settings.key_file),
        tls_certificate: some(settings.tls_certificate),
        tls_key: some(settings.tls_key),
        tls_authority: some(settings.tls_authority),
        ..settings
    }
}

/// Connects to new peers, and uses the current keys and certificates for new connections.
fn renew(
    group: &GroupService,
    settings: &Settings,
    first: Option<&Settings>,
) -> Result<(), Failure> {
    // Changing the kind of protection (key or TLS) needs a restart.
    let kind = |s: &Settings| (s.key_file.is_some(), s.tls_key.is_some());
    let alike = first.is_some_and(|first| kind(first) == kind(settings));
    warn_of_exposed_files(settings);
    let protection = protection(settings)?;
    let peers = seeds(settings)?;
    if alike {
        group.use_certificates(certificates(&protection));
    }
    for node in group.nodes() {
        node.call(peers.clone());
        node.deny(settings.deny.iter().flatten().map(String::as_str));
        match &protection {
            Some(Protection::Keys(keys)) if alike => {
                node.change_keys(keys.clone()).map_err(refused)?;
            }
            #[cfg(feature = "tls")]
            Some(Protection::Tls(tls)) if alike => node.change_tls(tls.clone()).map_err(refused)?,
            Some(_) | None => {}
        }
    }
    Ok(())
}
