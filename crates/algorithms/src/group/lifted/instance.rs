//! One lock: a process of the lifted algorithm, for the duration of one view.
//!
//! It is public for hosts that manage views and holders themselves.

use std::collections::VecDeque;

use konklave_process::{Context, Effect, Fixed, Group, Host, Input, ProcessId, Topology};
use serde::Serialize;
use smallvec::SmallVec;

use super::Inner;
use crate::Setup;
use crate::group::View;
use crate::group::locks::Name;
use crate::mutex::{Indication, Request};

/// A process of the lifted algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Instance<A> {
    process: A,
    /// The highest count of entries that this process knows. Every message carries it, and a message
    /// precedes every entry of another process; so counts grow from entry to entry.
    pub count: u64,
    #[serde(skip)]
    group: Fixed<Group>,
}

/// The outcome of one step.
#[derive(Clone, Debug)]
pub struct Outcome<M> {
    /// The messages that it sends, with their receivers.
    pub sent: SmallVec<[(ProcessId, M); 2]>,
    /// Whether it grants the lock.
    pub granted: bool,
    /// An input that the algorithm did not expect.
    pub unexpected: Option<&'static str>,
}

/// The member that has the token of a lock at first: a hash of the name spreads locks over members.
pub fn home(name: &Name, view: &View) -> Option<ProcessId> {
    view.members.get(place(name, view.members.len())).map(|member| member.id)
}

fn place(name: &Name, n: usize) -> usize {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash % n.max(1) as u64) as usize
}

/// The initial setups of a view: one for each member that may have the token at first.
#[derive(Clone, Debug, Default)]
pub struct Homes(Vec<Setup>);

impl Homes {
    /// The initial setups of `view`.
    pub fn of(view: &View, chosen: &Setup) -> Self {
        Self(view.members.iter().filter_map(|m| setup(view, m.id, chosen)).collect())
    }
}

/// The setup of a run that starts with `first`: the first member has the token or coordinates.
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
    /// The process `me` at the beginning of a view, with no holder and no waiter.
    pub fn fresh(me: ProcessId, name: &Name, view: &View, chosen: &Setup) -> Option<Self> {
        let setup = setup(view, home(name, view)?, chosen)?;
        Some(Self::begin(me, &setup))
    }

    /// The same as [`Self::fresh`], for views with many locks: `homes` is computed once.
    pub fn fresh_in(me: ProcessId, name: &Name, homes: &Homes) -> Option<Self> {
        homes.0.get(place(name, homes.0.len())).map(|setup| Self::begin(me, setup))
    }

    fn begin(me: ProcessId, setup: &Setup) -> Self {
        Self { process: A::build(me, setup), count: 0, group: Fixed(setup.group.clone()) }
    }

    /// The process `me` at the beginning of a view in which `holder` has the lock and `waiters` wait,
    /// in this order. Without a holder, the first waiter gets the lock. Every member computes this
    /// from the same facts, so no message is needed: it runs the whole group and keeps its own process.
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

    /// Whether this process has the token.
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

/// Records the effects of a step.
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

    /// Every member must compute the same result, so there is no random choice.
    fn choose(&mut self, _bound: u32) -> u32 {
        0
    }
}
