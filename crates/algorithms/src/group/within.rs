//! A choice among algorithms of one problem that run inside a view, as one type. So the layers around it are compiled
//! once, however many algorithms there are.

use konklave_process::{Context, Effect, Host, Input, Inspect, NoRecord, NoTimer, Process};

/// Declares the choice: a process and its messages for each algorithm.
macro_rules! any {
    ($request:ty => $indication:ty; $($name:literal $variant:ident $module:ident $doc:literal;)*) => {
        /// A process of the algorithm that was chosen.
        #[derive(Clone, PartialEq, Eq, Hash, Debug, serde::Serialize)]
        pub enum Any {
            $(#[doc = $doc] $variant($module::$variant),)*
        }

        /// A message of the algorithm that was chosen.
        #[derive(Clone, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
        pub enum AnyMessage {
            $(#[doc = $doc] $variant($module::Message),)*
        }

        /// The names of the algorithms.
        pub const NAMES: &[&str] = &[$($name),*];

        impl Any {
            /// The process `me` of the algorithm `name`, if it is one of them.
            pub fn named(
                name: &str,
                me: konklave_process::ProcessId,
                setup: &$crate::Setup,
            ) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant($crate::Algorithm::new(me, setup))),)*
                    _ => None,
                }
            }

            /// The form of the links that the algorithm `name` needs, if it is one of them.
            pub fn shape(name: &str) -> Option<konklave_process::topology::Shape> {
                match name {
                    $($name => {
                        let sheet = <$module::$variant as $crate::Algorithm>::SHEET;
                        sheet.topologies.first().copied()
                    })*
                    _ => None,
                }
            }
        }

        impl konklave_process::Process for Any {
            type Message = AnyMessage;
            type Timer = konklave_process::NoTimer;
            type Request = $request;
            type Indication = $indication;
            type Record = konklave_process::NoRecord;

            fn on_request(
                &mut self,
                request: $request,
                ctx: &mut konklave_process::Context<'_, Self>,
            ) {
                match self {
                    $(Self::$variant(p) => {
                        let input = konklave_process::Input::Request(request);
                        $crate::group::within::step(p, input, AnyMessage::$variant, ctx);
                    })*
                }
            }

            fn on_message(
                &mut self,
                from: konklave_process::ProcessId,
                message: AnyMessage,
                ctx: &mut konklave_process::Context<'_, Self>,
            ) {
                match (self, message) {
                    $((Self::$variant(p), AnyMessage::$variant(message)) => {
                        let input = konklave_process::Input::Message { from, message };
                        $crate::group::within::step(p, input, AnyMessage::$variant, ctx);
                    })*
                    _ => ctx.unexpected("a message of another algorithm"),
                }
            }
        }

        impl konklave_process::Inspect for Any {
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

pub(super) use any;

/// One step of the chosen process; `wrap` makes its messages those of the host.
pub(super) fn step<P, U>(
    process: &mut P,
    input: Input<P>,
    wrap: fn(P::Message) -> U::Message,
    ctx: &mut Context<'_, U>,
) where
    P: Inspect<Indication = U::Indication, Timer = NoTimer, Record = NoRecord>,
    U: Process,
{
    let mut within = Within { upper: ctx, wrap };
    let (me, group) = (within.upper.me(), within.upper.group());
    process.handle(input, &mut Context::new(me, group, &mut within));
}

/// Passes the effects of the chosen process on.
struct Within<'a, 'b, U: Process, M> {
    upper: &'a mut Context<'b, U>,
    wrap: fn(M) -> U::Message,
}

impl<P, U> Host<P> for Within<'_, '_, U, P::Message>
where
    P: Inspect<Indication = U::Indication, Timer = NoTimer, Record = NoRecord>,
    U: Process,
{
    fn perform(&mut self, effect: Effect<P>) {
        match effect {
            Effect::Send { to, message } => self.upper.send(to, (self.wrap)(message)),
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
