//! One of the built-in algorithms, chosen when the group is built.

use konklave_process::{
    Context, Effect, Host, Input, Inspect, NoRecord, NoTimer, Process, ProcessId,
};
use serde::{Deserialize, Serialize};

use super::Inner;
use crate::mutex::{
    Indication, Request, central, lamport, maekawa, naimi_trehel, raymond, ricart_agrawala,
    suzuki_kasami,
};
use crate::{Algorithm, Setup};

/// Declares the choice: a process and its messages for each algorithm.
macro_rules! any {
    ($($name:literal $variant:ident $module:ident $doc:literal;)*) => {
        /// A process of the algorithm that was chosen.
        #[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
        pub enum Any {
            $(#[doc = $doc] $variant($module::$variant),)*
        }

        /// A message of the algorithm that was chosen.
        #[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        pub enum AnyMessage {
            $(#[doc = $doc] $variant($module::Message),)*
        }

        $(impl From<$module::Message> for AnyMessage {
            fn from(message: $module::Message) -> Self {
                Self::$variant(message)
            }
        })*

        /// The names of the algorithms, the default first.
        pub const NAMES: &[&str] = &[$($name),*];

        impl Inner for Any {
            fn build(me: ProcessId, setup: &Setup) -> Self {
                let chosen = setup.chosen.get("mutex").map_or(NAMES[0], String::as_str);
                match chosen {
                    $($name => Self::$variant(Algorithm::new(me, setup)),)*
                    _ => Self::NaimiTrehel(Algorithm::new(me, setup)),
                }
            }
        }

        impl Process for Any {
            type Message = AnyMessage;
            type Timer = NoTimer;
            type Request = Request;
            type Indication = Indication;
            type Record = NoRecord;

            fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
                match self {
                    $(Self::$variant(p) => step(p, Input::Request(request), ctx),)*
                }
            }

            fn on_message(
                &mut self,
                from: ProcessId,
                message: AnyMessage,
                ctx: &mut Context<'_, Self>,
            ) {
                match (self, message) {
                    $((Self::$variant(p), AnyMessage::$variant(message)) => {
                        step(p, Input::Message { from, message }, ctx);
                    })*
                    _ => ctx.unexpected("a message of another algorithm"),
                }
            }
        }

        impl Inspect for Any {
            fn at_rest(&self) -> bool {
                match self {
                    $(Self::$variant(p) => p.at_rest(),)*
                }
            }

            fn tokens(&self) -> usize {
                match self {
                    $(Self::$variant(p) => p.tokens(),)*
                }
            }
        }
    };
}

any! {
    "naimi-trehel" NaimiTrehel naimi_trehel "Naimi–Tréhel.";
    "suzuki-kasami" SuzukiKasami suzuki_kasami "Suzuki–Kasami.";
    "raymond" Raymond raymond "Raymond.";
    "ricart-agrawala" RicartAgrawala ricart_agrawala "Ricart–Agrawala.";
    "maekawa" Maekawa maekawa "Maekawa.";
    "lamport" Lamport lamport "Lamport.";
    "central" Central central "A central coordinator.";
}

/// One step of the chosen process.
fn step<P>(process: &mut P, input: Input<P>, ctx: &mut Context<'_, Any>)
where
    P: Inspect<Indication = Indication, Timer = NoTimer, Record = NoRecord>,
    AnyMessage: From<P::Message>,
{
    let mut within = Within { upper: ctx };
    let (me, group) = (within.upper.me(), within.upper.group());
    process.handle(input, &mut Context::new(me, group, &mut within));
}

/// Passes the effects of the chosen process on.
struct Within<'a, 'b> {
    upper: &'a mut Context<'b, Any>,
}

impl<P> Host<P> for Within<'_, '_>
where
    P: Process<Indication = Indication, Timer = NoTimer, Record = NoRecord>,
    AnyMessage: From<P::Message>,
{
    fn perform(&mut self, effect: Effect<P>) {
        match effect {
            Effect::Send { to, message } => self.upper.send(to, message.into()),
            Effect::Indicate(indication) => self.upper.indicate(indication),
            Effect::Unexpected(what) => self.upper.unexpected(what),
            Effect::SetTimer { timer, .. } | Effect::CancelTimer { timer } => match timer {},
            Effect::Save(record) => match record {},
        }
    }

    fn choose(&mut self, bound: u32) -> u32 {
        self.upper.choose(bound)
    }
}
