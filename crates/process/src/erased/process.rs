//! A process without its type.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{AnyData, AnyTimer, Data, FOREIGN, OrderedData};
use crate::{Context, Effect, Host, Input, Inspect, Process, ProcessId};

/// A process that can be recorded: its messages, requests, indications, timers and records are [`Data`].
pub trait Recordable:
    Inspect<Message: Data, Request: Data, Timer: OrderedData, Record: Data, Indication: Data> + Data
{
}

impl<P> Recordable for P where
    P: Inspect<Message: Data, Request: Data, Timer: OrderedData, Record: Data, Indication: Data>
        + Data
{
}

/// A process whose type can be erased: its recorded data can also be read again.
pub trait Portable:
    Recordable<
        Message: DeserializeOwned,
        Request: DeserializeOwned,
        Timer: DeserializeOwned,
        Record: DeserializeOwned,
    >
{
}

impl<P> Portable for P where
    P: Recordable<
            Message: DeserializeOwned,
            Request: DeserializeOwned,
            Timer: DeserializeOwned,
            Record: DeserializeOwned,
        >
{
}

/// A process of any algorithm.
pub struct AnyProcess(Box<dyn Object>);

/// The operations of worlds on a process.
trait Object: Data {
    fn copy(&self) -> Box<dyn Object>;
    fn react(&mut self, input: Input<AnyProcess>, ctx: &mut Context<'_, AnyProcess>);
    fn stamp(&self) -> u64;
    fn at_rest(&self) -> bool;
    fn tokens(&self) -> usize;
    fn parent(&self) -> Option<ProcessId>;
    fn decode_message<'a>(&self, bytes: &'a [u8]) -> postcard::Result<(AnyData, &'a [u8])>;
    fn read_message(&self, json: &Value) -> serde_json::Result<AnyData>;
    fn read_request(&self, json: &Value) -> serde_json::Result<AnyData>;
    fn read_record(&self, json: &Value) -> serde_json::Result<AnyData>;
    fn read_timer(&self, json: &Value) -> serde_json::Result<AnyTimer>;
}

impl<P: Portable> Object for P {
    fn copy(&self) -> Box<dyn Object> {
        Box::new(self.clone())
    }
    fn react(&mut self, input: Input<AnyProcess>, ctx: &mut Context<'_, AnyProcess>) {
        let (me, group) = (ctx.me(), ctx.group());
        let mut host = Seam(ctx);
        let ctx = &mut Context::new(me, group, &mut host);
        match input {
            Input::Start => self.on_start(ctx),
            Input::Recover(saved) => self.on_recover(saved.map(AnyData::take), ctx),
            Input::Request(request) => self.on_request(request.take(), ctx),
            Input::Message { from, message } => self.on_message(from, message.take(), ctx),
            Input::Timer(timer) => self.on_timer(timer.get::<P::Timer>().clone(), ctx),
            Input::Suspect(peer) => self.on_suspect(peer, ctx),
            Input::Trust(peer) => self.on_trust(peer, ctx),
            Input::Stamp { from, stamp } => self.on_stamp(from, stamp),
        }
    }
    fn stamp(&self) -> u64 {
        Inspect::stamp(self)
    }
    fn at_rest(&self) -> bool {
        Inspect::at_rest(self)
    }
    fn tokens(&self) -> usize {
        Inspect::tokens(self)
    }
    fn parent(&self) -> Option<ProcessId> {
        Inspect::parent(self)
    }
    // Two formats, each with its own code: generic deserialisation would need several times as much code.
    fn decode_message<'a>(&self, bytes: &'a [u8]) -> postcard::Result<(AnyData, &'a [u8])> {
        postcard::take_from_bytes::<P::Message>(bytes).map(|(m, rest)| (AnyData::new(m), rest))
    }
    fn read_message(&self, json: &Value) -> serde_json::Result<AnyData> {
        serde::Deserialize::deserialize(json).map(|message: P::Message| AnyData::new(message))
    }
    fn read_request(&self, json: &Value) -> serde_json::Result<AnyData> {
        serde::Deserialize::deserialize(json).map(|request: P::Request| AnyData::new(request))
    }
    fn read_record(&self, json: &Value) -> serde_json::Result<AnyData> {
        serde::Deserialize::deserialize(json).map(|record: P::Record| AnyData::new(record))
    }
    fn read_timer(&self, json: &Value) -> serde_json::Result<AnyTimer> {
        serde::Deserialize::deserialize(json).map(|timer: P::Timer| AnyTimer::new(timer))
    }
}

/// Passes the effects of a typed process to a host for processes of any type.
struct Seam<'a, 'b>(&'a mut Context<'b, AnyProcess>);

impl<P: Recordable> Host<P> for Seam<'_, '_> {
    fn perform(&mut self, effect: Effect<P>) {
        self.0.perform(match effect {
            Effect::Send { to, message } => Effect::Send { to, message: AnyData::new(message) },
            Effect::SetTimer { timer, after } => {
                Effect::SetTimer { timer: AnyTimer::new(timer), after }
            }
            Effect::CancelTimer { timer } => Effect::CancelTimer { timer: AnyTimer::new(timer) },
            Effect::Indicate(indication) => Effect::Indicate(AnyData::new(indication)),
            Effect::Save(record) => Effect::Save(AnyData::new(record)),
            Effect::Unexpected(what) => Effect::Unexpected(what),
        });
    }
    fn choose(&mut self, bound: u32) -> u32 {
        self.0.choose(bound)
    }
}

impl AnyProcess {
    /// `process` without its type.
    pub fn new(process: impl Portable) -> Self {
        Self(Box::new(process))
    }

    /// The process, of which the caller knows the type.
    pub fn get<P: 'static>(&self) -> &P {
        (&*self.0 as &dyn Any).downcast_ref().expect(FOREIGN)
    }

    /// Decodes a message of this process's algorithm, encoded with postcard; returns also the bytes behind it.
    pub fn decode_message<'a>(&self, bytes: &'a [u8]) -> postcard::Result<(AnyData, &'a [u8])> {
        self.0.decode_message(bytes)
    }

    /// Reads a recorded message of this process's algorithm.
    pub fn read_message(&self, json: &Value) -> serde_json::Result<AnyData> {
        self.0.read_message(json)
    }

    /// Reads a recorded request of this process's algorithm.
    pub fn read_request(&self, json: &Value) -> serde_json::Result<AnyData> {
        self.0.read_request(json)
    }

    /// Reads a recorded record of this process's algorithm.
    pub fn read_record(&self, json: &Value) -> serde_json::Result<AnyData> {
        self.0.read_record(json)
    }

    /// Reads the recorded name of a timer of this process's algorithm.
    pub fn read_timer(&self, json: &Value) -> serde_json::Result<AnyTimer> {
        self.0.read_timer(json)
    }
}

impl Process for AnyProcess {
    type Message = AnyData;
    type Timer = AnyTimer;
    type Request = AnyData;
    type Indication = AnyData;
    type Record = AnyData;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.handle(Input::Start, ctx);
    }
    fn on_recover(&mut self, saved: Option<AnyData>, ctx: &mut Context<'_, Self>) {
        self.handle(Input::Recover(saved), ctx);
    }
    fn on_request(&mut self, request: AnyData, ctx: &mut Context<'_, Self>) {
        self.handle(Input::Request(request), ctx);
    }
    fn on_message(&mut self, from: ProcessId, message: AnyData, ctx: &mut Context<'_, Self>) {
        self.handle(Input::Message { from, message }, ctx);
    }
    fn on_timer(&mut self, timer: AnyTimer, ctx: &mut Context<'_, Self>) {
        self.handle(Input::Timer(timer), ctx);
    }
    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.handle(Input::Suspect(peer), ctx);
    }
    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.handle(Input::Trust(peer), ctx);
    }
}

impl Inspect for AnyProcess {
    fn handle(&mut self, input: Input<Self>, ctx: &mut Context<'_, Self>) {
        self.0.react(input, ctx);
    }
    fn stamp(&self) -> u64 {
        self.0.stamp()
    }
    fn at_rest(&self) -> bool {
        self.0.at_rest()
    }
    fn tokens(&self) -> usize {
        self.0.tokens()
    }
    fn parent(&self) -> Option<ProcessId> {
        self.0.parent()
    }
}

impl Clone for AnyProcess {
    fn clone(&self) -> Self {
        Self(self.0.copy())
    }
}

impl PartialEq for AnyProcess {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&*other.0)
    }
}

impl Eq for AnyProcess {}

impl Hash for AnyProcess {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_into(state);
    }
}

impl fmt::Debug for AnyProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Serialize for AnyProcess {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        erased_serde::serialize(&*self.0 as &dyn erased_serde::Serialize, serializer)
    }
}
