//! Host of the virtual synchrony process: turns its effects into outputs, timers and records of the node.

use std::collections::VecDeque;
use std::time::Duration;

use konklave_algorithms::group::virtual_synchrony::{Message, Record as Life, Timer};
use konklave_algorithms::group::{Indication, ViewId};
use konklave_process::{Effect, Host, ProcessId, Rng};

use super::{GroupProcess, Output};
use crate::store::Record;
use crate::table::Batch;
use crate::wire::Frame;

/// The most frames of a step to search for an earlier acknowledgement.
const LOOKED_THROUGH: usize = 32;

pub(super) struct GroupHost<'a> {
    pub(super) out: &'a mut Vec<Output>,
    pub(super) timers: &'a mut Vec<(Timer, Duration)>,
    pub(super) rng: &'a mut Rng,
    pub(super) indications: &'a mut VecDeque<Indication<Batch>>,
    pub(super) record: &'a mut Record,
    pub(super) unsaved: &'a mut bool,
    pub(super) now: Duration,
}

impl GroupHost<'_> {
    /// The acknowledgement this step has already queued for `to`, if any: only the highest of a step is sent.
    /// The search stops at a record to save, because a later acknowledgement must not overtake it.
    fn earlier_ack(&mut self, to: ProcessId, view: ViewId) -> Option<&mut u64> {
        let lately = self.out.iter_mut().rev().take(LOOKED_THROUGH);
        let mut frames = lately.map_while(|output| match output {
            Output::Send { to, frame } => Some((*to, frame)),
            Output::Save(_) | Output::Note(_) => None,
        });
        frames.find_map(|(other, frame)| match frame {
            Frame::Group(Message::Ack { view: v, held }) if other == to && *v == view => Some(held),
            _ => None,
        })
    }
}

impl Host<GroupProcess> for GroupHost<'_> {
    fn perform(&mut self, effect: Effect<GroupProcess>) {
        match effect {
            Effect::Send { to, message } => self.send(to, message),
            Effect::SetTimer { timer, after } => {
                self.timers.retain(|(t, _)| *t != timer);
                self.timers.push((timer, self.now + after));
            }
            Effect::CancelTimer { timer } => self.timers.retain(|(t, _)| *t != timer),
            Effect::Indicate(indication) => self.indications.push_back(indication),
            Effect::Save(Life { incarnation, generation }) => {
                (self.record.incarnation, self.record.generation) = (incarnation, generation);
                self.out.push(Output::Save(self.record.clone()));
                *self.unsaved = true;
            }
            // A message that makes no sense in this state is dropped: its sender is at fault.
            Effect::Unexpected(_) => {}
        }
    }

    fn send(&mut self, to: ProcessId, message: Message<Batch>) {
        if let Message::Ack { view, held } = message
            && let Some(earlier) = self.earlier_ack(to, view)
        {
            *earlier = held.max(*earlier);
            return;
        }
        self.out.push(Output::Send { to, frame: Frame::Group(message) });
    }

    fn choose(&mut self, bound: u32) -> u32 {
        self.rng.below(bound.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(held: u64) -> Message<Batch> {
        Message::Ack { view: ViewId::default(), held }
    }

    /// The frames that remain of these acknowledgements `(receiver, held)`, with a record saved before the
    /// given one.
    fn queued(acks: &[(u32, u64)], saved_before: usize) -> Vec<(u32, u64)> {
        let (mut out, mut timers, mut indications) = (Vec::new(), Vec::new(), VecDeque::new());
        let (mut rng, mut record, mut unsaved) = (Rng::new(0), Record::default(), false);
        let mut host = GroupHost {
            out: &mut out,
            timers: &mut timers,
            rng: &mut rng,
            indications: &mut indications,
            record: &mut record,
            unsaved: &mut unsaved,
            now: Duration::ZERO,
        };
        for (i, (to, held)) in acks.iter().enumerate() {
            if i == saved_before {
                host.perform(Effect::Save(Life { incarnation: 1, generation: 1 }));
            }
            host.send(ProcessId(*to), ack(*held));
        }
        let ack = |output| match output {
            Output::Send { to, frame: Frame::Group(Message::Ack { held, .. }) } => {
                Some((to.0, held))
            }
            _ => None,
        };
        out.into_iter().filter_map(ack).collect()
    }

    #[test]
    fn only_highest_ack_of_step_is_sent() {
        assert_eq!(queued(&[(1, 3), (2, 3), (1, 4), (2, 4), (1, 5)], 9), [(1, 5), (2, 4)]);
    }

    #[test]
    fn ack_does_not_overtake_record_to_save() {
        assert_eq!(queued(&[(1, 3), (1, 4), (1, 5)], 1), [(1, 3), (1, 5)]);
    }
}
