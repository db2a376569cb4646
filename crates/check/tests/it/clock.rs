//! Checks with a clock: mistakes that only show after some time, and clients that retry.

use std::time::Duration;

use konklave_algorithms::election::bully::Bully;
use konklave_algorithms::election::invitation::Invitation;
use konklave_algorithms::election::quorum::Quorum;
use konklave_algorithms::group::leader::Leader;
use konklave_algorithms::group::lifted::Lifted;
use konklave_algorithms::group::lock_table::LockTable;
use konklave_algorithms::{Algorithm, Setup, Watch, Workload, erased};
use konklave_check::{Clock, Model, Options, Outcome, Timing};
use konklave_process::{Group, Portable, ProcessId, Topology};

/// A group, its clients and its faults, named as on the command line.
#[derive(Clone, Copy, Default)]
struct Case<'a> {
    n: usize,
    requests: &'a [u32],
    set: &'a [(&'static str, &'a str)],
    down: &'a [u32],
    limit: Option<u16>,
    settled: bool,
    early: u8,
    breaks: u8,
    bound: Option<u32>,
    properties: &'a [&'a str],
}

impl Case<'_> {
    /// The property that is violated, as an error.
    fn verdict<P>(&self, mistake: Option<&'static str>) -> Result<(), String>
    where
        P: Algorithm + Portable,
    {
        let algorithm = erased::<P>();
        let mut setup = Setup::new(Group::of(self.n), Topology::complete(self.n));
        setup.mistake = mistake;
        setup.down = self.down.iter().copied().map(ProcessId).collect();
        setup.chosen.extend(self.set.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let step = Duration::from_millis(1);
        let asks = |p: &&ProcessId| self.requests.get(p.0 as usize).is_none_or(|k| *k > 0);
        let initiators = setup.group.members().iter().filter(asks).copied().collect();
        let workload = Workload { initiators, requests: self.requests.to_vec() };
        let model = Model {
            group: setup.group.clone(),
            processes: algorithm.processes(&setup),
            application: algorithm.application(&workload, &setup),
            monitor: algorithm.monitor(&Watch::default(), &setup),
            options: Options {
                timing: Timing::WhenQuiet,
                clock: Some(Clock { step, limit: self.limit, settled: self.settled }),
                down: setup.down.clone(),
                early: self.early,
                breaks: self.breaks,
                most_messages: self.bound,
                max_states: 3_000_000,
                properties: self.properties.iter().map(|&p| p.to_owned()).collect(),
                ..Options::default()
            },
        };
        let report = model.explore(|_| true);
        let figures =
            format!("{} states, depth {}, {:?}", report.states, report.depth, report.elapsed);
        println!("{} {mistake:?}: {figures}", P::SHEET.name);
        match report.outcome {
            Outcome::Exhausted => Ok(()),
            Outcome::Violated(witness) => Err(witness.violation.property.to_owned()),
            Outcome::Bounded(bound) => Err(format!("{bound:?}")),
        }
    }

    /// Asserts that the mistake violates this property, and that the algorithm without it does not.
    fn catches<P: Algorithm + Portable>(&self, mistake: &'static str, breaks: &str) {
        assert_eq!(self.verdict::<P>(Some(mistake)), Err(breaks.to_owned()), "{mistake}");
        assert_eq!(self.verdict::<P>(None), Ok(()), "without {mistake}");
    }
}

#[test]
fn repeated_release_does_not_end_a_later_grant() {
    let set = [("clients", "0"), ("retry", "off")];
    let case = Case { n: 2, set: &set, limit: Some(1), settled: true, ..Case::default() };
    let case = Case { requests: &[2, 1], properties: &["mutual exclusion"], ..case };
    case.catches::<LockTable>("any-token", "mutual exclusion");
}

#[test]
fn equal_waiting_times_let_two_leaders_invite_each_other_forever() {
    let case = Case { n: 2, set: &[("timeout", "1")], limit: Some(24), ..Case::default() };
    let case = Case { settled: true, properties: &["agreement"], ..case };
    case.catches::<Invitation>("equal-waits", "agreement");
}

const QUORUM: Case<'_> = Case {
    n: 3,
    requests: &[1, 0, 0],
    set: &[
        ("election", "5"),
        ("drift", "20"),
        ("jitter", "1"),
        ("max-beats", "1"),
        ("max-term", "2"),
    ],
    limit: Some(6),
    settled: false,
    early: 0,
    breaks: 0,
    bound: None,
    down: &[],
    properties: &["one leader at a time"],
};

#[test]
fn leader_without_a_lease_stays_too_long() {
    QUORUM.catches::<Quorum>("no-lease", "one leader at a time");
}

#[test]
fn lease_counted_from_the_answers_is_too_long() {
    Case { early: 2, ..QUORUM }.catches::<Quorum>("lease-from-ack", "one leader at a time");
}

#[test]
fn member_that_granted_a_lease_follows_no_other_leader_meanwhile() {
    let set = [("lease", "20"), ("retry", "off")];
    let case = Case { n: 3, requests: &[0, 0, 0], set: &set, breaks: 1, ..Case::default() };
    let case = Case { limit: Some(1), properties: &["one leader at a time"], ..case };
    case.catches::<Leader>("no-delay", "one leader at a time");
}

#[test]
fn new_view_waits_for_a_holder_that_may_still_be_inside() {
    let set = [("safety", "lease"), ("lease", "20"), ("retry", "off"), ("mutex", "naimi-trehel")];
    let case = Case { n: 3, requests: &[0, 1, 1], set: &set, breaks: 1, ..Case::default() };
    let case = Case { limit: Some(1), properties: &["mutual exclusion"], ..case };
    case.catches::<Lifted>("no-wait", "mutual exclusion");
}

#[test]
fn elections_multiply_without_the_guard() {
    let case = Case { n: 5, down: &[4], requests: &[1, 0, 0, 0], ..Case::default() };
    let case = Case { bound: Some(20), properties: &["bound"], ..case };
    case.catches::<Bully>("no-guard", "bound");
}
