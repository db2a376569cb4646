//! The interface of virtual synchrony for the layers above, and its construction.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{Context, Fixed, ProcessId, ProcessSet};

use super::change::ViewChange;
use super::joining::StateTransfer;
use super::ordering::Ordering;
use super::sheet::Settings;
use super::{Entry, Membership, VirtualSynchrony};
use crate::Setup;
use crate::group::{Data, Member, Plan, View, ViewId};

impl<C: Data> VirtualSynchrony<C> {
    /// The process `me`. All processes that do not join later form the first view.
    pub fn build(me: ProcessId, setup: &Setup) -> Self {
        let joiners = Plan::of(setup).joiners;
        let founders = setup.group.members().iter().copied().filter(|p| !joiners.contains(*p));
        let members: Vec<Member> = founders.map(|id| Member { id, incarnation: 1 }).collect();
        let coordinator = members.first().map_or(me, |m| m.id);
        let view = View {
            id: ViewId { generation: 0, epoch: 0, coordinator },
            members,
            observers: Vec::new(),
        };
        let is_founder = view.has_member(me);
        let settings = (Fixed(Settings::of(setup)), Fixed(false), Fixed(setup.mistake));
        Self {
            membership: if is_founder { Membership::Inside } else { Membership::Outside },
            has_state: is_founder,
            ..Self::outside(view, settings)
        }
    }

    /// A process outside `view`, which it names as its own nevertheless.
    fn outside(
        view: View,
        (settings, summarises, mistake): (
            Fixed<Settings>,
            Fixed<bool>,
            Fixed<Option<&'static str>>,
        ),
    ) -> Self {
        Self {
            membership: Membership::Outside,
            incarnation: 1,
            generation: 0,
            has_state: false,
            ordering: Ordering::new(&view),
            view,
            change: ViewChange::default(),
            transfer: StateTransfer::none(),
            waiting: VecDeque::new(),
            suspects: ProcessSet::new(),
            reports: BTreeMap::new(),
            reported: false,
            batching: false,
            heard: ProcessSet::new(),
            joins: Vec::new(),
            restarted: ProcessSet::new(),
            leaves: ProcessSet::new(),
            leaving: false,
            synced: ProcessSet::new(),
            silent_periods: BTreeMap::new(),
            bound_to_leader: false,
            last_change: None,
            later: Vec::new(),
            settings,
            summarises,
            mistake,
        }
    }

    /// A new process with the same settings, incarnation and generation, outside any view.
    pub fn renewed(&self) -> Self {
        let nobody = View { id: ViewId::default(), members: Vec::new(), observers: Vec::new() };
        let settings = (self.settings, self.summarises, self.mistake);
        let Self { incarnation, generation, .. } = *self;
        Self { incarnation, generation, ..Self::outside(nobody, settings) }
    }

    /// This process, outside any view, becomes `me` in a first view on which its members have agreed outside
    /// this algorithm.
    pub fn founding(mut self, me: ProcessId, view: View) -> Self {
        self.incarnation = view.find(me).map_or(self.incarnation, |m| m.incarnation);
        self.generation = view.id.generation;
        self.has_state = true;
        self.enter(view);
        self
    }

    /// Repeats the request to join, in place of the timer that `retry` sets.
    pub fn ask_again(&mut self, ctx: &mut Context<'_, Self>) {
        self.ask_to_join(ctx);
    }

    /// From now on this process founds no generation up to this one.
    pub fn raise_generation(&mut self, least: u32) {
        self.generation = self.generation.max(least);
    }

    /// Binds this process to the leader, or sets it free. While it is bound, it neither starts nor
    /// follows an attempt to end the view, unless the candidate is the leader.
    pub fn set_bound_to_leader(&mut self, bound: bool, ctx: &mut Context<'_, Self>) {
        if std::mem::replace(&mut self.bound_to_leader, bound) && !bound {
            if let Some(ballot) = self.change.deferred.take() {
                self.on_prepare(ballot, ctx);
            }
            self.consider_view_change(ctx);
        }
    }

    /// The same process below a layer that answers [`Indication::Wedged`](crate::group::Indication::Wedged) with
    /// [`Request::Freeze`](crate::group::Request::Freeze).
    pub fn summarised(mut self) -> Self {
        self.summarises = Fixed(true);
        self
    }

    /// Whether this process belongs to a view.
    pub fn membership(&self) -> Membership {
        self.membership
    }

    /// The present incarnation of this process.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// The highest generation that this process has seen.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether the application has the state of the group.
    pub fn has_state(&self) -> bool {
        self.has_state
    }

    /// The present view.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Whether this process has stopped for a view change.
    pub fn is_wedged(&self) -> bool {
        self.change.wedged
    }

    /// How many messages are kept: in order, out of order, not yet sent, and of later views.
    pub fn buffered(&self) -> usize {
        let ordering = &self.ordering;
        ordering.order.len()
            + ordering.out_of_order.len()
            + ordering.unplaced.len()
            + self.waiting.len()
            + self.later.len()
    }

    /// The message at this place of the present view, if it is still kept.
    pub fn entry_at(&self, position: u64) -> Option<&Entry<C>> {
        let place = usize::try_from(position.checked_sub(self.ordering.base)?).ok()?;
        self.ordering.order.get(place)
    }

    /// The place after the last message that arrived without a gap.
    pub fn end(&self) -> u64 {
        self.ordering.end()
    }

    /// The messages that another process may lack, in order; then the messages that arrived before
    /// one of their predecessors.
    pub fn unstable(&self) -> (impl Iterator<Item = &Entry<C>>, impl Iterator<Item = &Entry<C>>) {
        (self.ordering.order.iter(), self.ordering.out_of_order.values())
    }

    /// The commands of `me` that another process may lack or that have no number yet.
    pub fn own_unstable(&self, me: ProcessId) -> impl Iterator<Item = &C> {
        let placed = self.ordering.order.iter().filter(move |entry| entry.sender == me);
        placed.map(|entry| &entry.command).chain(&self.ordering.unplaced).chain(&self.waiting)
    }

    /// The processes that this process suspects to have crashed.
    pub fn suspects(&self) -> &ProcessSet {
        &self.suspects
    }
}
