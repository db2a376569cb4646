//! One lock: a process of the algorithm within, for the time of one view.
//!
//! Public, for whoever keeps the views and the holders itself and wants only this.

use std::collections::VecDeque;

use konklave_process::{Context, Effect, Fixed, Group, Host, Input, ProcessId, Topology};
use serde::Serialize;
use smallvec::SmallVec;

use super::Inner;
use crate::Setup;
use crate::group::View;
use crate::group::locks::Name;
use crate::mutex::{Indication, Request};

/// A process of the algorithm within.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Instance<A> {
    process: A,
    /// The highest count of entries that we know of. It travels with every message: between an exit
    /// and the next entry there is always one, so counts grow from entry to entry.
    pub count: u64,
    #[serde(skip)]
    group: Fixed<Group>,
}

/// What an instance does in one step.
#[derive(Clone, Debug)]
pub struct Outcome<M> {
    /// What it sends, and to whom.
    pub sent: SmallVec<[(ProcessId, M); 2]>,
    /// Whether it lets us in.
    pub granted: bool,
    /// What it could not make sense of.
    pub unexpected: Option<&'static str>,
}

/// Which member has the token of a name at first: by a hash, so that names spread.
pub fn home(name: &Name, view: &View) -> Option<ProcessId> {
    view.members.get(place(name, view.members.len())).map(|member| member.id)
}

fn place(name: &Name, n: usize) -> usize {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash % n.max(1) as u64) as usize
}

/// How instances of a view begin, for each of its members as the one who has the token first.
#[derive(Clone, Debug, Default)]
pub struct Homes(Vec<Setup>);

impl Homes {
    /// Those of `view`.
    pub fn of(view: &View, chosen: &Setup) -> Self {
        Self(view.members.iter().filter_map(|m| setup(view, m.id, chosen)).collect())
    }
}

/// The members of `view` from `first` on: whoever is first has the token or coordinates.
fn setup(view: &View, first: ProcessId, chosen: &Setup) -> Option<Setup> {
    let mut members: Vec<ProcessId> = view.members.iter().map(|m| m.id).collect();
    let place = members.iter().position(|p| *p == first)?;
    members.rotate_left(place);
    let topology = Topology::complete(members.len());
    let mut setup = Setup::new(Group::new(members).ok()?, topology);
    setup.chosen.clone_from(&chosen.chosen);
    setup.unit = chosen.unit;
    Some(setup)
}

impl<A: Inner> Instance<A> {
    /// At the beginning of a view, with nobody inside and nobody waiting.
    pub fn fresh(me: ProcessId, name: &Name, view: &View, chosen: &Setup) -> Option<Self> {
        let setup = setup(view, home(name, view)?, chosen)?;
        Some(Self::begin(me, &setup))
    }

    /// The same, where there are many names.
    pub fn fresh_in(me: ProcessId, name: &Name, homes: &Homes) -> Option<Self> {
        homes.0.get(place(name, homes.0.len())).map(|setup| Self::begin(me, setup))
    }

    fn begin(me: ProcessId, setup: &Setup) -> Self {
        Self { process: A::build(me, setup), count: 0, group: Fixed(setup.group.clone()) }
    }

    /// At the beginning of a view in which `holder` is inside and `waiters` wait, in this order; with
    /// nobody inside, the first who waits gets in. All members work this out from the same facts, so
    /// no message is needed: each plays the whole group, and keeps its own part.
    pub fn resumed(
        me: ProcessId,
        holder: Option<ProcessId>,
        waiters: &[ProcessId],
        view: &View,
        chosen: &Setup,
    ) -> Option<Self> {
        let asks: Vec<ProcessId> = holder.iter().chain(waiters).copied().collect();
        let setup = setup(view, *asks.first()?, chosen)?;
        let members = setup.group.members().to_vec();
        let mut all: Vec<Self> = members
            .iter()
            .map(|p| Self {
                process: A::build(*p, &setup),
                count: 1,
                group: Fixed(setup.group.clone()),
            })
            .collect();
        let place = |p: ProcessId| members.iter().position(|q| *q == p);
        for asker in asks {
            let i = place(asker)?;
            let mut flight: VecDeque<(ProcessId, ProcessId, A::Message)> = VecDeque::new();
            let outcome = all[i].step(asker, Input::Request(Request::Acquire));
            flight.extend(outcome.sent.into_iter().map(|(to, m)| (asker, to, m)));
            while let Some((from, to, message)) = flight.pop_front() {
                let i = place(to)?;
                let outcome = all[i].step(to, Input::Message { from, message });
                flight.extend(outcome.sent.into_iter().map(|(next, m)| (to, next, m)));
            }
        }
        place(me).map(|i| all.swap_remove(i))
    }

    /// Whether the token is here.
    pub fn has_token(&self) -> bool {
        self.process.tokens() > 0
    }

    /// One step.
    pub fn step(&mut self, me: ProcessId, input: Input<A>) -> Outcome<A::Message> {
        let outcome = Outcome { sent: SmallVec::new(), granted: false, unexpected: None };
        let mut notes = Notes(outcome);
        self.process.handle(input, &mut Context::new(me, &self.group, &mut notes));
        notes.0
    }
}

/// Writes down what a step does.
struct Notes<M>(Outcome<M>);

impl<A: Inner> Host<A> for Notes<A::Message> {
    fn perform(&mut self, effect: Effect<A>) {
        match effect {
            Effect::Send { to, message } => self.0.sent.push((to, message)),
            Effect::Indicate(Indication::Granted { .. }) => self.0.granted = true,
            Effect::Unexpected(what) => self.0.unexpected = Some(what),
            Effect::SetTimer { timer, .. } | Effect::CancelTimer { timer } => match timer {},
            Effect::Save(record) => match record {},
        }
    }

    /// All members must come to the same: there is no chance here.
    fn choose(&mut self, _bound: u32) -> u32 {
        0
    }
}
