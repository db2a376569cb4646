//! Figures, as medians of the rounds, against the floor and against what they must reach.

use std::time::Duration;

use serde_json::{Value, json};

/// The one in the middle.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What a row is about.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Nanoseconds, to be at most so many round trips.
    RoundTrips,
    /// Nanoseconds, to be at most so many.
    Time,
    /// More is better.
    Rate,
    Plain,
}

struct Row {
    name: String,
    kind: Kind,
    values: Vec<f64>,
    target: Option<f64>,
}

pub(crate) struct Report {
    floor: f64,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(floor: Duration) -> Self {
        Self { floor: floor.as_nanos() as f64, rows: Vec::new() }
    }

    fn add(&mut self, name: &str, kind: Kind, value: f64, target: Option<f64>) {
        match self.rows.iter_mut().find(|row| row.name == name) {
            Some(row) => row.values.push(value),
            None => self.rows.push(Row { name: name.into(), kind, values: vec![value], target }),
        }
    }

    pub(crate) fn add_nanos(&mut self, name: &str, nanos: f64, round_trips: Option<f64>) {
        self.add(name, Kind::RoundTrips, nanos, round_trips);
    }

    pub(crate) fn add_time(&mut self, name: &str, time: Duration, target: Option<Duration>) {
        let target = target.map(|t| t.as_nanos() as f64);
        self.add(name, Kind::Time, time.as_nanos() as f64, target);
    }

    pub(crate) fn add_rate(&mut self, name: &str, rate: f64, target: Option<f64>) {
        self.add(name, Kind::Rate, rate, target);
    }

    pub(crate) fn add_plain(&mut self, name: &str, value: f64, target: Option<f64>) {
        self.add(name, Kind::Plain, value, target);
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("TCP ping-pong {:.1} µs\n", self.floor / 1e3);
        for row in &self.rows {
            let value = median(&mut row.values.clone());
            let shown = match row.kind {
                Kind::RoundTrips => format!("{:.2} µs = {:.2}x", value / 1e3, value / self.floor),
                Kind::Time => format!("{:.1} ms", value / 1e6),
                Kind::Rate => format!("{value:.0}"),
                Kind::Plain => format!("{value:.2}"),
            };
            let target = match (row.kind, row.target) {
                (_, None) => String::new(),
                (Kind::RoundTrips, Some(t)) => format!("at most {t}x"),
                (Kind::Time, Some(t)) => format!("at most {:.0} ms", t / 1e6),
                (Kind::Rate | Kind::Plain, Some(t)) => format!("at least {t}"),
            };
            let mark = if row.reached(value, self.floor) { ' ' } else { '!' };
            text.push_str(&format!("{mark} {:<62} {shown:>22}  {target}\n", row.name));
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(|row| self.row_json(row)).collect();
        json!({ "schema": "konklave.bench.net/1", "ping_pong_ns": self.floor, "rows": rows })
    }

    fn row_json(&self, row: &Row) -> Value {
        let value = median(&mut row.values.clone());
        let ratio = (row.kind == Kind::RoundTrips).then_some(value / self.floor);
        json!({ "name": row.name, "median": value, "values": row.values, "round_trips": ratio,
            "target": row.target, "reached": row.reached(value, self.floor) })
    }
}

impl Row {
    fn reached(&self, value: f64, floor: f64) -> bool {
        match (self.kind, self.target) {
            (_, None) => true,
            (Kind::RoundTrips, Some(target)) => value <= target * floor,
            (Kind::Time, Some(target)) => value <= target,
            (Kind::Rate | Kind::Plain, Some(target)) => value >= target,
        }
    }
}
