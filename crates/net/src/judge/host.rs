//! What a process sees of the run during one step.

use konklave_process::{AnyProcess, Effect, Host, ProcessId, Rng, Violation};

use super::{Judge, LONGEST};
use crate::node::Parcel;
use crate::timers::Timers;

/// The run as seen from one process during one step.
pub(super) struct At<'a> {
    pub(super) judge: &'a mut Judge,
    pub(super) me: ProcessId,
    pub(super) place: usize,
    pub(super) rng: &'a mut Rng,
    pub(super) timers: &'a mut Timers,
    pub(super) outbox: &'a mut Vec<Parcel>,
    /// Whether the client has to be asked for its next wish after the step.
    pub(super) consult: bool,
}

impl Host<AnyProcess> for At<'_> {
    fn perform(&mut self, effect: Effect<AnyProcess>) {
        let judge = &mut *self.judge;
        // The recording numbers messages, if there is one; nobody else then.
        let recorded = judge.recorder.as_mut().map(|recorder| recorder.effect(effect.view()));
        match effect {
            Effect::Send { to, message } => {
                judge.last_id = recorded.unwrap_or(judge.last_id + 1);
                let id = judge.last_id;
                if let Some(to) = judge.send(self.me, to, &message, id) {
                    self.outbox.push(Parcel { to, id, message });
                }
            }
            Effect::Indicate(indication) => {
                let verdict = judge.ledger.on_indication(judge.now(), self.me, &indication);
                judge.note(verdict);
                self.consult = true;
            }
            Effect::SetTimer { timer, after } => {
                self.timers.set(timer, judge.clock + after.min(LONGEST));
            }
            Effect::CancelTimer { timer } => self.timers.cancel(&timer),
            Effect::Save(record) => judge.places[self.place].saved = Some(record),
            Effect::Unexpected(what) => {
                judge.violate(Violation::unexpected(self.me, what));
            }
        }
    }

    fn choose(&mut self, bound: u32) -> u32 {
        let drawn = self.rng.below(bound);
        if let Some(recorder) = &mut self.judge.recorder {
            recorder.draw(drawn);
        }
        drawn
    }
}
