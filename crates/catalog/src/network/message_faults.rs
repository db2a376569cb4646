//! Injected faults of messages in real worlds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use konklave_net::{Departure, Fate};
use konklave_process::{Group, ProcessId, Rng};
use konklave_sim::{Fault, Purpose, What, When};

use crate::Plan;
use crate::fault_effects::FaultEffects;

/// The fates of messages by the plan: `--loss`, `--duplicate`, and the faults of messages, cuts and partitions.
///
/// Each channel draws from a stream of its own. So the k-th message of a channel meets the same fate with the same
/// seed, however the tasks take their turns.
pub(super) struct MessageFaults {
    seed: u64,
    loss: f64,
    duplicate: f64,
    group: Group,
    /// The draws of losses and of duplicates.
    streams: BTreeMap<(ProcessId, ProcessId), [Rng; 2]>,
    /// The faults of single messages.
    single: Arc<Mutex<FaultEffects>>,
    /// Cuts and partitions, each with its time.
    lasting: Vec<(What, Duration, Option<Duration>)>,
}

impl MessageFaults {
    /// Counts in `single` which messages are sent.
    pub(super) fn new(plan: &Plan, unit: Duration, single: Arc<Mutex<FaultEffects>>) -> Self {
        let lasting = |Fault { what, when, until }: &Fault| match (what, when) {
            (What::Cut(..) | What::Partition(_), When::Time(from)) => {
                let until = until.map(|t| unit.mul_f64(t));
                Some((what.clone(), unit.mul_f64(*from), until))
            }
            _ => None,
        };
        let lasting = plan.config.faults.iter().filter_map(lasting).collect();
        let (seed, group) = (plan.config.seed, plan.setup.group.clone());
        let (loss, duplicate) = (plan.config.loss, plan.config.duplicate);
        Self { seed, loss, duplicate, group, streams: BTreeMap::new(), single, lasting }
    }

    /// The fate of a message that is sent now.
    pub(super) fn fate(&mut self, message: &Departure<'_>) -> Fate {
        let (mut lost, mut doubled) = self.draw(message.from, message.to);
        lost |= self.is_separated(message);
        let mut single = self.single.lock().unwrap_or_else(PoisonError::into_inner);
        let (loses, doubles) = single.on_send(message.from, message.to, message.kind);
        lost |= loses;
        doubled |= doubles;
        match (lost, doubled) {
            (true, _) => Fate::Lost,
            (false, true) => Fate::ArrivesTwice,
            (false, false) => Fate::Arrives,
        }
    }

    /// Whether the next message of this channel is lost at random, and whether it is duplicated.
    fn draw(&mut self, from: ProcessId, to: ProcessId) -> (bool, bool) {
        if self.loss == 0.0 && self.duplicate == 0.0 {
            return (false, false);
        }
        let place = |p| self.group.place(p).unwrap_or(0) as u64;
        let channel = place(from) << 32 | place(to);
        let seed = self.seed;
        let stream = |purpose| Rng::new(seed).fork(purpose as u64).fork(channel);
        let [losses, duplicates] = self
            .streams
            .entry((from, to))
            .or_insert_with(|| [Purpose::Loss, Purpose::Duplicate].map(stream));
        (losses.chance(self.loss), duplicates.chance(self.duplicate))
    }

    /// Whether a cut or a partition is in effect between sender and receiver.
    fn is_separated(&self, message: &Departure<'_>) -> bool {
        let mut present = self.lasting.iter().filter(|(_, from, until)| {
            *from <= message.now && until.is_none_or(|until| message.now < until)
        });
        present.any(|(what, ..)| match what {
            What::Cut(from, to) => (*from, *to) == (message.from, message.to),
            What::Partition(sides) => {
                let side = |p| sides.iter().position(|side| side.contains(&p));
                side(message.from) != side(message.to)
            }
            _ => false,
        })
    }
}
