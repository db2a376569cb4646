//! Adoption on arbitrary graphs: a stronger wave takes over what a weaker one has explored.
//!
//! Waves bear the number of their initiator, and each process keeps for each edge the strongest
//! explorer it sent there: the edge's mark. A process that a stronger wave reaches is adopted
//! together with all that was explored behind it; only the way to its former parent is explored
//! anew, and the tree turns round along that way. This is the algorithm of the slides with the
//! third of its four cases corrected: who lags behind is told the strongest wave, not its own.

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

const CASE3_LITERAL: Mistake = Mistake {
    name: "case3-literal",
    what: "a lagging explorer is sent back as it is, as on the slide: its wave takes the edge for done",
    breaks: "right winner",
    caught_by: "-n 3 --topology path --ids 2,1,3 --property winner",
};
const CASE3_CLOSE_EDGE: Mistake = Mistake {
    name: "case3-close-edge",
    what: "a lagging explorer is sent back as it is, and both ends take the edge for done",
    breaks: "one leader at a time",
    caught_by: "-n 3 --topology path --ids 2,1,3 --property unique",
};
const NO_FLOOD: Mistake = Mistake {
    name: "no-flood",
    what: "a new process forwards an explorer to its former parent only, which it has not: the slide's \
           four cases say nothing of the first contact",
    breaks: "deadlock",
    caught_by: "-n 3 --topology path --initiators 0",
};

const SHEET: DataSheet = DataSheet {
    name: "adoption",
    title: "Adoption",
    idea: "A stronger wave adopts what a weaker one has explored; only the way to the former parent \
           is explored anew.",
    source: "lecture \"Wahlalgorithmen\" (adoption on arbitrary topologies), case 3 corrected",
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
            formula: "2m + 3n(k − 1) + 2m − n + 1, k = number of initiators",
            when: "always",
            bound: |f| {
                let adoptions = f.n() * (f.k() - 1.0).max(0.0);
                Some(Bound::AtMost(2.0 * links(f) + 3.0 * adoptions + flood(f)))
            },
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
    mistakes: &[CASE3_LITERAL, CASE3_CLOSE_EDGE, NO_FLOOD],
    switches: &[],
};

/// One process of the algorithm. Graphs of many are built of these: it takes one line of the cache.
#[repr(align(64))]
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Adoption {
    /// The strongest wave that came by, if any: ours.
    wave: Maybe<ProcessId>,
    /// Where it came from; none if it is of our own.
    parent: Maybe<Port>,
    /// Our edges, each with the strongest explorer we sent over it.
    #[serde(rename = "marks")]
    edges: Edges<Maybe<ProcessId>, 2>,
    /// The edges that are not done; never the one to our parent.
    open: PortSet,
    leader: Maybe<ProcessId>,
    #[serde(skip)]
    case3_literal: Fixed<bool>,
    #[serde(skip)]
    case3_close_edge: Fixed<bool>,
    #[serde(skip)]
    no_flood: Fixed<bool>,
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

impl Adoption {
    /// The first wave that reaches us, or our own, goes out over all other edges.
    fn begin(&mut self, wave: ProcessId, parent: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.wave = wave.into();
        self.parent = parent.into();
        self.open = self.edges.all_but(parent);
        let silent = *self.no_flood && parent.is_some();
        for port in self.open.clone().iter().filter(|_| !silent) {
            self.explore(wave, port, ctx);
        }
        self.echo_if_done(ctx);
    }

    fn explore(&mut self, wave: ProcessId, port: Port, ctx: &mut Context<'_, Self>) {
        self.edges[port] = wave.into();
        ctx.send(self.edges.peer(port), Message::Explore(wave));
    }

    fn on_explore(
        &mut self,
        theirs: ProcessId,
        ours: ProcessId,
        port: Port,
        ctx: &mut Context<'_, Self>,
    ) {
        let mark = self.edges[port];
        if mark == Some(theirs) {
            // Two explorers of one wave have met: this is no edge of the tree.
            self.close(port, ctx);
        } else if mark > Some(theirs) {
            // Our stronger explorer is on its way to them.
        } else if theirs == ours {
            self.explore(ours, port, ctx);
            self.close(port, ctx);
        } else if theirs < ours {
            self.correct(theirs, ours, port, ctx);
        } else {
            self.adopt(theirs, port, ctx);
        }
    }

    /// They lag behind, and do not know of our wave yet: it goes to them.
    fn correct(
        &mut self,
        theirs: ProcessId,
        ours: ProcessId,
        port: Port,
        ctx: &mut Context<'_, Self>,
    ) {
        if *self.case3_literal {
            return self.explore(theirs, port, ctx);
        }
        if *self.case3_close_edge {
            self.explore(theirs, port, ctx);
            return self.close(port, ctx);
        }
        // Each explorer a process sends over an edge is stronger than all before it, and a second
        // one only ever answers one of ours, which is stronger than the first.
        if self.parent == Some(port) {
            return ctx.unexpected("an old explorer of our parent");
        }
        self.explore(ours, port, ctx);
        self.open.insert(port);
    }

    /// Their wave is stronger: we join it with all that was explored behind us, but for the way to
    /// our former parent.
    fn adopt(&mut self, wave: ProcessId, port: Port, ctx: &mut Context<'_, Self>) {
        let former = std::mem::replace(&mut self.parent, port.into());
        self.wave = wave.into();
        self.open.remove(port);
        if let Some(former) = former.get()
            && former != port
        {
            self.explore(wave, former, ctx);
            self.open.insert(former);
        }
        self.echo_if_done(ctx);
    }

    /// An edge is done.
    fn close(&mut self, port: Port, ctx: &mut Context<'_, Self>) {
        if self.open.remove(port) {
            self.echo_if_done(ctx);
        }
    }

    fn echo_if_done(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(wave) = self.wave.get()
            && self.open.is_empty()
        {
            match self.parent.get() {
                Some(parent) => ctx.send(self.edges.peer(parent), Message::Echo(wave)),
                None => self.decide(ctx.me(), None, ctx),
            }
        }
    }

    fn decide(&mut self, leader: ProcessId, by: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.leader = leader.into();
        ctx.indicate(Indication::outcome(leader, ctx.me()));
        self.edges.send_all_but(by, Message::Info(leader), ctx);
    }
}

impl Process for Adoption {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match (self.leader.get(), self.wave.get()) {
            (Some(leader), _) => ctx.indicate(Indication::outcome(leader, ctx.me())),
            // Who was captured is no candidate any more.
            (None, Some(_)) => {}
            (None, None) => {
                ctx.indicate(Indication::Candidate);
                self.begin(ctx.me(), None, ctx);
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
            Message::Explore(theirs) => match self.wave.get() {
                None => self.begin(theirs, Some(port), ctx),
                Some(ours) => self.on_explore(theirs, ours, port, ctx),
            },
            // The echo of a wave that did not reach them as the last over this edge is void.
            Message::Echo(wave) => {
                if self.edges[port] == Some(wave) {
                    self.close(port, ctx);
                }
            }
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
        self.open.is_empty() && self.wave.is_some() == self.leader.is_some()
    }

    fn parent(&self) -> Option<ProcessId> {
        self.parent.get().map(|port| self.edges.peer(port))
    }
}

impl Algorithm for Adoption {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            wave: Maybe::NONE,
            parent: Maybe::NONE,
            edges: Edges::new(me, setup),
            open: PortSet::new(),
            leader: Maybe::NONE,
            case3_literal: setup.makes(&CASE3_LITERAL),
            case3_close_edge: setup.makes(&CASE3_CLOSE_EDGE),
            no_flood: setup.makes(&NO_FLOOD),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    /// Process `me` in the middle of a star of four.
    fn centre(me: u32, others: [u32; 3]) -> Bench<Adoption> {
        let ids = [me, others[0], others[1], others[2]].map(ProcessId);
        let setup = Setup::new(Group::new(ids.to_vec()).unwrap(), Topology::star(4));
        Bench::new(Adoption::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    fn explore(wave: u32) -> Message {
        Message::Explore(ProcessId(wave))
    }

    fn echo(wave: u32) -> Message {
        Message::Echo(ProcessId(wave))
    }

    #[test]
    fn the_first_wave_goes_out_over_all_other_edges() {
        let mut p1 = centre(1, [2, 3, 4]);
        assert_eq!(p1.hear(3, explore(3)), [send(2, explore(3)), send(4, explore(3))]);
    }

    #[test]
    fn case_1_an_explorer_that_meets_ours_closes_the_edge() {
        let mut p1 = centre(1, [2, 3, 4]);
        p1.hear(3, explore(3));
        assert_eq!(p1.hear(2, explore(3)), []);
        assert_eq!(p1.hear(4, explore(3)), [send(3, echo(3))]);
    }

    #[test]
    fn case_2_a_weaker_explorer_than_ours_is_ignored() {
        let mut p1 = centre(1, [2, 3, 4]);
        p1.hear(3, explore(3));
        assert_eq!(p1.hear(2, explore(2)), []);
        assert_eq!(p1.process.open.len(), 2);
    }

    #[test]
    fn case_3_who_lags_behind_is_told_the_strongest_wave() {
        let mut p1 = centre(1, [2, 3, 4]);
        p1.ask(Request::Elect);
        // Adopted without a former parent, it tells nobody: the edge to p2 still bears its mark.
        assert_eq!(p1.hear(3, explore(3)), []);
        assert_eq!(p1.hear(2, explore(2)), [send(2, explore(3))]);
        assert_eq!(p1.hear(2, echo(2)), []);
        p1.hear(4, echo(1));
        assert_eq!(p1.hear(2, echo(3)), [send(3, echo(3))]);
    }

    #[test]
    fn case_4_adoption_explores_only_the_way_to_the_former_parent() {
        let mut p1 = centre(1, [2, 3, 4]);
        p1.hear(2, explore(2));
        p1.hear(3, echo(2));
        assert_eq!(p1.hear(4, explore(4)), [send(2, explore(4))]);
        // What was explored behind us is taken over as it is.
        assert_eq!(p1.hear(2, echo(4)), [send(4, echo(4))]);
    }

    #[test]
    fn a2_who_has_echoed_echoes_again_when_it_is_adopted() {
        let mut p1 = centre(1, [2, 3, 4]);
        p1.hear(2, explore(2));
        p1.hear(3, echo(2));
        assert_eq!(p1.hear(4, echo(2)), [send(2, echo(2))]);
        assert_eq!(p1.hear(4, explore(4)), [send(2, explore(4))]);
        assert_eq!(p1.hear(2, echo(4)), [send(4, echo(4))]);
        // A stronger wave over the edge to the parent needs no new explorer at all.
        assert_eq!(p1.hear(4, explore(9)), [send(4, echo(9))]);
    }

    #[test]
    fn a4_who_was_captured_is_no_candidate_any_more() {
        let mut p1 = centre(1, [2, 3, 4]);
        p1.hear(2, explore(2));
        assert_eq!(p1.ask(Request::Elect), []);
        assert_eq!(
            p1.hear(2, Message::Info(ProcessId(2)))[0],
            tell(Indication::Following { leader: Some(ProcessId(2)), epoch: 0 })
        );
    }
}
