//! Who watches a run.

use konklave_process::{
    Data, Effect, EffectView, Input, InputView, Process, ProcessId, Recordable,
};

use crate::{Memory, Time};

/// Watches a run. `()` watches nothing and costs nothing.
pub trait Observer<P: Process> {
    /// What it sends along with each message, to know it again.
    type Tag: Clone + Default;

    /// A step begins.
    fn before_step(&mut self, _now: Time, _at: ProcessId, _input: &Input<P>, _tag: &Self::Tag) {}
    /// A step begins with the receipt of a message: one of the inputs, and in most runs most of them.
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
    /// The process does something; the answer travels with the message, if it is one.
    fn on_effect(&mut self, _now: Time, _at: ProcessId, _effect: &Effect<P>) -> Self::Tag {
        Self::Tag::default()
    }
    /// The process sends: one of the effects, and in most runs most of them.
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
    /// A step is over.
    fn after_step(&mut self, _now: Time, _at: ProcessId, _process: &P) {}
    /// A message will not arrive.
    fn on_lost(&mut self, _now: Time, _from: ProcessId, _to: ProcessId, _tag: &Self::Tag) {}
    /// A message will arrive twice.
    fn on_duplicated(&mut self, _now: Time, _tag: &Self::Tag) {}
    /// A message of the application leaves.
    fn on_app_message(&mut self, _now: Time, _from: ProcessId, _to: ProcessId) -> Self::Tag {
        Self::Tag::default()
    }
    /// Something happened to the world.
    fn on_incident(&mut self, _now: Time, _incident: &Incident) {}
}

impl<P: Process> Observer<P> for () {
    type Tag = ();

    // Nothing of an input is put together for nobody.
    #[inline]
    fn before_message(&mut self, _: Time, _: ProcessId, _: ProcessId, _: &P::Message, (): &()) {}

    #[inline]
    fn on_send(&mut self, _: Time, _: ProcessId, _: ProcessId, _: &P::Message) {}
}

/// Watches a run of any algorithm. Messages have numbers, not 0, by which it knows them again.
pub trait AnyObserver {
    /// A step begins; `id` is the number of the message that arrives, or 0.
    fn before_step(&mut self, now: Time, at: ProcessId, input: InputView<'_>, id: u64);
    /// The process does something: the number of the message if it sends one, else 0.
    fn on_effect(&mut self, now: Time, at: ProcessId, effect: EffectView<'_>) -> u64;
    /// The process drew a number.
    fn on_draw(&mut self, drawn: u32);
    /// A step is over.
    fn after_step(&mut self, now: Time, at: ProcessId, process: &dyn Data);
    /// Message `id` will not arrive.
    fn on_lost(&mut self, now: Time, id: u64);
    /// Message `id` will arrive twice.
    fn on_duplicated(&mut self, now: Time, id: u64);
    /// A message of the application leaves: its number.
    fn on_app_message(&mut self, now: Time, from: ProcessId, to: ProcessId) -> u64;
    /// Something happened to the world.
    fn on_incident(&mut self, now: Time, incident: &Incident);
}

/// What an observer without types needs of one that has them. The simulator is compiled for each algorithm and
/// each type of observer: with this one type for all it is compiled once for each algorithm.
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

/// Something that happens to the world rather than in a step.
#[derive(Clone, PartialEq, Debug)]
pub enum Incident {
    /// A process stops.
    Crash(ProcessId),
    /// A process comes up again, or wakes.
    Restart(ProcessId, Memory),
    /// A process sleeps.
    Pause(ProcessId),
    /// A process wakes.
    Resume(ProcessId),
    /// Links or sides are cut off.
    Cut(String),
    /// They are joined again.
    Heal(String),
    /// A property broke.
    Violation {
        /// Its name.
        property: &'static str,
        /// What happened.
        detail: String,
    },
}
