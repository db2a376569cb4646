//! The interface through which a process acts on its host.

use std::time::Duration;

use smallvec::SmallVec;

use crate::{Effect, Group, Process, ProcessId};

/// A host carries out the effects of a process. The simulator, the checker and the network each have one.
pub trait Host<P: Process> {
    /// Carries out one effect. Effects are carried out in their order.
    fn perform(&mut self, effect: Effect<P>);
    /// Sends a message. This is by far the most frequent effect, so a host may override it with a faster path.
    #[inline]
    fn send(&mut self, to: ProcessId, message: P::Message) {
        self.perform(Effect::Send { to, message });
    }
    /// A number below `bound`: drawn from the seed, or, in the checker, each in turn.
    fn choose(&mut self, bound: u32) -> u32;
}

/// A process's view of its host during one step.
pub struct Context<'a, P: Process> {
    me: ProcessId,
    group: &'a Group,
    host: &'a mut dyn Host<P>,
}

impl<'a, P: Process> Context<'a, P> {
    /// The view that `host` gives to process `me`.
    #[inline]
    pub fn new(me: ProcessId, group: &'a Group, host: &'a mut dyn Host<P>) -> Self {
        Self { me, group, host }
    }

    /// The id of this process.
    #[inline]
    pub fn me(&self) -> ProcessId {
        self.me
    }

    /// The group of this process.
    #[inline]
    pub fn group(&self) -> &'a Group {
        self.group
    }

    /// The number of members.
    #[inline]
    pub fn group_size(&self) -> usize {
        self.group.len()
    }

    /// All members but this process, in node order.
    pub fn others(&self) -> impl Iterator<Item = ProcessId> + use<'a, P> {
        let me = self.me;
        self.group.members().iter().copied().filter(move |&p| p != me)
    }

    /// Sends `message` to `to`.
    #[inline]
    pub fn send(&mut self, to: ProcessId, message: P::Message) {
        self.host.send(to, message);
    }

    /// Sends `message` to all members but this process.
    pub fn send_to_others(&mut self, message: P::Message) {
        for to in self.others() {
            self.send(to, message.clone());
        }
    }

    /// Starts `timer`, or restarts it if it runs.
    pub fn set_timer(&mut self, timer: P::Timer, after: Duration) {
        self.host.perform(Effect::SetTimer { timer, after });
    }

    /// Stops `timer`, if it runs.
    pub fn cancel_timer(&mut self, timer: P::Timer) {
        self.host.perform(Effect::CancelTimer { timer });
    }

    /// Gives an indication to the client.
    #[inline]
    pub fn indicate(&mut self, indication: P::Indication) {
        self.host.perform(Effect::Indicate(indication));
    }

    /// Writes `record` to stable storage, before any later effect.
    pub fn save(&mut self, record: P::Record) {
        self.host.perform(Effect::Save(record));
    }

    /// Reports an input that the algorithm's assumptions rule out.
    pub fn unexpected(&mut self, what: &'static str) {
        self.host.perform(Effect::Unexpected(what));
    }

    /// Has an effect.
    pub(crate) fn perform(&mut self, effect: Effect<P>) {
        self.host.perform(effect);
    }

    /// A number below `bound`.
    pub fn choose(&mut self, bound: u32) -> u32 {
        self.host.choose(bound)
    }

    /// Runs one step of the layer below. Its messages, timers and records travel inside those of this layer;
    /// its indications are returned to the caller.
    pub fn below<L>(&mut self, step: impl FnOnce(&mut Context<'_, L>)) -> Indications<L>
    where
        L: Process,
        P: Process<
                Message: From<L::Message>,
                Timer: From<L::Timer>,
                Record: From<<L as Process>::Record>,
            >,
    {
        let mut below = Below { upper: &mut *self.host, indications: SmallVec::new() };
        step(&mut Context::new(self.me, self.group, &mut below));
        below.indications
    }
}

/// The indications of a lower layer during one step.
pub type Indications<L> = SmallVec<[<L as Process>::Indication; 2]>;

/// The host of the layer below: converts its effects into those of the layer above.
struct Below<'a, U: Process, L: Process> {
    upper: &'a mut dyn Host<U>,
    indications: Indications<L>,
}

impl<U, L> Host<L> for Below<'_, U, L>
where
    L: Process,
    U: Process<Message: From<L::Message>, Timer: From<L::Timer>, Record: From<L::Record>>,
{
    fn perform(&mut self, effect: Effect<L>) {
        self.upper.perform(match effect {
            Effect::Send { to, message } => Effect::Send { to, message: message.into() },
            Effect::SetTimer { timer, after } => Effect::SetTimer { timer: timer.into(), after },
            Effect::CancelTimer { timer } => Effect::CancelTimer { timer: timer.into() },
            Effect::Save(record) => Effect::Save(record.into()),
            Effect::Unexpected(what) => Effect::Unexpected(what),
            Effect::Indicate(indication) => return self.indications.push(indication),
        });
    }

    fn send(&mut self, to: ProcessId, message: L::Message) {
        self.upper.send(to, message.into());
    }

    fn choose(&mut self, bound: u32) -> u32 {
        self.upper.choose(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, NoRecord};

    /// A lower layer: sends the number requested, and indicates each number received.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Lower;

    impl Process for Lower {
        type Message = u32;
        type Timer = ();
        type Request = u32;
        type Indication = u32;
        type Record = NoRecord;

        fn on_request(&mut self, number: u32, ctx: &mut Context<'_, Self>) {
            let drawn = ctx.choose(10);
            ctx.send(ProcessId(1), number + drawn);
            ctx.set_timer((), Duration::from_secs(1));
        }
        fn on_message(&mut self, _: ProcessId, number: u32, ctx: &mut Context<'_, Self>) {
            ctx.cancel_timer(());
            ctx.indicate(number);
            ctx.indicate(number + 1);
        }
    }

    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Upper(Lower);

    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    enum Message {
        Own,
        Lower(u32),
    }

    impl From<u32> for Message {
        fn from(number: u32) -> Self {
            Self::Lower(number)
        }
    }

    impl Process for Upper {
        type Message = Message;
        type Timer = ();
        type Request = u32;
        type Indication = Vec<u32>;
        type Record = NoRecord;

        fn on_request(&mut self, number: u32, ctx: &mut Context<'_, Self>) {
            ctx.send(ProcessId(0), Message::Own);
            let told = ctx.below(|ctx| self.0.on_request(number, ctx));
            assert!(told.is_empty());
        }
        fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
            if let Message::Lower(number) = message {
                let told = ctx.below(|ctx| self.0.on_message(from, number, ctx));
                ctx.indicate(told.to_vec());
            }
        }
    }

    struct Notes(Vec<Effect<Upper>>);

    impl Host<Upper> for Notes {
        fn perform(&mut self, effect: Effect<Upper>) {
            self.0.push(effect);
        }
        fn choose(&mut self, _bound: u32) -> u32 {
            7
        }
    }

    impl crate::Inspect for Upper {}

    fn step(input: Input<Upper>) -> Vec<Effect<Upper>> {
        let (group, mut notes) = (Group::of(2), Notes(Vec::new()));
        crate::Inspect::handle(
            &mut Upper(Lower),
            input,
            &mut Context::new(ProcessId(0), &group, &mut notes),
        );
        notes.0
    }

    #[test]
    fn effects_of_the_lower_layer_travel_inside_those_of_the_upper_one() {
        let second = Duration::from_secs(1);
        assert_eq!(
            step(Input::Request(5)),
            [
                Effect::Send { to: ProcessId(0), message: Message::Own },
                Effect::Send { to: ProcessId(1), message: Message::Lower(12) },
                Effect::SetTimer { timer: (), after: second },
            ]
        );
    }

    #[test]
    fn indications_of_the_lower_layer_are_returned_to_the_caller() {
        let heard = Input::Message { from: ProcessId(1), message: Message::Lower(3) };
        let expected = [Effect::CancelTimer { timer: () }, Effect::Indicate(vec![3, 4])];
        assert_eq!(step(heard), expected);
    }
}
