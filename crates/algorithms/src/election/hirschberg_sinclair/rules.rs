//! The rules of Hirschberg–Sinclair that a switch or a mistake changes.

use super::Role;
use super::sheet::SHEET;
use crate::election::ring;
use crate::{Mistake, Setup};

pub(super) const NO_RELAY_LOCK: Mistake = Mistake {
    name: "no-relay-lock",
    what: "a process that passed a probe on may still start: too late to stop that probe",
    breaks: "one leader at a time",
    caught_by: "-n 2 --property unique",
};

/// The switch and the mistake of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) joins: bool,
    no_relay_lock: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self { joins: ring::joins(&SHEET, setup), no_relay_lock: *setup.makes(&NO_RELAY_LOCK) }
    }

    /// The relay lock: a process that has passed a probe on must not start any more.
    pub(super) fn permits_start(self, role: Role) -> bool {
        role == Role::Asleep || self.no_relay_lock && role == Role::Relay
    }
}
