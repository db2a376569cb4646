//! An election of the literature inside each view, instead of seniority.
//!
//! Such an election tolerates no crash. Inside a view no member fails as far as it can tell: if one does, the next view
//! follows, without it, and the election starts anew there. All members start it when they install the view. Its messages
//! name the view, so a message of an earlier election is never taken for one of the present election.

use konklave_process::{Context, Effect, Fixed, Group, Host, Input, Inspect, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Any, AnyMessage, Leader, Message};
use crate::Setup;
use crate::election::{Indication, Request};
use crate::group::channel::{Channels, Due, LATER, Numbered};
use crate::group::{View, ViewId};

/// The election of the present view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Inside {
    /// This process of it; none outside the view.
    process: Option<Any>,
    /// The leader that it elected.
    elected: Option<ProcessId>,
    channels: Channels<InnerMessage>,
    /// Messages of later views, with their senders.
    later: Vec<(ProcessId, InnerMessage)>,
    #[serde(skip)]
    group: Fixed<Group>,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Debug)]
struct Settings {
    setup: Setup,
    /// The name of the election.
    election: String,
    /// Whether unconfirmed messages are sent again with the heartbeats.
    repeats: bool,
}

/// A message of the election inside a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct InnerMessage {
    /// The view it belongs to.
    pub view: ViewId,
    /// Its number in the channel from its sender to its receiver, from 1.
    pub seq: u32,
    /// The election's own message.
    pub message: AnyMessage,
}

impl Numbered for InnerMessage {
    fn seq(&self) -> u32 {
        self.seq
    }

    fn numbered(self, seq: u32) -> Self {
        Self { seq, ..self }
    }
}

impl Inside {
    /// The election `name`, for views of the group of `setup`.
    pub(super) fn new(name: &str, repeats: bool, setup: &Setup) -> Self {
        let settings = Settings { setup: setup.clone(), election: name.to_owned(), repeats };
        Self {
            process: None,
            elected: None,
            channels: Channels::new(),
            later: Vec::new(),
            group: Fixed(setup.group.clone()),
            settings: Fixed(settings),
        }
    }

    pub(super) fn at_rest(&self) -> bool {
        self.process.as_ref().is_none_or(Any::at_rest) && self.channels.is_in_order()
    }

    /// A new view begins: everything of the last one is void. The result tells whether this process followed a leader.
    fn begin(&mut self, me: ProcessId, view: &View) -> bool {
        self.channels.clear();
        self.process = None;
        let members = view.members.iter().map(|m| m.id).collect();
        if let Ok(group) = Group::new(members)
            && view.has_member(me)
        {
            let Settings { setup, election, .. } = &*self.settings;
            let mut inner = Setup::new(group.clone(), Any::topology(election, group.len()));
            inner.unit = setup.unit;
            self.process = Any::named(election, me, &inner);
            self.group = Fixed(group);
        }
        self.elected.take().is_some_and(|leader| leader != me)
    }

    /// This process is outside from now on.
    pub(super) fn stop(&mut self) {
        (self.process, self.elected) = (None, None);
        self.channels.clear();
        self.later.clear();
    }
}

/// The effects of a step of the election.
#[derive(Default)]
struct Outcome {
    sent: Vec<(ProcessId, AnyMessage)>,
    indications: Vec<Indication>,
    unexpected: Option<&'static str>,
}

impl Host<Any> for Outcome {
    fn perform(&mut self, effect: Effect<Any>) {
        match effect {
            Effect::Send { to, message } => self.sent.push((to, message)),
            Effect::Indicate(indication) => self.indications.push(indication),
            Effect::Unexpected(what) => self.unexpected = Some(what),
            Effect::SetTimer { timer, .. } | Effect::CancelTimer { timer } => match timer {},
            Effect::Save(record) => match record {},
        }
    }

    /// None of these elections draws lots.
    fn choose(&mut self, _bound: u32) -> u32 {
        0
    }
}

impl Leader {
    /// The election of the view that begins. The result tells whether there is one; if not, the most senior leads.
    pub(super) fn elect_inside(&mut self, ctx: &mut Context<'_, Self>) -> bool {
        let Some(inside) = &mut self.inside else { return false };
        if inside.begin(ctx.me(), self.group.view()) {
            // The leader of the last view may have crashed.
            ctx.indicate(Indication::Deposed);
        }
        self.step_inside(Input::Request(Request::Elect), ctx);
        let later = self.inside.as_mut().map(|inside| std::mem::take(&mut inside.later));
        for (from, message) in later.into_iter().flatten() {
            self.on_inside(from, message, ctx);
        }
        true
    }

    pub(super) fn on_inside(
        &mut self,
        from: ProcessId,
        message: InnerMessage,
        ctx: &mut Context<'_, Self>,
    ) {
        let (here, wedged) = (self.view().id, self.group.is_wedged());
        let is_member = self.view().has_member(from);
        let takes_in_old_views = self.takes_in_old_views();
        let Some(inside) = &mut self.inside else {
            return ctx.unexpected("a message of an election that was not chosen");
        };
        if message.view > here {
            if inside.later.len() < LATER {
                inside.later.push((from, message));
            }
            return;
        }
        if wedged || !is_member {
            return;
        }
        let due = if message.view == here {
            inside.channels.in_order(from, message, inside.settings.repeats)
        } else if takes_in_old_views {
            vec![message]
        } else {
            return;
        };
        for InnerMessage { message, .. } in due {
            self.step_inside(Input::Message { from, message }, ctx);
        }
    }

    /// The other side has all messages of the election up to `upto`.
    pub(super) fn on_confirmed(&mut self, from: ProcessId, upto: u32) {
        if let Some(inside) = &mut self.inside {
            inside.channels.confirm(from, upto);
        }
    }

    /// At each heartbeat: confirms received messages, and sends unconfirmed ones again.
    pub(super) fn confirm_and_resend(&mut self, ctx: &mut Context<'_, Self>) {
        let (view, wedged) = (self.view().id, self.group.is_wedged());
        let Some(inside) = self.inside.as_mut().filter(|_| !wedged) else { return };
        for Due { to, confirms, again } in inside.channels.due() {
            if let Some(upto) = confirms {
                ctx.send(to, Message::Got { view, upto });
            }
            for message in again {
                ctx.send(to, Message::Inside(message));
            }
        }
    }

    /// One step of the election.
    fn step_inside(&mut self, input: Input<Any>, ctx: &mut Context<'_, Self>) {
        let view = self.view().id;
        let Some(inside) = &mut self.inside else { return };
        let Some(process) = &mut inside.process else { return };
        let mut outcome = Outcome::default();
        process.handle(input, &mut Context::new(ctx.me(), &inside.group, &mut outcome));
        for (to, message) in outcome.sent {
            let message = InnerMessage { view, seq: 0, message };
            let message = inside.channels.send(to, message, inside.settings.repeats);
            ctx.send(to, Message::Inside(message));
        }
        if let Some(what) = outcome.unexpected {
            ctx.unexpected(what);
        }
        for indication in outcome.indications {
            let leader = match indication {
                Indication::Leading { .. } => ctx.me(),
                Indication::Following { leader: Some(leader), .. } => leader,
                Indication::Following { leader: None, .. }
                | Indication::Candidate
                | Indication::Deposed
                | Indication::Loop => continue,
            };
            self.on_elected(leader, ctx);
        }
    }

    /// The election of this view is over.
    fn on_elected(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        if let Some(inside) = &mut self.inside {
            inside.elected = Some(leader);
        }
        if leader == ctx.me() {
            self.lead(ctx);
        } else {
            ctx.indicate(Indication::Following { leader: Some(leader), epoch: self.number() });
        }
    }
}
