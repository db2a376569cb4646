//! Injected faults of messages in real worlds.

use std::collections::BTreeMap;
use std::time::Duration;

use konklave_net::{Departure, Fate};
use konklave_process::{Group, ProcessId, Rng};
use konklave_sim::{Fault, Mishap, Purpose, Selector, What, When};

use crate::Plan;

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
    /// The faults of single messages, each with the number of messages that matched so far.
    single: Vec<(Selector, Mishap, u64)>,
    /// Cuts and partitions, each with its time.
    lasting: Vec<(What, Duration, Option<Duration>)>,
}

impl MessageFaults {
    pub(super) fn new(plan: &Plan, unit: Duration) -> Self {
        let (mut single, mut lasting) = (Vec::new(), Vec::new());
        for Fault { what, when, until } in &plan.config.faults {
            match (what, when) {
                (What::Message(selector, mishap), _) => single.push((selector.clone(), *mishap, 0)),
                (What::Cut(..) | What::Partition(_), When::Time(from)) => {
                    let until = until.map(|t| unit.mul_f64(t));
                    lasting.push((what.clone(), unit.mul_f64(*from), until));
                }
                _ => {}
            }
        }
        let (seed, group) = (plan.config.seed, plan.setup.group.clone());
        let (loss, duplicate) = (plan.config.loss, plan.config.duplicate);
        Self { seed, loss, duplicate, group, streams: BTreeMap::new(), single, lasting }
    }

    /// The fate of a message that is sent now.
    pub(super) fn fate(&mut self, message: &Departure<'_>) -> Fate {
        let (mut lost, mut doubled) = self.draw(message.from, message.to);
        lost |= self.is_separated(message);
        for (selector, mishap, seen) in &mut self.single {
            if !selector.fits(message.from, message.to, message.kind) {
                continue;
            }
            *seen += 1;
            if *seen == selector.nth {
                lost |= *mishap == Mishap::Lose;
                doubled |= *mishap == Mishap::Duplicate;
            }
        }
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
