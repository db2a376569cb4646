//! Clients without their types.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use super::{AnyData, AnyProcess, FOREIGN, Recordable};
use crate::{Application, ProcessId};

/// The clients of any algorithm.
pub struct AnyApplication(Box<dyn Object>);

trait Object: Any + fmt::Debug + Send + Sync {
    fn copy(&self) -> Box<dyn Object>;
    fn is_same(&self, other: &dyn Object) -> bool;
    fn hash_into(&self, hasher: &mut dyn Hasher);
    fn next(&self, at: ProcessId) -> Option<AnyData>;
    fn on_request(&mut self, at: ProcessId, request: &AnyData);
    fn on_indication(&mut self, at: ProcessId, indication: &AnyData);
    fn on_crash(&mut self, at: ProcessId);
    fn on_restart(&mut self, at: ProcessId);
    fn holds(&self, at: ProcessId) -> bool;
    fn must_request(&self, at: ProcessId) -> bool;
    fn waiting(&self) -> Vec<ProcessId>;
}

/// Clients of processes of type `P`.
struct Typed<P, A>(A, PhantomData<fn(P)>);

impl<P: Recordable, A: Application<P> + Send + Sync + 'static> Object for Typed<P, A> {
    fn copy(&self) -> Box<dyn Object> {
        Box::new(Self(self.0.clone(), PhantomData))
    }
    fn is_same(&self, other: &dyn Object) -> bool {
        self.0 == (other as &dyn Any).downcast_ref::<Self>().expect(FOREIGN).0
    }
    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.0.hash(&mut hasher);
    }
    fn next(&self, at: ProcessId) -> Option<AnyData> {
        self.0.next(at).map(AnyData::new)
    }
    fn on_request(&mut self, at: ProcessId, request: &AnyData) {
        self.0.on_request(at, request.get());
    }
    fn on_indication(&mut self, at: ProcessId, indication: &AnyData) {
        self.0.on_indication(at, indication.get());
    }
    fn on_crash(&mut self, at: ProcessId) {
        self.0.on_crash(at);
    }
    fn on_restart(&mut self, at: ProcessId) {
        self.0.on_restart(at);
    }
    fn holds(&self, at: ProcessId) -> bool {
        self.0.holds(at)
    }
    fn must_request(&self, at: ProcessId) -> bool {
        self.0.must_request(at)
    }
    fn waiting(&self) -> Vec<ProcessId> {
        self.0.waiting()
    }
}

impl<P, A: fmt::Debug> fmt::Debug for Typed<P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl AnyApplication {
    /// `application`, the clients of processes of type `P`, without its type.
    pub fn new<P: Recordable>(application: impl Application<P> + Send + Sync + 'static) -> Self {
        Self(Box::new(Typed::<P, _>(application, PhantomData)))
    }
}

impl Application<AnyProcess> for AnyApplication {
    fn next(&self, at: ProcessId) -> Option<AnyData> {
        self.0.next(at)
    }
    fn on_request(&mut self, at: ProcessId, request: &AnyData) {
        self.0.on_request(at, request);
    }
    fn on_indication(&mut self, at: ProcessId, indication: &AnyData) {
        self.0.on_indication(at, indication);
    }
    fn on_crash(&mut self, at: ProcessId) {
        self.0.on_crash(at);
    }
    fn on_restart(&mut self, at: ProcessId) {
        self.0.on_restart(at);
    }
    fn holds(&self, at: ProcessId) -> bool {
        self.0.holds(at)
    }
    fn must_request(&self, at: ProcessId) -> bool {
        self.0.must_request(at)
    }
    fn waiting(&self) -> Vec<ProcessId> {
        self.0.waiting()
    }
}

impl Clone for AnyApplication {
    fn clone(&self) -> Self {
        Self(self.0.copy())
    }
}

impl PartialEq for AnyApplication {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&*other.0)
    }
}

impl Eq for AnyApplication {}

impl Hash for AnyApplication {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_into(state);
    }
}

impl fmt::Debug for AnyApplication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
