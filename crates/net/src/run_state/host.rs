//! The host of one step.

use konklave_process::{AnyProcess, Effect, Host, ProcessId, Rng, Violation};

use super::{LONGEST, RunState};
use crate::node::OutgoingMessage;
use crate::timers::Timers;

/// Carries out the effects of one process during one step.
pub(super) struct StepHost<'a> {
    pub(super) state: &'a mut RunState,
    pub(super) me: ProcessId,
    pub(super) place: usize,
    pub(super) rng: &'a mut Rng,
    pub(super) timers: &'a mut Timers,
    pub(super) outbox: &'a mut Vec<OutgoingMessage>,
    /// Whether the client must be asked for its next request after the step.
    pub(super) ask_client: bool,
}

impl Host<AnyProcess> for StepHost<'_> {
    fn perform(&mut self, effect: Effect<AnyProcess>) {
        let state = &mut *self.state;
        // If the run is recorded, the recorder numbers the messages.
        let recorded = state.recorder.as_mut().map(|recorder| recorder.effect(effect.view()));
        match effect {
            Effect::Send { to, message } => {
                state.last_id = recorded.unwrap_or(state.last_id + 1);
                let id = state.last_id;
                if let Some((to, copies)) = state.send(self.me, to, &message, id) {
                    for _ in 1..copies {
                        self.outbox.push(OutgoingMessage { to, id, message: message.clone() });
                    }
                    self.outbox.push(OutgoingMessage { to, id, message });
                }
            }
            Effect::Indicate(indication) => {
                let verdict = state.ledger.on_indication(state.now(), self.me, &indication);
                state.note(verdict);
                self.ask_client = true;
            }
            Effect::SetTimer { timer, after } => {
                self.timers.set(timer, state.clock + after.min(LONGEST));
            }
            Effect::CancelTimer { timer } => self.timers.cancel(&timer),
            Effect::Save(record) => state.places[self.place].saved = Some(record),
            Effect::Unexpected(what) => {
                state.violate(Violation::unexpected(self.me, what));
            }
        }
    }

    fn choose(&mut self, bound: u32) -> u32 {
        let drawn = self.rng.below(bound);
        if let Some(recorder) = &mut self.state.recorder {
            recorder.draw(drawn);
        }
        drawn
    }
}
