//! Wave election on a tree: explorers out, echoes in, the result out again.
//!
//! Explorers wake everyone. A process that has heard an echo on all its edges but one sends the
//! highest number it knows over the last one. The two processes whose echoes meet know the highest
//! number of all and spread it. Processes know their edges only, not the tree.

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Port, PortSet, Process, ProcessId};
use serde::{Deserialize, Serialize};

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
                Some(Bound::Exactly(if f.n() == 1.0 { 0.0 } else { 3.0 * f.n() + f.k() - 4.0 }))
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

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct TreeWave {
    awake: bool,
    /// Where an echo came in.
    echoed: PortSet,
    /// Where our echo went out.
    sent: Option<Port>,
    /// The highest number we know of.
    best: ProcessId,
    decided: bool,
    /// Our edges: port i leads to the i-th.
    #[serde(skip)]
    edges: Fixed<Box<[ProcessId]>>,
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
    fn port(&self, from: ProcessId) -> Option<Port> {
        self.edges.binary_search(&from).ok().map(|i| Port(i as u32))
    }

    fn send_all_but(&self, except: Option<Port>, message: Message, ctx: &mut Context<'_, Self>) {
        for (i, &to) in self.edges.iter().enumerate() {
            if except != Some(Port(i as u32)) {
                ctx.send(to, message);
            }
        }
    }

    fn wake(&mut self, by: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.awake = true;
        self.send_all_but(by, Message::Explore, ctx);
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
        let silent = |port: &u32| !self.echoed.contains(Port(*port));
        let mut missing = (0..self.edges.len() as u32).filter(silent);
        match (missing.next(), missing.next()) {
            // All have echoed: an echo was faster than its explorer.
            (None, _) => self.decide(None, ctx),
            (Some(last), None) => {
                self.sent = Some(Port(last));
                ctx.send(self.edges[last as usize], Message::Echo(self.best));
            }
            (Some(_), Some(_)) => {}
        }
    }

    fn decide(&mut self, except: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.decided = true;
        ctx.indicate(if self.best == ctx.me() {
            Indication::Leading { epoch: 0 }
        } else {
            Indication::Following { leader: Some(self.best), epoch: 0 }
        });
        self.send_all_but(except, Message::Info(self.best), ctx);
    }
}

impl Process for TreeWave {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if !self.awake {
            self.wake(None, ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let Some(port) = self.port(from) else {
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
                self.echoed.insert(port);
                if !self.awake {
                    self.wake(Some(port), ctx);
                } else if self.sent == Some(port) && !self.decided {
                    self.decide(Some(port), ctx);
                } else {
                    self.echo_if_ready(ctx);
                }
            }
            Message::Info(best) => {
                if !self.decided {
                    self.best = best;
                    self.decide(Some(port), ctx);
                }
            }
        }
    }

    fn at_rest(&self) -> bool {
        self.awake == self.decided
    }
}

impl Algorithm for TreeWave {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            awake: false,
            echoed: PortSet::new(),
            sent: None,
            best: me,
            decided: false,
            edges: Fixed(setup.neighbours(me).into()),
            leaf_rule: setup.makes(&LEAF_RULE),
        }
    }
}
