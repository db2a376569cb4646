//! The tree identification of IEEE 1394 (FireWire): whoever is asked on all its edges is the root.
//!
//! After a bus reset a leaf asks its neighbour to be its parent; a process that was asked on all
//! its edges but one acknowledges its children and asks over the last. Two may ask each other: they
//! wait, each for a short or a long time by chance, and who waits longer is asked again and is the
//! root. On a cycle nobody is ever asked often enough, and only a timeout tells. Plugging and
//! unplugging begins a new generation. The processes have no names.

mod timing;

use std::sync::Arc;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, Port, PortSet, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::edges::Edges;
use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch, Winner,
};

use timing::Timing;

const INNER_ONLY: Mistake = Mistake {
    name: "inner-only",
    what: "only a process with more than one edge becomes root, as on the slide: a leaf that is asked waits for ever",
    breaks: "deadlock",
    caught_by: "-n 2 --topology path --set timeout=0",
};
const NO_IGNORE: Mistake = Mistake {
    name: "no-ignore",
    what: "a question that its acknowledgement has overtaken is taken for an error",
    breaks: "expected inputs",
    caught_by: "-n 2 --topology path --no-fifo --set contention=id --set timeout=0",
};
const NO_GENERATION: Mistake = Mistake {
    name: "no-generation",
    what: "a question of an earlier generation counts in this one",
    breaks: "one leader at a time",
    caught_by: "-n 2 --topology path --requests 2,2 --no-fifo --set contention=id --set timeout=0 --property unique",
};

const SHEET: DataSheet = DataSheet {
    name: "firewire",
    title: "FireWire tree identification",
    idea: "Leaves ask their neighbour to be their parent, and so on inwards; who is asked on all \
           sides is the root.",
    source: "IEEE 1394-1995, tree identify; lecture \"Wahlverfahren\", election in FireWire",
    assumes: &[Assumption::Reliable, Assumption::NoDuplicates, Assumption::NoCrash],
    topologies: &[Shape::Tree, Shape::Connected],
    winner: Some(Winner::Any),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2(n − 1), and 1 more for contention; 2(n − 1) more for the reset",
            when: "a tree, contention=id, one reset",
            bound: |f| by_id(f).then(|| Bound::Between(least(f), least(f) + 1.0)),
        },
        Cost {
            metric: Metric::Messages,
            formula: "as many, and 2 more for each round of contention, of which 64 are less \
                      likely than one in 10¹⁹",
            when: "a tree, contention=random, one reset, and a long wait outlasts a short one and \
                   two delays",
            bound: |f| {
                let most = least(f) + 2.0 * ROUNDS;
                parts_by_chance(f).then_some(Bound::Between(least(f), most))
            },
        },
        Cost {
            metric: Metric::Time,
            formula: "2D + 2 hops, each with a look at the ports",
            when: "a tree, contention=id, delays have a limit",
            bound: |f| {
                let number = |name| f64::from(f.setup.chosen(&SHEET, name).number());
                let hop = f.delay_max.filter(|_| by_id(f))? + number("look") / number("cable");
                Some(Bound::AtMost((2.0 * f.setup.topology.diameter() as f64 + 2.0) * hop))
            },
        },
    ],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::UniquePerEpoch,
        Guarantee::Agreement,
        Guarantee::TerminationWithProbabilityOne,
        Guarantee::SpanningTree,
        Guarantee::AcyclicParents,
    ],
    fence: None,
    mistakes: &[INNER_ONLY, NO_IGNORE, NO_GENERATION],
    switches: &[
        Switch {
            name: "contention",
            values: &["random", "id"],
            what: "how two that ask each other part: by chance, or the higher id becomes root",
        },
        Switch {
            name: "reset",
            values: &["message", "wire"],
            what: "whether a reset spreads by messages, or everyone feels it (all are to start)",
        },
        Switch { name: "look", values: &["20", "<number>"], what: "ns to look at the ports" },
        Switch { name: "short", values: &["240", "<number>"], what: "the least short wait, in ns" },
        Switch { name: "short-max", values: &["260", "<number>"], what: "the longest short wait" },
        Switch { name: "long", values: &["570", "<number>"], what: "the least long wait, in ns" },
        Switch { name: "long-max", values: &["600", "<number>"], what: "the longest long wait" },
        Switch { name: "cable", values: &["100", "<number>"], what: "how many ns T stands for" },
        Switch {
            name: "timeout",
            values: &["auto", "<number>"],
            what: "after how many ns without a result there is a loop; 0: never; auto: as the \
                   standard has it, and more for large groups",
        },
    ],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct FireWire {
    /// How many bus resets we know of.
    generation: u32,
    state: State,
    /// Who asked us to be its parent, and how many have not.
    children: PortSet,
    silent: u32,
    /// Where nothing is plugged in.
    unplugged: PortSet,
    /// Whether the time for this generation has run out.
    late: bool,
    #[serde(skip)]
    edges: Edges,
    #[serde(skip)]
    rules: Fixed<Arc<Rules>>,
}

/// How far we are in this generation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum State {
    /// There was no reset yet.
    Off,
    /// More than one edge is silent.
    Waiting,
    /// We asked this one to be our parent.
    Asking(Port),
    /// We and this one asked each other; whether it has asked again.
    Contending {
        with: Port,
        asked: bool,
    },
    Child(Port),
    Root,
}

/// What a process was built with.
#[derive(Debug)]
struct Rules {
    by_id: bool,
    by_wire: bool,
    mistake: Option<&'static str>,
    timing: Timing,
}

/// What goes over an edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The bus is reset.
    Reset {
        /// To which generation; 0 from a newcomer, which knows none.
        generation: u32,
    },
    /// Be my parent.
    BeMyParent {
        /// In which generation.
        generation: u32,
        /// Who asks, where contention is settled by id.
        id: Option<ProcessId>,
    },
    /// You are my child.
    YouAreMyChild {
        /// In which generation.
        generation: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// We have looked at our ports.
    Look,
    /// Contention: the short or the long time is over.
    Contention,
    /// There should be a root by now.
    Configuration,
}

impl FireWire {
    /// Begins a generation. One that was first heard of by a question has its first child.
    fn reset(&mut self, generation: u32, child: Option<Port>, ctx: &mut Context<'_, Self>) {
        match self.state {
            State::Child(_) | State::Root => ctx.indicate(Indication::Deposed),
            State::Contending { .. } => ctx.cancel_timer(Timer::Contention),
            State::Off | State::Waiting | State::Asking(_) => {}
        }
        self.generation = generation;
        self.state = State::Waiting;
        self.children = child.into_iter().collect();
        self.silent = (self.edges.len() - self.unplugged.len() - self.children.len()) as u32;
        self.late = false;
        if !self.rules.timing.timeout.is_zero() {
            ctx.set_timer(Timer::Configuration, self.rules.timing.timeout);
        }
        for port in self.plugged().filter(|_| !self.rules.by_wire) {
            ctx.send(self.edges.peer(port), Message::Reset { generation });
        }
        self.look(ctx);
    }

    fn reset_anew(&mut self, ctx: &mut Context<'_, Self>) {
        self.reset(self.generation.saturating_add(1), None, ctx);
    }

    fn plugged(&self) -> impl Iterator<Item = Port> + use<> {
        let unplugged = self.unplugged.clone();
        self.edges.ports().filter(move |port| !unplugged.contains(*port))
    }

    /// When at most one edge is silent, we are to act. That takes a moment, in which the last may
    /// speak, too.
    fn look(&mut self, ctx: &mut Context<'_, Self>) {
        if self.edges.len() == self.unplugged.len() {
            self.lead(ctx);
        } else if self.silent <= 1 {
            ctx.set_timer(Timer::Look, self.rules.timing.look);
        }
    }

    /// Asks over the last silent edge; with none left, we are the root.
    fn evaluate(&mut self, ctx: &mut Context<'_, Self>) {
        if self.silent > 1 || (self.silent == 0 && self.may_not_be_root()) {
            return;
        }
        for child in self.children.iter() {
            self.acknowledge(child, ctx);
        }
        match self.plugged().find(|port| !self.children.contains(*port)) {
            Some(last) => self.ask(last, ctx),
            None => self.lead(ctx),
        }
    }

    fn ask(&mut self, port: Port, ctx: &mut Context<'_, Self>) {
        self.state = State::Asking(port);
        let id = self.rules.by_id.then_some(ctx.me());
        let question = Message::BeMyParent { generation: self.generation, id };
        ctx.send(self.edges.peer(port), question);
    }

    fn acknowledge(&self, child: Port, ctx: &mut Context<'_, Self>) {
        let message = Message::YouAreMyChild { generation: self.generation };
        ctx.send(self.edges.peer(child), message);
    }

    fn lead(&mut self, ctx: &mut Context<'_, Self>) {
        self.settle(State::Root, Indication::Leading { epoch: self.generation }, ctx);
    }

    fn settle(&mut self, state: State, outcome: Indication, ctx: &mut Context<'_, Self>) {
        self.state = state;
        if !std::mem::take(&mut self.late) && !self.rules.timing.timeout.is_zero() {
            ctx.cancel_timer(Timer::Configuration);
        }
        ctx.indicate(outcome);
    }

    /// Takes the one that we asked in vain for our last child.
    fn lead_after_contention(&mut self, with: Port, ctx: &mut Context<'_, Self>) {
        self.silent -= u32::from(self.children.insert(with));
        self.acknowledge(with, ctx);
        self.lead(ctx);
    }

    fn on_question(&mut self, from: Port, id: Option<ProcessId>, ctx: &mut Context<'_, Self>) {
        match self.state {
            State::Waiting => {
                self.silent -= u32::from(self.children.insert(from));
                self.look(ctx);
            }
            State::Asking(asked) if asked == from => self.contend(from, id, ctx),
            State::Contending { with, .. } if with == from => {
                self.state = State::Contending { with, asked: true };
            }
            State::Off
            | State::Asking(_)
            | State::Contending { .. }
            | State::Child(_)
            | State::Root => self.ignore("a question that was answered", ctx),
        }
    }

    fn on_acknowledgement(&mut self, from: Port, ctx: &mut Context<'_, Self>) {
        if self.state != State::Asking(from) {
            return self.ignore("an answer without a question", ctx);
        }
        let outcome = Indication::Following { leader: None, epoch: self.generation };
        self.settle(State::Child(from), outcome, ctx);
    }

    /// Out of turn comes only what was overtaken (settled by id, the acknowledgement may overtake
    /// the other's question) or was meant for our former self, before a restart.
    fn ignore(&self, what: &'static str, ctx: &mut Context<'_, Self>) {
        if self.makes(NO_IGNORE) {
            ctx.unexpected(what);
        }
    }

    /// Both ends of an edge asked each other.
    fn contend(&mut self, with: Port, id: Option<ProcessId>, ctx: &mut Context<'_, Self>) {
        if !self.rules.by_id {
            self.state = State::Contending { with, asked: false };
            let wait = self.rules.timing.wait(|bound| ctx.choose(bound));
            ctx.set_timer(Timer::Contention, wait);
        } else if id < Some(ctx.me()) && !self.may_not_be_root() {
            self.lead_after_contention(with, ctx);
        }
    }

    fn is_settled(&self) -> bool {
        matches!(self.state, State::Off | State::Child(_) | State::Root)
    }

    fn may_not_be_root(&self) -> bool {
        self.makes(INNER_ONLY) && self.edges.len() - self.unplugged.len() == 1
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.rules.mistake == Some(mistake.name)
    }
}

impl Process for FireWire {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_recover(&mut self, _saved: Option<NoRecord>, ctx: &mut Context<'_, Self>) {
        if self.edges.len() == 0 {
            return self.reset_anew(ctx);
        }
        // We know no generation: whoever does shall begin the next.
        self.edges.send_all_but(None, Message::Reset { generation: 0 }, ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if self.is_settled() || self.late {
            self.reset_anew(ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let Some(port) = self.edges.port(from) else {
            return ctx.unexpected("a message from a stranger");
        };
        // What was sent before the plug was pulled is void.
        if self.unplugged.contains(port) {
            return;
        }
        let ours = self.generation;
        match message {
            Message::Reset { generation: 0 } => self.reset_anew(ctx),
            Message::Reset { generation } if generation > ours => self.reset(generation, None, ctx),
            // Ours is newer, and on its way to them.
            Message::Reset { .. } => {}
            Message::BeMyParent { generation, .. } if generation > ours => {
                self.reset(generation, Some(port), ctx);
            }
            Message::BeMyParent { generation, id } => {
                if generation == ours || self.makes(NO_GENERATION) {
                    self.on_question(port, id, ctx);
                }
            }
            Message::YouAreMyChild { generation } => {
                if generation == ours {
                    self.on_acknowledgement(port, ctx);
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match (timer, self.state) {
            (Timer::Look, State::Waiting) => self.evaluate(ctx),
            (Timer::Contention, State::Contending { with, asked: false }) => self.ask(with, ctx),
            (Timer::Contention, State::Contending { with, asked: true }) => {
                if !self.may_not_be_root() {
                    self.lead_after_contention(with, ctx);
                }
            }
            (Timer::Configuration, _) if !self.is_settled() => {
                self.late = true;
                ctx.indicate(Indication::Loop);
            }
            (Timer::Look | Timer::Contention | Timer::Configuration, _) => {}
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if let Some(port) = self.edges.port(peer)
            && self.unplugged.insert(port)
        {
            self.reset_anew(ctx);
        }
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if let Some(port) = self.edges.port(peer)
            && self.unplugged.remove(port)
        {
            // Of their generation, too, we know nothing: they may be ahead of us.
            ctx.send(peer, Message::Reset { generation: 0 });
            self.reset_anew(ctx);
        }
    }

    #[inline]
    fn call_up(&self) {
        self.edges.call_up();
    }

    fn at_rest(&self) -> bool {
        self.is_settled() || self.late
    }

    fn parent(&self) -> Option<ProcessId> {
        match self.state {
            State::Child(parent) => Some(self.edges.peer(parent)),
            State::Off
            | State::Waiting
            | State::Asking(_)
            | State::Contending { .. }
            | State::Root => None,
        }
    }
}

impl Algorithm for FireWire {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            generation: 0,
            state: State::Off,
            children: PortSet::new(),
            silent: 0,
            unplugged: PortSet::new(),
            late: false,
            edges: Edges::new(me, setup),
            rules: Fixed(setup.share("rules of firewire", || Rules {
                by_id: setup.chosen(&SHEET, "contention").is("id"),
                by_wire: setup.chosen(&SHEET, "reset").is("wire"),
                mistake: setup.mistake,
                timing: Timing::new(&SHEET, setup),
            })),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        Timing::check(&SHEET, setup)
    }
}

/// So many rounds of contention nobody will see: each is the last with a probability of one half.
const ROUNDS: f64 = 64.0;

/// The messages without contention: over each edge a question and an answer, and the reset both
/// ways.
fn least(f: &Facts<'_>) -> f64 {
    let reset = if f.setup.chosen(&SHEET, "reset").is("message") { 2.0 } else { 0.0 };
    (2.0 + reset) * (f.n() - 1.0)
}

/// Whether there is a root, and two who ask each other part once they wait differently long: the
/// faster one's question arrives while the slower one still waits, however late it began.
fn parts_by_chance(f: &Facts<'_>) -> bool {
    let number = |name| f64::from(f.setup.chosen(&SHEET, name).number());
    let parts = |t: f64| number("short-max") + 2.0 * t * number("cable") < number("long");
    f.setup.topology.fits(Shape::Tree) && !by_id(f) && f.delay_max.is_some_and(parts)
}

/// Whether there is a root, and contention for it is settled by id.
fn by_id(f: &Facts<'_>) -> bool {
    f.setup.topology.fits(Shape::Tree) && f.setup.chosen(&SHEET, "contention").is("id")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, set, tell};

    use super::*;

    fn process(me: u32, topology: Topology, chosen: &[(&'static str, &str)]) -> Bench<FireWire> {
        let mut setup = Setup::new(Group::of(topology.len()), topology);
        setup.chosen.extend([("timeout", "0".to_owned()), ("reset", "wire".to_owned())]);
        setup.chosen.extend(chosen.iter().map(|(name, value)| (*name, (*value).to_owned())));
        assert_eq!(FireWire::check_setup(&setup), Ok(()));
        Bench::new(FireWire::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    fn ask(generation: u32) -> Message {
        Message::BeMyParent { generation, id: None }
    }

    fn acknowledge(generation: u32) -> Message {
        Message::YouAreMyChild { generation }
    }

    const T: Duration = Duration::from_millis(1);

    #[test]
    fn a_leaf_asks_and_an_inner_process_waits() {
        let mut p1 = process(1, Topology::star(4), &[]);
        assert_eq!(p1.ask(Request::Elect), [set(Timer::Look, T / 5)]);
        assert_eq!(p1.fire(Timer::Look), [send(0, ask(1))]);
        let mut p0 = process(0, Topology::star(4), &[]);
        assert_eq!(p0.ask(Request::Elect), []);
    }

    #[test]
    fn who_is_asked_on_all_sides_is_root() {
        let mut p0 = process(0, Topology::star(4), &[]);
        p0.ask(Request::Elect);
        for child in 1..=3 {
            p0.hear(child, ask(1));
        }
        let outcome = tell(Indication::Leading { epoch: 1 });
        let effects =
            [send(1, acknowledge(1)), send(2, acknowledge(1)), send(3, acknowledge(1)), outcome];
        assert_eq!(p0.fire(Timer::Look), effects);
    }

    #[test]
    fn with_one_silent_edge_we_acknowledge_and_ask() {
        let mut p1 = process(1, Topology::path(3), &[]);
        p1.ask(Request::Elect);
        p1.hear(0, ask(1));
        assert_eq!(p1.fire(Timer::Look), [send(0, acknowledge(1)), send(2, ask(1))]);
        let outcome = Indication::Following { leader: None, epoch: 1 };
        assert_eq!(p1.hear(2, acknowledge(1)), [tell(outcome)]);
    }

    #[test]
    fn f1_who_ask_each_other_wait_and_the_slower_is_asked_again() {
        let mut p1 = process(1, Topology::path(2), &[]);
        p1.ask(Request::Elect);
        p1.fire(Timer::Look);
        // Short: 240 to 260 ns, and T stands for 100.
        p1.draw(&[0, 20]);
        assert_eq!(p1.hear(0, ask(1)), [set(Timer::Contention, T * 13 / 5)]);
        assert_eq!(p1.fire(Timer::Contention), [send(0, ask(1))]);
        // The same choice once more; then a long time, and the other is faster.
        p1.draw(&[1, 0]);
        assert_eq!(p1.hear(0, ask(1)), [set(Timer::Contention, T * 57 / 10)]);
        assert_eq!(p1.hear(0, ask(1)), []);
        let root = tell(Indication::Leading { epoch: 1 });
        assert_eq!(p1.fire(Timer::Contention), [send(0, acknowledge(1)), root]);
    }

    #[test]
    fn f2_by_id_the_higher_of_the_two_is_root() {
        let chosen = [("contention", "id")];
        let by = |id| Message::BeMyParent { generation: 1, id: Some(ProcessId(id)) };
        let mut p1 = process(1, Topology::path(2), &chosen);
        p1.ask(Request::Elect);
        assert_eq!(p1.fire(Timer::Look), [send(0, by(1))]);
        let root = tell(Indication::Leading { epoch: 1 });
        assert_eq!(p1.hear(0, by(0)), [send(0, acknowledge(1)), root]);
        let mut p0 = process(0, Topology::path(2), &chosen);
        p0.ask(Request::Elect);
        p0.fire(Timer::Look);
        assert_eq!(p0.hear(1, acknowledge(1)).len(), 1);
        // The question that was overtaken by its answer.
        assert_eq!(p0.hear(1, by(1)), []);
    }

    #[test]
    fn f3_without_a_root_in_time_there_is_a_loop() {
        let mut p0 = process(0, Topology::ring(3), &[("timeout", "1000")]);
        assert_eq!(p0.ask(Request::Elect), [set(Timer::Configuration, T * 10)]);
        assert_eq!(p0.fire(Timer::Configuration), [tell(Indication::Loop)]);
        assert!(p0.process.at_rest());
    }

    #[test]
    fn f4_a_question_of_an_earlier_generation_is_void() {
        let mut p1 = process(1, Topology::path(3), &[("reset", "message")]);
        p1.ask(Request::Elect);
        let reset = Message::Reset { generation: 2 };
        assert_eq!(p1.suspect(2), [send(0, reset), set(Timer::Look, T / 5)]);
        p1.hear(0, ask(1));
        assert_eq!(p1.fire(Timer::Look), [send(0, ask(2))]);
        // So is what was sent before the plug was pulled.
        assert_eq!(p1.hear(2, Message::Reset { generation: 7 }), []);
    }

    #[test]
    fn f5_plugging_and_unplugging_the_root_edge_resets() {
        let mut p1 = process(1, Topology::path(2), &[("reset", "message")]);
        p1.ask(Request::Elect);
        p1.hear(0, ask(1));
        p1.fire(Timer::Look);
        let alone = [tell(Indication::Deposed), tell(Indication::Leading { epoch: 2 })];
        assert_eq!(p1.suspect(0), alone);
        let plugged = p1.step(konklave_process::Input::Trust(ProcessId(0)));
        let [newcomer, reset] = [0, 3].map(|generation| Message::Reset { generation });
        let deposed = tell(Indication::Deposed);
        assert_eq!(plugged, [send(0, newcomer), deposed, send(0, reset), set(Timer::Look, T / 5)]);
    }
}
