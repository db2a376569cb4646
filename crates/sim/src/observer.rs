//! Observers of a run.

use konklave_process::{
    Data, Effect, EffectView, Input, InputView, Process, ProcessId, Recordable,
};

use crate::{Memory, Time};

/// Observes a run. `()` observes nothing and costs nothing.
pub trait Observer<P: Process> {
    /// Travels with each message, so that the observer recognises it.
    type Tag: Clone + Default;

    /// A step begins.
    fn before_step(&mut self, _now: Time, _at: ProcessId, _input: &Input<P>, _tag: &Self::Tag) {}
    /// A step begins with the receipt of a message. Most steps of most runs do.
    fn before_message(
        &mut self,
        now: Time,
        at: ProcessId,
        from: ProcessId,
        message: &P::Message,
        tag: &Self::Tag,
    ) {
        self.before_step(now, at, &Input::Message { from, message: message.clone() }, tag);
    }
    /// The process has an effect. If it sends a message, the tag returned travels with it.
    fn on_effect(&mut self, _now: Time, _at: ProcessId, _effect: &Effect<P>) -> Self::Tag {
        Self::Tag::default()
    }
    /// The process sends a message. Most effects of most runs do.
    fn on_send(
        &mut self,
        now: Time,
        at: ProcessId,
        to: ProcessId,
        message: &P::Message,
    ) -> Self::Tag {
        self.on_effect(now, at, &Effect::Send { to, message: message.clone() })
    }
    /// The process drew a number.
    fn on_draw(&mut self, _drawn: u32) {}
    /// A step ends.
    fn after_step(&mut self, _now: Time, _at: ProcessId, _process: &P) {}
    /// A message will not arrive.
    fn on_lost(&mut self, _now: Time, _from: ProcessId, _to: ProcessId, _tag: &Self::Tag) {}
    /// A message will arrive twice.
    fn on_duplicated(&mut self, _now: Time, _tag: &Self::Tag) {}
    /// The application sends a message past the algorithm.
    fn on_app_message(&mut self, _now: Time, _from: ProcessId, _to: ProcessId) -> Self::Tag {
        Self::Tag::default()
    }
    /// An event outside all steps.
    fn on_incident(&mut self, _now: Time, _incident: &Incident) {}
}

impl<P: Process> Observer<P> for () {
    type Tag = ();

    // Overridden so that no input or effect is built.
    #[inline]
    fn before_message(&mut self, _: Time, _: ProcessId, _: ProcessId, _: &P::Message, (): &()) {}

    #[inline]
    fn on_send(&mut self, _: Time, _: ProcessId, _: ProcessId, _: &P::Message) {}
}

/// Observes a run of any algorithm. Each message has a number other than 0, by which it is recognised.
pub trait AnyObserver {
    /// A step begins; `id` is the number of the message that arrives, or 0.
    fn before_step(&mut self, now: Time, at: ProcessId, input: InputView<'_>, id: u64);
    /// The process has an effect. Returns the number of the message if it sends one, else 0.
    fn on_effect(&mut self, now: Time, at: ProcessId, effect: EffectView<'_>) -> u64;
    /// The process drew a number.
    fn on_draw(&mut self, drawn: u32);
    /// A step ends.
    fn after_step(&mut self, now: Time, at: ProcessId, process: &dyn Data);
    /// Message `id` will not arrive.
    fn on_lost(&mut self, now: Time, id: u64);
    /// Message `id` will arrive twice.
    fn on_duplicated(&mut self, now: Time, id: u64);
    /// The application sends a message past the algorithm. Returns its number.
    fn on_app_message(&mut self, now: Time, from: ProcessId, to: ProcessId) -> u64;
    /// An event outside all steps.
    fn on_incident(&mut self, now: Time, incident: &Incident);
}

/// Adapts an observer of any algorithm. The simulator is compiled for each algorithm and each type of
/// observer; with this one type, it is compiled once for each algorithm.
impl<P: Recordable> Observer<P> for Option<&mut dyn AnyObserver> {
    type Tag = u64;

    fn before_step(&mut self, now: Time, at: ProcessId, input: &Input<P>, tag: &u64) {
        if let Some(observer) = self {
            observer.before_step(now, at, input.view(), *tag);
        }
    }
    fn before_message(
        &mut self,
        now: Time,
        at: ProcessId,
        from: ProcessId,
        message: &P::Message,
        tag: &u64,
    ) {
        if let Some(observer) = self {
            observer.before_step(now, at, InputView::Message(from, message), *tag);
        }
    }
    fn on_effect(&mut self, now: Time, at: ProcessId, effect: &Effect<P>) -> u64 {
        self.as_mut().map_or(0, |observer| observer.on_effect(now, at, effect.view()))
    }
    fn on_send(&mut self, now: Time, at: ProcessId, to: ProcessId, message: &P::Message) -> u64 {
        let sent = EffectView::Send(to, message);
        self.as_mut().map_or(0, |observer| observer.on_effect(now, at, sent))
    }
    fn on_draw(&mut self, drawn: u32) {
        if let Some(observer) = self {
            observer.on_draw(drawn);
        }
    }
    fn after_step(&mut self, now: Time, at: ProcessId, process: &P) {
        if let Some(observer) = self {
            observer.after_step(now, at, process);
        }
    }
    fn on_lost(&mut self, now: Time, _from: ProcessId, _to: ProcessId, tag: &u64) {
        if let Some(observer) = self {
            observer.on_lost(now, *tag);
        }
    }
    fn on_duplicated(&mut self, now: Time, tag: &u64) {
        if let Some(observer) = self {
            observer.on_duplicated(now, *tag);
        }
    }
    fn on_app_message(&mut self, now: Time, from: ProcessId, to: ProcessId) -> u64 {
        self.as_mut().map_or(0, |observer| observer.on_app_message(now, from, to))
    }
    fn on_incident(&mut self, now: Time, incident: &Incident) {
        if let Some(observer) = self {
            observer.on_incident(now, incident);
        }
    }
}

/// An event outside all steps.
#[derive(Clone, PartialEq, Debug)]
pub enum Incident {
    /// A process crashes.
    Crash(ProcessId),
    /// A process restarts.
    Restart(ProcessId, Memory),
    /// A process pauses.
    Pause(ProcessId),
    /// A process resumes.
    Resume(ProcessId),
    /// A channel is cut, a link breaks, or a partition begins.
    Cut(String),
    /// A cut, a break or a partition ends.
    Heal(String),
    /// A property is violated.
    Violation {
        /// Its name.
        property: &'static str,
        /// The unexpected event, in words.
        detail: String,
    },
}
