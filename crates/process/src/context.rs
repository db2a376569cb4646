//! What a process acts through.

use std::time::Duration;

use smallvec::SmallVec;

use crate::{Effect, Group, Process, ProcessId};

/// What a host does for a process: the simulator, the checker and the network each have one.
pub trait Host<P: Process> {
    /// Carries out one effect, after all those before it.
    fn perform(&mut self, effect: Effect<P>);
    /// Sends a message: the effect that all time goes into, so a host may have a short way for it.
    #[inline]
    fn send(&mut self, to: ProcessId, message: P::Message) {
        self.perform(Effect::Send { to, message });
    }
    /// A number below `bound`: drawn from the seed, or each in turn when every run is explored.
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

    /// Our own id.
    #[inline]
    pub fn me(&self) -> ProcessId {
        self.me
    }

    /// The group we are a member of.
    #[inline]
    pub fn group(&self) -> &'a Group {
        self.group
    }

    /// How many we are.
    #[inline]
    pub fn group_size(&self) -> usize {
        self.group.len()
    }

    /// Everyone but us, in the order of the group.
    pub fn others(&self) -> impl Iterator<Item = ProcessId> + use<'a, P> {
        let me = self.me;
        self.group.members().iter().copied().filter(move |&p| p != me)
    }

    /// Sends `message` to `to`.
    #[inline]
    pub fn send(&mut self, to: ProcessId, message: P::Message) {
        self.host.send(to, message);
    }

    /// Sends `message` to everyone but us.
    pub fn send_to_others(&mut self, message: P::Message) {
        for to in self.others() {
            self.send(to, message.clone());
        }
    }

    /// Starts `timer`, or starts it anew if it runs.
    pub fn set_timer(&mut self, timer: P::Timer, after: Duration) {
        self.host.perform(Effect::SetTimer { timer, after });
    }

    /// Stops `timer`, if it runs.
    pub fn cancel_timer(&mut self, timer: P::Timer) {
        self.host.perform(Effect::CancelTimer { timer });
    }

    /// Tells the application.
    #[inline]
    pub fn indicate(&mut self, indication: P::Indication) {
        self.host.perform(Effect::Indicate(indication));
    }

    /// Writes `record` to stable storage before anything that follows.
    pub fn save(&mut self, record: P::Record) {
        self.host.perform(Effect::Save(record));
    }

    /// Reports an input that our assumptions rule out.
    pub fn unexpected(&mut self, what: &'static str) {
        self.host.perform(Effect::Unexpected(what));
    }

    /// Does something, as the layer above says it.
    pub(crate) fn perform(&mut self, effect: Effect<P>) {
        self.host.perform(effect);
    }

    /// A number below `bound`.
    pub fn choose(&mut self, bound: u32) -> u32 {
        self.host.choose(bound)
    }

    /// Runs one step of the layer below. Its messages, timers and records travel inside ours; what
    /// it indicates comes back to the caller.
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

/// What a lower layer told the layer above during one step.
pub type Indications<L> = SmallVec<[<L as Process>::Indication; 2]>;

/// The host of the layer below: lifts its effects into those of the layer above.
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

    /// Echoes, and tells after a second.
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
    fn what_the_layer_below_does_travels_inside_what_we_do() {
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
    fn what_it_indicates_comes_back_to_the_caller() {
        let heard = Input::Message { from: ProcessId(1), message: Message::Lower(3) };
        let expected = [Effect::CancelTimer { timer: () }, Effect::Indicate(vec![3, 4])];
        assert_eq!(step(heard), expected);
    }
}
