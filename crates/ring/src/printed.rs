//! The one-slot buffer as the report prints it (listings 1 to 3), and ours, as models. The search goes through every
//! order in which the threads can take their locks, and shows each fault by a shortest order.
//!
//! Four threads meet at the buffer of one worker. The *controller* puts a message (`assign`). The
//! *neighbour* hands a message over (`assign_and_wait`), with a timeout. The *receiver* takes two messages, or
//! has failed before. A *later* writer puts a message when the neighbour has gone on, as a Stop would be. All that a
//! thread does while it holds its locks is one step.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

/// The code of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Code {
    /// The report's listings.
    Printed,
    /// Ours: tickets, one deadline for slot and hand-over, and withdrawal of a message that timed out.
    Ticket,
}

/// The results over all schedules.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// The code that was explored.
    pub code: Code,
    /// The number of states.
    pub states: usize,
    /// A shortest schedule to each fault that is possible.
    pub faults: BTreeMap<Fault, Vec<&'static str>>,
}

/// The ways in which a schedule can fail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The neighbour learns "taken" while its message is still in the slot.
    FalseTaken,
    /// The neighbour learns "timed out", but its message is taken later. It has sent the message
    /// to the next worker, too.
    TakenTwice,
    /// A writer waits for the slot of a failed receiver for ever.
    WaitsForEver,
}

impl Fault {
    /// The fault in words.
    pub fn what(self) -> &'static str {
        match self {
            Self::FalseTaken => "told \"taken\" while the message is in the slot",
            Self::TakenTwice => "told \"timed out\", and the message is taken all the same",
            Self::WaitsForEver => "a writer waits for the slot for ever",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Message {
    Controllers,
    Neighbours,
    Later,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Neighbour {
    /// About to clear the flag (printed), or to wait for the slot (ours).
    Begins,
    WaitsForSlot,
    WaitsForHandOver,
    ToldTaken,
    ToldTimedOut,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct State {
    code_is_printed: bool,
    slot: Option<Message>,
    /// The flag `message_is_taken`.
    flag: bool,
    /// Whether the controller is done: its message was put, or it timed out (ours).
    controller_has_put: bool,
    later_has_put: bool,
    neighbour: Neighbour,
    receiver_failed: bool,
    /// The receiver took a message and holds the lock of the buffer, but has not set the flag yet.
    taking: bool,
    taken: Vec<Message>,
}

type Step = (&'static str, State);

impl State {
    fn new(code: Code, receiver_failed: bool) -> Self {
        Self {
            code_is_printed: code == Code::Printed,
            slot: None,
            flag: false,
            controller_has_put: false,
            later_has_put: false,
            neighbour: Neighbour::Begins,
            receiver_failed,
            taking: false,
            taken: Vec::new(),
        }
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut next = self.clone();
        change(&mut next);
        next
    }

    /// The neighbour has its answer.
    fn is_told(&self) -> bool {
        matches!(self.neighbour, Neighbour::ToldTaken | Neighbour::ToldTimedOut)
    }

    /// All steps that are possible now.
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let room = self.slot.is_none() && !self.taking;
        if room && !self.controller_has_put {
            steps.push((
                "controller: puts its message into the slot",
                self.with(|s| {
                    s.slot = Some(Message::Controllers);
                    s.controller_has_put = true;
                }),
            ));
        }
        if room && self.is_told() && !self.later_has_put {
            steps.push((
                "later: puts its message into the slot",
                self.with(|s| {
                    s.slot = Some(Message::Later);
                    s.later_has_put = true;
                }),
            ));
        }
        steps.extend(self.neighbours(room));
        steps.extend(self.receivers());
        if !self.code_is_printed && !room {
            self.give_up(&mut steps);
        }
        steps
    }

    /// Our code only: a writer that waits for the slot has a deadline, too.
    fn give_up(&self, steps: &mut Vec<Step>) {
        if self.is_told() && !self.later_has_put {
            steps.push(("later: time runs out", self.with(|s| s.later_has_put = true)));
        }
        if !self.controller_has_put {
            steps.push(("controller: time runs out", self.with(|s| s.controller_has_put = true)));
        }
        if matches!(self.neighbour, Neighbour::Begins | Neighbour::WaitsForSlot) {
            steps.push((
                "neighbour: time runs out before there is room",
                self.with(|s| s.neighbour = Neighbour::ToldTimedOut),
            ));
        }
    }

    fn neighbours(&self, room: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        match self.neighbour {
            Neighbour::Begins => steps.push((
                "neighbour: clears the flag, and wants the slot",
                self.with(|s| (s.flag, s.neighbour) = (false, Neighbour::WaitsForSlot)),
            )),
            Neighbour::WaitsForSlot if room => steps.push((
                "neighbour: puts its message into the slot",
                self.with(|s| {
                    (s.slot, s.neighbour) =
                        (Some(Message::Neighbours), Neighbour::WaitsForHandOver);
                }),
            )),
            Neighbour::WaitsForHandOver => {
                let mine = self.slot == Some(Message::Neighbours);
                // The printed code asks the flag; ours looks whether its ticket is still in the slot.
                let taken = if self.code_is_printed { self.flag } else { !mine };
                if taken {
                    steps.push((
                        "neighbour: is told that its message was taken",
                        self.with(|s| s.neighbour = Neighbour::ToldTaken),
                    ));
                } else {
                    steps.push((
                        "neighbour: is told that time ran out",
                        self.with(|s| {
                            s.neighbour = Neighbour::ToldTimedOut;
                            if !s.code_is_printed {
                                s.slot = None;
                            }
                        }),
                    ));
                }
            }
            Neighbour::WaitsForSlot | Neighbour::ToldTaken | Neighbour::ToldTimedOut => {}
        }
        steps
    }

    fn receivers(&self) -> Vec<Step> {
        if self.receiver_failed || self.taken.len() == 3 {
            return Vec::new();
        }
        if self.taking {
            return vec![(
                "receiver: sets the flag, and lets go of the buffer",
                self.with(|s| (s.flag, s.taking) = (true, false)),
            )];
        }
        let Some(message) = self.slot else { return Vec::new() };
        let what = match message {
            Message::Controllers => "receiver: takes the controller's message",
            Message::Neighbours => "receiver: takes the neighbour's message",
            Message::Later => "receiver: takes the later message",
        };
        // Our code has one lock, so taking and setting the flag is one step.
        let taking = self.code_is_printed;
        vec![(
            what,
            self.with(|s| {
                s.taken.push(message);
                (s.slot, s.taking) = (None, taking);
            }),
        )]
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let in_slot = self.slot == Some(Message::Neighbours);
        if self.neighbour == Neighbour::ToldTaken && in_slot {
            faults.push(Fault::FalseTaken);
        }
        if self.neighbour == Neighbour::ToldTimedOut && self.taken.contains(&Message::Neighbours) {
            faults.push(Fault::TakenTwice);
        }
        let waits = !self.controller_has_put
            || self.neighbour == Neighbour::WaitsForSlot
            || self.is_told() && !self.later_has_put;
        if waits && self.steps().is_empty() {
            faults.push(Fault::WaitsForEver);
        }
        faults
    }
}

/// Explores every order of steps, breadth first: the first schedule to a fault is a shortest one.
pub fn explore(code: Code) -> Findings {
    let starts = [State::new(code, false), State::new(code, true)];
    // Each state, with its predecessor and the step between them.
    let mut known: BTreeMap<State, Option<(State, &'static str)>> =
        starts.iter().map(|start| (start.clone(), None)).collect();
    let mut waiting = VecDeque::from(starts);
    let mut faults = BTreeMap::new();
    while let Some(state) = waiting.pop_front() {
        for fault in state.faults() {
            faults.entry(fault).or_insert_with(|| way_to(&known, &state));
        }
        for (step, next) in state.steps() {
            if !known.contains_key(&next) {
                known.insert(next.clone(), Some((state.clone(), step)));
                waiting.push_back(next);
            }
        }
    }
    Findings { code, states: known.len(), faults }
}

fn way_to(
    known: &BTreeMap<State, Option<(State, &'static str)>>,
    state: &State,
) -> Vec<&'static str> {
    let mut way = Vec::new();
    let mut at = state;
    while let Some(Some((before, step))) = known.get(at) {
        way.push(*step);
        at = before;
    }
    if state.receiver_failed {
        way.push("receiver: has failed");
    }
    way.reverse();
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_buffer_has_all_three_faults() {
        let found = explore(Code::Printed);
        assert_eq!(
            found.faults[&Fault::FalseTaken],
            [
                "controller: puts its message into the slot",
                "neighbour: clears the flag, and wants the slot",
                "receiver: takes the controller's message",
                "receiver: sets the flag, and lets go of the buffer",
                "neighbour: puts its message into the slot",
                "neighbour: is told that its message was taken",
            ]
        );
        assert_eq!(found.faults[&Fault::TakenTwice].len(), 4);
        assert_eq!(found.faults.len(), 3);
    }

    #[test]
    fn ours_has_none() {
        let found = explore(Code::Ticket);
        assert!(found.faults.is_empty(), "{:#?}", found.faults);
        assert!(found.states > 20);
    }
}
