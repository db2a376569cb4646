//! Host of the process that forms the group: turns its effects into outputs, timers and records of the node.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use konklave_algorithms::group::ViewId;
use konklave_algorithms::group::forming::{self, Indication, Timer};
use konklave_algorithms::group::virtual_synchrony::Message;
use konklave_process::{Effect, Host, ProcessId, Rng};

use super::forming::Peer;
use super::local_claims::LocalClaims;
use super::{GroupProcess, Output};
use crate::builder::lease_expiry;
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
    pub(super) peers: &'a BTreeMap<ProcessId, Peer>,
    pub(super) claims: &'a LocalClaims,
    /// This node, with its name.
    pub(super) me: (ProcessId, &'a str),
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

    fn set_timer(&mut self, timer: Timer, after: Duration) {
        let mut due = self.now + after;
        if timer == Timer::GrantsOver {
            // Single grants may have longer leases, here or in an earlier incarnation.
            let earlier = Duration::from_millis(self.record.longest_lease.into());
            let longest = self.claims.longest_lease().unwrap_or_default().max(earlier);
            due = due.max(self.now + lease_expiry(longest));
            let running = self.timers.iter().find(|(t, _)| *t == timer);
            due = running.map_or(due, |(_, running)| due.max(*running));
        }
        self.timers.retain(|(t, _)| *t != timer);
        self.timers.push((timer, due));
    }

    fn save(&mut self, record: &forming::Record) {
        let name = |id: &ProcessId| {
            let name = match self.peers.get(id) {
                _ if *id == self.me.0 => self.me.1.to_owned(),
                Some(peer) => peer.name.to_string(),
                None => {
                    let earlier = self.record.members.iter().find(|(member, _)| *member == id.0);
                    earlier.map_or(String::new(), |(_, name)| name.clone())
                }
            };
            (id.0, name)
        };
        let promised = record.promised.iter().filter(|id| !record.members.contains(id));
        let members: Vec<(u32, String)> = record.members.iter().chain(promised).map(name).collect();
        let new = members != self.record.members;
        self.record.members = members;
        let forming::Record { incarnation, generation, .. } = *record;
        let life = (self.record.incarnation, self.record.generation) != (incarnation, generation);
        if life || new && !record.promised.is_empty() {
            (self.record.incarnation, self.record.generation) = (incarnation, generation);
            self.out.push(Output::Save(self.record.clone()));
            *self.unsaved = true;
        } else if new {
            // No disk in the way of view changes.
            self.out.push(Output::Note(self.record.clone()));
        }
    }
}

impl Host<GroupProcess> for GroupHost<'_> {
    fn perform(&mut self, effect: Effect<GroupProcess>) {
        match effect {
            Effect::Send { to, message } => self.send(to, message),
            Effect::SetTimer { timer, after } => self.set_timer(timer, after),
            Effect::CancelTimer { timer } => self.timers.retain(|(t, _)| *t != timer),
            Effect::Indicate(indication) => self.indications.push_back(indication),
            Effect::Save(record) => self.save(&record),
            // A message that makes no sense in this state is dropped: its sender is at fault.
            Effect::Unexpected(_) => {}
        }
    }

    fn send(&mut self, to: ProcessId, message: forming::Message<Batch>) {
        if let forming::Message::Group(Message::Ack { view, held }) = message
            && let Some(earlier) = self.earlier_ack(to, view)
        {
            *earlier = held.max(*earlier);
            return;
        }
        self.out.push(Output::Send { to, frame: message.into() });
    }

    fn choose(&mut self, bound: u32) -> u32 {
        self.rng.below(bound.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(held: u64) -> forming::Message<Batch> {
        forming::Message::Group(Message::Ack { view: ViewId::default(), held })
    }

    /// The frames that remain of these acknowledgements `(receiver, held)`, with a record saved before the
    /// given one.
    fn queued(acks: &[(u32, u64)], saved_before: usize) -> Vec<(u32, u64)> {
        let (mut out, mut timers, mut indications) = (Vec::new(), Vec::new(), VecDeque::new());
        let (mut rng, mut record, mut unsaved) = (Rng::new(0), Record::default(), false);
        let (peers, claims) = (BTreeMap::new(), LocalClaims::default());
        let mut host = GroupHost {
            out: &mut out,
            timers: &mut timers,
            rng: &mut rng,
            indications: &mut indications,
            record: &mut record,
            unsaved: &mut unsaved,
            peers: &peers,
            claims: &claims,
            me: (ProcessId(0), ""),
            now: Duration::ZERO,
        };
        for (i, (to, held)) in acks.iter().enumerate() {
            if i == saved_before {
                let record =
                    forming::Record { incarnation: 1, generation: 1, ..Default::default() };
                host.perform(Effect::Save(record));
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
