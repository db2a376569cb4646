//! Chang and Roberts's election on a one-way ring, in the form of the project report.
//!
//! Proposals go round; each process lets only numbers above its own pass, and a process that did
//! not take part yet puts its own number in for a lower one. The number that comes home has won,
//! and its owner tells the ring.

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup, Winner,
};

const NO_STEP_DOWN: Mistake = Mistake {
    name: "no-step-down",
    what: "the incumbent stays in office while the next election runs",
    breaks: "one leader at a time",
    caught_by: "-n 2 --requests 2,0 --crash 1 --restart 1 --property unique",
};
const NO_HOP_LIMIT: Mistake = Mistake {
    name: "no-hop-limit",
    what: "a message whose owner crashed goes round for ever",
    breaks: "livelock",
    caught_by: "-n 3 --crash 1 --property livelock",
};

const SHEET: DataSheet = DataSheet {
    name: "chang-roberts",
    title: "Chang–Roberts",
    idea: "Numbers go round a ring; only the highest comes home.",
    source: "E. Chang, R. Roberts, CACM 22(5), 1979; project report on the ring election",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::DirectedRing],
    winner: Some(Winner::MaxAll),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "d + 2n, d = hops from the initiator to the maximum",
            when: "one initiator",
            bound: |f| (f.initiators.len() == 1).then(|| Bound::Exactly(one_starts(f))),
        },
        Cost {
            metric: Metric::Messages,
            formula: "S + n, S = Σ distance to the next higher id",
            when: "all start at once",
            bound: |f| {
                (f.n() > 1.0 && f.k() == f.n()).then(|| Bound::Exactly(proposals(f) + f.n()))
            },
        },
        Cost {
            metric: Metric::Messages,
            formula: "n(n + 1)/2 + n",
            when: "always",
            bound: |f| Some(Bound::AtMost(f.n() * (f.n() + 1.0) / 2.0 + f.n())),
        },
    ],
    guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
    fence: None,
    mistakes: &[NO_STEP_DOWN, NO_HOP_LIMIT],
    switches: &[],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct ChangRoberts {
    successor: ProcessId,
    /// Whether we let a proposal of this election pass.
    participant: bool,
    leading: bool,
    #[serde(skip)]
    no_step_down: Fixed<bool>,
    #[serde(skip)]
    no_hop_limit: Fixed<bool>,
    /// Whom the detector suspects: skipped. Boxed, for a large ring has mostly none.
    suspects: Option<Box<ProcessSet>>,
}

/// What goes round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// This one should lead.
    Propose {
        /// Who.
        id: ProcessId,
        /// How far this has come from its owner.
        hops: u32,
    },
    /// This one leads.
    Elected {
        /// Who.
        id: ProcessId,
        /// How far this has come from its owner.
        hops: u32,
    },
}

impl ChangRoberts {
    fn propose(&mut self, id: ProcessId, hops: u32, ctx: &mut Context<'_, Self>) {
        self.participant = true;
        ctx.send(self.successor, Message::Propose { id, hops });
    }

    /// An incumbent leaves office as soon as it hears of a new election.
    fn step_down(&mut self, ctx: &mut Context<'_, Self>) {
        if self.leading && !*self.no_step_down {
            self.leading = false;
            ctx.indicate(Indication::Deposed);
        }
    }

    fn lead(&mut self, ctx: &mut Context<'_, Self>) {
        self.participant = false;
        self.leading = true;
        ctx.indicate(Indication::Leading { epoch: 0 });
        if self.successor != ctx.me() {
            ctx.send(self.successor, Message::Elected { id: ctx.me(), hops: 1 });
        }
    }

    /// Whether a message has passed everyone: then its owner is gone.
    fn is_orphan(&self, hops: u32, ctx: &Context<'_, Self>) -> bool {
        hops as usize > ctx.group_size()
    }

    /// One hop further.
    fn further(&self, hops: u32) -> u32 {
        if *self.no_hop_limit { hops } else { hops + 1 }
    }

    fn mend_ring(&mut self, ctx: &Context<'_, Self>) {
        let group = ctx.group();
        let place = group.place(ctx.me()).expect("we are a member");
        let after = (1..=group.len()).map(|i| group.id((place + i) % group.len()));
        let suspects = self.suspects.as_deref();
        self.successor = after
            .into_iter()
            .find(|p| *p == ctx.me() || !suspects.is_some_and(|s| s.contains(*p)))
            .expect("the ring comes back to us");
    }
}

impl Process for ChangRoberts {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        // A second number of ours on its way would be one too many.
        if self.participant {
            return;
        }
        self.step_down(ctx);
        if self.successor == ctx.me() {
            return self.lead(ctx);
        }
        self.propose(ctx.me(), 1, ctx);
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        match message {
            Message::Propose { hops, .. } | Message::Elected { hops, .. }
                if self.is_orphan(hops, ctx) => {}
            Message::Propose { id, hops } => {
                self.step_down(ctx);
                if id > me {
                    self.propose(id, self.further(hops), ctx);
                } else if id < me && !self.participant {
                    self.propose(me, 1, ctx);
                } else if id == me && self.participant {
                    // Our own number came home: nobody on the ring has a higher one.
                    self.lead(ctx);
                }
            }
            Message::Elected { id, hops } if id != me => {
                self.participant = false;
                self.step_down(ctx);
                ctx.indicate(Indication::Following { leader: Some(id), epoch: 0 });
                ctx.send(self.successor, Message::Elected { id, hops: self.further(hops) });
            }
            // Everyone knows.
            Message::Elected { .. } => {}
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.get_or_insert_default().insert(peer);
        self.mend_ring(ctx);
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if let Some(suspects) = &mut self.suspects {
            suspects.remove(peer);
            if suspects.is_empty() {
                self.suspects = None;
            }
        }
        self.mend_ring(ctx);
    }

    fn at_rest(&self) -> bool {
        !self.participant
    }
}

impl Algorithm for ChangRoberts {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            successor: setup.successor(me),
            participant: false,
            leading: false,
            no_step_down: setup.makes(&NO_STEP_DOWN),
            no_hop_limit: setup.makes(&NO_HOP_LIMIT),
            suspects: None,
        }
    }
}

/// The messages of an election that one process starts.
fn one_starts(f: &Facts<'_>) -> f64 {
    let group = &f.setup.group;
    if group.len() == 1 {
        return 0.0;
    }
    let place = |p| group.place(p).expect("initiators are members");
    let (from, to) = (place(f.initiators[0]), place(group.highest()));
    ((to + group.len() - from) % group.len()) as f64 + 2.0 * f.n()
}

/// The proposals of an election that all start: each number goes as far as the next higher one.
fn proposals(f: &Facts<'_>) -> f64 {
    let members = f.setup.group.members();
    let n = members.len();
    // Going back round the ring twice, the stack holds the numbers ahead that nothing hides.
    let (mut stack, mut sum) = (Vec::<usize>::new(), 0);
    for i in (0..2 * n).rev() {
        while stack.last().is_some_and(|&j| members[j % n] <= members[i % n]) {
            stack.pop();
        }
        if i < n {
            sum += stack.last().map_or(n, |j| (j - i).min(n));
        }
        stack.push(i);
    }
    sum as f64
}
