//! Notifications to systemd (`sd_notify`), if it started the agent with `Type=notify`.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// Tells systemd again and again that this agent's event loop works, if the unit has `WatchdogSec`.
pub(super) async fn watchdog() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    let Some(period) = number("WATCHDOG_USEC").filter(|period| ours && *period > 0) else {
        return std::future::pending().await;
    };
    let mut beat = tokio::time::interval(Duration::from_micros(period) / 3);
    loop {
        beat.tick().await;
        notify("WATCHDOG=1");
    }
}

/// Sends `state` (`READY=1`, `STOPPING=1`, …) to systemd.
pub(super) fn notify(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let Ok(socket) = UnixDatagram::unbound() else { return };
    let bytes = path.as_encoded_bytes();
    let sent = if let Some(name) = bytes.strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        {
            use std::os::linux::net::SocketAddrExt;
            std::os::unix::net::SocketAddr::from_abstract_name(name)
                .and_then(|address| socket.send_to_addr(state.as_bytes(), &address))
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = name;
            return;
        }
    } else {
        socket.send_to(state.as_bytes(), &path)
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "cannot notify systemd");
    }
}
