//! The group below: its steps, its indications, and its replacement by a new one.

use konklave_process::{Context, Effect, Host, Indications, Process, ProcessId};

use super::founding::Promises;
use super::{Forming, Indication, Message, Record, Request, Timer};
use crate::group::virtual_synchrony::{self, VirtualSynchrony};
use crate::group::{self, Data, View};

/// Passes the effects of the group on. A record of the group becomes part of the record of the process.
struct Below<'a, 'b, C: Data> {
    upper: &'a mut Context<'b, Forming<C>>,
    members: &'a [ProcessId],
    promises: &'a Promises,
    indications: Indications<VirtualSynchrony<C>>,
}

impl<C: Data> Host<VirtualSynchrony<C>> for Below<'_, '_, C> {
    fn perform(&mut self, effect: Effect<VirtualSynchrony<C>>) {
        match effect {
            Effect::Send { to, message } => self.upper.send(to, Message::Group(message)),
            Effect::SetTimer { timer, after } => self.upper.set_timer(Timer::Group(timer), after),
            Effect::CancelTimer { timer } => self.upper.cancel_timer(Timer::Group(timer)),
            Effect::Indicate(indication) => self.indications.push(indication),
            Effect::Save(virtual_synchrony::Record { incarnation, generation }) => {
                let (members, promised) = (self.members.to_vec(), self.promises.recorded());
                self.upper.save(Record { incarnation, generation, members, promised });
            }
            Effect::Unexpected(what) => self.upper.unexpected(what),
        }
    }

    fn send(&mut self, to: ProcessId, message: virtual_synchrony::Message<C>) {
        self.upper.send(to, Message::Group(message));
    }

    fn choose(&mut self, bound: u32) -> u32 {
        self.upper.choose(bound)
    }
}

impl<C: Data> Forming<C> {
    /// Lets the group take a step, and handles its indications.
    pub(super) fn step_group(
        &mut self,
        ctx: &mut Context<'_, Self>,
        step: impl FnOnce(&mut VirtualSynchrony<C>, &mut Context<'_, VirtualSynchrony<C>>),
    ) {
        let (me, all) = (ctx.me(), ctx.group());
        let (members, promises) = (&self.last_members, &self.promises);
        let mut below = Below { upper: ctx, members, promises, indications: Default::default() };
        step(&mut self.group, &mut Context::new(me, all, &mut below));
        for indication in below.indications {
            match &indication {
                group::Indication::Installed { view, .. } => self.on_view(view.clone(), ctx),
                group::Indication::Excluded | group::Indication::Left => {
                    self.await_end_of_grants(ctx);
                    self.announce(ctx);
                }
                _ => {}
            }
            ctx.indicate(Indication::Group(indication));
        }
    }

    /// Passes a request on to the group.
    pub(super) fn ask_group(&mut self, request: group::Request<C>, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_request(request, ctx));
    }

    fn on_view(&mut self, view: View, ctx: &mut Context<'_, Self>) {
        self.promises.clear();
        self.beats = 0;
        self.calm(ctx);
        let members: Vec<ProcessId> = view.members.iter().map(|m| m.id).collect();
        if members != self.last_members {
            self.last_members = members;
            ctx.save(self.record());
        }
        self.announce(ctx);
    }

    /// Replaces the group by a new one with this first view, on which its members have agreed.
    pub(super) fn enter_first(&mut self, view: View, ctx: &mut Context<'_, Self>) {
        for timer in [virtual_synchrony::Timer::Join, virtual_synchrony::Timer::Heartbeat] {
            ctx.cancel_timer(Timer::Group(timer));
        }
        self.group = self.group.renewed().founding(ctx.me(), view);
        ctx.indicate(Indication::Founded);
        self.step_group(ctx, |group, ctx| group.on_start(ctx));
    }

    /// Begins a new incarnation, outside any view.
    pub(super) fn begin_incarnation(
        &mut self,
        saved: virtual_synchrony::Record,
        ctx: &mut Context<'_, Self>,
    ) {
        self.group = self.group.renewed();
        self.step_group(ctx, |group, ctx| group.on_recover(Some(saved), ctx));
    }

    /// Founds a group of one, in a new generation.
    pub(super) fn refound(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.group.has_state() {
            ctx.indicate(Indication::Founded);
        }
        if !self.settings.has_data_dir {
            self.group.raise_generation(self.settings.calendar);
        }
        self.ask_group(group::Request::Refound, ctx);
    }

    /// Handles a request of the layer above.
    pub(super) fn handle_request(&mut self, request: Request<C>, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Group(request) => self.ask_group(request, ctx),
            Request::FoundAlone if self.group.has_state() => self.refound(ctx),
            Request::FoundAlone => {
                self.alone = true;
                self.found_alone_if_due(ctx);
            }
        }
    }
}
