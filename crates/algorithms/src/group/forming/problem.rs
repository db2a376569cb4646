//! The problem of forming one group: clients that want to be members, and its measures.

use konklave_process::{Application, Meter, Process, ProcessId, ProcessMap};
use serde::Serialize;

use super::{Indication, Properties, Request};
use crate::group::{self, Bytes, ViewId};
use crate::{Algorithm, Metric, Pause, Problem, ProblemSheet, Setup, Watch, Workload};

/// The problem: the processes that are up and connected end in one group.
#[derive(Clone, Copy, Debug)]
pub struct Formation;

impl<P> Problem<P> for Formation
where
    P: Algorithm + Process<Request = Request<Bytes>, Indication = Indication<Bytes>>,
{
    type Application = Founders;
    type Monitor = Properties;
    type Meter = Measures;
    type Summary = Summary;

    const SHEET: ProblemSheet = group::SHEET;

    fn application(_workload: &Workload, setup: &Setup) -> Founders {
        let client = Client { up: true, member: false, asked_for_state: false };
        Founders(ProcessMap::new(&setup.group, client))
    }

    fn monitor(_watch: &Watch, setup: &Setup) -> Properties {
        Properties::new(setup)
    }

    fn meter(setup: &Setup) -> Measures {
        Measures {
            inside: ProcessMap::new(&setup.group, false),
            first: None,
            all: None,
            views: 0,
            foundings: 0,
            dissolved: 0,
            newest: None,
        }
    }

    fn pause(_request: &Request<Bytes>) -> Pause {
        Pause::Think
    }

    fn summary(meter: &Measures, _monitor: &Properties, unit: f64) -> Summary {
        let time = |ticks: Option<u64>| ticks.map(|ticks| ticks as f64 / unit);
        Summary {
            views: meter.views,
            foundings: meter.foundings,
            dissolved: meter.dissolved,
            first_time: time(meter.first),
            all_time: time(meter.all),
            last_view: meter.newest,
        }
    }

    fn measured(meter: &Measures, metric: Metric, unit: f64) -> Option<f64> {
        let all = meter.all.filter(|_| metric == Metric::Time)?;
        Some(all as f64 / unit)
    }
}

/// One client for each process. It wants its process to be a member, and gives the application's state, which is empty.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Founders(ProcessMap<Client>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Client {
    up: bool,
    /// Whether its process is a member of a view.
    member: bool,
    /// Whether it was asked for the state.
    asked_for_state: bool,
}

impl<P> Application<P> for Founders
where
    P: Process<Request = Request<Bytes>, Indication = Indication<Bytes>>,
{
    fn next(&self, at: ProcessId) -> Option<Request<Bytes>> {
        let asked = self.0[at].asked_for_state;
        asked.then(|| Request::Group(group::Request::State(Vec::new())))
    }

    fn on_request(&mut self, at: ProcessId, _request: &Request<Bytes>) {
        self.0[at].asked_for_state = false;
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication<Bytes>) {
        let client = &mut self.0[at];
        match indication {
            Indication::Group(group::Indication::Installed { view, .. }) => {
                client.member = view.has_member(at);
                client.asked_for_state = false;
            }
            Indication::Group(group::Indication::StateWanted) => client.asked_for_state = true,
            Indication::Group(group::Indication::Excluded | group::Indication::Left)
            | Indication::Dissolved => (client.member, client.asked_for_state) = (false, false),
            Indication::Group(_)
            | Indication::Founded
            | Indication::GrantsOver
            | Indication::InOtherGroup(_)
            | Indication::JoinsInstead(_) => {}
        }
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.0[at] = Client { up: false, member: false, asked_for_state: false };
    }

    fn on_restart(&mut self, at: ProcessId) {
        self.0[at].up = true;
    }

    fn must_request(&self, at: ProcessId) -> bool {
        self.0[at].asked_for_state
    }

    /// While a process is down, the others may have to wait for it.
    fn waiting(&self) -> Vec<ProcessId> {
        let all_up = self.0.values().all(|client| client.up);
        self.0.iter().filter(|(_, client)| all_up && !client.member).map(|(p, _)| p).collect()
    }
}

/// The measures of the views of a run.
#[derive(Clone, Debug)]
pub struct Measures {
    inside: ProcessMap<bool>,
    /// When a process was in a view for the first time, and when all were.
    first: Option<u64>,
    all: Option<u64>,
    views: u64,
    foundings: u64,
    dissolved: u64,
    newest: Option<ViewId>,
}

impl<P> Meter<P> for Measures
where
    P: Process<Request = Request<Bytes>, Indication = Indication<Bytes>>,
{
    fn on_request(&mut self, _now: u64, _at: ProcessId, _request: &Request<Bytes>) {}

    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &Indication<Bytes>) {
        match indication {
            Indication::Group(group::Indication::Installed { view, .. }) => {
                self.inside[at] = true;
                self.first.get_or_insert(now);
                if self.inside.values().all(|inside| *inside) {
                    self.all.get_or_insert(now);
                }
                if self.newest < Some(view.id) {
                    self.newest = Some(view.id);
                    self.views += 1;
                    self.foundings += u64::from(view.id.epoch == 0);
                }
            }
            Indication::Group(group::Indication::Excluded | group::Indication::Left) => {
                self.inside[at] = false;
            }
            Indication::Dissolved => {
                self.inside[at] = false;
                self.dissolved += 1;
            }
            Indication::Group(_)
            | Indication::Founded
            | Indication::GrantsOver
            | Indication::InOtherGroup(_)
            | Indication::JoinsInstead(_) => {}
        }
    }

    fn on_crash(&mut self, _now: u64, at: ProcessId) {
        self.inside[at] = false;
    }
}

/// The measures of a run; times in units of T.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// How many views were installed.
    pub views: u64,
    /// How many of them were first views, on which founders agreed.
    pub foundings: u64,
    /// How often a process dissolved its view.
    pub dissolved: u64,
    /// When the first process was in a view.
    pub first_time: Option<f64>,
    /// When all processes were in views.
    pub all_time: Option<f64>,
    /// The name of the last view.
    pub last_view: Option<ViewId>,
}
