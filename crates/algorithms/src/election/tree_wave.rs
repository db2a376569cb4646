//! Wave election on a tree: explorers out, echoes in, the result out again.
//!
//! Explorers wake everyone. A process that has heard an echo on all its edges but one sends the
//! highest number it knows over the last one. The two processes whose echoes meet know the highest
//! number of all and spread it. Processes know their edges only, not the tree.

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, Maybe, NoRecord, NoTimer, Port, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::ticked::Ticked;
use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, Winner,
};

const LEAF_RULE: Mistake = Mistake {
    name: "leaf-rule",
    what: "a leaf echoes only when it receives an explorer, as on the slide: one that starts never does",
    breaks: "deadlock",
    caught_by: "-n 4 --topology path --initiators 0,3",
};

const SHEET: DataSheet = DataSheet {
    name: "tree-wave",
    title: "Wave election on trees",
    idea: "Explorers wake the tree, echoes gather the maximum, where they meet it is announced.",
    source: "F. Mattern, 1987/89; lecture \"Wahlverfahren\", election on trees",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Tree],
    winner: Some(Winner::MaxAll),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "3n + k − 4, k = number of initiators",
            when: "all initiators start before they are woken",
            bound: |f| {
                let all = if f.n() == 1.0 { 0.0 } else { 3.0 * f.n() + f.k() - 4.0 };
                f.setup.down.is_empty().then_some(Bound::Exactly(all))
            },
        },
        Cost {
            metric: Metric::Time,
            formula: "3D",
            when: "delays have a limit",
            bound: |f| {
                let diameter = f.setup.topology.diameter() as f64;
                f.delay_max.map(|t| Bound::AtMost(3.0 * diameter * t))
            },
        },
    ],
    guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
    fence: None,
    mistakes: &[LEAF_RULE],
    switches: &[],
};

/// One process of the algorithm. Trees of millions are built of these: two fill a line of the cache.
#[repr(align(32))]
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct TreeWave {
    awake: bool,
    /// Our edges, ticked where an echo came in, and how many are left.
    #[serde(rename = "echoed")]
    edges: Ticked,
    left: u32,
    /// Where our echo went out.
    sent: Maybe<Port>,
    /// The highest number we know of.
    best: ProcessId,
    decided: bool,
    #[serde(skip)]
    leaf_rule: Fixed<bool>,
}

/// What goes over an edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Wake up.
    Explore,
    /// The highest number on this side.
    Echo(ProcessId),
    /// The highest number of all.
    Info(ProcessId),
}

impl TreeWave {
    /// Whether nothing comes of it any more, over whichever edge it came.
    fn is_late(&self, message: Message) -> bool {
        match message {
            Message::Explore => self.awake && !*self.leaf_rule,
            Message::Echo(_) => false,
            Message::Info(_) => self.decided,
        }
    }

    fn wake(&mut self, by: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.awake = true;
        self.edges.send_all_but(by, Message::Explore, ctx);
        let asleep_leaf = *self.leaf_rule && by.is_none() && self.edges.len() == 1;
        if !asleep_leaf {
            self.echo_if_ready(ctx);
        }
    }

    /// Echoes over the last edge that has not echoed; a leaf does so at once, however it was woken.
    fn echo_if_ready(&mut self, ctx: &mut Context<'_, Self>) {
        if self.decided || self.sent.is_some() {
            return;
        }
        match self.left {
            // An echo was faster than its explorer.
            0 => self.decide(None, ctx),
            1 => {
                let last = self.edges.unticked().expect("one edge is left");
                self.sent = last.into();
                ctx.send(self.edges.peer(last), Message::Echo(self.best));
            }
            _ => {}
        }
    }

    fn decide(&mut self, except: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.decided = true;
        ctx.indicate(Indication::outcome(self.best, ctx.me()));
        self.edges.send_all_but(except, Message::Info(self.best), ctx);
    }
}

impl Process for TreeWave {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if self.decided {
            ctx.indicate(Indication::outcome(self.best, ctx.me()));
        } else if !self.awake {
            self.wake(None, ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        if self.is_late(message) {
            return;
        }
        let Some(port) = self.edges.port(from) else {
            return ctx.unexpected("a message from a stranger");
        };
        match message {
            Message::Explore => {
                if !self.awake {
                    self.wake(Some(port), ctx);
                } else if *self.leaf_rule && self.edges.len() == 1 {
                    self.echo_if_ready(ctx);
                }
            }
            Message::Echo(best) => {
                self.best = self.best.max(best);
                self.left -= u32::from(self.edges.tick(port));
                if !self.awake {
                    self.wake(Some(port), ctx);
                } else if self.sent == Some(port) && !self.decided {
                    self.decide(Some(port), ctx);
                } else {
                    self.echo_if_ready(ctx);
                }
            }
            Message::Info(best) => {
                self.best = best;
                self.decide(Some(port), ctx);
            }
        }
    }

    #[inline]
    fn call_up(&self) {
        self.edges.call_up();
    }

    fn at_rest(&self) -> bool {
        self.awake == self.decided
    }
}

impl Algorithm for TreeWave {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let edges = Ticked::new(me, setup);
        Self {
            awake: false,
            left: edges.len() as u32,
            edges,
            sent: Maybe::NONE,
            best: me,
            decided: false,
            leaf_rule: setup.makes(&LEAF_RULE),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    #[test]
    fn two_fill_a_line() {
        assert_eq!(size_of::<TreeWave>(), 32);
    }

    fn process(me: u32, tree: Topology) -> Bench<TreeWave> {
        let setup = Setup::new(Group::of(tree.len()), tree);
        Bench::new(TreeWave::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    fn echo(best: u32) -> Message {
        Message::Echo(ProcessId(best))
    }

    #[test]
    fn an_explorer_wakes_a_process_once() {
        let mut p0 = process(0, Topology::star(4));
        assert_eq!(
            p0.hear(2, Message::Explore),
            [send(1, Message::Explore), send(3, Message::Explore)]
        );
        assert_eq!(p0.hear(1, Message::Explore), []);
    }

    #[test]
    fn a_leaf_that_starts_echoes_at_once() {
        let mut p3 = process(3, Topology::star(4));
        assert_eq!(p3.ask(Request::Elect), [send(0, Message::Explore), send(0, echo(3))]);
    }

    #[test]
    fn the_maximum_goes_over_the_last_edge() {
        let mut p0 = process(0, Topology::star(4));
        p0.hear(2, Message::Explore);
        assert_eq!(p0.hear(3, echo(3)), []);
        assert_eq!(p0.hear(1, echo(1)), [send(2, echo(3))]);
    }

    #[test]
    fn where_two_echoes_meet_the_election_is_decided() {
        let mut p0 = process(0, Topology::star(4));
        p0.hear(2, Message::Explore);
        p0.hear(3, echo(3));
        p0.hear(1, echo(1));
        let info = Message::Info(ProcessId(3));
        let outcome = Indication::Following { leader: Some(ProcessId(3)), epoch: 0 };
        assert_eq!(p0.hear(2, echo(2)), [tell(outcome), send(1, info), send(3, info)]);
        assert_eq!(p0.hear(2, info), []);
    }

    #[test]
    fn an_echo_that_is_faster_than_its_explorer_wakes_and_decides() {
        let mut p1 = process(1, Topology::path(2));
        let effects = p1.hear(0, echo(0));
        assert_eq!(
            effects,
            [tell(Indication::Leading { epoch: 0 }), send(0, Message::Info(ProcessId(1)))]
        );
        assert_eq!(p1.hear(0, Message::Explore), []);
    }

    #[test]
    fn one_process_alone_leads_without_a_message() {
        let mut p0 = process(0, Topology::path(1));
        assert_eq!(p0.ask(Request::Elect), [tell(Indication::Leading { epoch: 0 })]);
        assert_eq!(p0.ask(Request::Elect), [tell(Indication::Leading { epoch: 0 })]);
    }
}
