//! Report: medians of all rounds, compared with the floor and with the targets.

use std::time::Duration;

use serde_json::{Value, json};

use crate::floor;

/// The measurements of every system, in the order of the report.
pub(crate) mod measures {
    pub(crate) const ACQUIRE: &str = "a free lock: acquire";
    pub(crate) const ACQUIRE_SLOW: &str = "a free lock: acquire, the slowest of a hundred";
    pub(crate) const CYCLE: &str = "a free lock: acquire and release";
    pub(crate) const HAND_OVER: &str = "8 clients, one lock: from one to another";
    pub(crate) const RATE: &str = "8 clients, one lock: hand-overs/s";
    pub(crate) const FAIRNESS: &str = "8 clients, one lock: fewest/most";
    pub(crate) const TWICE: &str = "8 clients, one lock: two at once";
    pub(crate) const LEADER_KILLED: &str = "kill -9 of who leads, to the next grant";
    pub(crate) const HOLDER_KILLED: &str = "kill -9 of who holds, to the next holder";
    pub(crate) const COLD: &str = "cold processes, to the first grant";
    pub(crate) const MEMORY: &str = "memory of an idle process, MiB";

    pub(crate) const FIRST_VIEW: &str = "cold processes, to the first view with all three";
    pub(crate) const PROCESS_KILLED: &str = "kill -9 of a process, to the view without it";
    /// With a daemon, the daemon is killed.
    pub(crate) const ALL_KILLED: &str = "kill -9 of what serves it, to the view without it";
    pub(crate) const BUSY: &str = "processor time of an idle process, %";

    /// The measures for messages of one size.
    pub(crate) struct Order {
        pub(crate) bytes: u32,
        pub(crate) rate: &'static str,
        /// The target.
        pub(crate) least: f64,
        pub(crate) time: &'static str,
        /// The same with agreed delivery.
        pub(crate) agreed: &'static str,
    }

    pub(crate) const ORDER: [Order; 2] = [
        Order {
            bytes: 100,
            rate: "total order, 100 B: messages/s at every member",
            least: 300_000.0,
            time: "total order, 100 B: one in flight",
            agreed: "total order, 100 B: one in flight, agreed",
        },
        Order {
            bytes: 1024,
            rate: "total order, 1024 B: messages/s at every member",
            least: 150_000.0,
            time: "total order, 1024 B: one in flight",
            agreed: "total order, 1024 B: one in flight, agreed",
        },
    ];

    pub(super) const ALL: [&str; 19] = [
        ACQUIRE,
        ACQUIRE_SLOW,
        CYCLE,
        HAND_OVER,
        RATE,
        FAIRNESS,
        TWICE,
        LEADER_KILLED,
        HOLDER_KILLED,
        COLD,
        ORDER[0].rate,
        ORDER[0].time,
        ORDER[1].rate,
        ORDER[1].time,
        FIRST_VIEW,
        PROCESS_KILLED,
        ALL_KILLED,
        MEMORY,
        BUSY,
    ];
}

/// The median.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

/// The quantile for this part.
pub(crate) fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get((values.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN)
}

/// The unit of a row, and its target.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Nanoseconds, at most this many round trips.
    RoundTrips,
    /// Nanoseconds, at most this many.
    Time,
    /// More is better.
    Rate,
    Plain,
    /// Less is better.
    Cost,
}

struct Row {
    system: String,
    name: String,
    kind: Kind,
    values: Vec<f64>,
    /// The ping-pongs right after each value, if they are compared.
    floors: Vec<f64>,
    target: Option<f64>,
}

/// Begin and end, in nanoseconds.
pub(crate) type Spans = Vec<(u64, u64)>;

/// The name of our system.
pub(crate) const OURS: &str = "konklave";

#[derive(Default)]
pub(crate) struct Report {
    /// Ping-pongs on one core, between two cores, and with a runtime on one core, in nanoseconds.
    one_core: Vec<f64>,
    two_cores: Vec<f64>,
    runtimes: Vec<f64>,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    pub(crate) fn add_floors(&mut self, two_cores: Option<Duration>, runtimes: Duration) {
        self.runtimes.push(runtimes.as_nanos() as f64);
        self.two_cores.extend(two_cores.map(|time| time.as_nanos() as f64));
    }

    fn floor(&self) -> f64 {
        median(&mut self.one_core.clone())
    }

    /// A note for the reader of the figures, kept once.
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn add(&mut self, system: &str, name: &str, kind: Kind, value: f64, target: Option<f64>) {
        let at = self.rows.iter().position(|row| row.name == name && row.system == system);
        let at = at.unwrap_or_else(|| {
            let (system, name) = (system.to_owned(), name.to_owned());
            let (values, floors) = (Vec::new(), Vec::new());
            self.rows.push(Row { system, name, kind, values, floors, target });
            self.rows.len() - 1
        });
        self.rows[at].values.push(value);
        if kind == Kind::RoundTrips {
            // A neighbour on the same machine may slow everything down for a while: so compared values are
            // measured right after each other.
            let floor = floor::ping_pong_here().as_nanos() as f64;
            self.rows[at].floors.push(floor);
            self.one_core.push(floor);
        }
    }

    pub(crate) fn add_nanos(&mut self, system: &str, name: &str, nanos: f64, most: Option<f64>) {
        self.add(system, name, Kind::RoundTrips, nanos, most);
    }

    pub(crate) fn add_time(
        &mut self,
        system: &str,
        name: &str,
        time: Duration,
        most: Option<Duration>,
    ) {
        let most = most.map(|t| t.as_nanos() as f64);
        self.add(system, name, Kind::Time, time.as_nanos() as f64, most);
    }

    pub(crate) fn add_rate(&mut self, system: &str, name: &str, rate: f64, least: Option<f64>) {
        self.add(system, name, Kind::Rate, rate, least);
    }

    pub(crate) fn add_plain(&mut self, system: &str, name: &str, value: f64, least: Option<f64>) {
        self.add(system, name, Kind::Plain, value, least);
    }

    pub(crate) fn add_cost(&mut self, system: &str, name: &str, value: f64, most: Option<f64>) {
        self.add(system, name, Kind::Cost, value, most);
    }

    /// Clients that had one lock in turn: the place of each, and the begin and end of each grant. Only the
    /// time with all clients counts, and only handovers between places: within a place there may be no
    /// message.
    pub(crate) fn add_hand_overs(&mut self, system: &str, clients: &[(usize, Spans)]) {
        let ours = |target: f64| (system == OURS).then_some(target);
        let begin = clients.iter().filter_map(|(_, spans)| spans.first()).map(|s| s.0).max();
        let end = clients.iter().filter_map(|(_, spans)| spans.last()).map(|s| s.0).min();
        let (begin, end) = (begin.unwrap_or(0), end.unwrap_or(0));
        let within = |s: &&(u64, u64)| (begin..=end).contains(&s.0);
        let counts: Vec<usize> =
            clients.iter().map(|(_, spans)| spans.iter().filter(within).count()).collect();
        let least = counts.iter().min().copied().unwrap_or(0) as f64;
        let most = counts.iter().max().copied().unwrap_or(0) as f64;
        let all = clients.iter().flat_map(|(at, spans)| spans.iter().map(|s| (s.0, s.1, *at)));
        let mut all: Vec<(u64, u64, usize)> = all.collect();
        all.sort_unstable();
        let twice = all.windows(2).filter(|pair| pair[1].0 < pair[0].1).count();
        all.retain(|s| (begin..=end).contains(&s.0));
        let steps = all.windows(2).filter(|pair| pair[0].2 != pair[1].2);
        let mut steps: Vec<f64> = steps.map(|pair| (pair[1].0 - pair[0].0) as f64).collect();
        let rate = all.len() as f64 * 1e9 / end.saturating_sub(begin) as f64;
        self.add_nanos(system, measures::HAND_OVER, median(&mut steps), ours(3.0));
        self.add_rate(system, measures::RATE, rate, ours(20_000.0));
        self.add_plain(system, measures::FAIRNESS, least / most, ours(0.9));
        self.add_cost(system, measures::TWICE, twice as f64, Some(0.0));
    }

    /// All rows of ours, then every measure with all systems.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("TCP ping-pong, 64 B: {:.1} µs on one core", self.floor() / 1e3);
        if !self.two_cores.is_empty() {
            let two = median(&mut self.two_cores.clone());
            text.push_str(&format!(", {:.1} µs between two", two / 1e3));
        }
        let runtimes = median(&mut self.runtimes.clone());
        text.push_str(&format!(", {:.1} µs of runtimes on one core", runtimes / 1e3));
        text.push_str("; x is a multiple of the first, right after\n");
        for row in self.rows.iter().filter(|row| row.system == OURS) {
            text.push_str(&Self::line(row, &row.name, 58));
        }
        // Measures for lifted algorithms only.
        let told = |row: &&Row| measures::ALL.contains(&row.name.as_str());
        for row in self.rows.iter().filter(|row| !told(row)) {
            if let Some(mutex) = row.system.strip_prefix(OURS).and_then(|m| m.strip_prefix(", ")) {
                text.push_str(&Self::line(row, &format!("{mutex}: {}", row.name), 58));
            }
        }
        for measure in measures::ALL {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.name == measure).collect();
            // Rows without peers are already in the first part.
            if rows.iter().any(|row| row.system != OURS) {
                text.push_str(&format!("\n{measure}\n"));
                text.extend(rows.iter().map(|row| Self::line(row, &row.system, 20)));
            }
        }
        for note in &self.notes {
            text.push_str(&format!("\n{note}"));
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        text
    }

    fn line(row: &Row, label: &str, width: usize) -> String {
        let value = median(&mut row.values.clone());
        let shown = match row.kind {
            Kind::RoundTrips => format!("{:.2} µs = {:.2}x", value / 1e3, row.round_trips()),
            Kind::Time => format!("{:.1} ms", value / 1e6),
            Kind::Rate => format!("{value:.0}"),
            Kind::Plain | Kind::Cost => format!("{value:.2}"),
        };
        let target = match (row.kind, row.target) {
            (_, None) => String::new(),
            (Kind::RoundTrips, Some(t)) => format!("at most {t}x"),
            (Kind::Time, Some(t)) => format!("at most {:.0} ms", t / 1e6),
            (Kind::Cost, Some(t)) => format!("at most {t}"),
            (Kind::Rate | Kind::Plain, Some(t)) => format!("at least {t}"),
        };
        let mark = if row.reached(value) { ' ' } else { '!' };
        format!("{mark} {label:<width$} {shown:>24}  {target}").trim_end().to_owned() + "\n"
    }

    pub(crate) fn json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(Self::row_json).collect();
        json!({ "schema": "konklave.bench.net/3", "ping_pong_ns": self.floor(),
            "ping_pongs_ns": self.one_core, "ping_pongs_between_two_cores_ns": self.two_cores,
            "ping_pongs_of_runtimes_ns": self.runtimes,
            "rows": rows, "notes": self.notes })
    }

    fn row_json(row: &Row) -> Value {
        let value = median(&mut row.values.clone());
        let ratio = (row.kind == Kind::RoundTrips).then(|| row.round_trips());
        json!({ "system": row.system, "name": row.name, "median": value, "values": row.values,
            "ping_pongs_ns": row.floors, "round_trips": ratio, "target": row.target,
            "reached": row.reached(value) })
    }
}

impl Row {
    /// The value in ping-pongs, each with the one measured after it.
    fn round_trips(&self) -> f64 {
        let pairs = self.values.iter().zip(&self.floors);
        median(&mut pairs.map(|(value, floor)| value / floor).collect::<Vec<_>>())
    }

    fn reached(&self, value: f64) -> bool {
        match (self.kind, self.target) {
            (_, None) => true,
            (Kind::RoundTrips, Some(target)) => self.round_trips() <= target,
            (Kind::Time | Kind::Cost, Some(target)) => value <= target,
            (Kind::Rate | Kind::Plain, Some(target)) => value >= target,
        }
    }
}
