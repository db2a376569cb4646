//! Metrics, in the text format of Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use konklave::Status;

use super::certificates::Certificates;
use crate::server::Counts;

/// The upper bounds of the buckets, in ms.
const BUCKETS: [u64; 10] = [1, 2, 5, 10, 50, 100, 500, 1_000, 10_000, 60_000];

/// A histogram of the time until requests were granted or refused.
#[derive(Debug, Default)]
pub(super) struct Waits {
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    microseconds: AtomicU64,
}

impl Waits {
    pub(super) fn note(&self, waited: Duration) {
        for (bucket, end) in self.buckets.iter().zip(BUCKETS) {
            if waited <= Duration::from_millis(end) {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }
}

struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP konklave_{name} {help}\n# TYPE konklave_{name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escape(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "konklave_{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, "gauge", help);
        self.value(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: &AtomicU64) {
        self.head(name, "counter", help);
        self.value(name, &[], value.load(Ordering::Relaxed) as f64);
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn truth(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

pub(super) fn text(
    status: &Status,
    counts: &Counts,
    waits: &Waits,
    certificates: Option<Certificates>,
) -> String {
    let mut page = Page(String::new());
    page.head("node_info", "gauge", "Name and number of this node.");
    let id = status.node.to_string();
    page.value("node_info", &[("name", &status.name), ("id", &id)], 1.0);
    if let Some(certificates) = certificates {
        let help = "When this agent's certificates end, in seconds since 1970.";
        page.head("certificate_end_seconds", "gauge", help);
        for (what, end) in certificates.ends() {
            page.value("certificate_end_seconds", &[("certificate", what)], end as f64);
        }
    }
    group(&mut page, status);
    claims(&mut page, status);
    page.gauge(
        "sessions",
        "Clients connected to this agent.",
        counts.sessions.load(Ordering::Relaxed) as f64,
    );
    page.counter("sessions_total", "Clients connected since the agent started.", &counts.opened);
    let help = "Sessions that expired because the client sent no keep-alive.";
    page.counter("sessions_expired_total", help, &counts.expired);
    page.counter("granted_total", "Requests granted to clients of this agent.", &counts.granted);
    page.counter("refused_total", "Requests refused to clients of this agent.", &counts.refused);
    page.counter("lost_total", "Grants lost while clients of this agent held them.", &counts.lost);
    let help = "Clients rejected at the socket because they may not use the agent.";
    page.counter("strangers_total", help, &counts.rejected);
    page.head("wait_seconds", "histogram", "Time until a request was granted or refused.");
    for (bucket, end) in waits.buckets.iter().zip(BUCKETS) {
        let end = (end as f64 / 1e3).to_string();
        let value = bucket.load(Ordering::Relaxed) as f64;
        page.value("wait_seconds_bucket", &[("le", &end)], value);
    }
    let count = waits.count.load(Ordering::Relaxed) as f64;
    page.value("wait_seconds_bucket", &[("le", "+Inf")], count);
    let sum = waits.microseconds.load(Ordering::Relaxed) as f64 / 1e6;
    page.value("wait_seconds_sum", &[], sum);
    page.value("wait_seconds_count", &[], count);
    page.0
}

fn group(page: &mut Page, status: &Status) {
    let (generation, epoch) = status.view.unwrap_or_default();
    let primary = super::report::is_primary(status);
    page.gauge("primary", "Whether this node is in a view with a majority.", truth(primary));
    let help = "Generation of the group; grows when the group is founded anew.";
    page.gauge("view_generation", help, f64::from(generation));
    page.gauge("view_epoch", "Number of the view; grows with each view.", epoch as f64);
    page.gauge("view_members", "Voters in the view.", status.quorum.of as f64);
    page.gauge("quorum_needed", "Voters needed for a majority.", status.quorum.needed as f64);
    page.gauge(
        "quorum_heard",
        "Voters this node hears, itself included.",
        status.quorum.heard as f64,
    );
    let leads = status.leader == Some(status.node);
    page.gauge("coordinator", "Whether this node orders the group's decisions.", truth(leads));
    if let Some(lease) = status.lease_ms {
        let help = "Remaining time for which locks held at this node are safe.";
        page.gauge("lease_seconds", help, lease as f64 / 1e3);
    }
    page.gauge(
        "disk_trouble",
        "Whether the data directory cannot be written.",
        truth(status.trouble.is_some()),
    );
    page.gauge(
        "network_trouble",
        "Whether the whole network fails, as when no NATS server can be reached.",
        truth(status.network.is_some()),
    );
    page.head("member_suspected", "gauge", "Whether a member is suspected of a crash.");
    for member in &status.members {
        let id = member.node.to_string();
        let labels = [("member", member.name.as_str()), ("id", &id)];
        page.value("member_suspected", &labels, truth(member.suspected));
    }
}

fn claims(page: &mut Page, status: &Status) {
    let kinds = ["lock", "semaphore", "campaign"];
    for (name, help, count) in [
        ("held", "Grants held in the whole group.", true),
        ("waiting", "Requests waiting in the whole group.", false),
    ] {
        page.head(name, "gauge", help);
        for kind in kinds {
            let of = status.locks.iter().filter(|lock| lock.kind == kind);
            let number: usize =
                of.map(|l| if count { l.holders.len() } else { l.queue.len() }).sum();
            let kind = if kind == "campaign" { "election" } else { kind };
            page.value(name, &[("kind", kind)], number as f64);
        }
    }
    // Standbys report 0. So an alert can find an election that has a 1 on no agent.
    page.head("leads", "gauge", "Whether a client of this node leads the election.");
    for election in status.locks.iter().filter(|lock| lock.kind == "campaign") {
        let here = election.holders.iter().any(|holder| holder.node == status.node);
        page.value("leads", &[("election", &election.name)], truth(here));
    }
}
