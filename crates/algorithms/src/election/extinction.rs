//! Echo with extinction: every initiator starts a wave, and only the strongest comes home.
//!
//! A wave bears the number of its initiator. A process joins a wave that is stronger than its own
//! as if it had never been in another: it forgets all answers, takes the sender for its parent and
//! explores on; weaker waves die where they meet it. When all neighbours have answered, it echoes
//! to its parent. The initiator whose neighbours have all answered has won, and tells everyone.

use konklave_process::topology::Shape;
use konklave_process::{
    Context, Fixed, Maybe, NoRecord, NoTimer, Port, PortSet, Process, ProcessId,
};
use serde::{Deserialize, Serialize};

use super::edges::{Edges, echo_time, flood, links};
use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, Winner,
};

const LATE_START: Mistake = Mistake {
    name: "late-start",
    what: "a process that a wave has captured still starts one of its own",
    breaks: "one leader at a time",
    caught_by: "-n 2 --property unique",
};
const NO_CROSSING: Mistake = Mistake {
    name: "no-crossing",
    what: "explorers of one wave that cross on an edge do not count as answers: both ends wait",
    breaks: "deadlock",
    caught_by: "-n 3 --topology complete --initiators 0",
};

const SHEET: DataSheet = DataSheet {
    name: "extinction",
    title: "Echo with extinction",
    idea: "Every initiator starts an echo wave; weaker waves die where stronger ones pass.",
    source: "F. Mattern, Verteilte Basisalgorithmen, 1989; G. Tel, Introduction to Distributed \
             Algorithms, 2000 (there the smallest id wins)",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Connected],
    winner: Some(Winner::MaxInitiator),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2m + 2m − n + 1",
            when: "one initiator",
            bound: |f| (f.k() == 1.0).then(|| Bound::Exactly(2.0 * links(f) + flood(f))),
        },
        Cost {
            metric: Metric::Messages,
            formula: "2mk + 2m − n + 1, k = number of initiators",
            when: "always",
            bound: |f| Some(Bound::AtMost(2.0 * links(f) * f.k() + flood(f))),
        },
        Cost {
            metric: Metric::Time,
            formula: "2D + n",
            when: "one initiator, delays have a limit",
            bound: |f| echo_time(f).filter(|_| f.k() == 1.0),
        },
    ],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::Termination,
        Guarantee::SpanningTree,
        Guarantee::AcyclicParents,
    ],
    fence: None,
    mistakes: &[LATE_START, NO_CROSSING],
    switches: &[],
};

/// One process of the algorithm. Graphs of many are built of these: it takes one line of the cache.
#[repr(align(64))]
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Extinction {
    /// The strongest wave that came by, if any: ours.
    wave: Maybe<ProcessId>,
    /// Where it came from; none if it is of our own.
    parent: Maybe<Port>,
    /// Who has not answered in this wave.
    awaited: PortSet,
    leader: Maybe<ProcessId>,
    #[serde(skip)]
    edges: Edges,
    #[serde(skip)]
    late_start: Fixed<bool>,
    #[serde(skip)]
    no_crossing: Fixed<bool>,
}

/// What goes over an edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Join the wave of this initiator.
    Explore(ProcessId),
    /// All on this side are in the wave of this initiator.
    Echo(ProcessId),
    /// This one leads.
    Info(ProcessId),
}

impl Extinction {
    fn join(&mut self, wave: ProcessId, parent: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.wave = wave.into();
        self.parent = parent.into();
        self.awaited = self.edges.all_but(parent);
        self.edges.send_all_but(parent, Message::Explore(wave), ctx);
        if self.awaited.is_empty() {
            self.echo(wave, ctx);
        }
    }

    fn on_answer(&mut self, wave: ProcessId, port: Port, ctx: &mut Context<'_, Self>) {
        if self.awaited.remove(port) && self.awaited.is_empty() {
            self.echo(wave, ctx);
        }
    }

    /// All have answered: tells the parent, or, at the initiator, everyone.
    fn echo(&mut self, wave: ProcessId, ctx: &mut Context<'_, Self>) {
        match self.parent.get() {
            Some(parent) => ctx.send(self.edges.peer(parent), Message::Echo(wave)),
            None => self.decide(ctx.me(), None, ctx),
        }
    }

    fn decide(&mut self, leader: ProcessId, by: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.leader = leader.into();
        ctx.indicate(Indication::outcome(leader, ctx.me()));
        self.edges.send_all_but(by, Message::Info(leader), ctx);
    }
}

impl Process for Extinction {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match (self.leader.get(), self.wave.get()) {
            (Some(leader), _) => ctx.indicate(Indication::outcome(leader, ctx.me())),
            // Who was captured is no candidate any more.
            (None, Some(_)) if !*self.late_start => {}
            (None, _) => {
                ctx.indicate(Indication::Candidate);
                self.join(ctx.me(), None, ctx);
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        if let (Message::Info(_), Some(_)) = (message, self.leader.get()) {
            // Most of a flood comes to those who know: over which edge does not matter.
            return;
        }
        let Some(port) = self.edges.port(from) else {
            return ctx.unexpected("a message from a stranger");
        };
        match message {
            Message::Explore(wave) if self.wave < Some(wave) => self.join(wave, Some(port), ctx),
            Message::Explore(_) if *self.no_crossing => {}
            // An explorer of our own wave that comes to meet us is an answer, too.
            Message::Explore(wave) | Message::Echo(wave) if self.wave == Some(wave) => {
                self.on_answer(wave, port, ctx);
            }
            // What belongs to a weaker wave dies here.
            Message::Explore(_) | Message::Echo(_) => {}
            Message::Info(leader) => self.decide(leader, Some(port), ctx),
        }
    }

    #[inline]
    fn call_up(&self) {
        // Who knows the outcome looks at its edges no more.
        if self.leader.is_none() {
            self.edges.call_up();
        }
    }

    fn at_rest(&self) -> bool {
        self.awaited.is_empty() && self.wave.is_some() == self.leader.is_some()
    }

    fn parent(&self) -> Option<ProcessId> {
        self.parent.get().map(|port| self.edges.peer(port))
    }
}

impl Algorithm for Extinction {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            wave: Maybe::NONE,
            parent: Maybe::NONE,
            awaited: PortSet::new(),
            leader: Maybe::NONE,
            edges: Edges::new(me, setup),
            late_start: setup.makes(&LATE_START),
            no_crossing: setup.makes(&NO_CROSSING),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    /// Process `me` in the middle of a star of four.
    fn centre(me: u32, others: [u32; 3]) -> Bench<Extinction> {
        let ids = [me, others[0], others[1], others[2]].map(ProcessId);
        let setup = Setup::new(Group::new(ids.to_vec()).unwrap(), Topology::star(4));
        Bench::new(Extinction::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    #[test]
    fn who_is_asked_starts_a_wave() {
        let mut p5 = centre(5, [1, 2, 9]);
        let explore = Message::Explore(ProcessId(5));
        assert_eq!(
            p5.ask(Request::Elect),
            [tell(Indication::Candidate), send(1, explore), send(2, explore), send(9, explore)]
        );
    }

    #[test]
    fn a_stronger_wave_makes_us_forget_all_answers() {
        let mut p5 = centre(5, [1, 2, 9]);
        p5.ask(Request::Elect);
        p5.hear(1, Message::Echo(ProcessId(5)));
        let explore = Message::Explore(ProcessId(9));
        assert_eq!(p5.hear(9, explore), [send(1, explore), send(2, explore)]);
        // What p2 answers to the weaker wave is void.
        assert_eq!(p5.hear(2, Message::Echo(ProcessId(5))), []);
        assert_eq!(p5.hear(2, Message::Echo(ProcessId(9))), []);
        assert_eq!(p5.hear(1, Message::Echo(ProcessId(9))), [send(9, Message::Echo(ProcessId(9)))]);
    }

    #[test]
    fn a_weaker_wave_dies() {
        let mut p5 = centre(5, [1, 2, 9]);
        p5.ask(Request::Elect);
        assert_eq!(p5.hear(2, Message::Explore(ProcessId(2))), []);
        assert_eq!(p5.process.parent, None);
    }

    #[test]
    fn an_explorer_of_our_own_wave_is_an_answer() {
        let mut p5 = centre(5, [1, 2, 9]);
        p5.hear(9, Message::Explore(ProcessId(9)));
        assert_eq!(p5.hear(1, Message::Explore(ProcessId(9))), []);
        let echo = Message::Echo(ProcessId(9));
        assert_eq!(p5.hear(2, Message::Explore(ProcessId(9))), [send(9, echo)]);
    }

    #[test]
    fn the_initiator_whose_neighbours_have_all_answered_leads_and_says_so() {
        let mut p5 = centre(5, [1, 2, 3]);
        p5.ask(Request::Elect);
        p5.hear(1, Message::Echo(ProcessId(5)));
        p5.hear(2, Message::Echo(ProcessId(5)));
        let info = Message::Info(ProcessId(5));
        assert_eq!(
            p5.hear(3, Message::Echo(ProcessId(5))),
            [tell(Indication::Leading { epoch: 0 }), send(1, info), send(2, info), send(3, info)]
        );
        // Asked again, it stands by the outcome.
        assert_eq!(p5.ask(Request::Elect), [tell(Indication::Leading { epoch: 0 })]);
    }

    #[test]
    fn who_was_captured_is_no_candidate_any_more() {
        let mut p5 = centre(5, [1, 2, 9]);
        p5.hear(2, Message::Explore(ProcessId(2)));
        assert_eq!(p5.ask(Request::Elect), []);
    }
}
