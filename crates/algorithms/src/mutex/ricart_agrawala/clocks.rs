//! Clocks that do not begin at 0, as in the lecture's example.

use konklave_process::ProcessId;

use super::sheet::SHEET;
use crate::{Setup, SetupError, Switch};

pub(super) const SWITCH: Switch = Switch {
    name: "clocks",
    values: &["0", "<text>"],
    what: "where the clocks of the nodes begin, in node order, as in 11,7,0",
};

/// Where the clock of `p` begins; none if that is no number.
pub(super) fn begin(p: ProcessId, setup: &Setup) -> Option<u32> {
    let place = setup.group.place(p)?;
    let word = setup.chosen(&SHEET, SWITCH.name).0.split(',').nth(place);
    word.map_or(Some(0), |word| word.trim().parse().ok().filter(|time| *time < 1_000_000_000))
}

pub(super) fn check(setup: &Setup) -> Result<(), SetupError> {
    let clocks = setup.chosen(&SHEET, SWITCH.name).0;
    if clocks.split(',').count() > setup.group.len() {
        return Err(SetupError(format!("clocks={clocks}: there are more than nodes")));
    }
    match setup.group.members().iter().find(|&&p| begin(p, setup).is_none()) {
        Some(_) => Err(SetupError(format!("clocks={clocks}: these are no numbers below 10⁹"))),
        None => Ok(()),
    }
}
