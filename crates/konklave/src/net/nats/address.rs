//! The address of a NATS server, as people write it.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use async_nats::{ConnectOptions, ServerAddr};

use crate::error::Error;
use crate::net::Security;

/// The default prefix of subjects.
const DEFAULT_PREFIX: &str = "konklave";

/// NATS options of a builder.
#[derive(Clone, Default)]
pub(crate) struct NatsOptions {
    /// Addresses, which may contain passwords.
    pub(crate) servers: Option<String>,
    pub(crate) credentials: Option<PathBuf>,
}

/// Does not show passwords.
impl std::fmt::Debug for NatsOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |server: &str| match (server.find("://"), server.rfind('@')) {
            (Some(scheme), Some(at)) => format!("{}://…{}", &server[..scheme], &server[at..]),
            (None, Some(at)) => format!("…{}", &server[at..]),
            (_, None) => server.to_owned(),
        };
        let servers = self.servers.as_ref();
        let servers = servers.map(|s| s.split(',').map(shown).collect::<Vec<_>>().join(","));
        f.debug_struct("NatsOptions")
            .field("servers", &servers)
            .field("credentials", &self.credentials)
            .finish()
    }
}

impl NatsOptions {
    /// The address to connect to; `None` if no server is given. A server on another machine requires
    /// protection, because all its clients can read the members' messages.
    pub(crate) fn address(self, security: Option<&Security>) -> Result<Option<NatsAddress>, Error> {
        let Some(servers) = self.servers else { return Ok(None) };
        let address = NatsAddress::parse(&servers)?.with_credentials(self.credentials)?;
        if security.is_none() && !address.is_loopback() {
            return Err(Error::Config(format!(
                "others can listen at {}: give a pre-shared key or TLS, or say `insecure`",
                address.shown()
            )));
        }
        Ok(Some(address))
    }
}

/// The servers of one NATS cluster, and the prefix of subjects.
#[derive(Clone, Debug)]
pub(crate) struct NatsAddress {
    pub(super) servers: Vec<ServerAddr>,
    pub(super) prefix: String,
    /// A NATS credentials file.
    credentials: Option<PathBuf>,
}

impl NatsAddress {
    /// Parses `nats://host:port/prefix`; several servers of the same cluster are separated by commas.
    fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |what: String| Error::Config(format!("nats: {what}"));
        let (mut servers, mut prefix) = (Vec::new(), None);
        for part in text.split(',').map(str::trim) {
            let (scheme, rest) = part.split_once("://").unwrap_or(("nats", part));
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            if !matches!(scheme, "nats" | "tls") || host.is_empty() {
                let example = "nats://host:4222/prefix, or tls://host:4222/prefix";
                return Err(wrong(format!("{} is not of the form {example}", hide(part))));
            }
            let server: ServerAddr = format!("{scheme}://{host}")
                .parse()
                .map_err(|error| wrong(format!("{}: {error}", hide(part))))?;
            servers.push(server);
            let path = path.trim_end_matches('/');
            if !path.is_empty() && prefix.replace(path.to_owned()).is_some_and(|old| old != path) {
                return Err(wrong("all servers must have the same prefix".into()));
            }
        }
        let prefix = prefix.unwrap_or_else(|| DEFAULT_PREFIX.into());
        if prefix.split('.').any(|word| !is_word(word)) {
            let allowed = "made of letters, digits, - and _, with dots between";
            return Err(wrong(format!("{prefix:?} is not a valid prefix of subjects: {allowed}")));
        }
        Ok(Self { servers, prefix, credentials: None })
    }

    /// Adds a credentials file; fails if it is invalid.
    fn with_credentials(mut self, file: Option<PathBuf>) -> Result<Self, Error> {
        self.credentials = file;
        let read = self.credentials().and_then(|text| match text {
            Some(text) => ConnectOptions::new().credentials(&text).map(drop),
            None => Ok(()),
        });
        read.map_err(|error| Error::Config(format!("nats: {error}")))?;
        Ok(self)
    }

    /// The present content of the credentials file: it may be replaced while the node runs.
    pub(super) fn credentials(&self) -> io::Result<Option<String>> {
        let Some(file) = &self.credentials else { return Ok(None) };
        let text = std::fs::read_to_string(file);
        text.map(Some).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", file.display())))
    }

    /// Whether all servers are on this machine.
    fn is_loopback(&self) -> bool {
        self.servers.iter().all(|server| {
            let host = server.host().trim_start_matches('[').trim_end_matches(']');
            host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
        })
    }

    /// The servers, without passwords.
    pub(super) fn shown(&self) -> String {
        let shown = |s: &ServerAddr| format!("{}://{}:{}", s.scheme(), s.host(), s.port());
        self.servers.iter().map(shown).collect::<Vec<_>>().join(", ")
    }

    /// The prefix of all subjects of a group.
    pub(super) fn root(&self, cluster: &str) -> String {
        format!("{}.{}", self.prefix, subject_word(cluster))
    }
}

fn is_word(word: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !word.is_empty() && word.chars().all(fine)
}

/// Encodes any name as one word of a subject, injectively.
fn subject_word(name: &str) -> String {
    let mut word = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            word.push(char::from(byte));
        } else {
            word.push_str(&format!("={byte:02x}"));
        }
    }
    if word.is_empty() { "=".into() } else { word }
}

/// Removes what stands before an `@`: user and password.
fn hide(part: &str) -> String {
    match part.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => part.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_servers_and_prefix() {
        let address = NatsAddress::parse("nats://a:4222/team.locks").unwrap();
        assert_eq!(
            (address.prefix.as_str(), address.shown().as_str()),
            ("team.locks", "nats://a:4222")
        );
        let address = NatsAddress::parse("a, tls://me:secret@b:1/x/,nats://c").unwrap();
        assert_eq!(address.shown(), "nats://a:4222, tls://b:1, nats://c:4222");
        assert_eq!(address.root("my group"), "x.my=20group");
        assert_eq!(NatsAddress::parse("a").unwrap().root(""), "konklave.=");
    }

    #[test]
    fn invalid_address_is_refused_without_showing_password() {
        for wrong in [
            "",
            "nats://",
            "http://a",
            "nats://a/b c",
            "nats://a/>",
            "nats://a/b..c",
            "nats://a/*",
            "nats://a/b,nats://c/d",
            "nats://a:port",
        ] {
            assert!(matches!(NatsAddress::parse(wrong), Err(Error::Config(_))), "{wrong}");
        }
        let error = NatsAddress::parse("ws://me:secret@host").unwrap_err().to_string();
        assert!(error.contains("host") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn group_names_map_to_different_subjects() {
        let names = ["a.b", "a_b", "a=2eb", "a b", "ä", "", "="];
        let encoded: std::collections::BTreeSet<String> =
            names.iter().map(|n| subject_word(n)).collect();
        assert_eq!(encoded.len(), names.len());
    }

    #[test]
    fn loopback_is_this_machine_only() {
        let is = |text: &str| NatsAddress::parse(text).unwrap().is_loopback();
        assert!(is("127.0.0.1") && is("nats://localhost:1,nats://[::1]:2"));
        assert!(!is("nats://10.0.0.1") && !is("localhost,example.org"));
    }
}
