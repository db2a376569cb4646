//! The host of the group below: what it sends, sets, tells and saves becomes the node's.

use std::collections::VecDeque;
use std::time::Duration;

use konklave_algorithms::group::virtual_synchrony::{Message, Record as Life, Timer};
use konklave_algorithms::group::{Indication, ViewId};
use konklave_process::{Effect, Host, ProcessId, Rng};

use super::{GroupProcess, Output};
use crate::store::Record;
use crate::table::Batch;
use crate::wire::Frame;

/// How many frames of a step are looked through for one that says less of the same.
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
    /// What we said in this step of how much we have: who gets several messages at once confirms the
    /// last of them. Nothing passes what must be on disk before.
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
            // A frame that makes no sense is dropped: the sender's trouble, not ours.
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

    /// What these acknowledgements, each to its receiver, leave to be said; with a record in between.
    fn said(acks: &[(u32, u64)], saved_before: usize) -> Vec<(u32, u64)> {
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
        let said = |output| match output {
            Output::Send { to, frame: Frame::Group(Message::Ack { held, .. }) } => {
                Some((to.0, held))
            }
            _ => None,
        };
        out.into_iter().filter_map(said).collect()
    }

    #[test]
    fn the_last_word_of_a_step_on_how_much_we_have_is_the_only_one() {
        assert_eq!(said(&[(1, 3), (2, 3), (1, 4), (2, 4), (1, 5)], 9), [(1, 5), (2, 4)]);
    }

    #[test]
    fn nothing_is_confirmed_before_what_must_be_on_disk() {
        assert_eq!(said(&[(1, 3), (1, 4), (1, 5)], 1), [(1, 3), (1, 5)]);
    }
}
