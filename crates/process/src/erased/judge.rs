//! Judges without their types.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use super::{AnyData, AnyProcess, AnyTag, Data, FOREIGN, Recordable};
use crate::{End, Monitor, ProcessId, Verdict};

/// The judges of any problem.
pub struct AnyMonitor(Box<dyn Object>);

trait Object: fmt::Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn copy(&self) -> Box<dyn Object>;
    fn is_same(&self, other: &dyn Object) -> bool;
    fn hash_into(&self, hasher: &mut dyn Hasher);
    fn on_request(&mut self, at: ProcessId, request: &AnyData) -> Verdict;
    fn on_indication(&mut self, at: ProcessId, indication: &AnyData) -> Verdict;
    fn on_send(&mut self, from: ProcessId, message: Option<&AnyData>) -> AnyTag;
    fn on_receive(&mut self, at: ProcessId, message: Option<&AnyData>, tag: &AnyTag) -> Verdict;
    fn on_lost(&mut self, message: &AnyData);
    fn on_duplicated(&mut self, message: &AnyData);
    fn on_crash(&mut self, at: ProcessId);
    fn on_restart(&mut self, at: ProcessId);
    fn on_break(&mut self, one: ProcessId, other: ProcessId);
    fn on_mend(&mut self, one: ProcessId, other: ProcessId);
    fn after_step(&mut self, at: ProcessId, process: &AnyProcess) -> Verdict;
    fn judges_every_step(&self) -> bool;
    fn view(&self, process: &AnyProcess) -> Option<u64>;
    fn remembers_messages(&self) -> bool;
    fn at_end(&self, end: &End) -> Verdict;
}

/// Judges of processes of type `P`.
struct Typed<P, M>(M, PhantomData<fn(P)>);

impl<P, M> Object for Typed<P, M>
where
    P: Recordable,
    M: Monitor<P, Tag: Data> + Send + Sync + 'static,
{
    fn as_any(&self) -> &dyn Any {
        &self.0
    }
    fn copy(&self) -> Box<dyn Object> {
        Box::new(Self(self.0.clone(), PhantomData))
    }
    fn is_same(&self, other: &dyn Object) -> bool {
        self.0 == *other.as_any().downcast_ref::<M>().expect(FOREIGN)
    }
    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.0.hash(&mut hasher);
    }
    fn on_request(&mut self, at: ProcessId, request: &AnyData) -> Verdict {
        self.0.on_request(at, request.get())
    }
    fn on_indication(&mut self, at: ProcessId, indication: &AnyData) -> Verdict {
        self.0.on_indication(at, indication.get())
    }
    fn on_send(&mut self, from: ProcessId, message: Option<&AnyData>) -> AnyTag {
        AnyTag::new(self.0.on_send(from, message.map(AnyData::get)))
    }
    fn on_receive(&mut self, at: ProcessId, message: Option<&AnyData>, tag: &AnyTag) -> Verdict {
        tag.with(|tag| self.0.on_receive(at, message.map(AnyData::get), tag))
    }
    fn on_lost(&mut self, message: &AnyData) {
        self.0.on_lost(message.get());
    }
    fn on_duplicated(&mut self, message: &AnyData) {
        self.0.on_duplicated(message.get());
    }
    fn on_crash(&mut self, at: ProcessId) {
        self.0.on_crash(at);
    }
    fn on_restart(&mut self, at: ProcessId) {
        self.0.on_restart(at);
    }
    fn on_break(&mut self, one: ProcessId, other: ProcessId) {
        self.0.on_break(one, other);
    }
    fn on_mend(&mut self, one: ProcessId, other: ProcessId) {
        self.0.on_mend(one, other);
    }
    fn after_step(&mut self, at: ProcessId, process: &AnyProcess) -> Verdict {
        self.0.after_step(at, process.get())
    }
    fn judges_every_step(&self) -> bool {
        self.0.judges_every_step()
    }
    fn view(&self, process: &AnyProcess) -> Option<u64> {
        self.0.view(process.get())
    }
    fn remembers_messages(&self) -> bool {
        self.0.remembers_messages()
    }
    fn at_end(&self, end: &End) -> Verdict {
        self.0.at_end(end)
    }
}

impl<P, M: fmt::Debug> fmt::Debug for Typed<P, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl AnyMonitor {
    /// `monitor`, the judges of processes of type `P`, without its type.
    pub fn new<P: Recordable>(monitor: impl Monitor<P, Tag: Data> + Send + Sync + 'static) -> Self {
        Self(Box::new(Typed::<P, _>(monitor, PhantomData)))
    }

    /// The judges, of which the caller knows the type.
    pub fn get<M: 'static>(&self) -> &M {
        self.0.as_any().downcast_ref().expect(FOREIGN)
    }
}

impl Monitor<AnyProcess> for AnyMonitor {
    type Tag = AnyTag;

    fn on_request(&mut self, at: ProcessId, request: &AnyData) -> Verdict {
        self.0.on_request(at, request)
    }
    fn on_indication(&mut self, at: ProcessId, indication: &AnyData) -> Verdict {
        self.0.on_indication(at, indication)
    }
    fn on_send(&mut self, from: ProcessId, message: Option<&AnyData>) -> AnyTag {
        self.0.on_send(from, message)
    }
    fn on_receive(&mut self, at: ProcessId, message: Option<&AnyData>, tag: &AnyTag) -> Verdict {
        self.0.on_receive(at, message, tag)
    }
    fn on_lost(&mut self, message: &AnyData) {
        self.0.on_lost(message);
    }
    fn on_duplicated(&mut self, message: &AnyData) {
        self.0.on_duplicated(message);
    }
    fn on_crash(&mut self, at: ProcessId) {
        self.0.on_crash(at);
    }
    fn on_restart(&mut self, at: ProcessId) {
        self.0.on_restart(at);
    }
    fn on_break(&mut self, one: ProcessId, other: ProcessId) {
        self.0.on_break(one, other);
    }
    fn on_mend(&mut self, one: ProcessId, other: ProcessId) {
        self.0.on_mend(one, other);
    }
    fn after_step(&mut self, at: ProcessId, process: &AnyProcess) -> Verdict {
        self.0.after_step(at, process)
    }
    fn judges_every_step(&self) -> bool {
        self.0.judges_every_step()
    }
    fn view(&self, process: &AnyProcess) -> Option<u64> {
        self.0.view(process)
    }
    fn remembers_messages(&self) -> bool {
        self.0.remembers_messages()
    }
    fn at_end(&self, end: &End) -> Verdict {
        self.0.at_end(end)
    }
}

impl Clone for AnyMonitor {
    fn clone(&self) -> Self {
        Self(self.0.copy())
    }
}

impl PartialEq for AnyMonitor {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&*other.0)
    }
}

impl Eq for AnyMonitor {}

impl Hash for AnyMonitor {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_into(state);
    }
}

impl fmt::Debug for AnyMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
