//! Access control: requests need the token of the printed address, and must come from our own page.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::Shared;
use crate::refusal::Refusal;

/// Only our own scripts run, no other page may frame ours, and the address is not sent to other sites.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Refuses requests that do not come from our own page.
pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let api = request.uri().path().starts_with("/api/");
    let mut response = match admit(&shared, request.headers(), api) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let cache = if api { "no-store" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

fn admit(shared: &Shared, headers: &HeaderMap, api: bool) -> Result<(), Refusal> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    // DNS rebinding: a foreign site may let its own name resolve to this address. So the host must be ours.
    let host = text(&header::HOST).unwrap_or_default();
    if !is_ours(host, shared.address) {
        return Err(Refusal::foreign(format!("`{host}` is not the address of this workbench")));
    }
    if let Some(origin) = headers.get(header::ORIGIN)
        && origin.as_bytes() != format!("http://{host}").as_bytes()
    {
        return Err(Refusal::foreign("this page does not belong to the workbench"));
    }
    let site = text(&HeaderName::from_static("sec-fetch-site"));
    if api && site.is_some_and(|site| site != "same-origin") {
        return Err(Refusal::foreign("only the workbench's own page may send requests"));
    }
    let given = text(&header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    if api && !given.is_some_and(|given| same(given, &shared.token)) {
        return Err(Refusal::unauthorised(format!(
            "the address lacks the right token; open the address that `{} ui` printed",
            konklave_catalog::program()
        )));
    }
    Ok(())
}

/// Whether `host`, as the browser says, is this machine by number, or `localhost`.
fn is_ours(host: &str, address: SocketAddr) -> bool {
    let loopback = address.ip().is_loopback() || address.ip().is_unspecified();
    if let Some(port) = host.strip_prefix("localhost:") {
        return loopback && port.parse() == Ok(address.port());
    }
    let Ok(asked) = host.parse::<SocketAddr>() else { return false };
    let same = match address.ip() {
        ip if ip.is_unspecified() => true,
        ip if ip.is_loopback() => asked.ip().is_loopback(),
        IpAddr::V4(_) | IpAddr::V6(_) => asked.ip() == address.ip(),
    };
    same && asked.port() == address.port()
}

/// Compares in a time that does not depend on the place of the first difference.
fn same(a: &str, b: &str) -> bool {
    let differs = a.bytes().zip(b.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    a.len() == b.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_by_number_or_as_localhost_is_ours() {
        let here: SocketAddr = "127.0.0.1:4711".parse().unwrap();
        for host in ["127.0.0.1:4711", "localhost:4711", "[::1]:4711"] {
            assert!(is_ours(host, here), "{host}");
        }
        for host in [
            "",
            "localhost",
            "127.0.0.1",
            "127.0.0.1:80",
            "evil.example:4711",
            "localhost.evil.example:4711",
            "192.0.2.7:4711",
            "localhost:4711.evil.example",
        ] {
            assert!(!is_ours(host, here), "{host}");
        }
    }

    #[test]
    fn a_machine_that_listens_to_all_still_has_no_name() {
        let all: SocketAddr = "0.0.0.0:4711".parse().unwrap();
        assert!(is_ours("192.0.2.7:4711", all) && is_ours("localhost:4711", all));
        assert!(!is_ours("evil.example:4711", all));
    }

    #[test]
    fn tokens_are_the_same_in_every_letter() {
        assert!(same("abc", "abc"));
        assert!(!same("abc", "abd") && !same("abc", "ab") && !same("", "a"));
    }
}
